"""The tokens of what a model is sent: texts, messages, tools and images."""

import base64
import binascii
import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from memorist.providers.tokenizer import Tokenizer
from memorist.records.json_values import dump_json
from memorist.records.message import Message

CACHED = 200_000
PER_NAME = 1
# Not documented by vendors. In the open models' format a call adds twelve tokens, and a tool's
# result eight more than other messages; models do not see the ids.
PER_CALL = 12
PER_ANSWER = 8
# OpenAI's cookbook, num_tokens_for_tools.
PER_PROPERTIES, PER_PROPERTY, PER_ENUM, PER_CHOICE = 3, 3, -3, 3
_SCHEMAS = ("parameters", "input_schema", "inputSchema")  # OpenAI's, Anthropic's, MCP's
_PLAIN = {"type", "description", "enum"}
_SEEN_TO = {"role", "content", "name", "tool_calls", "tool_call_id"}


@dataclass(frozen=True, slots=True)
class Frame:
    """The tokens that a model's format adds to a message, the reply, a tool and all tools."""

    message: int = 3
    reply: int = 3
    tool: int = 7
    tools: int = 12
    is_openai: bool = True


# OpenAI documents its format; gpt-oss adds a prompt of its own. For the others the most that is
# known: Llama's message, Qwen's reply without thoughts, Claude's prompt for tools.
_FRAMES = {"o200k_base": Frame(), "cl100k_base": Frame(tool=10), "o200k_harmony": Frame(reply=80)}
_OTHER_FRAME = Frame(message=4, reply=8, tools=350, is_openai=False)

Pieces = tuple[int, list[str]]  # a fixed number of tokens, and the texts to be counted besides


class TokenCounter:
    """Counts the tokens of a request; a message is counted once and then looked up.

    Where vendors do not document the format (calls, unknown content parts, odd schemas), the
    larger count is taken, so that it is never too low.
    """

    def __init__(self, tokenizer: Tokenizer, *, cached: int = CACHED) -> None:
        self.tokenizer = tokenizer
        self._frame = _FRAMES.get(tokenizer.name, _OTHER_FRAME)
        self._cached = cached
        # Those used last are at its end; a dict is slow to remove its first.
        self._counts: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._lock = Lock()

    def text(self, text: str) -> int:
        """The tokens of a text."""
        return self.tokenizer.count([text])[0] if text else 0

    def texts(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text."""
        return self.tokenizer.count(texts) if texts else []

    def truncate(self, text: str, max_tokens: int) -> str:
        """The start of a text, of at most `max_tokens`."""
        return self.tokenizer.truncate(text, max_tokens)

    def chat_message(self, message: Mapping[str, Any]) -> int:
        """The tokens of a message in chat-completions form, with those of its frame."""
        return self._sums([self._pieces(message)])[0]

    def request(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """The tokens of a request's messages, and of the frame of the reply."""
        pieces = [self._pieces(message) for message in messages]
        return sum(self._sums(pieces)) + self._frame.reply

    def messages(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of each message; those that are not cached are counted in one go."""
        keys = [(message.message_id, _mark(message)) for message in messages]
        with self._lock:
            counts = {key: self._counts[key] for key in keys if key in self._counts}
            for key in counts:
                self._counts.move_to_end(key)
        if len(counts) < len(keys):
            missing = {key: it for key, it in zip(keys, messages, strict=True) if key not in counts}
            pieces = [self._pieces(message.to_wire()) for message in missing.values()]
            fresh = dict(zip(missing, self._sums(pieces), strict=True))
            counts |= fresh
            with self._lock:
                self._counts |= fresh
                while len(self._counts) > self._cached:
                    self._counts.popitem(last=False)
        return [counts[key] for key in keys]

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """The tokens of tool schemas, in the form of OpenAI, Anthropic or MCP."""
        if not tools:
            return 0
        sums = self._sums([one for tool in tools for one in self._tool(tool)])
        return sum(map(max, sums[::2], sums[1::2])) + self._frame.tools

    def _pieces(self, message: Mapping[str, Any]) -> Pieces:
        """The parts of a message that a model sees."""
        fixed, texts = self._content(message.get("content"))
        fixed += self._frame.message
        texts.append(str(message.get("role", "")))
        if message.get("name"):
            fixed += PER_NAME
            texts.append(str(message["name"]))
        if message.get("role") == "tool":
            fixed += PER_ANSWER
        for call in message.get("tool_calls") or ():
            fixed += PER_CALL
            texts += _call(call)
        texts += [_text(message[key]) for key in message.keys() - _SEEN_TO if message[key]]
        return fixed, texts

    def _content(self, content: Any) -> Pieces:
        if not isinstance(content, list | tuple):
            return 0, [_text(content)] if content else []
        pieces = [self._part(part) for part in content]
        return sum(fixed for fixed, _ in pieces), [text for _, texts in pieces for text in texts]

    def _part(self, part: Any) -> Pieces:
        """One content part; an unknown kind counts as its JSON text."""
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
            return 0, [part["text"]]
        if kind in ("image_url", "input_image", "image"):
            return self._image(part), []
        if kind == "tool_use":
            return PER_CALL, [_text(part.get("name", "")), _text(part.get("input"))]
        if kind == "tool_result":
            fixed, texts = self._content(part.get("content"))
            return fixed + PER_ANSWER, texts
        return 0, [_text(part)]

    def _image(self, part: Mapping[str, Any]) -> int:
        """The tokens of an image, in OpenAI's two forms or Anthropic's.

        OpenAI's by the formula of GPT-4o and GPT-4.1 (GPT-5 and the o-series count less per tile),
        others' by Anthropic's, one token per 750 pixels, or OpenAI's if that is more. The largest
        possible where the size is unknown.
        """
        image: Any = part.get("image_url") or part.get("source") or ""
        url, detail = image, part.get("detail")
        if isinstance(image, Mapping):
            url = image.get("url") or f"data:;base64,{image.get('data', '')}"
            detail = image.get("detail")
        if self._frame.is_openai and detail == "low":
            return LOW_DETAIL
        size = data_url_size(str(url))
        if self._frame.is_openai:
            return tile_tokens(size) if size else LARGEST
        area = -(-size[0] * size[1] // _PIXELS) if size else LARGEST_AREA
        return max(tile_tokens(size) if size else 0, min(LARGEST_AREA, area))

    def _tool(self, tool: Mapping[str, Any]) -> tuple[Pieces, Pieces]:
        """A schema by OpenAI's formula and, where that may not hold, also as its JSON text."""
        inner = tool.get("function")
        inner = inner if isinstance(inner, Mapping) else tool
        schemas = [inner[key] for key in _SCHEMAS if isinstance(inner.get(key), Mapping)]
        properties = schemas[0].get("properties") if schemas else None
        properties = properties if isinstance(properties, Mapping) else {}
        fixed, texts = self._frame.tool, [f"{inner.get('name', '')}:{_brief(inner)}"]
        fixed += PER_PROPERTIES if properties else 0
        for key, value in properties.items():
            value = value if isinstance(value, Mapping) else {}
            choices = value.get("enum")
            choices = choices if isinstance(choices, list | tuple) else ()
            fixed += PER_PROPERTY + (PER_ENUM if choices else 0) + PER_CHOICE * len(choices)
            texts.append(f"{key}:{_text(value.get('type', ''))}:{_brief(value)}")
            texts += map(_text, choices)
        if self._frame.is_openai and inner.get("name") and all(map(_is_plain, properties.values())):
            return (fixed, texts), (0, [])
        return (fixed, texts), (self._frame.tool, [_text(inner)])

    def _sums(self, pieces: Sequence[Pieces]) -> list[int]:
        counts = iter(self.texts([text for _, texts in pieces for text in texts]))
        return [fixed + sum(next(counts) for _ in texts) for fixed, texts in pieces]


def _mark(message: Message) -> int:
    """A hash of all that is counted in a message."""
    content = message.content
    if type(content) is not str and content is not None:
        content = dump_json(content)
    return hash((message.role, content, message.name, message.tool_calls, message.images))


def _call(call: Any) -> list[str]:
    """A tool call's name and arguments, in OpenAI's form or in LangChain's."""
    inner: Any = call
    if isinstance(call, Mapping):
        inner = call.get("function") or call.get("custom") or call
    if not isinstance(inner, Mapping):
        return [_text(call)]
    keys = ("name", "arguments", "args", "input")
    return [_text(inner[key]) for key in keys if inner.get(key)]


def _is_plain(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, Mapping) and value.keys() <= _PLAIN else None
    return isinstance(kind, str) and kind not in ("object", "array")


def _brief(described: Mapping[str, Any]) -> str:
    return _text(described.get("description") or "").removesuffix(".")


def _text(value: Any) -> str:
    """A text unchanged, another value as JSON, or as `str` if JSON cannot hold it."""
    if isinstance(value, str):
        return value
    try:
        return dump_json(value)
    except (TypeError, ValueError):
        return str(value)


LARGEST = 1_445  # eight tiles, the most there can be
LOW_DETAIL = 85
LARGEST_AREA = 4_784  # Claude since 4.7; earlier ones 1,568
_TILE = 170
_PIXELS = 750
_HEAD_CHARS = 400_000  # of base64: a photograph's thumbnail comes before its size
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})

Size = tuple[int, int]


def tile_tokens(size: Size) -> int:
    """85 tokens, and 170 for each 512-pixel tile of the image scaled to 2048 and 768 pixels."""
    width, height = size
    if (long := max(width, height)) > 2048:
        width, height = max(1, width * 2048 // long), max(1, height * 2048 // long)
    if (short := min(width, height)) > 768:
        width, height = width * 768 // short, height * 768 // short
    return LOW_DETAIL + _TILE * -(-width // 512) * -(-height // 512)


def data_url_size(url: str) -> Size | None:
    """Width and height of the image in a data URL; None where they cannot be read."""
    head, comma, _ = url[:200].partition(";base64,")
    if not comma or not head.startswith("data:"):
        return None
    start = len(head) + len(comma)
    text = url[start : start + _HEAD_CHARS]
    try:
        return image_size(base64.b64decode(text[: len(text) // 4 * 4]))
    except (binascii.Error, ValueError):
        return None


def image_size(data: bytes) -> Size | None:
    """Width and height from the header of a PNG, JPEG, GIF or WebP image."""
    size: Size | None = None
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            size = struct.unpack_from(">II", data, 16)
        elif data[:6] in (b"GIF87a", b"GIF89a"):
            size = struct.unpack_from("<HH", data, 6)
        elif data.startswith(b"\xff\xd8"):
            size = _jpeg_size(data)
        elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            size = _webp_size(data)
    except struct.error:  # the data is cut off
        return None
    return size if size and all(size) else None


def _jpeg_size(data: bytes) -> Size | None:
    """The size in the first frame header of a JPEG."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF or marker in _JPEG_BARE:  # padding, or a marker without a length
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _webp_size(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8X":
        low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
        return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
