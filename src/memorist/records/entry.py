"""Entries: JSON objects under a key in a namespace, and conditions to search them by."""

import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memorist.errors import InvalidError, RecordError
from memorist.records.json_values import MAX_JSON_DEPTH, check_json
from memorist.records.values import check_key, check_moment, check_type

Namespace = tuple[str, ...]
MAX_TTL = timedelta(days=366_000)
MAX_KEY_CHARS = 65_536
Where = Mapping[str, Any]
"""Conditions by key, as LangGraph's stores take them: values, or operators such as `$gt`."""


class Placed:
    """What has a namespace and a key, and an id made of them."""

    __slots__ = ()
    namespace: Namespace
    key: str

    @property
    def id(self) -> str:
        return entry_id(self.namespace, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Placed):
    """A JSON object with its namespace and key, and its score where it was searched for."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put(Placed):
    """Stores a value under a key, or deletes it (None). Search finds it by its `texts`."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: Sequence[str] = ()
    ttl: timedelta | None = None  # from now on, or from when it is read with `refresh`
    written_at: datetime | None = None  # before it came here

    def __post_init__(self) -> None:
        _check_place(self.namespace, self.key)
        if self.value is not None:
            if not isinstance(self.value, Mapping):
                raise RecordError(f"value must be a dict, got {type(self.value).__name__}")
            value = check_json(self.value, "value", any_text=True)
            object.__setattr__(self, "value", value)
        texts = self.texts  # one text would be taken for its characters, each a passage of its own
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise RecordError(f"texts must be a list of texts, got {type(texts).__name__}")
        for text in texts:
            check_type(text, str, "each of texts", RecordError)
        if self.ttl is not None:
            check_type(self.ttl, timedelta, "ttl", RecordError)
            if abs(self.ttl) > MAX_TTL:
                raise RecordError(f"ttl is longer than {MAX_TTL.days} days")
        if self.written_at is not None:
            object.__setattr__(self, "written_at", check_moment(self.written_at, "written_at"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Get(Placed):
    """Reads the entry of a key, if there is one."""

    namespace: Namespace
    key: str
    refresh: bool = False

    def __post_init__(self) -> None:
        _check_place(self.namespace, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Reads entries below a prefix that meet the conditions: by the `query`, then the newest."""

    prefix: Namespace = ()
    where: Where | None = None
    query: str = ""
    ranks: Mapping[str, float] = field(default_factory=dict)  # scores; the memory fills them in
    limit: int | None = 10
    offset: int = 0
    refresh: bool = False

    def __post_init__(self) -> None:
        path_of(self.prefix)
        if not isinstance(self.query, str):
            raise InvalidError(f"query must be a string, got {type(self.query).__name__}")
        if self.where is not None and not isinstance(self.where, Mapping):
            raise InvalidError(f"a filter must be a dict, got {type(self.where).__name__}")
        check_where(self.where)
        limit = 0 if self.limit is None else self.limit
        for name, value in (("limit", limit), ("offset", self.offset)):
            if not isinstance(value, int) or not 0 <= value < 2**31:
                raise InvalidError(f"{name} must be a whole number, and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """Reads the namespaces that have entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Reads the ids of all entries that a search would find."""

    of: Search


Ask = Get | Search | Namespaces | Ids
Answer = list[Entry] | list[Namespace] | list[str]


def entry_id(namespace: Namespace, key: str) -> str:
    """A short id of a namespace and a key, unique to them."""
    # A path contains no NUL, so no other pair gives the same text.
    place = f"{path_of(namespace)}\x00{key}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(place).hexdigest()[:32]


def path_of(namespace: Namespace) -> str:
    """A namespace as one text: its labels joined by full stops, which they must not contain."""
    if not isinstance(namespace, tuple | list):
        raise RecordError(f"a namespace is a tuple of labels, not {type(namespace).__name__}")
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label:
            raise RecordError("a namespace's labels are texts, not empty, without a full stop")
    return check_key(".".join(namespace), "namespace")


def namespace_of(path: str) -> Namespace:
    """The namespace of a path."""
    return tuple(path.split(".")) if path else ()


def _check_place(namespace: Namespace, key: object) -> None:
    path_of(namespace)
    if not isinstance(key, str):
        raise RecordError(f"key must be a string, got {type(key).__name__}")
    if len(key) > MAX_KEY_CHARS:
        raise RecordError(f"key is longer than {MAX_KEY_CHARS} characters")


def whole_text(value: Any) -> str:
    """The texts in a value, each with its key on a line of its own."""
    return "\n".join(_lines(value))


def _lines(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _lines(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _lines(inner, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def findable(text: str) -> str:
    """A text as the index takes it: without NUL characters and lone surrogates."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A comparison of numbers with numbers and text with text; nothing else has an order."""

    def is_met(value: Any, bound: Any) -> bool:
        both = (value, bound)
        texts = all(isinstance(each, str) for each in both)
        numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in both)
        return (texts or numbers) and compare(value, bound)

    return is_met


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": same,
    "$ne": lambda value, other: not same(value, other),
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
}


def passes(value: Any, condition: Any) -> bool:
    """Whether a value meets a condition; a missing value counts as null."""
    if isinstance(condition, Mapping):
        if _has_operators(condition):
            return all(OPERATORS[name](value, other) for name, other in condition.items())
        return isinstance(value, Mapping) and all(
            passes(value.get(key), wanted) for key, wanted in condition.items()
        )
    if isinstance(condition, list | tuple):
        as_long = isinstance(value, list) and len(value) == len(condition)
        return as_long and all(map(passes, value, condition))
    return same(value, condition)


def check_where(condition: Any, depth: int = 0) -> None:
    """Raise unless this is a condition."""
    if depth > MAX_JSON_DEPTH:
        raise InvalidError(f"the filter is nested more than {MAX_JSON_DEPTH} levels deep")
    parts: Iterable[Any] = condition if isinstance(condition, list | tuple) else ()
    if isinstance(condition, Mapping):
        if any(not isinstance(key, str) for key in condition):
            raise InvalidError("a filter's keys are strings")
        if _has_operators(condition) and condition.keys() - OPERATORS:
            raise InvalidError(f"a filter's operators are {', '.join(OPERATORS)}")
        parts = () if _has_operators(condition) else condition.values()
    for part in parts:
        check_where(part, depth + 1)


def _has_operators(condition: Mapping[str, Any]) -> bool:
    return any(key.startswith("$") for key in condition)
