"""What commands share: their common options, and opening the memory that these name."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from memorist.cli.render import full_id, remark
from memorist.client import Client
from memorist.config import Settings, default_path
from memorist.errors import ConfigError, NotFoundError
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.memory import Memory
from memorist.records.log import Session
from memorist.runtime import open_embedder, open_store

CATCH_UP_SECONDS = 5.0  # at most, for what was just stored
CREATE = "--create"
ANYBODY = Settings(url="").user  # where no user is named: on a server, whoever the key is of
DAY = "2026-05-01"  # how a moment is written, as an example; a time may follow


def existing(context: typer.Context, url: str | None) -> str | None:
    """The database of --db; a file that does not exist is refused unless --create makes it."""
    path = (url or "").removeprefix("sqlite:///")
    if not path or "://" in path or path in (":memory:", str(default_path())):
        return url
    if not Path(path).exists():
        if not context.meta.get(CREATE):
            raise ConfigError(f"there is no database at {path}; mend the path, or add {CREATE}")
        open_store(path).close()
    return url


def _keep(context: typer.Context, wanted: bool) -> bool:
    context.meta[CREATE] = wanted
    return wanted


def create(
    create: bool = typer.Option(
        False,
        CREATE,
        callback=_keep,
        expose_value=False,
        is_eager=True,  # known when --db is checked
        help="Begin a new database at --db.",
    ),
) -> None:
    """The option that each command with --db has beside it."""


User = Annotated[
    str | None,
    typer.Option("--user", "-u", help="Whose memory. Default: MEMORIST_USER, the key's, or `me`."),
]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="With which agent.")]
SessionId = Annotated[str | None, typer.Option("--session", "-s", help="In which session.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        callback=existing,
        help="A file, a postgresql:// or a server's URL. Default: MEMORIST_URL.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Project = Annotated[bool, typer.Option("--project", help="For this folder only, not for all.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Everyone = Annotated[bool, typer.Option("--everyone", help="For all users of the tenant.")]
LibraryName = Annotated[
    str | None, typer.Option("--library", "-l", help="A library that all users share, by its name.")
]
Deadline = Annotated[float, typer.Option("--deadline", min=1, help="Milliseconds for the search.")]


def moment(help: str) -> Any:
    """An option that is a day, or a day and a time, here where no zone is named."""

    def read(text: str) -> datetime:
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            raise typer.BadParameter(f"write a day as {DAY}, or a time as {DAY}T09:30") from None

    return typer.Option(metavar=DAY, parser=read, help=help)


def given(**options: Any) -> dict[str, Any]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def open_memory(
    database: str | None,
    user: str | None = None,
    *,
    worker: bool = True,
    extraction: Extraction | None = None,
    wrap: Callable[[Any], Any] = lambda store: store,
    local_command: str = "",
) -> Iterator[tuple[Memory, str]]:
    """The memory that the options and the environment name, and the user whose it is.

    Without `worker` nothing runs in the background: new jobs wait in the queue. Where a model is
    set they wait too, for `memorist worker`: a command ends before the model's answer would be
    used. A server has a worker of its own; it cannot run a `local_command`.
    """
    settings = Settings.from_environment()
    url = database_url(database, settings, local_command)
    memory: Memory
    if is_server(url):
        memory = Client(url, key=settings.key)
        if user is None and settings.user == ANYBODY:
            user = memory.own_user()
    else:
        if worker and extraction is None and not settings.model:
            extraction = DEFAULT_EXTRACTION
        memory = Memory(
            wrap(open_store(url, settings.durability, settings.max_message_bytes)),
            tenant=settings.tenant,
            embedder=open_embedder(settings.embedder) if worker else None,
            extraction=extraction if worker else None,
        )
    with memory:
        yield memory, settings.user if user is None else user


def is_server(url: str) -> bool:
    """Whether a URL is the address of a server instead of a database."""
    return url.startswith(("http://", "https://"))


def database_url(database: str | None, settings: Settings, local_command: str = "") -> str:
    """The URL that the options or the settings name; for a `local_command`, not a server's."""
    url = settings.url if database is None else database
    if local_command and is_server(url):
        raise ConfigError(
            f"memorist {local_command} needs the database itself: run it where the server runs, "
            "and give --db a file or a postgresql:// URL"
        )
    return url


def all_users(memory: Memory) -> list[str]:
    """The users of the tenant, read page by page."""
    scopes = memory.users()
    while scopes and (page := memory.users(after=scopes[-1])):
        scopes += page
    return [scope.user for scope in scopes]


def derived_id(memory: Memory, user: str, end: str) -> str:
    """The id of the memory or fact of which a table shows the end."""
    lists = (partial(memory.memories.list, current=False), memory.facts.as_of)
    return full_id(end, (record.id for read in lists for record in read(user=user)))


def session_of(memory: Memory, user: str, agent: str | None, id_: str) -> Session:
    """The session that --session names; an error if the user has none such with the agent."""
    if sessions := memory.sessions(user=user, agent=agent, session=id_):
        return sessions[0]
    raise NotFoundError("this user has no such session with this agent; check --session")


def catch_up(memory: Memory, user: str) -> None:
    """Wait a moment for the jobs of what this user just said; say how many are left."""
    if _waiting(memory, user):
        memory.warm_up()  # loading the models is not part of the wait
    until = time.monotonic() + CATCH_UP_SECONDS
    while _waiting(memory, user) and memory.jobs.catch_up(0.1) and time.monotonic() < until:
        pass
    if left := _waiting(memory, user):
        remark(f"jobs that wait to be processed: {left:,}; `memorist worker --once` does them")


def _waiting(memory: Memory, user: str) -> int:
    waiting = memory.jobs.waiting(user=user)
    return waiting["embed"] + waiting["derive"]


def read_stdin() -> str:
    """All of standard input; bytes that are not UTF-8 are refused where the text is stored."""
    return sys.stdin.buffer.read().decode(errors="surrogateescape")
