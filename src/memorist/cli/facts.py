"""`memorist facts`: what holds, what held, and what was known when."""

from __future__ import annotations

from datetime import UTC, datetime
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
from memorist.records.fact import Fact
from memorist.records.ids import now

Valid = Annotated[datetime | None, typer.Option(help="What was true then. Default: now.")]
Known = Annotated[datetime | None, typer.Option(help="By what was known then. Default: now.")]
AllTimes = Annotated[bool, typer.Option("--all", help="Also what is true no longer.")]


def facts(
    user: User = None,
    agent: Agent = None,
    valid: Valid = None,
    known: Known = None,
    all_: AllTimes = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the facts that hold, or those that held at a moment, as far as was known."""
    memory, settings = open_memory(db)
    who = settings.user if user is None else user
    true_at = None if all_ else _utc(valid or known) or now()
    with memory:
        catch_up(memory, who)
        found = memory.facts.as_of(user=who, agent=agent, valid=true_at, known=_utc(known))
    if as_json:
        print_json([plain(fact) for fact in found])
    elif not found:
        errors.print("no facts", style="dim")
    else:
        console.print(_table(found))


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


def _table(found: list[Fact]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "fact", "from", "to", "learnt"):
        table.add_column(name, style="dim" if name != "fact" else "", overflow="fold")
    for fact in found:
        table.add_row(
            Text(short(fact.id)),
            Text(harmless(fact.text)),
            _day(fact.valid_from),
            _day(fact.valid_to),
            moment(fact.known_from),
        )
    return table


def _day(at: datetime | None) -> str:
    return "" if at is None else moment(at)
