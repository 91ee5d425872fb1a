"""Whether what a question needs is in the window: LoCoMo and LongMemEval by Memory.context.

Run with `python -m benchmarks.context`. A question counts when every turn of its evidence is in
the window with all of its words; the window is the whole request, the question included. Beside
ours stand the newest messages that fit, and the best hits one by one, both as plain lines without
dates or quotation. Quality is measured without a deadline, latency at the default one.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.asking import told
from benchmarks.context_methods import DEPTH, METHODS, Case, is_inside, ours
from benchmarks.context_plot import Panel, plot, size_name
from benchmarks.dataset import Question
from benchmarks.metrics import interval, percentiles
from benchmarks.recall import Bench, benches, parser, prepare
from benchmarks.report import Grid, publish, quality_grid, short
from benchmarks.scoring import SCHEMES, Row
from memorist import Memory, Message
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.providers.tokenizer import tokenizer_for

SIZES = (1_000, 2_000, 4_000, 8_000)
AIMS = {"locomo": (2_000, 0.75), "longmemeval": (2_000, 0.80)}
TITLES = {"locomo": "LoCoMo, categories 1–4", "longmemeval": "LongMemEval_S"}
TIMED = 100  # questions of each set whose windows are timed
BESIDE = (
    f"plain top-k takes whole messages of up to {DEPTH} hits until one does not fit, as lines that "
    f"tell the speaker; Memorist of at most {Window().most_memories} hits what fits, under dates, "
    "under speakers and quoted: that takes more tokens"
)
Marks = dict[str, dict[int, bool]]
"""Whether the evidence was inside, by method and window."""


@dataclass(frozen=True, slots=True)
class Taken:
    """How long one window took, and whether recall was late or found nothing in time."""

    size: int
    took_ms: float
    late: bool
    empty: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """A question set's marks, question by question, and the times of its windows."""

    name: str
    marks: list[tuple[Question, Marks]]
    taken: list[Taken]
    fullest: dict[int, int]
    used: dict[int, list[int]]
    note: str

    def row(self, label: str, method: str, kinds: Sequence[str]) -> Row:
        """The shares of one method over the questions of some kinds."""
        marks = [marks[method] for question, marks in self.marks if question.kind in kinds]
        columns = {size_name(size): [float(one[size]) for one in marks] for size in SIZES}
        means = {name: fmean(values) for name, values in columns.items()}
        return Row(label, len(marks), means, {name: interval(it) for name, it in columns.items()})

    def pooled(self) -> list[str]:
        """The kinds that the headline is of."""
        belongs = SCHEMES[self.name][0].pooled[1]
        return [kind for kind in self.kinds() if belongs(kind)]

    def kinds(self) -> list[str]:
        return sorted({question.kind for question, _ in self.marks})


def main() -> None:
    """Measure, print, and leave tables and the plot in the folder of results."""
    made = parser("python -m benchmarks.context", __doc__, list(TITLES))
    made.add_argument("--plot", type=Path, metavar="FILE", help="the plot here too, for the docs")
    options = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        asked = benches(options, list(TITLES), Path(folder), evident=True)
        measured = [measure(bench) for bench in asked]
    write(options.out, measured, options.plot)


def measure(bench: Bench) -> Measured:
    """Fill a memory, then windows: for what is inside, and for how fast they are made."""
    counter = TokenCounter(tokenizer_for())
    marks: list[tuple[Question, Marks]] = []
    fullest: dict[int, int] = {}
    used: dict[int, list[int]] = {size: [] for size in SIZES}
    said: tuple[str, dict[str, Message]] = ("", {})
    with bench.open() as memory:
        note = prepare(bench, memory)
        for question in told(bench.questions, "filling windows"):
            if said[0] != question.user:
                said = question.user, _said(bench, question.user)
            bench.clock.at = question.asked_at
            marks.append((question, mark(Case(memory, counter, question, said[1]), fullest, used)))
        taken = list(timed(bench, memory))
    return Measured(bench.dataset.name, marks, taken, fullest, used, note)


def _said(bench: Bench, user: str) -> dict[str, Message]:
    return {
        message.message_id: message
        for _, messages in bench.dataset.history(user)
        for message in messages
    }


def mark(case: Case, fullest: dict[int, int], used: dict[int, list[int]]) -> Marks:
    """Whether the evidence is inside, by method and window.

    The most tokens of any go to `fullest`, those of ours to `used`.
    """
    marks: Marks = {}
    for method, prepared in METHODS.items():
        fill = prepared(case)
        marks[method] = {}
        for size in SIZES:
            shown = fill(size)
            marks[method][size] = is_inside(case.question, case.said, shown)
            fullest[size] = max(fullest.get(size, 0), shown.tokens)
            if prepared is ours:
                used[size].append(shown.tokens)
    return marks


def timed(bench: Bench, memory: Memory) -> Iterator[Taken]:
    """Windows of all sizes at the default deadline, neighbours being of different users."""
    chance = random.Random(1)
    few = chance.sample(list(bench.questions), min(TIMED, len(bench.questions)))
    for size in SIZES:
        for question in few:
            bench.clock.at = question.asked_at
            started = time.perf_counter()
            made = memory.context(question.text, user=question.user, max_tokens=size)
            took_ms = (time.perf_counter() - started) * 1_000
            receipt = made.receipt
            yield Taken(size, took_ms, bool(receipt.late), not receipt.part("memories").ids)


def write(folder: Path, measured: Sequence[Measured], picture: Path | None) -> None:
    """Print and keep: the tables, their figures, and the plot."""
    grids, figures = [], {}
    for one in measured:
        heads, kinds = headline_rows(one), kind_rows(one)
        grids += [
            quality_grid(f"{TITLES[one.name]}: whole evidence in the window", heads),
            quality_grid(f"{one.name}: by kind of question", kinds),
            latency_grid(one),
        ]
        figures[one.name] = {
            "shares": [asdict(row) for row in (*heads, *kinds)],
            "latency_ms": {str(size): latency(one, size) for size in SIZES},
        }
    notes = [BESIDE, *(note for one in measured for note in notes_of(one))]
    publish(grids, notes, folder / "context", {**figures, "notes": notes})
    drawn = plot([panel(one) for one in measured], SIZES)
    for path in filter(None, (folder / "context.svg", picture)):
        path.write_text(drawn, encoding="utf-8")


def headline_rows(one: Measured) -> list[Row]:
    return [one.row(method, method, one.pooled()) for method in METHODS]


def kind_rows(one: Measured) -> list[Row]:
    return [
        one.row(f"{kind}: {method}", method, [kind]) for kind in one.kinds() for method in METHODS
    ]


def panel(one: Measured) -> Panel:
    lines = {row.label: list(row.means.values()) for row in headline_rows(one)}
    return Panel(TITLES[one.name], lines, AIMS[one.name])


def latency(one: Measured, size: int) -> dict[str, float]:
    return percentiles([it.took_ms for it in one.taken if it.size == size])


def latency_grid(one: Measured) -> Grid:
    """How long windows took at the default deadline, and how often recall was late for them."""
    lines = []
    for size in SIZES:
        of_size, spread = [it for it in one.taken if it.size == size], latency(one, size)
        late, empty = sum(it.late for it in of_size), sum(it.empty for it in of_size)
        cells = (f"{spread[key]:.1f}" for key in ("p50", "p95", "p99", "max"))
        lines.append((size_name(size), str(len(of_size)), *cells, str(late), str(empty)))
    columns = ("tokens", "n", "p50", "p95", "p99", "max", "late", "without memories")
    return Grid(f"{one.name}: milliseconds of Memory.context", columns, lines)


def notes_of(one: Measured) -> list[str]:
    """What was stored, how full windows were, and whether the aim is met."""
    size, aim = AIMS[one.name]
    share = headline_rows(one)[0].means[size_name(size)]
    met = "met" if share >= aim else "missed"
    fullest: Mapping[str, Any] = {size_name(size): most for size, most in one.fullest.items()}
    mean = ", ".join(f"{fmean(one.used[size]):,.0f} of {size_name(size)}" for size in SIZES)
    full = ", ".join(f"{most:,} of {name}" for name, most in fullest.items())
    return [
        one.note,
        f"{one.name}: the fullest windows took {full} tokens (o200k_base)",
        f"{one.name}: ours takes on average {mean} tokens",
        f"{one.name}: aim ≥ {short(aim)} at {size_name(size)}: {short(share)}, {met}",
    ]


if __name__ == "__main__":
    main()
