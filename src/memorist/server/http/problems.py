"""Error responses: problem documents (RFC 9457) with a stable code and no user content."""

import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memorist.errors import InvalidError, MemoristError, RateLimitedError, code_of

REQUESTS = ("http", "websocket")  # the ASGI scopes that a client opens
MEDIA_TYPE = "application/problem+json"
MAX_FIELDS = 10  # that a problem names
RETRY_AFTER_S = 1
# What the framework itself refuses: codes and texts of ours in place of its own.
FRAMEWORK_ERRORS = {
    400: ("bad_request", "the request cannot be read; is the body JSON, not nested too deeply?"),
    404: ("not_found", "there is nothing at this address; /docs lists what there is"),
    405: ("method_not_allowed", "this address does not take this method"),
    408: ("too_slow", "the body came too slowly"),
    413: ("too_large", "the body is too large"),
}
HEADERS = "memorist.headers"  # where a scope has them by name
log = logging.getLogger("memorist.server")


class HttpError(MemoristError):
    """A refusal that only HTTP knows, by its status."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Every value of a header, in order; its name in lower case."""
    by_name: dict[bytes, list[bytes]] | None = scope.get(HEADERS)
    if by_name is None:  # once in a request: a dozen are looked up
        by_name = scope[HEADERS] = {}
        for key, value in scope["headers"]:
            by_name.setdefault(key.lower(), []).append(value)
    return by_name.get(name, [])


def request_id_of(scope: Mapping[str, Any]) -> str:
    """The id that the request was given."""
    return str(scope.get("state", {}).get("request_id", ""))


async def refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a problem; a websocket that cannot carry one is only closed."""
    has_response = "websocket.http.response" in (scope.get("extensions") or {})
    if scope["type"] == "websocket" and not has_response:
        await send({"type": "websocket.close", "code": 1008})
        return
    await problem_response(error, request_id_of(scope))(scope, receive, send)


def problem_response(error: Exception, request_id: str, **members: Any) -> Response:
    """The response to an error; one that is not ours is described by its status only."""
    status, code = _status_and_code(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, RateLimitedError):
        headers = {"Retry-After": str(math.ceil(error.retry_after_s))}
    elif status == 503:
        headers = {"Retry-After": str(RETRY_AFTER_S)}
    detail = str(error) if isinstance(error, MemoristError) else ""
    return problem(status, code, detail, request_id, headers, **members)


def problem(
    status: int, code: str, detail: str, request_id: str, headers: Any = None, **members: Any
) -> Response:
    """A problem document as a response, on one line; `members` are those of its own kind."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
        **members,
    }
    body = json.dumps(document, ensure_ascii=False).encode()
    return Response(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


async def on_error(request: Request, error: Exception, **members: Any) -> Response:
    """The response to what a route raised."""
    if isinstance(error, RecursionError):  # the JSON of the body, which is read recursively
        error = InvalidError("the JSON nests too deeply")
    if _status_and_code(error)[0] >= 500:
        log.warning("%s: %s", request_id_of(request.scope), type(error).__name__)
    return problem_response(error, request_id_of(request.scope), **members)


async def on_invalid(request: Request, error: Exception) -> Response:
    """The response to a request that fails validation: which fields, what is wrong, no values."""
    assert isinstance(error, RequestValidationError)
    id_ = request_id_of(request.scope)
    errors = error.errors()
    if errors[0]["type"] == "json_invalid":
        return problem(400, "bad_request", "the body is not JSON", id_)
    fields = [_field(one) for one in errors[:MAX_FIELDS]]
    detail = "; ".join(f"{field['field']}: {field['says']}" for field in fields)
    unknown = [one["loc"][0] for one in errors if one["type"] == "extra_forbidden"]
    if unknown:
        detail += f"; the {unknown[0]} takes {', '.join(_known_names(request, unknown[0]))}"
    return problem(422, "invalid", detail, id_, fields=fields)


async def on_http(request: Request, error: Exception) -> Response:
    """The response to what the framework itself refuses."""
    assert isinstance(error, HTTPException)
    code, detail = FRAMEWORK_ERRORS.get(error.status_code, ("http", ""))
    return problem(error.status_code, code, detail, request_id_of(request.scope), error.headers)


def _status_and_code(error: Exception) -> tuple[int, str]:
    return (error.status, error.code) if isinstance(error, HttpError) else code_of(error)


def _known_names(request: Request, place: str) -> list[str]:
    """The names of the fields that a route takes in its body or its query."""
    dependant = request.scope["route"].dependant
    params = dependant.body_params if place == "body" else dependant.query_params
    return [
        name
        for param in params
        for name in getattr(param.field_info.annotation, "model_fields", [param.alias])
    ]


def _field(error: Mapping[str, Any]) -> dict[str, str]:
    """The path of a wrong field, and what is wrong; nothing the client made up is repeated."""
    path, kind, text = error["loc"], str(error["type"]), error["msg"]
    known = path[:-1] if kind == "extra_forbidden" else path
    parts = [str(part) for part in known if isinstance(part, int) or str(part).isidentifier()]
    if kind == "model_attributes_type":
        text = "Input should be a JSON object"
    if kind == "union_tag_invalid":  # whose text quotes the tag
        text = f"{error['ctx']['discriminator']} should be {error['ctx']['expected_tags']}"
    return {"field": ".".join(parts[:6]), "kind": kind, "says": text}
