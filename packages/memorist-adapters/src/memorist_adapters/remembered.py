"""What a framework's agent is told of its memory: the notes, and what bears on the question."""

from __future__ import annotations

from memorist.context.assemble import MEMORIES_INTRO, NOTES_INTRO
from memorist.context.quote import block, quote_of, quoted
from memorist.errors import StoreError
from memorist.memory import Memory
from memorist.records.query import Hit
from memorist.records.scope import Scope

DEADLINE_MS = 50.0


def remembered(
    memory: Memory,
    scope: Scope,
    question: str,
    *,
    said: str,
    limit: int,
    deadline_ms: float | None = DEADLINE_MS,
) -> tuple[str, list[Hit]]:
    """The notes and what is recalled, quoted as data, and the hits; without what was `said`.

    What is in the conversation already, or was told of in it before, would only be there twice.
    """
    found = memory.search(scope, question, limit=limit, deadline_ms=deadline_ms)
    if not found.hits and found.failed:
        raise StoreError(f"nothing could be recalled: {', '.join(found.failed)} failed")
    shown = [hit for hit in found.hits if hit.kind != "note" and hit.text.strip()]
    hits = [hit for hit in shown if not _is_in(hit.text, said)]
    note = memory.note_versions.get(scope)
    parts = []
    if note is not None and note.text and not _is_in(note.text, said):
        parts.append(f"{NOTES_INTRO}\n{quoted(note.text)}")
    if hits:
        parts.append(block(MEMORIES_INTRO, [quote_of(hit) for hit in hits]).rstrip())
    return "\n\n".join(parts), hits


def _is_in(text: str, said: str) -> bool:
    return text in said or quoted(text) in said
