"""Exports of mem0 in every form that people save them in.

That is what `get_all` returns, `{"results": [{"id", "memory", "user_id", "created_at", …}]}`, the
bare list, several pages, one entry a line, the points of the vector store (`payload.data`), and
OpenMemory's export (`memories`, `content`, `state`), a zip or gzipped lines.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memorist.errors import InvalidError, RecordError
from memorist.records.memories import MemoryItem
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.transfer.items import Item, Skipped, moment, stable_id
from memorist.transfer.source import Source

name = "mem0"
title = "mem0 export"

_LISTS = ("results", "memories", "points", "result", "data", "items")
_TEXTS = ("memory", "data", "content", "text")
_MEMBERS = ("memories.json", ".jsonl.gz", ".jsonl", ".json")
_GONE = ("deleted", "archived")
_CURE = "save what mem0's get_all returns, as JSON or one entry a line"

Fields = Mapping[str, Any]


def recognises(source: Source) -> bool:
    """Whether the first entry has a memory in it."""
    file = _file(source)
    first = next(_unfold(source.first(file, *_LISTS)), None) if file else None
    return isinstance(first, dict) and not _fields(first).keys().isdisjoint(_TEXTS[:3])


def read(source: Source) -> Iterator[Item]:
    """The memories; one without a date is dated now."""
    file = _file(source)
    if file is None:
        raise RecordError(f"there is no memories.json; {_CURE}")
    for entry in source.values(file, *_LISTS):
        if isinstance(entry, Skipped):
            yield entry
            continue
        place, value = entry
        for one in _unfold(value):
            try:
                yield _item(one)
            except InvalidError as error:
                yield Skipped(place, str(error))


def _file(source: Source) -> str | None:
    """The only file, or the one with the memories."""
    names = source.names()
    found = (each for end in _MEMBERS for each in names if each.endswith(end))
    return names[0] if len(names) == 1 else next(found, None)


def _unfold(value: Any, depth: int = 4) -> Iterator[Any]:
    """The entries in a list, a page or a list of pages; or the one entry itself."""
    if depth and isinstance(value, list):
        for one in value:
            yield from _unfold(one, depth - 1)
    elif depth and isinstance(value, dict):
        lists = [value[key] for key in _LISTS if isinstance(value.get(key), list)]
        if lists or isinstance(value.get("result"), dict):
            yield from _unfold(next(filter(None, lists), value.get("result", [])), depth - 1)
        else:
            yield value
    else:
        yield value


def _item(entry: Any) -> MemoryItem:
    if not isinstance(entry, dict):
        raise RecordError(f"not an object but {type(entry).__name__}")
    fields = _fields(entry)
    text, user = _text_of(fields), _key(fields, "user_id") or ""
    created = moment(fields.get("created_at"), "created_at")
    created = created or moment(fields.get("updated_at"), "updated_at") or now()
    gone = moment(fields.get("deleted_at"), "deleted_at")
    gone = gone or moment(fields.get("archived_at"), "archived_at")
    return MemoryItem(
        id=_key(entry, "id") or _key(entry, "memory_id") or stable_id(name, user, text),
        scope=Scope(user=user, agent=_key(fields, "agent_id"), session=_key(fields, "run_id")),
        text=text,
        source="import",
        created_at=created,
        expires_at=moment(fields.get("expiration_date"), "expiration_date"),
        ended_at=(gone or created) if fields.get("state") in _GONE else gone,
    )


def _fields(entry: Fields) -> dict[str, Any]:
    """The fields of an entry, those of a vector store's payload too."""
    payload = entry.get("payload")
    return {**entry, **payload} if isinstance(payload, dict) else dict(entry)


def _text_of(fields: Fields) -> str:
    named = {key: fields[key] for key in _TEXTS if fields.get(key) is not None}
    for key, value in named.items():  # the first
        if not isinstance(value, str):
            raise RecordError(f"`{key}` must be a string, got {type(value).__name__}")
        return value
    raise RecordError(f"has no `memory`; {_CURE}")


def _key(fields: Fields, name: str) -> str | None:
    """An id; numbers are ids too."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"`{name}` must be a string, got {type(value).__name__}")
    return str(value)
