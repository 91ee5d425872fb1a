"""Content parts that a server accepts: text, tool calls and results, and media as bytes.

Media by URL or path are refused. The model's server fetches what a content part names, so a URL
in a message would be requested from inside somebody's network (SSRF).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from memorist.errors import ImageError, InvalidError
from memorist.language.patterns import Pattern

TEXT_TYPES = {
    "text", "input_text", "output_text", "summary_text", "refusal", "citation",
    "thinking", "redacted_thinking", "reasoning", "reasoning_text", "reasoning_summary",
}  # fmt: skip
TEXT_KEYS = {
    "type", "text", "id", "index", "annotations", "citations", "cache_control", "extras", "data",
    "thinking", "signature", "reasoning", "summary", "refusal", "encrypted_content", "status",
    "phase", "provider", "logprobs", "title", "name",
}  # fmt: skip
TOOL_SUFFIXES = ("_call", "_call_chunk", "_use", "_result", "_output", "_response", "_code")
TOOL_RESULTS = ("content", "output", "result")  # the keys that may hold parts themselves
MEDIA_TYPES = {
    "image", "image_url", "input_image", "image_file", "audio", "audio_url", "input_audio",
    "video", "video_url", "input_video", "file", "input_file", "document", "media", "text-plain",
    "container_upload", "computer_screenshot",
}  # fmt: skip
# Parts without a type, as Google's and Amazon's APIs have them, are known by their only key.
UNTYPED_TEXT = {"text", "function_call", "functionCall", "function_response", "functionResponse"}
UNTYPED_MEDIA = {
    "image", "audio", "video", "document", "file", "image_url", "input_image", "image_file",
    "audio_url", "input_audio", "video_url", "file_url", "file_data", "fileData", "file_uri",
    "fileUri", "inline_data", "inlineData",
}  # fmt: skip
FORMAT_KEYS = ("media_type", "mime_type", "mimeType", "format")
DESCRIPTIVE_KEYS = {
    *FORMAT_KEYS, "type", "source_type", "detail", "filename", "name", "title", "id", "text",
    "alt_text", "context", "display_name", "displayName", "transcript", "ttl",
}  # fmt: skip
REFUSED = (
    "a content part is refused: send text, tool calls and results, or media as data URLs or "
    "as base64 data with a media type; URLs and paths are not read"
)
_BASE64 = Pattern(r"[A-Za-z0-9+/_\s-]*={0,2}\s*\z")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]")


def check_content(content: Any) -> None:
    """Raise ImageError if a message's content holds a part that is not accepted."""
    if isinstance(content, list):
        for part in content:
            _check_part(part)
    elif isinstance(content, Mapping) and _is_media(content):
        _check_media(content, _type(content))


def check_structured_data(structured_data: Mapping[str, Any] | None) -> None:
    """The same for LangChain's form of a message, which is stored as JSON text beside ours."""
    stored = (structured_data or {}).get("langchain")
    try:
        message = json.loads(stored) if isinstance(stored, str) else None
    except ValueError:  # nobody else can read it either
        return
    except RecursionError:
        raise InvalidError("structured_data: langchain is nested too deeply") from None
    if isinstance(message, Mapping):
        check_content(message.get("content"))


def _check_part(part: Any) -> None:
    if isinstance(part, list):
        check_content(part)
    elif isinstance(part, Mapping):
        kind = _type(part)
        if _is_media(part):
            _check_media(part, kind)
        elif kind.endswith(TOOL_SUFFIXES):
            for name in TOOL_RESULTS:
                check_content(part.get(name))
        elif not part.keys() <= (TEXT_KEYS if kind in TEXT_TYPES else UNTYPED_TEXT):
            raise ImageError(REFUSED)


def _is_media(part: Mapping[str, Any]) -> bool:
    kind = _type(part)
    if not kind:
        return any(isinstance(part[name], Mapping) for name in part.keys() & UNTYPED_MEDIA)
    return kind in MEDIA_TYPES


def _type(part: Mapping[str, Any]) -> str:
    return str(part.get("type") or "").lower()


def _check_media(part: Mapping[str, Any], path: str) -> None:
    """Every string in a media part must describe it or be its bytes."""
    format_ = next((part[name] for name in FORMAT_KEYS if isinstance(part.get(name), str)), "")
    descriptive = DESCRIPTIVE_KEYS
    if part.get("source_type") == "id":  # the id names a file at the provider's
        descriptive = DESCRIPTIVE_KEYS - {"id"}
    for name, value in part.items():
        if name not in descriptive or not isinstance(value, str):
            _check_value(value, name, format_, f"{path} {name}")


def _check_value(value: Any, name: str, format_: str, path: str) -> None:
    if isinstance(value, Mapping):
        _check_media(value, path)
    elif isinstance(value, list):
        for item in value:
            _check_value(item, "", "", path)
    elif isinstance(value, str) and not _is_bytes(value, name, format_, path):
        raise ImageError(REFUSED)


def _is_bytes(value: str, name: str, format_: str, path: str) -> bool:
    if name in ("data", "base64", "bytes") and format_:
        return format_.startswith("text/") or _BASE64.match(value) is not None
    if "image" in path:
        return value.startswith("data:image/")
    return _DATA_URL.match(value) is not None
