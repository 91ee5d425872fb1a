"""Extraction without a model beside labelled messages, in six languages.

Run with `python -m benchmarks.extraction`. A message counts as kept if anything comes out of it;
rules are tuned on the dev halves alone, and the test halves are the figures to believe.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from math import sqrt
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.report import WIDTH, Grid, publish, short
from memorist import Message
from memorist.records.memories import PLANS, Candidate

LABELS = Path(__file__).parent / "labelled"
SPLITS = tuple(sorted(path.stem for path in LABELS.glob("*.jsonl")))
CATEGORIES = ("error_patterns", "code_context", "solutions", "user_preferences", "knowledge")
NONE = "none"
AIM = "aim: precision ≥ .950"
Z = 1.959964  # the normal quantile of a 95 % interval
ENDING = 3  # letters by which two forms of one word may differ at the end
STEM = 3  # letters that they must share at least
ALIKE = 0.5  # F1 of the words of two descriptions of one thing

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said of the speaker: `lives in` `Graz`, or that it `ends`."""

    predicate: str
    object: str
    ends: bool = False

    def agrees(self, other: Statement) -> bool:
        same = self.is_about(other) and self.ends == other.ends
        alike = same_description if _named(self.predicate) in DESCRIBED else same_object
        return same and alike(self.object, other.object)

    def is_about(self, other: Statement) -> bool:
        return _named(self.predicate) == _named(other.predicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A message, and what a careful reader would have kept of it."""

    id: str
    lang: str
    role: str
    said_at: datetime
    text: str
    keep: bool
    category: str | None
    what: str
    claims: tuple[Statement, ...] = ()
    why: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Labelled:
        claims = tuple(Statement(**claim) for claim in data.get("claims", ()))
        said_at = datetime.fromisoformat(data["said_at"])
        return cls(**{**data, "claims": claims, "said_at": said_at})


@dataclass(frozen=True, slots=True)
class Guess:
    """What came out of a message: the category of the most important candidate, or None."""

    category: str | None = None
    claims: tuple[Statement, ...] = ()

    @classmethod
    def from_candidates(cls, candidates: Sequence[Candidate]) -> Guess:
        if not candidates:
            return cls()
        every = [claim for candidate in candidates for claim in candidate.claims]
        told = {(claim.predicate, claim.object) for claim in every if not claim.ends}
        claims = (claim for claim in every if claim.subject in ("user", "assistant"))
        # That a plan is done changes nothing where no such plan is known. Who hates coffee does
        # not like it any more: that follows, and is not said.
        claims = (
            claim
            for claim in claims
            if not claim.ends
            or (
                claim.predicate not in PLANS
                and (OPPOSITES.get(claim.predicate), claim.object) not in told
            )
        )
        return cls(
            max(candidates, key=lambda one: one.importance or 0).category,
            tuple(Statement(claim.predicate, claim.object, claim.ends) for claim in claims),
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """Messages kept rightly and wrongly, missed, and rightly left; ratios of nothing are 0."""

    kept: int = 0
    junk: int = 0
    missed: int = 0
    left: int = 0

    @property
    def precision(self) -> float:
        return share(self.kept, self.kept + self.junk)

    @property
    def recall(self) -> float:
        return share(self.kept, self.kept + self.missed)

    @property
    def f1(self) -> float:
        return share(2 * self.kept, 2 * self.kept + self.junk + self.missed)

    @property
    def intervals(self) -> dict[str, Span]:
        """The 95 % Wilson intervals; F1 = 2j / (1 + j) of the share j of kept in all named."""
        low, high = wilson(self.kept, self.kept + self.junk + self.missed)
        return {
            "precision": wilson(self.kept, self.kept + self.junk),
            "recall": wilson(self.kept, self.kept + self.missed),
            "f1": (2 * low / (1 + low), 2 * high / (1 + high)),
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run is worth, whole, by language, by category, and by claim."""

    overall: Tally
    languages: dict[str, Tally] = field(default_factory=dict)
    confusion: dict[tuple[str, str], int] = field(default_factory=dict)
    claims_found: int = 0
    claims_labelled: int = 0
    claims_right: int = 0
    claims_wrong: int = 0


# The labels were written before the rules, and name some predicates in other words.
OTHER_WORDS = {
    "job": "works as",
    "spouse": "married to",
    "pet": "has pet",
    "child": "has child",
    "son": "has child",
    "daughter": "has child",
    "manager": "has boss",
    "birthday": "born on",
    "called": "name",
    "avoids": "dislikes",
    **{name: f"has {name}" for name in ("partner", "friend", "colleague", "brother", "sister")},
    **{name: f"has {name}" for name in ("mother", "father")},
    **dict.fromkeys(("runs", "manages", "drives", "teaches", "cleans"), "works as"),
    **dict.fromkeys(("event", "has appointment"), "plans"),  # where one ends is a matter of taste
}
OPPOSITES = {"likes": "dislikes", "dislikes": "likes", "prefers": "dislikes"}
DESCRIBED = frozenset(("plans", "prefers"))  # predicates whose objects are told in free words


def _named(predicate: str) -> str:
    return OTHER_WORDS.get(predicate, predicate)


def same_object(one: str, other: str) -> bool:
    """One thing in other words: an article more, or another ending (Казань, Казани)."""
    less, more = sorted((_words(one), _words(other)), key=lambda words: len("".join(words)))
    if " ".join(less) in " ".join(more):
        return len("".join(more)) <= 2 * len("".join(less))
    return len(less) == len(more) and all(map(_same_word, less, more))


def same_description(one: str, other: str) -> bool:
    """One thing told in free words: most of the words of one are in the other."""
    ones, others = _words(one), _words(other)
    shared = sum(any(_same_word(word, each) for each in others) for word in ones)
    return 2 * shared >= ALIKE * (len(ones) + len(others))


def _words(text: str) -> list[str]:
    return re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+", text.casefold())


def _same_word(one: str, other: str) -> bool:
    stem = max(STEM, len(one) - ENDING, len(other) - ENDING)
    return one[:stem] == other[:stem]


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def wilson(part: int, whole: int) -> Span:
    """The 95 % interval of a share; everything is possible where nothing was seen."""
    if not whole:
        return 0.0, 1.0
    rate, square = part / whole, Z * Z
    centre = rate + square / (2 * whole)
    spread = Z * sqrt(rate * (1 - rate) / whole + square / (4 * whole * whole))
    scale = 1 + square / whole
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def read_labels(split: str) -> list[Labelled]:
    lines = (LABELS / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Labelled.from_dict(json.loads(line)) for line in lines]


def guess(label: Labelled) -> Guess:
    from memorist.lifecycle.policy import classified  # only a run needs the rules and the reader
    from memorist.lifecycle.rules import extract
    from memorist.providers.reader import read

    message = Message(label.role, label.text, created_at=label.said_at)
    kept = [one for one in extract(message, label.role, read=read) if one.text]
    return Guess.from_candidates([classified(one) for one in kept])


def measure(labels: Sequence[Labelled], guesses: Sequence[Guess]) -> Figures:
    """The figures of the guesses, each beside the label in its place."""
    pairs = list(zip(labels, guesses, strict=True))
    wanted = [(claim, made.claims) for label, made in pairs for claim in label.claims]
    judged = Counter(is_right(claim, label) for label, made in pairs for claim in made.claims)
    return Figures(
        overall=tally(pairs),
        languages={
            lang: tally(pair for pair in pairs if pair[0].lang == lang)
            for lang in dict.fromkeys(label.lang for label in labels)
        },
        confusion=Counter((gold.category or NONE, made.category or NONE) for gold, made in pairs),
        claims_found=sum(any(claim.agrees(one) for one in given) for claim, given in wanted),
        claims_labelled=len(wanted),
        claims_right=judged[True],
        claims_wrong=judged[False],
    )


def is_right(claim: Statement, label: Labelled) -> bool | None:
    """Whether a claim is a labelled one; None if nobody labelled what it is about."""
    if any(claim.agrees(one) for one in label.claims):
        return True
    return False if not label.keep or any(claim.is_about(one) for one in label.claims) else None


def tally(pairs: Iterable[tuple[Labelled, Guess]]) -> Tally:
    seen = Counter((label.keep, made.category is not None) for label, made in pairs)
    return Tally(
        kept=seen[True, True],
        junk=seen[False, True],
        missed=seen[True, False],
        left=seen[False, False],
    )


def quality_grid(split: str, figures: Figures) -> Grid:
    """Precision, recall and F1 by language and overall, with how sure we are."""
    names = ("precision", "recall", "f1")
    lines = []
    for label, one in (*figures.languages.items(), ("overall", figures.overall)):
        counts = (one.kept, one.junk, one.missed, one.left)
        spans = one.intervals
        cells = (f"{short(getattr(one, name))}  {_span(spans[name])}" for name in names)
        lines.append((label, str(sum(counts)), *map(str, counts), *cells))
    columns = ("language", "n", "kept", "junk", "missed", "left", *(f"{n}  95 %" for n in names))
    return Grid(f"extraction, {split} ({AIM})", columns, lines)


def _span(span: Span) -> str:
    return f"{short(span[0])}–{short(span[1])}"


def confusion_grid(split: str, figures: Figures) -> Grid:
    """The labelled category, downwards, beside that of the most important candidate."""
    used = {name for pair in figures.confusion for name in pair}
    names = (*CATEGORIES, *sorted(used - {*CATEGORIES, NONE}), NONE)
    counts = Counter(figures.confusion)
    lines = [(gold, *(str(counts[gold, made]) for made in names)) for gold in names]
    return Grid(f"confusion by category, {split}", ("labelled", *names), lines)


def claims_note(split: str, figures: Figures) -> str:
    found, labelled = figures.claims_found, figures.claims_labelled
    rate = f"{short(share(found, labelled))} ({_span(wilson(found, labelled))})"
    right, wrong = figures.claims_right, figures.claims_wrong
    correct = f"{short(share(right, right + wrong))} ({_span(wilson(right, right + wrong))})"
    return (
        f"{split}: {found} of {labelled} labelled claims found, {rate}; "
        f"{right} of {right + wrong} claims that could be judged are right, {correct}"
    )


def mistakes(labels: Sequence[Labelled], guesses: Sequence[Guess]) -> list[str]:
    """A line for each message of which the category or a claim is not as it was labelled."""
    lines = []
    for label, made in zip(labels, guesses, strict=True):
        missed = [one for one in label.claims if not any(one.agrees(each) for each in made.claims)]
        other = [one for one in made.claims if not is_right(one, label)]
        if missed or other or label.category != made.category:
            lines.append(
                f"{label.id} {label.what}: {label.category or NONE} → {made.category or NONE}: "
                f"{label.text}\n    missed: {_listed(missed)}\n    made: {_listed(other)}"
            )
    return lines


def _listed(claims: Iterable[Statement]) -> str:
    each = (f"{one.predicate} {one.object}{' (ends)' if one.ends else ''}" for one in claims)
    return "; ".join(each)


def plain(figures: Figures) -> dict[str, Any]:
    """The figures as JSON can hold them."""
    confusion = {f"{gold} → {made}": count for (gold, made), count in figures.confusion.items()}
    ratios = {name: getattr(figures.overall, name) for name in ("precision", "recall", "f1")}
    return {**asdict(figures), **ratios, "confusion": confusion}


def main() -> None:
    """Measure, print, and leave the figures in the folder of results."""
    options = parser().parse_args()
    splits = SPLITS if options.split == "all" else (options.split,)
    grids, notes, results, wrong = [], [], {}, []
    for split in splits:
        labels = read_labels(split)
        guesses = [guess(label) for label in labels]
        figures = measure(labels, guesses)
        grids += [quality_grid(split, figures), confusion_grid(split, figures)]
        notes.append(claims_note(split, figures))
        results[split] = plain(figures)
        wrong += mistakes(labels, guesses)
    publish(grids, notes, options.out / "extraction", results)
    if options.mistakes:
        Console(width=WIDTH).print("\n".join(wrong), markup=False, highlight=False)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    made.add_argument("--split", choices=(*SPLITS, "all"), default="all")
    made.add_argument("--mistakes", action="store_true", help="also print what went wrong")
    made.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    return made


if __name__ == "__main__":
    main()
