"""What the commands share: options, consoles, and how a moment is shown."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console

from recollect.config import Settings
from recollect.memory import Memory, open_embedder, open_store

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

console = Console()
errors = Console(stderr=True)

User = Annotated[
    str | None, typer.Option("--user", "-u", help="Whose memory. Default: RECOLLECT_USER or `me`.")
]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="With which agent.")]
SessionId = Annotated[str | None, typer.Option("--session", "-s", help="In which session.")]
Database = Annotated[
    str | None,
    typer.Option("--db", help="A file or a postgresql:// URL. Default: RECOLLECT_URL."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def open_memory(database: str | None) -> tuple[Memory, Settings]:
    """The memory that the options and the environment name, and the settings it came from."""
    settings = Settings.from_environment()
    store = open_store(settings.url if database is None else database, settings.durability)
    embedder = open_embedder(settings.embedder)
    return Memory(store, tenant=settings.tenant, embedder=embedder), settings


def harmless(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def moment(at: datetime) -> str:
    """A moment in the reader's own time zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
