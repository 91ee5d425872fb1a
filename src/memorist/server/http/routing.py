"""Routes from the table of operations, which the client reads too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, get_type_hints
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from memorist.errors import InvalidError
from memorist.operations import OPERATIONS
from memorist.server.http.openapi import example_response

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
SLASH = "\udc2f"  # stands for an escaped slash; no decoded text contains it


class ApiRoute(APIRoute):
    """A route whose path parts may hold slashes (`%2F`), and that refuses unknown queries.

    Queries with names are checked by their models; this refuses any query of other routes.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path part by part, before escaped slashes are decoded."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" not in raw.lower():
            return super().matches(scope)
        match, child = super().matches({**scope, "path": _path_with_marks(raw)})
        for name, value in child.get("path_params", {}).items():
            if isinstance(value, str):
                child["path_params"][name] = value.replace(SLASH, "/")
        return match, child

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the check for a query that the route does not take."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if request.query_params and not self.dependant.query_params:
                raise InvalidError("this operation takes no query parameters")
            return await handler(request)

        return handle


router = APIRouter(route_class=ApiRoute)
"""Every route of the API."""


def _path_with_marks(raw: bytes) -> str:
    parts = [unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split(b"/")]
    return "/".join(part.replace("/", SLASH) for part in parts)


def operation(name: str, *, example: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Add a route for an operation: its method and path come from the table.

    The response's example is the one given, or else that of the record that is answered.
    """
    method, path, _ = OPERATIONS[name]
    noun = path.removeprefix("/api").split("/")[1]

    def add(endpoint: Endpoint) -> Endpoint:
        kind = options.get("response_model", get_type_hints(endpoint)["return"])
        options.setdefault(
            "responses", {options.get("status_code", 200): example_response(kind, example)}
        )
        return router.api_route(path, methods=[method], tags=[noun], **options)(endpoint)

    return add
