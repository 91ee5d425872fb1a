"""Metrics and spans: counters, histograms and gauges, read with `snapshot` or by OpenTelemetry.

OpenTelemetry is never imported from here. An application that wants the numbers imports it to
set a provider; from then on each value goes there too. Others pay nothing for it, and no recall
waits for an import.

    metrics.count("memorist.compressions", made_by="extractive")
    metrics.record("memorist.recall.duration", seconds)
    metrics.watch("memorist.queue.depth", memory.waiting)  # called when the gauge is read
    with metrics.span("memorist.recall"): ...
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, product
from typing import Any, Literal

from memorist.errors import InvalidError, MemoristError
from memorist.forks import ProcessPart, fork_safe

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
HITS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
OTHER = "other"  # in place of unlisted values: attributes have few, and never a user's text

Kind = Literal["counter", "histogram", "gauge"]
Read = Callable[[], Mapping[str, float]]
"""The values of a gauge now: by the values of its one attribute, or by "" where it has none."""
Send = Callable[[float, Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric: what it counts, and by which attributes with which values."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The value for one set of attributes; of a histogram the sum, with cumulative buckets."""

    attributes: Mapping[str, str]
    value: float
    count: int = 0
    buckets: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric and its values."""

    instrument: Instrument
    points: tuple[Point, ...]


def _counter(name: str, unit: str, meaning: str, **attributes: tuple[str, ...]) -> Instrument:
    return Instrument(name, "counter", unit, meaning, attributes)


_CHANNELS = ("recency", "words", "links", "meaning", "store", "rerank")
_JOBS = ("index", "embed", "vectors", "derive", "summarize")
_QUEUE = (*_JOBS[1:], "rebuild", "dead")
_TASKS = ("memories", "summary")
_MAKERS = ("extractive", "model")
_RESULTS = ("answered", "unusable", "failed")
AREAS = tuple(
    "agents articles audit chat compress context counts entities entries events export facts "
    "forget health import jobs keys maintain mcp me memories messages metrics notes openapi.json "
    "page ready rebuild recall receipts restore sessions summaries users waiting".split()
)
_STATUS = ("2xx", "3xx", "4xx", "5xx", "closed")

INSTRUMENTS = (
    Instrument("memorist.recall.duration", "histogram", "s", "time of a recall", {}, SECONDS),
    Instrument("memorist.recall.hits", "histogram", "{hit}", "hits of a recall", {}, HITS),
    _counter("memorist.recall.late", "{channel}", "channels not done in time", channel=_CHANNELS),
    _counter("memorist.recall.failed", "{channel}", "channels that failed", channel=_CHANNELS),
    Instrument("memorist.context.duration", "histogram", "s", "time of a context", {}, SECONDS),
    _counter("memorist.compressions", "{compression}", "summaries made", made_by=_MAKERS),
    _counter("memorist.compression.saved", "{token}", "tokens saved", made_by=_MAKERS),
    _counter("memorist.compression.fallbacks", "{fallback}", "summaries made after a failed model"),
    _counter("memorist.jobs", "{job}", "jobs by result", kind=_JOBS, result=("done", "failed")),
    Instrument("memorist.queue.depth", "gauge", "{job}", "jobs not done", {"kind": _QUEUE}),
    _counter("memorist.model.calls", "{call}", "calls of a model", task=_TASKS, result=_RESULTS),
    _counter("memorist.model.tokens", "{token}", "tokens that models took", task=_TASKS),
    Instrument("memorist.store.size", "gauge", "By", "size of the database"),
    Instrument(
        "memorist.http.duration",
        "histogram",
        "s",
        "time of a request to the server",
        {"area": AREAS, "result": _STATUS},
        SECONDS,
    ),
    Instrument("memorist.worker.up", "gauge", "1", "whether the server's worker process runs"),
    Instrument("memorist.worker.deaths", "gauge", "{death}", "ends of it that nobody asked for"),
    Instrument("memorist.http.active", "gauge", "{request}", "requests being answered"),
    Instrument("memorist.process.cpu", "gauge", "s", "processor time of the server's process"),
    Instrument("memorist.process.memory", "gauge", "By", "memory that the process holds"),
)

COUNTERS = tuple(
    (instrument.name, dict(sorted(zip(instrument.attributes, values, strict=True))))
    for instrument in INSTRUMENTS
    if instrument.kind == "counter"
    for values in product(*((*listed, OTHER) for listed in instrument.attributes.values()))
)
"""Every counter with every set of its attributes, in the order in which processes share them."""


class Registry(ProcessPart):
    """The metrics of a process. Any thread may add to them."""

    def __init__(self, instruments: Iterable[Instrument] = INSTRUMENTS) -> None:
        self._instruments = {instrument.name: instrument for instrument in instruments}
        self._lock = fork_safe(threading.Lock())
        self._connecting = fork_safe(threading.Lock())
        self._series: dict[object, _Series] = {}
        self._watched: dict[str, list[weakref.WeakMethod[Read]]] = defaultdict(list)
        self._read_shared: Callable[[], Iterable[float]] = tuple
        self._exports: Mapping[str, Send] | None = None
        self._tracer: Any = None
        self.watch_process()

    def count(self, name: str, value: float = 1, /, **attributes: str) -> None:
        """Add to a counter."""
        if not value >= 0:  # it only grows; and a NaN would stay for good
            return
        series = self._series.get(_key(name, attributes)) or self._find(name, attributes)
        with self._lock:
            series.total += value
            if series.bounds:
                series.counts[bisect_left(series.bounds, value)] += 1
        exports = self._exports
        if exports is None:
            exports = self._connect()
        if exports:
            exports[name](value, series.attributes)

    record = count  # a histogram takes a value in the same way

    def watch(self, name: str, read: Read) -> None:
        """Read a gauge from a method, for as long as its object lives; several are added up."""
        self._instrument(name)
        method = weakref.WeakMethod(read)
        with self._lock:
            alive = [other for other in self._watched[name] if other() is not None]
            self._watched[name] = [*alive, method]
        if self._exports is None:
            self._connect()

    def span(self, name: str) -> AbstractContextManager[None]:
        """An OpenTelemetry span where the application traces, and nothing otherwise."""
        api = _imported("opentelemetry.trace")
        if api is None:
            return _NO_SPAN
        if self._tracer is None:
            try:
                self._tracer = api.get_tracer("memorist")
            except Exception:  # noqa: BLE001 - of the application's provider, which logs it
                self._tracer = api.NoOpTracer()
        return _traced(self._tracer, name, api.StatusCode.ERROR)

    def snapshot(self) -> dict[str, Reading]:
        """Every metric with its values, by name."""
        points = defaultdict(list)
        for (name, attributes), value in zip(COUNTERS, self._read_shared(), strict=False):
            if value:
                self._find(name, attributes).shared = value
        with self._lock:
            for series in dict.fromkeys(self._series.values()):
                points[series.name].append(series.point())
        for instrument in self._gauges():
            points[instrument.name] = self._observe(instrument)
        return {
            name: Reading(instrument, tuple(points[name]))
            for name, instrument in self._instruments.items()
        }

    def counters(self) -> list[float]:
        """The values of COUNTERS, for another process to show."""
        with self._lock:
            series = [self._series.get(_key(*counter)) for counter in COUNTERS]
        return [0.0 if it is None else it.total for it in series]

    def add_counters(self, read: Callable[[], Iterable[float]]) -> None:
        """Show what another process counted too: its values of COUNTERS."""
        self._read_shared = read

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # what its parent counted is not its own
            self._series = {}

    def _instrument(self, name: str) -> Instrument:
        if name not in self._instruments:
            raise InvalidError(f"there is no metric {name!r}; list it in memorist.metrics")
        return self._instruments[name]

    def _gauges(self) -> list[Instrument]:
        return [it for it in self._instruments.values() if it.kind == "gauge"]

    def _find(self, name: str, attributes: Mapping[str, str]) -> _Series:
        """The series of these attributes, in any order; unlisted values count as OTHER."""
        instrument = self._instrument(name)
        if unknown := attributes.keys() - instrument.attributes.keys():
            raise InvalidError(f"{name} has no attribute {', '.join(sorted(unknown))}")
        listed = {
            key: _listed(value, instrument.attributes[key])
            for key, value in sorted(attributes.items())
        }
        with self._lock:
            series = self._series.setdefault(_key(name, listed), _Series(instrument, listed))
            if listed == attributes:  # keys with unlisted values are not kept: there may be many
                self._series[_key(name, attributes)] = series
        return series

    def _observe(self, gauge: Instrument) -> list[Point]:
        """Read a gauge from all methods that watch it."""
        sums: dict[str, float] = defaultdict(float)
        [(key, values)] = gauge.attributes.items() or [("", ())]
        for method in list(self._watched[gauge.name]):
            read = method()
            with contextlib.suppress(MemoristError):  # its store is closed or away
                for value, number in (read() if read else {}).items():
                    sums[_listed(value, values) if key else ""] += number
        return [
            Point(attributes={key: value} if key else {}, value=total)
            for value, total in sums.items()
        ]

    def _connect(self) -> Mapping[str, Send] | None:
        """The OpenTelemetry instruments, once the application has imported it."""
        api = _imported("opentelemetry.metrics")
        if api is None:
            return None
        with self._connecting:
            if self._exports is None:
                exports: Mapping[str, Send] = {}  # published when it is complete
                with contextlib.suppress(Exception):  # of the application's provider, which logs it
                    exports = self._open_exports(api)
                self._exports = exports
        return self._exports

    def _open_exports(self, api: Any) -> Mapping[str, Send]:
        meter, gauges = api.get_meter("memorist"), self._gauges()
        for gauge in gauges:
            read = [partial(self._observations, gauge, api.Observation)]
            meter.create_observable_gauge(gauge.name, read, gauge.unit, gauge.meaning)
        others = [it for it in self._instruments.values() if it not in gauges]
        return {it.name: _otel_instrument(meter, it) for it in others}

    def _observations(self, gauge: Instrument, observation: Any, _: Any) -> list[Any]:
        return [observation(point.value, point.attributes) for point in self._observe(gauge)]


class _Series:
    """The values of one metric with one set of attributes."""

    __slots__ = ("attributes", "bounds", "counts", "name", "shared", "total")

    def __init__(self, instrument: Instrument, attributes: Mapping[str, str]) -> None:
        self.name, self.bounds, self.attributes = instrument.name, instrument.bounds, attributes
        self.total: float = 0
        self.shared: float = 0  # what other processes counted
        self.counts = [0] * (len(instrument.bounds) + 1)

    def point(self) -> Point:
        if not self.bounds:
            return Point(attributes=self.attributes, value=self.total + self.shared)
        buckets = tuple(zip((*self.bounds, float("inf")), accumulate(self.counts), strict=True))
        return Point(
            attributes=self.attributes, value=self.total, count=buckets[-1][1], buckets=buckets
        )


def _key(name: str, attributes: Mapping[str, str]) -> object:
    return (name, *attributes.items()) if attributes else name


def _listed(value: str, values: tuple[str, ...]) -> str:
    return value if value in values else OTHER


def _imported(name: str) -> Any:
    """A module that is imported already, and not still being imported by another thread."""
    module = sys.modules.get(name)
    return module if module is not None and hasattr(module, "__all__") else None


def _otel_instrument(meter: Any, instrument: Instrument) -> Send:
    described = {"unit": instrument.unit, "description": instrument.meaning}
    if instrument.kind == "counter":
        add: Send = meter.create_counter(instrument.name, **described).add
        return add
    advice = {"explicit_bucket_boundaries_advisory": list(instrument.bounds)}
    try:
        histogram = meter.create_histogram(instrument.name, **described, **advice)
    except TypeError:  # an older OpenTelemetry has buckets of its own
        histogram = meter.create_histogram(instrument.name, **described)
    record: Send = histogram.record
    return record


@contextmanager
def _traced(tracer: Any, name: str, failed: Any) -> Iterator[None]:
    with tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except Exception as error:  # its type alone: its text may quote a user
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(failed)
            raise


_NO_SPAN = nullcontext()
_registry = Registry()
count, record, watch = _registry.count, _registry.record, _registry.watch
span, snapshot = _registry.span, _registry.snapshot
counters, add_counters = _registry.counters, _registry.add_counters
