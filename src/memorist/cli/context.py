"""`memorist context`: the exact messages that a model would get, and the receipt for them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console, escape_controls, fields_of, print_json, safe_text
from memorist.client import Client
from memorist.config import Settings
from memorist.context.quote import MARK
from memorist.context.window import Part, Receipt, Window

BAR_CHARS = 24
OTHER_COLUMNS_CHARS = 56  # what the rest of the table needs beside the bar
INDENT = "  "
MIN_LINE_CHARS = 10
UNITS = {"history": "messages", "memories": "memories", "articles": "articles"}
COLOURS = {"system": "magenta", "user": "cyan", "assistant": "green", "tool": "yellow"}
DEFAULT = Window()


class ReadOnlySummaries:
    """A store that keeps no summaries: a look through a small window must not shorten what an
    agent with a larger one sees of the session from then on.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in ("write_summary", "queue_summary"):
            return lambda *_, **__: None
        return getattr(self._store, name)


def context(
    question: Annotated[str, typer.Argument(help="What the user asks.")],
    user: opt.User = None,
    agent: opt.Agent = None,
    session: opt.SessionId = None,
    max_tokens: int = typer.Option(
        DEFAULT.max_tokens, "--max-tokens", "-t", min=1, help="The size of the model's window."
    ),
    model: str = typer.Option("", help="Whose tokens to count, e.g. gpt-4o."),
    system: str | None = typer.Option(
        None, help="The system prompt. Default: the one the session begins with."
    ),
    library: opt.LibraryName = None,
    deadline: opt.Deadline = 5_000,
    receipt: bool = typer.Option(False, "--receipt", help="Only the receipt."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a model would be sent for a question: every message, and its share of tokens."""
    with opt.open_memory(db, user, wrap=ReadOnlySummaries) as (memory, user):
        if session is None:
            agent = (Settings.from_environment().agent or None) if agent is None else agent
        else:  # a session is with the agent that it was begun with
            agent = opt.session_of(memory, user, agent, session).scope.agent
        opt.catch_up(memory, user)
        memory.warm_up()  # so that the times it shows are those of a process that runs on
        made = memory.context(
            question,
            user=user,
            agent=agent,
            session=session,
            window=Window(max_tokens=max_tokens, model=model),
            system=system,
            library=memory.library(library) if library is not None else None,
            deadline_ms=deadline,
        )
    if as_json:
        totals = {"used": made.receipt.used, "left": made.receipt.left}
        print_json({"messages": made.messages, "receipt": fields_of(made.receipt) | totals})
    else:
        if not receipt:
            show_messages(made.messages)
        hints = {} if session else {"history": "--session adds its turns"}
        hints |= {} if library else {"articles": "--library adds them"}
        show_receipt(made.receipt, hints, kept=isinstance(memory, Client))
    render.warn_incomplete(made.receipt.late, made.receipt.failed)


def show_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Print the messages of a request, each below its role."""
    for message in messages:
        console.print(_head(message), soft_wrap=True)
        console.print(_body(message), soft_wrap=True)


def show_receipt(receipt: Receipt, hints: Mapping[str, str], *, kept: bool) -> None:
    """Print what went into a window, with bars; `hints` stand at empty parts."""
    console.print(_table(receipt, hints))
    for line in _remarks(receipt, kept=kept):
        console.print(safe_text(line, "dim"))


def _head(message: Mapping[str, Any]) -> Text:
    head = Text(message["role"], f"bold {COLOURS.get(message['role'], '')}")
    names = " ".join(str(message.get(key) or "") for key in ("name", "tool_call_id")).split()
    return head.append("".join(f" {escape_controls(name)}" for name in names), "not bold dim")


def _body(message: Mapping[str, Any]) -> Text:
    """The text of a message, indented so that nothing in it looks like another message's head."""
    parts = [*_content(message.get("content")), *map(_call, message.get("tool_calls", ()))]
    lines = escape_controls("\n".join(parts).expandtabs(4)).split("\n")
    return Text("\n").join([piece for line in lines for piece in _wrapped(line)] + [Text()])


def _wrapped(line: str) -> Iterator[Text]:
    """A line wrapped to the terminal's width; each piece of a quotation keeps its mark."""
    mark = MARK if line.startswith(MARK) else ""
    room = max(console.width - len(INDENT + mark), MIN_LINE_CHARS)
    for piece in Text(line.removeprefix(mark)).wrap(console, room, overflow="fold") or [Text()]:
        yield Text.assemble(INDENT, (mark, "cyan"), piece)


def _content(content: Any) -> Iterator[str]:
    """The texts of a message's content; of an image, that there is one."""
    for part in content if isinstance(content, list) else [{"text": content}]:
        if part.get("type") == "image_url":
            url = part["image_url"]["url"]
            embedded = url.startswith("data:")
            yield f"(an image, {len(url):,} characters)" if embedded else f"(the image {url})"
        elif part.get("text"):
            yield part["text"]


def _call(call: Mapping[str, Any]) -> str:
    tool = call.get(call.get("type", "function"), {})
    arguments = tool.get("arguments", tool.get("input", ""))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return f"→ {tool.get('name', '')} {arguments}"


def _table(receipt: Receipt, hints: Mapping[str, str]) -> Table:
    rows = [(part, _about(part) or hints.get(part.name, "")) for part in receipt.parts]
    if receipt.answer:
        rows.append((Part("answer", receipt.answer), "kept free"))
    counted = f"of {receipt.window:,}, counted by {receipt.counted_by}"
    rows.append((Part("left", receipt.left), counted))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    if chars := max(0, min(BAR_CHARS, console.width - OTHER_COLUMNS_CHARS)):
        table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for part, about in rows:
        bar = [Bar(receipt.window, 0, part.tokens, width=chars)] if chars else []
        style = "" if part.tokens else "dim"
        style = "bold" if part.name == "left" else style
        details = safe_text(about, "dim")
        table.add_row(part.name, f"{part.tokens:,}", *bar, details, style=style)
    return table


def _about(part: Part) -> str:
    """How much is in a part, and how much is not and why."""
    unit = UNITS.get(part.name)
    inside = render.counted(len(part.ids), unit) if unit and part.ids else ""
    outside = f"{part.cut:,} {'' if unit else 'characters '}left out" if part.cut else ""
    why = ": ".join(filter(None, (outside, part.why)))
    return ", ".join(filter(None, (inside, why)))


def _remarks(receipt: Receipt, *, kept: bool) -> Iterator[str]:
    made = receipt.compression
    if made is not None:
        reason = f", {made.fell_back}" if made.fell_back else ""
        yield (
            f"a summary of {made.tokens_after:,} tokens stands for {made.tokens_before:,}, those "
            f"of {render.counted(len(made.message_ids), 'messages')} ({made.made_by}{reason})"
            + ("" if kept else "; it is not kept")
        )
    # "total" is that of the recall, of which the channels before it are parts.
    times = {"recall" if name == "total" else name: ms for name, ms in receipt.timings_ms.items()}
    yield " · ".join(f"{name} {ms:,.1f} ms" for name, ms in times.items())
