"""Shown: the pictures, files, sounds and films in what is said come as bytes, never by address.

Whatever the server hands to a model, the model's own server may fetch: an address in a message
would be asked for from inside of somebody's network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memorist.errors import ImageError, InvalidError

_WORDS = ("image", "audio", "video")  # in the name of a part's type
_TYPES = {"file", "input_file", "document", "media", "text-plain", "container_upload"}
_TOOLS = ("_call", "_use", "_result", "_output", "_response")  # how the types of tools' parts end
_KEYS = {
    "image_url",
    "input_image",
    "image_file",
    "audio_url",
    "input_audio",
    "video_url",
    "file_url",
    "file_data",
    "fileData",
    "file_uri",
    "fileUri",
    "inline_data",
    "inlineData",
}
_HOLDERS = {"image", "audio", "video", "document", "file"}  # of a dict, where there is no type
_GIVEN = {"input", "arguments", "args"}  # to a tool, by the model: anything
_MEDIA_TYPES = ("media_type", "mime_type", "mimeType", "format")
_TOLD = {
    *_MEDIA_TYPES,
    "type",
    "source_type",
    "detail",
    "filename",
    "name",
    "title",
    "id",
    "text",
    "alt_text",
    "context",
    "display_name",
    "displayName",
    "transcript",
    "ttl",
}
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]*={0,2}\s*")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]")


def refuse_addresses(content: Any) -> None:
    """Raise ImageError where a content's parts show anything that is not in them as bytes."""
    if isinstance(content, list):
        for part in content:
            _walk(part)
    elif isinstance(content, Mapping) and _shows(content):
        _check(content, _kind(content))


def refuse_kept(structured_data: Mapping[str, Any] | None) -> None:
    """The same for LangChain's form of a message, which is kept as JSON beside ours."""
    kept = (structured_data or {}).get("langchain")
    try:
        refuse_addresses([_read(kept)] if isinstance(kept, str) else None)
    except RecursionError:
        raise InvalidError("structured_data: langchain is nested too deeply") from None


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # nobody else can read it either
        return None


def _walk(part: Any) -> None:
    """Look through a part, and those in it; what a tool is given is the tool's."""
    if isinstance(part, list):
        for one in part:
            _walk(one)
    elif isinstance(part, Mapping) and _shows(part):
        _check(part, _kind(part))
    elif isinstance(part, Mapping) and part.get("type") != "text":
        for name, value in part.items():
            if name not in _GIVEN:
                _walk(value)


def _shows(part: Mapping[str, Any]) -> bool:
    kind = _kind(part)
    if kind in _TYPES or part.keys() & _KEYS:
        return True
    if not kind:
        return any(isinstance(part[name], Mapping) for name in part.keys() & _HOLDERS)
    return any(word in kind for word in _WORDS) and not kind.endswith(_TOOLS)


def _kind(part: Mapping[str, Any]) -> str:
    return str(part.get("type") or "").lower()


def _check(part: Mapping[str, Any], where: str) -> None:
    """Every text in such a part either says what it is, or is its bytes."""
    media = next((part[name] for name in _MEDIA_TYPES if isinstance(part.get(name), str)), "")
    told = _TOLD if part.get("source_type") != "id" else _TOLD - {"id"}  # then it is an address
    for name, value in part.items():
        if name not in told or not isinstance(value, str):
            _check_value(value, name, media, f"{where} {name}")


def _check_value(value: Any, name: str, media: str, where: str) -> None:
    if isinstance(value, Mapping):
        _check(value, where)
    elif isinstance(value, list):
        for one in value:
            _check_value(one, "", "", where)
    elif isinstance(value, str) and not _is_bytes(value, name, media, where):
        raise ImageError(
            "images and files from the network must be data URLs, or base64 data with a media "
            "type; paths and URLs are not read"
        )


def _is_bytes(value: str, name: str, media: str, where: str) -> bool:
    if name in ("data", "base64", "bytes") and media:
        return media.startswith("text/") or _BASE64.fullmatch(value) is not None
    if "image" in where:
        return value.startswith("data:image/")
    return _DATA_URL.match(value) is not None
