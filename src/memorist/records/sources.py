"""Sources: where messages come from, and how far that is trusted."""

from collections.abc import Iterable
from typing import Literal, get_args

from memorist.errors import RecordError
from memorist.records.message import Message

Source = Literal["system", "user", "assistant", "tool", "import", "web"]
"""Where a message came from; a memory inherits the least trusted of its sources."""
_BY_TRUST: tuple[Source, ...] = ("web", "tool", "import", "assistant", "user", "system")


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
