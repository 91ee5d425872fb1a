"""Recall beside the evidence: LoCoMo, LongMemEval and a set of ours through the public door.

Run with `make bench-recall`, or `python -m benchmarks.recall --help`. Quality is measured
without a deadline and latency with the default one, in the same run; both scores are of
retrieval against labelled evidence and none is the accuracy of an answer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.asking import Answer, Clock, ask, ask_all, ask_shuffled, catch_up, fill
from benchmarks.dataset import Dataset, Question, stratified
from benchmarks.embedding import EMBEDDERS, CachedEmbedder, make_embedder
from benchmarks.locomo import Locomo
from benchmarks.longmemeval import LongMemEval
from benchmarks.report import (
    Grid,
    latency_grid,
    plain_rows,
    publish,
    quality_grid,
    spread,
    write_questions,
)
from benchmarks.scoring import SCHEMES, Row, rows_of
from benchmarks.stories import Stories
from benchmarks.technical import Technical
from benchmarks.verdict import ablation_grid, headline_grid, means_of
from memorist import MemoristError, Memory

ROOT = Path(__file__).parent.parent
LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "locomo": Locomo.load,
    "longmemeval": LongMemEval.load,
    "technical": Technical.load,
    "changes": Stories.changes,
    "talks": Stories.talks,
}


@dataclass(frozen=True, slots=True)
class Bench:
    """A question set, the memory it was put into, and how to open that again."""

    dataset: Dataset
    questions: Sequence[Question]
    store: str
    embedder: CachedEmbedder | None
    memories: bool = True
    clock: Clock = field(default_factory=Clock)

    def open(self, **settings: Any) -> Memory:
        self.clock.at = None
        given: dict[str, Any] = {"embedder": self.embedder, **settings}
        if not self.memories:
            given["extraction"] = None
        return Memory(self.store, tenant=self.dataset.name, clock=self.clock, **given)


@dataclass(frozen=True, slots=True)
class Measured:
    """A question set's answers without a deadline and at the default one, with their rows."""

    bench: Bench
    whole: list[Answer]
    timed: list[Answer]
    rows: dict[str, list[Row]]
    notes: list[str]


def main() -> None:
    """Measure, print, and leave tables and per-question files in the folder of results."""
    made = parser("make bench-recall", __doc__, list(LOADERS))
    made.add_argument("--ablation", action="store_true", help="also without each part of ranking")
    options = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        measured = [measure(bench) for bench in benches(options, list(LOADERS), Path(folder))]
        ablated = ablate(measured) if options.ablation else None
        write(options.out, measured, ablated)


def parser(prog: str, about: str | None, names: Sequence[str]) -> argparse.ArgumentParser:
    """The options of a run over question sets."""
    made = argparse.ArgumentParser(prog=prog, description=about)
    made.add_argument("--data", type=Path, default=ROOT / "../shared/data", metavar="DIR")
    made.add_argument("--only", choices=names)
    made.add_argument("--questions", type=int, metavar="N", help="as many of each set, all kinds")
    made.add_argument("--store", metavar="URL", help="kept and reused; else a file thrown away")
    made.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    made.add_argument("--cache", type=Path, default=Path(".bench-cache"), metavar="DIR")
    made.add_argument("--embedder", choices=EMBEDDERS, default="minilm")
    made.add_argument(
        "--no-memories", dest="memories", action="store_false", help="of messages alone"
    )
    return made


def benches(
    options: argparse.Namespace, names: Sequence[str], folder: Path, *, evident: bool = False
) -> list[Bench]:
    """The sets that the options name, each with its store; `evident`: of turns with evidence."""
    sets = [LOADERS[name](options.data) for name in ([options.only] if options.only else names)]
    try:
        embedder = make_embedder(options.embedder, options.cache)
        if embedder:
            embedder.embed_query("ready?")  # a model that is not there should say so now
    except (ImportError, MemoristError) as error:
        sys.exit(str(error))
    made = []
    for dataset in sets:
        asked = [it for it in dataset.questions if it.turns or not evident]
        store = options.store or str(folder / f"{dataset.name}.db")
        questions = stratified(asked, options.questions)
        made.append(Bench(dataset, questions, store, embedder, options.memories))
    return made


def measure(bench: Bench) -> Measured:
    """Fill, then ask everything twice: for what is found, and for how fast it is found."""
    with bench.open() as memory:
        notes = [prepare(bench, memory)]
        ask(memory, bench.clock, bench.questions[0])  # loads what is loaded only once
        whole = ask_all(memory, bench.clock, bench.questions, deadline_ms=None)
        timed = ask_shuffled(memory, bench.clock, bench.questions)
    rows = {scheme.name: rows_of(scheme, whole) for scheme in SCHEMES[bench.dataset.name]}
    return Measured(bench, whole, timed, rows, [*notes, compare(bench.dataset.name, whole, timed)])


def prepare(bench: Bench, memory: Memory) -> str:
    """Put the set into the memory; say what was stored, left out, and how long it took."""
    name, embedder = bench.dataset.name, bench.embedder
    started = time.perf_counter()
    stored = fill(memory, bench.dataset, bench.questions)
    filled = time.perf_counter() - started
    said = embedder.report if embedder else lambda: "words only"
    waited = catch_up(memory, lambda waiting: print(f"{name}: {waiting:,} wait; {said()}"))
    return (
        f"{name}: {len(bench.questions):,} questions ({bench.dataset.left_out} of the set have "
        f"nothing to find and are left out); {stored:,} messages remembered in {filled:,.0f} s, "
        f"vectors {waited:,.0f} s later; {said()}"
    )


def compare(name: str, whole: Sequence[Answer], timed: Sequence[Answer]) -> str:
    """What the deadline cost: how often the ten best are others than without one."""
    other = sum(best(one) != best(fast) for one, fast in zip(whole, timed, strict=True))
    failed = sum(bool(one.failed) for one in (*whole, *timed))
    return (
        f"{name}: at the default deadline {other} of {len(timed)} questions have another top 10; "
        f"{failed} recalls had a channel that failed"
    )


def best(answer: Answer) -> list[str]:
    return [one.id for one in answer.found[:10]]


def ablate(measured: Sequence[Measured]) -> Grid:
    """The headline figures of every variant of the ranking beside the default's."""
    from benchmarks.ablation import variants  # here, so that the rest runs without

    default = means_of(row for one in measured for row in one.rows.items())
    found = {"default": default}
    for label, settings in variants():
        rows: dict[str, list[Row]] = {}
        for one in measured:
            with one.bench.open(**settings) as memory:
                catch_up(memory, lambda waiting: print(f"{waiting:,} wait"))
                questions = one.bench.questions
                answers = ask_all(memory, one.bench.clock, questions, deadline_ms=None)
            schemes = SCHEMES[one.bench.dataset.name]
            rows |= {scheme.name: rows_of(scheme, answers) for scheme in schemes}
        found[label] = means_of(rows.items())
    return ablation_grid(found)


def write(folder: Path, measured: Sequence[Measured], ablated: Grid | None) -> None:
    """Print and keep: a table for each way of scoring, latency, the aims, and the notes."""
    grids: list[Grid] = []
    figures: dict[str, Any] = {"quality": {}, "latency_ms": {}}
    folder.mkdir(parents=True, exist_ok=True)
    for one in measured:
        name = one.bench.dataset.name
        grids += [quality_grid(scheme, rows) for scheme, rows in one.rows.items()]
        passes = {"default deadline": one.timed, "no deadline": one.whole}
        grids.append(latency_grid(f"{name}: latency of recall", passes))
        write_questions(folder / f"recall-{name}.jsonl", one.whole, one.timed)
        figures["quality"] |= {scheme: plain_rows(rows) for scheme, rows in one.rows.items()}
        figures["latency_ms"][name] = spread(one.timed)
    grids.append(headline_grid(means_of(row for one in measured for row in one.rows.items())))
    if ablated:
        grids.append(ablated)
        figures["ablation"] = [dict(zip(ablated.columns, row, strict=True)) for row in ablated.rows]
    notes = [note for one in measured for note in one.notes]
    publish(grids, notes, folder / "recall", {**figures, "notes": notes})


if __name__ == "__main__":
    main()
