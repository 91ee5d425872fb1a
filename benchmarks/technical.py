"""Our own long technical conversations: one person, one project, messages with code and logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.dataset import Conversation, Question, by_day, day_of

FOLDER = Path(__file__).parent / "technical"


class Technical:
    """Every conversation in the folder, each its own user with one session a day."""

    name = "technical"
    left_out = 0

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._messages = [row for row in rows if "text" in row]
        days = {row["id"]: row["when"] for row in self._messages}
        self.questions = [
            Question(
                id=f"technical:{number}",
                user=row["conversation"],
                text=row["question"],
                kind=row["conversation"],
                turns=frozenset(row["evidence"]),
                user_turns=frozenset(),
                sessions=frozenset(days[id_] for id_ in row["evidence"]),
                asked_at=day_of(max(days.values())) + timedelta(days=30),
            )
            for number, row in enumerate(row for row in rows if "question" in row)
        ]

    @classmethod
    def load(cls, _: Path) -> Technical:
        """It lies beside this module, whatever folder holds the other sets."""
        files = sorted(FOLDER.glob("*.jsonl"))
        lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
        return cls([json.loads(line) for line in lines])

    def history(self, user: str) -> Iterator[Conversation]:
        """The days of a project, oldest first."""
        own = [row for row in self._messages if row["conversation"] == user]
        return by_day(own, day="when", apart=timedelta(seconds=1))
