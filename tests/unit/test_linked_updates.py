"""What a user says of a matter later, in other words, is linked to it and stands above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memorist import Memory, Message
from memorist.providers.minilm import MiniLM
from memorist.records.scope import Scope
from tests.support.models import Vectors, WordEmbedder

MAY = datetime(2026, 5, 1, tzinfo=UTC)
MUNICH = "I live in Munich, near the river. Where can I swim on a weekday?"
GRAZ = "We're in Graz now, got the keys on Monday. Where do people swim here?"
OTHERS = (
    "My dog Rex hates the cold.",
    "Which train goes to the airport on Sundays?",
    "I am allergic to peanuts. What can I bake for Lena?",
)
QUESTION = "Where do I live, and where can I swim?"


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


def tell(memory: Memory, day: int, *texts: str) -> list[str]:
    """Say something on a day of its own; it is embedded before more is said."""
    at = MAY + timedelta(days=day)
    said = [Message("user", text, created_at=at) for text in texts]
    memory.remember(said, user="ada", session=f"day {day}")
    assert memory.jobs.catch_up(300) == 0
    return [message.message_id for message in said]


@pytest.fixture
def memory(tmp_path: Path, minilm: MiniLM) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=minilm, extraction=None) as opened:
        yield opened


def first_two(memory: Memory, question: str = QUESTION, **more: Any) -> list[str]:
    hits = memory.recall(question, user="ada", limit=2, deadline_ms=None, **more).hits
    return [hit.text for hit in hits]


def links(memory: Memory) -> dict[str, str]:
    """What each message is overtaken by."""
    scope = Scope(user="ada")
    found = memory.store.match_text(scope, [("i",), ("we",), ("my",), ("swim",)], limit=99)
    passages = memory.store.passages(scope, [it.passage for it in found])
    linked = {it.id: it.overtaken_by for it in passages if it.overtaken_by}
    texts = {it.passage: it.text for it in memory.store.read(scope, [*linked, *linked.values()])}
    return {texts[old]: texts.get(new, "gone") for old, new in linked.items()}


def test_what_holds_now_stands_above_what_it_updates_and_says_why(memory: Memory) -> None:
    tell(memory, 0, MUNICH, *OTHERS)
    assert first_two(memory)[0] == MUNICH
    tell(memory, 30, GRAZ)
    assert links(memory) == {MUNICH: GRAZ}
    assert first_two(memory) == [GRAZ, MUNICH]
    hits = memory.recall(QUESTION, user="ada", deadline_ms=None).hits
    assert hits[0].why.parts["update"] > 0
    assert hits[0].score >= hits[1].score
    assert hits[1].over == "probably until May 2026"  # it is likely, and no more
    early = memory.recall(QUESTION, user="ada", before=MAY + timedelta(days=9), deadline_ms=None)
    assert early.hits[0].over == ""


def test_a_window_marks_what_is_probably_over_unless_it_states_what_holds(tmp_path: Path) -> None:
    clock = lambda: MAY + timedelta(days=90)  # noqa: E731
    with Memory(tmp_path / "memory.db", clock=clock) as memory:
        tell(memory, 0, "i take the tram to the office these days", "my aunt Vera lives in Porto")
        tell(memory, 20, "the tram line is closed, so i cycle to the office now")
        tell(memory, 40, "aunt Vera got a goat, it eats half of Porto")
        question = "how do I get to the office?"
        window = memory.context(question, user="ada", max_tokens=2_000, deadline_ms=None)
        assert "user, probably until May 2026:\n> i take the tram" in str(
            window.messages[0]["content"]
        )
        hits = memory.recall("where does my aunt live?", user="ada", deadline_ms=None).hits
        assert [hit.over for hit in hits if "lives in Porto" in hit.text] == [""]


@pytest.mark.parametrize(("minutes", "linked"), [(10, {}), (70, {MUNICH: GRAZ})])
def test_messages_of_one_batch_are_linked_unless_one_goes_on_with_the_other(
    memory: Memory, minutes: int, linked: dict[str, str]
) -> None:
    later = MAY + timedelta(minutes=minutes)
    told = Message("user", MUNICH, created_at=MAY), Message("user", GRAZ, created_at=later)
    memory.remember(told, user="ada", session="talk")
    assert memory.jobs.catch_up(300) == 0
    assert links(memory) == linked


def test_a_question_about_the_past_and_filters_leave_the_update_out(memory: Memory) -> None:
    tell(memory, 0, MUNICH, *OTHERS)
    tell(memory, 30, GRAZ)
    assert first_two(memory, "Where did I live and swim before?")[0] == MUNICH
    early = first_two(memory, before=MAY + timedelta(days=1))
    assert early[0] == MUNICH
    assert GRAZ not in early
    assert GRAZ not in first_two(memory, session="day 0")
    assert GRAZ not in first_two(memory, kind="memory")


def test_an_update_that_is_forgotten_is_passed_over_and_one_revised_is_judged_again(
    memory: Memory,
) -> None:
    tell(memory, 0, MUNICH, *OTHERS)
    [graz] = tell(memory, 30, GRAZ)
    revised = Message("user", f"Graz it is! {GRAZ}", graz, created_at=MAY + timedelta(days=30))
    memory.messages.revise(Scope(user="ada", session="day 30"), revised)
    assert memory.jobs.catch_up(300) == 0
    assert links(memory) == {MUNICH: revised.text}
    memory.forget(user="ada", message=graz)
    assert first_two(memory)[0] == MUNICH
    assert links(memory) == {MUNICH: "gone"}


def test_a_rebuild_makes_the_links_anew(memory: Memory) -> None:
    tell(memory, 0, MUNICH, *OTHERS)
    tell(memory, 30, GRAZ)
    memory.jobs.rebuild(user="ada")
    assert memory.jobs.catch_up(300) == 0
    assert links(memory) == {MUNICH: GRAZ}


class Judge(WordEmbedder):
    """Takes every later message for an update, or fails."""

    fails = False

    def update_chances(self, earlier: Vectors, later: Vectors) -> Vectors:
        if self.fails:
            raise RuntimeError("no chance")
        assert later.shape == earlier.shape[1:]
        return earlier @ later * 0 + 1


def test_vectors_are_stored_though_it_cannot_be_told_what_they_update(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Judge()
    with Memory(tmp_path / "memory.db", embedder=embedder, extraction=None) as memory:
        embedder.fails = True
        tell(memory, 0, MUNICH)
        tell(memory, 1, GRAZ)
        assert links(memory) == {}
        assert memory.store.unembedded(Scope(user="ada"), embedder.name, limit=9) == {}
        assert "not linked to what they update: RuntimeError" in caplog.text
        assert "Graz" not in caplog.text
        embedder.fails = False
        tell(memory, 2, "I swim in Linz")
        assert set(links(memory).values()) == {"I swim in Linz"}


class ReadingJudge(Judge):
    """Takes everything for possible, and reads that Graz alone is updated."""

    def confirm_updates(self, earlier: Sequence[str], later: str, chances: Vectors) -> Vectors:
        assert len(earlier) == len(chances)
        return np.asarray(["Graz" in text and "Graz" not in later for text in earlier], np.float32)


def test_what_vectors_call_possible_is_linked_if_reading_both_confirms_it(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=ReadingJudge(), extraction=None) as memory:
        tell(memory, 0, MUNICH)
        tell(memory, 1, GRAZ)
        assert links(memory) == {}
        tell(memory, 2, "I swim in Linz")
        assert links(memory) == {GRAZ: "I swim in Linz"}


def test_an_embedder_that_cannot_tell_links_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=WordEmbedder(), extraction=None) as memory:
        tell(memory, 0, MUNICH)
        tell(memory, 1, MUNICH.replace("Munich", "Graz"))
        assert links(memory) == {}
        assert len(first_two(memory)) == 2
