"""`memorist memories`, `facts` and `undo`: what was derived from messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from memorist.cli.options import Agent, AsJson, Database, User, catch_up, open_memory
from memorist.cli.render import (
    console,
    escape_controls,
    full_id,
    print_json,
    render,
    short_id,
    timestamp,
)
from memorist.records.memories import MemoryItem, Restore, Retract
from memorist.records.values import now

Ended = Annotated[bool, typer.Option("--all", help="Also those that have ended, with the reason.")]
Category = Annotated[str | None, typer.Option(help="Only of this category.")]
Kind = Annotated[
    str | None, typer.Option(help="Only: concept, episode, fact, procedure or working.")
]
Valid = Annotated[datetime | None, typer.Option(help="What was true then. Default: now.")]
Known = Annotated[datetime | None, typer.Option(help="By what was known then. Default: now.")]
AllTimes = Annotated[bool, typer.Option("--all", help="Also what is no longer true.")]
RecordId = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or the end of it that the tables show.")
]


def memories(
    user: User = None,
    agent: Agent = None,
    all_: Ended = False,
    category: Category = None,
    kind: Kind = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the memories that were made of messages, oldest first."""
    with open_memory(db, user) as (memory, user):
        catch_up(memory, user)
        items = memory.memories.list(user=user, agent=agent, current=not all_)
    items = [
        item for item in items if category in (None, item.category) and kind in (None, item.kind)
    ]
    columns = {
        "id": lambda item: short_id(item.id),
        "when": lambda item: item.created_at,
        "memory": _memory_text,
    }
    render(items, columns, main="memory", as_json=as_json, empty="no memories yet")


def _memory_text(item: MemoryItem) -> Text:
    details = [item.kind, item.category, f"{item.importance:.2f}", f"{item.tier}-term"]
    if item.ended_at is not None:
        reason = f": {item.reason}" if item.reason else ""
        details.append(f"ended {timestamp(item.ended_at)}{reason}")
    text = Text(escape_controls(item.text), style="dim" if item.ended_at else "")
    style = "yellow" if item.ended_at else "dim"
    return text.append(f"\n{escape_controls(' · '.join(details))}", style=style)


def facts(
    user: User = None,
    agent: Agent = None,
    valid: Valid = None,
    known: Known = None,
    all_: AllTimes = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the facts that are true now, or were true at a moment, by what was known then."""
    true_at = None if all_ else _utc(valid or known) or now()
    with open_memory(db, user) as (memory, user):
        catch_up(memory, user)
        found = memory.facts.as_of(user=user, agent=agent, valid=true_at, known=_utc(known))
    columns = {
        "id": lambda fact: short_id(fact.id),
        "fact": lambda fact: fact.text,
        "from": lambda fact: fact.valid_from,
        "to": lambda fact: fact.valid_to,
        "learnt": lambda fact: fact.known_from,
    }
    render(found, columns, main="fact", as_json=as_json, empty="no facts")


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


def undo(id_: RecordId, user: User = None, db: Database = None, as_json: AsJson = False) -> None:
    """Take back the last change of a memory or a fact."""
    with open_memory(db, user) as (memory, user):
        ids = [item.id for item in memory.memories.list(user=user, current=False)]
        ids += [fact.id for fact in memory.facts.as_of(user=user)]
        changes = memory.memories.undo(full_id(id_, ids), user=user)
    done = [
        {"id": change.id, "change": "restored" if isinstance(change, Restore) else "retracted"}
        for change in changes
        if isinstance(change, Restore | Retract)
    ]
    if as_json:
        print_json(done)
        return
    for change in done:
        console.print(Text.assemble(change["change"], " ", (escape_controls(change["id"]), "dim")))
