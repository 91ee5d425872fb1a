"""`memorist keys`: who may ask the servers; make keys, list them, end them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from memorist.cli.common import (
    AsJson,
    Database,
    console,
    errors,
    harmless,
    moment,
    open_quietly,
    print_json,
)
from memorist.records.api_key import ApiKey
from memorist.records.ids import now
from memorist.server.auth import Keys, NewKey

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")]
Tenant = Annotated[str | None, typer.Option(help="Of which tenant. Default: MEMORIST_TENANT.")]
ForUser = Annotated[str | None, typer.Option("--user", "-u", help="Whose memory it opens.")]
Admin = Annotated[bool, typer.Option("--admin", help="It opens the memory of all users.")]
Label = Annotated[str, typer.Option(help="What it is for, to tell it from others.")]
Expires = Annotated[str | None, typer.Option(metavar="90d", help="How long it is good for.")]
Grace = Annotated[
    str | None,
    typer.Option(metavar="24h", help="How long the old key goes on. Default: until revoked."),
]

keys = typer.Typer(help="Make, list and end the keys that the servers ask for.")


@keys.command()
def create(
    user: ForUser = None,
    admin: Admin = False,
    label: Label = "",
    expires: Expires = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a key for a user, or for an admin, who names the user in each request."""
    if (user is None) is not admin:
        raise typer.BadParameter("give one of --user and --admin")
    lifetime = _time(expires, "--expires")
    with _keys(db, tenant) as (own, home):
        new = own.create(tenant=home, user=user, label=label, lifetime=lifetime)
    _show_new(new, as_json)


@keys.command("list")
def list_keys(tenant: Tenant = None, db: Database = None, as_json: AsJson = False) -> None:
    """Show which keys there are, and what became of them; the keys themselves nobody can."""
    with _keys(db, tenant) as (own, home):
        found = own.of(home)
    if as_json:
        print_json([_plain(key) for key in found])
    elif not found:
        errors.print("no keys", style="dim")
    else:
        console.print(_table(found))


@keys.command()
def revoke(key_id: KeyId, tenant: Tenant = None, db: Database = None) -> None:
    """End a key, at once and on every server."""
    with _keys(db, tenant) as (own, home):
        own.revoke(home, key_id)
    console.print("revoked: it opens nothing any more")


@keys.command()
def rotate(
    key_id: KeyId,
    grace: Grace = None,
    tenant: Tenant = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a new key like this one, which itself goes on for a while."""
    with _keys(db, tenant) as (own, home):
        new = own.rotate(home, key_id, grace=_time(grace, "--grace"))
    _show_new(new, as_json)
    if not as_json:
        rest = "until you revoke it" if grace is None else f"for {grace}"
        errors.print(Text(f"The old key goes on {rest}.", style="dim"))


@contextmanager
def _keys(db: str | None, tenant: str | None) -> Iterator[tuple[Keys, str]]:
    memory, settings = open_quietly(db)
    with memory:
        yield Keys(memory.keys), settings.tenant if tenant is None else tenant


def _time(said: str | None, option: str) -> timedelta | None:
    if said is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", said)
    if found is None:
        raise typer.BadParameter("a number and m, h, d or w, as in 90d", param_hint=option)
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def _plain(key: ApiKey) -> dict[str, Any]:
    return {f.name: getattr(key, f.name) for f in fields(key) if f.name != "digest"}


def _show_new(new: NewKey, as_json: bool) -> None:
    """The key alone goes to the standard output, so that a script can take it from there."""
    if as_json:
        print_json({**_plain(new.record), "key": new.text})
        return
    typer.echo(new.text)
    errors.print(Text("Keep it now: it is shown this once, and stored nowhere.", style="yellow"))


def _table(found: list[ApiKey]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "user", "label", "made", "expires", "state"):
        table.add_column(name, overflow="fold", no_wrap=name == "id")
    at = now()
    for key in found:
        whose = "everyone (admin)" if key.user is None else harmless(key.user)
        table.add_row(
            key.id,
            Text(whose),
            Text(harmless(key.label)),
            moment(key.created_at),
            "never" if key.expires_at is None else moment(key.expires_at),
            _state(key, at),
        )
    return table


def _state(key: ApiKey, at: datetime) -> Text:
    if key.revoked_at is not None:
        return Text("revoked", "red")
    return Text("expired", "red") if key.expired(at) else Text("valid", "green")
