"""How deep JSON nests, seen in its bytes: the same as a parser sees."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memorist.errors import InvalidError
from memorist.server.http.nesting import BLOCK, Nesting

MIB = 1024 * 1024
TRICKY = st.text(st.sampled_from('[]{}"\\,:\n/u0é漢') | st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    TRICKY | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=30,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 0


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + sum(map(count, inner)) if isinstance(value, dict | list) else 1


def where_it_breaks(text: str) -> int:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos
    return len(text)


def stepwise_depth(text: str) -> int:
    """The same as is tested, so slowly and plainly that it must be right."""
    depth = deepest = 0
    in_string = escaped = False
    for mark in text:
        if in_string:
            in_string = escaped or mark != '"'
            escaped = mark == "\\" and not escaped
        else:
            in_string = mark == '"'
            depth += (mark in "[{") - (mark in "]}")
            deepest = max(deepest, depth)
    return deepest


def read(*chunks: bytes) -> Nesting:
    nesting = Nesting(most_depth=10**9, most_values=10**9)
    for chunk in chunks:
        nesting.feed(chunk)
    return nesting


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_the_depth_is_the_one_that_a_parser_finds(value: Any, ascii: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    assert read(text.encode()).deepest == depth(json.loads(text))


@given(VALUES, st.integers(1, 7))
@example(["\\", ["[[["]], 1)
@example({"\\\\": "[", "a": '"{'}, 2)
def test_it_does_not_matter_where_the_bytes_are_cut(value: Any, step: int) -> None:
    body = json.dumps(value).encode()
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    assert read(*pieces).deepest == depth(value)


@given(VALUES)
def test_no_fewer_values_are_counted_than_there_are_but_for_the_first(value: Any) -> None:
    assert count(value) - 1 <= read(json.dumps(value).encode()).values <= 2 * count(value)


@given(
    st.lists(st.sampled_from(['"', "\\", "[", "]", "{", '{"":', "a", ",", " ", "1"]), max_size=40)
)
def test_of_what_is_no_json_it_sees_as_deep_as_a_parser_goes(pieces: list[str]) -> None:
    text = "".join(["[[", *pieces])
    assert read(text.encode()).deepest >= stepwise_depth(text[: where_it_breaks(text)])


@given(st.integers(0, 200))
def test_what_a_parser_would_go_into_is_refused_beyond_the_limit(levels: int) -> None:
    nesting = Nesting(most_depth=64, most_values=10**9)
    body = b'{"a":[' * (levels // 2) + b"[" * (levels % 2)
    if levels > 64:
        with pytest.raises(InvalidError, match="64 levels"):
            nesting.feed(body)
    else:
        nesting.feed(body)
        assert nesting.deepest == levels


def test_a_string_of_brackets_over_many_blocks_is_flat() -> None:
    body = b'["' + b"[{" * BLOCK + b'\\"' * BLOCK + b"\\\\" * BLOCK + b'"]'
    assert read(body).deepest == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_encodings_that_parsers_take_but_hide_quotes_are_refused(encoding: str) -> None:
    body = json.dumps(['"', ["["]]).encode(encoding)
    with pytest.raises(InvalidError, match="UTF-8"):
        read(body)


def test_too_many_values_are_refused_however_flat() -> None:
    with pytest.raises(InvalidError, match="more than 100 values"):
        Nesting(most_depth=64, most_values=100).feed(b"[" + b"0," * 100 + b"0]")


@pytest.mark.parametrize(
    "unit", [b"[]", b'"",', b"\\\\", b'\\"', b"{}", b'{"a":1},', b"x", b'"ab",', b"]"]
)
def test_eight_mebibytes_of_anything_are_read_in_little_time(unit: bytes) -> None:
    body = b'["' + (unit * (8 * MIB // len(unit)))
    began = time.process_time()
    read(body)
    assert time.process_time() - began < 2.0  # some 0.1 on a quiet machine
