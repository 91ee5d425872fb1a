"""Health, readiness, metrics and the page at the root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from memorist import __version__, metrics
from memorist.errors import StoreError, StoreUnavailableError
from memorist.metrics import Reading
from memorist.server.http.routing import CurrentCaller, operation, router


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"
    version: str = __version__


class Ready(BaseModel):
    """The store answers too."""

    status: str = "ready"


@router.head("/health", include_in_schema=False)  # as many monitors ask
@operation("health")
async def health() -> Health:
    """Whether the process is alive; touches nothing else."""
    return Health()


@router.head("/ready", include_in_schema=False)
@operation("ready")
def ready(request: Request) -> Ready:
    """Whether the store answers, so that traffic may be sent here."""
    try:
        request.app.state.memory.jobs.waiting()
        return Ready()
    except StoreError:
        raise StoreUnavailableError("the store does not answer") from None


@operation("metrics", response_class=PlainTextResponse)
def get_metrics(caller: CurrentCaller) -> PlainTextResponse:
    """The metrics of this process in Prometheus's text format; for operators."""
    caller.require_operator()
    media_type = "text/plain; version=0.0.4; charset=utf-8"
    return PlainTextResponse(exposition(metrics.snapshot()), media_type=media_type)


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def index() -> HTMLResponse:
    """The page at the root."""
    return HTMLResponse((files("memorist.server") / "web" / "index.html").read_text("utf-8"))


def exposition(readings: Mapping[str, Reading]) -> str:
    """Metrics in Prometheus's text format, version 0.0.4: help, type and values of each."""
    return "\n".join(line for reading in readings.values() for line in _lines(reading)) + "\n"


def _lines(reading: Reading) -> Iterator[str]:
    instrument = reading.instrument
    name = instrument.name.replace(".", "_") + ("_seconds" if instrument.unit == "s" else "")
    name += "_total" if instrument.kind == "counter" else ""
    yield f"# HELP {name} {instrument.meaning}"
    yield f"# TYPE {name} {instrument.kind}"
    for point in reading.points:
        if instrument.kind != "histogram":
            yield f"{name}{_labels(point.attributes)} {point.value:g}"
            continue
        for bound, count in point.buckets:
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f"{name}_bucket{_labels({**point.attributes, 'le': le})} {count}"
        yield f"{name}_sum{_labels(point.attributes)} {point.value:g}"
        yield f"{name}_count{_labels(point.attributes)} {point.count}"


def _labels(attributes: Mapping[str, str]) -> str:
    labels = ",".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"{{{labels}}}" if labels else ""
