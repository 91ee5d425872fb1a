"""The log: sessions, stored messages with their sources, and the jobs that they cause."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from memorist.errors import RecordError
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import Tally

Source = Literal["system", "user", "assistant", "tool", "import", "web"]
"""Where a message came from; a memory inherits the least trusted of its sources."""
_BY_TRUST: tuple[Source, ...] = ("web", "tool", "import", "assistant", "user", "system")
PART_CHARS = 65_536  # of a growing message that are read at once
MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What `remember` stored: the messages' ids, and the session they are in."""

    session_id: str
    message_ids: tuple[str, ...]
    added: int


class Batch(NamedTuple):
    """Messages of one session, and a title for it, if it is new and has none."""

    scope: Scope
    messages: Sequence[Message]
    title: str | None = None

    @property
    def message_ids(self) -> tuple[str, ...]:
        return tuple(message.message_id for message in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation of a user with an agent; `scope` names user, agent and session id.

    `last_active_at` is when its last message was said, or else when it began; lists tell it.
    """

    scope: Scope
    created_at: datetime
    last_active_at: datetime | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        assert self.scope.session is not None  # a session's scope always names it
        return self.scope.session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary(Session):
    """A session as a list shows it: its title, and how many messages there are.

    The title is the user's own or else the beginning of their first message.
    """

    title: str
    last_active_at: datetime = field(compare=False)
    messages: Tally


class LogEntry(NamedTuple):
    """A stored message; `seq` is its place in the log, whatever the clocks said."""

    seq: int
    session_id: str
    source: str
    message: Message


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of what a message says, and how long it is in all; `version` changes as it does."""

    session_id: str
    text: str
    chars: int
    unfinished: bool
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append did: the seq of each message, and how many were new."""

    session_id: str
    seqs: tuple[int, ...]
    added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work on the messages `first_seq` to `last_seq` of a session; it holds none of their words."""

    id: int
    kind: str
    scope: Scope
    first_seq: int  # below zero, an id of a passage of a derived record
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
    return message.role if stamp is None else check_source(stamp)


def check_source(source: str) -> str:
    """Raise unless there is such a source."""
    if source not in get_args(Source):
        raise RecordError(f"source must be one of {', '.join(get_args(Source))}")
    return source


def trust_of(source: str) -> int:
    """How far a source is trusted, from 0; an unknown one counts as the web."""
    known: tuple[str, ...] = _BY_TRUST
    return known.index(source) if source in known else 0


def is_trusted(source: str) -> bool:
    """Whether a source takes part in the conversation; the words of others may be anybody's."""
    return source in ("user", "assistant", "system")


def least_trusted(sources: Iterable[str]) -> Source:
    """The least trusted of some sources."""
    return _BY_TRUST[min(map(trust_of, sources), default=0)]


def retry_delay_seconds(attempts: int) -> float | None:
    """Seconds to wait after this many failed attempts; None when it is time to give up."""
    return None if attempts >= MAX_ATTEMPTS else float(min(2**attempts, 900))
