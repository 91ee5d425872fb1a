"""Exports of mem0 in every form that people save them in.

That is what `get_all` returns, `{"results": [{"id", "memory", "user_id", "created_at", …}]}`, the
bare list, several pages, one entry a line, the points of the vector store (`payload.data`), and
OpenMemory's export (`memories`, `content`, `state`), a zip or gzipped lines.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memorist.errors import InvalidError, RecordError
from memorist.records.memories import MemoryItem
from memorist.records.scope import Scope

_LISTS = ("results", "memories", "points", "result", "data", "items")
_TEXTS = ("memory", "data", "content", "text")
_MEMBERS = ("memories.json", ".jsonl.gz", ".jsonl", ".json")
_GONE = ("deleted", "archived")
_MILLISECONDS = 10**11  # as seconds: the year 5138
_CURE = "save what mem0's get_all returns, as JSON or one entry a line"

Entry = Mapping[str, Any]


def read_mem0(path: Path, now: datetime, *, tenant: str = "default") -> list[MemoryItem]:
    """The memories of a mem0 export; one without a date is dated now."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RecordError(f"the export cannot be read: {error.strerror}") from error
    return parse_mem0(raw, now, tenant=tenant)


def parse_mem0(raw: bytes, now: datetime, *, tenant: str = "default") -> list[MemoryItem]:
    """The memories in the bytes of a mem0 export."""
    items: dict[str, MemoryItem] = {}
    for place, entry in _entries(_text(raw)):
        try:
            item = _item(entry, now, tenant, place)
        except InvalidError as error:
            raise RecordError(f"{place}: {error}") from None
        if items.get(item.id, item) != item:
            raise RecordError(f"{place}: its id was given to another memory before")
        items[item.id] = item  # pages that overlap repeat an entry
    return list(items.values())


def _text(raw: bytes) -> str:
    """The text of an export, unpacked if it is a zip or gzip file."""
    try:
        if raw.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(raw)) as packed:
                names = [name for name in packed.namelist() if name.endswith(_MEMBERS)]
                if not names:
                    raise RecordError("the zip holds no memories.json")
                raw = packed.read(names[0])
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(f"the export is not UTF-8 at byte {error.start}; {_CURE}") from None
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error) as error:
        raise RecordError(f"the export cannot be unpacked: {type(error).__name__}") from None


def _entries(text: str) -> Iterator[tuple[str, Entry]]:
    """Each entry, and its place in the export for error messages."""
    lines = {f"line {number}": line for number, line in enumerate(text.splitlines(), 1)}
    lines = {place: line for place, line in lines.items() if line.strip()}
    if not lines:
        raise RecordError(f"the export is empty; {_CURE}")
    try:
        by_line = len(lines) > 1 and isinstance(json.loads(next(iter(lines.values()))), dict | list)
    except ValueError:
        by_line = False
    if not by_line:
        yield from _unfold(_load(text, "the export"), "the export")
        return
    for place, line in lines.items():
        for _, entry in _unfold(_load(line, place), place):
            yield place, entry


def _load(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}" if place == "the export" else place
        raise RecordError(f"{where}, column {error.colno}: not JSON ({error.msg})") from None
    except RecursionError:
        raise RecordError(f"{place}: nested too deeply") from None


def _unfold(value: Any, place: str) -> Iterator[tuple[str, Entry]]:
    """The entries in a list, a page or a list of pages; or the one entry itself."""
    if isinstance(value, list):
        for number, one in enumerate(value, 1):
            if not isinstance(one, dict):
                raise RecordError(f"entry {number} must be an object, got {type(one).__name__}")
            yield from _unfold(one, f"entry {number}")
    elif not isinstance(value, dict):
        raise RecordError(f"{place} must hold objects, got {type(value).__name__}; {_CURE}")
    elif lists := [value[key] for key in _LISTS if isinstance(value.get(key), list)]:
        yield from _unfold(next(filter(None, lists), []), place)
    elif isinstance(value.get("result"), dict):
        yield from _unfold(value["result"], place)
    else:
        yield place, value


def _item(entry: Entry, now: datetime, tenant: str, place: str) -> MemoryItem:
    payload = entry.get("payload")
    fields = {**entry, **payload} if isinstance(payload, dict) else dict(entry)
    created = _moment(fields, "created_at") or _moment(fields, "updated_at") or now
    gone = _moment(fields, "deleted_at") or _moment(fields, "archived_at")
    return MemoryItem(
        id=_key(entry, "id") or _key(entry, "memory_id") or place,
        scope=Scope(
            tenant=tenant,
            user=_key(fields, "user_id") or "unknown",
            agent=_key(fields, "agent_id"),
            session=_key(fields, "run_id"),
        ),
        text=_text_of(fields),
        source="import",
        created_at=created,
        expires_at=_moment(fields, "expiration_date"),
        ended_at=(gone or created) if fields.get("state") in _GONE else gone,
    )


def _text_of(fields: Entry) -> str:
    named = {key: fields[key] for key in _TEXTS if fields.get(key) is not None}
    for key, value in named.items():  # the first
        if not isinstance(value, str):
            raise RecordError(f"`{key}` must be a string, got {type(value).__name__}")
        return value
    raise RecordError(f"has no `memory`; {_CURE}")


def _key(fields: Entry, name: str) -> str | None:
    """An id; numbers are ids too."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"`{name}` must be a string, got {type(value).__name__}")
    return str(value)


def _moment(fields: Entry, name: str) -> datetime | None:
    """A moment as ISO text, or in seconds or milliseconds since 1970; without a zone it is UTC."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1_000 if abs(value) > _MILLISECONDS else value
            return datetime.fromtimestamp(seconds, UTC)
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise RecordError(f"`{name}` must be a date in ISO 8601 or seconds since 1970") from None
