"""JSON in records: what every store keeps of it, how deep and how large it may be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from memorist.errors import InvalidError, MessageError, RecordError
from memorist.records.values import check_text, replace_unstorable

MAX_JSON_DEPTH = 64
MAX_JSON_VALUES = 3_000_000  # in one record of a file: `[[],[],…]` takes forty times its room
MAX_INT_BITS = 4_096
# Characters that JSON does not escape, though a model may read them as the end of a line, or not
# see them at all.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_Map = Callable[[Any], Any]


def storable(value: Any) -> Any:
    """A copy of JSON in which characters and numbers that no store keeps are replaced."""
    too_deep = MessageError(f"message is nested more than {2 * MAX_JSON_DEPTH} levels deep")
    return map_json(value, _storable, _storable, depth=2 * MAX_JSON_DEPTH, too_deep=too_deep)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return replace_unstorable(value)
    return str(value) if isinstance(value, float) and value - value != 0 else value


def check_json(
    value: Any, field: str, error: type[InvalidError] = RecordError, *, any_text: bool = False
) -> Any:
    """Return a copy of JSON that every store keeps; `any_text` allows NUL and lone surrogates."""

    def check(value: Any) -> Any:
        if isinstance(value, str):
            return str.__str__(value) if any_text else check_text(value, field, error)
        if value is None or isinstance(value, bool | int):
            if value and value.bit_length() > MAX_INT_BITS:
                raise error(f"{field} holds an integer of more than {MAX_INT_BITS} bits")
        elif isinstance(value, float):
            if value - value != 0:
                raise error(f"{field} holds a number that is not finite, which JSON cannot carry")
        elif not isinstance(value, list | tuple | Mapping):
            raise error(f"{field} holds a {type(value).__name__}, which is not JSON")
        return value

    def check_name(key: Any) -> Any:
        if not isinstance(key, str):
            raise error(f"{field} has a key of type {type(key).__name__}; keys are strings")
        return check(key)

    too_deep = error(f"{field} is nested more than {MAX_JSON_DEPTH} levels deep")
    return map_json(value, check, check_name, depth=MAX_JSON_DEPTH, too_deep=too_deep)


def map_json(value: Any, change: _Map, change_key: _Map, *, depth: int, too_deep: Exception) -> Any:
    """A copy of nested lists and dicts, in which each value and each key is changed."""
    if depth < 0:
        raise too_deep
    value = change(value)

    def below(item: Any) -> Any:
        return map_json(item, change, change_key, depth=depth - 1, too_deep=too_deep)

    if isinstance(value, Mapping):
        return {change_key(key): below(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [below(item) for item in value]
    return value


def refuse_constant(name: str) -> None:
    """For `parse_constant` of `json`, which reads NaN and Infinity by itself."""
    raise ValueError(f"{name} is not JSON")


def has_too_many_values(text: str | bytes) -> bool:
    """Whether JSON has more values than may be read at once, however short it is."""
    if len(text) <= MAX_JSON_VALUES:  # mostly
        return False
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return sum(map(raw.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES


def dump_json(value: Any) -> str:
    """JSON as it is stored: compact, in the order of its keys, not escaped."""
    return _COMPACT.encode(value)


def any_json(value: Any, default: _Map | None = None) -> str:
    """The same with lone surrogates escaped, which no file or database takes, as NUL always is."""
    how: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False, "default": default}
    text = json.dumps(value, ensure_ascii=False, **how)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, **how)
    return text


def json_line(value: Any) -> str:
    """JSON for a prompt: one line, which no text in it can break out of."""
    quoted = json.dumps(value, ensure_ascii=False)
    return UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], quoted)
