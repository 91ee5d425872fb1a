"""Exports of mem0 in every form that people save them in.

That is what `get_all` returns, `{"results": [{"id", "memory", "user_id", "created_at", …}]}`, the
bare list, several pages, one entry a line, and OpenMemory's export (`memories`, `content`,
`state`), a zip or gzipped lines.
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

_LISTS = ("results", "memories")
_TEXTS = ("memory", "content", "text")
_MEMBERS = ("memories.json", ".jsonl.gz", ".jsonl", ".json")
_GONE = ("deleted", "archived")
_CURE = "save what mem0's get_all returns, as JSON or one entry a line"

Fields = Mapping[str, Any]


def recognises(source: Source) -> bool:
    """Whether the first entry has a memory in it."""
    file = _file(source)
    first = next(iter(_entries(source.first(file, *_LISTS))), None) if file else None
    return isinstance(first, dict) and not first.keys().isdisjoint(_TEXTS[:2])


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
        for one in _entries(value):
            try:
                yield _item(one)
            except InvalidError as error:
                yield Skipped(place, str(error))


def _file(source: Source) -> str | None:
    """The only file, or the one with the memories."""
    names = source.names()
    found = (each for end in _MEMBERS for each in names if each.endswith(end))
    return names[0] if len(names) == 1 else next(found, None)


def _entries(value: Any) -> list[Any]:
    """The entries of a page, or the one entry itself."""
    pages = [value.get(key) for key in _LISTS] if isinstance(value, dict) else [value]
    return next((page for page in pages if isinstance(page, list)), [value])


def _item(entry: Any) -> MemoryItem:
    if not isinstance(entry, dict):
        raise RecordError(f"not an object but {type(entry).__name__}")
    text, user = _text_of(entry), _key(entry, "user_id") or ""
    created = moment(entry.get("created_at"), "created_at")
    created = created or moment(entry.get("updated_at"), "updated_at") or now()
    gone = moment(entry.get("deleted_at"), "deleted_at")
    gone = gone or moment(entry.get("archived_at"), "archived_at")
    return MemoryItem(
        id=_key(entry, "id") or _key(entry, "memory_id") or stable_id(name, user, text),
        scope=Scope(user=user, agent=_key(entry, "agent_id"), session=_key(entry, "run_id")),
        text=text,
        source="import",
        created_at=created,
        expires_at=moment(entry.get("expiration_date"), "expiration_date"),
        ended_at=(gone or created) if entry.get("state") in _GONE else gone,
    )


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
