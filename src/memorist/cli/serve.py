"""`memorist serve`: the HTTP API, MCP and the page on one port."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memorist import __version__
from memorist.cli.options import LocalDatabase, database_url
from memorist.cli.render import console
from memorist.config import Settings
from memorist.runtime import open_store

if TYPE_CHECKING:
    from memorist.server.http.run import Address

Host = Annotated[str, typer.Option(help="The address to listen on; other machines need a key.")]
Port = Annotated[
    int, typer.Option(min=0, max=65_535, help="The port to listen on; 0 takes a free one.")
]
Workers = Annotated[int, typer.Option(min=1, max=64, help="How many processes serve.")]
Whose = Annotated[
    str | None,
    typer.Option("--user", "-u", help="Whose memory it is where no key is needed. Default: `me`."),
]
Auth = Annotated[
    bool | None,
    typer.Option("--auth/--no-auth", help="Require keys. Default: unless only you can connect."),
]
HostNames = Annotated[
    list[str] | None, typer.Option(help="A host name to answer to; may be given several times.")
]
Origins = Annotated[
    list[str] | None, typer.Option(help="A web origin to allow; may be given several times.")
]
Rate = Annotated[
    float | None, typer.Option(min=0, help="Requests a second of one caller; 0: no limit.")
]


def serve(
    host: Host = "127.0.0.1",
    port: Port = 7077,
    workers: Workers = 1,
    user: Whose = None,
    db: LocalDatabase = None,
    auth: Auth = None,
    allow_host: HostNames = None,
    allow_origin: Origins = None,
    rate: Rate = None,
) -> None:
    """Serve the memory over HTTP and MCP, with its worker, until stopped."""
    from memorist.server.http.run import Address, resolve_auth
    from memorist.server.http.run import (
        serve as listen,  # here: the other commands start without it
    )

    settings = Settings.from_environment()
    options: dict[str, Any] = {
        "url": database_url(db, settings, "serve"),
        "user": user,
        "hosts": " ".join(allow_host or ()),
        "origins": " ".join(allow_origin or ()),
        "auth": None if auth is None else ("on" if auth else "off"),
        "rate": None if rate is None else str(rate),
    }
    address = Address(host, port)
    settings = replace(settings, **{name: value for name, value in options.items() if value})
    # Opened here first, so that one process alone creates or migrates the database.
    with closing(open_store(settings.url, settings.durability)) as store:
        keys = any(key.revoked_at is None for key in store.keys(settings.tenant))
    settings = resolve_auth(settings, address, keys=keys)
    listen(settings, address, workers=workers, ready=lambda at: _print_addresses(settings, at))


def _print_addresses(settings: Settings, at: Address) -> None:
    who = f"{settings.user}; no key is needed, as only this machine can connect"
    if settings.auth == "on":
        who = "whoever has a key: memorist keys create --user …, or --admin"
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
