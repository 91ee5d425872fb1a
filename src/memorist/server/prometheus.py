"""Numbers as Prometheus reads them: the text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memorist.metrics import Instrument, Point, Reading

_UNITS = {"s": "_seconds"}


def exposition(readings: Mapping[str, Reading]) -> str:
    """Every metric with its help, its type and its values."""
    lines = [line for reading in readings.values() for line in _lines(reading)]
    return "\n".join(lines) + "\n"


def _lines(reading: Reading) -> Iterator[str]:
    one = reading.instrument
    name = _name(one)
    yield f"# HELP {name} {one.meaning}"
    yield f"# TYPE {name} {one.kind}"
    for point in reading.points:
        if one.kind == "histogram":
            yield from _histogram(name, point)
        else:
            yield f"{name}{_labels(point.attributes)} {point.value:g}"


def _name(one: Instrument) -> str:
    name = one.name.replace(".", "_") + _UNITS.get(one.unit, "")
    return f"{name}_total" if one.kind == "counter" else name


def _histogram(name: str, point: Point) -> Iterator[str]:
    for bound, count in point.buckets:
        le = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f"{name}_bucket{_labels({**point.attributes, 'le': le})} {count}"
    yield f"{name}_sum{_labels(point.attributes)} {point.value:g}"
    yield f"{name}_count{_labels(point.attributes)} {point.count}"


def _labels(attributes: Mapping[str, str]) -> str:
    told = ",".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"{{{told}}}" if told else ""
