"""How deep JSON nests and how much it holds, seen in its bytes before anything parses them.

Parsers recurse and make many bytes of few. This looks only at what stands outside strings, block
by block and without recursion: escapes are cut, quotes split, brackets summed. Up to the first
slip in the JSON it sees what a parser sees; behind it no parser goes.
"""

from __future__ import annotations

import numpy as np

from memorist.errors import InvalidError

BLOCK = 64 * 1024
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


class Nesting:
    """Reads JSON as it comes; refuses what is too deep or holds too many values."""

    def __init__(self, *, most_depth: int, most_values: int) -> None:
        self._most_depth = most_depth
        self._most_values = most_values
        self._depth = 0
        self._in_string = 0
        self._held = b""  # a backslash whose escape is in the next block
        self.deepest = 0
        self.values = 0

    def feed(self, chunk: bytes) -> None:
        """Read on; raises InvalidError as soon as it is too much."""
        for start in range(0, len(chunk), BLOCK):
            self._read(chunk[start : start + BLOCK])
            if self.deepest > self._most_depth:
                raise InvalidError(f"the JSON nests deeper than {self._most_depth} levels")
            if self.values > self._most_values:
                raise InvalidError(f"the JSON holds more than {self._most_values} values")

    def _read(self, block: bytes) -> None:
        if b"\0" in block:  # never in JSON as UTF-8; in UTF-16, which parsers take, always
            raise InvalidError("the JSON is not UTF-8, or holds a NUL byte")
        outside = self._outside(block)
        self.values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        brackets = outside.translate(None, NOT_BRACKETS)
        if brackets:
            steps = _STEPS[np.frombuffer(brackets, np.uint8)]
            depths = self._depth + np.cumsum(steps, dtype=np.int64)
            self.deepest = max(self.deepest, int(depths.max()))
            self._depth = int(depths[-1])

    def _outside(self, block: bytes) -> bytes:
        """What of the block is not in a string."""
        text = (self._held + block).replace(b"\\\\", b"")
        self._held = b"\\" if text.endswith(b"\\") else b""
        parts = text.removesuffix(b"\\").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) - 1 & 1
        return outside
