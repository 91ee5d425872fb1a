"""`memorist maintain`: promote, expire and prune memories, or only say what would be done."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.text import Text

from memorist.cli.options import AsJson, Database, Everyone, User, database_url, open_memory
from memorist.cli.render import Columns, console, print_json, remark, short_id, table
from memorist.config import Settings
from memorist.lifecycle.policy import Maintained
from memorist.lifecycle.settings import Extraction, Retention
from memorist.records.memories import Change, Expire

TEXT_CHARS = 120

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
MaxAge = Annotated[
    float | None, typer.Option(min=0, metavar="DAYS", help="Expire memories that are older.")
]
MaxCount = Annotated[int | None, typer.Option(min=0, help="Keep at most so many memories.")]
Category = Annotated[str | None, typer.Option(help="Only of this category.")]
MinImportance = Annotated[
    float | None, typer.Option(min=0, max=1, help="Expire memories that are less important.")
]
HalfLife = Annotated[
    float | None,
    typer.Option(min=0, metavar="DAYS", help="Importance halves after so long unused."),
]


def maintain(
    user: User = None,
    everyone: Everyone = False,
    dry_run: DryRun = False,
    max_age: MaxAge = None,
    max_count: MaxCount = None,
    category: Category = None,
    min_importance: MinImportance = None,
    half_life: HalfLife = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Tidy memories by policy, and by the retention rule of the options. Messages stay."""
    if user is not None and everyone:
        raise typer.BadParameter("give --user or --everyone, not both")
    options = {
        "category": category,
        "max_age": None if max_age is None else timedelta(days=max_age),
        "max_count": max_count,
        "min_importance": min_importance,
        "half_life": None if half_life is None else timedelta(days=half_life),
    }
    rule: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if rule:
        database_url(db, Settings.from_environment(), "maintain with a retention rule")
    retention = (Retention(**rule),) if rule else ()
    with open_memory(db, user, extraction=Extraction(retention=retention)) as (memory, user):
        users = [scope.user for scope in memory.users()] if everyone else [user]
        items = [] if everyone else memory.memories.list(user=user, current=False)
        results = {name: memory.memories.maintain(user=name, dry_run=dry_run) for name in users}
    if as_json:
        print_json([_fields(name, result) for name, result in results.items()])
    else:
        _show(results, {item.id: item.text for item in items}, dry_run)


def _show(results: dict[str, Maintained], texts: dict[str, str], dry_run: bool) -> None:
    """The changes of one user with their texts; of everyone, only how many and why."""
    changes = [change for result in results.values() for change in result.changes]
    if texts and changes:
        columns: Columns[Any] = {
            "change": lambda change: Text(*_styled(change)),
            "id": lambda change: Text(short_id(change.id), "dim"),
            "text": lambda change: " ".join(texts.get(change.id, "").split())[:TEXT_CHARS],
            "why": lambda change: Text(_reason(change), "dim"),
        }
        console.print(table(changes, columns, header=False))
    counts = Counter(": ".join(filter(None, (_styled(it)[0], _reason(it)))) for it in changes)
    for line, count in counts.items():
        console.print(Text(f"{count} {'would be ' if dry_run else ''}{line}"))
    if not changes:
        remark("nothing to do")


def _styled(change: Change) -> tuple[str, str]:
    return ("expired", "yellow") if isinstance(change, Expire) else ("promoted", "green")


def _reason(change: Change) -> str:
    return change.reason if isinstance(change, Expire) else ""


def _fields(user: str, result: Maintained) -> dict[str, Any]:
    expired = [change for change in result.changes if isinstance(change, Expire)]
    return {
        "user": user,
        "dry_run": result.dry_run,
        "promoted": [change.id for change in result.changes if change not in expired],
        "expired": [{"id": change.id, "reason": change.reason} for change in expired],
    }
