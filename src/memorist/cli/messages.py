"""`memorist remember`, `recall`, `history` and `forget`: the log of messages."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console, safe_text
from memorist.client import Client
from memorist.config import Settings
from memorist.errors import InvalidError
from memorist.memory import Memory
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.query import MIN_SCORE, Hit, Recall

BAR_CHARS = 20
TEXT_CHARS = 400  # of a hit; --explain and --json show all of it


def remember(
    text: str = typer.Argument(help="What was said; `-` reads standard input."),
    role: str = typer.Option("user", "--role", "-r", help="user, assistant, system or tool."),
    user: opt.User = None,
    agent: opt.Agent = None,
    session: opt.SessionId = None,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Store a message durably, in the active session or the one named."""
    if agent is None and session is None:
        agent = Settings.from_environment().agent
    message = Message(role, opt.read_stdin() if text == "-" else text)
    if not message.text.strip():
        raise InvalidError("there is nothing to remember: the text is empty")
    with opt.open_memory(db, user, worker=False) as (memory, user):
        stored = memory.remember(message, user=user, agent=agent, session=session)
    if as_json:
        render.print_json(stored)
        return
    where = safe_text(f"{stored.message_ids[0]} in session {stored.session_id}", "dim")
    console.print(Text.assemble("remembered ", where), soft_wrap=True)


def recall(
    question: str = typer.Argument(help="What to look for."),
    user: opt.User = None,
    agent: opt.Agent = None,
    session: opt.SessionId = None,
    limit: int = typer.Option(10, "--limit", "-n", min=1, help="How many at most."),
    min_score: float = typer.Option(
        MIN_SCORE, min=0, max=1, help="Only hits of at least this score, 0 to 1."
    ),
    kind: str | None = typer.Option(
        None, help="Only: message, memory, fact, note, article or entry."
    ),
    role: str | None = typer.Option(None, help="Only what user, assistant, tool or system said."),
    after: Annotated[datetime | None, opt.moment("Only what was said at or after.")] = None,
    before: Annotated[datetime | None, opt.moment("Only what was said at or before.")] = None,
    deadline: opt.Deadline = 5_000,
    explain: bool = typer.Option(False, "--explain", "-x", help="Show what made up each score."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Find what bears on a question, best first, with the reason for each hit."""
    with opt.open_memory(db, user) as (memory, user):
        if session is not None:
            opt.session_of(memory, user, agent, session)
        opt.catch_up(memory, user)
        result = memory.recall(
            question,
            user=user,
            agent=agent,
            session=session,
            limit=limit,
            min_score=min_score,
            kind=kind,
            role=role,
            after=after,
            before=before,
            deadline_ms=deadline,
        )
    if explain and result.hits and not as_json:
        _explain(result)
    else:
        columns: render.Columns = {
            "score": _percent,
            "when": lambda hit: render.day(hit.created_at),
            "who": _speaker,
            "said": _text_and_why,
        }
        render.records(result.hits, columns, main="said", as_json=as_json, empty=result.reason)
    render.warn_incomplete(result.late, result.failed)


def _text_and_why(hit: Hit) -> Text:
    why = "; ".join(filter(None, (hit.over, hit.why.found, hit.origin)))
    text = hit.text.strip()
    text = text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS].rsplit(maxsplit=1)[0]} …"
    return safe_text(text).append("\n").append(safe_text(why, "dim"))


def _explain(result: Recall) -> None:
    """Print each hit with a bar for each part of its score, and how long each search took."""
    for rank, hit in enumerate(result.hits, 1):
        place = f"characters {hit.why.start}–{hit.why.stop}"
        said = filter(None, (render.timestamp(hit.created_at), place, hit.over, hit.origin))
        details = f"  {_speaker(hit)}, {', '.join(said)}"
        score = (f"{rank}. {_percent(hit)}", "bold")
        console.print(Text.assemble(score, safe_text(details, "dim")))
        console.print(Padding(safe_text(hit.text), (0, 0, 0, 3), expand=False))
        console.print(_parts_table(hit))
    times = " · ".join(f"{name} {took:.1f} ms" for name, took in result.timings_ms.items())
    console.print(Text(times, style="dim"))


def _parts_table(hit: Hit) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=True)
    longest = max(map(abs, hit.why.parts.values()), default=0) or 1
    for name, part in sorted(hit.why.parts.items(), key=lambda named: -named[1]):
        bar = "█" * max(round(abs(part) / longest * BAR_CHARS), 1)
        rank = f"#{hit.why.ranks[name]}" if name in hit.why.ranks else ""
        raw_score = f"{hit.why.scores[name]:.3f}" if name in hit.why.scores else ""
        table.add_row(
            Text(name),
            Text(rank, style="dim"),
            Text(f"{part:+.3f}"),
            Text(bar, style="cyan" if part >= 0 else "red"),
            Text(raw_score, style="dim"),
        )
    return table


def _percent(hit: Hit) -> str:
    return f"{hit.score:{'.0%' if hit.score >= 0.1 else '.1%'}}"


def _speaker(hit: Hit) -> str:
    return ", ".join(filter(None, (hit.role or hit.kind, hit.speaker)))


def history(
    user: opt.User = None,
    agent: opt.Agent = None,
    session: opt.SessionId = None,
    last: int = typer.Option(20, "--last", "-n", min=1, help="How many, from the end."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the last messages, exactly as they were said."""
    with opt.open_memory(db, user, worker=False) as (memory, user):
        if session is not None:
            opt.session_of(memory, user, agent, session)
        scope = memory.scope(user=user, agent=agent, session=session)
        entries = memory.messages.list(scope, last=last)
        rows: Any = _with_places(memory, user, entries) if as_json else entries
    columns: render.Columns = {
        "when": "message.created_at",
        "who": lambda entry: safe_text(entry.message.name or entry.message.role, "bold"),
        "text": "message.text",
    }
    empty = "no messages yet"
    render.records(rows, columns, main="text", header=False, as_json=as_json, empty=empty)


def _with_places(memory: Memory, user: str, entries: list[LogEntry]) -> list[dict[str, Any]]:
    """Messages with all their fields, and the session and the agent that they were said to."""
    sessions = {entry.session_id for entry in entries}
    agents = {id_: memory.sessions(user=user, session=id_)[0].scope.agent for id_ in sessions}
    rows = []
    for seq, session, source, message in entries:
        fields = render.fields_of(message)
        place = {"id": fields.pop("message_id"), "session": session, "agent": agents[session]}
        rows.append({**place, "seq": seq, "source": source, **fields})
    return rows


def forget(
    user: opt.User = None,
    agent: opt.Agent = None,
    session: str | None = typer.Option(None, "--session", "-s", help="All of this session."),
    message: str | None = typer.Option(None, "--message", help="The message with this id."),
    memory_id: str | None = typer.Option(
        None, "--memory", help="The memory or fact with this id, alone; or the end of its id."
    ),
    source: str | None = typer.Option(
        None, help="All that came from: user, assistant, tool, import, web, system."
    ),
    everything: bool = typer.Option(False, "--everything", help="All of the user's."),
    yes: opt.Yes = False,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Remove messages and everything derived from them, or one memory, for good."""
    named = opt.given(agent=agent, session=session, message=message, memory=memory_id)
    named |= opt.given(source=source)
    if everything == bool(named):
        raise InvalidError(
            "name an agent, session, message, memory or source, or else say --everything"
        )
    with opt.open_memory(db, user, worker=False) as (memory, user):
        if memory_id is not None:
            named["memory"] = opt.derived_id(memory, user, memory_id)
        if not yes:
            what = ", ".join(f"{name} {value}" for name, value in named.items()) or "everything"
            question = f"Forget {what} of user {user}, and what was derived from it, for good?"
            typer.confirm(render.escape_controls(question), abort=True, err=True)
        forgotten = memory.forget(user=user, everything=everything, **named)
        if forgotten.counts and not isinstance(memory, Client):  # else the server does it
            forgotten = replace(forgotten, residue=memory.scrub())
    if as_json:
        render.print_json({"counts": forgotten.counts, "residue": forgotten.residue})
        return
    counts = ", ".join(render.counted(count, it) for it, count in forgotten.counts.items() if count)
    console.print(Text(f"forgot {counts}" if counts else "there was nothing to forget"))
    if forgotten.residue:
        render.warn(forgotten.residue)
