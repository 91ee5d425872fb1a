"""JSON read value by value from a stream: the memory it takes is that of one value."""

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from memorist.errors import RecordError
from memorist.records.json_values import has_too_many_values

MAX_VALUE_CHARS = 64 * 1024 * 1024
CHUNK_BYTES = 262_144
MAX_DEPTH = 4  # of the objects around an array
_LITERAL = 16  # characters, at most, of what is half read at the end of a chunk, texts apart
_decode = json.JSONDecoder().raw_decode


class JsonStream:
    """The values of arrays in a stream of JSON, one after another; errors name the place."""

    def __init__(self, stream: BinaryIO, place: str) -> None:
        self._stream, self._place = stream, place
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at = "", 0
        self._passed = 0  # characters before those in `_text`
        self._ended = False

    def arrays(self, keys: tuple[str, ...] = ()) -> Iterator[Any]:
        """The values of an array, or of the one below one of the `keys` of an object.

        Without keys, an object is itself a value. If another array or object follows, so do the
        values in it.
        """
        yield from self._array(keys, MAX_DEPTH)
        while self._next():
            yield from self._array(keys, MAX_DEPTH)

    def _array(self, keys: tuple[str, ...], depth: int) -> Iterator[Any]:
        if self._next() == "{" and keys:
            yield from self._members(keys if depth else (), depth - 1)
            return
        if self._next() == "{":
            yield self._value()
            return
        for _ in self._separated("[", "]"):
            yield self._value()

    def _members(self, keys: tuple[str, ...], depth: int) -> Iterator[Any]:
        for _ in self._separated("{", "}"):
            key = self._value()
            self._take(":")
            if key in keys and self._next() in ("[", "{"):
                yield from self._array(keys, depth)
            else:
                self._value()

    def _separated(self, begin: str, end: str) -> Iterator[None]:
        """Yields before each value between two brackets, which the caller reads."""
        self._take(begin)
        while self._next() != end:
            yield
            if self._next() != end:
                self._take(",")
                if self._next() == end:
                    raise self._error("a comma is followed by nothing")
        self._take(end)

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise self._error(f"`{expected}` is missing")
        self._at += 1

    def _next(self) -> str:
        """The next character that is no space; nothing at the end."""
        while True:
            rest = self._text[self._at : self._at + 1]
            if rest and not rest.isspace():
                return rest
            if rest:
                rest = self._text[self._at :]
                self._at += len(rest) - len(rest.lstrip())
            elif self._ended:
                return ""
            else:
                self._fill(CHUNK_BYTES)

    def _value(self) -> Any:
        self._next()
        size = CHUNK_BYTES
        while True:
            try:
                value, end = _decode(self._text, self._at)
                if end < len(self._text) or self._ended:  # a number may go on
                    self._at = end
                    return value
            except RecursionError:
                raise self._error("it is nested too deeply") from None
            except json.JSONDecodeError as error:
                begun = error.msg.startswith(("Unterminated", "Invalid \\"))
                if self._ended or not (begun or error.pos > len(self._text) - _LITERAL):
                    raise self._error(f"not JSON ({error.msg})", error.pos) from None
            except ValueError:
                raise self._error("a number in it is too long") from None
            if len(self._text) - self._at > MAX_VALUE_CHARS:
                raise self._error(f"an entry has more than {MAX_VALUE_CHARS:,} characters")
            if has_too_many_values(self._text[self._at :]):
                raise self._error("an entry has too many values")
            self._fill(size)
            size *= 2  # so that what is long is not read over and over

    def _fill(self, size: int) -> None:
        self._passed += self._at
        raw = self._stream.read(size)
        self._ended = not raw
        try:
            text = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError:
            raise self._error("not UTF-8", len(self._text)) from None
        self._text, self._at = self._text[self._at :] + text, 0

    def _error(self, what: str, at: int | None = None) -> RecordError:
        position = self._passed + (self._at if at is None else at)
        cut = " (is the file cut off?)" if self._ended else ""
        return RecordError(f"{self._place}, character {position + 1:,}: {what}{cut}")
