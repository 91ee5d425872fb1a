"""How alike two texts are by the stems they share, and whether one says only what others say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain, combinations, pairwise, permutations
from typing import NamedTuple

from memorist.language.dates import find_dates
from memorist.language.lexicon import Language, codes_of, languages_of, plain
from memorist.language.patterns import Pattern
from memorist.language.text import LANGUAGES, clauses, data, stems, stop_words
from memorist.records.values import UNSPACED, fold

LOOK_AT_CHARS = 4_000
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜА-ЯЁ]\w+")
ENOUGH_WORDS = 0.4  # share of a memory's words; a model may use some of its own
ENOUGH_NAMES = 0.6  # not all: German nouns look like names
_EDGES = ".,;:!?()[]<>\"'"
_LINK = Pattern(r"\S*(?:://|www\.|@\w)\S*")
_YEAR = r"(?:19|20)\d\d"
_DATE = Pattern(
    rf"\b{_YEAR}(?:-\d\d?){{1,2}}\b"
    rf"|\b(?:in|since|until|till|from|by|of|seit|jahr|ab|bis|en|desde|hasta)\s+{_YEAR}\b(?!-\d)"
    rf"|(?:с|в|до)\s+{_YEAR}\b(?!-\d)"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:(?:of|de)\s+)?\p{{L}}{{3,}},?\s+(?:de\s+)?{_YEAR}\b"
    rf"|\p{{L}}{{3,}}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+{_YEAR}\b"
    rf"|{_YEAR}年(?:\d{{1,2}}月)?(?:\d{{1,2}}日)?",
    ignore_case=True,
)
_THOUSANDS = re.compile(r"(?<=\d)[.,’' \u00a0\u202f](?=\d{3}(?!\d))")
_LONG_NUMBER = re.compile(r"\d{2,}")  # "2" may have been said as "two"
_INSIDE = re.compile(r"(?<![.!?:…]\s)(?<!^)\b[^\W\d_]{2,}")  # not what begins a sentence
_CYRILLIC = "\u0400"
_ALPHABETS = "\u0530"  # Latin, Greek and Cyrillic come before; words are shorter in what follows
SAME_MATTER = 0.5  # how like each other two clauses on the same matter are at least
MOVED = "moved"  # what the words for what is done begin with, of who lives in a new place
SAME_TASK = 0.75  # the share of the words of a task that name it
_MIN_WORDS = 2  # of a clause that is compared, and that two of them share
Words = tuple[str, ...]
_OPPOSED = 0.5  # the highest score of texts that differ in a number, a negation or their names


def alike(one: str, two: str) -> float:
    """How nearly two texts say the same, from 0 to 1."""
    one, two = one[:LOOK_AT_CHARS], two[:LOOK_AT_CHARS]
    first, second = _content(one), _content(two)
    if not first or not second:
        return float(stems(one) == stems(two) and bool(stems(one)))
    opposed = (
        set(NUMBER.findall(one)) != set(NUMBER.findall(two))
        or _denies(one) != _denies(two)
        or names_differ(names_in(one), names_in(two))
    )
    likeness = dice(first, second)
    if likeness > _OPPOSED and not opposed:
        opposed = is_reversed(one, two)
    return min(likeness, _OPPOSED if opposed else 1.0)


def is_reversed(one: str, two: str) -> bool:
    """Whether two things have changed places: "tea over coffee", "coffee over tea".

    In a list they may: "tea and coffee". A phrase may stand elsewhere as a whole: "in May I moved".
    """
    first, second = _runs(stems(one), stems(two))
    content = _content(f"{one} {two}")
    shared = [it for it in dict.fromkeys(first) if it in second and not content.isdisjoint(it)]
    pairs = [
        (left, right)
        for left, right in combinations(shared, 2)
        if (first.index(left) < first.index(right)) != (second.index(left) < second.index(right))
        and not (_are_listed(first, left, right) and _are_listed(second, left, right))
    ]
    alike = _neighbours_shared(first, second)
    return any(_neighbours_shared(first, _exchanged(second, *pair)) > alike for pair in pairs)


def _runs(one: Sequence[str], two: Sequence[str]) -> tuple[list[Words], list[Words]]:
    """The words of two texts; names of several words, which follow each other in both, as one."""
    both = {*pairwise(one)} & {*pairwise(two)}
    function_words = _function_words()

    def joined(words: Sequence[str]) -> list[Words]:
        runs: list[list[str]] = []
        for word in words:
            follows = bool(runs) and (runs[-1][-1], word) in both
            if follows and function_words.isdisjoint((runs[-1][-1], word)):
                runs[-1].append(word)
            else:
                runs.append([word])
        return [tuple(run) for run in runs]

    return joined(one), joined(two)


def _are_listed(words: Sequence[Words], one: Words, two: Words) -> bool:
    """Whether two words stand side by side, or with an "and" between them or more of a list."""
    start, stop = sorted((words.index(one), words.index(two)))
    between = set(chain.from_iterable(words[start + 1 : stop]))
    return not between or bool(between & _joins() and not (between & _function_words()) - _joins())


def _exchanged(words: Sequence[Words], one: Words, two: Words) -> list[Words]:
    places = {one: two, two: one}
    return [places.get(word, word) for word in words]


def _neighbours_shared(one: Sequence[Words], two: Sequence[Words]) -> int:
    """How many pairs of neighbours two texts share, with their edges."""
    first, second = ({*pairwise([(), *it, ()])} for it in (one, two))
    return len(first & second)


class Clause(NamedTuple):
    """The words of a clause, those among them that were asked for, and its numbers."""

    words: Set[str]
    asked: Set[str]
    numbers: Set[str]

    @classmethod
    def about(cls, asked: Set[str], text: str) -> Clause | None:
        """The clause of a text with most of the words asked for, unless it only asks itself."""
        told = (clause for clause in clauses(text) if not clause.endswith(("?", "？")))
        words = {clause: content_stems(clause) for clause in told}
        best = max(words, key=lambda it: (len(words[it] & asked), -len(words[it])), default="")
        if len(words.get(best, ())) < _MIN_WORDS:
            return None
        return cls(words[best], words[best] & asked, frozenset(NUMBER.findall(best)))

    def is_on_matter_of(self, other: Clause) -> bool:
        """Whether both speak of the same thing, whatever they say of it."""
        shared = self.words & other.words
        answers = not shared.isdisjoint(self.asked) or not (self.asked or other.asked)
        alike = dice(self.words, other.words) >= SAME_MATTER
        return answers and alike and len(shared) >= _MIN_WORDS

    def gives_other_figure(self, other: Clause) -> bool:
        """Whether both have a number, and not the same."""
        return bool(self.numbers and other.numbers) and self.numbers != other.numbers


def contains(text: str, other: str) -> float:
    """The share of a text's words that another text has, from 0 to 1."""
    words = _content(text[:LOOK_AT_CHARS])
    if not words:
        return 0.0
    return len(words & _content(other[:LOOK_AT_CHARS])) / len(words)


def dice(one: Set[str], two: Set[str]) -> float:
    """Dice's coefficient of two sets of which one at least is not empty."""
    return 2 * len(one & two) / (len(one) + len(two))


def names_in(text: str) -> frozenset[str]:
    """The words written as names inside a sentence, folded."""
    return frozenset(map(fold, _NAME.findall(text)))


def names_differ(one: Set[str], two: Set[str]) -> bool:
    """Whether each of two sets of names has one that the other lacks."""
    return bool(one - two) and bool(two - one)


def _content(text: str) -> frozenset[str]:
    """The stems of a text without the stop words of its language."""
    return frozenset(stems(text)).difference(*map(_stop_stems, codes_of(text)))


def _denies(text: str) -> bool:
    return any(one.cues["negations"].search(plain(text)) for one in languages_of(text))


@cache
def _stop_stems(code: str) -> frozenset[str]:
    words = stop_words("ranking", "grammar", codes=(code,))
    return frozenset(stem for word in words for stem in stems(word))


@dataclass(frozen=True, slots=True)
class Ground:
    """The words and numbers of some messages, which a memory is checked against."""

    text: str
    numbers: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Ground:
        """The ground of one text."""
        words = frozenset(stems(text))
        return cls(text.lower(), _numbers(text), words | {_root(word) for word in words})

    @classmethod
    def joined(cls, grounds: Iterable[Ground]) -> Ground:
        """The ground of several texts together."""
        every = list(grounds)
        return cls(
            "\n".join(one.text for one in every),
            frozenset[str]().union(*(one.numbers for one in every)),
            frozenset[str]().union(*(one.words for one in every)),
        )

    def share(self, words: set[str]) -> float:
        """The share of the words that it has, from 0 to 1."""
        grounded = sum(word in self.words or _root(word) in self.words for word in words)
        return grounded / len(words) if words else 1.0


def is_grounded(text: str, cited: Ground, around: Ground) -> bool:
    """Whether a text follows from the `cited` messages; names may come from those `around`."""
    dateless = _DATE.sub(" ", text)
    words = content_stems(dateless)
    names = " ".join(word for word in _INSIDE.findall(dateless) if word[0].isupper())
    return (
        bool(words)
        and all(link.strip(_EDGES) in cited.text for link in _LINK.findall(text.lower()))
        and _numbers(dateless) <= cited.numbers
        and around.share(content_stems(names)) >= ENOUGH_NAMES
        and cited.share(words) >= ENOUGH_WORDS
    )


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_LONG_NUMBER.findall(_THOUSANDS.sub("", text)))


def content_stems(text: str) -> set[str]:
    """The stems of a text without stop words; of scripts without spaces, the pairs."""
    return set(filter(_has_content, {*stems(text)} - _stop_terms()))


def is_same_task(planned: str, done: str) -> bool:
    """Whether what was done, or is off, is what was planned.

    A verb may be irregular: of "pay the rent" and "paid the rent" the verbs only begin alike. Who
    has moved to a town looks at no more flats there.
    """
    planned, done = map(_in_one_word, (planned, done))
    deed, moved = _task_words(done), _task_words(MOVED)
    if deed & moved:
        for one in languages_of(planned):
            planned = one.cues["homes"].sub(f" {MOVED} ", plain(planned))
    plan = _task_words(planned)
    deed = _without_trips(done, deed)
    shared = plan & deed
    if deed & moved and not plan & moved:
        return False
    others = {word[0] for word in plan - shared} & {word[0] for word in deed - shared}
    count = len(shared) + bool(others)
    fewest = min(len(plan), len(deed))
    return bool(shared) and count >= max(min(_MIN_WORDS, fewest), SAME_TASK * fewest)


def _in_one_word(text: str) -> str:
    """The text, with one word for what is planned in several: "getting married", "the wedding"."""
    for one in languages_of(text):
        for task, words in one.tasks.items():
            text = words.sub(f" {task} ", plain(text))
    return text


def _without_trips(done: str, words: set[str]) -> set[str]:
    """The words, without those for a journey: "the Lisbon trip" is "flying to Lisbon"."""
    left = plain(done)
    for one in languages_of(done):
        left = one.cues["trips"].sub(" ", left)
    return _task_words(left) or words


def is_put_off(planned: str, told: str, said_at: datetime) -> bool:
    """Whether what has another date now is what was planned: "vet moved to Friday"."""
    thing, known = (_without_dates(text, said_at) for text in (told, planned))
    return bool(_task_words(thing)) and is_same_task(known or planned, thing)


def _without_dates(text: str, said_at: datetime) -> str:
    """What a plan is, without its day and without that this is another one now."""
    said = plain(text)
    for span in reversed(find_dates(text, said_at, 1)):
        said = f"{said[: span.place[0]]} {said[span.place[1] :]}"
    for one in languages_of(text):
        said = one.cues["moves"].sub(" ", said)
    return " ".join(word for word in said.split() if not word[0].isdigit())


def is_passed_over(known: str, told: str) -> bool:
    """Whether of two preferences one is for what the other is not: "tea over coffee", "coffee"."""
    return any(
        _is_for_rest(*pair)
        for one in languages_of(f"{known} {told}")
        for pair in permutations((_choice(known, one), _choice(told, one)))
    )


def _choice(preferred: str, language: Language) -> tuple[set[str], set[str]]:
    """The words of what is preferred, and of what it is preferred to."""
    than = language.cues["than"].search(plain(preferred))
    start, end = than.span() if than else (len(preferred), len(preferred))
    return content_stems(preferred[:start]), content_stems(preferred[end:])


def _is_for_rest(one: tuple[set[str], set[str]], other: tuple[set[str], set[str]]) -> bool:
    chosen, (left, now) = one[0], (one[1] - one[0], other[0] - one[0])
    return bool(chosen and left and now) and (left <= now or now <= left)


def is_inflected(known: str, named: str, *, partly: bool = False, at_end: bool = False) -> bool:
    """Whether a thing is named in other forms of its words.

    With `partly` its first words are enough, with `at_end` its last ones.
    """
    words, other = (list(stems(text)) for text in (known, named))
    words = words[: len(other)] if partly else words[-len(other) :] if at_end else words
    return bool(other) and len(words) == len(other) and all(map(_is_form, words, other))


def _is_form(one: str, other: str) -> bool:
    """Whether two words are one; our stems of Russian words keep some endings of names."""
    short, long = sorted((one, other), key=len)
    is_longer = _CYRILLIC < short < _ALPHABETS and len(long) - len(short) == 1
    return one == other or (is_longer and long.startswith(short))


def is_same_thing(one: str, two: str, predicate: str) -> bool:
    """Whether two figures may be of one thing: of a "day rate" and a rate, no "heart rate".

    Whether two diets take each other's place, too.
    """
    if predicate == "diet":
        return _diet_apart(one) == _diet_apart(two)
    if not (one.endswith(")") and two.endswith(")")):
        return True
    first, second = (set(it[it.rfind("(") :].strip("()").split()) for it in (one, two))
    return first <= second or second <= first


def _diet_apart(diet: str) -> str | None:
    """Which of the diets that one may follow beside others a diet is, if it is one."""
    said = plain(diet).lower()
    listed: Sequence[str] = data("shared", "predicates")["diets_apart"]
    return next((one for one in listed if any(word in said for word in one.split())), None)


def _task_words(text: str) -> set[str]:
    words = {*stems(text)} - _function_words()
    return {word for word in words if word[1:] or not word.isascii() or word.isdigit()}


@cache
def _joins() -> frozenset[str]:
    """The words of all languages that join the things of a list."""
    return frozenset(word for code in LANGUAGES for word in stems(data(code, "rules")["joins"]))


@cache
def _function_words() -> frozenset[str]:
    return frozenset(stems(" ".join(stop_words("ranking", "grammar"))))


def _has_content(word: str) -> bool:
    if not word.isascii() and UNSPACED.match(word):
        return len(word) > 1
    return len(word) > (2 if word < _ALPHABETS else 1) and not word.isdecimal()


def _root(word: str) -> str:
    """The beginning that inflected forms share, for languages without a stemmer."""
    if UNSPACED.match(word):
        return word
    return word[: 5 if word < _ALPHABETS else 2]


@cache
def _stop_terms() -> frozenset[str]:
    """Words that any statement may be framed with: they prove nothing and need no proof."""
    words = " ".join(stop_words("ranking", "grammar", "subject", "reporting"))
    return frozenset(stems(words)) | frozenset(fold(words).split())
