"""Problems: errors as RFC 9457 tells them, with a code that stays and nobody's words."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from memorist.error_codes import code_of
from memorist.errors import MemoristError, MissingExtraError, RateLimitedError
from memorist.server.http.validation import fields_of, in_words

try:
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingExtraError("server") from error

MEDIA_TYPE = "application/problem+json"
MOST_FIELDS = 10  # that are named as wrong
BUSY_S = 1.0
log = logging.getLogger("memorist.server")


class HttpError(MemoristError):
    """A refusal that only HTTP knows, by its status."""

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


def problem_response(error: Exception, request_id: str) -> Response:
    """The answer that tells of an error; what is not ours is told by nothing but its status."""
    status, code = _kind(error)
    detail = str(error) if isinstance(error, MemoristError) else ""
    return problem(status, code, detail, request_id, headers=_headers(error, status))


def problem(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    *,
    headers: Mapping[str, str] | None = None,
    fields: Sequence[Mapping[str, str]] = (),
) -> Response:
    """A problem as an answer."""
    told: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    if fields:
        told["fields"] = list(fields)
    body = json.dumps(told, ensure_ascii=False).encode()
    return Response(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def request_id_of(scope: Mapping[str, Any]) -> str:
    """The id that was given to the request."""
    return str(scope.get("state", {}).get("request_id", ""))


async def on_error(request: Request, error: Exception) -> Response:
    """What a handler raised, as a problem."""
    status, _ = _kind(error)
    if status >= 500:
        log.warning("%s: %s", request_id_of(request.scope), type(error).__name__)
    return problem_response(error, request_id_of(request.scope))


async def on_invalid(request: Request, error: Exception) -> Response:
    """A request that does not fit its shape: which fields, and what kind of wrong, no values."""
    assert isinstance(error, RequestValidationError)
    id_ = request_id_of(request.scope)
    if error.errors()[0]["type"] == "json_invalid":
        return problem(400, "bad_request", "the body is not JSON", id_)
    wrong = [_wrong(one) for one in error.errors()[:MOST_FIELDS]]
    detail = "; ".join(f"{one['field']} {one['says']}" for one in wrong)
    if any(one["kind"] == "extra_forbidden" and one["field"] == "body" for one in wrong):
        detail += f"; the body takes {', '.join(fields_of(request))}"
    return problem(422, "invalid", detail, id_, fields=wrong)


async def on_http(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: no such path, no such method, no JSON."""
    assert isinstance(error, HTTPException)
    details = {
        400: ("bad_request", "the request cannot be read"),
        404: ("not_found", "there is nothing at this address"),
        405: ("method_not_allowed", "this address does not take this method"),
    }
    code, detail = details.get(error.status_code, ("http", ""))
    id_ = request_id_of(request.scope)
    return problem(error.status_code, code, detail, id_, headers=error.headers)


def _kind(error: Exception) -> tuple[int, str]:
    return (error.status, error.code) if isinstance(error, HttpError) else code_of(error)


def _headers(error: Exception, status: int) -> dict[str, str]:
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, RateLimitedError):
        return {"Retry-After": str(math.ceil(error.retry_after_s))}
    if status == 503:
        return {"Retry-After": str(math.ceil(BUSY_S))}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def _wrong(error: Mapping[str, Any]) -> dict[str, str]:
    """The name of a field, and what is wrong; a name that the caller made up is not repeated."""
    where, kind = error["loc"], str(error["type"])
    known = where[:-1] if kind == "extra_forbidden" else where
    parts = [str(part) for part in known if isinstance(part, int) or str(part).isidentifier()]
    says = in_words(kind, error.get("ctx") or {})
    return {"field": ".".join(parts[:6]), "kind": kind, "says": says}
