"""`memorist recall`: find what was said, and say why."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    Agent,
    AsJson,
    Database,
    SessionId,
    User,
    console,
    errors,
    harmless,
    moment,
    open_memory,
)
from memorist.records.query import Hit, Recall

CATCH_UP_SECONDS = 2.0
BAR_CHARS = 20

Kind = Annotated[str | None, typer.Option(help="Only: message, memory, fact, note or article.")]
Role = Annotated[str | None, typer.Option(help="Only what user, assistant, tool or system said.")]
After = Annotated[datetime | None, typer.Option(help="Only what was said at or after.")]
Before = Annotated[datetime | None, typer.Option(help="Only what was said at or before.")]
Explain = Annotated[bool, typer.Option("--explain", "-x", help="Show what made up each score.")]
Deadline = Annotated[
    float, typer.Option("--deadline", help="Milliseconds. A new process has a model to load.")
]


def recall(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    kind: Kind = None,
    role: Role = None,
    after: After = None,
    before: Before = None,
    deadline: Deadline = 5_000,
    explain: Explain = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Find what bears on a question, best first, with the reason for each."""
    only: dict[str, Any] = {}
    if kind:
        only["kind"] = kind
    if role:
        only["role"] = role
    if after:
        only["after"] = after.astimezone(UTC)
    if before:
        only["before"] = before.astimezone(UTC)
    memory, settings = open_memory(db)
    with memory:
        memory.jobs.catch_up(CATCH_UP_SECONDS)  # what was just stored has no vector yet
        found = memory.recall(
            question,
            user=settings.user if user is None else user,
            agent=agent,
            session=session,
            limit=limit,
            deadline_ms=deadline,
            **only,
        )
    if as_json:
        print(json.dumps([_plain(hit) for hit in found.hits]))
    elif not found.hits:
        errors.print("nothing found", style="dim")
    else:
        console.print(_explained(found) if explain else _table(found))
    if found.late:
        errors.print(Text(f"late: {', '.join(found.late)}", style="yellow"))
    for channel, reason in found.failed.items():
        errors.print(Text(f"{channel} gave nothing: {reason}", style="yellow"))


def _table(found: Recall) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("when", "who", "said", "why"):
        table.add_column(name, style="dim" if name != "said" else "", overflow="fold")
    for hit in found.hits:
        # As Text: what a user said is never markup.
        said, why = Text(harmless(hit.text)), Text(str(hit.why))
        table.add_row(moment(hit.created_at), Text(_who(hit)), said, why)
    return table


def _explained(found: Recall) -> Group:
    parts = [part for rank, hit in enumerate(found.hits, 1) for part in _explain(rank, hit)]
    times = " · ".join(f"{name} {took:.1f} ms" for name, took in found.timings_ms.items())
    return Group(*parts, Text(times, style="dim"))


def _explain(rank: int, hit: Hit) -> list[Text | Table]:
    """A hit, and a bar for each thing that its score is made of."""
    when = f"  {_who(hit)}, {moment(hit.created_at)}, characters {hit.why.start}–{hit.why.stop}"
    head = Text.assemble((f"{rank}. {hit.score:.2f}", "bold"), (when, "dim"))
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=True)
    longest = max(map(abs, hit.why.parts.values()), default=0) or 1
    for name, part in sorted(hit.why.parts.items(), key=lambda it: -it[1]):
        bar = "█" * max(round(abs(part) / longest * BAR_CHARS), 1)
        place = f"#{hit.why.ranks[name]}" if name in hit.why.ranks else ""
        raw = f"{hit.why.scores[name]:.3f}" if name in hit.why.scores else ""
        table.add_row(
            Text(name),
            Text(place, style="dim"),
            Text(f"{part:+.3f}"),
            Text(bar, style="cyan" if part >= 0 else "red"),
            Text(raw, style="dim"),
        )
    return [head, Text(f"   {harmless(hit.text)}"), table]


def _who(hit: Hit) -> str:
    return harmless(hit.speaker or hit.role or hit.kind)


def _plain(hit: Hit) -> dict[str, Any]:
    return {
        **dataclasses.asdict(hit),
        "created_at": hit.created_at.isoformat(),
        "why": {**dataclasses.asdict(hit.why), "age": hit.why.age.total_seconds()},
    }
