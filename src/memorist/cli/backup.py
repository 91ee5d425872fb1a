"""`memorist backup`: a copy of the database, made while it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memorist.cli.options import LocalDatabase, open_database
from memorist.cli.render import console

File = Annotated[Path, typer.Argument(metavar="FILE", help="The new file to copy into.")]


def backup(file: File, db: LocalDatabase = None) -> None:
    """Copy the database into a new file; others may use it meanwhile."""
    with open_database(db, "backup") as memory:
        memory.backup(file)
    console.print(f"copied, {file.stat().st_size:,} bytes", highlight=False)
