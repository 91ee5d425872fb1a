"""Claude Code's transcripts: the `*.jsonl` files below `~/.claude/projects`.

A transcript is taken in the order in which it was written, with turns that were rewound later.
"""

from collections.abc import Iterator

from memorist.transfer.content import LEFT_OUT, Loose, heads, left_out, named, said, turns
from memorist.transfer.items import Item, Skipped, stable_id
from memorist.transfer.source import Source

name = "claude_code"
title = "Claude Code transcripts"
AGENT = "claude-code"
UNTIED = ("summary", "file-history-snapshot")  # types of lines that name no session
FIELDS = LEFT_OUT["claude_code"]
ADDED = tuple(LEFT_OUT["added"]["claude_code"])


def recognises(source: Source) -> bool:
    lines = heads(source, named(source, "*.jsonl"))
    return any(it.keys() >= {"type", "sessionId"} or it.get("type") in UNTIED for it in lines)


def read(source: Source) -> Iterator[Item]:
    known = set[int]()  # hashes of ids: a session that is resumed or forked repeats messages
    for file in named(source, "*.jsonl"):
        for found in source.objects(file):
            if isinstance(found, Skipped):
                yield found
            else:
                yield from _line(found[0], Loose.of(found[1]), known)


def _line(place: str, line: Loose, known: set[int]) -> Iterator[Item]:
    role, message = line.get("type"), line.below("message")
    if role == "attachment" and (queued := line.below("attachment")).text("prompt"):
        role, message = "user", Loose(content=queued["prompt"])  # said while Claude was at work
    if role not in ("user", "assistant"):
        return
    id_ = line.text("uuid") or stable_id(place)
    reason = next((FIELDS[field] for field in FIELDS if line.get(field)), "")
    if reason or hash(id_) in known:
        yield left_out(place, reason or "copy")
        return
    known.add(hash(id_))
    parts = said(role, _blocks(message), id_, line.date("timestamp"))
    yield from turns(place, parts, line.text("sessionId") or stable_id(place), AGENT)


def _blocks(message: Loose) -> Iterator[Loose]:
    for block in message.each("content"):
        text = block.text("text")
        typed = _typed(text)
        if typed == text:
            yield block
        else:
            yield Loose.of(typed) if typed else Loose(type="added")


def _typed(text: str) -> str:
    """A text without what Claude Code adds: a command is what was typed, its output is nothing."""
    if text.startswith("<command-"):
        parts = (f"command-{part}" for part in ("name", "args"))
        words = [text.partition(f"<{it}>")[2].partition(f"</{it}>")[0].strip() for it in parts]
        return " ".join(words) if words[1] else ""
    return "" if text.startswith(ADDED) else text
