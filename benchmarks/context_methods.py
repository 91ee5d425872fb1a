"""Ways to fill a window for a question: ours, the newest messages, the best hits one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.dataset import Question
from memorist import Memory, Message
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window

DEPTH = 200  # hits, for those who take them one by one
_MARK = re.compile("^> ?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model would see: the words, the ids of the messages in them, all the tokens."""

    text: str
    ids: frozenset[str]
    tokens: int


@dataclass(frozen=True, slots=True)
class Case:
    """A question, all that its user has said by id, oldest first, and what may answer it."""

    memory: Memory
    counter: TokenCounter
    question: Question
    said: Mapping[str, Message]


Fill = Callable[[int], Shown]
"""What is shown in a window of so many tokens."""


def ours(case: Case) -> Fill:
    """What the public door makes, with all the time it wants."""

    def fill(budget: int) -> Shown:
        asked, window = case.question, Window(max_tokens=budget, answer_tokens=0)
        made = case.memory.context(asked.text, user=asked.user, window=window, deadline_ms=None)
        ids = (id_ for part in made.receipt.parts for id_ in part.ids)
        return Shown(unquoted(made.messages), frozenset(ids), case.counter.request(made.messages))

    return fill


def newest(case: Case) -> Fill:
    """The newest messages that fit, as a plain transcript."""
    lines = [(id_, _line(message)) for id_, message in reversed(list(case.said.items()))]
    return _in_order(case, lines)


def top_k(case: Case) -> Fill:
    """The best hits that fit, their whole messages as plain lines."""
    asked = case.question
    found = case.memory.recall(
        asked.text, user=asked.user, limit=DEPTH, min_score=0.0, deadline_ms=None
    )
    lines = {
        hit.id: _line(case.said[hit.id]) if hit.id in case.said else hit.text for hit in found.hits
    }
    return _in_order(case, list(lines.items()))


METHODS: dict[str, Callable[[Case], Fill]] = {
    "Memorist": ours,
    "plain top-k": top_k,
    "last N messages": newest,
}


def is_inside(question: Question, said: Mapping[str, Message], shown: Shown) -> bool:
    """Whether each turn of the evidence is there, and none of its words is missing."""
    text = flat(shown.text)
    return question.turns <= shown.ids and all(flat(said[it].text) in text for it in question.turns)


def flat(text: str) -> str:
    """The words alone: how they are broken into lines does not matter."""
    return " ".join(text.split())


def unquoted(messages: Iterable[Mapping[str, Any]]) -> str:
    """All that the messages say, without the marks of quotation."""
    return "\n".join(_MARK.sub("", str(message["content"])) for message in messages)


def _line(message: Message) -> str:
    return f"{message.name or message.role}: {message.text}"


def _in_order(case: Case, lines: Sequence[tuple[str, str]]) -> Fill:
    """Lines one by one, until one does not fit."""
    costs = case.counter.texts([f"{line}\n" for _, line in lines])
    least = _tokens(case, ())

    def fill(budget: int) -> Shown:
        taken, used = 0, least
        while taken < len(lines) and (used := used + costs[taken]) <= budget:
            taken += 1
        while taken and _tokens(case, lines[:taken]) > budget:  # joined, they may be a token more
            taken -= 1
        kept = lines[:taken]
        text = "\n".join(line for _, line in kept)
        return Shown(text, frozenset(id_ for id_, _ in kept), _tokens(case, kept))

    return fill


def _tokens(case: Case, lines: Sequence[tuple[str, str]]) -> int:
    """All that a request with these lines above the question takes."""
    content = "\n".join([*(line for _, line in lines), "", case.question.text])
    return case.counter.request([{"role": "user", "content": content}])
