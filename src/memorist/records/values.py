"""Values in records: ids, moments, checked and folded text."""

from __future__ import annotations

import os
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from memorist.errors import InvalidError, RecordError
from memorist.forks import fork_safe

MAX_KEY_BYTES = 1_000
MAX_SHORT_BYTES = 65_536
_NORMALIZED_CHARS = 256  # at once
PASSAGES_PER_MESSAGE = 1_048_576
"""A message's passages have the ids from this times its seq upward; the SQL spells it out."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = 4 * 10**15  # until 2096 a float is exact to the microsecond, and twice as fast
# Scripts written without spaces between words: every character counts as a word.
UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_NO_WORD = re.compile(r"[\W_]+")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and halves of surrogate pairs
_lock = fork_safe(threading.Lock())
_last = 0
T = TypeVar("T")

Count = int | None
"""How many at most, or a place in a list; None for all of it, or for its beginning."""
Place = tuple[datetime, str] | None
"""The moment and the id of the last item before a page of a list."""


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


def later(moment: datetime, span: timedelta) -> datetime:
    """The moment a span of time after another one, or the last there is."""
    return moment + min(span, datetime.max.replace(tzinfo=UTC) - moment)


class MadeAt(datetime):
    """The moment at which a message was made without one: the clock of its memory goes before."""


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
    """Return an aware moment in UTC, or raise `error` naming `field`; ISO 8601 is read as one."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise error(f"{field} is no moment in ISO 8601, as 2026-03-04T05:06:07Z") from None
    if not isinstance(value, datetime):
        raise error(f"{field} must be a datetime or ISO 8601 text, got {type(value).__name__}")
    if value.utcoffset() is None:
        raise error(
            f"{field} has no time zone; use datetime.now(timezone.utc), or end the text in Z"
        )
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


def check_type(
    value: object, kind: type, field: str, error: type[InvalidError] = InvalidError
) -> None:
    """Refuse an argument of another type, as a path where a Memory is wanted."""
    if not isinstance(value, kind):
        raise error(f"{field} must be a {kind.__name__}, got {type(value).__name__}")


def check_text(value: object, field: str, error: type[InvalidError] = RecordError) -> str:
    """Return `value` if every store keeps it byte for byte, else raise `error` naming `field`."""
    if type(value) is not str:
        if not isinstance(value, str):
            raise error(f"{field} must be a string, got {type(value).__name__}")
        value = str.__str__(value)  # a subclass (an enum, a rich string) is stored as plain text
    if "\x00" in value:
        raise error(f"{field} holds a NUL character, which cannot be stored; remove it")
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise error(
            f"{field} holds a lone surrogate at position {problem.start}, which is not text; "
            "decode the input with errors='replace'"
        ) from None
    return value


def check_each(field: str, *values: str | None) -> None:
    """Raise unless each value is None or text that a store could have kept."""
    for value in values:
        if value is not None:
            check_text(value, field)


def check_flags(**flags: object) -> None:
    """Raise unless each is true or false: "no" and None would be taken for one of them."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise InvalidError(f"{name} must be true or false, got {type(flag).__name__}")


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD in the place of each character that `check_text` refuses."""
    if text.isascii() and "\x00" not in text:  # mostly, and faster
        return text
    return UNSTORABLE.sub("\ufffd", text)


def check_key(
    value: Any, field: str, error: type[InvalidError] = RecordError, max_bytes: int = MAX_KEY_BYTES
) -> str:
    """As `check_text`, for short strings that records are looked up by."""
    text = check_text(value, field, error)
    if len(text) * 4 > max_bytes and len(text.encode()) > max_bytes:
        raise error(f"{field} is longer than {max_bytes:,} bytes")
    return text


def check_share(value: float, field: str) -> float:
    """Return `value` if it lies between 0 and 1."""
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RecordError(f"{field} must be a number from 0 to 1")
    return value


def check_whole(value: object, field: str, least: int = 0) -> int:
    """Return a whole number that is at least so large."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        must = f"at least {least}" if least else "not negative"
        got = value if isinstance(value, int | float) else type(value).__name__
        raise InvalidError(f"{field} must be a whole number, and {must}, got {got}")
    return value


def check_seconds(field: str, seconds: object) -> None:
    """Raise unless this is a number that is not negative."""
    if not isinstance(seconds, int | float) or not seconds >= 0:
        raise InvalidError(f"{field} must be a number of seconds, and not negative")


def check_keys(values: object, field: str) -> tuple[str, ...]:
    """Return several short texts; one text is not taken for its characters."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise RecordError(f"{field} must be a list, got {type(values).__name__}")
    return tuple(check_key(value, field) for value in values)


Key = Annotated[str, check_key]
"""The type of a short text that records are looked up by."""
ShortText = Annotated[str, "short"]
"""The type of a sentence or phrase, of at most `MAX_SHORT_BYTES`."""
_CHECKS: Mapping[Any, Callable[..., Any]] = {
    str: check_text,
    Key: check_key,
    ShortText: partial(check_key, max_bytes=MAX_SHORT_BYTES),
    datetime: check_moment,
    float: check_share,
    tuple[str, ...]: check_keys,
}


class Checked:
    """A frozen record that is checked when it is made, each field by its type.

    Text and keys are those every store keeps, floats lie between 0 and 1, a `Literal` has one of
    its values; moments are turned into UTC, lists of keys into tuples.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, check, optional in _checks_of(kind):
            value = getattr(self, name)
            if not (optional and value is None) and (checked := check(value, name)) is not value:
                object.__setattr__(self, name, checked)


@cache
def _checks_of(kind: Any) -> list[tuple[str, Callable[..., Any], bool]]:
    checks = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        optional = NoneType in get_args(hint)
        hint = get_args(hint)[0] if optional else hint
        check = _CHECKS.get(hint)
        if get_origin(hint) is Literal:
            check = partial(_check_choice, choices=get_args(hint))
        if check:
            checks.append((name, check, optional))
    return checks


def _check_choice(value: object, field: str, choices: tuple[str, ...]) -> object:
    if value not in choices:
        raise RecordError(f"{field} must be one of {', '.join(choices)}")
    return value


@dataclass(frozen=True, slots=True)
class Tally:
    """A count that goes up to a limit; `more` says that there are more than that."""

    count: int
    more: bool = False

    @classmethod
    def of(cls, counted: int, most: int) -> Tally:
        """What was counted up to one more than `most`."""
        return cls(min(counted, most), counted > most)


def shorten(text: str, longest: int) -> str:
    """A text, cut in the middle if it is longer than `longest`."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 3 // 4]} […] {text[-longest // 4 :]}"


def batches(
    items: Iterable[T], size_of: Callable[[T], int], *, most: int, most_size: int
) -> Iterator[list[T]]:
    """Consecutive items, at most so many together, and of at most this size or else alone."""
    batch, room = list[T](), most_size
    for item in items:
        size = size_of(item)
        if batch and (len(batch) == most or size > room):
            yield batch
            batch, room = [], most_size
        batch.append(item)
        room -= size
    if batch:
        yield batch


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Unicode's normal form, in linear time: `unicodedata` takes quadratic time on many marks."""
    if text.isascii():
        return text
    pieces, start = [], 0
    while start < len(text):
        stop, end = start + _NORMALIZED_CHARS, min(start + 2 * _NORMALIZED_CHARS, len(text))
        while stop < end and not text[stop].isascii():
            stop += 1  # marks belong to the letter before them, so that words are not cut
        pieces.append(unicodedata.normalize(form, text[start:stop]))
        start = stop
    return "".join(pieces)


def fold(text: str) -> str:
    """Text as both stores index and search it: lower case, no accents, spaces between words."""
    if text.isascii():
        return text.translate(_ASCII)
    plain = _ACCENTS.sub("", normalize("NFKD", text))
    spaced = UNSPACED.sub(r" \1 ", normalize("NFC", plain))
    return _NO_WORD.sub(" ", spaced.casefold())
