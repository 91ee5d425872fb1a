"""`memorist export` and `promote`: everything into an archive, or into another database."""

import os
from pathlib import Path

import typer
from rich.progress import DownloadColumn, Progress, SpinnerColumn, TransferSpeedColumn

from memorist import archive
from memorist.cli import options as opt
from memorist.cli import render
from memorist.config import Settings
from memorist.errors import InvalidError
from memorist.runtime import open_store


def export(
    file: Path = typer.Argument(metavar="FILE", help="The new file, NAME.memorist.gz."),
    user: opt.User = None,
    everyone: opt.Everyone = False,
    vectors: bool = typer.Option(False, "--vectors", help="With vectors; else they are remade."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Write everything of a user into an archive, which `memorist import` takes back.

    It is read back and checked before it gets its name. Others may write meanwhile.
    """
    if file.exists():
        raise InvalidError("the archive's file exists already; name a new one")
    part = file.with_name(f"{file.name}.part")
    columns = SpinnerColumn(), DownloadColumn(), TransferSpeedColumn()
    bar = Progress(*columns, console=render.errors, disable=not render.errors.is_terminal)
    with opt.open_memory(db, user, worker=False) as (memory, user), bar:
        task = bar.add_task("", total=None)
        try:
            with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as out:
                for chunk in memory.export(None if everyone else user, vectors=vectors):
                    bar.advance(task, out.write(chunk))
                users, counts = archive.contents(out)
                os.fsync(out.fileno())
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)
    size = file.stat().st_size
    if as_json:
        render.print_json({"users": users, "records": counts, "bytes": size})
        return
    said, others = counts["message"], counts.total() - counts["message"]
    records = render.counted(said, "messages"), render.counted(others, "other records")
    render.console.print(f"exported {' and '.join(records)}, {size:,} bytes", highlight=False)


def promote(
    source: str | None = typer.Option(
        None, "--from", help="A file or a postgresql:// URL. Default: MEMORIST_URL."
    ),
    target: str = typer.Option(..., "--to", help="A file or a postgresql:// URL."),
    replace: bool = typer.Option(
        False, "--replace", help="Forget users in the target who differ, and copy them anew."
    ),
    as_json: opt.AsJson = False,
) -> None:
    """Copy all users and API keys from one database to another, and compare them.

    Users who are the same in both are left out: run it again when it was interrupted, or to bring
    what was written to the source meanwhile, which may be read all the time.
    """
    settings = Settings.from_environment()
    url = opt.database_url(source, settings, "promote")
    opt.database_url(target, settings, "promote")
    counts = {"same": 0, "copied": 0, "differs": 0}
    bar = Progress(console=render.errors, disable=not render.errors.is_terminal)
    with open_store(url) as old, open_store(target) as new, bar:
        task = bar.add_task("copying users", total=archive.count_users(old))
        for _, outcome in archive.promote(old, new, replace=replace):
            counts[outcome] += 1
            bar.advance(task)
    if as_json:
        render.print_json(counts)
    else:
        copied = render.counted(counts["copied"], "users")
        render.console.print(f"copied {copied}; the same: {counts['same']:,}", highlight=False)
    if counts["differs"]:
        render.remark(
            f"users that differ: {counts['differs']:,}; they were written to meanwhile, or the "
            "target has something of its own; run it again, or copy them anew with --replace",
            "yellow",
        )
        raise typer.Exit(1)
