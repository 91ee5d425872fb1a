"""`recollect recall`: find what was said."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli.show import (
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
from recollect.records.query import Hit, Recall


def recall(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Find what bears on a question, best first, with the reason for each."""
    memory, settings = open_memory(db)
    with memory:
        found = memory.recall(
            question,
            user=settings.user if user is None else user,
            agent=agent,
            session=session,
            limit=limit,
        )
    if as_json:
        print(json.dumps([_plain(hit) for hit in found.hits]))
    elif not found.hits:
        errors.print("nothing found", style="dim")
    else:
        console.print(_table(found))


def _table(found: Recall) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("when", "who", "said", "why"):
        table.add_column(name, style="dim" if name != "said" else "", overflow="fold")
    for hit in found.hits:
        # As Text: what a user said is never markup.
        who = hit.role or hit.kind
        table.add_row(moment(hit.created_at), who, Text(harmless(hit.text)), Text(str(hit.why)))
    return table


def _plain(hit: Hit) -> dict[str, object]:
    return {
        "kind": hit.kind,
        "id": hit.id,
        "text": hit.text,
        "score": hit.score,
        "created_at": hit.created_at.isoformat(),
        "session_id": hit.session_id,
        "role": hit.role,
        "why": str(hit.why),
    }
