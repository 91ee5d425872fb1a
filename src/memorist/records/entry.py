"""Entries: JSON objects under a key in a namespace, kept by an agent or a graph for itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memorist.errors import InvalidError, RecordError
from memorist.records.json_filter import Where, check_where
from memorist.records.text import MAX_INT_BITS, MAX_JSON_DEPTH, check_key

Namespace = tuple[str, ...]
MAX_TTL = timedelta(days=366_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A JSON object, where it stands, and how well it fits where it was searched for."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    score: float | None = None

    @property
    def id(self) -> str:
        return entry_id(self.namespace, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A value for a place, or None to empty it. `texts` are what it is found by.

    With a `ttl` it is gone so long after it was written, or read by those who refresh it.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: Sequence[str] = ()
    ttl: timedelta | None = None

    def __post_init__(self) -> None:
        path_of(self.namespace)
        check_entry_key(self.key)
        if self.value is not None:
            if not isinstance(self.value, Mapping):
                raise RecordError(f"value must be a dict, got {type(self.value).__name__}")
            object.__setattr__(self, "value", plain(self.value))
        if self.ttl is not None and abs(self.ttl) > MAX_TTL:
            raise RecordError(f"ttl is longer than {MAX_TTL.days} days")

    @property
    def id(self) -> str:
        return entry_id(self.namespace, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """Asks for the entry of a key, if there is one."""

    namespace: Namespace
    key: str
    refresh: bool = False

    def __post_init__(self) -> None:
        path_of(self.namespace)
        check_entry_key(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Asks for the entries below a prefix that meet the conditions.

    With a `query`, those that fit it come first; the rest, and without one all, the newest first.
    Without a limit, all of them. `ranks` is how well entries fit, which the memory fills in.
    """

    prefix: Namespace = ()
    where: Where | None = None
    query: str = ""
    ranks: Mapping[str, float] = field(default_factory=dict)
    limit: int | None = 10
    offset: int = 0
    refresh: bool = False

    def __post_init__(self) -> None:
        path_of(self.prefix)
        check_where(self.where)
        for name in ("limit", "offset"):
            value = getattr(self, name)
            if (name, value) == ("limit", None):
                continue
            if not isinstance(value, int) or not 0 <= value < 2**31:
                raise InvalidError(f"{name} must be a whole number, and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """Asks for every namespace that has an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Asks for the ids of all that a search would find."""

    of: Search


Ask = Get | Search | Namespaces | Ids
Answer = list[Entry] | list[Namespace] | list[str]


def entry_id(namespace: Namespace, key: str) -> str:
    """The id of a place: short whatever its names are, and no other's."""
    # A path holds no NUL, so the pair cannot be spelled in two ways.
    said = f"{path_of(namespace)}\x00{key}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(said).hexdigest()[:32]


def path_of(namespace: Namespace) -> str:
    """A namespace as one text: its labels, which hold no full stop, joined by them."""
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label:
            raise RecordError("a namespace's labels are texts, not empty, without a full stop")
    return check_key(".".join(namespace), "namespace")


def namespace_of(path: str) -> Namespace:
    """The namespace that `path_of` was given."""
    return tuple(path.split(".")) if path else ()


def check_entry_key(key: object) -> str:
    """Any text is a key."""
    if not isinstance(key, str):
        raise RecordError(f"key must be a string, got {type(key).__name__}")
    return key


def plain(value: Any, depth: int = 0) -> Any:
    """A private copy of a JSON value, any text included; raise if it is none."""
    if depth > MAX_JSON_DEPTH:
        raise RecordError(f"value is nested more than {MAX_JSON_DEPTH} levels deep")
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool | int):
        if value and value.bit_length() > MAX_INT_BITS:
            raise RecordError(f"value holds an integer of more than {MAX_INT_BITS} bits")
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise RecordError("value holds a number that is not finite, which JSON cannot carry")
        return value
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) for key in value):
            raise RecordError("value has a key that is not a string")
        return {str.__str__(key): plain(item, depth + 1) for key, item in value.items()}
    raise RecordError(f"value holds a {type(value).__name__}, which is not JSON")


def findable(text: str) -> str:
    """A text as an index takes it: without NUL characters and halves of others."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()
