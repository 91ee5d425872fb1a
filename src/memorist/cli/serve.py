"""`memorist serve`: the HTTP API, MCP and the page on one port; `memorist keys`: its API keys."""

import re
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from memorist import __version__
from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console
from memorist.config import Settings
from memorist.records.scope import ApiKey
from memorist.records.values import now
from memorist.runtime import open_store
from memorist.server.auth import Keys, NewKey

if TYPE_CHECKING:
    from memorist.server.http.run import Address

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")]
Tenant = Annotated[str | None, typer.Option(help="Of which tenant. Default: MEMORIST_TENANT.")]

keys = typer.Typer(
    help="Create, list, rotate and revoke the API keys of the servers.", no_args_is_help=True
)


def serve(
    host: str = typer.Option(
        "127.0.0.1", help="The address to listen on; other machines need a key."
    ),
    port: int = typer.Option(
        7077, min=0, max=65_535, help="The port to listen on; 0 takes a free one."
    ),
    workers: int = typer.Option(1, min=1, max=64, help="How many processes serve."),
    user: str | None = typer.Option(
        None, "--user", "-u", help="Whose memory it is where no key is needed. Default: `me`."
    ),
    db: opt.Database = None,
    auth: bool | None = typer.Option(
        None, "--auth/--no-auth", help="Require keys. Default: unless only you can connect."
    ),
    allow_host: list[str] | None = typer.Option(
        None, help="A host name to answer to; may be given several times."
    ),
    allow_origin: list[str] | None = typer.Option(
        None, help="A web origin to allow; may be given several times."
    ),
    rate: float | None = typer.Option(
        None, min=0, help="Requests a second of one caller; 0: no limit."
    ),
    certfile: str | None = typer.Option(None, help="A certificate (PEM): serve over TLS."),
    keyfile: str | None = typer.Option(None, help="Its private key, if in another file."),
    log_level: Literal["debug", "info", "warning", "error"] | None = typer.Option(
        None, help="The least level that is logged. Default: warning."
    ),
    log_format: Literal["text", "json"] | None = typer.Option(
        None, help="How lines are logged. Default: text."
    ),
    access_log: bool = typer.Option(False, "--access-log", help="Log a line for each request."),
    open_page: bool = typer.Option(False, "--open", help="Open the page in the browser."),
) -> None:
    """Serve the memory over HTTP and MCP, with its worker, until stopped."""
    from memorist.server.http import run  # here: the other commands start without it

    settings = Settings.from_environment()
    options: dict[str, Any] = {
        "url": opt.database_url(db, settings, "serve"),
        "user": user,
        "hosts": " ".join(allow_host or ()),
        "origins": " ".join(allow_origin or ()),
        "auth": None if auth is None else ("on" if auth else "off"),
        "rate": rate,
        "log_level": log_level,
        "log_format": log_format,
        "access_log": "on" if access_log else None,
    }
    address = run.Address(host, port)
    given = {name: value for name, value in options.items() if value not in (None, "")}
    settings = replace(settings, **given)
    # Opened here first, so that one process alone creates or migrates the database.
    with closing(open_store(settings.url, settings.durability)) as store:
        settings = run.resolve_auth(settings, address, keys=store.has_keys())
    ready = partial(_announce, settings, open_page)
    run.serve(settings, address, workers=workers, certfile=certfile, keyfile=keyfile, ready=ready)


def _announce(settings: Settings, open_page: bool, at: "Address") -> None:
    """Say where the server is, and show the page if that is wanted."""
    who = f"{settings.user}; no key is needed, as only this machine can connect"
    if settings.auth == "on":
        who = "whoever has a key: memorist keys create --user …, or --admin"
    if at.anywhere and not settings.hosts:
        who += "; name the host they call with --allow-host"
    rows = {
        "page": at.url,
        "API": f"{at.url}/docs",
        "MCP": f"{at.url}/mcp",
        "memory": "PostgreSQL" if "://" in settings.url else settings.url,
        "user": who,
        "model": settings.model or "none; set MEMORIST_MODEL to let /api/chat answer",
    }
    console.print(f"[bold]Memorist {__version__}[/bold]", highlight=False)
    for name, value in rows.items():
        console.print(f"  {name:<7}", end="", highlight=False)
        console.print(value, markup=False, highlight=False, soft_wrap=True)
    console.print("Stop it with Ctrl-C.", highlight=False)
    if open_page:  # in a thread, as some browsers are waited for
        threading.Thread(target=webbrowser.open, args=[at.url], daemon=True).start()


@keys.command()
def create(
    user: str | None = typer.Option(None, "--user", "-u", help="Whose memory it opens."),
    admin: bool = typer.Option(False, "--admin", help="It opens the memory of all users."),
    program: bool = typer.Option(
        False, "--program", help="For a program: over MCP it may store messages of any role."
    ),
    label: str = typer.Option("", help="What it is for, to tell it from others."),
    expires: str | None = typer.Option(None, metavar="90d", help="How long it is valid."),
    tenant: Tenant = None,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Create a key for a user, or for an admin, who names the user in each request."""
    if (user is None) is not admin:
        raise typer.BadParameter("give one of --user and --admin")
    life = _duration(expires, "--expires")
    with _open_keys(db, tenant) as (api_keys, home):
        new = api_keys.create(tenant=home, user=user, label=label, lifetime=life, program=program)
    _show_new(new, as_json)


@keys.command("list")
def list_keys(tenant: Tenant = None, db: opt.Database = None, as_json: opt.AsJson = False) -> None:
    """List the keys and their state; the keys themselves are stored nowhere."""
    with _open_keys(db, tenant) as (api_keys, home):
        rows = api_keys.of(home)
    columns: render.Columns = {
        "id": "id",
        "user": _user_of,
        "label": "label",
        "made": "created_at",
        "expires": lambda key: key.expires_at or "never",
        "state": _state,
    }
    render.records(rows, columns, as_json=as_json, empty="no keys")


@keys.command()
def revoke(key_id: KeyId, tenant: Tenant = None, db: opt.Database = None) -> None:
    """End a key, at once and on every server."""
    with _open_keys(db, tenant) as (api_keys, home):
        api_keys.revoke(home, key_id)
    console.print("revoked: it opens nothing any more")


@keys.command()
def rotate(
    key_id: KeyId,
    grace: str | None = typer.Option(
        None, metavar="24h", help="How long the old key stays valid. Default: until revoked."
    ),
    tenant: Tenant = None,
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Create a key like this one, which stays valid for a while."""
    with _open_keys(db, tenant) as (api_keys, home):
        new = api_keys.rotate(home, key_id, grace=_duration(grace, "--grace"))
    _show_new(new, as_json)
    if not as_json:
        render.remark(f"The old key is valid {f'for {grace}' if grace else 'until you revoke it'}.")


@contextmanager
def _open_keys(db: str | None, tenant: str | None) -> Iterator[tuple[Keys, str]]:
    """The keys of the database, and the tenant that the options or the environment name."""
    with opt.open_memory(db, worker=False, local_command="keys") as (memory, _):
        yield Keys(memory.keys), Settings.from_environment().tenant if tenant is None else tenant


def _duration(text: str | None, option: str) -> timedelta | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", text)
    if match is None:
        raise typer.BadParameter("a number and m, h, d or w, as in 90d", param_hint=option)
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def _show_new(new: NewKey, as_json: bool) -> None:
    """The key alone goes to standard output, so that a script can take it from there."""
    if as_json:
        render.print_json({**render.fields_of(new.record), "key": new.text})
        return
    typer.echo(new.text)
    render.warn("Keep it now: it is shown this once, and stored nowhere.")


def _user_of(key: ApiKey) -> str:
    user = "everyone (admin)" if key.user is None else key.user
    return f"{user} (program)" if key.program else user


def _state(key: ApiKey) -> Text:
    if key.revoked_at is not None:
        return Text("revoked", "red")
    return Text("expired", "red") if key.expired(now()) else Text("valid", "green")
