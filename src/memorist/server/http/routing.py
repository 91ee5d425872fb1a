"""What every route has: its place in the table of operations, and the caller with their memory."""

from asyncio import to_thread
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Annotated, Any, TypeVar, cast, get_type_hints
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Query
from fastapi.exceptions import ResponseValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope as AsgiScope

from memorist.errors import ForbiddenError, InvalidError
from memorist.memory import Memory
from memorist.operations import OPERATIONS
from memorist.records.scope import Principal, Scope
from memorist.server.http.openapi import PROBLEMS, example_response
from memorist.server.http.schemas import UserRequest

T = TypeVar("T")
Url = Annotated[T, Query()]  # what a request says in the query of its URL
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Answer = Callable[[dict[str, Any]], Any]
SLASH = "\udc2f"  # stands for an escaped slash; no decoded text contains it


class ApiRoute(APIRoute):
    """A route whose path parts may hold slashes (`%2F`); one without a query refuses any."""

    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        self._start = path.partition("{")[0]

    def matches(self, scope: AsgiScope) -> tuple[Match, AsgiScope]:
        """Match the path part by part, before escaped slashes are decoded."""
        if self._start not in scope["path"]:  # most routes, and far quicker than their patterns
            return Match.NONE, {}
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" not in raw.lower():
            return super().matches(scope)
        parts = [unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split(b"/")]
        path = "/".join(part.replace("/", SLASH) for part in parts)
        match, child = super().matches({**scope, "path": path})
        for name, value in child.get("path_params", {}).items():
            if isinstance(value, str):
                child["path_params"][name] = value.replace(SLASH, "/")
        return match, child

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the check for a query that the route does not take.

        A body alone is read and answered by one thread, without the framework, which takes ten
        times as long for it; that has its turn where the body is not valid, and says why.
        """
        handler, takes = super().get_route_handler(), self.dependant
        answer, bodies = _PLAIN.get(self.endpoint), takes.body_params
        others = (*takes.path_params, *takes.query_params, *takes.header_params)
        needs = [it.call for it in takes.dependencies]
        is_short = len(bodies) == 1 and not others and needs == [_current_caller]
        is_short = is_short and self.response_field is not None

        def answer_body(run: Answer, body: bytes, caller: Requester) -> Response | None:
            kind: Any = bodies[0].field_info.annotation
            try:
                value = kind.model_validate_json(body)
            except ValidationError:
                return None
            response: Response = run({bodies[0].name: value, "caller": caller})
            return response

        async def handle(request: Request) -> Response:
            if request.query_params and not takes.query_params:
                raise InvalidError("this operation takes no query parameters")
            response = None
            if is_short and answer is not None:
                body = await request.body()
                response = await to_thread(answer_body, answer, body, _requester(request))
            return response or await handler(request)

        return handle


router = APIRouter(route_class=ApiRoute, responses=PROBLEMS)
"""Every route of the API."""
_ANSWERS: dict[Callable[..., Any], Any] = {}  # what checks and writes the answers of each
_PLAIN: dict[Any, Answer] = {}  # what runs those that are not async


def operation(name: str, *, example: Any = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Add a route for an operation of the table, with an example or that of the record."""
    method, path, _ = OPERATIONS[name]
    noun = path.removeprefix("/api").split("/")[1]

    def add(endpoint: Endpoint) -> Endpoint:
        kind = options.get("response_model", get_type_hints(endpoint)["return"])
        status = options.get("status_code", 200)
        options.setdefault("responses", {status: example_response(kind, example)})
        is_plain = not (iscoroutinefunction(endpoint) or isasyncgenfunction(endpoint))
        is_plain &= Response not in get_type_hints(endpoint).values()
        run = _in_one_thread(endpoint, status) if is_plain else endpoint
        router.api_route(path, methods=[method], tags=[noun], **options)(run)
        _ANSWERS[run] = cast(ApiRoute, router.routes[-1]).response_field
        return endpoint

    return add


def _in_one_thread(endpoint: Callable[..., Any], status: int) -> Callable[..., Any]:
    """The endpoint for the event loop: one thread runs it, checks its answer and makes it JSON.

    The framework takes two threads for that, one after the other.
    """

    def answer(arguments: dict[str, Any]) -> Any:
        value, field = endpoint(**arguments), _ANSWERS[run]
        if field is None or isinstance(value, Response):
            return value
        value, errors = field.validate(value, {}, loc=("response",))
        if errors:
            raise ResponseValidationError(errors=errors, body=None)
        return Response(field.serialize_json(value), status, media_type="application/json")

    @wraps(endpoint)
    async def run(**arguments: Any) -> Any:
        return await to_thread(answer, arguments)

    _PLAIN[run] = answer
    return run


@dataclass(frozen=True, slots=True)
class Requester:
    """An authenticated caller, with the memory of their tenant."""

    memory: Memory
    principal: Principal

    def user(self, name: str | None) -> str:
        """Whose memory the request is about: the caller's own, or whom an admin names."""
        own = self.principal.user
        if own is None:
            if name is None:
                raise InvalidError("user is missing: an admin's key names the user")
            return name
        if name in (None, own):
            return own
        if self.principal.local:
            raise ForbiddenError(
                f"this server is for one local user, {own!r}: name that one, start it with "
                "--user, or with --auth and an admin's key for many"
            )
        raise ForbiddenError(
            "this key is of another user: name that one or none, or use an admin's key"
        )

    def user_or_all(self, name: str | None) -> str | None:
        """The same, but None for an admin who names nobody and means all."""
        return None if name is None and self.principal.admin else self.user(name)

    def place(self, request: UserRequest) -> dict[str, Any]:
        """The user, agent and session that a request is about, as arguments."""
        names = type(request).model_fields.keys() & {"agent", "session"}
        where = {name: getattr(request, name) for name in names}
        return {"user": self.user(request.user), **where}

    def scope(self, request: UserRequest) -> Scope:
        """The scope that a request is about."""
        return self.memory.scope(**self.place(request))

    @property
    def is_operator(self) -> bool:
        """Whether the caller is an admin, or the only user of a local server."""
        return self.principal.local or self.principal.admin

    def require_operator(self) -> None:
        """Raise ForbiddenError unless the caller is an operator."""
        if not self.is_operator:
            self.require_admin()

    def require_admin(self) -> None:
        """Raise ForbiddenError unless the caller shows an admin's key."""
        if not self.principal.admin:
            raise ForbiddenError("this needs an admin's key")


# For the OpenAPI document only: by then the middleware has authenticated the request.
_BEARER = HTTPBearer(
    scheme_name="bearer", description="An API key of `memorist keys`, or a JWT.", auto_error=False
)


async def _current_caller(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Requester:
    return _requester(request)


def _requester(request: Request) -> Requester:
    principal: Principal = request.state.principal
    memory_of_tenant: Callable[[str], Memory] = request.app.state.memory_of_tenant
    return Requester(memory_of_tenant(principal.tenant), principal)


Caller = Annotated[Requester, Depends(_current_caller)]
