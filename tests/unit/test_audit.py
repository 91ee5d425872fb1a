"""The audit: what it finds, what it leaves alone, and how little work it takes."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist.errors import RecordError
from memorist.lifecycle.audit import (
    KINDS,
    Audit,
    AuditKind,
    Comparison,
    audit,
    compare,
    junk_family,
)
from memorist.records.memories import Fact, MemoryItem
from memorist.records.scope import Scope
from memorist.transfer.formats import mem0
from memorist.transfer.source import Source

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ADA = Scope(user="ada")
DATA = Path(__file__).parent.parent / "data"


def memory(text: str, **more: Any) -> MemoryItem:
    given: dict[str, Any] = {
        "scope": ADA,
        "created_at": NOW - timedelta(days=9),
        "sources": ("m1",),
    }
    return MemoryItem(text=text, **given | more)


def fact(predicate: str, object_: str, **more: Any) -> Fact:
    given: dict[str, Any] = {"scope": ADA, "subject": "Ada", "sources": ("m1",)}
    return Fact(predicate=predicate, object=object_, **given | more)


def judge(*records: MemoryItem | Fact | str, **settings: Any) -> Audit:
    made = [memory(record) if isinstance(record, str) else record for record in records]
    items = [record for record in made if isinstance(record, MemoryItem)]
    facts = [record for record in made if isinstance(record, Fact)]
    return audit(items, facts, NOW, **settings)


def kinds(*records: MemoryItem | Fact | str, **settings: Any) -> dict[str, int]:
    """How many of each kind were found, where any were."""
    return {kind: n for kind, n in judge(*records, **settings).counts.items() if n}


def labelled(name: str) -> tuple[Audit, dict[str, list[str]]]:
    """The audit of a labelled export, and the kinds expected of each id."""
    path = DATA / f"{name}.json"
    entries = json.loads(path.read_text("utf-8"))["results"]
    expected = {entry["id"]: entry["metadata"]["expected"] for entry in entries}
    items = [item for item in mem0.read(Source(path)) if isinstance(item, MemoryItem)]
    return audit(items, [], NOW, grounded=False), expected


@pytest.mark.parametrize("name", ["mem0_export", "mem0_export_more"])
@pytest.mark.parametrize("kind", KINDS)
def test_labelled_exports_are_judged_as_their_reader_judged_them(
    name: str, kind: AuditKind
) -> None:
    found, expected = labelled(name)
    wanted = {id for id, labels in expected.items() if kind in labels}
    right = len(found.flagged(kind) & wanted)

    assert right >= 0.9 * len(found.flagged(kind))
    assert right >= 0.8 * len(wanted)


def test_what_is_worth_keeping_is_left_alone() -> None:
    found, expected = labelled("mem0_export")

    assert found.clean == sum(labels == [] for labels in expected.values())


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("Thank you so much!", "greeting"),
        ("The user asked about train times.", "question"),
        ("Is the museum in Bonn open on Mondays?", "question"),
        ("I'm hungry right now", "passing"),
        ("I'm sorry, but I can't help with that.", "boilerplate"),
        ("You are a helpful travel agent.", "system"),
        ("The agent must call search first.", "instruction"),
        ("Based on the retrieved memories the user lives in Oslo.", "echo"),
        ("Cron job backup-3 finished at 02:00", "noise"),
        ("User has preferences", "vacuous"),
        ("and of the", "fragment"),
        ("", "fragment"),
    ],
)
def test_junk_says_which_family_it_belongs_to(text: str, family: str) -> None:
    assert junk_family(text) == family


@pytest.mark.parametrize(
    "text",
    [
        "Vegan",
        "Name is Alex",
        "User asked to be called Sam",
        "User is currently reading Dune",
        "User is waiting for a kidney transplant",
        "User wants the assistant to answer in German",
        "The heartbeat sensor is wired to pin 7",
        "No peanuts: they nearly killed her in 2019",
        "Ja-Sager sind ihm zuwider",
        "No dairy products",
        "I'm vegan. What can I eat in Porto?",
        "The worker dies with exit code 137 if memory is short",
        "Hi-fi enthusiast",
        "Great Dane owner",
        "Thanks Anna for the flat in every letter",
    ],
)
def test_what_only_looks_like_junk_is_kept(text: str) -> None:
    assert junk_family(text) is None


def test_near_duplicates_are_one_finding_that_names_the_one_to_keep_first() -> None:
    first = memory("She prefers window seats on long flights")
    again = memory("Prefers window seats on long flights.", created_at=NOW)
    weightier = memory("On long flights she prefers window seats", importance=0.9)
    (found,) = judge(first, again, weightier).findings

    assert found.kind == "duplicate"
    assert found.ids == (weightier.id, first.id, again.id)
    assert found.flagged == (first.id, again.id)


def test_two_users_may_remember_the_same() -> None:
    mine, theirs = memory("Likes green tea"), memory("Likes green tea", scope=Scope(user="bob"))

    assert kinds(mine, theirs) == {}


def test_different_names_are_different_memories() -> None:
    assert (
        kinds(
            "The big review of the billing project in spring goes to Anna",
            "The big review of the billing project in spring goes to Peter",
        )
        == {}
    )


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("She likes coriander", "She doesn't like coriander"),
        ("Has 2 children", "Has 3 children"),
        ("Lives in Berlin", "She lives in Munich"),
        ("Her favourite colour is green", "Her favourite colour is blue"),
        ("她喜欢喝咖啡", "她不喜欢喝咖啡"),
        ("Она любит кофе", "Она не любит кофе"),
        ("Wohnt in Köln", "Wohnt jetzt in Bonn"),
    ],
)
def test_memories_that_cannot_both_hold_are_contradictory(one: str, two: str) -> None:
    assert kinds(one, two) == {"contradictory": 2}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Lives in Berlin", "Lives in Berlin, Germany"),
        ("Lives in Berlin", "Used to live in Munich"),
        ("Lives in Berlin", "Her sister lives in Munich"),
        ("Ran 5 km on 2026-05-03", "Ran 7 km on 2026-05-10"),
        ("Works at Siemens", "Works at night"),
    ],
)
def test_memories_that_can_both_hold_are_not(one: str, two: str) -> None:
    assert kinds(one, two) == {}


def test_a_row_of_measurements_is_no_contradiction() -> None:
    assert kinds(*(f"Weighs {kilos} kilos" for kilos in range(60, 70))) == {}


def test_facts_with_one_answer_at_a_time_clash_if_they_overlap() -> None:
    march = NOW - timedelta(days=80)
    munich, berlin = fact("lives_in", "Munich"), fact("lives_in", "Berlin", valid_from=march)
    ended = fact("lives_in", "Munich", valid_to=march)

    assert kinds(munich, berlin) == {"contradictory": 2}
    assert kinds(ended, berlin) == {}
    assert kinds(fact("favourite tea", "oolong"), fact("favourite tea", "mint")) == {
        "contradictory": 2
    }
    assert kinds(fact("likes", "tea"), fact("likes", "milk")) == {}
    assert kinds(fact("lives in", "Berlin"), fact("Lives in", "berlin")) == {}


def test_what_has_ended_or_was_superseded_is_not_judged() -> None:
    done = memory("Hello!", ended_at=NOW), memory("Hello!", superseded_by="other")
    old = fact("lives_in", "Munich", known_to=NOW), fact("lives_in", "Berlin")

    found = judge(*done, *old)

    assert found.findings == ()
    assert (found.memories, found.facts) == (0, 1)


@pytest.mark.parametrize(
    ("stale", "fresh"),
    [
        ({"expires_at": NOW - timedelta(hours=1)}, {"expires_at": NOW + timedelta(hours=1)}),
        ({"kind": "working"}, {"kind": "working", "created_at": NOW}),
        (
            {"created_at": NOW - timedelta(days=200), "importance": 0.2},
            {"created_at": NOW - timedelta(days=200), "importance": 0.2, "used_at": NOW},
        ),
    ],
)
def test_what_is_over_is_stale(stale: dict[str, Any], fresh: dict[str, Any]) -> None:
    assert kinds(memory("Keeps bees on the roof", **stale)) == {"stale": 1}
    assert kinds(memory("Keeps bees on the roof", **fresh)) == {}


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("Plans to visit Rome on 2026-05-28", True),
        ("Plans to visit Rome on 2026-07-20", False),
        ("Dentist appointment tomorrow", True),  # said nine days ago
        ("Was born on 1990-05-20", False),
        ("Went on a trip to Rome last week", False),
    ],
)
def test_a_plan_is_stale_once_its_date_has_passed(text: str, over: bool) -> None:
    assert kinds(text) == ({"stale": 1} if over else {})


def test_secrets_are_named_by_their_kind_and_never_shown() -> None:
    (found,) = judge("wifi password: tr0ub4dor&3").findings

    assert found.kind == "secret"
    assert found.evidence == ("password",)
    assert "tr0ub4dor" not in repr(found)


def test_a_record_that_names_no_message_is_ungrounded_unless_it_was_imported() -> None:
    loose = memory("Keeps bees on the roof", sources=()), fact("likes", "tea", sources=())

    assert kinds(*loose) == {"ungrounded": 2}
    assert kinds(*loose, grounded=False) == {}


def test_many_copies_are_a_loop_and_the_first_is_spared() -> None:
    copies = [memory("Is a software developer at Google") for _ in range(668)]
    found = judge(*copies)

    assert found.counts["junk"] == found.counts["duplicate"] == 667
    assert found.flagged("junk") == {copy.id for copy in copies[1:]}
    assert (found.clean, found.comparisons) == (1, 0)


def test_an_empty_memory_is_clean() -> None:
    found = judge()

    assert (found.clean, found.findings, found.share("junk")) == (0, (), 0.0)


def test_findings_hold_no_words_of_the_memories() -> None:
    found, _ = labelled("mem0_export")
    told = repr(found.findings)

    assert not any(word in told for word in ("Marta", "Malmö", "cilantro", "hunter2", "Lisbon"))


def test_ten_thousand_memories_are_compared_with_a_few_others_each() -> None:
    chance = random.Random(4)
    parts = ("an", "ev", "or", "is", "ul", "am", "ek", "ot")
    words = [f"{a}{b}{c}t" for a in "bdfgklmnprst" for b in parts for c in parts]
    weights = [1 / rank for rank in range(1, len(words) + 1)]  # as words of a language are
    texts = [" ".join(chance.choices(words, weights, k=9)) for _ in range(9_900)]
    texts += [f"{text} indeed" for text in texts[:100]]
    found = compare(texts, ["ada"] * 10_000)

    assert {(n, 9_900 + n) for n in range(100)} <= set(found.duplicates)
    assert found.comparisons < 500_000  # a hundredth of all pairs
    assert found.skipped < found.comparisons


def test_a_crowd_that_differs_in_numbers_alone_is_not_compared_at_all() -> None:
    texts = [f"Sensor reading number {number} was stored" for number in range(10_000)]
    found = compare(texts, ["ada"] * 10_000)

    assert found == Comparison()


def test_a_crowd_that_meets_in_one_word_costs_no_more_than_allowed() -> None:
    codes = [f"{chr(97 + n // 26)}x{chr(97 + n % 26)}" for n in range(600)]
    texts = [f"Bought {code}q and {code}z" for code in codes]
    found = compare(texts, ["ada"] * 600, alike_at=0.5, most=8)

    assert found.comparisons <= 8 * 600
    assert found.skipped > 0


def test_the_moment_is_checked() -> None:
    with pytest.raises(RecordError, match="now has no time zone"):
        audit([], [], NOW.replace(tzinfo=None))
