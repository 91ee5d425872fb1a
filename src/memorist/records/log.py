"""The log: messages as stored, and the queue of work they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from memorist.errors import RecordError
from memorist.records.message import Message
from memorist.records.scope import Scope

Source = Literal["system", "user", "assistant", "tool", "import", "web"]
"""Where words came from; derived memories inherit the least trusted of their sources."""

_BY_TRUST: tuple[Source, ...] = ("web", "tool", "import", "assistant", "user", "system")

MAX_ATTEMPTS = 5


class LogEntry(NamedTuple):
    """A stored message: `seq` gives its place, whatever the clocks said."""

    seq: int
    session_id: str
    source: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append did: the place of each message, and how many were new."""

    session_id: str
    seqs: tuple[int, ...]
    added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work waiting for a worker: think about messages `first_seq` to `last_seq` of a session.

    It names its messages and holds none of their words.
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
    """The source the door stamped, or else the one the role implies."""
    if stamp is None:
        return message.role
    if stamp not in get_args(Source):
        raise RecordError(f"source must be one of {', '.join(get_args(Source))}")
    return stamp


def trust_of(source: str) -> int:
    """How far a source is trusted: more is more; a stranger counts as the web."""
    known: tuple[str, ...] = _BY_TRUST
    return known.index(source) if source in known else 0


def is_trusted(source: str) -> bool:
    """Whether a source takes part in the conversation; the words of others may be anybody's."""
    return source in ("user", "assistant", "system")


def least_trusted(sources: Iterable[str]) -> str:
    """The source that what comes from all of these is trusted as."""
    return _BY_TRUST[min(map(trust_of, sources), default=0)]


def retry_delay_seconds(attempts: int) -> float | None:
    """Seconds to wait after this many failed attempts; None when it is time to give up."""
    return None if attempts >= MAX_ATTEMPTS else float(min(2**attempts, 3_600))
