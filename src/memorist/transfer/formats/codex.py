"""Codex's transcripts: the `rollout-*.jsonl` files below `~/.codex/sessions`.

Newer ones wrap each item of a conversation with its date; older ones have the items alone.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from memorist.records.json_values import storable
from memorist.records.message import Message
from memorist.records.values import MadeAt
from memorist.transfer.content import LEFT_OUT, Loose, Part, heads, message, named, turns
from memorist.transfer.items import Item, Skipped, stable_id
from memorist.transfer.source import Source

name = "codex"
title = "Codex transcripts"
ADDED = tuple(LEFT_OUT["added"]["codex"])
EDITOR, REQUEST = "# Context from my IDE setup:", "## My request for Codex:"


def recognises(source: Source) -> bool:
    return any(_session(head) for head in heads(source, named(source, "*.jsonl")))


def read(source: Source) -> Iterator[Item]:
    for file in named(source, "*.jsonl"):
        session, at = "", None
        for number, found in enumerate(source.objects(file)):
            if isinstance(found, Skipped):
                yield found
                continue
            place, line = found[0], Loose.of(found[1])
            session, at = session or _session(line) or stable_id(file), line.date("timestamp") or at
            item = line.below("payload") if line.get("type") == "response_item" else line
            yield from turns(place, _parts(item, f"{session}/{number}", at), session, name)


def _session(line: Loose) -> str:
    """The id in the first line of a transcript."""
    if line.get("type") == "session_meta":
        return line.below("payload").text("id")
    return line.text("id") if line.keys() >= {"id", "timestamp", "instructions"} else ""


def _parts(item: Loose, id_: str, at: datetime | None) -> Iterator[Part]:
    kind = item.text("type")
    if kind in LEFT_OUT["codex"]:
        yield LEFT_OUT["codex"][kind]
    elif kind == "message":
        yield from _message(item, id_, at)
    elif kind.endswith(("_call", "_call_output")):
        call = {key: value for key, value in storable(item).items() if key != "result"}  # an image
        yield Message.from_response_dict(call, message_id=id_, created_at=at or MadeAt.now(UTC))


def _message(item: Loose, id_: str, at: datetime | None) -> Iterator[Part]:
    texts, role = list[str](), item.text("role")
    for part in item.each("content"):
        text = part.text("text")
        if part.get("type") == "input_image":
            yield "file"
            text = "[image]"
        elif text.startswith(EDITOR):
            text = text.partition(REQUEST)[2].strip()
        texts.append("" if text.startswith(ADDED) else text)
    if text := "\n\n".join(filter(None, texts)):
        yield message(role, text, id_, at) if role in ("user", "assistant") else "added"
    elif texts:
        yield "added"
