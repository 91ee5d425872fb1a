"""`memorist context`: the exact window a model would get, and the receipt for it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    Agent,
    AsJson,
    Database,
    SessionId,
    User,
    console,
    errors,
    harmless,
    open_memory,
    print_json,
)
from memorist.config import Settings
from memorist.context.quote import MARK
from memorist.context.window import Context, Part, Receipt, Window
from memorist.errors import NotFoundError
from memorist.memory import Memory
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.views.library import Library

CATCH_UP_SECONDS = 2.0
BAR_CHARS = 24
BESIDE_THE_BAR = 56  # characters that the rest of the table is better with
EIGHTHS = " ▏▎▍▌▋▊▉"
INDENT = "  "
LEAST_ROOM = 10
UNITS = {
    "history": ("message", "messages"),
    "memories": ("memory", "memories"),
    "articles": ("article", "articles"),
}
COLOURS = {"system": "magenta", "user": "cyan", "assistant": "green", "tool": "yellow"}
TIMES = {"total": "recall"}  # of which the others are parts
DEFAULT = Window()

MaxTokens = Annotated[
    int, typer.Option("--max-tokens", "-t", min=1, help="How many the window takes.")
]
Model = Annotated[str, typer.Option(help="Whose tokens to count, e.g. gpt-4o.")]
System = Annotated[
    str | None, typer.Option(help="The system prompt. Default: the one the session begins with.")
]
FromLibrary = Annotated[
    str | None, typer.Option("--library", "-l", help="A shelf to quote articles from, by its name.")
]
OnlyReceipt = Annotated[bool, typer.Option("--receipt", help="Only the receipt.")]
Deadline = Annotated[
    float, typer.Option("--deadline", help="Milliseconds. A new process has a model to load.")
]


class _Untouched:
    """A store that keeps no summaries: looking through a small window must not shorten what
    an agent with a larger one sees of the session from then on.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write_summary(self, *_: Any, **__: Any) -> None: ...

    def queue_summary(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def context(
    question: Annotated[str, typer.Argument(help="What the user asks.")],
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    max_tokens: MaxTokens = DEFAULT.max_tokens,
    model: Model = "",
    system: System = None,
    library: FromLibrary = None,
    deadline: Deadline = 5_000,
    receipt: OnlyReceipt = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model would be sent for a question: every message, and what each part takes."""
    memory, settings = open_memory(db)
    with memory:
        scope = _scope(memory, settings, user, agent, session)
        given: dict[str, Any] = {} if system is None else {"system": system}
        if library is not None:
            given["library"] = Library(memory, library)
        memory.jobs.catch_up(CATCH_UP_SECONDS)  # what was just stored has no vector yet
        memory._runtime.store = cast(Store, _Untouched(memory.store))
        made = memory.context(
            question,
            user=scope.user,
            agent=scope.agent,
            session=scope.session,
            window=Window(max_tokens=max_tokens, model=model),
            deadline_ms=deadline,
            **given,
        )
    if as_json:
        print_json(_plain(made))
    else:
        hints = {} if session else {"history": "--session adds its turns"}
        hints |= {} if library else {"articles": "--library adds them"}
        _show(made, hints, whole=not receipt)
    _confess(made.receipt)


def _scope(
    memory: Memory, settings: Settings, user: str | None, agent: str | None, session: str | None
) -> Scope:
    """Whose context it is; a session is with the agent that it was begun with."""
    user = settings.user if user is None else user
    if session is None:
        return memory.scope(user=user, agent=(settings.agent or None) if agent is None else agent)
    found = memory.store.sessions(memory.scope(user=user, agent=agent, session=session))
    if not found:
        raise NotFoundError("this user has no such session with this agent; check --session")
    return found[0].scope


def _show(made: Context, hints: Mapping[str, str], whole: bool) -> None:
    for message in made.messages if whole else ():
        console.print(_head(message), soft_wrap=True)
        console.print(_body(message), soft_wrap=True)
    console.print(_table(made.receipt, hints))
    for line in _remarks(made.receipt):
        console.print(Text(harmless(line), style="dim"))


def _head(message: Mapping[str, Any]) -> Text:
    role, style = message["role"], f"bold {COLOURS.get(message['role'], '')}"
    names = " ".join(str(message.get(key) or "") for key in ("name", "tool_call_id")).split()
    return Text(" ").join([Text(role, style), *(Text(harmless(name), "dim") for name in names)])


def _body(message: Mapping[str, Any]) -> Text:
    """What a message says, set in: nothing in it looks like the head of another message."""
    said = [*_content(message.get("content")), *map(_call, message.get("tool_calls", ()))]
    lines = harmless("\n".join(said).expandtabs(4)).split("\n")
    return Text("\n").join([piece for line in lines for piece in _wrapped(line)] + [Text()])


def _wrapped(line: str) -> Iterator[Text]:
    """A line as the terminal has room for it; each piece of a quotation bears its mark."""
    mark = MARK if line.startswith(MARK) else ""
    room = max(console.width - len(INDENT + mark), LEAST_ROOM)
    for piece in Text(line.removeprefix(mark)).wrap(console, room, overflow="fold") or [Text()]:
        yield Text.assemble(INDENT, (mark, "cyan"), piece)


def _content(content: Any) -> Iterator[str]:
    """What a message says; of an image, that there is one."""
    for part in content if isinstance(content, list) else [{"text": content}]:
        if part.get("type") == "image_url":
            url = part["image_url"]["url"]
            embedded = url.startswith("data:")
            yield f"(an image, {len(url):,} characters)" if embedded else f"(the image {url})"
        elif part.get("text"):
            yield part["text"]


def _call(call: Mapping[str, Any]) -> str:
    asked = call.get(call.get("type", "function"), {})
    given = asked.get("arguments", asked.get("input", ""))
    return f"→ {asked.get('name', '')} {given if isinstance(given, str) else json.dumps(given)}"


def _table(receipt: Receipt, hints: Mapping[str, str]) -> Table:
    rows = [(part, _about(part) or hints.get(part.name, "")) for part in receipt.parts]
    if receipt.answer:
        rows.append((Part("answer", receipt.answer), "kept free"))
    counted = f"of {receipt.window:,}, counted by {receipt.counted_by}"
    rows.append((Part("left", receipt.left), counted))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    if chars := max(0, min(BAR_CHARS, console.width - BESIDE_THE_BAR)):
        table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for part, about in rows:
        bar = [_bar(part.tokens / receipt.window, chars)] if chars else []
        style = "" if part.tokens else "dim"
        style = "bold" if part.name == "left" else style
        told = Text(harmless(about), "dim")
        table.add_row(part.name, f"{part.tokens:,}", *bar, told, style=style)
    return table


def _about(part: Part) -> str:
    """How much is in a part, and how much is not and why."""
    one, many = UNITS.get(part.name, ("", ""))
    inside = f"{len(part.ids):,} {one if len(part.ids) == 1 else many}" * bool(one and part.ids)
    outside = f"{part.cut:,} {'' if one else 'characters '}left out" * bool(part.cut)
    why = ": ".join(filter(None, (outside, part.why)))
    return ", ".join(filter(None, (inside, why)))


def _bar(share: float, chars: int) -> str:
    """A bar to the eighth of a character; what is there at all is seen."""
    eighths = round(share * chars * 8) or (share > 0 and chars > 0)
    full, rest = divmod(int(eighths), 8)
    return "█" * full + EIGHTHS[rest].strip()


def _remarks(receipt: Receipt) -> Iterator[str]:
    done = receipt.compression
    if done is not None:
        because = f", {done.fell_back}" if done.fell_back else ""
        yield (
            f"a summary of {done.tokens_after:,} tokens stands for {done.tokens_before:,}, those "
            f"of {len(done.message_ids):,} messages ({done.made_by}{because}); it is not kept"
        )
    times = {TIMES.get(name, name): took for name, took in receipt.timings_ms.items()}
    yield " · ".join(f"{name} {took:,.1f} ms" for name, took in times.items())


def _confess(receipt: Receipt) -> None:
    lines = [f"late: {', '.join(receipt.late)}"] if receipt.late else []
    lines += [f"{what} gave nothing: {why}" for what, why in receipt.failed.items()]
    for line in lines:
        errors.print(Text(harmless(line), style="yellow"), soft_wrap=True)


def _plain(made: Context) -> dict[str, Any]:
    receipt = {
        **dataclasses.asdict(made.receipt),
        "used": made.receipt.used,
        "left": made.receipt.left,
    }
    return {"messages": made.messages, "receipt": receipt}
