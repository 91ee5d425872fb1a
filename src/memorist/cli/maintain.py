"""`memorist maintain`: promote, expire and make room, or only say what would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    AsJson,
    Database,
    User,
    console,
    errors,
    everyone,
    harmless,
    open_memory,
    print_json,
    short,
)
from memorist.lifecycle.maintenance import Maintained
from memorist.lifecycle.settings import Extraction, Retention
from memorist.memory import Memory
from memorist.records.change import Expire

TEXT_CHARS = 120

Everyone = Annotated[bool, typer.Option("--everyone", help="For all users of the tenant.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
MaxAge = Annotated[
    float | None, typer.Option(min=0, metavar="DAYS", help="Expire what is older than so many.")
]
MaxCount = Annotated[int | None, typer.Option(min=0, help="Keep at most so many.")]
Category = Annotated[str | None, typer.Option(help="Only of this category.")]
MinImportance = Annotated[float | None, typer.Option(min=0, max=1, help="Expire what weighs less.")]
HalfLife = Annotated[
    float | None,
    typer.Option(min=0, metavar="DAYS", help="The weight halves while it is not used for so many."),
]

Done = tuple[str, Maintained]


def maintain(
    user: User = None,
    all_users: Everyone = False,
    dry_run: DryRun = False,
    max_age: MaxAge = None,
    max_count: MaxCount = None,
    category: Category = None,
    min_importance: MinImportance = None,
    half_life: HalfLife = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Tidy memories by policy, and by the rule that the options make. Messages stay."""
    if user is not None and all_users:
        raise typer.BadParameter("give --user or --everyone, not both")
    rule = _retention(
        category=category,
        max_age=_days(max_age),
        max_count=max_count,
        min_importance=min_importance,
        half_life=_days(half_life),
    )
    memory, settings = open_memory(db, Extraction(retention=rule))
    with memory:
        who = settings.user if user is None else user
        texts = {} if all_users else _texts(memory, who)
        done = [
            (name, memory.memories.maintain(user=name, dry_run=dry_run))
            for name in (_everyone(memory) if all_users else [who])
        ]
    if as_json:
        print_json([_plain(name, result) for name, result in done])
    else:
        _show(done, texts, dry_run)


def _retention(**rule: Any) -> tuple[Retention, ...]:
    given = {name: value for name, value in rule.items() if value is not None}
    return (Retention(**given),) if given else ()


def _days(count: float | None) -> timedelta | None:
    return None if count is None else timedelta(days=count)


def _everyone(memory: Memory) -> Iterator[str]:
    return (scope.user for scope in everyone(memory.store) if scope.tenant == memory.tenant_name)


def _texts(memory: Memory, user: str) -> dict[str, str]:
    items = memory.memories.list(user=user, current=False)
    return {item.id: " ".join(item.text.split())[:TEXT_CHARS] for item in items}


def _show(done: list[Done], texts: dict[str, str], dry_run: bool) -> None:
    if texts:
        console.print(_changes(done[0][1], texts))
    for line, count in _reasons(done).items():
        console.print(Text(f"{count} {'would be ' if dry_run else ''}{line}"))
    if not any(result.changes for _, result in done):
        errors.print("nothing to do", style="dim")


def _changes(result: Maintained, texts: dict[str, str]) -> Table:
    """One user's memories that change, and what they say."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for change in result.changes:
        what, why = _told(change)
        table.add_row(
            Text(what, style="yellow" if what == "expired" else "green"),
            Text(short(change.id), style="dim"),
            Text(harmless(texts.get(change.id, ""))),
            Text(why, style="dim"),
        )
    return table


def _reasons(done: list[Done]) -> Counter[str]:
    told = (_told(change) for _, result in done for change in result.changes)
    return Counter(f"{what}: {why}" if why else what for what, why in told)


def _told(change: Any) -> tuple[str, str]:
    return ("expired", change.reason) if isinstance(change, Expire) else ("promoted", "")


def _plain(user: str, result: Maintained) -> dict[str, Any]:
    gone = [change for change in result.changes if isinstance(change, Expire)]
    return {
        "user": user,
        "dry_run": result.dry_run,
        "promoted": [change.id for change in result.changes if not isinstance(change, Expire)],
        "expired": [{"id": change.id, "reason": change.reason} for change in gone],
    }
