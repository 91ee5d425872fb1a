"""Metrics: the numbers are right, reach OpenTelemetry where it is, and tell nothing of users."""

from __future__ import annotations

import ast
import gc
import json
import re
import subprocess
import sys
import timeit
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memorist import InvalidError, Memory, ProviderError, metrics
from memorist.errors import BadAnswerError
from memorist.metrics import INSTRUMENTS, Point, Registry
from memorist.providers.chat_model import Reply
from memorist.store.sqlite.store import SqliteStore
from tests.support.extraction import Model, finish, say, worker_of
from tests.support.models import BrokenEmbedder, HungEmbedder

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "metrics.md").read_text()
RECALLED = "memorist.recall.duration"
CANARY = "swordfish"


def point(registry: Any, name: str, **attributes: str) -> Point:
    points = registry.snapshot()[name].points
    found = [one for one in points if one.attributes == attributes]
    return found[0] if found else Point(attributes=attributes, value=0)


def value(name: str, **attributes: str) -> float:
    return point(metrics, name, **attributes).value


class Queue:
    """Something that has a queue."""

    def __init__(self, **depth: int) -> None:
        self.depth = depth

    def read(self) -> Mapping[str, int]:
        return self.depth


# Counting


def test_a_counter_adds_up_by_its_attributes_in_any_order() -> None:
    registry = Registry()
    registry.count("memorist.jobs", kind="derive", result="done")
    registry.count("memorist.jobs", 3, result="done", kind="derive")
    registry.count("memorist.jobs", kind="derive", result="failed")
    assert point(registry, "memorist.jobs", kind="derive", result="done").value == 4
    assert len(registry.snapshot()["memorist.jobs"].points) == 2


def test_a_histogram_has_cumulative_buckets_whose_bounds_belong_to_them() -> None:
    registry = Registry()
    for seconds in (0.0005, 0.05, 0.051, 20):
        registry.record(RECALLED, seconds)
    found = point(registry, RECALLED)
    buckets = dict(found.buckets)
    assert (buckets[0.001], buckets[0.025], buckets[0.05], buckets[0.075]) == (1, 1, 2, 3)
    assert (buckets[10.0], buckets[float("inf")], found.count) == (3, 4, 4)
    assert found.value == pytest.approx(20.1015)


def test_less_than_nothing_and_what_is_no_number_is_not_counted() -> None:
    registry = Registry()
    for wrong in (-1, float("nan")):
        registry.count("memorist.compression.saved", wrong, made_by="model")
    assert registry.snapshot()["memorist.compression.saved"].points == ()


def test_a_value_that_is_not_listed_becomes_other_however_many_there_are() -> None:
    registry = Registry()
    for number in range(1_000):
        registry.count("memorist.recall.late", channel=f"{CANARY}{number}")
    assert registry.snapshot()["memorist.recall.late"].points == (
        Point(attributes={"channel": "other"}, value=1_000),
    )
    assert len(registry._series) == 1


def test_an_unknown_metric_or_attribute_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"no metric 'memorist\.typo'"):
        Registry().count("memorist.typo")
    with pytest.raises(InvalidError, match="no attribute user"):
        Registry().count("memorist.jobs", user=CANARY)


def test_threads_lose_no_count() -> None:
    registry = Registry()

    def work(_: int) -> None:
        for _ in range(2_000):
            registry.count("memorist.jobs", kind="embed", result="done")
            registry.record(RECALLED, 1)

    switched = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(switched)
    assert point(registry, "memorist.jobs", kind="embed", result="done").value == 16_000
    assert (point(registry, RECALLED).count, point(registry, RECALLED).value) == (16_000, 16_000)


def test_counting_is_cheap() -> None:
    registry = Registry()

    def count() -> None:
        registry.count("memorist.jobs", kind="embed", result="done")

    best = min(timeit.repeat(count, number=1_000, repeat=20)) / 1_000
    assert best < 10e-6  # about one microsecond where nobody else works


def test_a_forked_child_counts_from_zero_even_if_a_thread_was_counting() -> None:
    code = (
        "import os; from memorist import metrics as m\n"
        "m.count('memorist.compression.fallbacks')\n"
        "m._registry._lock.acquire()\n"  # as if another thread held it
        "child = os.fork()\n"
        "if child: os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "m.count('memorist.compression.fallbacks', 2)\n"
        "os._exit(int(m.snapshot()['memorist.compression.fallbacks'].points[0].value))"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 2


# Gauges


def test_a_gauge_is_asked_when_somebody_looks_and_sums_all_that_it_watches() -> None:
    registry, one, other = Registry(), Queue(embed=1), Queue(embed=2, derive=5)
    for queue in (one, other):
        registry.watch("memorist.queue.depth", queue.read)
    one.depth = {"embed": 10}
    assert point(registry, "memorist.queue.depth", kind="embed").value == 12
    assert point(registry, "memorist.queue.depth", kind="derive").value == 5


def test_what_is_watched_is_not_kept_alive() -> None:
    registry, queue = Registry(), Queue(embed=1)
    registry.watch("memorist.queue.depth", queue.read)
    del queue
    gc.collect()
    assert registry.snapshot()["memorist.queue.depth"].points == ()


def test_a_closed_store_is_passed_over(tmp_path: Path) -> None:
    class Holder:
        def __init__(self, store: SqliteStore) -> None:
            self.store = store

        def read(self) -> Mapping[str, int]:
            return {"embed": self.store.backlog(("embed",))}

    registry, holder = Registry(), Holder(SqliteStore(tmp_path / "memory.db"))
    say(holder.store, "I live in Berlin.")
    registry.watch("memorist.queue.depth", holder.read)
    assert point(registry, "memorist.queue.depth", kind="embed").value == 1
    holder.store.close()
    assert registry.snapshot()["memorist.queue.depth"].points == ()


# What is counted


def test_a_recall_tells_its_time_its_hits_and_what_failed() -> None:
    before, hits = point(metrics, RECALLED), value("memorist.recall.hits")
    failed = value("memorist.recall.failed", channel="meaning")
    embedder = BrokenEmbedder(ValueError(CANARY))
    with Memory(":memory:", embedder=embedder, extraction=None) as memory:
        memory.remember("I moved to Berlin", user="ada")
        found = memory.recall("Berlin", user="ada", deadline_ms=None)
    after = point(metrics, RECALLED)
    assert after.count == before.count + 1
    assert after.value - before.value == pytest.approx(found.timings_ms["total"] / 1_000)
    assert value("memorist.recall.hits") == hits + 1
    assert value("memorist.recall.failed", channel="meaning") == failed + 1


def test_a_late_channel_is_counted() -> None:
    late, embedder = value("memorist.recall.late", channel="meaning"), HungEmbedder(texts=False)
    with Memory(":memory:", embedder=embedder, extraction=None) as memory:
        memory.remember("I moved to Berlin", user="ada")
        assert "meaning" in memory.recall("Berlin", user="ada").late
        embedder.let_go.set()
    assert value("memorist.recall.late", channel="meaning") == late + 1


class Babbling(Model):
    """Answers, and not with what was asked for."""

    def complete(self, messages: Sequence[Mapping[str, str]], **settings: Any) -> Reply:
        return Reply(CANARY, 7, 3)


@pytest.mark.parametrize(
    ("model", "call", "tokens", "job"),
    [
        (Model(), "answered", 150, "done"),
        (Babbling(), "answered", 10, "failed"),
        (Model(BadAnswerError("no", tokens=20)), "unusable", 20, "failed"),
        (Model(ProviderError("busy", status=503)), "failed", 0, None),
    ],
)
def test_extraction_tells_its_jobs_calls_and_tokens(
    tmp_path: Path, model: Model, call: str, tokens: int, job: str | None
) -> None:
    def now() -> list[float]:
        calls = value("memorist.model.calls", task="memories", result=call)
        jobs = value("memorist.jobs", kind="embed", result=job or "done")
        return [calls, value("memorist.model.tokens", task="memories"), jobs]

    before = now()
    with SqliteStore(tmp_path / "memory.db") as store:
        say(store, "I live in Berlin.")
        worker_of(store, model).step()
    assert [a - b for a, b in zip(now(), before, strict=True)] == [1, tokens, int(job is not None)]


def test_jobs_that_the_rules_do_are_counted(tmp_path: Path) -> None:
    before = value("memorist.jobs", kind="embed", result="done")
    with SqliteStore(tmp_path / "memory.db") as store:
        say(store, "I live in Berlin.", "I play the viola.")
        finish(worker_of(store))
    assert value("memorist.jobs", kind="embed", result="done") == before + 2


def test_no_attribute_holds_what_a_user_said() -> None:
    with Memory(":memory:", embedder=None) as memory:
        memory.remember(f"my word is {CANARY}", user=f"user-{CANARY}", agent=CANARY)
        memory.recall(CANARY, user=f"user-{CANARY}")
        memory.jobs.catch_up(300)
    readings = metrics.snapshot().values()
    assert CANARY not in str(readings)
    for reading in readings:
        for one in reading.points:
            for key, said in one.attributes.items():
                assert said in (*reading.instrument.attributes[key], "other")


# OpenTelemetry: each in a process of its own, since a provider is set once for all


def run(code: str) -> Any:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


USE = """
from memorist import Memory, metrics
def use():
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        memory.remember("I moved to Berlin, swordfish", user="ada-swordfish")
        return memory.recall("swordfish", user="ada-swordfish")
"""
SDK = """
import json
from opentelemetry import metrics as api, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
def set_providers():
    api.set_meter_provider(MeterProvider([reader]))
    trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
def report():
    [of] = reader.get_metrics_data().resource_metrics
    [scope] = of.scope_metrics
    assert scope.scope.name == "memorist"
    print(json.dumps({
        "metrics": {
            one.name: [one.unit, [json.loads(p.to_json()) for p in one.data.data_points]]
            for one in scope.metrics
        },
        "spans": [json.loads(span.to_json()) for span in spans.get_finished_spans()],
    }))
"""
WATCH = """
class Queue:
    def read(self): return {"derive": 4}
queue = Queue()
metrics.watch("memorist.queue.depth", queue.read)
metrics.count("memorist.compressions", 2, made_by="extractive")
"""


def test_the_values_arrive_in_opentelemetry_with_units_and_buckets() -> None:
    got = run(f"{SDK}{USE}set_providers()\nuse()\n{WATCH}\nreport()")
    unit, [recalled] = got["metrics"][RECALLED]
    assert (unit, recalled["count"]) == ("s", 1)
    assert recalled["explicit_bounds"] == list(metrics.SECONDS)
    unit, [made] = got["metrics"]["memorist.compressions"]
    assert (unit, made["value"]) == ("{compression}", 2)
    assert made["attributes"] == {"made_by": "extractive"}
    unit, [depth] = got["metrics"]["memorist.queue.depth"]
    assert (unit, depth["value"], depth["attributes"]) == ("{job}", 4, {"kind": "derive"})
    assert [span["name"] for span in got["spans"]] == ["memorist.recall"]
    assert CANARY not in json.dumps(got)


def test_a_provider_may_be_set_after_the_first_use() -> None:
    late = f"use()\n{WATCH}\nset_providers()\nuse()\nmetrics.count('memorist.compressions', 3)"
    got = run(f"{SDK}{USE}{late}\nreport()")
    assert got["metrics"][RECALLED][1][0]["count"] == 1
    assert got["metrics"]["memorist.compressions"][1][0]["value"] == 3
    assert got["metrics"]["memorist.queue.depth"][1][0]["value"] == 4
    assert len(got["spans"]) == 1


def test_opentelemetry_may_be_imported_after_the_first_use() -> None:
    got = run(f"{USE}use()\n{SDK}set_providers()\nuse()\nreport()")
    assert got["metrics"][RECALLED][1][0]["count"] == 1
    assert len(got["spans"]) == 1


def test_what_is_watched_before_opentelemetry_is_imported_is_seen_with_the_next_number() -> None:
    got = run(f"{USE}{WATCH}{SDK}set_providers()\nuse()\nreport()")
    assert got["metrics"]["memorist.queue.depth"][1][0]["value"] == 4


def test_a_span_names_the_kind_of_an_error_and_not_what_it_says() -> None:
    fail = "try:\n  with metrics.span('memorist.recall'): raise ValueError('swordfish')\n"
    got = run(f"{SDK}{USE}set_providers()\n{fail}except ValueError: use()\nreport()")
    [failed, _] = got["spans"]
    assert failed["status"] == {"status_code": "ERROR"}
    assert failed["attributes"] == {"error.type": "ValueError"}
    assert CANARY not in json.dumps(failed)


def test_a_provider_that_cannot_be_loaded_stops_nothing() -> None:
    broken = "import os\nfor it in ('METER', 'TRACER'):\n  "
    broken += "os.environ[f'OTEL_PYTHON_{it}_PROVIDER'] = 'nonsense'\n"
    code = f"{broken}{SDK}{USE}found = [use(), use()][-1]\n{WATCH}print(len(found.hits))"
    assert run(code) == 1


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ImportError("there is no OpenTelemetry here")
sys.meta_path.insert(0, Hidden())
"""
LOADED = "import json, sys\nprint(json.dumps([it for it in sys.modules if 'opentel' in it]))"


@pytest.mark.parametrize("hide", [HIDE, ""], ids=["missing", "installed"])
def test_nothing_of_opentelemetry_is_imported_by_importing_or_using_memorist(hide: str) -> None:
    assert run(f"{hide}{USE}found = use()\n{WATCH}assert found.hits\n{LOADED}") == []


# The page


def written() -> dict[str, tuple[str, ...]]:
    rows = re.findall(r"^\| `(memorist\.[\w.]+)` \|(.*)\|$", PAGE, flags=re.MULTILINE)
    return {name: tuple(cell.strip() for cell in rest.split("|")) for name, rest in rows}


def test_the_page_lists_every_metric_as_it_is() -> None:
    def attributes(one: metrics.Instrument) -> str:
        return "; ".join(f"`{key}`: {', '.join(it)}" for key, it in one.attributes.items())

    assert written() == {
        one.name: (one.kind, f"`{one.unit}`", attributes(one), one.meaning) for one in INSTRUMENTS
    }


def calls() -> list[tuple[str, str, set[str]]]:
    """Every use of metrics in the code: the function, the name, and the attributes."""
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "metrics." in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner, name = node.func.value, node.args[:1]
                ours = isinstance(owner, ast.Name) and owner.id == "metrics"
                if ours and name and node.func.attr != "add_counters":
                    assert isinstance(name[0], ast.Constant), f"{path.name}: name it outright"
                    given = {str(one.arg) for one in node.keywords}
                    found.append((node.func.attr, str(name[0].value), given))
    return found


def test_the_code_counts_what_is_listed_and_lists_what_it_counts() -> None:
    listed = {one.name: one for one in INSTRUMENTS}
    ways = {"count": "counter", "record": "histogram", "watch": "gauge"}
    used = [(how, name, given) for how, name, given in calls() if how in ways]
    for how, name, given in used:
        assert listed[name].kind == ways[how], name
        assert how == "watch" or given == listed[name].attributes.keys(), name
    assert {name for _, name, _ in used} >= listed.keys()


def test_the_page_names_every_span() -> None:
    spans = {name for how, name, _ in calls() if how == "span"}
    assert spans
    for name in spans:
        assert f"`{name}`" in PAGE.partition("Spans")[2].partition("##")[0]
