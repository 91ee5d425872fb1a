"""`memorist keys`, as an operator runs it, on real files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memorist import ConflictError, NotFoundError
from memorist.cli.main import app
from memorist.errors import InvalidError, ScopeError, UnauthorizedError
from memorist.records.scope import Principal
from memorist.records.values import now
from memorist.server.auth import Guard
from memorist.store.sqlite.store import SqliteStore
from tests.support.http_server import keys_of

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MEMORIST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def run(db: Path) -> Run:
    """Run the command on the test's database."""

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["keys", *arguments, "--create", "--db", str(db)])

    return call


def worked(done: Result) -> str:
    assert (done.exit_code, done.exception) == (0, None), done.output
    return done.stdout


def listed(run: Run, *more: str) -> list[dict[str, Any]]:
    return list(json.loads(worked(run("list", "--json", *more))))


def caller(db: Path, key: str) -> Principal:
    with SqliteStore(db) as store:
        return Guard(keys_of(store)).authenticate(f"Bearer {key}")


def test_a_key_is_made_shown_once_and_works(run: Run, db: Path) -> None:
    done = run("create", "--user", "ada", "--label", "laptop")
    key = worked(done).strip()
    assert done.stdout == f"{key}\n"  # a script takes it as it is
    assert "shown this once" in done.stderr
    assert key not in done.stderr
    assert (caller(db, key).tenant, caller(db, key).user) == ("default", "ada")
    for again in (run("list"), run("list", "--json")):
        assert key.split("_", 2)[2] not in worked(again)


def test_the_file_holds_no_key(run: Run, db: Path) -> None:
    secret = worked(run("create", "--user", "ada")).strip().split("_", 2)[2]
    for path in db.parent.iterdir():
        assert secret.encode() not in path.read_bytes()


def test_an_admin_key_is_asked_for_by_name(run: Run, db: Path) -> None:
    key = worked(run("create", "--admin", "--tenant", "acme")).strip()
    assert caller(db, key).admin
    assert caller(db, key).tenant == "acme"
    assert "everyone (admin)" in worked(run("list", "--tenant", "acme"))
    for wrong in ([], ["--admin", "--user", "ada"]):
        refused = run("create", *wrong)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "one of --user and --admin" in refused.stderr


def test_an_empty_user_is_no_admin(run: Run) -> None:
    assert isinstance(run("create", "--user", "").exception, ScopeError)
    assert listed(run) == []


def test_the_tenant_is_that_of_the_environment(
    run: Run, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORIST_TENANT", "acme")
    key = worked(run("create", "--user", "ada")).strip()
    assert caller(db, key).tenant == "acme"
    assert len(listed(run)) == 1
    assert listed(run, "--tenant", "default") == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("90d", timedelta(days=90)),
        ("24h", timedelta(hours=24)),
        ("5m", timedelta(minutes=5)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_key_expires_when_it_was_told_to(run: Run, said: str, meant: timedelta) -> None:
    worked(run("create", "--user", "ada", "--expires", said))
    [key] = listed(run)
    made, end = (datetime.fromisoformat(key[name]) for name in ("created_at", "expires_at"))
    assert end - made == meant


@pytest.mark.parametrize("said", ["", "90", "d", "-1d", "1.5d", "1 d", "9999999d", "٣d", "1y"])
def test_a_time_that_cannot_be_read_is_refused(run: Run, said: str) -> None:
    for command in (
        ("create", "--user=a", f"--expires={said}"),
        ("rotate", "x", f"--grace={said}"),
    ):
        refused = run(*command)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "as in 90d" in refused.stderr


def test_a_time_that_makes_no_sense_is_refused(run: Run) -> None:
    for said in ("0d", "999999w"):
        assert isinstance(run("create", "--user", "a", "--expires", said).exception, InvalidError)
    assert listed(run) == []


def test_the_list_is_a_table_that_tells_what_became_of_each(run: Run) -> None:
    assert "no keys" in run("list").stderr
    for user in ("ada", "bob"):
        worked(run("create", "--user", user, "--label", f"for {user}"))
    first, _ = listed(run)
    assert "revoked" in worked(run("revoke", first["id"]))
    head, one, two = worked(run("list")).splitlines()
    assert head.split() == ["id", "user", "label", "made", "expires", "state"]
    assert one.startswith(first["id"])
    assert one.endswith("revoked")
    assert "for ada" in one
    assert two.rstrip().endswith("valid")
    assert "digest" not in first
    assert datetime.fromisoformat(listed(run)[0]["revoked_at"]) <= now()


def test_a_revoked_key_opens_nothing(run: Run, db: Path) -> None:
    key = worked(run("create", "--user", "ada")).strip()
    worked(run("revoke", key.split("_")[1]))
    with pytest.raises(UnauthorizedError):
        caller(db, key)


def test_a_key_is_rotated_with_and_without_a_grace(run: Run, db: Path) -> None:
    old = worked(run("create", "--user", "ada", "--label", "laptop")).strip()
    id_ = old.split("_")[1]
    done = run("rotate", id_)
    new = worked(done).strip()
    assert "until you revoke it" in done.stderr
    done = run("rotate", id_, "--grace", "24h")
    assert "for 24h" in done.stderr
    for key in (old, new, worked(done).strip()):
        assert caller(db, key).user == "ada"
    keys = listed(run)
    assert [key["label"] for key in keys] == ["laptop"] * 3
    assert [key["expires_at"] is None for key in keys] == [False, True, True]
    shown = json.loads(worked(run("rotate", id_, "--grace", "0m", "--json")))
    assert caller(db, shown["key"]).user == "ada"
    with pytest.raises(UnauthorizedError):
        caller(db, old)
    assert isinstance(run("rotate", id_).exception, ConflictError)


def test_a_key_of_another_tenant_or_of_nobody_is_not_found(run: Run) -> None:
    id_ = worked(run("create", "--user", "ada")).split("_")[1]
    for command in ("revoke", "rotate"):
        for arguments in ([id_, "--tenant", "acme"], ["nobody"]):
            assert isinstance(run(command, *arguments).exception, NotFoundError)


def test_names_cannot_steer_the_terminal(run: Run) -> None:
    worked(run("create", "--user", "\x1b[2Jada", "--label", "[red]x[/red] \x1b]0;y\x07"))
    said = worked(run("list"))
    assert "\x1b" not in said
    assert "\x07" not in said
