"""How long a context takes as its session grows, as a ratio in one run on one machine.

Run with `python -m benchmarks.windows`. A session of 100,000 messages may take at most twice as
long as one of 1,000, and both the deadline of recall and 20 ms more.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.scale_corpus import Corpus
from memorist import Chat, Memory, Message
from memorist.context.window import Window

CORPUS = Corpus()  # words as frequent as in real talk
SIZES = (1_000, 10_000, 100_000)
BATCH = 500
DEADLINE_MS = 50.0


def main() -> None:
    """Fill sessions of three sizes, ask in turns, and print the times beside each other."""
    options = parser().parse_args()
    sizes = [size for size in SIZES if size <= options.most]
    with tempfile.TemporaryDirectory(prefix="memorist-bench-") as folder:
        memories = {size: _open(Path(folder) / f"{size}.db") for size in sizes}
        chats = {size: fill(memories[size], size) for size in sizes}
        for tokens in options.windows:
            report(tokens, measure(chats, Window(max_tokens=tokens), options.times))
        for memory in memories.values():
            memory.close()


def _open(path: Path) -> Memory:
    """Without vectors and memories, which take long to make and are measured elsewhere."""
    return Memory(path, embedder=None, extraction=None)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.windows", description=__doc__)
    made.add_argument("--most", type=int, default=SIZES[-1], help="messages of the largest session")
    made.add_argument("--times", type=int, default=100, help="contexts of each session")
    made.add_argument("--windows", type=int, nargs="+", default=[8_000, 128_000], metavar="TOKENS")
    return made


def fill(memory: Memory, size: int) -> Chat:
    """A session of so many messages, with its summary made."""
    chat = memory.session(user="ada", agent="pilot")
    for start in range(0, size, BATCH):
        batch = [
            Message("assistant" if number % 2 else "user", text)
            for number, text in enumerate(CORPUS.texts(start, start + BATCH))
        ]
        memory.remember(batch, user="ada", agent="pilot", session=chat.id)
    before = time.perf_counter()
    first = chat.context("ready?", window=Window(max_tokens=8_000))
    first_ms = (time.perf_counter() - before) * 1_000
    memory._runtime.summarizer().catch_up()
    print(f"{size:,} messages: first context {first_ms:,.0f} ms, {first.receipt}")
    print(f"  summarised after {time.perf_counter() - before:,.1f} s in the background")
    return chat


def measure(chats: dict[int, Chat], window: Window, times: int) -> dict[int, list[float]]:
    """Milliseconds of contexts, the sessions in turns, so that noise meets all alike."""
    took = {size: list[float]() for size in chats}
    asked = [question for _, question in CORPUS.questions(min(chats), times + 5, seed=1)]
    for number, question in enumerate(asked):
        for size, chat in chats.items():
            before = time.perf_counter()
            chat.context(question, window=window)
            if number >= 5:  # what is loaded once is not counted
                took[size].append((time.perf_counter() - before) * 1_000)
    return took


def report(tokens: int, took: dict[int, list[float]]) -> None:
    base = statistics.median(next(iter(took.values())))
    print(
        f"\nwindow of {tokens:,} tokens\n| messages | p50 ms | p95 ms | ratio |\n|---|---|---|---|"
    )
    for size, times in took.items():
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(f"| {size:,} | {p50:.1f} | {p95:.1f} | {p50 / base:.2f} |")
    worst = max(statistics.quantiles(times, n=20)[-1] for times in took.values())
    print(f"p95 within the deadline and 20 ms: {worst <= DEADLINE_MS + 20}")


if __name__ == "__main__":
    main()
