"""Where: conditions on a JSON object, as LangGraph's stores take them. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memorist.errors import InvalidError
from memorist.records.text import MAX_JSON_DEPTH

Where = Mapping[str, Any]
"""What must hold for each key: a value, a part of an object, or operators such as `$gt`."""


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A comparison of numbers with numbers and text with text; nothing else has an order."""

    def holds(value: Any, bound: Any) -> bool:
        if isinstance(value, bool) or isinstance(bound, bool):
            return False
        for kind in ((int, float), str):
            if isinstance(value, kind) and isinstance(bound, kind):
                return compare(value, bound)
        return False

    return holds


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": same,
    "$ne": lambda value, other: not same(value, other),
    "$gt": _ordered(lambda value, bound: value > bound),
    "$gte": _ordered(lambda value, bound: value >= bound),
    "$lt": _ordered(lambda value, bound: value < bound),
    "$lte": _ordered(lambda value, bound: value <= bound),
}


def passes(value: Any, condition: Any) -> bool:
    """Whether a value meets a condition; what is missing counts as null."""
    if isinstance(condition, Mapping):
        if _has_operators(condition):
            return all(OPERATORS[name](value, other) for name, other in condition.items())
        return isinstance(value, Mapping) and all(
            passes(value.get(key), wanted) for key, wanted in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(map(passes, value, condition))
        )
    return same(value, condition)


def check_where(condition: Any, depth: int = 0) -> None:
    """Raise if a condition is not one, before anything is looked at."""
    if depth > MAX_JSON_DEPTH:
        raise InvalidError(f"the filter is nested more than {MAX_JSON_DEPTH} levels deep")
    if isinstance(condition, list | tuple):
        for part in condition:
            check_where(part, depth + 1)
    if not isinstance(condition, Mapping):
        return
    if any(not isinstance(key, str) for key in condition):
        raise InvalidError("a filter's keys are strings")
    if _has_operators(condition):
        if condition.keys() - OPERATORS:
            raise InvalidError(f"a filter's operators are {', '.join(OPERATORS)}")
        return
    for wanted in condition.values():
        check_where(wanted, depth + 1)


def _has_operators(condition: Mapping[str, Any]) -> bool:
    return any(key.startswith("$") for key in condition)
