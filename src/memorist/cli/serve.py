"""`memorist serve`: the HTTP API, MCP and the page on one port."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memorist import __version__
from memorist.cli.common import Database, console
from memorist.config import Settings
from memorist.runtime import open_store

if TYPE_CHECKING:
    from memorist.server.http.run import Address

Host = Annotated[str, typer.Option(help="Where to listen; beyond this machine, keys are needed.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")]
Workers = Annotated[int, typer.Option(min=1, max=64, help="How many processes.")]
Whose = Annotated[
    str | None,
    typer.Option("--user", "-u", help="Whose memory it is where no key is needed. Default: `me`."),
]
Auth = Annotated[
    bool | None,
    typer.Option("--auth/--no-auth", help="Ask for keys. Default: unless only you can connect."),
]
Names = Annotated[list[str] | None, typer.Option(help="May be given several times.")]
Rate = Annotated[float | None, typer.Option(min=0, help="Requests a second of one caller; 0: any.")]


def serve(
    host: Host = "127.0.0.1",
    port: Port = 7077,
    workers: Workers = 1,
    user: Whose = None,
    db: Database = None,
    auth: Auth = None,
    allow_host: Names = None,
    allow_origin: Names = None,
    rate: Rate = None,
) -> None:
    """Serve the memory over HTTP and MCP, with its worker, until stopped."""
    from memorist.server.http.run import Address, resolve_auth
    from memorist.server.http.run import (
        serve as listen,  # here: the other commands start without it
    )

    given: dict[str, Any] = {
        "url": db,
        "user": user,
        "hosts": " ".join(allow_host or ()),
        "origins": " ".join(allow_origin or ()),
        "auth": None if auth is None else ("on" if auth else "off"),
        "rate": None if rate is None else str(rate),
    }
    known = Settings.from_environment()
    where = Address(host, port)
    chosen = replace(known, **{name: value for name, value in given.items() if value})
    # Made or brought up to date by one process alone.
    with closing(open_store(chosen.url, chosen.durability)) as store:
        keys = any(key.revoked_at is None for key in store.keys(chosen.tenant))
    settings = resolve_auth(chosen, where, keys=keys)
    listen(settings, where, workers=workers, ready=lambda at: _tell(settings, at))


def _tell(settings: Settings, at: Address) -> None:
    """Say where to look."""
    who = f"{settings.user}; no key is needed, as only this machine can connect"
    if settings.auth == "on":
        who = "whoever shows a key: memorist keys create --user …, or --admin"
    if at.anywhere and not settings.hosts:
        who += "; name the host they call with --allow-host"
    database = "PostgreSQL" if "://" in settings.url else settings.url
    rows = {
        "page": at.url,
        "API": f"{at.url}/openapi.json",
        "MCP": f"{at.url}/mcp",
        "memory": database,
        "user": who,
        "model": settings.model or "none; set MEMORIST_MODEL to let /api/chat answer",
    }
    console.print(f"[bold]Memorist {__version__}[/bold]", highlight=False)
    for name, value in rows.items():
        console.print(f"  {name:<7}", end="", highlight=False)
        console.print(value, markup=False, highlight=False, soft_wrap=True)
    console.print("Stop it with Ctrl-C.", highlight=False)
