"""`memorist recall`: find what was said, with the reason for each hit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from memorist.cli.options import (
    CATCH_UP_SECONDS,
    Agent,
    AsJson,
    Database,
    Deadline,
    SessionId,
    User,
    open_memory,
)
from memorist.cli.render import console, escape_controls, render, timestamp, warn_incomplete
from memorist.records.query import Hit, Recall

BAR_CHARS = 20

Question = Annotated[str, typer.Argument(help="What to look for.")]
Limit = Annotated[int, typer.Option("--limit", "-n", help="How many at most.")]
Kind = Annotated[str | None, typer.Option(help="Only: message, memory, fact, note or article.")]
Role = Annotated[str | None, typer.Option(help="Only what user, assistant, tool or system said.")]
After = Annotated[datetime | None, typer.Option(help="Only what was said at or after.")]
Before = Annotated[datetime | None, typer.Option(help="Only what was said at or before.")]
Explain = Annotated[bool, typer.Option("--explain", "-x", help="Show what made up each score.")]


def recall(
    question: Question,
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    limit: Limit = 10,
    kind: Kind = None,
    role: Role = None,
    after: After = None,
    before: Before = None,
    deadline: Deadline = 5_000,
    explain: Explain = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Find what bears on a question, best first, with the reason for each hit."""
    with open_memory(db, user) as (memory, user):
        memory.jobs.catch_up(CATCH_UP_SECONDS)  # what was just stored has no vector yet
        result = memory.recall(
            question,
            user=user,
            agent=agent,
            session=session,
            limit=limit,
            kind=kind,
            role=role,
            after=after.astimezone(UTC) if after else None,
            before=before.astimezone(UTC) if before else None,
            deadline_ms=deadline,
        )
    if explain and result.hits and not as_json:
        console.print(_explained(result))
    else:
        render(
            result.hits,
            {
                "when": lambda hit: hit.created_at,
                "who": _speaker,
                "said": lambda hit: hit.text,
                "why": lambda hit: str(hit.why),
            },
            main="said",
            as_json=as_json,
            empty="nothing found",
        )
    warn_incomplete(result.late, result.failed)


def _explained(result: Recall) -> Group:
    parts = [part for rank, hit in enumerate(result.hits, 1) for part in _explain(rank, hit)]
    times = " · ".join(f"{name} {took:.1f} ms" for name, took in result.timings_ms.items())
    return Group(*parts, Text(times, style="dim"))


def _explain(rank: int, hit: Hit) -> list[Text | Table]:
    """A hit, and a bar for each part of its score."""
    place = f"characters {hit.why.start}–{hit.why.stop}"
    details = f"  {escape_controls(_speaker(hit))}, {timestamp(hit.created_at)}, {place}"
    head = Text.assemble((f"{rank}. {hit.score:.2f}", "bold"), (details, "dim"))
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=True)
    longest = max(map(abs, hit.why.parts.values()), default=0) or 1
    for name, part in sorted(hit.why.parts.items(), key=lambda named: -named[1]):
        bar = "█" * max(round(abs(part) / longest * BAR_CHARS), 1)
        rank_text = f"#{hit.why.ranks[name]}" if name in hit.why.ranks else ""
        raw_score = f"{hit.why.scores[name]:.3f}" if name in hit.why.scores else ""
        table.add_row(
            Text(name),
            Text(rank_text, style="dim"),
            Text(f"{part:+.3f}"),
            Text(bar, style="cyan" if part >= 0 else "red"),
            Text(raw_score, style="dim"),
        )
    return [head, Text(f"   {escape_controls(hit.text)}"), table]


def _speaker(hit: Hit) -> str:
    return hit.speaker or hit.role or hit.kind
