"""Our own stories of change, told to an assistant, and talks of two people.

In a story somebody tells things, and later tells them otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.dataset import Conversation, Question, by_day, day_of

HERE = Path(__file__).parent


class Stories:
    """Every file of a folder beside this module, each its own user with one session a day."""

    left_out = 0

    def __init__(self, name: str) -> None:
        self.name = name
        files = sorted((HERE / name).glob("*.jsonl"))
        stories = {it.stem: [*map(json.loads, it.read_text("utf-8").splitlines())] for it in files}
        self._messages = {
            name: [_by_role(row) for row in rows if "text" in row] for name, rows in stories.items()
        }
        self.questions = [
            _question(name, number, row, self._messages[name])
            for name, rows in stories.items()
            for number, row in enumerate(row for row in rows if "question" in row)
        ]

    @classmethod
    def changes(cls, _: Path) -> Stories:
        """The stories of change."""
        return cls("changes")

    @classmethod
    def talks(cls, _: Path) -> Stories:
        """The talks of two."""
        return cls("talks")

    def history(self, user: str) -> Iterator[Conversation]:
        """The days of a story, oldest first."""
        return by_day(self._messages[user], day="date", apart=timedelta(minutes=1))


def _question(
    name: str, number: int, row: dict[str, Any], messages: list[dict[str, Any]]
) -> Question:
    """A question; its evidence is what holds, and what was said before that."""
    newest = frozenset(row.get("newer", row.get("answer", ())))
    turns = newest | frozenset(row.get("older", ()))
    days = {message["id"]: message["date"] for message in messages}
    return Question(
        id=f"{name}:{number}",
        user=name,
        text=row["question"],
        kind=_kind(row, messages),
        turns=turns,
        user_turns=turns,
        newest_turns=newest,
        sessions=frozenset(days[turn] for turn in turns),
        asked_at=day_of(max(days.values())) + timedelta(days=7),
    )


def _by_role(row: dict[str, Any]) -> dict[str, Any]:
    """A message of a talk as a user's, known by name, or as the assistant's."""
    if row.get("speaker") != "assistant":
        return row
    return {**row, "role": "assistant", "speaker": None}


def _kind(row: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    if "speaker" in messages[0]:
        return "of one message" if len(row["answer"]) == 1 else "of several"
    return "changed" if "newer" in row else "unchanged"
