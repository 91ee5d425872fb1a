"""The tokens of what a model is sent: texts, messages, tools and images."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from memorist.providers.tokenizer import Tokenizer
from memorist.records.message import Message
from memorist.records.values import dump_json

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

Pieces = tuple[int, list[str]]
"""A fixed number of tokens, and the texts to be counted besides."""


class TokenCounter:
    """Counts the tokens of a request; a message is counted once and then looked up.

    Where vendors do not document the format (calls, unknown content parts, odd schemas), the
    larger count is taken, so that it is never too low.
    """

    def __init__(self, tokenizer: Tokenizer, *, cached: int = CACHED) -> None:
        self._tokenizer = tokenizer
        self._frame = _FRAMES.get(tokenizer.name, _OTHER_FRAME)
        self._cached = cached
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The tokenizer's name; that of an estimate says so."""
        return self._tokenizer.name

    @property
    def exact(self) -> bool:
        """Whether texts are counted with the model's own vocabulary."""
        return self._tokenizer.exact

    def text(self, text: str) -> int:
        """The tokens of a text."""
        return self._tokenizer.count([text])[0] if text else 0

    def texts(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text."""
        return self._tokenizer.count(texts) if texts else []

    def truncate(self, text: str, max_tokens: int) -> str:
        """The start of a text, of at most `max_tokens`."""
        return self._tokenizer.truncate(text, max_tokens)

    def chat_message(self, message: Mapping[str, Any]) -> int:
        """The tokens of a message in chat-completions form, with those of its frame."""
        return self._sums([self._pieces(message)])[0]

    def request(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """The tokens of a request's messages, and of the frame of the reply."""
        pieces = [self._pieces(message) for message in messages]
        return sum(self._sums(pieces)) + self._frame.reply

    def messages(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of each message; those that are not cached are counted in one go."""
        marks = [_mark(message) for message in messages]
        counts = list(map(self._look_up, messages, marks))
        missing = [at for at, count in enumerate(counts) if count < 0]
        if missing:
            sums = self._sums([self._pieces(messages[at].to_wire()) for at in missing])
            for at, count in zip(missing, sums, strict=True):
                counts[at] = count
            self._keep((messages[at].message_id, marks[at], counts[at]) for at in missing)
        return counts

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
            count = image_tokens if self._frame.is_openai else area_tokens
            return count(*_image(part)), []
        if kind == "tool_use":
            return PER_CALL, [_text(part.get("name", "")), _text(part.get("input"))]
        if kind == "tool_result":
            fixed, texts = self._content(part.get("content"))
            return fixed + PER_ANSWER, texts
        return 0, [_text(part)]

    def _tool(self, tool: Mapping[str, Any]) -> tuple[Pieces, Pieces]:
        """A schema by OpenAI's formula and, where that may not hold, also as its JSON text."""
        inner = tool.get("function")
        inner = inner if isinstance(inner, Mapping) else tool
        properties = _properties(inner)
        fixed, texts = self._frame.tool, [f"{inner.get('name', '')}:{_brief(inner)}"]
        fixed += PER_PROPERTIES if properties else 0
        for key, value in properties.items():
            more, parts = _property(key, value if isinstance(value, Mapping) else {})
            fixed += more
            texts += parts
        if self._frame.is_openai and inner.get("name") and all(map(_is_plain, properties.values())):
            return (fixed, texts), (0, [])
        return (fixed, texts), (self._frame.tool, [_text(inner)])

    def _sums(self, pieces: Sequence[Pieces]) -> list[int]:
        counts = iter(self.texts([text for _, texts in pieces for text in texts]))
        return [fixed + sum(next(counts) for _ in texts) for fixed, texts in pieces]

    def _look_up(self, message: Message, mark: int) -> int:
        """The cached count, or -1."""
        with self._lock:
            entry = self._counts.get(message.message_id)
            if entry is None or entry[0] != mark:
                return -1
            self._counts.move_to_end(message.message_id)
            return entry[1]

    def _keep(self, counted: Iterable[tuple[str, int, int]]) -> None:
        with self._lock:
            for message_id, mark, count in counted:
                self._counts[message_id] = (mark, count)
                self._counts.move_to_end(message_id)
            while len(self._counts) > self._cached:
                self._counts.popitem(last=False)


def _mark(message: Message) -> int:
    """A hash of all that is counted in a message."""
    content = message.content
    if type(content) is not str and content is not None:
        content = dump_json(content)
    return hash((message.role, content, message.name, message.tool_calls, message.images))


def _image(part: Mapping[str, Any]) -> tuple[str, str]:
    """The URL and the detail of an image, in OpenAI's two forms or Anthropic's."""
    image: Any = part.get("image_url") or part.get("source") or ""
    if not isinstance(image, Mapping):
        return str(image), str(part.get("detail", ""))
    url = image.get("url") or f"data:;base64,{image.get('data', '')}"
    return str(url), str(image.get("detail", ""))


def _call(call: Any) -> list[str]:
    """A tool call's name and arguments, in OpenAI's form or in LangChain's."""
    if not isinstance(call, Mapping):
        return [_text(call)]
    inner = call.get("function") or call.get("custom") or call
    if not isinstance(inner, Mapping):
        return [_text(call)]
    keys = ("name", "arguments", "args", "input")
    return [_text(inner[key]) for key in keys if inner.get(key)]


def _properties(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Any = next((tool[key] for key in _SCHEMAS if isinstance(tool.get(key), Mapping)), {})
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _property(key: str, value: Mapping[str, Any]) -> Pieces:
    choices = value.get("enum")
    choices = choices if isinstance(choices, list | tuple) else ()
    fixed = PER_PROPERTY + (PER_ENUM if choices else 0) + PER_CHOICE * len(choices)
    line = f"{key}:{_text(value.get('type', ''))}:{_brief(value)}"
    return fixed, [line, *map(_text, choices)]


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() <= _PLAIN
        and isinstance(value.get("type"), str)
        and value["type"] not in ("object", "array")
    )


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


def image_tokens(url: str, detail: str = "auto") -> int:
    """OpenAI's count for an image; the largest possible where its size is unknown.

    The formula of GPT-4o and GPT-4.1. GPT-5 and the o-series count less per tile.
    """
    if detail == "low":
        return LOW_DETAIL
    size = data_url_size(url)
    return LARGEST if size is None else tile_tokens(size)


def area_tokens(url: str, detail: str = "auto") -> int:
    """Anthropic's count for an image, one token per 750 pixels, or OpenAI's if that is more."""
    size = data_url_size(url)
    if size is None:
        return LARGEST_AREA
    area = -(-size[0] * size[1] // _PIXELS)
    return max(tile_tokens(size), min(LARGEST_AREA, area))


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
    size = None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        size = (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    elif data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        size = (int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))
    elif data.startswith(b"\xff\xd8"):
        size = next(_jpeg_sizes(data), None)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        size = _webp_size(data)
    return size if size and all(size) else None


def _jpeg_sizes(data: bytes) -> Iterator[Size]:
    """The size in each frame header of a JPEG."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:  # padding, or a marker without a length
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_FRAMES:
            height, width = data[at + 5 : at + 7], data[at + 7 : at + 9]
            yield int.from_bytes(width, "big"), int.from_bytes(height, "big")
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def _webp_size(data: bytes) -> Size | None:
    def number(start: int, stop: int) -> int:
        return int.from_bytes(data[start:stop], "little")

    kind = data[12:16]
    if kind == b"VP8X":
        return number(24, 27) + 1, number(27, 30) + 1
    if kind == b"VP8L":
        bits = number(21, 25)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return number(26, 28) & 0x3FFF, number(28, 30) & 0x3FFF
    return None
