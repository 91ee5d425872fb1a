"""`memorist backup`: a copy of the memory, made while it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memorist.cli.common import Database, console, open_quietly
from memorist.errors import ConfigError
from memorist.store.sqlite.store import SqliteStore

File = Annotated[Path, typer.Argument(metavar="FILE", help="A new one.")]


def backup(file: File, db: Database = None) -> None:
    """Copy the memory into a new file; others may use it meanwhile."""
    memory, _ = open_quietly(db)
    with memory:
        if not isinstance(memory.store, SqliteStore):
            raise ConfigError("PostgreSQL is backed up by its own pg_dump, as docs/running.md says")
        memory.store.backup(file)
    console.print(f"copied, {file.stat().st_size:,} bytes", highlight=False)
