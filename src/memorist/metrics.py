"""Metrics: what happens inside, in numbers; read with `snapshot`, or by OpenTelemetry.

OpenTelemetry is never imported from here. A host that wants its numbers has imported it itself,
since somebody has to set a provider: from then on each number goes there too. So nobody pays for
it who does not use it, and no recall waits for an import.

    metrics.count("memorist.compressions", made_by="extractive")
    metrics.record("memorist.recall.duration", seconds)
    metrics.watch("memorist.queue.depth", memory.waiting)  # asked when somebody looks
    with metrics.span("memorist.recall"): ...
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from memorist.errors import InvalidError, MemoristError

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
HITS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
OTHER = "other"  # whatever is in no list: values are few, and never what a user said

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
    """The value for one set of attributes; of a histogram its sum, with cumulative buckets."""

    attributes: Mapping[str, str]
    value: float
    count: int = 0
    buckets: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric and what it stands at."""

    instrument: Instrument
    points: tuple[Point, ...]


_CHANNEL = {"channel": ("recency", "words", "links", "meaning", "store", "rerank")}
_JOB = {"kind": ("embed", "vectors", "derive", "summarize")}
_TASK = {"task": ("memories", "summary")}
_MAKER = {"made_by": ("extractive", "model")}

INSTRUMENTS = (
    Instrument("memorist.recall.duration", "histogram", "s", "time of a recall", {}, SECONDS),
    Instrument("memorist.recall.hits", "histogram", "{hit}", "hits of a recall", {}, HITS),
    Instrument(
        "memorist.recall.late", "counter", "{channel}", "channels not done in time", _CHANNEL
    ),
    Instrument("memorist.recall.failed", "counter", "{channel}", "channels that failed", _CHANNEL),
    Instrument("memorist.context.duration", "histogram", "s", "time of a context", {}, SECONDS),
    Instrument("memorist.compressions", "counter", "{compression}", "summaries made", _MAKER),
    Instrument(
        "memorist.compression.saved", "counter", "{token}", "tokens that summaries saved", _MAKER
    ),
    Instrument(
        "memorist.compression.fallbacks",
        "counter",
        "{fallback}",
        "summaries made by extraction since the model failed",
    ),
    Instrument(
        "memorist.jobs",
        "counter",
        "{job}",
        "jobs that were done, or failed and wait or are dead",
        _JOB | {"result": ("done", "failed")},
    ),
    Instrument("memorist.queue.depth", "gauge", "{job}", "jobs that wait or are worked on", _JOB),
    Instrument(
        "memorist.model.calls",
        "counter",
        "{call}",
        "questions to a chat model",
        _TASK | {"result": ("answered", "unusable", "failed")},
    ),
    Instrument("memorist.model.tokens", "counter", "{token}", "tokens that models took", _TASK),
)


class Registry:
    """The numbers of a process. Any thread may add to them."""

    def __init__(self, instruments: Iterable[Instrument] = INSTRUMENTS) -> None:
        self._instruments = {one.name: one for one in instruments}
        self._lock = threading.Lock()
        self._connecting = threading.Lock()
        self._series: dict[object, _Series] = {}
        self._watched: dict[str, list[weakref.WeakMethod[Read]]] = defaultdict(list)
        self._outlets: Mapping[str, Send] | None = None
        self._tracer: Any = None

    def count(self, name: str, value: float = 1, /, **attributes: str) -> None:
        """Add to a counter."""
        if not value >= 0:  # it only grows; and a NaN would stay for good
            return
        series = self._series.get(_key(name, attributes)) or self._find(name, attributes)
        with self._lock:
            series.total += value
            if series.bounds:
                series.counts[bisect_left(series.bounds, value)] += 1
        outlets = self._outlets
        if outlets is None:
            outlets = self._connect()
        if outlets:
            outlets[name](value, series.attributes)

    record = count  # a histogram takes a value in the same way

    def watch(self, name: str, read: Read) -> None:
        """Ask a method for a gauge's values when somebody looks, for as long as its object lives.

        The values of several objects are added up.
        """
        self._known(name)
        method = weakref.WeakMethod(read)
        with self._lock:
            alive = [other for other in self._watched[name] if other() is not None]
            self._watched[name] = [*alive, method]
        if self._outlets is None:
            self._connect()

    def span(self, name: str) -> AbstractContextManager[None]:
        """A span of OpenTelemetry where the host traces, and nothing otherwise."""
        api = _imported("opentelemetry.trace")
        if api is None:
            return _NO_SPAN
        if self._tracer is None:
            self._tracer = _tracer(api)
        return _traced(self._tracer, name, api.StatusCode.ERROR)

    def snapshot(self) -> dict[str, Reading]:
        """Every metric with what it stands at, by name."""
        points = defaultdict(list)
        with self._lock:
            for series in dict.fromkeys(self._series.values()):
                points[series.name].append(series.point())
        for name, one in self._instruments.items():
            if one.kind == "gauge":
                points[name] = self._observe(one)
        return {name: Reading(one, tuple(points[name])) for name, one in self._instruments.items()}

    def begin_anew(self) -> None:
        """Start from zero, as a forked child does: what its parent counted is not its own."""
        self._lock, self._connecting = threading.Lock(), threading.Lock()
        self._series = {}

    def _known(self, name: str) -> Instrument:
        if name not in self._instruments:
            raise InvalidError(f"there is no metric {name!r}; list it in memorist.metrics")
        return self._instruments[name]

    def _find(self, name: str, attributes: Mapping[str, str]) -> _Series:
        """The series of these attributes, in whatever order they were given."""
        one = self._known(name)
        if unknown := attributes.keys() - one.attributes.keys():
            raise InvalidError(f"{name} has no attribute {', '.join(sorted(unknown))}")
        kept = {key: _one_of(it, one.attributes[key]) for key, it in sorted(attributes.items())}
        with self._lock:
            series = self._series.setdefault(_key(name, kept), _Series(one, kept))
            if kept == attributes:  # the key of an unlisted value is not kept: there may be many
                self._series[_key(name, attributes)] = series
        return series

    def _observe(self, one: Instrument) -> list[Point]:
        """Ask all who watch a gauge."""
        sums: dict[str, float] = defaultdict(float)
        [(key, values)] = one.attributes.items() or [("", ())]
        for method in list(self._watched[one.name]):
            read = method()
            with contextlib.suppress(MemoristError):  # it is closed, or away
                for value, number in (read() if read else {}).items():
                    sums[_one_of(value, values) if key else ""] += number
        return [Point(attributes={key: it} if key else {}, value=sums[it]) for it in sums]

    def _connect(self) -> Mapping[str, Send] | None:
        """Where numbers go too, once the host has imported OpenTelemetry."""
        api = _imported("opentelemetry.metrics")
        if api is None:
            return None
        with self._connecting:
            if self._outlets is None:
                outlets: Mapping[str, Send] = {}
                with contextlib.suppress(Exception):  # of the host's provider, which logs it
                    outlets = self._open(api)
                self._outlets = outlets
        return self._outlets

    def _open(self, api: Any) -> Mapping[str, Send]:
        meter = api.get_meter("memorist")
        for one in self._instruments.values():
            if one.kind == "gauge":
                looks = [self._looker(one, api.Observation)]
                meter.create_observable_gauge(one.name, looks, one.unit, one.meaning)
        return {
            one.name: _outlet(meter, one)
            for one in self._instruments.values()
            if one.kind != "gauge"
        }

    def _looker(self, one: Instrument, observation: Any) -> Callable[[Any], list[Any]]:
        return lambda _: [observation(it.value, it.attributes) for it in self._observe(one)]


class _Series:
    """The numbers of one metric with one set of attributes."""

    __slots__ = ("attributes", "bounds", "counts", "name", "total")

    def __init__(self, one: Instrument, attributes: Mapping[str, str]) -> None:
        self.name, self.bounds, self.attributes = one.name, one.bounds, attributes
        self.total: float = 0
        self.counts = [0] * (len(one.bounds) + 1)

    def point(self) -> Point:
        if not self.bounds:
            return Point(attributes=self.attributes, value=self.total)
        buckets = tuple(zip((*self.bounds, float("inf")), accumulate(self.counts), strict=True))
        return Point(
            attributes=self.attributes, value=self.total, count=buckets[-1][1], buckets=buckets
        )


def _key(name: str, attributes: Mapping[str, str]) -> object:
    return (name, *attributes.items()) if attributes else name


def _one_of(value: str, values: tuple[str, ...]) -> str:
    return value if value in values else OTHER


def _imported(name: str) -> Any:
    """A module that somebody has imported; not one that another thread is just importing."""
    module = sys.modules.get(name)
    return module if module is not None and hasattr(module, "__all__") else None


def _tracer(api: Any) -> Any:
    with contextlib.suppress(Exception):  # of the host's provider, which logs it
        return api.get_tracer("memorist")
    return api.NoOpTracer()


def _outlet(meter: Any, one: Instrument) -> Send:
    described = {"unit": one.unit, "description": one.meaning}
    if one.kind == "counter":
        send: Send = meter.create_counter(one.name, **described).add
        return send
    bounds = list(one.bounds)
    try:
        histogram = meter.create_histogram(
            one.name, **described, explicit_bucket_boundaries_advisory=bounds
        )
    except TypeError:  # an older OpenTelemetry has buckets of its own
        histogram = meter.create_histogram(one.name, **described)
    record: Send = histogram.record
    return record


@contextmanager
def _traced(tracer: Any, name: str, failed: Any) -> Iterator[None]:
    with tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except Exception as error:  # its kind alone: what it says may be a user's
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(failed)
            raise


_NO_SPAN = nullcontext()
_registry = Registry()
count, record, watch = _registry.count, _registry.record, _registry.watch
span, snapshot = _registry.span, _registry.snapshot

if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_registry.begin_anew)
