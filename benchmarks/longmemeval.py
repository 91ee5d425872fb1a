"""LongMemEval: one user's many sessions with an assistant, a few of them with the answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.dataset import Conversation, Question, read_data
from memorist import Message

SOURCE = "https://github.com/xiaowu0162/LongMemEval (MIT; LongMemEval_S, cleaned)"
Turn = Mapping[str, Any]
Haystack = Sequence[tuple[str, str, str]]
"""Session id, key of its turns, date: once for each session."""


class LongMemEval:
    """Every question of a LongMemEval file that is not an abstention, each its own user."""

    name = "longmemeval"

    def __init__(
        self, questions: Iterable[Mapping[str, Any]], sessions: Mapping[str, Sequence[Turn]]
    ) -> None:
        self._sessions = sessions
        self._haystacks: dict[str, Haystack] = {}
        self.questions: list[Question] = []
        self.left_out = 0
        for asked in questions:
            if "_abs" in asked["question_id"]:
                self.left_out += 1
                continue
            self._haystacks[asked["question_id"]] = asked["haystack"]
            self.questions.append(self._question(asked))

    @classmethod
    def load(cls, folder: Path) -> LongMemEval:
        data = read_data(folder, "longmemeval_s*", SOURCE)
        data = _shared(data) if isinstance(data, list) else data
        return cls(data["questions"], data["sessions"])

    def history(self, user: str) -> Iterator[Conversation]:
        """The user's sessions, oldest first."""
        for name, turns, started in self._named(self._haystacks[user]):
            yield name, [_message(name, turn, started, n) for n, turn in enumerate(turns)]

    def _named(self, haystack: Haystack) -> Iterator[tuple[str, Sequence[Turn], datetime]]:
        """The sessions with their turns and dates; one that comes again is a copy, `id#2`."""
        seen: Counter[str] = Counter()
        for session_id, key, date in sorted(haystack, key=lambda entry: _moment(entry[2])):
            seen[session_id] += 1
            copy = f"#{seen[session_id]}" if seen[session_id] > 1 else ""
            yield session_id + copy, self._sessions[key], _moment(date)

    def _question(self, asked: Mapping[str, Any]) -> Question:
        roles, newest = {}, _moment(asked["question_date"])
        latest = ""
        for name, turns, started in self._named(asked["haystack"]):
            newest = max(newest, started + timedelta(seconds=len(turns)))
            for place, turn in enumerate(turns):
                if turn.get("has_answer"):
                    roles[turn_id(name, place)] = turn["role"]
                    latest = name if turn["role"] == "user" else latest
        return Question(
            id=asked["question_id"],
            user=asked["question_id"],
            text=asked["question"],
            kind=asked["question_type"],
            turns=frozenset(roles),
            user_turns=frozenset(turn for turn, role in roles.items() if role == "user"),
            newest_turns=frozenset(turn for turn in roles if turn.startswith(f"{latest}:")),
            sessions=frozenset(asked["answer_session_ids"]),
            asked_at=newest,  # some questions are dated before their last session
        )


def turn_id(session: str, place: int) -> str:
    return f"{session}:{place}"


def session_of(turn: str) -> str:
    """The id, as the evidence names it, of the session that a turn or a copy belongs to."""
    return turn.rsplit(":", 1)[0].split("#")[0]


def _shared(questions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The set's own form, in which every question brings its sessions along."""
    sessions: dict[str, Sequence[Turn]] = {}
    reduced = []
    for asked in questions:
        keys = [f"{asked['question_id']}/{n}" for n in range(len(asked["haystack_sessions"]))]
        sessions |= dict(zip(keys, asked["haystack_sessions"], strict=True))
        names, dates = asked["haystack_session_ids"], asked["haystack_dates"]
        reduced.append({**asked, "haystack": list(zip(names, keys, dates, strict=True))})
    return {"questions": reduced, "sessions": sessions}


def _moment(text: str) -> datetime:
    plain = re.sub(r"\s*\(\w+\)\s*", " ", text)
    return datetime.strptime(plain, "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _message(session: str, turn: Turn, started: datetime, place: int) -> Message:
    return Message(
        role=turn["role"],
        content=turn["content"],
        message_id=turn_id(session, place),
        created_at=started + timedelta(seconds=place),
    )
