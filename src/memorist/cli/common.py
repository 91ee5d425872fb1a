"""What the commands share: options, consoles, and how things are shown."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memorist.config import Settings
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.memory import Memory
from memorist.records.fact import Fact
from memorist.records.log import Job
from memorist.records.memory_item import MemoryItem
from memorist.records.scope import Scope
from memorist.runtime import open_embedder, open_store
from memorist.store.base import Store

CATCH_UP_SECONDS = 5.0  # it ends as soon as all is done
SHORT = 8  # characters of an id, from its end: those of a UUIDv7 begin alike
PAGE = 1_000

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

console = Console()
errors = Console(stderr=True)

User = Annotated[
    str | None, typer.Option("--user", "-u", help="Whose memory. Default: MEMORIST_USER or `me`.")
]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="With which agent.")]
SessionId = Annotated[str | None, typer.Option("--session", "-s", help="In which session.")]
Database = Annotated[
    str | None, typer.Option("--db", help="A file or a postgresql:// URL. Default: MEMORIST_URL.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def open_memory(
    database: str | None, extraction: Extraction | None = None
) -> tuple[Memory, Settings]:
    """The memory that the options and the environment name, and the settings it came from.

    Where a model is set, a command that ends at once leaves the extraction to `memorist worker`:
    an answer that nobody waits for would be paid for in vain.
    """
    settings = Settings.from_environment()
    if extraction is None and not settings.model:
        extraction = DEFAULT_EXTRACTION
    embedder = open_embedder(settings.embedder)
    store = _store(settings, database)
    return Memory(store, tenant=settings.tenant, embedder=embedder, extraction=extraction), settings


def open_quietly(database: str | None) -> tuple[Memory, Settings]:
    """The same with nothing in the background: what there is to do waits in the queue."""
    settings = Settings.from_environment()
    store = _store(settings, database)
    return Memory(store, tenant=settings.tenant, embedder=None, extraction=None), settings


def _store(settings: Settings, database: str | None) -> Store:
    return open_store(settings.url if database is None else database, settings.durability)


def catch_up(memory: Memory, user: str) -> None:
    """Think about what this user just said, for a moment; say what still waits."""
    until = time.monotonic() + CATCH_UP_SECONDS
    while (left := _unthought(memory, user)) and memory.extraction and time.monotonic() < until:
        memory.jobs.catch_up(0.1)
    if left:
        line = f"{left} jobs wait to be thought about; `memorist worker --once` does them"
        errors.print(Text(line, style="dim"), soft_wrap=True)


def _unthought(memory: Memory, user: str) -> int:
    return sum(job.kind in ("embed", "derive") for job in memory.jobs.list(user=user, dead=False))


def everyone(store: Store) -> Iterator[Scope]:
    """Every user of a store, of every tenant."""
    last = None
    while page := store.users(after=last, limit=PAGE):
        yield from page
        last = page[-1]


def short(id_: str) -> str:
    """The end of an id, by which a reader tells it from others."""
    return harmless(f"…{id_[-SHORT:]}" if len(id_) > SHORT else id_)


def plain(record: MemoryItem | Fact | Job) -> dict[str, Any]:
    """A record as JSON has it: whose it is by name."""
    fields = {
        field.name: getattr(record, field.name)
        for field in dataclasses.fields(record)
        if field.name not in ("scope", "lease")
    }
    scope = record.scope
    return {**fields, "user": scope.user, "agent": scope.agent, "session": scope.session}


def print_json(value: Any) -> None:
    """Print for programs, whatever the terminal's encoding."""
    print(json.dumps(value, default=datetime.isoformat))


def harmless(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def moment(at: datetime) -> str:
    """A moment in the reader's own time zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
