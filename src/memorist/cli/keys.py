"""`memorist keys`: create, list, rotate and revoke the API keys of the servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from memorist.cli.options import AsJson, LocalDatabase, open_database
from memorist.cli.render import console, fields_of, print_json, remark, render, warn
from memorist.config import Settings
from memorist.records.api_key import ApiKey
from memorist.records.values import now
from memorist.server.auth import Keys, NewKey

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")]
Tenant = Annotated[str | None, typer.Option(help="Of which tenant. Default: MEMORIST_TENANT.")]
ForUser = Annotated[str | None, typer.Option("--user", "-u", help="Whose memory it opens.")]
Admin = Annotated[bool, typer.Option("--admin", help="It opens the memory of all users.")]
Label = Annotated[str, typer.Option(help="What it is for, to tell it from others.")]
Expires = Annotated[str | None, typer.Option(metavar="90d", help="How long it is valid.")]
Grace = Annotated[
    str | None,
    typer.Option(metavar="24h", help="How long the old key stays valid. Default: until revoked."),
]

keys = typer.Typer(help="Create, list, rotate and revoke the API keys of the servers.")


@keys.command()
def create(
    user: ForUser = None,
    admin: Admin = False,
    label: Label = "",
    expires: Expires = None,
    tenant: Tenant = None,
    db: LocalDatabase = None,
    as_json: AsJson = False,
) -> None:
    """Create a key for a user, or for an admin, who names the user in each request."""
    if (user is None) is not admin:
        raise typer.BadParameter("give one of --user and --admin")
    lifetime = _duration(expires, "--expires")
    with _open_keys(db, tenant) as (api_keys, home):
        new = api_keys.create(tenant=home, user=user, label=label, lifetime=lifetime)
    _show_new(new, as_json)


@keys.command("list")
def list_keys(tenant: Tenant = None, db: LocalDatabase = None, as_json: AsJson = False) -> None:
    """List the keys and their state; the keys themselves are stored nowhere."""
    with _open_keys(db, tenant) as (api_keys, home):
        found = api_keys.of(home)
    render(
        found,
        {
            "id": lambda key: key.id,
            "user": lambda key: "everyone (admin)" if key.user is None else key.user,
            "label": lambda key: key.label,
            "made": lambda key: key.created_at,
            "expires": lambda key: key.expires_at or "never",
            "state": _state,
        },
        as_json=as_json,
        empty="no keys",
    )


@keys.command()
def revoke(key_id: KeyId, tenant: Tenant = None, db: LocalDatabase = None) -> None:
    """End a key, at once and on every server."""
    with _open_keys(db, tenant) as (api_keys, home):
        api_keys.revoke(home, key_id)
    console.print("revoked: it opens nothing any more")


@keys.command()
def rotate(
    key_id: KeyId,
    grace: Grace = None,
    tenant: Tenant = None,
    db: LocalDatabase = None,
    as_json: AsJson = False,
) -> None:
    """Create a key like this one, which stays valid for a while."""
    with _open_keys(db, tenant) as (api_keys, home):
        new = api_keys.rotate(home, key_id, grace=_duration(grace, "--grace"))
    _show_new(new, as_json)
    if not as_json:
        remark(f"The old key is valid {f'for {grace}' if grace else 'until you revoke it'}.")


@contextmanager
def _open_keys(db: str | None, tenant: str | None) -> Iterator[tuple[Keys, str]]:
    """The keys of the database, and the tenant that the options or the environment name."""
    with open_database(db, "keys") as memory:
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
        print_json({**fields_of(new.record), "key": new.text})
        return
    typer.echo(new.text)
    warn("Keep it now: it is shown this once, and stored nowhere.")


def _state(key: ApiKey) -> Text:
    if key.revoked_at is not None:
        return Text("revoked", "red")
    return Text("expired", "red") if key.expired(now()) else Text("valid", "green")
