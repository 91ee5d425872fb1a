"""Messages as chat APIs take them: the chat-completions form, and Anthropic's."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memorist.errors import ImageError
from memorist.records.message import Message, readable

ChatMessage = dict[str, Any]
ReadImage = Callable[[str], str]

UNREADABLE = "(an image that cannot be read)"
SHOWN = "(an image)"
_NOT_IN_A_NAME = re.compile(r"[^\w-]+")


def to_chat_message(message: Message, read_image: ReadImage | None = None) -> ChatMessage | None:
    """The message without what an API would refuse; None if nothing remains.

    Only users may send images: another role's are replaced by a remark. Names have no spaces. A
    content part of a kind that not every API knows becomes text.
    """
    if message.tool_calls and message.role != "assistant":  # others may not call tools
        message = message.changed(tool_calls=())
    sent = message.to_wire()
    if message.agent_calls and not message.content:
        sent["content"] = message.text
    content = _content(sent["content"], message.role, read_image)
    if not _says_something(content) and not message.tool_calls and message.role != "tool":
        return None
    sent["content"] = content if _says_something(content) or message.role == "tool" else None
    if message.name is not None:
        sent["name"] = _NOT_IN_A_NAME.sub("_", message.name)[:64] or "_"
    if message.tool_calls:  # an id twice would ask for its result twice
        unique = {call["id"]: call for call in reversed(sent["tool_calls"])}
        sent["tool_calls"] = list(reversed(unique.values()))
    return sent


def _content(content: Any, role: str, read_image: ReadImage | None) -> Any:
    if not isinstance(content, list):
        return content or ""
    parts = [_part(part, role, read_image) for part in content]
    parts = [part for part in parts if part["type"] != "text" or part["text"].strip()]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Any, role: str, read_image: ReadImage | None) -> ChatMessage:
    if isinstance(part, Mapping) and part.get("type") == "image_url":
        return _image(part, read_image) if role == "user" else _text(SHOWN)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return _text(part["text"])
    return _text(readable(part))


def _image(part: Mapping[str, Any], read_image: ReadImage | None) -> ChatMessage:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url:
        return _text(UNREADABLE)
    if not url.startswith(("data:", "http://", "https://")):
        try:
            url = read_image(url) if read_image is not None else ""
        except ImageError:
            url = ""
    if not url:
        return _text(UNREADABLE)
    detail = {"detail": image["detail"]} if isinstance(image, Mapping) and "detail" in image else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _text(text: str) -> ChatMessage:
    return {"type": "text", "text": text}


def _says_something(content: Any) -> bool:
    return bool(content.strip() if isinstance(content, str) else content)


_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def anthropic_form(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """`system` and `messages` for Anthropic's API.

    Tool results stand in user messages, and consecutive messages of a role become one.
    """
    system = [str(message["content"]) for message in messages if message["role"] == "system"]
    turns: list[dict[str, Any]] = []
    ids = _CallIds()
    for message in messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        parts = _anthropic_parts(message, ids)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += parts
        else:
            turns.append({"role": role, "content": parts})
    return {"system": "\n\n".join(system), "messages": turns}


class _CallIds:
    """Ids of tool calls as Anthropic accepts them: letters, digits, `_` and `-`, none twice."""

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


def _anthropic_parts(message: ChatMessage, ids: _CallIds) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": ids.answered(message["tool_call_id"])}
        content = _anthropic_content(message["content"])
        return [{**result, "content": content} if content else result]
    return [
        *_anthropic_content(message["content"]),
        *(_anthropic_call(call, ids) for call in message.get("tool_calls", ())),
    ]


def _anthropic_content(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content.strip() else []
    return [
        _anthropic_image(part) if part["type"] == "image_url" else part for part in content or ()
    ]


def _anthropic_image(part: ChatMessage) -> dict[str, Any]:
    url = part["image_url"]["url"]
    if data := _DATA_URL.match(url):
        source = {"type": "base64", "media_type": data[1], "data": data[2]}
    else:
        source = {"type": "url", "url": url}
    return {"type": "image", "source": source}


def _anthropic_call(call: ChatMessage, ids: _CallIds) -> dict[str, Any]:
    inner = call.get("function") or call.get("custom") or {}
    arguments = inner.get("arguments", inner.get("input", ""))
    with contextlib.suppress(ValueError, RecursionError):
        arguments = json.loads(arguments, parse_constant=_refuse)
    if not isinstance(arguments, dict):
        arguments = {"input": arguments} if arguments else {}
    name = inner.get("name", "")
    return {"type": "tool_use", "id": ids.called(call["id"]), "name": name, "input": arguments}


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
