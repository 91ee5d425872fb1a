"""The stories of `stories.toml`, and a memory to which one is told."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memorist import Memory, Message
from memorist.records.memories import Fact

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Question:
    """What is asked when all is told: a word of the answer, and words of what comes after it.

    Of that some is over, which windows mark; other things hold too, or are planned.
    """

    ask: str
    answer: str
    over: Sequence[str] = ()
    later: Sequence[str] = ()


@dataclass(frozen=True)
class Story:
    """What a user says, day by day, and what is true afterwards."""

    name: str
    messages: Sequence[Message]
    questions: Sequence[Question]
    facts: Sequence[str]
    ended: Sequence[str]
    memories: Sequence[str]
    gone: Sequence[str]
    late: bool = False
    asked: str = ""

    @property
    def end(self) -> datetime:
        """When the questions are asked."""
        if self.asked:
            return datetime.fromisoformat(self.asked).replace(tzinfo=UTC)
        return max(message.created_at for message in self.messages) + timedelta(days=9)

    def tell(self, memory: Memory, order: Sequence[int] | None = None, user: str = "ada") -> None:
        """Store the messages, each in a session of its own, and wait for what is derived."""
        for place in range(len(self.messages)) if order is None else order:
            session = self.name if order is None else f"{self.name} {place}"
            memory.remember(self.messages[place], user=user, session=session)
            assert memory.jobs.catch_up(300) == 0


def spelled(fact: Fact) -> str:
    """A fact as the stories write it."""
    about = "" if fact.subject == "user" else f"{fact.subject}: "
    return f"{about}{fact.predicate} {fact.object}"


def check(memory: Memory, story: Story) -> None:
    """Memory and facts are what the story says."""
    facts = [spelled(fact) for fact in memory.facts.list(user="ada")]
    assert set(story.facts) <= set(facts), "they hold"
    assert not set(story.ended) & set(facts), "they are over"
    assert len(facts) == len(set(facts)), "nothing is there twice"
    texts = [item.text for item in memory.memories.list(user="ada")]
    for words in story.memories:
        assert any(words in text for text in texts), f"a memory says {words!r}"
    for words in story.gone:
        assert not any(words in text for text in texts), f"no memory says {words!r}"


def _messages(told: Sequence[tuple[str, str]]) -> list[Message]:
    days = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day, _ in told)
    return [
        Message("user", text, created_at=day + HOUR * number)
        for number, (day, (_, text)) in enumerate(zip(days, told, strict=True))
    ]


def _read() -> list[Story]:
    written = tomllib.loads(Path(__file__).with_name("stories.toml").read_text("utf-8"))["stories"]
    return [
        Story(
            **{
                **story,
                "messages": _messages(story["messages"]),
                "questions": [Question(**each) for each in story["questions"]],
            }
        )
        for story in written
    ]


STORIES = _read()
