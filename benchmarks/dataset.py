"""What a question set is: conversations to remember, questions, and where the answers lie."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from memorist import Message

Conversation = tuple[str, list[Message]]
"""A session's id and its messages, oldest first."""


class NoDataError(SystemExit):
    """The data of a benchmark is not where it was looked for; it ends with how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, whose memory it is asked of, and the turns and sessions that answer it.

    `user_turns` are those of the turns that the user said, `newest_turns` those of the last session
    among them, where the set has dates of its own.
    """

    id: str
    user: str
    text: str
    kind: str
    turns: frozenset[str]
    user_turns: frozenset[str]
    sessions: frozenset[str]
    asked_at: datetime
    newest_turns: frozenset[str] = frozenset()


class Dataset(Protocol):
    """Questions that can be scored, and what each of their users said before."""

    @property
    def name(self) -> str: ...
    @property
    def questions(self) -> Sequence[Question]: ...
    @property
    def left_out(self) -> int: ...
    def history(self, user: str) -> Iterator[Conversation]: ...


def read_data(folder: Path, pattern: str, source: str) -> Any:
    """The first JSON file in the folder that the pattern fits, packed by xz or not."""
    names = (f"{pattern}.json.xz", f"{pattern}.json")
    found = [path for name in names for path in sorted(folder.glob(name))]
    if not found:
        raise NoDataError(
            f"{folder} holds no {' or '.join(names)}. Get it from {source}, read its licence, "
            "put it into a folder outside the repository, and say --data FOLDER."
        )
    if found[0].suffix == ".xz":
        return json.loads(lzma.decompress(found[0].read_bytes()))
    return json.loads(found[0].read_bytes())


def by_day(
    rows: Sequence[Mapping[str, Any]], *, day: str, apart: timedelta
) -> Iterator[Conversation]:
    """The messages in rows of our own sets as a session a day, oldest first; `day` is a field."""
    for date in sorted({row[day] for row in rows}):
        yield (
            date,
            [
                Message(
                    role=row.get("role", "user"),
                    name=row.get("speaker"),
                    content=row["text"],
                    message_id=row["id"],
                    created_at=day_of(date) + apart * place,
                )
                for place, row in enumerate(rows)
                if row[day] == date
            ],
        )


def day_of(text: str) -> datetime:
    """The beginning of a day."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def stratified(questions: Sequence[Question], count: int | None) -> list[Question]:
    """The first `count` questions, so picked that every kind keeps its share."""
    if count is None or count >= len(questions):
        return list(questions)
    totals = Counter(question.kind for question in questions)
    seen: Counter[str] = Counter()
    places: dict[str, float] = {}
    for question in questions:
        places[question.id] = (seen[question.kind] + 0.5) / totals[question.kind]
        seen[question.kind] += 1
    picked = {question.id for question in sorted(questions, key=lambda q: places[q.id])[:count]}
    return [question for question in questions if question.id in picked]
