"""`memorist serve`: when keys are asked for, and what is refused before anything listens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorist import ConfigError, SqliteStore
from memorist.cli.main import app
from memorist.config import Settings
from memorist.server.auth import Keys
from memorist.server.http.run import Address, resolve_auth
from tests.support.http_server import keys_of

HERE, THERE = Address("127.0.0.1", 7077), Address("192.0.2.7", 7077)
SETTINGS = Settings(url=":memory:")


def asks(settings: Settings, address: Address, *, keys: bool = False) -> bool:
    return resolve_auth(settings, address, keys=keys).auth == "on"


def test_one_local_user_needs_no_key() -> None:
    assert not asks(SETTINGS, HERE)
    assert not asks(SETTINGS, Address("::1", 1))
    assert not asks(SETTINGS, Address("localhost", 1))


def test_whoever_made_keys_or_set_tokens_up_wants_them_asked_for() -> None:
    assert asks(SETTINGS, HERE, keys=True)
    assert asks(replace(SETTINGS, jwt_key="x" * 32), HERE)
    assert asks(replace(SETTINGS, jwt_jwks_url="https://issuer.example/keys"), HERE)
    assert asks(replace(SETTINGS, auth="on"), HERE)
    assert not asks(replace(SETTINGS, auth="off"), HERE, keys=True)


def test_other_machines_always_show_keys() -> None:
    assert asks(SETTINGS, THERE)
    assert asks(SETTINGS, Address("0.0.0.0", 1))
    with pytest.raises(ConfigError, match="needs keys"):
        asks(replace(SETTINGS, auth="off"), THERE)


def test_the_name_it_listens_on_is_one_it_answers_to() -> None:
    assert resolve_auth(SETTINGS, THERE, keys=False).hosts == "192.0.2.7"
    assert resolve_auth(SETTINGS, Address("2001:db8::7", 1), keys=False).hosts == "[2001:db8::7]"
    assert resolve_auth(SETTINGS, Address("0.0.0.0", 1), keys=False).hosts == ""


def test_what_cannot_be_is_said_before_anything_listens(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with SqliteStore(path) as store:
        Keys(keys_of(store)).create(tenant="default", user="ada")
    done = CliRunner().invoke(
        app, ["serve", "--create", "--db", str(path), "--host", "0.0.0.0", "--no-auth"]
    )
    assert isinstance(done.exception, ConfigError)
    done = CliRunner().invoke(app, ["serve", "--db", "ftp://nowhere"])
    assert isinstance(done.exception, ConfigError)


def test_a_certificate_that_cannot_be_used_is_said_before_anything_listens(tmp_path: Path) -> None:
    wrong = tmp_path / "cert.pem"
    wrong.write_text("no certificate")
    for options in (["--certfile", str(wrong)], ["--certfile", "nowhere"], ["--keyfile", "x"]):
        done = CliRunner().invoke(
            app, ["serve", "--create", "--db", str(tmp_path / "m.db"), *options]
        )
        assert isinstance(done.exception, ConfigError)
        assert "--certfile" in str(done.exception)
