"""Ids and clocks: UUIDv7, sortable by the time they were made."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta

from memorist.errors import InvalidError, RecordError

PASSAGES_PER_MESSAGE = 1_048_576
"""A message's passages have the ids from this times its seq upward; the SQL spells it out."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = 4 * 10**15  # until 2096 a float is exact to the microsecond, and twice as fast
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A UUIDv7 that sorts after every other one made by this process."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 bits below them, never going back with the clock.
        _last = max(_last + 1, time.time_ns() // 1_000_000 << 12)
        stamp = _last
    head = (stamp >> 12) << 16 | 0x7000 | (stamp & 0xFFF)
    tail = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    text = f"{head:016x}{tail:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, exact."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """The moment of so many microseconds since 1970, in UTC."""
    if 0 <= micros < _EXACT:
        return datetime.fromtimestamp(micros / 1_000_000, UTC)
    return _EPOCH + timedelta(0, 0, micros)


def check_moment(value: object, field: str, error: type[InvalidError] = RecordError) -> datetime:
    """Return an aware moment in UTC, or raise `error` naming `field`."""
    if not isinstance(value, datetime):
        raise error(f"{field} must be a datetime, got {type(value).__name__}")
    if value.utcoffset() is None:
        raise error(f"{field} has no time zone; use datetime.now(timezone.utc)")
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise error(f"{field} is out of range once turned into UTC") from None


def reply_id(question_id: str, number: int) -> str:
    """The id of a model's nth reply to a question: a second try writes into the same place."""
    import uuid  # here: `import memorist` stays light

    namespace = uuid.UUID("0c7e6f5c-6f0e-4c0a-9d0b-52a1f6f0c3d4")
    return str(uuid.uuid5(namespace, f"{number} {question_id}"))
