"""How large an image is, from its first bytes, and how many tokens a model counts for it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

LARGEST = 1_445  # eight tiles, whatever was sent
LOW_DETAIL = 85
LARGEST_AREA = 4_784  # of Claude since 4.7; of those before it, 1,568
_TILE = 170
_PIXELS = 750
_HEAD_CHARS = 400_000  # of base64: a photograph's own thumbnail lies before its size
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})

Size = tuple[int, int]


def image_tokens(url: str, detail: str = "auto") -> int:
    """OpenAI's tiles of an image; the most there can be where its size is not known.

    The formula of GPT-4o and GPT-4.1. GPT-5 and the o-series count less per tile.
    """
    if detail == "low":
        return LOW_DETAIL
    size = data_url_size(url)
    return LARGEST if size is None else tile_tokens(size)


def area_tokens(url: str, detail: str = "auto") -> int:
    """Anthropic's count, a token for 750 pixels, or OpenAI's where that is more."""
    size = data_url_size(url)
    if size is None:
        return LARGEST_AREA
    area = -(-size[0] * size[1] // _PIXELS)
    return max(tile_tokens(size), min(LARGEST_AREA, area))


def tile_tokens(size: Size) -> int:
    """85, and 170 for each 512-pixel tile of the image fitted into 2048 and then 768 pixels."""
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
    """The size in each frame header, found by stepping from marker to marker."""
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
