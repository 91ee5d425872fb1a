"""What the formats of conversations share: JSON of any shape, content blocks, branches."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from memorist.errors import InvalidError, RecordError
from memorist.records.json_values import dump_json, has_too_many_values, storable
from memorist.records.message import Message, ToolCallMsg
from memorist.records.values import MadeAt, from_micros, replace_unstorable
from memorist.transfer.items import Item, Skipped, Turn, moment
from memorist.transfer.source import Source

LOOKED_AT = 20  # files, to recognise a folder by
LEFT_OUT = tomllib.loads((files(__package__) / "left_out.toml").read_text("utf-8"))
_BLOCKS: dict[str, str] = LEFT_OUT["blocks"]
_KNOWN = ("", "text", "tool_use", "tool_result", "end")  # types of blocks
Part = Message | str
"""A message of an export, or the key of the reason why something there is left out."""


class Loose(dict[str, Any]):
    """A JSON object of any shape: what is missing, or of another type than asked for, is empty."""

    @classmethod
    def of(cls, value: Any) -> Loose:
        """The value as an object; text is one that has it."""
        return cls(value if isinstance(value, dict) else {"text": value})

    def below(self, key: str) -> Loose:
        return Loose.of(self.get(key))

    def each(self, key: str) -> list[Loose]:
        """The items of an array; a value that is not an array is its only item."""
        value = self.get(key)
        items = value if isinstance(value, list) else [] if value is None else [value]
        return [Loose.of(item) for item in items]

    def text(self, *keys: str) -> str:
        """The first text that is not empty below one of the keys, as stores keep it."""
        for key in keys:
            value = self.get(key)
            if isinstance(value, str) and value and not value.isspace():
                return replace_unstorable(value)
        return ""

    def date(self, key: str) -> datetime | None:
        value = self.get(key)
        with suppress(RecordError):
            return moment(str(value) if isinstance(value, datetime) else value, key)
        return None


_END = Loose(type="end")


def left_out(place: str, key: str) -> Skipped:
    """What is skipped for the reason of this key."""
    return Skipped(place, LEFT_OUT["reasons"][key])


def named(source: Source, *patterns: str) -> list[str]:
    """The files whose names fit a pattern."""
    return [it for it in source.names() if any(map(PurePosixPath(it).match, patterns))]


def chats(source: Source) -> list[str]:
    """The files with the conversations of an account; the only file may have any name."""
    only = named(source, "*.json") if len(source.names()) == 1 else []
    return named(source, "conversations*.json") or only


def heads(source: Source, files: list[str]) -> Iterator[Loose]:
    """The first objects of some of the files, to recognise a source by."""
    return (Loose.of(source.first(file)) for file in files[:LOOKED_AT])


def parsed(value: Any) -> Any:
    """The JSON in a column, which some databases give as text; None where there is none."""
    if not isinstance(value, str | bytes):
        return value
    with suppress(ValueError, RecursionError):
        return None if has_too_many_values(value) else json.loads(value)
    return None


def branch(parents: dict[str, str], dates: Mapping[str, datetime | None], leaf: str) -> list[str]:
    """The ids from the root of a tree to a leaf; where that is not known, to the newest."""
    if leaf not in parents:
        leaf = max(reversed(parents), key=lambda id_: dates[id_] or from_micros(0), default="")
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


def turns(
    place: str, parts: Iterable[Part], session: str, agent: str, **more: Any
) -> Iterator[Item]:
    """The items of a message; what cannot be stored is skipped."""
    try:
        for part in parts:
            if isinstance(part, Message):
                yield Turn(session, part, agent=agent, **more)
            else:
                yield left_out(place, part)
    except (InvalidError, RecursionError) as error:
        yield Skipped(place, str(error))


def message(role: str, text: str, id_: str, at: datetime | None, **more: Any) -> Message:
    """A message; without a date of its own, it has that of the import."""
    return Message(role, text or None, id_, created_at=at or MadeAt.now(UTC), **more)


def said(role: str, blocks: Iterable[Loose], id_: str, at: datetime | None) -> Iterator[Part]:
    """The messages of one turn in Anthropic's content blocks; each tool result is its own."""
    texts: list[str] = []
    calls: list[ToolCallMsg] = []
    number = 0
    for block in (*blocks, _END):
        kind, text = block.text("type"), ""
        if kind in ("tool_result", "end") and (texts or calls):
            yield message(role, "\n\n".join(texts), _nth(id_, number), at, tool_calls=calls)
            texts, calls, number = [], [], number + 1
        if kind == "tool_result":
            yield _result(block, _nth(id_, number), at)
            number += 1
        elif kind == "tool_use":
            calls.append(_call(block, f"{id_}/call_{number}_{len(calls)}"))
        elif text := _text(block):
            texts.append(text)
        if reason := _BLOCKS.get(kind, "" if text or kind in _KNOWN else "unknown"):
            yield reason


def _nth(id_: str, number: int) -> str:
    return f"{id_}/{number}" if number else id_


def _text(block: Loose) -> str:
    """The text of a block; of an image or a document, what it is."""
    if (kind := block.get("type")) in ("image", "document"):
        return f"[{kind}: {block.below('source').text('media_type') or 'no type'}]"
    return block.text("text")


def _call(block: Loose, own_id: str) -> ToolCallMsg:
    call_id = block.text("id") or own_id
    arguments = json.dumps(block.get("input"), ensure_ascii=False, separators=(",", ":"))
    name, arguments = block.text("name"), replace_unstorable(arguments)
    return ToolCallMsg(call_id, call_id, "function", name, arguments)


def _result(block: Loose, id_: str, at: datetime | None) -> Message:
    known = (None, "text", "image", "document")
    texts = (
        _text(item) if item.get("type") in known else dump_json(storable(item))
        for item in block.each("content")
    )
    more = {"structured_data": {"status": "error"}} if block.get("is_error") is True else {}
    call_id = block.text("tool_use_id") or None
    return message("tool", "\n\n".join(texts), id_, at, tool_call_id=call_id, **more)
