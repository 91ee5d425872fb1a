"""Who is who: the user and their name, a wife and her name, and two people with one name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorist import KGMemory, Message
from tests.support.lives import Life


@pytest.fixture(params=["sqlite", "postgres"])
def ada(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Life]:
    url = request.getfixturevalue("postgres_with_tables") if request.param == "postgres" else None
    life = Life(url or str(tmp_path / "ada.db"))
    yield life
    life.memory.close()


def _facts(life: Life, subject: str | None = None, user: str = "ada") -> set[str]:
    return {fact.text for fact in life.memory.facts.list(user=user, subject=subject)}


def _add(life: Life, *triple: str, user: str = "ada") -> str:
    id_ = life.memory.facts.add(*triple, user=user)
    life.clock.on()
    return id_


def test_the_users_name_is_the_user(ada: Life) -> None:
    ada.says("I'm Ada.")
    ada.says("I live in Munich.")
    _add(ada, "Ada", "lives in", "Graz")
    _add(ada, "Ada", "likes", "chess")
    expected = {"user name Ada", "user lives in Graz", "user likes chess"}
    assert _facts(ada) == _facts(ada, "Ada") == _facts(ada, "user") == expected
    assert ada.memories() == ["I'm Ada."]
    assert "user lives in Graz" in {
        wire["content"] for wire in KGMemory(memory=ada.memory, user="ada").retrieve_all()
    }


def test_the_whole_name_and_the_first_name_are_one(ada: Life) -> None:
    ada.says("My name is Ada Lovelace.")
    _add(ada, "Ada", "lives in", "Graz")
    _add(ada, "Ada Lovelace", "lives in", "Wien")
    assert _facts(ada, "user") == {"user name Ada Lovelace", "user lives in Wien"}


def test_a_new_name_leaves_the_old_one_hers(ada: Life) -> None:
    ada.says("My name is Ada.")
    _add(ada, "Ada", "lives in", "Graz")
    ada.says("My name is Eva now.")
    _add(ada, "Eva", "lives in", "Wien")
    assert _facts(ada, "Ada") == {"user name Eva", "user lives in Wien"}


def test_a_name_that_is_undone_is_nobodys(ada: Life) -> None:
    ada.says("I live in Munich.")
    ada.says("My name is Ada.")
    ada.memory.memories.undo(ada.id_of("Ada"), user="ada")
    _add(ada, "Ada", "lives in", "Graz")
    assert _facts(ada) == {"user lives in Munich", "Ada lives in Graz"}


def test_her_wife_and_her_wifes_name_are_one(ada: Life) -> None:
    ada.says("My wife lives in Graz.")
    ada.says("My wife is called Lena.")
    _add(ada, "Lena", "works at", "Bosch")
    expected = {"Lena lives in Graz", "Lena works at Bosch"}
    assert _facts(ada, "Lena") == _facts(ada, "user's wife") == _facts(ada, "my wife") == expected
    ada.says("My wife works at Siemens.")
    _add(ada, "Lena", "lives in", "Linz")
    assert _facts(ada, "Lena") == {"Lena lives in Linz", "Lena works at Siemens"}
    found = ada.recalls("where does my wife work?")
    assert any("Siemens" in text for text in found)
    assert any("Siemens" in text for text in ada.recalls("what does Lena do?"))


def test_two_people_with_one_name_stay_apart(ada: Life) -> None:
    ada.says("My name is Ada.")
    ada.says("I live in Graz.")
    ada.says("My friend Ada lives in Paris.")
    _add(ada, "Ada", "works at", "Bosch")  # which of them?
    facts = _facts(ada)
    assert {"user lives in Graz", "Ada works at Bosch"} <= facts
    assert "user lives in Graz" not in _facts(ada, "Ada")
    assert not any("Paris" in text for text in _facts(ada, "user"))
    assert "user works at Bosch" not in facts


def test_the_name_of_one_user_is_nothing_to_another(ada: Life) -> None:
    ada.says("My name is Ada.")
    _add(ada, "Ada", "lives in", "Graz", user="bob")
    assert _facts(ada, user="bob") == {"Ada lives in Graz"}
    assert _facts(ada, "user", user="bob") == set()


def test_names_told_in_the_same_breath_count(ada: Life) -> None:
    texts = "My wife lives in Graz.", "My wife is called Lena."
    said = [Message("user", text, created_at=ada.clock()) for text in texts]
    ada.memory.remember(said, user="ada")
    ada.thinks()
    _add(ada, "Lena", "lives in", "Linz")
    assert _facts(ada, "Lena") == {"Lena lives in Linz"}
