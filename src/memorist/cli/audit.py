"""`memorist audit`: what in a memory is not worth keeping, or worse."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import AsJson, Database, User, console, errors, harmless, open_memory
from memorist.lifecycle.audit import KINDS, Audit, AuditKind, AuditSettings, Finding
from memorist.lifecycle.audit import audit as judge
from memorist.lifecycle.mem0_export import read_mem0
from memorist.records.fact import Fact
from memorist.records.ids import now
from memorist.records.memory_item import MemoryItem

BAR_CHARS = 20
EXAMPLES = 2
TEXT_CHARS = 120
_SHORT = 8  # characters of an id, from its end: those of a UUIDv7 begin alike
_STYLES = {"secret": "red", "injection": "red", "contradictory": "yellow"}

Export = Annotated[
    Path | None,
    typer.Argument(help="A mem0 export: JSON, JSON lines, zip or gzip. Default: the database."),
]
Show = Annotated[
    int, typer.Option("--show", min=0, help="Show what so many of each kind say. Default: none.")
]
FailOver = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="End with code 1 if the share of junk is above this."),
]

Records = tuple[list[MemoryItem], list[Fact]]


def audit(
    file: Export = None,
    user: User = None,
    db: Database = None,
    as_json: AsJson = False,
    show: Show = 0,
    fail_over: FailOver = None,
) -> None:
    """Find junk, duplicates, contradictions, secrets and more. Reads only; needs no model."""
    items, facts = _stored(user, db) if file is None else (_exported(file, user), [])
    found = judge(items, facts, now(), AuditSettings(grounded=file is None))
    said = _said(found, items, facts)
    if as_json:
        print(json.dumps(_plain(found, said, show), ensure_ascii=False))
    elif not found.memories + found.facts:
        errors.print("no memories yet", style="dim")
    else:
        _print(found, said, show)
    if fail_over is not None and found.share("junk") > fail_over:
        line = f"junk is {found.share('junk'):.1%}, above the {fail_over:.1%} allowed"
        errors.print(Text(line, style="red"))
        raise typer.Exit(1)


def _stored(user: str | None, db: str | None) -> Records:
    memory, settings = open_memory(db)
    with memory:
        scope = memory.scope(user=settings.user if user is None else user)
        # What has expired is asked for too: the audit tells which of it is still there.
        return memory.store.items(scope, current=False), memory.store.facts(scope)


def _exported(file: Path, user: str | None) -> list[MemoryItem]:
    items = read_mem0(file, now())
    return [item for item in items if user is None or item.scope.user == user]


def _print(found: Audit, said: dict[str, str], show: int) -> None:
    console.print(_table(found))
    console.print(_summary(found))
    for kind in KINDS if show else ():
        for finding in found.of(kind)[:show]:
            console.print(_shown(finding, said))


def _table(found: Audit) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("kind", "count", "share", "", "for example"):
        table.add_column(name, justify="right" if name in ("count", "share") else "left")
    for kind in KINDS:
        count, share = found.counts[kind], found.share(kind)
        style = _STYLES.get(kind, "cyan") if count else "dim"
        bar = "█" * (max(round(share * BAR_CHARS), 1) if count else 0)
        table.add_row(
            Text(kind, style=style),
            Text(str(count)),
            Text(f"{share:.1%}"),
            Text(bar.ljust(BAR_CHARS, "·"), style=style),
            Text(_examples(found, kind), style="dim"),
        )
    return table


def _summary(found: Audit) -> Text:
    asked = found.memories + found.facts
    counted = f"{found.memories} memories, {found.facts} facts; "
    line = Text.assemble(counted, (f"{found.clean} ({found.clean / asked:.1%})", "bold"), " clean")
    if found.uncompared:
        line.append(f"; {found.uncompared} possible duplicates were not compared", style="yellow")
    return line


def _examples(found: Audit, kind: AuditKind) -> str:
    ids = [id for finding in found.of(kind)[:EXAMPLES] for id in finding.flagged]
    return harmless(", ".join(f"…{id[-_SHORT:]}" for id in ids[:EXAMPLES]))


def _shown(finding: Finding, said: dict[str, str]) -> Text:
    """A finding with what its first records say, made harmless."""
    why = f" {finding.reason} ({', '.join(finding.evidence)})" if finding.evidence else ""
    style = _STYLES.get(finding.kind, "cyan")
    shown = Text.assemble((finding.kind, style), (why or f" {finding.reason}", "dim"))
    for id in finding.ids[:EXAMPLES]:
        shown.append(f"\n  {harmless(id)}  ", style="dim")
        shown.append(harmless(" ".join(said[id].split())))
    return shown


def _said(found: Audit, items: list[MemoryItem], facts: list[Fact]) -> dict[str, str]:
    """What may be shown of each record: the beginning; of one with a secret, nothing."""
    texts = {item.id: item.text for item in items} | {fact.id: fact.text for fact in facts}
    hidden = dict.fromkeys(found.flagged("secret"), "(not shown)")
    return {id: text[:TEXT_CHARS] for id, text in texts.items()} | hidden


def _plain(found: Audit, said: dict[str, str], show: int) -> dict[str, Any]:
    told = dict.fromkeys(KINDS, 0)
    findings = []
    for finding in found.findings:
        plain = dataclasses.asdict(finding)
        told[finding.kind] += 1
        if told[finding.kind] <= show:
            plain["texts"] = [said[id] for id in finding.ids[:EXAMPLES]]
        findings.append(plain)
    return {
        "memories": found.memories,
        "facts": found.facts,
        "clean": found.clean,
        "kinds": {k: {"count": found.counts[k], "share": found.share(k)} for k in KINDS},
        "findings": findings,
        "comparisons": found.comparisons,
        "uncompared": found.uncompared,
    }
