"""Wires: a message as any chat-completions API takes it, or nothing where it says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from memorist.errors import ImageError
from memorist.records.message import Message, readable

Wire = dict[str, Any]
ReadImage = Callable[[str], str]

UNREADABLE = "(an image that cannot be read)"
SHOWN = "(an image)"
_NOT_IN_A_NAME = re.compile(r"[^\w-]+")


def wire_of(message: Message, read_image: ReadImage | None = None) -> Wire | None:
    """The message with what an API would refuse left out; None if nothing remains.

    Only users may show images, so that another's are told of in words; names hold no spaces; a
    part of a kind that not every API knows is told in its words.
    """
    if message.tool_calls and message.role != "assistant":  # nobody else may call
        message = message.changed(tool_calls=())
    wire = message.to_wire()
    if message.agent_calls and not message.content:
        wire["content"] = message.text
    content = _content(wire["content"], message.role, read_image)
    if not _says_something(content) and not message.tool_calls and message.role != "tool":
        return None
    wire["content"] = content if _says_something(content) or message.role == "tool" else None
    if message.name is not None:
        wire["name"] = _NOT_IN_A_NAME.sub("_", message.name)[:64] or "_"
    if message.tool_calls:  # an id twice in one message would ask for one answer twice
        unique = {call["id"]: call for call in reversed(wire["tool_calls"])}
        wire["tool_calls"] = list(reversed(unique.values()))
    return wire


def _content(content: Any, role: str, read_image: ReadImage | None) -> Any:
    if not isinstance(content, list):
        return content or ""
    parts = [_part(part, role, read_image) for part in content]
    parts = [part for part in parts if part["type"] != "text" or part["text"].strip()]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Any, role: str, read_image: ReadImage | None) -> Wire:
    if isinstance(part, Mapping) and part.get("type") == "image_url":
        return _image(part, read_image) if role == "user" else _text(SHOWN)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return _text(part["text"])
    return _text(readable(part))


def _image(part: Mapping[str, Any], read_image: ReadImage | None) -> Wire:
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


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _says_something(content: Any) -> bool:
    return bool(content.strip() if isinstance(content, str) else content)
