"""Requests that no MCP client should send: valid ones with one or more things gone wrong."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import httpx

WORKERS = 4
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "fuzzer", "version": "1"},
}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "fuzzer", "version": "1"},
}
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
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", HELLO),
    ("ping", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("resources/read", {"uri": "memorist://notes"}),
    ("resources/read", {"uri": "memorist://sessions/ada/s1"}),
    ("resources/read", {"uri": "memorist://notes/ada/tutor"}),
    ("resources/subscribe", {"uri": "memorist://notes"}),
    ("prompts/get", {"name": "ask_with_memory", "arguments": {"question": "Where?"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "ask_with_memory"},
            "argument": {"name": "question", "value": "W"},
        },
    ),
    ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
    ("tasks/get", {"taskId": "t1"}),
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 1}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("no/such/method", {}),
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    -(2**70),
    10**400,
    0.1,
    -0.0,
    1e308,
    "",
    " ",
    "\x00",
    "a\x00b",
    "x" * 5_000,
    "𝕏" * 300,
    "\u202e",
    "\ufeff",
    "\ud800",
    "a\udfff",
    "%00",
    "../../etc/passwd",
    "'; DROP TABLE messages; --",
    "{user}",
    "memorist://notes/a/b/c/d",
    "memorist://notes/%ff",
    "memorist://sessions/%2e%2e/%00",
    "http://127.0.0.1/",
    "\r\nX: y",
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    {"a": {"b": {"c": []}}},
    [None] * 50,
    "initialize",
    "2.0",
    {"type": "text", "text": "x"},
    {"$ref": "#"},
    "1e999",
    "NaN",
]
RAW = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"[[]]",
    b"{}",
    b'"x"',
    b"1",
    b"NaN",
    b"1e999",
    b"\xff\xfe",
    b"\x00",
    b"9" * 5_000,
    b"[" * 100_000,
    b'{"a":' * 70 + b"1" + b"}" * 70,
    b"\xef\xbb\xbf{}",
    b"data: {}",
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
    b"--x\r\n\r\n",
    b'{"jsonrpc":"2.0","id":1,"id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":-Infinity}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}',
]
HEADERS: dict[str, list[str]] = {
    "content-type": [
        "text/plain",
        "",
        "application/json; charset=utf-16",
        "multipart/form-data; boundary=x",
        "application/xml",
        "APPLICATION/JSON",
        "application/json, text/plain",
    ],
    "accept": [
        "",
        "*/*",
        "application/json",
        "text/event-stream",
        "text/html",
        ";;q=",
        "a" * 3_000,
    ],
    "mcp-session-id": ["wrong", "", "x" * 3_000, "\x7f", "é", "../"],
    "mcp-protocol-version": [
        "2025-11-25",
        "2024-11-05",
        "2026-07-28",
        "1999-01-01",
        "",
        "x",
        "9" * 3_000,
        "é",
    ],
    "mcp-method": ["tools/call", "", "é", "ping"],
    "mcp-name": ["recall", "", "=?base64?!?="],
    "mcp-param-query": ["x", "é"],
    "last-event-id": ["1", "", "x" * 3_000],
    "authorization": ["Bearer acme/", "Bearer acme/bob", "Bearer \x7f/é", "Bearer /", "nothing"],
}


@dataclass(frozen=True)
class Odd:
    """A request."""

    method: str
    headers: dict[str, str]
    body: bytes


def requests(count: int, seed: int, modern: float = 0.1) -> Iterator[Odd]:
    """So many requests, the same for the same seed; a share of them in the newest protocol."""
    chance = random.Random(seed)
    for number in range(count):
        message, headers = _valid(chance, number, modern)
        yield _request(chance, message, headers)


def _request(chance: random.Random, message: Any, headers: dict[str, str]) -> Odd:
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        message = _mutated(chance, message)
    if chance.random() < 0.05:
        message = [message] * chance.choice((1, 2, 30))
    body = json.dumps(message).encode()
    odd = Odd("POST", headers, body)
    if chance.random() < 0.08:
        odd = replace(odd, body=_broken(chance, body))
    if chance.random() < 0.15:
        name = chance.choice(list(HEADERS))
        odd = replace(odd, headers={**headers, name: chance.choice(HEADERS[name])})
    if chance.random() < 0.03:
        odd = replace(odd, method=chance.choice(("GET", "PUT", "DELETE", "OPTIONS", "PATCH")))
    return odd


def _valid(chance: random.Random, number: int, modern: float) -> tuple[Any, dict[str, str]]:
    if chance.random() < 0.6:
        name = chance.choice(list(CALLS))
        method = "tools/call"
        params: dict[str, Any] = {"name": name, "arguments": copy.deepcopy(CALLS[name])}
    else:
        method, params = copy.deepcopy(chance.choice(OTHERS))
        name = str(params.get("name") or params.get("uri") or "")
    if chance.random() < 0.2:
        params["_meta"] = {"progressToken": number}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer acme/ada",
    }
    if chance.random() < modern:
        params["_meta"] = {**MODERN, **params.get("_meta", {})}
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
        headers |= {"mcp-name": name} if name else {}
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if method.startswith("notif") else message | {"id": number}, headers


def _mutated(chance: random.Random, message: Any) -> Any:
    """A message of which one value, somewhere in it, is another, missing, or under another name."""
    places = list(_places(message))
    inner = [place for place in places if place[0] is not message]
    if not places:
        return chance.choice(ODD)
    holder, key = chance.choice(inner if inner and chance.random() < 0.85 else places)
    way = chance.random()
    if way < 0.6:
        holder[key] = copy.deepcopy(chance.choice(ODD))
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


def _broken(chance: random.Random, body: bytes) -> bytes:
    if chance.random() < 0.5:
        return chance.choice(RAW)
    at = chance.randrange(len(body) + 1)
    return chance.choice(
        (body[:at], body[at:], body[:at] + chance.randbytes(3) + body[at:], body + body)
    )


def send_all(url: str, odd: list[Odd]) -> Counter[int]:
    """How often each status was answered; each answer is read to its end."""

    def send(share: list[Odd]) -> Counter[int]:
        found: Counter[int] = Counter()
        with httpx.Client(timeout=20) as client:
            for one in share:
                raw = [(key.encode(), text.encode("latin-1")) for key, text in one.headers.items()]
                answer = client.request(one.method, url, headers=raw, content=one.body)
                assert answer.status_code < 500, (one, answer.text)
                assert answer.status_code != 200 or b"jsonrpc" in answer.content, one
                found[answer.status_code] += 1
        return found

    with ThreadPoolExecutor(WORKERS) as pool:
        shares = [odd[start::WORKERS] for start in range(WORKERS)]
        return sum(pool.map(send, shares), Counter())
