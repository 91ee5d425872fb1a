"""The prompt of an agent's request: system message with notes and memories, and tools' schemas."""

from __future__ import annotations

from typing import Any

from memorist.context.assemble import (
    ARTICLES_INTRO,
    MEMORIES_INTRO,
    NOTES,
    NOTES_INTRO,
    WindowDraft,
)
from memorist.context.quote import block, quoted
from memorist.errors import MissingExtraError

try:
    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.messages import SystemMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise MissingExtraError("agents") from error


def system_with(own: SystemMessage | None, draft: WindowDraft) -> SystemMessage | None:
    """The agent's own system message with notes in their place, and memories at its end."""
    if own is None or isinstance(own.content, str):
        said = "".join(wire["content"] for wire in draft.system())
        text = "\n\n".join(filter(None, (said, recalled_text(draft))))
        if own is None:
            return SystemMessage(text) if text else None
        return own.model_copy(update={"content": text})
    return own.model_copy(update={"content": _blocks(own.content, draft)})


def recalled_text(draft: WindowDraft) -> str:
    """Memories and articles, quoted, under numbers that an answer may cite."""
    first = len(draft.memories) + 1
    parts = ((MEMORIES_INTRO, draft.memories, 1), (ARTICLES_INTRO, draft.articles, first))
    return "\n".join(block(intro, quotes, at) for intro, quotes, at in parts if quotes).rstrip()


def _blocks(content: list[Any], draft: WindowDraft) -> list[Any]:
    """The same where the content is in parts, which keep what else they carry."""
    note = f"{NOTES_INTRO}\n{quoted(draft.note)}" if draft.note else ""
    placed = [_placed(part, note) for part in content]
    has_place = any(NOTES in str(part) for part in content)
    more = [text for text in ("" if has_place else note, recalled_text(draft)) if text]
    return [*placed, *({"type": "text", "text": text} for text in more)]


def _placed(part: Any, note: str) -> Any:
    if isinstance(part, str):
        return part.replace(NOTES, note)
    if isinstance(part.get("text"), str) and NOTES in part["text"]:
        return {**part, "text": part["text"].replace(NOTES, note)}
    return part


def schemas_of(request: ModelRequest[Any]) -> list[dict[str, Any]]:
    """The schemas that are sent with a request: of its tools, and of the answer it wants."""
    specs = getattr(request.response_format, "schema_specs", None)
    if specs is None:
        spec = getattr(request.response_format, "schema_spec", None)
        specs = [spec] if spec is not None else []
    wanted = [
        {"name": spec.name, "description": spec.description, "parameters": spec.json_schema}
        for spec in specs
    ]
    return [*map(_schema, request.tools), *wanted]


def _schema(tool: Any) -> dict[str, Any]:
    return tool if isinstance(tool, dict) else convert_to_openai_tool(tool)
