"""The benchmark of windows, from end to end on talk small enough to be worked out by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks import context
from benchmarks.context_methods import Case, Shown, is_inside, newest, ours, top_k
from benchmarks.dataset import Question

from memorist import Memory, Message
from memorist.context.tokens import TokenCounter
from memorist.providers.tokenizer import tokenizer_for

SAID = {
    "m1": Message("user", "My kayak is red.\n> It is new.", message_id="m1"),
    "m2": Message("assistant", "A fine colour for a kayak.", message_id="m2"),
    "m3": Message("user", "It rains today.", message_id="m3"),
}
ASKED = Question(
    id="q1",
    user="ada",
    text="Which colour is the kayak?",
    kind="4 single-hop",
    turns=frozenset({"m1"}),
    user_turns=frozenset({"m1"}),
    sessions=frozenset({"s"}),
    asked_at=datetime(2030, 1, 1, tzinfo=UTC),
)
TALK = {
    "sample_id": "talk",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I have bought a red kayak."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "My cat is called Tom."},
        ],
    },
    "qa": [
        {"question": "What did Ada buy?", "category": 4, "evidence": ["D1:1"]},
        {"question": "How is Bob's cat called?", "category": 2, "evidence": ["D1:2"]},
        {"question": "How is Ada's cat called?", "category": 5, "evidence": ["D1:2"]},
    ],
}


@pytest.fixture
def case() -> Iterator[Case]:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        memory.remember(list(SAID.values()), user="ada", session="s")
        yield Case(memory, TokenCounter(tokenizer_for()), ASKED, SAID)


def test_evidence_is_inside_only_with_all_of_its_words() -> None:
    whole = "user: My kayak is red.\n> It is new."
    assert is_inside(ASKED, SAID, Shown(whole, frozenset({"m1"}), 9))
    assert not is_inside(ASKED, SAID, Shown("user: My kayak is red.", frozenset({"m1"}), 9))
    assert not is_inside(ASKED, SAID, Shown(whole, frozenset({"m2"}), 9))


def test_the_newest_are_taken_until_one_does_not_fit(case: Case) -> None:
    fill = newest(case)
    assert fill(1_000).ids == {"m1", "m2", "m3"}
    assert fill(30).ids == {"m2", "m3"}
    assert fill(20) == Shown("user: It rains today.", frozenset({"m3"}), 19)
    assert fill(1).ids == frozenset()


def test_the_best_hits_come_as_whole_plain_lines(case: Case) -> None:
    shown = top_k(case)(1_000)
    assert "user: My kayak is red.\n> It is new." in shown.text
    assert is_inside(ASKED, SAID, shown)


def test_our_window_holds_the_evidence_and_keeps_to_its_size(case: Case) -> None:
    shown = ours(case)(200)
    assert is_inside(ASKED, SAID, shown)
    assert shown.tokens <= 200


def test_a_run_leaves_tables_figures_and_a_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps([TALK]))
    picture = tmp_path / "plot.svg"
    run(monkeypatch, tmp_path, "--only", "locomo", "--embedder", "none", "--plot", str(picture))
    assert "whole evidence in the window" in capsys.readouterr().out
    figures = json.loads((tmp_path / "context.json").read_text())
    first, *_ = figures["locomo"]["shares"]
    assert (first["label"], first["count"]) == ("Memorist", 2)  # category 5 is apart
    assert first["means"] == {"1k": 1.0, "2k": 1.0, "4k": 1.0, "8k": 1.0}
    table = (tmp_path / "context.md").read_text()
    assert "| 5 adversarial: Memorist | 1 | 1.000 |" in table
    assert "aim ≥ .750 at 2k: 1.000, met" in table
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert picture.read_text() == (tmp_path / "context.svg").read_text()


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *more: Any) -> None:
    given = ["context", "--data", str(folder), "--out", str(folder), "--cache", str(folder)]
    monkeypatch.setattr(sys, "argv", [*given, *more])
    context.main()
