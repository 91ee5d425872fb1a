"""What a server tells its operator: logs and metrics by route, with nothing of a user in them."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist.metrics import INSTRUMENTS
from memorist.operations import OPERATIONS
from memorist.server.observe import TEXT, JsonLines, TextLines, area_of
from tests.support.servers import ServerProcess, end_servers

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana.json"
CANARY = "swordfish"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    options = ("--access-log", "--log-format", "json")
    try:
        yield ServerProcess(str(tmp_path / "m.db"), *options, embedder="none").until_up()
    finally:
        end_servers()


def test_a_server_logs_requests_as_json_and_counts_them_by_area(server: ServerProcess) -> None:
    with httpx.Client(base_url=server.url, headers={"x-request-id": "mine"}) as client:
        said = {"session": CANARY, "role": "user", "content": CANARY}
        assert client.post("/api/messages", json=said).status_code == 201
        assert client.get(f"/api/sessions/{CANARY}/history").status_code < 500
        assert client.get(f"/api/{CANARY}").status_code == 404
        told = client.get("/metrics").text
    lines = [json.loads(line) for line in server.said().splitlines()]
    assert CANARY not in server.said() + told

    [stored] = [line for line in lines if line.get("route") == "/api/messages"]
    expected = {"level": "info", "logger": "memorist.access", "method": "POST", "status": 201}
    assert expected.items() <= stored.items()
    assert stored["request_id"] == "mine"
    assert stored["ms"] > 0
    assert 'memorist_http_duration_seconds_count{area="messages",result="2xx"} 1' in told
    assert 'memorist_http_duration_seconds_count{area="other",result="4xx"} 1' in told
    assert "memorist_http_active 1" in told  # the one that asks
    assert all(f"\n{name} " in told for name in ("memorist_store_size", "memorist_process_memory"))


def test_no_log_holds_what_is_said_however_much_is_logged(tmp_path: Path) -> None:
    options = ("--log-level", "debug", "--access-log")
    server = ServerProcess(str(tmp_path / "m.db"), *options, embedder="none").until_up()
    try:
        call = {"name": "remember", "arguments": {"content": CANARY}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        accept = {"accept": "application/json, text/event-stream"}
        assert CANARY in _told_again(server, body, accept)
        assert CANARY not in server.said()
    finally:
        end_servers()


def _told_again(server: ServerProcess, body: dict[str, Any], headers: dict[str, str]) -> str:
    """What a recall over MCP answers, after a call that stores."""
    assert httpx.post(f"{server.url}/mcp", json=body, headers=headers).status_code == 200
    body["params"] = {"name": "recall", "arguments": {"query": CANARY}}
    return httpx.post(f"{server.url}/mcp", json=body, headers=headers, timeout=30).text


def test_an_exception_is_logged_without_its_text() -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "failed", (), sys.exc_info())
    for formatter in (JsonLines(), TextLines(TEXT)):
        line = formatter.format(record)
        assert "ValueError" in line
        assert CANARY not in line


TRACED = """
import pathlib, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.server.api import an_api
spans = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
with an_api(pathlib.Path(sys.argv[1])) as api:
    assert api.ada.get("/api/memories", params={"text": "swordfish"}).is_success
    assert api.ada.post("/api/recall", json={"question": "swordfish"}).is_success
print(*(span.to_json() for span in spans.get_finished_spans()))
"""


def test_spans_of_a_server_tell_nothing_of_its_requests(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRACED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "memorist.recall" in done.stdout, done.stderr
    assert CANARY not in done.stdout


def test_every_operation_has_an_area_and_every_area_an_operation() -> None:
    [timed] = [one for one in INSTRUMENTS if one.name == "memorist.http.duration"]
    found = {area_of({"path": operation.path}) for operation in OPERATIONS.values()}
    assert found | {"mcp", "page", "openapi.json"} == set(timed.attributes["area"])
    assert area_of({"path": "/memory/api/recall", "root_path": "/memory"}) == "recall"
    assert {area_of({"path": path}) for path in ("/", "/docs", "/web/app.js")} == {"page"}


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    shown = {one.name.replace(".", "_") for one in INSTRUMENTS}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    names = {
        re.sub("_(total|seconds|bucket|count)", "", name)
        for expression in asked
        for name in re.findall(r"memorist_\w+", expression)
    }
    assert len(asked) >= len(panels) - 4  # all but the rows' titles
    assert names <= shown
    assert shown - names == {"memorist_recall_hits", "memorist_compressions"} | {
        "memorist_compression_fallbacks"
    }
