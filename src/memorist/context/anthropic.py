"""The same messages as Anthropic's API takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memorist.context.chat_format import Wire

_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def anthropic_form(messages: Sequence[Wire]) -> dict[str, Any]:
    """System text apart, results of tools inside user messages, neighbours of a role as one."""
    system = [str(wire["content"]) for wire in messages if wire["role"] == "system"]
    turned: list[dict[str, Any]] = []
    ids = _Ids()
    for wire in messages:
        if wire["role"] == "system":
            continue
        role = "assistant" if wire["role"] == "assistant" else "user"
        parts = _parts(wire, ids)
        if turned and turned[-1]["role"] == role:
            turned[-1]["content"] += parts
        else:
            turned.append({"role": role, "content": parts})
    return {"system": "\n\n".join(system), "messages": turned}


class _Ids:
    """Ids of calls as Anthropic wants them: of few characters, and none twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._current: dict[str, str] = {}

    def called(self, call_id: str) -> str:
        plain = name = _NOT_IN_AN_ID.sub("_", call_id) or "call"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{plain}_{number}"
        self._taken.add(name)
        self._current[call_id] = name
        return name

    def answered(self, call_id: str) -> str:
        return self._current[call_id]


def _parts(wire: Wire, ids: _Ids) -> list[dict[str, Any]]:
    if wire["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": ids.answered(wire["tool_call_id"])}
        content = _content(wire["content"])
        return [{**result, "content": content} if content else result]
    return [*_content(wire["content"]), *(_call(call, ids) for call in wire.get("tool_calls", ()))]


def _content(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content.strip() else []
    return [_image(part) if part["type"] == "image_url" else part for part in content or ()]


def _image(part: Wire) -> dict[str, Any]:
    url = part["image_url"]["url"]
    if found := _DATA_URL.match(url):
        source = {"type": "base64", "media_type": found[1], "data": found[2]}
    else:
        source = {"type": "url", "url": url}
    return {"type": "image", "source": source}


def _call(call: Wire, ids: _Ids) -> dict[str, Any]:
    inner = call.get("function") or call.get("custom") or {}
    given = inner.get("arguments", inner.get("input", ""))
    try:
        arguments = json.loads(given, parse_constant=_refuse)
    except (ValueError, RecursionError):
        arguments = given
    if not isinstance(arguments, dict):
        arguments = {"input": arguments} if arguments else {}
    name = inner.get("name", "")
    return {"type": "tool_use", "id": ids.called(call["id"]), "name": name, "input": arguments}


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
