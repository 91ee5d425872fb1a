"""`memorist jobs`: what waits to be done, what was given up, and another life for it."""

from __future__ import annotations

from typing import Annotated

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
    moment,
    open_quietly,
    plain,
    print_json,
)
from memorist.records.log import Job
from memorist.store.base import Store

Dead = Annotated[bool, typer.Option("--dead", help="Only what was given up.")]
Retry = Annotated[
    str | None, typer.Option(metavar="ID|all", help="Give what was given up another life.")
]
Everyone = Annotated[bool, typer.Option("--everyone", help="Of all users of the tenant.")]


def jobs(
    user: User = None,
    all_users: Everyone = False,
    dead: Dead = False,
    retry: Retry = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the work that waits and the work that was given up, with the reason."""
    wanted = _number(retry)
    memory, settings = open_quietly(db)
    with memory:
        me = memory.scope(user=settings.user if user is None else user)
        theirs = (scope for scope in everyone(memory.store) if scope.tenant == me.tenant)
        scopes = theirs if all_users else iter([me])
        store, only_dead = memory.store, True if dead or retry else None
        found = [job for scope in scopes for job in store.jobs(scope, dead=only_dead)]
        if retry is not None:
            found = [job for job in found if wanted in (None, job.id)]
            for job in found:
                store.retry(job.scope.whole_user(), job.id)
            if not found and wanted is not None:
                store.retry(me, wanted)  # says that there is none
    _show(found, as_json, "retried" if retry else "")


def dead_jobs(store: Store) -> int:
    """How many jobs were given up, of all users."""
    return store.backlog(dead=True)


def _number(retry: str | None) -> int | None:
    if retry is None or retry == "all":
        return None
    if not retry.isdecimal():
        raise typer.BadParameter("give the number of a job, or all", param_hint="--retry")
    return int(retry)


def _show(found: list[Job], as_json: bool, done: str) -> None:
    if as_json:
        print_json([plain(job) for job in found])
    elif done:
        console.print(f"{done} {len(found)} jobs")
    elif not found:
        errors.print("no jobs", style="dim")
    else:
        console.print(_table(found))


def _table(found: list[Job]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "user", "kind", "state", "next try", "tries", "error"):
        table.add_column(name, overflow="fold")
    for job in found:
        state = Text("dead", "red") if job.dead else Text("taken" if job.lease else "waiting")
        table.add_row(
            str(job.id),
            Text(harmless(job.scope.user)),
            Text(harmless(job.kind)),
            state,
            "" if job.dead else moment(job.run_at),
            str(job.attempts),
            Text(harmless(job.error or ""), style="yellow"),
        )
    return table
