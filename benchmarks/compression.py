"""What a summary of a tenth of the tokens keeps of the turns that questions are about.

Run with `python -m benchmarks.compression`. The metric is defined in docs/compression.md; the
weights were tuned on every second conversation, and the others are the figure to believe.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import locomo, longmemeval
from benchmarks.dataset import read_data
from benchmarks.metrics import interval
from benchmarks.report import Grid, publish, short
from memorist import Message
from memorist.context.compression.compress import Style, compress
from memorist.context.tokens import TokenCounter
from memorist.language.text import clauses, stems
from memorist.providers.tokenizer import tokenizer_for
from memorist.records.log import LogEntry
from memorist.records.scope import Scope

SHARE = 10  # the summary has one of so many tokens
AIM = 0.60
SEED = 5
STEPWISE = "extractive, four messages a step"
ROOT = Path(__file__).parent.parent
METRICS = ("key", "key, own words", "all words")
STOP = frozenset(
    stem
    for word in (
        "a about after again all also am an and any are as at be because been before being both "
        "but by can cannot could d did do does doing don down during each ever every few for from "
        "further had has have having he her here hers herself him himself his how i if in into is "
        "it its itself just ll m me might more most much must my myself no nor not now of off on "
        "once only or other our ours out over own re really s same shall she should so some such "
        "t than that the their theirs them then there these they this those through to too under "
        "until up us ve very was we were what when where which while who whom whose why will with "
        "would yes you your yours yourself get got go one image photo"
    ).split()
    for stem in stems(word)
)


@dataclass(frozen=True)
class Probe:
    """A question's evidence turns, and the words of the question and of its answer."""

    id: str
    turns: tuple[str, ...]
    wanted: frozenset[str]


@dataclass(frozen=True)
class Talk:
    """One conversation, and what is asked about it."""

    name: str
    messages: Sequence[Message]
    probes: Sequence[Probe]

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        """The content words of each turn."""
        return {one.message_id: content(one.text) for one in self.messages}

    @cached_property
    def rarity(self) -> dict[str, float]:
        """What a word weighs: more, the fewer turns have it."""
        tally = Tally(word for words in self.words.values() for word in words)
        return {word: log((len(self.messages) + 1) / count) for word, count in tally.items()}

    @cached_property
    def entries(self) -> list[LogEntry]:
        return [LogEntry(at, "s", one.role, one) for at, one in enumerate(self.messages, start=1)]


def content(text: str) -> frozenset[str]:
    """The stems of a text's words that are not stop words."""
    return frozenset(stems(text)) - STOP


# The sets, with the answers that the other benchmarks have no need of.


def locomo_talks(folder: Path) -> Iterator[Talk]:
    """Each conversation of LoCoMo with its questions of categories 1 to 4."""
    samples = read_data(folder, "locomo*", locomo.SOURCE)
    loaded = locomo.Locomo(samples)
    for sample in samples:
        user = sample["sample_id"]
        asked = {f"{user}:{number}": one for number, one in enumerate(sample["qa"])}
        probes = [
            probe(one.id, one.text, asked[one.id].get("answer"), one.turns)
            for one in loaded.questions
            if one.user == user and not one.kind.startswith("5")
        ]
        messages = [message for _, said in loaded.history(user) for message in said]
        yield Talk(user, messages, probes)


def longmemeval_talks(folder: Path) -> Iterator[Talk]:
    """Each haystack of LongMemEval, with its one question."""
    data = read_data(folder, "longmemeval_s*", longmemeval.SOURCE)
    loaded = longmemeval.LongMemEval(data["questions"], data["sessions"])
    answers = {one["question_id"]: one["answer"] for one in data["questions"]}
    for one in loaded.questions:
        if one.turns:
            messages = [message for _, said in loaded.history(one.user) for message in said]
            yield Talk(one.id, messages, [probe(one.id, one.text, answers[one.id], one.turns)])


def probe(id_: str, question: str, answer: Any, turns: frozenset[str]) -> Probe:
    return Probe(id_, tuple(sorted(turns)), content(f"{question} {answer}"))


# The ways to make a talk short. Each gives the text; the first is ours.

Way = Callable[[Talk, TokenCounter, int], str]


def ours(talk: Talk, counter: TokenCounter, budget: int) -> str:
    """All messages at once."""
    scope = Scope(user="u", session="s")
    style = Style(counter=counter, max_tokens=budget)
    return compress(talk.entries, scope=scope, style=style).summary.text


def in_steps(size: Callable[[int], int]) -> Way:
    """So many messages at a time, each summary extending the one before."""

    def way(talk: Talk, counter: TokenCounter, budget: int) -> str:
        scope = Scope(user="u", session="s")
        style = Style(counter=counter, max_tokens=budget)
        step, previous = size(len(talk.entries)), None
        for start in range(0, len(talk.entries), step):
            part = talk.entries[start : start + step]
            previous = compress(part, scope=scope, style=style, previous=previous).summary
        return previous.text if previous else ""

    return way


def first_and_last(talk: Talk, counter: TokenCounter, budget: int) -> str:
    """Half of the budget from the beginning, half from the end."""
    rows = _rows(talk)
    return f"{_filled(rows, counter, budget // 2)}\n{_filled(rows[::-1], counter, budget // 2)}"


def last(talk: Talk, counter: TokenCounter, budget: int) -> str:
    return _filled(_rows(talk)[::-1], counter, budget)


def at_random(talk: Talk, counter: TokenCounter, budget: int) -> str:
    """Sentences drawn by lot."""
    rows = [piece.strip() for one in talk.messages for piece in clauses(one.text)]
    random.Random(SEED).shuffle(rows)
    return _filled(rows, counter, budget)


def _rows(talk: Talk) -> list[str]:
    return [f"{one.name}: {one.text}" if one.name else one.text for one in talk.messages]


def _filled(rows: Sequence[str], counter: TokenCounter, budget: int) -> str:
    """As many of the rows as fit, one of them cut."""
    taken, left = [], budget
    for row, cost in zip(rows, counter.texts([f"{row}\n" for row in rows]), strict=True):
        taken.append(row if cost <= left else counter.truncate(row, left))
        left -= cost
        if left <= 0:
            break
    return "\n".join(taken)


WAYS: Mapping[str, Way] = {
    "extractive": ours,
    "extractive, in ten steps": in_steps(lambda count: -(-count // 10)),
    STEPWISE: in_steps(lambda count: 4),
    "first and last": first_and_last,
    "last": last,
    "random sentences": at_random,
}


LOADERS: Mapping[str, Callable[[Path], Iterator[Talk]]] = {
    "locomo": locomo_talks,
    "longmemeval": longmemeval_talks,
}
# A haystack of 500 messages in 125 steps takes a minute, and there are a hundred.
WAYS_OF = {"locomo": tuple(WAYS), "longmemeval": tuple(name for name in WAYS if name != STEPWISE)}


# The metric.


def score(talk: Talk, text: str, asked: Probe) -> tuple[float, ...] | None:
    """The shares kept, in the order of METRICS; None if evidence and question share no word."""
    there = content(text)
    own = _own_words(talk, text, asked)
    wholes = [(turn, word) for turn in asked.turns for word in talk.words[turn]]
    keys = [(turn, word) for turn, word in wholes if word in asked.wanted]
    if not keys:
        return None
    return (
        _share(talk, keys, lambda turn, word: word in there),
        _share(talk, keys, lambda turn, word: word in own[turn]),
        _share(talk, wholes, lambda turn, word: word in there),
    )


def _own_words(talk: Talk, text: str, asked: Probe) -> dict[str, frozenset[str]]:
    """The words of each turn that stand in the text in a stretch of the turn's own."""
    flat = _flat(text)
    said = {one.message_id: one.text for one in talk.messages if one.message_id in asked.turns}
    return {
        turn: frozenset(
            word for piece in clauses(said[turn]) if _flat(piece) in flat for word in content(piece)
        )
        for turn in asked.turns
    }


def _flat(text: str) -> str:
    return " ".join(text.split()).strip("#>*_+-;. ")


def _share(talk: Talk, words: Sequence[tuple[str, str]], kept: Callable[[str, str], bool]) -> float:
    """The share of the words' weight that is kept."""
    whole = sum(talk.rarity[word] for _, word in words)
    return (
        sum(talk.rarity[word] for turn, word in words if kept(turn, word)) / whole if whole else 0
    )


Scores = dict[str, list[tuple[float, ...]]]


def measure(talks: Sequence[Talk], counter: TokenCounter, ways: Sequence[str]) -> Scores:
    """Each way's scores, question by question."""
    found: Scores = {name: [] for name in ways}
    for talk in talks:
        budget = sum(counter.messages(talk.messages)) // SHARE
        for name in ways:
            text = WAYS[name](talk, counter, budget)
            if (tokens := counter.text(text)) > budget + 2:  # the baselines' own seam
                raise AssertionError(f"{name} took {tokens} tokens of {budget}")
            scores = (score(talk, text, asked) for asked in talk.probes)
            found[name] += [one for one in scores if one is not None]
    return found


def grid(title: str, halves: Mapping[str, Scores]) -> Grid:
    """The mean of every way and metric in both halves, and below each how sure we are."""
    rows: list[tuple[str, ...]] = []
    for half, found in halves.items():
        for name, scores in found.items():
            columns = list(zip(*scores, strict=True))
            spans = [interval(column) for column in columns]
            rows.append((f"{half}: {name}", str(len(scores)), *(short(fmean(c)) for c in columns)))
            rows.append(("", "95 %", *(f"{short(low)}–{short(high)}" for low, high in spans)))
    return Grid(title, ("kept at a tenth of the tokens", "n", *METRICS), rows)


def main() -> None:
    """Measure, print, and leave the figures in the folder of results."""
    options = parser().parse_args()
    counter = TokenCounter(tokenizer_for(""))
    grids, notes = [], []
    figures: dict[str, Any] = {}
    for name, load in LOADERS.items():
        talks = list(load(options.data))[: options.limit]
        began = time.process_time()
        halves = {
            half: measure(some, counter, WAYS_OF[name])
            for half, some in (("tuned on", talks[::2]), ("held out", talks[1::2]))
        }
        grids.append(grid(f"{name}: what a tenth of the tokens keeps", halves))
        notes += notes_of(name, talks, halves)
        notes.append(f"{name}: {time.process_time() - began:.0f} s of CPU for all ways")
        figures[name] = halves
    publish(grids, notes, options.out / "compression", {**figures, "notes": notes})


def notes_of(name: str, talks: Sequence[Talk], halves: Mapping[str, Scores]) -> list[str]:
    """How much there was to measure, and whether the aim is met where nothing was tuned."""
    asked = sum(len(talk.probes) for talk in talks)
    scored = sum(len(found["extractive"]) for found in halves.values())
    held_out = fmean(one[0] for one in halves["held out"]["extractive"])
    verdict = "met" if held_out >= AIM else "missed"
    return [
        f"{name}: {len(talks)} talks, {asked} questions; {asked - scored} of them share no word "
        "with their evidence and are left out",
        f"{name}: aim ≥ {short(AIM)} of the key content, held out {short(held_out)}: {verdict}",
    ]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.compression", description=__doc__)
    made.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", metavar="DIR")
    made.add_argument("--limit", type=int, metavar="N", help="only the first N talks of each set")
    made.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    return made


if __name__ == "__main__":
    main()
