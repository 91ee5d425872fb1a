"""`memorist memories`, `facts`, `undo` and `maintain`: what was derived from messages."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import Columns, console, safe_text
from memorist.lifecycle.policy import Maintained
from memorist.lifecycle.settings import Extraction, Retention
from memorist.records.memories import Change, Expire, Kind, MemoryItem, Restore, Retract
from memorist.records.query import past
from memorist.records.values import now

TEXT_CHARS = 120

Category = Annotated[str | None, typer.Option(help="Only of this category.")]


def memories(
    user: opt.User = None,
    agent: opt.Agent = None,
    all_: bool = typer.Option(False, "--all", help="Also those that have ended, with the reason."),
    category: Category = None,
    kind: Kind | None = typer.Option(
        None, metavar="KIND", help="Only: concept, episode, fact, procedure or working."
    ),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the memories that were made of messages, oldest first."""
    with opt.open_memory(db, user) as (memory, user):
        opt.catch_up(memory, user)
        items = memory.memories.list(user=user, agent=agent, current=not all_)
    items = [it for it in items if category in (None, it.category) and kind in (None, it.kind)]
    columns: Columns = {"id": render.record_id, "when": "created_at", "memory": _memory_text}
    empty = "no memories yet" if kind is category is None else "no memories like that"
    render.records(items, columns, main="memory", as_json=as_json, empty=empty)


def _memory_text(item: MemoryItem) -> Text:
    details = [item.kind, item.category, f"{item.importance:.2f}", f"{item.tier}-term"]
    if item.ended_at is not None:
        reason = f": {item.reason}" if item.reason else ""
        details.append(f"{past(item.ended_at, now())}{reason}")
    text = safe_text(item.text, "dim" if item.ended_at else "")
    style = "yellow" if item.ended_at else "dim"
    return text.append("\n").append(safe_text(" · ".join(details), style))


def facts(
    user: opt.User = None,
    agent: opt.Agent = None,
    valid: Annotated[datetime | None, opt.moment("What was true then. Default: now.")] = None,
    known: Annotated[datetime | None, opt.moment("By what was known then. Default: now.")] = None,
    all_: bool = typer.Option(False, "--all", help="Also what is no longer true."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the facts that are true now, or were true at a moment, by what was known then."""
    true_at = None if all_ else valid or known or now()
    with opt.open_memory(db, user) as (memory, user):
        opt.catch_up(memory, user)
        rows = memory.facts.as_of(user=user, agent=agent, valid=true_at, known=known)
    columns: Columns = {
        "id": render.record_id,
        "fact": "text",
        "from": lambda fact: render.day(fact.valid_from),
        "to": lambda fact: render.day(fact.valid_to),
        "learnt": lambda fact: render.day(fact.known_from),
    }
    render.records(rows, columns, main="fact", as_json=as_json, empty="no facts")


def undo(
    id_: str = typer.Argument(metavar="ID", help="Its id, or the end of it that the tables show."),
    user: opt.User = None,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Take back the last change of a memory or a fact."""
    with opt.open_memory(db, user) as (memory, user):
        changes = memory.memories.undo(opt.derived_id(memory, user, id_), user=user)
    done = [
        {"id": change.id, "change": "restored" if isinstance(change, Restore) else "retracted"}
        for change in changes
        if isinstance(change, Restore | Retract)
    ]
    if as_json:
        render.print_json(done)
        return
    for change in done:
        console.print(Text.assemble(change["change"], " ", safe_text(change["id"], "dim")))


def maintain(
    user: opt.User = None,
    everyone: opt.Everyone = False,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be done."),
    max_age: float | None = typer.Option(
        None, min=0, metavar="DAYS", help="Expire memories that are older."
    ),
    max_count: int | None = typer.Option(None, min=0, help="Keep at most so many memories."),
    category: Category = None,
    min_importance: float | None = typer.Option(
        None, min=0, max=1, help="Expire memories that are less important."
    ),
    half_life: float | None = typer.Option(
        None, min=0, metavar="DAYS", help="Importance halves after so long unused."
    ),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Tidy memories by policy, and by the retention rule of the options. Messages stay."""
    if user is not None and everyone:
        raise typer.BadParameter("give --user or --everyone, not both")
    rule = opt.given(category=category, max_count=max_count, min_importance=min_importance)
    days = opt.given(max_age=max_age, half_life=half_life)
    rule |= {name: timedelta(days=count) for name, count in days.items()}
    extraction = Extraction(retention=(Retention(**rule),) if rule else ())
    command = "maintain with a retention rule" if rule else ""
    with opt.open_memory(db, user, extraction=extraction, local_command=command) as (memory, user):
        users = opt.all_users(memory) if everyone else [user]
        items = [] if everyone else memory.memories.list(user=user, current=False)
        results = {name: memory.memories.maintain(user=name, dry_run=dry_run) for name in users}
    if as_json:
        render.print_json([_fields(name, result) for name, result in results.items()])
    else:
        changes = [change for result in results.values() for change in result.changes]
        _show(changes, {item.id: item.text for item in items}, dry_run)


def _show(changes: list[Any], texts: dict[str, str], dry_run: bool) -> None:
    """The changes of one user with their texts; of everyone, only how many and why."""
    if texts and changes:
        columns: Columns = {
            "change": lambda change: Text(*_outcome(change)[:2]),
            "id": lambda change: Text(render.record_id(change), "dim"),
            "text": lambda change: " ".join(texts.get(change.id, "").split())[:TEXT_CHARS],
            "why": lambda change: Text(_outcome(change)[2], "dim"),
        }
        console.print(render.table(changes, columns, header=False))
    for (word, _, reason), count in Counter(map(_outcome, changes)).items():
        line = f"{word}: {reason}" if reason else word
        console.print(Text(f"{count} {'would be ' if dry_run else ''}{line}"))
    if not changes:
        render.remark("nothing to do")


def _outcome(change: Change) -> tuple[str, str, str]:
    """What became of a memory, the colour of that word, and why."""
    if isinstance(change, Expire):
        return "expired", "yellow", change.reason
    return "promoted", "green", ""


def _fields(user: str, result: Maintained) -> dict[str, Any]:
    expired = [change for change in result.changes if isinstance(change, Expire)]
    return {
        "user": user,
        "dry_run": result.dry_run,
        "promoted": [change.id for change in result.changes if change not in expired],
        "expired": [{"id": change.id, "reason": change.reason} for change in expired],
    }
