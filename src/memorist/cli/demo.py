"""`memorist demo`: a year of one user in a temporary memory, without a key and a network."""

import time
import tomllib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from rich.text import Text

from memorist.cli.render import console
from memorist.config import Settings
from memorist.lifecycle.settings import DEFAULT_EXTRACTION
from memorist.memory import Memory
from memorist.providers.minilm import MiniLM
from memorist.records.message import Message
from memorist.records.query import Hit
from memorist.records.values import now

STORY: dict[str, Any] = tomllib.loads(files(__package__).joinpath("demo.toml").read_text("utf-8"))
TODAY: datetime = STORY["today"]
USER, AGENT = "ada", "assistant"
QUESTIONS = ("Do I live in Munich or Berlin?", "What can I cook for dinner?")
TASK, TASK_TOKENS = "What can we cook this weekend?", 800
SHOWN = 2  # messages of a conversation
HITS = 3
BAR_CHARS, WIDEST = 8, 80
COLOURS = {
    "notes": "magenta", "history": "blue", "memories": "cyan",
    "articles": "green", "question": "yellow", "answer": "white",
}  # fmt: skip


class DemoClock:
    """A clock that began to go at TODAY, whatever the day is."""

    def __init__(self) -> None:
        self._lag = now() - TODAY

    def __call__(self) -> datetime:
        return now() - self._lag


def tell(memory: Memory, user: str = USER) -> Iterator[Sequence[Message]]:
    """Store notes, articles and one conversation after the other; yield the messages of each."""
    notes, library = memory.notes(user=user, agent=AGENT), memory.library(user=user, agent=AGENT)
    notes.write("# About Ada\n\n- Answers: short\n")
    notes.write(STORY["notes"])
    for article in STORY["articles"]:
        library.add(article["title"], article["text"], uri=f"demo:{article['title']}")
    for conversation in STORY["conversations"]:
        began = TODAY - timedelta(days=conversation["days_ago"])
        messages = [
            Message(
                "assistant" if line.startswith("> ") else "user",
                line.removeprefix("> "),
                created_at=began + timedelta(minutes=2 * number),
            )
            for number, line in enumerate(conversation["text"].splitlines())
        ]
        chat = memory.session(user=user, agent=conversation["agent"], new=True)
        memory.remember(messages, **chat.session.scope.names)
        yield messages


def demo(
    page: bool = typer.Option(True, help="Show the page on it at the end, until Ctrl-C."),
) -> None:
    """Show what memory does, on a year of one user: no key, no network, half a minute.

    It uses a memory of its own, which is removed at the end.
    """
    with TemporaryDirectory(prefix="memorist-demo-") as folder:
        file = Path(folder) / "demo.db"
        with Memory(
            file,
            tenant="default",
            embedder=MiniLM(),
            extraction=DEFAULT_EXTRACTION,
            clock=DemoClock(),
        ) as memory:
            for number, (headline, lines) in enumerate(PARTS.items(), 1):
                console.print(Text.assemble((f"\n {number} ", "bold cyan"), (headline, "bold")))
                pause(0.8)
                for line in lines(memory):
                    console.print(Text("   ").append(line), no_wrap=True, overflow="ellipsis")
                    pause(0.35)
                pause(1.5)
        if page and console.is_terminal:
            _serve(file)
        else:
            console.print(Text("\n Your own: memorist remember … and memorist recall …", "dim"))


def pause(seconds: float) -> None:
    """Leave time to read, if somebody does."""
    if console.is_terminal:
        time.sleep(seconds)


def _conversation(memory: Memory) -> Iterator[Text]:
    stored = 0
    for messages in tell(memory):
        stored += len(messages)
        said = [message.text for message in messages if message.role == "user"][:SHOWN]
        for day, text in zip((_day(messages[0].created_at), ""), said, strict=False):
            yield Text.assemble((f"{day:>6}  ", "dim"), text)
    with console.status("making memories of it …"):
        memory.jobs.catch_up(60)
    memories, facts = len(memory.memories.list(user=USER)), len(memory.facts.list(user=USER))
    made = f"{memories} memories and {facts} facts made of them, offline"
    yield Text(f"        {stored} messages stored; {made}", "green")


def _recalled(memory: Memory) -> Iterator[Text]:
    for question in QUESTIONS:
        result = memory.recall(question, user=USER, limit=HITS, deadline_ms=None)
        took = f"  {result.timings_ms['total']:.0f} ms"
        yield Text.assemble(("? ", "cyan"), (question, "bold"), (took, "dim"))
        for hit in result.hits:
            bar = "▇" * max(round(hit.score / result.hits[0].score * BAR_CHARS), 1)
            yield Text.assemble((f"{bar:<{BAR_CHARS}}  ", "cyan"), hit.text)
            yield Text(" " * (BAR_CHARS + 2)).append(_why(hit))


def _why(hit: Hit) -> Text:
    over = (f"over, {hit.over} · " if hit.over else "", "yellow")
    return Text.assemble(over, (f"{_day(hit.created_at)} · {hit.why.found}", "dim"))


def _resolved(memory: Memory) -> Iterator[Text]:
    for fact in memory.facts.history("user", "lives in", user=USER):
        span = f"{_day(fact.valid_from)} – {_day(fact.valid_to)}"
        over = f"over: {fact.reason}" if fact.valid_to else "true"
        style = ("dim strike", "yellow") if fact.valid_to else ("bold", "green")
        gap = " " * (24 - len(fact.text))
        yield Text.assemble((f"{span:<18}", "dim"), (fact.text, style[0]), gap, (over, style[1]))
    april = datetime(TODAY.year, 4, 1, tzinfo=TODAY.tzinfo)
    [home] = memory.facts.as_of(user=USER, subject="user", predicate="lives in", valid=april)
    yield Text.assemble((f"{'asked for 1 Apr':<18}", "dim"), home.text)


def _day(at: datetime | None) -> str:
    return f"{at.day} {at:%b}" if at else "now"


def _window(memory: Memory) -> Iterator[Text]:
    [newest] = memory.sessions(user=USER, agent=AGENT, newest_first=True, limit=1)
    context = memory.context(
        TASK,
        **newest.scope.names,
        max_tokens=TASK_TOKENS,
        library=memory.library(user=USER, agent=AGENT),
        deadline_ms=None,
    )
    receipt = context.receipt
    tokens = {name: receipt.part(name).tokens for name in COLOURS} | {"answer": receipt.answer}
    chars = min(console.width, WIDEST) - 6
    bar, legend = Text(), [Text.assemble("░ ", (f"left {receipt.left}", "dim"))]
    for name, count in tokens.items():
        bar.append("█" * max(round(count / receipt.window * chars), 1), COLOURS[name])
        legend.append(Text.assemble(("█ ", COLOURS[name]), (f"{name} {count}", "dim")))
    yield Text.assemble(("? ", "cyan"), (TASK, "bold"))
    yield bar.append("░" * (chars - len(bar)), "dim")
    yield Text("   ").join(legend[1:5])
    yield Text("   ").join([*legend[5:], legend[0]])


PARTS = {
    "What is said goes in, word for word": _conversation,
    "Recall finds what bears on a question, and says why": _recalled,
    "A change of mind is resolved: the old is kept, and marked as over": _resolved,
    f"A window of {TASK_TOKENS} tokens is filled, and the receipt says with what": _window,
}


def _serve(file: Path) -> None:
    """The page on the demo's memory, until Ctrl-C."""
    from memorist.server.http import run  # here: it takes a while, and --no-page needs none

    def announce(at: run.Address) -> None:
        console.print(
            Text.assemble(("\n 5 ", "bold cyan"), ("The same on a page: ", "bold"), at.url)
        )
        console.print(Text("   Ctrl-C ends the demo and removes its memory.", "dim"))

    address = run.Address("127.0.0.1", 0)
    settings = run.resolve_auth(Settings(url=str(file), user=USER), address, keys=False)
    run.serve(settings, address, ready=announce)
