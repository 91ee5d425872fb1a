"""The log: sessions, messages as stored, and the queue of jobs on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from memorist.errors import RecordError
from memorist.records.message import Message
from memorist.records.scope import Scope

Source = Literal["system", "user", "assistant", "tool", "import", "web"]
"""Where a message came from; a memory inherits the least trusted of its sources."""

_BY_TRUST: tuple[Source, ...] = ("web", "tool", "import", "assistant", "user", "system")

MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation of a user with an agent; `scope` names user, agent and session id."""

    scope: Scope
    created_at: datetime

    @property
    def id(self) -> str:
        assert self.scope.session is not None  # a session's scope always names it
        return self.scope.session


class LogEntry(NamedTuple):
    """A stored message; `seq` is its place in the log, whatever the clocks said."""

    seq: int
    session_id: str
    source: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append did: the seq of each message, and how many were new."""

    session_id: str
    seqs: tuple[int, ...]
    added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work on the messages `first_seq` to `last_seq` of a session; it holds none of their words.

    Below zero, they are the ids of passages of derived records.
    """

    id: int
    kind: str
    scope: Scope
    first_seq: int
    last_seq: int
    attempts: int
    run_at: datetime
    lease: str | None = None
    error: str | None = None
    dead: bool = False

    @property
    def owner(self) -> str:
        """The key of its user's rows."""
        return self.scope.owner


def source_of(message: Message, stamp: Source | None) -> str:
    """The source that was given, or else the one that the role implies."""
    if stamp is None:
        return message.role
    if stamp not in get_args(Source):
        raise RecordError(f"source must be one of {', '.join(get_args(Source))}")
    return stamp


def trust_of(source: str) -> int:
    """How far a source is trusted, from 0; an unknown one counts as the web."""
    known: tuple[str, ...] = _BY_TRUST
    return known.index(source) if source in known else 0


def is_trusted(source: str) -> bool:
    """Whether a source takes part in the conversation; the words of others may be anybody's."""
    return source in ("user", "assistant", "system")


def least_trusted(sources: Iterable[str]) -> str:
    """The least trusted of some sources."""
    return _BY_TRUST[min(map(trust_of, sources), default=0)]


def retry_delay_seconds(attempts: int) -> float | None:
    """Seconds to wait after this many failed attempts; None when it is time to give up."""
    return None if attempts >= MAX_ATTEMPTS else float(min(2**attempts, 3_600))
