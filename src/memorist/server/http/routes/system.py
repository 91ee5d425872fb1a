"""The system: whether it lives, whether it can work, its numbers, and where things are."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from memorist import __version__, metrics
from memorist.errors import StoreError, StoreUnavailableError
from memorist.server.http.authentication import CurrentCaller
from memorist.server.prometheus import exposition

router = APIRouter(tags=["system"])


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"
    version: str = __version__


class Ready(BaseModel):
    """The store answers too."""

    status: str = "ready"


@router.head("/health", include_in_schema=False)  # as monitors like to ask
@router.get("/health")
async def health() -> Health:
    """Whether the process lives; asks nobody else."""
    return Health()


@router.head("/ready", include_in_schema=False)
@router.get("/ready")
def ready(request: Request) -> Ready:
    """Whether the store answers: send no traffic here otherwise."""
    try:
        request.app.state.memory.store.backlog(("derive",))  # how many, is not for everybody
        return Ready()
    except StoreError:
        raise StoreUnavailableError("the store does not answer") from None


@router.get("/metrics", response_class=PlainTextResponse)
def numbers(caller: CurrentCaller) -> PlainTextResponse:
    """The numbers of this process as Prometheus reads them; for an admin or the local user."""
    caller.require_operator()
    return PlainTextResponse(
        exposition(metrics.snapshot()), media_type="text/plain; version=0.0.4; charset=utf-8"
    )


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def page() -> HTMLResponse:
    """Where things are."""
    return HTMLResponse((files("memorist.server") / "web" / "index.html").read_text("utf-8"))
