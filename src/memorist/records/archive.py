"""The records of an archive, one for each line: what each holds, as JSON and back."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from itertools import chain
from math import isfinite
from struct import error as StructError
from struct import unpack
from typing import Any, Literal, get_args, get_type_hints

from memorist.errors import RecordError
from memorist.records.activity import TurnReceipt
from memorist.records.decoding import from_json
from memorist.records.documents import Article
from memorist.records.entry import Put
from memorist.records.json_values import any_json
from memorist.records.memories import Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import Checked, Key

View = MemoryItem | Fact | Article
LARGEST = 2**62  # of whole numbers, which every database keeps
_SHOWN = ("role", "content", "name", "tool_calls", "agent_calls", "structured_data", "images")
MESSAGE_FIELDS = ("id", "created_at", *_SHOWN, "tool_call_id", "unfinished")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord(Checked):
    """A session; `title` is the user's own. The active one with its agent has `active_at`."""

    id: str
    agent: Key = ""
    created_at: datetime
    title: str | None = None
    active_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Checked):
    """The job that a message waits for, or, where it is `dead`, the one that was given up."""

    kind: Literal["index", "embed", "derive"]
    attempts: int = 0
    error: str | None = None
    dead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord(Checked):
    """A message; `place` counts the user's messages from 1, in the order of the log.

    `outdated` is the moment at which what it says ceased to be true.
    """

    session: str
    place: int
    source: Key
    message: Message
    outdated: datetime | None = None
    job: Waiting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRecord(Checked):
    """What a message said before it was revised for the nth time."""

    session: str
    number: int
    replaced_at: datetime
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRecord(Checked):
    """A memory, fact or article; search finds it under the moment `indexed_at`, or not at all."""

    record: View
    indexed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord(Checked):
    """A version of the note of an agent."""

    id: Key
    agent: Key = ""
    version: int
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord(Checked):
    """An entry; search finds it by the spans `passages` of its `text`. `ttl_us`: microseconds."""

    namespace: tuple[str, ...] = ()
    key: Any
    value: Any
    text: str = ""
    passages: tuple[tuple[int, int], ...] = ()
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    ttl_us: int | None = None

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        Put(namespace=self.namespace, key=self.key, value=self.value)
        size = len(self.text)
        for start, stop in self.passages:
            if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= size:
                raise RecordError("passages must be spans of the text")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRecord(Checked):
    """A summary of a session up to its message `last_message`."""

    id: Key
    session: str
    last_message: str
    previous: str | None = None
    text: str
    made_by: Key
    asked: bool = False
    messages: int
    tokens_before: int
    tokens: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRecord(Checked):
    """That a person made, changed, ended or forgot a memory or fact: a rebuild leaves it so."""

    view: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsRecord(Checked):
    """The vectors of a message in a session, or of another record: `parts` by where they start."""

    embedder: Key
    session: str | None = None
    id: str
    parts: dict[str, str]  # 32-bit floats in Base64

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        vectors = self.vectors().values()
        sizes = {len(vector) for vector in vectors}
        if len(sizes) != 1 or 0 in sizes or not all(map(isfinite, chain(*vectors))):
            raise RecordError("vectors must be finite, and all of the same length")

    def vectors(self) -> dict[int, tuple[float, ...]]:
        """The vectors as numbers."""
        try:
            packed = {int(at): b64decode(it, validate=True) for at, it in self.parts.items()}
            return {at: unpack(f"<{len(it) // 4}f", it) for at, it in packed.items()}
        except (TypeError, ValueError, StructError):
            raise RecordError("parts must be 32-bit floats in Base64") from None


ArchiveRecord = Checked  # one of these
KINDS: dict[str, Any] = {
    "session": SessionRecord,
    "message": MessageRecord,
    "revision": RevisionRecord,
    "memory": MemoryItem,
    "fact": Fact,
    "note": NoteRecord,
    "article": Article,
    "entry": EntryRecord,
    "summary": SummaryRecord,
    "kept": KeptRecord,
    "receipt": TurnReceipt,
    "vectors": VectorsRecord,
}
_TYPES = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What became of the records of an archive, by their types.

    They were `added`, were `there`, or are there with other content, which stays: of those that
    are `differing`, `places` names the first.
    """

    users: int = 0
    added: Mapping[str, int] = field(default_factory=dict)
    there: Mapping[str, int] = field(default_factory=dict)
    differing: Mapping[str, int] = field(default_factory=dict)
    places: tuple[str, ...] = ()


@cache
def fields_of(name: str) -> tuple[str, ...]:
    """The fields of a type of line, besides `type`, in their order."""
    names = [part.name for part in fields(KINDS[name])]
    if "message" in names:
        return (*(it for it in names if it != "message"), *MESSAGE_FIELDS)
    if "scope" in names:
        return ("agent", "session", *(it for it in names if it != "scope"), "indexed_at")
    return tuple(names)


@cache
def _known(name: str) -> frozenset[str]:
    return frozenset(("type", *fields_of(name)))


def type_of(record: ArchiveRecord) -> str:
    """The type that its line names."""
    return _TYPES[type(record.record if isinstance(record, ViewRecord) else record)]


def to_line(record: ArchiveRecord) -> bytes:
    """A record as a line of an archive: the same bytes for the same record, in any database.

    Fields that are null, false or an empty list are left out, other than a message's content.
    """
    values, name = _values(record), type_of(record)
    match record:
        case ViewRecord(record=view):
            values |= {**_values(view), "agent": view.scope.agent, "session": view.scope.session}
        case MessageRecord(message=said) | RevisionRecord(message=said):
            values |= {**_values(said), "id": said.message_id}
    shown = {
        key: value
        for key in fields_of(name)
        if (value := values[key]) is not None
        and ((value is not False and value not in ([], ())) or key == "content")
    }
    return line_of({"type": name, **shown})


def _values(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def line_of(value: Mapping[str, Any]) -> bytes:
    """JSON on a line of its own; lone surrogates, which an entry may hold, are escaped."""
    return any_json(value, _plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else _values(value)


def from_line(data: Mapping[str, Any], scope: Scope) -> ArchiveRecord:
    """The record of a line, checked, as one of a scope's user; RecordError where it is none."""
    data, name = dict(data), data.get("type")
    if not isinstance(name, str) or name not in KINDS:
        raise RecordError("this type of record is unknown")
    if not data.keys() <= _known(name):
        raise RecordError(f"a {name} has a field that is unknown")
    if name in ("message", "revision"):
        said = {key: data[key] for key in MESSAGE_FIELDS if key in data}
        data["message"] = _complete(Message, {**said, "message_id": data.get("id")})
    if name in ("memory", "fact", "article"):
        home = {key: data.get(key) for key in ("agent", "session")}
        data["scope"] = {"user": scope.user, "tenant": scope.tenant, **home}
        return ViewRecord(record=_made(KINDS[name], data), indexed_at=data.get("indexed_at"))
    record: ArchiveRecord = _made(KINDS[name], data)
    return record


def _complete(kind: Any, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a record; RecordError where a new id or the moment of now would be added."""
    for name in _needed(kind):
        if name not in data:
            raise RecordError(f"{name} is missing")
    return data


@cache
def _needed(kind: Any) -> list[str]:
    return [part.name for part in fields(kind) if part.default is MISSING]


def _made(kind: Any, data: Mapping[str, Any]) -> Any:
    record = from_json(kind, _complete(kind, data))
    for name, allowed in _exact_types(kind).items():
        value = getattr(record, name)
        if type(value) not in allowed or not 0 <= (value or 0) < LARGEST:
            raise RecordError(f"{name} must be a whole number, or true or false")
    return record


@cache
def _exact_types(kind: Any) -> dict[str, set[Any]]:
    """The types of fields of whole numbers or flags, which the record itself does not check."""
    hints = {name: {hint, *get_args(hint)} for name, hint in get_type_hints(kind).items()}
    return {name: types for name, types in hints.items() if types & {int, bool}}
