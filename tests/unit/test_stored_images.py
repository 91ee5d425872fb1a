"""A path in the store is opened only by the process that was given it, for the same user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorist import ConversationMemory, Memory, Message
from memorist.context.chat_format import UNREADABLE
from memorist.providers import images

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(64)


@pytest.fixture
def picture(tmp_path: Path) -> str:
    file = tmp_path / "secret.png"
    file.write_bytes(PIXEL)
    return str(file)


def shown(memory: Memory, user: str = "ada", **options: Any) -> str:
    return str(memory.context("And?", user=user, session=f"of {user}", **options).messages)


def store(memory: Memory, path: str, *, user: str = "ada", as_part: bool = False) -> None:
    part = {"type": "image_url", "image_url": {"url": path}}
    message = Message("user", [part]) if as_part else Message("user", "look", images=[path])
    memory.remember(message, user=user, session=f"of {user}")


@pytest.mark.parametrize("as_part", [False, True])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_path_that_came_back_from_the_store_is_not_opened(
    request: pytest.FixtureRequest, tmp_path: Path, picture: str, as_part: bool, kind: str
) -> None:
    where = tmp_path / "m.db"
    if kind == "postgres":
        where = request.getfixturevalue("postgres_with_tables")
    with Memory(where, embedder=None, extraction=None) as memory:
        store(memory, picture, as_part=as_part)
        assert "data:image/png;base64," in shown(memory)  # given in this process
        images._given.clear()  # as in another process
        assert UNREADABLE in shown(memory)
        assert "data:image/png" in shown(memory, read_image=lambda _: "data:image/png;base64,AA")


def test_what_one_user_was_given_is_not_opened_for_another(picture: str) -> None:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        store(memory, picture)
        scope = memory.scope(user="eve", session="of eve")
        memory.store.append(scope, [Message("user", "mine", images=[picture])])
        assert "data:image/png;base64," in shown(memory)
        assert UNREADABLE in shown(memory, user="eve")


def test_a_conversation_opens_no_path_of_the_store(picture: str) -> None:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        chat = ConversationMemory(memory=memory, user="ada")
        id_ = chat.add(role="user", content="look", images=[picture])
        assert "data:image/png;base64," in str(chat.retrieve_all())
        images._given.clear()  # as in another process
        chat.update(id_, content="look again")
        for read in (chat.retrieve_all, lambda: chat.retrieve_by_id(id_)):
            shown = str(read())
            assert "only the process that was given a path opens it" in shown
            assert "data:image/png" not in shown
        chat.update(id_, images=[picture])
        assert "data:image/png;base64," in str(chat.retrieve_by_id(id_))


def test_the_question_of_the_caller_may_show_a_picture(picture: str) -> None:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        context = memory.context(Message("user", "What is it?", images=[picture]), user="ada")
        assert "data:image/png;base64," in str(context.messages)


def test_a_process_remembers_a_bounded_number_of_images(
    monkeypatch: pytest.MonkeyPatch, picture: str
) -> None:
    monkeypatch.setattr(images, "MAX_GIVEN", 10)
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        for number in range(40):
            store(memory, f"{picture}-{number}")
    assert len(images._given) == 10
