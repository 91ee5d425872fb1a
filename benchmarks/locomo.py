"""LoCoMo: long talks of two people; the document is a turn, the evidence a few turns' ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.dataset import Conversation, Question, read_data
from memorist import Message

SOURCE = "https://github.com/snap-research/LoCoMo (CC BY-NC 4.0: evaluation only)"
KINDS = {
    1: "1 multi-hop",
    2: "2 temporal",
    3: "3 open-domain",
    4: "4 single-hop",
    5: "5 adversarial",
}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class Locomo:
    """Every conversation of a LoCoMo file, and its questions that have evidence."""

    name = "locomo"

    def __init__(self, samples: Iterable[Mapping[str, Any]]) -> None:
        self._talks = {sample["sample_id"]: sample["conversation"] for sample in samples}
        self.questions: list[Question] = []
        self.left_out = 0
        for sample in samples:
            self._add_questions(sample)

    @classmethod
    def load(cls, folder: Path) -> Locomo:
        return cls(read_data(folder, "locomo*", SOURCE))

    def history(self, user: str) -> Iterator[Conversation]:
        """The user's sessions, in their order."""
        talk = self._talks[user]
        for number in _session_numbers(talk):
            session = f"session_{number}"
            started = _moment(talk[f"{session}_date_time"])
            yield session, [_message(turn, started, n) for n, turn in enumerate(talk[session])]

    def _add_questions(self, sample: Mapping[str, Any]) -> None:
        user = sample["sample_id"]
        conversations = list(self.history(user))
        session_of = {
            message.message_id: name for name, messages in conversations for message in messages
        }
        newest = max(messages[-1].created_at for _, messages in conversations)
        for number, asked in enumerate(sample["qa"]):
            turns = frozenset(repaired(asked["evidence"])) & session_of.keys()
            if not turns:
                self.left_out += 1
                continue
            question = Question(
                id=f"{user}:{number}",
                user=user,
                text=asked["question"],
                kind=KINDS[asked["category"]],
                turns=turns,
                user_turns=turns,
                sessions=frozenset(session_of[turn] for turn in turns),
                asked_at=newest + timedelta(hours=1),
            )
            self.questions.append(question)


def repaired(evidence: Iterable[str]) -> list[str]:
    """The turn ids that malformed evidence means: `D8:6; D9:17` is two, `D:11:26` is one."""
    return [
        f"D{int(session)}:{int(turn)}"
        for text in evidence
        for session, turn in _EVIDENCE.findall(text)
    ]


def _session_numbers(talk: Mapping[str, Any]) -> list[int]:
    numbers = [re.fullmatch(r"session_(\d+)", key) for key in talk]
    return sorted(int(found[1]) for found in numbers if found and talk[found[0]])


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _message(turn: Mapping[str, Any], started: datetime, place: int) -> Message:
    caption = turn.get("blip_caption")
    return Message(
        role="user",
        name=turn["speaker"],
        content=f"{turn['text']} [image: {caption}]" if caption else turn["text"],
        message_id=turn["dia_id"],
        created_at=started + timedelta(seconds=place),
    )
