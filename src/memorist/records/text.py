"""Which strings may be stored: one rule for every field and every store."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from memorist.errors import InvalidError, RecordError

MAX_JSON_DEPTH = 64
MAX_KEY_BYTES = 1_000
MAX_INT_BITS = 4_096

# Scripts written without spaces between words: every character counts as a word.
UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_NO_WORD = re.compile(r"[\W_]+")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
# What JSON leaves as it is, though a reader may take it for the end of a line or of a text, or
# not see it at all.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and halves of surrogate pairs


def check_text(value: object, field: str, error: type[InvalidError] = RecordError) -> str:
    """Return `value` if every store keeps it byte for byte, else raise `error` naming `field`."""
    if type(value) is not str:
        if not isinstance(value, str):
            raise error(f"{field} must be a string, got {type(value).__name__}")
        value = str.__str__(value)  # a subclass (an enum, a rich string) is stored as plain text
    if "\x00" in value:
        raise error(f"{field} holds a NUL character, which cannot be stored; remove it")
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise error(
            f"{field} holds a lone surrogate at position {problem.start}, which is not text; "
            "decode the input with errors='replace'"
        ) from None
    return value


def check_each(field: str, *values: str | None) -> None:
    """Raise unless each value is None or text that a store could have kept."""
    for value in values:
        if value is not None:
            check_text(value, field)


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD in the place of each character that `check_text` refuses."""
    return UNSTORABLE.sub("\ufffd", text)


def check_key(value: object, field: str, error: type[InvalidError] = RecordError) -> str:
    """As `check_text`, for short strings that name something and are looked up by."""
    text = check_text(value, field, error)
    if len(text) * 4 > MAX_KEY_BYTES and len(text.encode()) > MAX_KEY_BYTES:
        raise error(f"{field} is longer than {MAX_KEY_BYTES} bytes")
    return text


def check_json(
    value: Any, field: str, error: type[InvalidError] = RecordError, depth: int = 0
) -> Any:
    """Return a private copy of `value` if it is plain JSON that every store keeps."""
    if depth > MAX_JSON_DEPTH:
        raise error(f"{field} is nested more than {MAX_JSON_DEPTH} levels deep")
    if isinstance(value, str):
        return check_text(value, field, error)
    if value is None or isinstance(value, bool | int):
        if value and value.bit_length() > MAX_INT_BITS:
            raise error(f"{field} holds an integer of more than {MAX_INT_BITS} bits")
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise error(f"{field} holds a number that is not finite, which JSON cannot carry")
        return value
    if isinstance(value, list | tuple):
        return [check_json(item, field, error, depth + 1) for item in value]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise error(f"{field} has a key of type {type(key).__name__}; keys are strings")
        return {
            check_text(key, field, error): check_json(item, field, error, depth + 1)
            for key, item in value.items()
        }
    raise error(f"{field} holds a {type(value).__name__}, which is not JSON")


def dump_json(value: Any) -> str:
    """JSON as we store it: compact, key order kept, text readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_line(value: Any) -> str:
    """JSON as a model is shown it: in one line, which no text in it can leave."""
    quoted = json.dumps(value, ensure_ascii=False)
    return UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], quoted)


def shorten(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long to be sent."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 3 // 4]} […] {text[-longest // 4 :]}"


def fold(text: str) -> str:
    """Text as both stores index and search it: lower case, no accents, spaces between words."""
    if text.isascii():
        return text.translate(_ASCII)
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    spaced = UNSPACED.sub(r" \1 ", unicodedata.normalize("NFC", plain))
    return _NO_WORD.sub(" ", spaced.casefold())
