"""Valid MCP requests, and the same with one or more things gone wrong."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.hostile import HOSTILE_SHAPES

KEPT = {"content": "The build needs Python 3.11.", "importance": 0.8, "tags": ["build"]}
CALLS: dict[str, dict[str, Any]] = {
    "recall": {"query": "Berlin", "limit": 5},
    "remember": {"content": "I moved to Berlin in March.", "role": "user"},
    "store_session_message": {
        "session_id": "s1",
        "role": "user",
        "content": "Hello.",
        "importance_score": 0.7,
        "message_id": "m1",
        "user_id": "ada",
    },
    "store_concept": KEPT,
    "store_episode": KEPT,
    "store_procedure": KEPT,
    "store_working_memory": KEPT,
    "store_fact": {
        "content": "Ada speaks German.",
        "subject": "Ada",
        "predicate": "speaks",
        "object": "German",
    },
    "summarize_session": {"session_id": "s1", "force_update": True},
    "manage_long_term_memory": {"operation": "append", "content": "Likes tea."},
    "retrieve_context": {"query": "How long?", "top_k": 3, "reserved_tokens": 10},
}
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "fuzzer", "version": "1"}}),
    ("ping", {}),
    ("tools/list", {"cursor": "x"}),
    ("resources/list", {}),
    ("resources/read", {"uri": "memorist://notes"}),
    ("resources/read", {"uri": "memorist://sessions/ada/s1"}),
    ("resources/subscribe", {"uri": "memorist://notes"}),
    ("prompts/get", {"name": "ask_with_memory", "arguments": {"question": "Where?"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
    ("notifications/cancelled", {"requestId": 1}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("no/such/method", {}),
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 2**53, 2**63, 10**400, 0.1, 1e308, "", "\x00", "x" * 5_000, "𝕏" * 300,
    "\u202e", "\ud800", "%00", "../../etc/passwd", "'; DROP TABLE messages; --",
    "memorist://notes/a/b/c/d", "memorist://notes/%ff", "memorist://sessions/%2e%2e/%00",
    "\r\nX: y", [], {}, [{}], {"a": {"b": {"c": []}}}, "2.0", {"$ref": "#"},
    *(shape * 50 for shape in HOSTILE_SHAPES[::7]),
]  # fmt: skip
BODIES = [
    b"", b"{", b"null", b"[]", b"{}", b'"x"', b"NaN", b"1e999", b"\xff\xfe", b"\x00", b"9" * 5_000,
    b"[" * 100_000, b"\xef\xbb\xbf{}", b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":-Infinity}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
]  # fmt: skip
HEADERS = [
    ("content-type", "text/plain"), ("content-type", "application/json; charset=utf-16"),
    ("accept", ""), ("accept", "text/html"), ("accept", ";;q="), ("mcp-session-id", "\x7f"),
    ("mcp-protocol-version", "1999-01-01"), ("mcp-protocol-version", "é"),
    ("last-event-id", "x" * 3_000), ("authorization", "Bearer /"), ("authorization", "nothing"),
]  # fmt: skip


class FuzzRequest(NamedTuple):
    """A POST to /mcp."""

    headers: list[tuple[bytes, bytes]]
    body: bytes


def fuzz_requests(count: int, seed: int) -> Iterator[FuzzRequest]:
    """So many requests, the same for the same seed; every body and header of the lists is there."""
    chance = random.Random(seed)
    usual = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer acme/ada",
    }
    for number in range(count):
        message = _valid(chance, number)
        body = json.dumps(message).encode()
        headers = usual
        if number < len(BODIES):
            body = BODIES[number]
        elif number < len(BODIES) + len(HEADERS):
            headers = usual | dict([HEADERS[number - len(BODIES)]])
        else:
            for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
                message = _mutated(chance, message)
            body = json.dumps([message] * 2 if chance.random() < 0.03 else message).encode()
        raw = [(name.encode(), text.encode("latin-1")) for name, text in headers.items()]
        yield FuzzRequest(raw, body)


def _valid(chance: random.Random, number: int) -> Any:
    if chance.random() < 0.6:
        name = chance.choice(list(CALLS))
        method, params = "tools/call", {"name": name, "arguments": copy.deepcopy(CALLS[name])}
    else:
        method, params = copy.deepcopy(chance.choice(METHODS))
    if chance.random() < 0.2:
        params["_meta"] = {"progressToken": number}
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if method.startswith("notif") else message | {"id": number}


def _mutated(chance: random.Random, message: Any) -> Any:
    """A message of which one value, somewhere in it, is another, missing, or under another name."""
    places = list(_places(message))
    inner = [place for place in places if place[0] is not message]
    if not places:
        return chance.choice(VALUES)
    holder, key = chance.choice(inner if inner and chance.random() < 0.85 else places)
    way = chance.random()
    if way < 0.6:
        holder[key] = copy.deepcopy(chance.choice(VALUES))
    elif way < 0.8:
        del holder[key]
    elif isinstance(holder, dict):
        holder[chance.choice(("x", "", "\x00", "id", "user_id", "_meta", "task"))] = holder[key]
    else:
        holder.append(holder[key])
    return message


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield value, key
        yield from _places(value[key])
