"""Rules read how people chat: fragments, lower case and side remarks, in each language."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memorist import Message
from memorist.lifecycle.rules import extract
from memorist.records.memories import Candidate

WEDNESDAY = datetime(2026, 3, 11, 9, tzinfo=UTC)


def extracted(text: str) -> list[Candidate]:
    return extract(Message("user", text, created_at=WEDNESDAY))


# What is said, then what it claims of the user, "no longer" where it ends; and what is left.
EXAMPLES = json.loads(
    (Path(__file__).parents[1] / "data" / "natural-speech.json").read_text("utf-8")
)
SAID, LEFT = EXAMPLES["said"], EXAMPLES["left"]


@pytest.mark.parametrize(("text", "predicate", "thing"), SAID)
def test_what_is_said_in_passing_is_found(text: str, predicate: str, thing: str) -> None:
    claims = [
        (("no longer " if claim.ends else "") + claim.predicate, claim.object)
        for candidate in extracted(text)
        for claim in candidate.claims
        if claim.subject == "user"
    ]
    assert (predicate, thing) in claims


@pytest.mark.parametrize("text", LEFT)
def test_what_says_nothing_of_the_speaker_is_left(text: str) -> None:
    assert not extracted(text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("nein, am 21.", "21."),
        ("no, perdona, el 21 de mayo", "21 de mayo"),
        ("non, le 21", "21"),
        ("ой нет, в среду", "среду"),
        ("不对，是21号", "21号"),
    ],
)
def test_a_correction_that_only_names_what_is_right_is_read_in_each_language(
    text: str, right: str
) -> None:
    [candidate] = extracted(text)
    assert candidate.corrects
    assert candidate.instead == (right, "")


def test_what_somebody_else_does_is_told_of_them() -> None:
    [candidate] = extracted("Lena works at Bosch now.")
    assert [(one.subject, one.object) for one in candidate.claims] == [("Lena", "Bosch")]
    assert not extracted("He works at Bosch now.")


def test_a_dated_statement_that_no_other_rule_reads_is_a_plan() -> None:
    [candidate] = extracted("Mina plays the organ in Bruges on 2 May.")
    assert [one.predicate for one in candidate.claims] == ["plans"]
