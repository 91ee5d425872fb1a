"""Questions and answers of recall."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

from memorist import defaults
from memorist.errors import InvalidError
from memorist.records.message import ROLES
from memorist.records.scope import Scope
from memorist.records.values import check_key, check_moment, check_share, check_whole

T = TypeVar("T", bound=tuple[Any, ...])
HitKind = Literal["message", "memory", "fact", "note", "article", "entry"]
Names = str | Sequence[str] | None
"""One name or several, to filter by."""

Term = tuple[str, ...]
"""A word to look for, or several that must follow each other."""


class Synonym(NamedTuple):
    """The stem of a word that means about the same as a term, and its weight from 0 to 1."""

    stem: str
    of: Term
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which records may be found: those that meet every condition.

    Categories and tags are what memories have, and a memory must carry all the tags; roles
    are what messages have. `after` and `before` bound when it was said, both included;
    `as_of` is a `before` that reads well: said until then, and still holding. `records` are the
    ids of what may be found, where that is known.
    """

    kinds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    records: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        kind: Names = None,
        category: Names = None,
        role: Names = None,
        tags: Names = None,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
    ) -> Self:
        """The filters that recall's keyword arguments ask for, checked."""
        given = {"after": after, "before": before, "as_of": as_of}
        moments = {name: moment for name, moment in given.items() if moment is not None}
        moments = {name: check_moment(moments[name], name, InvalidError) for name in moments}
        ends = [moments[name] for name in ("before", "as_of") if name in moments]
        return cls(
            kinds=_names(kind, "kind", get_args(HitKind)),
            categories=_names(category, "category"),
            roles=_names(role, "role", ROLES),
            tags=_names(tags, "tags"),
            after=moments.get("after"),
            before=min(ends, default=None),
        )


NO_FILTERS = Filters()
RECALL_DEADLINE_MS = float(defaults.RECALL_DEADLINE_MS)
MIN_SCORE = 0.004  # loses at most 2 of 100 of LoCoMo's evidence in ten: `benchmarks.calibrate`


def _names(given: Any, field: str, known: tuple[str, ...] | None = None) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else given or ()
    if not isinstance(names, tuple | list):
        raise InvalidError(f"{field} must be a name or several, got {type(given).__name__}")
    for name in names:
        check_key(name, field, InvalidError)
        if known and name not in known:
            raise InvalidError(f"{field} must be one of {', '.join(known)}")
    return tuple(names)


def check_deadline(deadline_ms: object) -> None:
    """Raise unless this is a number above 0, or None."""
    if deadline_ms is not None and not (isinstance(deadline_ms, int | float) and deadline_ms > 0):
        raise InvalidError("deadline_ms must be a number above 0, or None to wait")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question, with where and how long to search for its answer."""

    scope: Scope
    question: str
    now: datetime
    limit: int = 10
    deadline_ms: float | None = RECALL_DEADLINE_MS
    filters: Filters = NO_FILTERS
    min_score: float = MIN_SCORE

    def __post_init__(self) -> None:
        if not isinstance(self.question, str):
            raise InvalidError(f"question must be a string, got {type(self.question).__name__}")
        check_whole(self.limit, "limit", 1)
        check_share(self.min_score, "min_score")
        check_deadline(self.deadline_ms)


class Found(NamedTuple):
    """What one channel of a store found: a passage, and how well it fits."""

    passage: int
    score: float
    full: float = 0.0  # what the score would be with the words asked for instead of synonyms
    share: float = 0.0  # of the words asked for, those that it holds; rare ones count more


class Passage(NamedTuple):
    """A span of a message or record, with what ranking uses; a tuple, as hundreds are made."""

    id: int
    kind: HitKind
    record: int | str
    start: int
    stop: int
    said_at: int  # in microseconds since 1970
    session: Any = None
    role: str | None = None
    speaker: str | None = None
    self_reference: float = 0.0
    is_question: bool = False
    importance: float | None = None  # a memory's; of a message, by how much it is above the usual
    previous: int | None = None
    source: int | None = None  # the message that a record was derived from, if only one
    outdated: int = 0  # when a newer message changed what this one says; 1 if that is not known
    overtaken_by: int = 0  # the passage of a newer message that probably updates this one


def many(kind: type[T], rows: Iterable[Iterable[Any]]) -> list[T]:
    """Named tuples of rows of all their fields; faster than one by one, where there are many."""
    return list(map(partial(tuple.__new__, kind), rows))


def past(ended_at: datetime | None, now: datetime) -> str:
    """The words that mark what is over: "until April 2026", or "history" where that is unknown.

    Of this month the day is told, as "until November" would go on to its end.
    """
    if ended_at is None:
        return "history"
    is_this_month = (ended_at.year, ended_at.month) == (now.year, now.month)
    return f"until {f'{ended_at.day} ' if is_this_month else ''}{ended_at:%B %Y}"


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message that a memory or fact came from, and when it was said."""

    message_id: str
    session_id: str
    created_at: datetime

    def __str__(self) -> str:
        ids = (re.sub(r"[^\w-]", "", id_)[-8:] for id_ in (self.message_id, self.session_id))
        said_on = f"{self.created_at.day} {self.created_at:%B %Y}"
        return "message {} of session {}, {}".format(*ids, said_on)


class Update(NamedTuple):
    """What a message states, whether it holds, and a message that states what holds instead.

    `until` is when it was said to be over, which is when the message was sent that says so, unless
    that names another day; `ended_by` is that message, if there is a memory of it.
    """

    message_id: str
    predicate: str
    object: str
    holds: bool
    by: str | None
    until: datetime | None = None
    ended_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A text that was found, with the id of its record.

    `speaker` is the name that a message was stored with. `over` marks what holds no longer, "until
    April 2026" (of this month, "until 3 April 2026") or "history", or "probably until April 2026"
    where a later message probably changed it, `partly_over` a message of which only what was not
    asked about holds no longer; `sources` are the messages that a memory or fact came from.
    """

    kind: HitKind
    id: str
    text: str
    created_at: datetime
    session_id: str | None = None
    role: str | None = None
    speaker: str | None = None
    over: str = ""
    partly_over: str = ""
    sources: tuple[SourceMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Record):
    """A passage of a record, as a store reads it."""

    passage: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why something was recalled.

    `ranks` and `scores` are those of each channel; `parts` is what each channel and each signal
    added to the sum that hits are ranked by, of which the hit's score, a probability, is made;
    `start` and `stop` are the span of the record that was found.
    """

    ranks: dict[str, int]
    scores: dict[str, float]
    parts: dict[str, float]
    age: timedelta
    start: int = 0
    stop: int = 0

    @property
    def found(self) -> str:
        """The channels that found it, each with its rank: "words #1, meaning #3"."""
        return ", ".join(f"{channel} #{rank}" for channel, rank in self.ranks.items())

    def __str__(self) -> str:
        moved = [name for name, part in self.parts.items() if name not in self.ranks and part > 0]
        return "; ".join(filter(None, [self.found, ", ".join(moved), _age(self.age)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Record):
    """One thing recalled: its text, when it was said, how likely it bears on the question, and why.

    `kind` is message, memory, fact, note, article or entry. `over` says since when it no longer
    holds ("until April 2026"), and is empty while it does. `str(hit.why)` is the reason in a line.
    """

    score: float
    why: Why

    @property
    def origin(self) -> str:
        """The message that a memory or fact last came from, by the ends of its ids, and the day."""
        return f"from {self.sources[-1]}" if self.sources else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What was found, how long each channel took, and which gave nothing.

    `total_found` counts the records that were found before `limit` and `min_score` chose among
    them. `late` names the channels that were not done at the deadline, `failed` those that raised
    an error, with the reason; the others' hits are there in either case. Where there are no hits,
    `reason` says why.
    """

    hits: tuple[Hit, ...]
    timings_ms: dict[str, float] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    total_found: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a `forget` removed, counted by kind.

    `residue` says where copies of it may remain in the database's files and what removes them. It
    is empty when nothing was removed, and when it was told not to scrub.
    """

    counts: dict[str, int]
    residue: str = ""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _age(age: timedelta) -> str:
    seconds = max(age.total_seconds(), 0)
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
