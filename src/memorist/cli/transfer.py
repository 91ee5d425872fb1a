"""`memorist import`: what other programs exported, brought in."""

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console, errors
from memorist.transfer.importing import OnProgress, Report, examine, run_import
from memorist.transfer.importing import Progress as Step
from memorist.transfer.source import Source

PLACES = 3  # that are named for each reason


def import_(
    path: str = typer.Argument(help="A file, folder or zip, or another program's database."),
    format: str | None = typer.Option(None, help="Its format. Default: it is recognised."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would come in."),
    user: opt.User = None,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Bring in what another program exported; what is there already stays as it is.

    An export that names users keeps them apart. With --user all of it becomes that user's, and
    an export of several users is refused.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"))
    left = TimeRemainingColumn(elapsed_when_finished=True)
    bar = Progress(*columns, left, console=errors, disable=not errors.is_terminal)
    try:
        with bar:
            source, one_user, show = Source(path), user is not None, _progress(bar, quiet=as_json)
            if dry_run:
                report = examine(source, format=format, one_user=one_user, on_progress=show)
            else:
                with opt.open_memory(db, user, worker=False) as (memory, owner):
                    report = run_import(
                        memory,
                        source,
                        user=owner,
                        one_user=one_user,
                        format=format,
                        on_progress=show,
                    )
    except KeyboardInterrupt:
        render.warn("stopped: what came in stays; run it again for the rest")
        raise
    if as_json:
        render.print_json(report)
    else:
        _show(report)
    if not report.found:
        raise typer.Exit(1)


def _progress(bar: Progress, *, quiet: bool) -> OnProgress:
    """What moves the bars, one for each of the two steps; elsewhere than on a terminal, it says
    when each begins.
    """
    tasks: dict[str, TaskID] = {}

    def show(step: Step) -> None:
        name = "importing" if step.writing else "checking"
        if name not in tasks:
            tasks[name] = bar.add_task(name, rate="")
            if bar.disable and not quiet:
                render.remark(f"{name} …")
        seconds = bar.tasks[tasks[name]].elapsed or 0
        rate = f"{step.items / seconds:,.0f}/s" if seconds else ""
        total = step.bytes_total or None
        rate = f"{step.items:,}  {rate}"
        bar.update(tasks[name], completed=step.bytes_read, total=total, rate=rate)

    return show


def _show(report: Report) -> None:
    days = [at.astimezone().date().isoformat() for at in (report.first, report.last) if at]
    counts = {"conversations": report.conversations, "users": report.users}
    facts = [
        f"{it.count:,}+ {name}" if it.more else render.counted(it.count, name)
        for name, it in counts.items()
        if it.count
    ]
    facts += [f"{days[0]} to {days[-1]}"] if days else []
    console.print(Text.assemble((report.title, "bold"), (f"  {', '.join(facts)}", "dim")))
    cells = {"found": report.found}
    if not report.dry_run:
        cells |= {"added": report.added, "there already": report.known}
    if report.found:
        columns = {name: counts.__getitem__ for name, counts in cells.items()}
        console.print(render.table(report.found, {"": str, **columns}))
    for reason, count in report.reasons.most_common():
        places = [one.place for one in report.skipped if one.reason == reason][:PLACES]
        more = ", …" if count > len(places) else ""
        render.warn(f"{count:,} skipped: {reason} ({', '.join(places)}{more})")
    if sum(report.added.values()):
        render.remark(
            "found by its words now; `memorist worker --once` adds its meaning and makes memories"
        )
    elif report.dry_run:
        render.remark("nothing was written")
