"""What the SDK gets to see of an HTTP request: one whole JSON-RPC request or notification.

The SDK answers some of the rest with 500, some never, and some with the words it was sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from memorist.errors import InvalidError
from memorist.server.http.nesting import Nesting

MOST_BYTES = 8 * 1024 * 1024
MOST_DEEP = 64
LONGEST_ID = 1_000
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let through, with the HTTP status and JSON-RPC's code."""

    status: int
    code: int
    why: str

    def body(self) -> bytes:
        """It as JSON-RPC tells of errors."""
        error = {"code": self.code, "message": self.why}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


TOO_LARGE = Refusal(413, INVALID_REQUEST, f"the body is over {MOST_BYTES} bytes")
NO_JSON = Refusal(400, PARSE_ERROR, "the body is not JSON in UTF-8")
TOO_DEEP = Refusal(400, INVALID_REQUEST, f"the body is nested over {MOST_DEEP} deep")
NO_REQUEST = Refusal(
    400, INVALID_REQUEST, "the body is not one JSON-RPC 2.0 request or notification"
)


def refusal(body: bytes) -> Refusal | None:
    """Nothing, if the body is one request or notification, else what is wrong with it."""
    try:
        Nesting(most_depth=MOST_DEEP, most_values=MOST_BYTES).feed(body)
    except InvalidError:
        return TOO_DEEP
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_no_number)
        if b"\\ud" in body.lower():
            json.dumps(message, ensure_ascii=False).encode()  # half of a character is no text
    except ValueError:  # also of a number that is too long, and of what is not UTF-8
        return NO_JSON
    return None if _is_request(message) else NO_REQUEST


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _is_request(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params", {}), dict)
        and ("id" not in message or _is_id(message["id"]))
    )


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_ID
    return type(value) is int and abs(value) < 2**63
