"""`memorist audit`: what in a memory is not worth keeping, or dangerous."""

from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console, safe_text
from memorist.errors import RecordError
from memorist.lifecycle.audit import KINDS, Audit, AuditKind, Finding
from memorist.lifecycle.audit import audit as run_audit
from memorist.records.memories import Fact, MemoryItem
from memorist.records.values import now
from memorist.transfer.formats import mem0
from memorist.transfer.items import Skipped
from memorist.transfer.source import Source

BAR_CHARS = 20
EXAMPLES = 2
TEXT_CHARS = 120
_STYLES = {"secret": "red", "injection": "red", "contradictory": "yellow"}


def audit(
    file: Path | None = typer.Argument(
        None, help="A mem0 export: JSON, JSON lines, zip or gzip. Default: the database."
    ),
    user: opt.User = None,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
    show: int = typer.Option(0, min=0, help="Show the texts of so many findings of each kind."),
    fail_over: float | None = typer.Option(
        None, min=0, max=1, help="Exit with code 1 if the share of junk is above this."
    ),
) -> None:
    """Find junk, duplicates, contradictions, secrets and more. Reads only; needs no model."""
    facts: list[Fact] = []
    if file is not None:
        items = [item for item in _read_mem0(file) if user in (None, item.scope.user)]
    else:
        with opt.open_memory(db, user) as (memory, owner):
            # Expired ones too: the audit says which of them are still there.
            items = memory.memories.list(user=owner, current=False)
            facts = memory.facts.as_of(user=owner)
    report = run_audit(items, facts, now(), grounded=file is None)
    # The beginning of each record's text; nothing of one with a secret.
    records: list[MemoryItem | Fact] = [*items, *facts]
    texts = {record.id: record.text[:TEXT_CHARS] for record in records}
    texts |= dict.fromkeys(report.flagged("secret"), "(not shown)")
    shown = [finding for kind in KINDS for finding in report.of(kind)[:show]]
    if as_json:
        render.print_json(_report_fields(report, texts, shown))
    elif not report.memories + report.facts:
        render.remark("no memories yet")
    else:
        _show(report, texts, shown)
    if fail_over is not None and report.share("junk") > fail_over:
        line = f"junk is {report.share('junk'):.1%}, above the {fail_over:.1%} allowed"
        render.remark(line, "red")
        raise typer.Exit(1)


def _read_mem0(file: Path) -> list[MemoryItem]:
    """The memories of a mem0 export, each once, of which none may be broken."""
    items: dict[str, MemoryItem] = {}
    for item in mem0.read(Source(file)):
        if isinstance(item, Skipped):
            raise RecordError(f"{item.place}: {item.reason}")
        if isinstance(item, MemoryItem):
            items[item.id] = item  # pages that overlap repeat an entry
    return list(items.values())


def _show(report: Audit, texts: dict[str, str], shown: list[Finding]) -> None:
    def style(kind: AuditKind) -> str:
        return _STYLES.get(kind, "cyan") if report.counts[kind] else "dim"

    def bar(kind: AuditKind) -> str:
        length = max(round(report.share(kind) * BAR_CHARS), 1) if report.counts[kind] else 0
        return ("█" * length).ljust(BAR_CHARS, "·")

    def examples(kind: AuditKind) -> str:
        ids = [id_ for finding in report.of(kind)[:EXAMPLES] for id_ in finding.flagged]
        return ", ".join(map(render.short_id, ids[:EXAMPLES]))

    columns: render.Columns = {
        "kind": lambda kind: Text(kind, style(kind)),
        "count": lambda kind: report.counts[kind],
        "share": lambda kind: Text(f"{report.share(kind):.1%}", justify="right"),
        "": lambda kind: Text(bar(kind), style(kind)),
        "for example": lambda kind: safe_text(examples(kind), "dim"),
    }
    console.print(render.table(KINDS, columns))
    share = f"{report.clean} ({report.clean / (report.memories + report.facts):.1%})"
    counts = ", ".join(map(render.counted, (report.memories, report.facts), ("memories", "facts")))
    line = Text.assemble(counts, "; ", (share, "bold"), " clean")
    if report.uncompared:
        line.append(f"; possible duplicates not compared: {report.uncompared:,}", style="yellow")
    console.print(line)
    for finding in shown:
        evidence = f" ({', '.join(finding.evidence)})" if finding.evidence else ""
        kind = (finding.kind, _STYLES.get(finding.kind, "cyan"))
        console.print(Text.assemble(kind, (f" {finding.reason}{evidence}", "dim")))
        for id_ in finding.ids[:EXAMPLES]:
            text = safe_text(" ".join(texts[id_].split()))
            console.print(Text.assemble(safe_text(f"  {id_}  ", "dim"), text))


def _report_fields(report: Audit, texts: dict[str, str], shown: list[Finding]) -> dict[str, Any]:
    with_texts, findings = set(map(id, shown)), []
    for finding in report.findings:
        fields = render.fields_of(finding)
        if id(finding) in with_texts:
            fields["texts"] = [texts[id_] for id_ in finding.ids[:EXAMPLES]]
        findings.append(fields)
    kinds = {kind: {"count": report.counts[kind], "share": report.share(kind)} for kind in KINDS}
    return render.fields_of(report) | {"clean": report.clean, "kinds": kinds, "findings": findings}
