"""Requests that nobody should send: valid ones of every operation, with things gone wrong.

    shot = make_shot(world, seed=7, number=1234)   # the same bytes each time

The operations, their fields and the kinds of these come from the OpenAPI document, so that a new
one is tried without being named here.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.support.http_odd import (
    CURSORS,
    DATES,
    HEADERS,
    HOSTILE_IDS,
    METHODS,
    NUMBERS,
    PATHS,
    QUERIES,
    RAW,
    SHAPES,
    TEXTS,
    WORD,
)

AS_IT_IS = {
    json.dumps(one): one[5:-1]
    for one in (*NUMBERS, *SHAPES)
    if isinstance(one, str) and one.startswith("@raw:")
}
TWO_LENGTHS = [("Content-Length", b"1"), ("Content-Length", b"2")]


@dataclass(frozen=True, slots=True)
class Operation:
    """A method and a path, and what it takes."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None

    @property
    def endless(self) -> bool:
        """Whether its answer goes on until somebody leaves."""
        return self.path.endswith("/updates")


@dataclass(frozen=True, slots=True)
class World:
    """What there is: operations, shapes, keys that open, and ids of things by parameter."""

    operations: Sequence[Operation]
    schemas: Mapping[str, Any]
    keys: Sequence[str]
    admin: str
    ids: Mapping[str, Sequence[str]]
    host: str


@dataclass(frozen=True, slots=True)
class Shot:
    """The bytes of a request, and how it is sent: "whole", "leave" (unread) or "broken"."""

    number: int
    name: str
    method: str
    sent: bytes
    way: str = "whole"


def operations_of(document: Mapping[str, Any]) -> list[Operation]:
    """Every operation of the document."""
    found = []
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            named = {
                one["name"]: one["schema"]
                for one in told.get("parameters", ())
                if one["in"] == "query"
            }
            content = told.get("requestBody", {}).get("content", {})
            body = content.get("application/json", {}).get("schema")
            found.append(Operation(method.upper(), path, named, body))
    return found


def make_shot(world: World, seed: int, number: int) -> Shot:
    """The request of this number."""
    return _Maker(world, random.Random(f"{seed}:{number}"), number).shot()


class _Maker:
    """Makes one request."""

    def __init__(self, world: World, chance: random.Random, number: int) -> None:
        self.world = world
        self.chance = chance
        self.number = number
        self.wrong = chance.choice((0, 0, 1, 1, 1, 2, 4))  # how much of it goes wrong
        self.operation = chance.choice(world.operations)
        private = self.operation.path.startswith(("/api/keys", "/metrics"))
        self.key = world.admin if private else chance.choice([*world.keys, world.admin])

    def shot(self) -> Shot:
        method, target, headers = self.operation.method, self._target(), self._headers()
        body = self._body() if self.operation.body is not None else b""
        if self.chance.random() < 0.03:
            target = self.chance.choice(PATHS)
        if self.chance.random() < 0.03:
            method = self.chance.choice(METHODS)
        if body or self.chance.random() < 0.02:
            headers.append(("Content-Type", b"application/json"))
        if self.chance.random() < 0.12:
            headers = self._changed(headers)
        way, sent = "whole", self._plain(method, target, headers, body)
        if self.chance.random() < 0.03:
            way, sent = self._broken(method, target, headers, body)
        elif self.operation.endless or self.chance.random() < 0.01:
            way = "leave"
        return Shot(
            self.number, f"{self.operation.method} {self.operation.path}", method, sent, way
        )

    def _plain(
        self, method: str, target: str, headers: Sequence[tuple[str, bytes]], body: bytes
    ) -> bytes:
        if body:
            headers = [*headers, ("Content-Length", str(len(body)).encode())]
        return _head(method, target, headers) + body

    def _broken(
        self, method: str, target: str, headers: Sequence[tuple[str, bytes]], body: bytes
    ) -> tuple[str, bytes]:
        """A request whose framing is wrong; "leave" where a server would have to wait for more."""
        body = body or b"{}"
        chunked = [*headers, ("Transfer-Encoding", b"chunked")]
        length = str(len(body)).encode()
        head = _head(method, target, [*headers, ("Content-Length", length)])
        ways = [
            ("leave", _head(method, target, [*headers, ("Content-Length", b"99999")]) + body),
            ("leave", (head + body)[: self.chance.randrange(1, len(head) + len(body))]),
            ("leave", _head(method, target, chunked) + b"%x\r\n" % len(body) + body),
            ("leave", head + body),
            ("broken", _head(method, target, chunked) + b"zz\r\n" + body),
            ("leave", _head(method, target, chunked) + b"ffffffffffffffffffff\r\n" + body),
            ("leave", _head(method, target, [*chunked, ("Content-Length", length)]) + body),
            ("broken", _head(method, target, [*headers, *TWO_LENGTHS]) + body),
            *(
                ("broken", _head(method, target, [*headers, ("Content-Length", bad)]) + body)
                for bad in (b"-1", b"+2", b"1e3", b"9" * 30, b"0x2", b"", b"\xb2")
            ),
            ("broken", head.replace(b"HTTP/1.1", b"HTTP/1.0") + body),
            ("broken", head.replace(b"HTTP/1.1", b"HTTP/9.9") + body),
            ("broken", head.replace(b" HTTP/1.1", b"") + body),
            ("broken", head.replace(b"\r\n", b"\n") + body),
            ("broken", head.replace(b"Host", b"Ho st") + body),
            ("broken", head.replace(b"Host: ", b"X\x00: ") + body),
            ("broken", head[:-2] + b" folded\r\n\r\n" + body),
            ("broken", head[:-2] + b"X: " + b"a" * 80_000 + b"\r\n\r\n" + body),
            ("broken", head[:-2] + b"X: a\r\n" * 2_000 + b"\r\n" + body),
            ("broken", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + head),
            ("broken", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            ("broken", self.chance.randbytes(200) + b"\r\n\r\n"),
        ]
        return self.chance.choice(ways)

    def _target(self) -> str:
        path = self.operation.path
        for name, known in self.world.ids.items():
            path = path.replace(f"{{{name}}}", quote(self._id(known), safe=""))
        query = "&".join(f"{quote(name)}={text}" for name, text in self._query())
        return f"{path}?{query}" if query else path

    def _id(self, known: Sequence[str]) -> str:
        if self.wrong and self.chance.random() < 0.2:
            odd = str(self.chance.choice([*HOSTILE_IDS, *TEXTS, *NUMBERS, *QUERIES]))
            return odd[:2_000].encode("utf-8", "replace").decode()
        return self.chance.choice(known)

    def _query(self) -> Iterator[tuple[str, str]]:
        for name, shape in self.operation.query.items():
            if (name == "session" and "anyOf" not in shape) or self._wants(name):
                value = self._value(name, shape)
                if self.wrong and self.chance.random() < 0.3:
                    value = self._odd(name)
                text = value if isinstance(value, str) else json.dumps(value)
                yield name, quote(text[:5_000].encode("utf-8", "surrogatepass"))
        if self.wrong and self.chance.random() < 0.03:
            yield WORD, self.chance.choice(("%00", "%ff", "", "x" * 999))

    def _headers(self) -> list[tuple[str, bytes]]:
        return [
            ("Host", self.world.host.encode()),
            ("Authorization", f"Bearer {self.key}".encode()),
        ]

    def _changed(self, headers: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        """The headers with one that is odd, doubled or missing."""
        name = self.chance.choice(list(HEADERS))
        way = self.chance.random()
        if way < 0.1:
            return [one for one in headers if one != self.chance.choice(headers)]
        rest = [one for one in headers if one[0] != name or way < 0.25]
        return [*rest, (name, self.chance.choice(HEADERS[name]))]

    def _body(self) -> bytes:
        if self.wrong and self.chance.random() < 0.05:
            return self.chance.choice(RAW)
        value = self._value("", self.operation.body or {})
        for _ in range(self.wrong):
            value = self._mutated(value)
        if self.chance.random() < 0.004:
            value = {**value, "text": "y" * 1_000_000} if isinstance(value, dict) else value
        body = _raw(json.dumps(value))
        return self._torn(body) if self.wrong and self.chance.random() < 0.05 else body

    def _torn(self, body: bytes) -> bytes:
        at = self.chance.randrange(len(body) + 1)
        doubled = b'{"user":"x","role":"user",' + body[1:]
        odd = body[:at] + self.chance.randbytes(3) + body[at:]
        return self.chance.choice((body[:at] or b"{", body[at:] or b"}", odd, body + body, doubled))

    def _value(self, name: str, shape: Mapping[str, Any], depth: int = 0) -> Any:
        """A value of a shape, as the document tells it."""
        if "$ref" in shape:
            shape = self.world.schemas[shape["$ref"].rsplit("/", 1)[1]]
        if "anyOf" in shape:
            shape = self.chance.choice([one for one in shape["anyOf"] if one.get("type") != "null"])
            return self._value(name, shape, depth)
        if "enum" in shape:
            return self.chance.choice(shape["enum"])
        match shape.get("type"):
            case "object" if "properties" in shape:
                return self._object(shape, depth)
            case "object":
                return {"name": "look", "agent_name": WORD, "arguments": {"a": 1}}
            case "array":
                count = self.chance.choice((0, 1, 1, 2)) or int(shape.get("minItems", 0))
                inner = shape.get("items", {})
                return [self._value(name, inner, depth + 1) for _ in range(count)]
            case "integer":
                return self.chance.choice(
                    (int(shape.get("minimum", 0)), int(shape.get("minimum", 0)) + 1, 5)
                )
            case "number":
                return self.chance.choice((0.1, 0.5, 1))
            case "boolean":
                return self.chance.random() < 0.5
            case "null":
                return None
        return self._text(name, shape)

    def _object(self, shape: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = shape.get("required", ())
        return {
            name: self._value(name, one, depth + 1)
            for name, one in shape["properties"].items()
            if name in required or self._wants(name)
        }

    def _wants(self, name: str) -> bool:
        named = 0.9 if self.key == self.world.admin else 0.03
        rare = {"everything": 0.02, "images": 0.1, "scrub": 0.9, "user": named}
        return self.chance.random() < rare.get(name, 0.25)

    def _text(self, name: str, shape: Mapping[str, Any]) -> str:
        if shape.get("format") == "date-time":
            return f"2026-0{self.chance.randrange(1, 9)}-01T00:00:00Z"
        if name == "user":
            return self.chance.choice(HOSTILE_IDS)
        if name in ("session", "session_id", "id", "message", "message_id", "memory", "target"):
            kind = {
                "message": "message_id",
                "memory": "memory_id",
                "target": "fact_id",
                "message_id": "message_id",
            }
            return self.chance.choice(self.world.ids[kind.get(name, "session_id")])
        if name == "cursor":
            return self.chance.choice(("MTI", "MDAwMDAwMDAwMQ"))
        if name == "images":
            return "data:image/png;base64,AAAA"
        said = (
            f"I moved to Berlin, {WORD}.",
            "likes",
            "tea",
            f"# Plans\n\n{WORD}",
            "Ada",
            "fact",
            "s1",
            "append",
        )
        return self.chance.choice((self.chance.choice(QUERIES), *said, *said))

    def _odd(self, name: str) -> Any:
        if name == "cursor":
            return self.chance.choice(CURSORS)
        lists: list[list[Any]] = [TEXTS, NUMBERS, SHAPES, QUERIES, DATES, list(HOSTILE_IDS), [WORD]]
        return copy.deepcopy(self.chance.choice(self.chance.choice(lists)))

    def _mutated(self, value: Any) -> Any:
        """A value of which something in it is another, missing, or under another name."""
        places = list(_places(value))
        if not places or self.chance.random() < 0.01:
            return self._odd("")
        holder, key = self.chance.choice(places)
        way = self.chance.random()
        if way < 0.75:
            holder[key] = self._odd(str(key))
        elif way < 0.9:
            del holder[key]
        elif isinstance(holder, dict):
            holder[self.chance.choice((WORD, "", "\x00", "id", "user", "tenant"))] = holder[key]
        else:
            holder.append(holder[key])
        return value


def _head(method: str, target: str, headers: Sequence[tuple[str, bytes]]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1".encode("utf-8", "replace")]
    lines += [name.encode() + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _raw(text: str) -> bytes:
    """JSON in which what is to stand there as it is does so."""
    for quoted, plain in AS_IT_IS.items() if "@raw:" in text else ():
        text = text.replace(quoted, plain)
    return text.encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in list(keys):
        yield value, key
        yield from _places(value[key])
