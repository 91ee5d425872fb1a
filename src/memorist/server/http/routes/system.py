"""Health, readiness, metrics, the page at the root and the API's reference."""

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from html import escape
from importlib.resources import files
from threading import Thread

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from memorist import __version__, metrics
from memorist.errors import StoreUnavailableError
from memorist.memory import Memory
from memorist.metrics import Reading
from memorist.server.http.routing import Caller, operation, router
from memorist.server.worker_process import WorkerLink

PROBE_S = 1.5
CODE = re.compile("`([^`]+)`")
REFERENCE = """<!doctype html><html lang="en"><meta charset="utf-8">
<title>HTTP API · Memorist</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="web/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="web/style.css">
<body><main class="reference"><h1>Memorist's HTTP API</h1>
<p>Fields, bounds, examples and errors of each operation are in the OpenAPI document,
<a href="openapi.json">openapi.json</a>. <a href="./">The page</a> shows the memory itself.</p>
<table><tr><th>Method<th>Path<th>What it does
"""
log = logging.getLogger("memorist.server")


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"
    version: str = __version__
    worker: str | None = Field(
        default=None, description="running, or restarting; null: without a process of its own."
    )


class Ready(BaseModel):
    """The store answers too."""

    status: str = "ready"


class StoreProbe:
    """Reads from the store in a thread of its own, one read at a time however many ask."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._reading: asyncio.Future[bool] | None = None

    async def answers(self) -> bool:
        """Whether the store answers within PROBE_S; those who ask meanwhile share the read."""
        if self._reading is None or self._reading.done():
            outcome: Future[bool] = Future()
            self._reading = asyncio.wrap_future(outcome)
            # A daemon: one that hangs in the database must not keep the process from ending.
            Thread(target=self._read, args=[outcome], name="memorist-ready", daemon=True).start()
        reading = self._reading  # the next request may begin another one meanwhile
        done, _ = await asyncio.wait([reading], timeout=PROBE_S)
        return bool(done) and reading.result()

    def _read(self, outcome: Future[bool]) -> None:
        try:
            self._memory.keys.exist()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no answer
            log.warning("the store does not answer: %s", type(error).__name__)
            outcome.set_result(False)
        else:
            outcome.set_result(True)


@router.head("/health", include_in_schema=False)  # as many monitors ask
@operation("health")
async def health(request: Request) -> Health:
    """Whether the process is alive, and its worker; touches nothing else."""
    worker: WorkerLink | None = request.app.state.worker
    if worker is None:
        return Health()
    return Health(worker="running" if worker.is_up else "restarting")


@router.head("/ready", include_in_schema=False)
@operation("ready")
async def ready(request: Request) -> Ready:
    """Whether the store answers, so that traffic may be sent here."""
    probe: StoreProbe = request.app.state.probe
    if await probe.answers():
        return Ready()
    raise StoreUnavailableError("the store does not answer")


@operation("metrics", response_class=PlainTextResponse)
def get_metrics(caller: Caller) -> PlainTextResponse:
    """The metrics of this process in Prometheus's text format; for operators."""
    caller.require_operator()
    media_type = "text/plain; version=0.0.4; charset=utf-8"
    lines = (line for reading in metrics.snapshot().values() for line in _lines(reading))
    return PlainTextResponse("\n".join(lines) + "\n", media_type=media_type)


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def index() -> HTMLResponse:
    """The page at the root."""
    return HTMLResponse((files("memorist.server") / "web" / "index.html").read_text("utf-8"))


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
def reference(request: Request) -> HTMLResponse:
    """What the OpenAPI document has, as a list for people."""
    rows = [
        f"<tr><td>{method.upper()}<td>`{path}`<td>{escape(it['description'])}"
        for path, methods in request.app.openapi()["paths"].items()
        for method, it in methods.items()
    ]
    table = CODE.sub(r"<code>\1</code>", "\n".join(rows))
    return HTMLResponse(f"{REFERENCE}{table}</table>")


def _lines(reading: Reading) -> Iterator[str]:
    """A metric in Prometheus's text format, version 0.0.4: its help, type and values."""
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
