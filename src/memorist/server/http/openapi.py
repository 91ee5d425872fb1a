"""The OpenAPI document: what FastAPI reads from the types, and what all routes share."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from memorist.server.http.authentication import PUBLIC
from memorist.server.http.problems import MEDIA_TYPE

_PROBLEMS = {
    "400": "The request cannot be read.",
    "401": "No key or token that is known.",
    "403": "Known, but not theirs to ask for.",
    "404": "There is no such thing for this user.",
    "408": "The body came too slowly.",
    "409": "Someone else was first.",
    "413": "The body is larger than is taken.",
    "415": "The body is not JSON.",
    "421": "This server does not answer to the Host that was named.",
    "422": "Wrong fields; the problem names them.",
    "429": "Too many requests; wait for Retry-After.",
    "502": "A model failed; what was said is stored.",
    "503": "The store is busy or away; wait for Retry-After.",
    "507": "No room is left; nothing that was stored is lost.",
}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key of `memorist keys`, or a JWT.",
}
_PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "An error, as RFC 9457 tells it.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stays the same, for programs."},
        "request_id": {"type": "string", "description": "Also in X-Request-Id."},
        "fields": {"type": "array", "items": {"type": "object"}},
    },
    "example": {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "code": "not_found",
        "detail": "no message with this id for this user",
        "request_id": "01a1dfc4c1ff7000",
    },
}


def describe(app: FastAPI) -> None:
    """Complete the document of an app: who may ask, and how it is told that something is wrong."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(made())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    parts = document.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = _PROBLEM
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form, which is not ours
        parts["schemas"].pop(name, None)
    _say_how_long(parts["schemas"])
    parts["securitySchemes"] = {"bearer": _BEARER}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            told = operation["responses"]
            for answer in told.values():  # FastAPI says that events are one string
                answer.get("content", {}).get("text/event-stream", {}).pop("schema", None)
            for status, meaning in _PROBLEMS.items():
                told[status] = {"description": meaning, "content": content}
            if path not in PUBLIC:
                operation["security"] = [{"bearer": []}]
    return document


def _say_how_long(schema: Any) -> None:
    """Let no `duration` be promised: the format knows no parts of a second, and we tell them."""
    if isinstance(schema, dict):
        if schema.get("format") == "duration":
            schema.pop("format")
            schema["examples"] = ["P12DT3H0.5S"]
        for one in schema.values():
            _say_how_long(one)
    elif isinstance(schema, list):
        for one in schema:
            _say_how_long(one)
