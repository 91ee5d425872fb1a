"""Memories and facts, the candidates for them, and the changes that can happen to them."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from memorist.errors import RecordError
from memorist.records.scope import Scope
from memorist.records.values import Checked, Key, ShortText, Tally, new_id, normalize, now

Kind = Literal["concept", "episode", "fact", "procedure", "working"]
Tier = Literal["short", "long"]
State = Literal["current", "over", "all"]
EDITED = "edited"  # why a memory ended whose words or labels a person changed
CORRECTED = "corrected"  # why one ended that a later message corrects
COUPLES = ("married to", "has partner")
PLANS = ("plans", "event", "has appointment")  # predicates whose object is a whole statement
# The object of a claim about every fact with its subject and predicate or, if beginnings of words
# follow, about those that name one of them.
ANY = "*"
FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem(Checked):
    """A memory; `sources` are the ids of the messages it came from."""

    scope: Scope
    text: ShortText
    kind: Kind = "fact"
    category: Key = "knowledge"
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    tier: Tier = "short"
    source: str = "user"
    sources: tuple[str, ...] = ()
    id: Key = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)
    uses: int = 0
    used_at: datetime | None = None
    expires_at: datetime | None = None
    ended_at: datetime | None = None
    superseded_by: str | None = None
    reason: str | None = None

    def names(self, thing: str) -> bool:
        """Whether its text names a thing, however written."""
        return plain_text(thing) in plain_text(self.text)

    def ended_with(self, fact: "Fact") -> bool:
        """Whether one change ended this memory and a fact, or will on a day that was named."""
        if self.ended_at is None:
            return self.expires_at is not None and fact.valid_to == self.expires_at
        if fact.known_to == self.ended_at:
            return True
        ended_at = max(self.ended_at, fact.valid_from or FIRST)
        return fact.known_to is None and fact.ended_at is not None and fact.valid_to == ended_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Checked):
    """`subject predicate object`, true from `valid_from` to `valid_to`, known likewise.

    An open end is None: true until further notice, known until retracted. `ended_at` is when
    `valid_to` was learnt, if that was later than the fact; `said_at` is when it was last said;
    `memory` is the id of the memory that states it: the two end together. `superseded_by` is the
    fact that took its place, or the memory that says it is over.
    """

    scope: Scope
    subject: ShortText
    predicate: ShortText
    object: ShortText
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    known_from: datetime = field(default_factory=now)
    known_to: datetime | None = None
    confidence: float = 1.0
    source: str = "user"
    sources: tuple[str, ...] = ()
    id: Key = field(default_factory=new_id)
    superseded_by: str | None = None
    reason: str | None = None
    ended_at: datetime | None = None
    said_at: datetime | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("subject", "predicate", "object"):
            if not getattr(self, name).strip():
                raise RecordError(f"{name} is empty")
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise RecordError("valid_to lies before valid_from")

    def state_at(self, moment: datetime) -> Literal["planned", "holds", "over"]:
        """Whether it will be so, is so or was so at a moment."""
        if self.valid_from is not None and self.valid_from > moment:
            return "planned"
        return "over" if self.valid_to is not None and self.valid_to <= moment else "holds"

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"

    @property
    def topic(self) -> str:
        """A key that facts with the same subject and predicate share, however written."""
        return topic_of(self.subject, self.predicate)

    def is_about(self, thing: str) -> bool:
        """Whether a thing is its object, however written."""
        return plain_text(self.object) == plain_text(thing)

    def holds(self, valid_at: datetime | None = None, known_at: datetime | None = None) -> bool:
        """Whether it was true at one moment, as far as was known at another."""
        if known_at is None:
            known = self.known_to is None
        else:
            known = _within(known_at, self.known_from, self.known_to)
        # An end that was learnt later than `known_at` was not known then.
        end_known = known_at is None or self.ended_at is None or known_at >= self.ended_at
        end = self.valid_to if end_known else None
        return known and (valid_at is None or _within(valid_at, self.valid_from, end))


@dataclass(frozen=True, slots=True)
class Entity:
    """What facts name, and how many of all times do."""

    name: str
    facts: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The facts that name someone or something; `more` says that there are others."""

    name: str
    facts: tuple[Fact, ...]
    more: bool = False


def _within(moment: datetime, start: datetime | None, stop: datetime | None) -> bool:
    return (start is None or start <= moment) and (stop is None or moment < stop)


def plain_text(text: str) -> str:
    """A text without case, spacing and variants of its letters."""
    return " ".join(normalize("NFKC", text).casefold().split())


def topic_of(subject: str, predicate: str) -> str:
    """A key of subject and predicate, without case and spacing."""
    folded = "\x00".join(map(plain_text, (subject, predicate)))
    return hashlib.sha256(folded.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A triple of subject, predicate and object, as a message states it.

    `single` if one object holds at a time (a home), not several (a liking); None leaves that to
    the predicate. `ends` if the message says that it holds no longer, `off` that what was planned
    will not be: the object is then words of the plan, or `ANY`. `gone` if it ends whatever is known
    of a thing of that name. `within` if it may be a part of what was named shortly before. `moves`
    if it is the new date of something that is planned.
    """

    subject: str
    predicate: str
    object: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    single: bool | None = None
    ends: bool = False
    off: bool = False
    gone: bool = False
    within: bool = False
    moves: bool = False

    @property
    def is_any(self) -> bool:
        """Whether it is about facts whose objects it does not name."""
        return self.object.startswith(ANY)

    def means(self, thing: str) -> bool:
        """Whether it is about a thing, though it does not name it."""
        begun = plain_text(self.object.removeprefix(ANY)).split()
        return self.is_any and (not begun or any(it in plain_text(thing) for it in begun))

    @property
    def concerns(self) -> tuple[str, ...]:
        """The predicates of facts that it may end or replace: what is done has no deadline."""
        if self.moves:
            return PLANS
        if self.ends and self.predicate in COUPLES:
            return COUPLES
        is_done = self.ends and self.predicate == PLANS[0]
        return (self.predicate, "deadline") if is_done else (self.predicate,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement that may become a memory, and the claims it makes.

    With an `id` it is what another program kept: it becomes a memory or fact of this id, and
    reinforces none that says the same. Without an `importance` it has that of its category.
    `corrects` if it says that an earlier statement was wrong, not that something has changed;
    `instead` is what is right and what was wrong, where it names only these.
    """

    text: str
    sources: tuple[str, ...]
    said_at: datetime
    kind: Kind = "fact"
    category: str = "knowledge"
    importance: float | None = None
    tags: tuple[str, ...] = ()
    source: str = "user"
    claims: tuple[Claim, ...] = ()
    corrects: bool = False
    instead: tuple[str, str] | None = None
    expires_at: datetime | None = None
    id: str = ""

    @property
    def only_corrects(self) -> bool:
        """Whether it changes another memory and is none of its own: "no wait, the 21st"."""
        is_bare = self.kind == "fact" and not self.claims
        return self.corrects and self.instead is not None and is_bare


@dataclass(frozen=True, slots=True)
class Add:
    """A new memory or fact."""

    record: MemoryItem | Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce(Checked):
    """It was said or used again: count that, add the messages that say so, raise its importance."""

    id: str
    sources: tuple[str, ...] = ()
    importance: float | None = None
    at: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede(Checked):
    """A newer record supersedes an older one, which is ended and linked to it.

    `alone` if the facts that an older memory states go on; `planned` if it was said before.
    """

    old_id: str
    record: MemoryItem | Fact
    reason: str = ""
    at: datetime = field(default_factory=now)
    alone: bool = False
    planned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """From the short-term tier to the long-term one."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire(Checked):
    """It has expired; it stays visible in the past. `planned` if that was said before.

    `by` is the id of what follows it, if anything does; `alone` if the facts that a memory states
    go on.
    """

    id: str
    reason: str = ""
    at: datetime = field(default_factory=now)
    planned: bool = False
    by: str | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retract(Checked):
    """It was wrong; it stays visible as once believed. `by` is the id of what is right instead.

    `alone` if the facts that a memory states go on.
    """

    id: str
    reason: str = ""
    at: datetime = field(default_factory=now)
    by: str | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(Checked):
    """What ended or was retracted holds again."""

    id: str
    reason: str = ""


Change = Add | Reinforce | Supersede | Promote | Expire | Retract | Restore
