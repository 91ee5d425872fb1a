"""`memorist memories`, `memorist undo`: what was kept of what was said."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    Agent,
    AsJson,
    Database,
    User,
    catch_up,
    console,
    errors,
    harmless,
    moment,
    open_memory,
    plain,
    print_json,
    short,
)
from memorist.errors import InvalidError
from memorist.memory import Memory
from memorist.records.change import Restore, Retract
from memorist.records.memory_item import MemoryItem

Ended = Annotated[bool, typer.Option("--all", help="Also what has ended, with the reason.")]
Category = Annotated[str | None, typer.Option(help="Only of this category.")]
Kind = Annotated[
    str | None, typer.Option(help="Only: concept, episode, fact, procedure or working.")
]
Id = Annotated[str, typer.Argument(help="Its id, or the end of it that the tables show.")]


def memories(
    user: User = None,
    agent: Agent = None,
    all_: Ended = False,
    category: Category = None,
    kind: Kind = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what was kept of what was said, oldest first."""
    memory, settings = open_memory(db)
    who = settings.user if user is None else user
    with memory:
        catch_up(memory, who)
        items = memory.memories.list(user=who, agent=agent, current=not all_)
    items = [
        item for item in items if category in (None, item.category) and kind in (None, item.kind)
    ]
    if as_json:
        print_json([plain(item) for item in items])
    elif not items:
        errors.print("no memories yet", style="dim")
    else:
        console.print(_table(items))


def undo(id_: Id, user: User = None, db: Database = None, as_json: AsJson = False) -> None:
    """Take back the last thing that happened to a memory or a fact."""
    memory, settings = open_memory(db)
    who = settings.user if user is None else user
    with memory:
        changes = memory.memories.undo(_whole(memory, who, id_), user=who)
    done = [
        ("restored" if isinstance(change, Restore) else "retracted", change.id)
        for change in changes
        if isinstance(change, Restore | Retract)
    ]
    if as_json:
        print_json([{"id": whole, "change": what} for what, whole in done])
        return
    for what, whole in done:
        console.print(Text.assemble(what, " ", (harmless(whole), "dim")))


def _table(items: list[MemoryItem]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "when", "memory"):
        table.add_column(name, style="dim" if name != "memory" else "", overflow="fold")
    for item in items:
        said = Text(harmless(item.text), style="dim" if item.ended_at else "")
        said.append(f"\n{_about(item)}", style="yellow" if item.ended_at else "dim")
        table.add_row(Text(short(item.id)), moment(item.created_at), said)
    return table


def _about(item: MemoryItem) -> str:
    parts = [item.kind, item.category, f"{item.importance:.2f}", f"{item.tier}-term"]
    if item.ended_at is not None:
        why = f": {item.reason}" if item.reason else ""
        parts.append(f"ended {moment(item.ended_at)}{why}")
    return harmless(" · ".join(parts))


def _whole(memory: Memory, user: str, end: str) -> str:
    """The id that ends so; what nobody has is left to be looked for as it is."""
    ids = [item.id for item in memory.memories.list(user=user, current=False)]
    ids += [fact.id for fact in memory.facts.as_of(user=user)]
    found = [id_ for id_ in ids if id_.endswith(end.removeprefix("…"))]
    if end in ids or not found:
        return end
    if len(found) > 1:
        raise InvalidError(f"{len(found)} ids end so; give more of the one you mean")
    return found[0]
