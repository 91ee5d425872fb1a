"""`memorist jobs`: background work that waits or was given up."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from memorist.cli.options import AsJson, Database, Everyone, User, open_memory
from memorist.cli.render import console, escape_controls, render
from memorist.records.message import Job

Dead = Annotated[bool, typer.Option("--dead", help="Only those that were given up.")]
Retry = Annotated[
    str | None, typer.Option(metavar="ID|all", help="Put what was given up back into the queue.")
]


def jobs(
    user: User = None,
    everyone: Everyone = False,
    dead: Dead = False,
    retry: Retry = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the jobs that wait and those that were given up, with the reason."""
    if retry not in (None, "all") and not retry.isdecimal():
        raise typer.BadParameter("give the number of a job, or all", param_hint="--retry")
    with open_memory(db, user, worker=False) as (memory, user):
        users = [scope.user for scope in memory.users()] if everyone else [user]
        only_dead = True if dead or retry else None
        found = [job for name in users for job in memory.jobs.list(user=name, dead=only_dead)]
        if retry not in (None, "all"):
            found = [job for job in found if job.id == int(retry)]
            if not found:
                memory.jobs.retry(int(retry), user=user)  # raises the fitting error
        for job in found if retry else ():
            memory.jobs.retry(job.id, user=job.scope.user)
    if retry and not as_json:
        console.print(f"retried {len(found)} jobs")
    else:
        _show(found, as_json)


def _show(found: list[Job], as_json: bool) -> None:
    render(
        found,
        {
            "id": lambda job: Text(str(job.id)),
            "user": lambda job: job.scope.user,
            "kind": lambda job: job.kind,
            "state": _state,
            "next try": lambda job: None if job.dead else job.run_at,
            "tries": lambda job: job.attempts,
            "error": lambda job: Text(escape_controls(job.error or ""), "yellow"),
        },
        as_json=as_json,
        empty="no jobs",
    )


def _state(job: Job) -> Text:
    return Text("dead", "red") if job.dead else Text("taken" if job.lease else "waiting")
