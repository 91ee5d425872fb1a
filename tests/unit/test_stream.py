"""Streams: a message grows token by token, and what had arrived stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist import AsyncMemory, Chat, ConflictError, Memory, Message, MessageError, NotFoundError
from memorist.chat import Stream
from memorist.records.values import PASSAGES_PER_MESSAGE as PIECES
from memorist.store.log import next_piece

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None) as memory:
        yield memory


@pytest.fixture
def chat(memory: Memory) -> Chat:
    return memory.session(user="ada", agent="tutor")


def kept(**settings: Any) -> tuple[Stream, list[Message]]:
    """A stream, and all that it stores."""
    stored: list[Message] = []
    message = Message("assistant", "", unfinished=True)
    return Stream(message, stored.append, **settings), stored


def test_a_streamed_reply_is_a_message_like_any_other(chat: Chat) -> None:
    chat.add("user", "Where do I live?")
    with chat.stream("assistant", name="Tutor") as reply:
        for token in ("You ", "live ", "in ", "Berlin."):
            reply.write(token)
    message = chat.history()[-1]
    assert message == reply.message
    assert (message.message_id, message.text) == (reply.id, "You live in Berlin.")
    assert (message.role, message.name, message.unfinished) == ("assistant", "Tutor", False)
    assert chat.recall("Berlin", deadline_ms=None).hits[0].id == reply.id


def test_its_place_in_the_conversation_is_taken_when_it_begins(chat: Chat) -> None:
    with chat.stream() as reply:
        chat.add("user", "Hurry!")
        reply.write("Well")
    assert [message.text for message in chat.history()] == ["Well", "Hurry!"]


def test_readers_see_a_stream_grow(chat: Chat) -> None:
    with chat.stream(flush_s=0) as reply:
        assert chat.history() == [reply.message]
        assert (reply.message.text, reply.message.unfinished) == ("", True)
        for text, token in (("The tram", "The tram"), ("The tram to Bern", " to Bern")):
            reply.write(token)
            assert (chat.history()[0].text, chat.history()[0].unfinished) == (text, True)
        assert chat.recall("Bern", deadline_ms=None).hits[0].id == reply.id
    assert not chat.history()[0].unfinished


def test_an_error_leaves_what_had_arrived_unfinished(chat: Chat) -> None:
    def reply_until_the_model_fails() -> None:
        with chat.stream(flush_s=1_000) as reply:
            reply.write("So far")
            reply.write(", so good")
            raise TimeoutError("the model is gone")

    with pytest.raises(TimeoutError):
        reply_until_the_model_fails()
    [message] = chat.history()
    assert (message.text, message.unfinished) == ("So far, so good", True)
    chat._memory.store.append_text(chat.session.scope, message.changed(unfinished=False))
    assert not chat.history()[0].unfinished


def test_an_error_of_the_store_does_not_hide_the_one_that_ended_the_stream(
    memory: Memory, chat: Chat
) -> None:
    def reply_to_nobody() -> None:
        with chat.stream(flush_s=1_000) as reply:
            reply.write("secret")
            memory.forget(user="ada", message=reply.id)
            raise TimeoutError("the model is gone")

    with pytest.raises(TimeoutError) as caught:
        reply_to_nobody()
    [note] = caught.value.__notes__
    assert "could not be stored" in note
    assert "secret" not in note
    assert chat.history() == []


def test_a_message_forgotten_while_it_grows_stays_forgotten(memory: Memory, chat: Chat) -> None:
    reply = chat.stream(flush_s=0)
    reply.write("secret")
    memory.forget(user="ada", message=reply.id)
    with pytest.raises(NotFoundError):
        reply.write("s")
    assert chat.history() == []


def test_calls_that_come_last_are_given_to_finish(chat: Chat) -> None:
    call = {"id": "call_1", "name": "search", "args": {"q": "tram"}}
    with chat.stream() as reply:
        reply.write("Let me look")
        reply.finish(tool_calls=[call])
    [message] = chat.history()
    assert (message.content, message.tool_calls[0].name) == ("Let me look", "search")
    assert not message.unfinished


def test_a_finished_stream_takes_no_more(chat: Chat) -> None:
    reply = chat.stream()
    reply.write("done")
    reply.finish()
    reply.finish()
    with pytest.raises(ConflictError):
        reply.write("more")
    with pytest.raises(ConflictError):
        reply.finish(name="Other")
    assert [message.text for message in chat.history()] == ["done"]


@pytest.mark.parametrize("token", ["\0", "\ud800", None, b"bytes"], ids=repr)
def test_a_token_that_is_not_text_is_refused_and_the_stream_goes_on(chat: Chat, token: Any) -> None:
    with chat.stream() as reply:
        reply.write("a")
        with pytest.raises(MessageError):
            reply.write(token)
        reply.write("b")
    assert chat.history()[0].text == "ab"


def test_tokens_are_gathered_before_they_are_stored() -> None:
    stream, stored = kept(flush_s=1_000, flush_chars=100)
    with stream:
        for _ in range(1_000):
            stream.write("token ")
    assert [len(message.text) for message in stored] == [102, 204, 408, 816, 1_632, 3_264, 6_000]


def test_what_waits_is_stored_when_its_time_has_come() -> None:
    stream, stored = kept(flush_s=0.02, flush_chars=1_000)
    stream.write("first")
    assert stored == []
    time.sleep(0.03)
    stream.write(", second")
    assert [message.text for message in stored] == ["first, second"]
    stream.write(", third")
    stream.flush()
    stream.flush()
    assert [message.text for message in stored] == ["first, second", "first, second, third"]


def test_a_slow_store_is_asked_less_often() -> None:
    stored: list[Message] = []

    def grow(message: Message) -> None:
        time.sleep(0.02)
        stored.append(message)

    stream = Stream(Message("assistant", "", unfinished=True), grow, flush_s=0.001)
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        stream.write(".")
        time.sleep(0.001)
    assert 1 <= len(stored) <= 3


def test_a_write_that_could_not_be_stored_is_stored_with_the_next() -> None:
    stored: list[Message] = []
    troubles = [ConflictError("busy")]

    def grow(message: Message) -> None:
        if troubles:
            raise troubles.pop()
        stored.append(message)

    stream = Stream(Message("assistant", "", unfinished=True), grow, flush_s=0)
    with pytest.raises(ConflictError):
        stream.write("one ")
    stream.write("two")
    assert [message.text for message in stored] == ["one two"]


@given(tokens=st.lists(TEXT), flush_chars=st.integers(0, 50))
def test_any_split_into_tokens_gives_the_same_message(tokens: list[str], flush_chars: int) -> None:
    stream, stored = kept(flush_s=1_000, flush_chars=flush_chars)
    with stream:
        for token in tokens:
            stream.write(token)
    assert stored[-1] == stream.message
    assert (stored[-1].text, stored[-1].unfinished) == ("".join(tokens), False)
    for before, after in pairwise(stored):
        assert before.unfinished
        assert after.text.startswith(before.text)


@given(text=TEXT, cuts=st.lists(st.integers(0, 60), max_size=5))
def test_a_streamed_text_is_stored_and_found_as_if_said_at_once(text: str, cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(text)})
    with Memory(":memory:", embedder=None) as memory:
        chat = memory.session(user="ada")
        with chat.stream("user", flush_s=0) as streamed:
            for start, stop in pairwise(places):
                streamed.write(text[start:stop])
        whole = chat.add("user", text)
        first, second = chat.history()
        assert (first.content, first.unfinished) == (second.content, second.unfinished)
        hits = memory.recall(text or "nothing", user="ada", deadline_ms=None).hits
        assert {hit.id for hit in hits} >= {streamed.id, whole} or not text.strip()


def test_two_readers_follow_a_stream_to_its_end(tmp_path: Path) -> None:
    path, text = tmp_path / "memory.db", "all that is gold does not glitter"

    def read(message_id: str) -> list[str]:
        with Memory(path, embedder=None) as memory:
            chat = memory.session(user="ada", agent="tutor")
            return list(chat.follow(message_id, timeout_s=20))

    with Memory(path, embedder=None) as memory, ThreadPoolExecutor(2) as threads:
        chat = memory.session(user="ada", agent="tutor")
        with chat.stream(flush_s=0.01) as reply:
            readers = [threads.submit(read, reply.id) for _ in range(2)]
            for token in text.split(" "):
                reply.write(token if token == "all" else f" {token}")
                time.sleep(0.06)
        for reader in readers:
            pieces = reader.result()
            assert "".join(pieces) == text
            assert len(pieces) > 1


def test_following_ends_when_nothing_comes_any_more(chat: Chat) -> None:
    reply = chat.stream()
    reply.write("gone")
    reply.flush()
    assert list(chat.follow(reply.id, timeout_s=0.1)) == ["gone"]
    with pytest.raises(NotFoundError):
        next(chat.follow("unknown"))


def test_a_whole_reply_can_be_followed_too(chat: Chat) -> None:
    assert list(chat.follow(chat.add("assistant", "at once"))) == ["at once"]


def test_a_finished_stream_gets_its_vectors_soon() -> None:
    with Memory(":memory:") as memory:
        chat = memory.session(user="ada")
        with chat.stream() as reply:
            reply.write("I have moved to Berlin")
        assert memory.jobs.catch_up(timeout_s=300) == 0
        name = memory.embedder.name if memory.embedder else ""
        assert memory.store.unembedded(chat.session.scope, name, limit=1) == {}
        assert memory.store.jobs(chat.session.scope) == []
        assert (
            memory.recall("which town is home?", user="ada", deadline_ms=None, min_score=0)
            .hits[0]
            .id
            == reply.id
        )


def test_a_stream_for_asyncio_and_its_follower() -> None:
    async def talk() -> None:
        async with AsyncMemory(":memory:", embedder=None) as memory:
            chat = await memory.session(user="ada")
            async with chat.stream("assistant", flush_s=0.01) as reply:
                task = asyncio.create_task(listen(chat, reply.id))
                for token in ("All ", "is ", "well"):
                    await reply.write(token)
                    await asyncio.sleep(0.02)
                await reply.finish(name="Tutor")
            assert await task == "All is well"
            assert await chat.history() == [reply.message]
            assert reply.message.name == "Tutor"

    async def listen(chat: Any, message_id: str) -> str:
        return "".join([piece async for piece in chat.follow(message_id)])

    asyncio.run(talk())


def test_a_cancelled_task_leaves_what_had_arrived() -> None:
    async def talk() -> None:
        async with AsyncMemory(":memory:", embedder=None) as memory:
            chat = await memory.session(user="ada")
            arrived = asyncio.Event()

            async def reply() -> None:
                async with chat.stream("assistant", flush_s=1_000) as stream:
                    await stream.write("I was just")
                    arrived.set()
                    await asyncio.sleep(1_000)

            task = asyncio.create_task(reply())
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            [message] = await chat.history()
            assert (message.text, message.unfinished) == ("I was just", True)

    asyncio.run(talk())


def test_the_passages_of_a_growing_message_never_reach_the_next_message() -> None:
    assert next_piece(None) == 0
    assert next_piece(7 * PIECES + 41) == 42
    assert next_piece(7 * PIECES + PIECES - 1) == 0
    last = 7 * PIECES
    for _ in range(3_000):  # flushes of a text of half a million characters
        last = 7 * PIECES + next_piece(last) + 500
        assert last // PIECES == 7


def test_unfinished_is_a_bool_and_no_part_of_what_a_model_reads() -> None:
    assert Message("user", "x").unfinished is False
    message = Message("assistant", "so far", unfinished=True)
    assert message.to_wire() == Message("assistant", "so far").to_wire()
    assert message != message.changed(unfinished=False)
    for wrong in (1, None, "yes"):
        with pytest.raises(MessageError, match="unfinished"):
            Message("user", "x", unfinished=wrong)  # type: ignore[arg-type]
