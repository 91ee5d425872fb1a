"""`memorist audit`: what in a memory is not worth keeping, or dangerous."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from memorist.cli.options import AsJson, Database, User, open_memory
from memorist.cli.render import (
    console,
    errors,
    escape_controls,
    fields_of,
    print_json,
    remark,
    short_id,
    table,
)
from memorist.lifecycle.audit import KINDS, Audit, AuditKind, Finding
from memorist.lifecycle.audit import audit as run_audit
from memorist.lifecycle.mem0_export import read_mem0
from memorist.records.memories import Fact, MemoryItem
from memorist.records.values import now

BAR_CHARS = 20
EXAMPLES = 2
TEXT_CHARS = 120
_STYLES = {"secret": "red", "injection": "red", "contradictory": "yellow"}

Export = Annotated[
    Path | None,
    typer.Argument(help="A mem0 export: JSON, JSON lines, zip or gzip. Default: the database."),
]
Show = Annotated[
    int, typer.Option("--show", min=0, help="Show the texts of so many findings of each kind.")
]
FailOver = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Exit with code 1 if the share of junk is above this."),
]


def audit(
    file: Export = None,
    user: User = None,
    db: Database = None,
    as_json: AsJson = False,
    show: Show = 0,
    fail_over: FailOver = None,
) -> None:
    """Find junk, duplicates, contradictions, secrets and more. Reads only; needs no model."""
    items: list[MemoryItem]
    facts: list[Fact] = []
    if file is not None:
        items = [item for item in read_mem0(file, now()) if user in (None, item.scope.user)]
    else:
        with open_memory(db, user) as (memory, owner):
            # Expired ones too: the audit says which of them are still there.
            items = memory.memories.list(user=owner, current=False)
            facts = memory.facts.as_of(user=owner)
    report = run_audit(items, facts, now(), grounded=file is None)
    texts = _texts(report, items, facts)
    if as_json:
        print_json(_report_fields(report, texts, show))
    elif not report.memories + report.facts:
        remark("no memories yet")
    else:
        console.print(_kinds_table(report))
        console.print(_summary(report))
        for finding in [finding for kind in KINDS for finding in report.of(kind)[:show]]:
            console.print(_finding_text(finding, texts))
    if fail_over is not None and report.share("junk") > fail_over:
        line = f"junk is {report.share('junk'):.1%}, above the {fail_over:.1%} allowed"
        errors.print(Text(line, style="red"))
        raise typer.Exit(1)


def _kinds_table(report: Audit) -> Any:
    return table(
        KINDS,
        {
            "kind": lambda kind: Text(kind, _style(report, kind)),
            "count": lambda kind: report.counts[kind],
            "share": lambda kind: Text(f"{report.share(kind):.1%}", justify="right"),
            "": lambda kind: Text(_bar(report, kind), _style(report, kind)),
            "for example": lambda kind: Text(_examples(report, kind), "dim"),
        },
    )


def _style(report: Audit, kind: AuditKind) -> str:
    return _STYLES.get(kind, "cyan") if report.counts[kind] else "dim"


def _bar(report: Audit, kind: AuditKind) -> str:
    length = max(round(report.share(kind) * BAR_CHARS), 1) if report.counts[kind] else 0
    return ("█" * length).ljust(BAR_CHARS, "·")


def _examples(report: Audit, kind: AuditKind) -> str:
    ids = [id_ for finding in report.of(kind)[:EXAMPLES] for id_ in finding.flagged]
    return escape_controls(", ".join(map(short_id, ids[:EXAMPLES])))


def _summary(report: Audit) -> Text:
    share = f"{report.clean} ({report.clean / (report.memories + report.facts):.1%})"
    counts = f"{report.memories} memories, {report.facts} facts; "
    line = Text.assemble(counts, (share, "bold"), " clean")
    if report.uncompared:
        line.append(f"; {report.uncompared} possible duplicates were not compared", style="yellow")
    return line


def _finding_text(finding: Finding, texts: dict[str, str]) -> Text:
    """A finding with the texts of its first records."""
    evidence = f" ({', '.join(finding.evidence)})" if finding.evidence else ""
    style = _STYLES.get(finding.kind, "cyan")
    text = Text.assemble((finding.kind, style), (f" {finding.reason}{evidence}", "dim"))
    for id_ in finding.ids[:EXAMPLES]:
        text.append(f"\n  {escape_controls(id_)}  ", style="dim")
        text.append(escape_controls(" ".join(texts[id_].split())))
    return text


def _texts(report: Audit, items: list[MemoryItem], facts: list[Fact]) -> dict[str, str]:
    """The beginning of each record's text; nothing of one with a secret."""
    records: list[MemoryItem | Fact] = [*items, *facts]
    texts = {record.id: record.text[:TEXT_CHARS] for record in records}
    return texts | dict.fromkeys(report.flagged("secret"), "(not shown)")


def _report_fields(report: Audit, texts: dict[str, str], show: int) -> dict[str, Any]:
    shown = {id(finding) for kind in KINDS for finding in report.of(kind)[:show]}
    findings = []
    for finding in report.findings:
        fields = fields_of(finding)
        if id(finding) in shown:
            fields["texts"] = [texts[id_] for id_ in finding.ids[:EXAMPLES]]
        findings.append(fields)
    return {
        "memories": report.memories,
        "facts": report.facts,
        "clean": report.clean,
        "kinds": {k: {"count": report.counts[k], "share": report.share(k)} for k in KINDS},
        "findings": findings,
        "comparisons": report.comparisons,
        "uncompared": report.uncompared,
    }
