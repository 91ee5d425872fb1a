"""What an operator meets: odd addresses, settings that are wrong, files of clients."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorist import connect
from memorist.cli.main import app
from memorist.cli.mcp import merged
from memorist.cli.settings_files import write
from memorist.config import Settings
from memorist.errors import ConfigError
from memorist.server.http.run import Address, resolve_auth
from tests.support import program
from tests.support.forked import Forked
from tests.unit.test_cli import start

TOLD = {"command": "python"}


def test_every_loopback_address_answers_to_its_own_name() -> None:
    settings = resolve_auth(Settings(url=":memory:"), Address("127.0.0.2", 1), keys=False)
    assert settings.hosts == "127.0.0.2"
    assert settings.auth == "local"


def test_several_processes_do_not_start_on_settings_that_are_wrong(tmp_path: Path) -> None:
    options = ("--port", "0", "--workers", "2", "--create", "--db", "memory.db")
    done = start(tmp_path, "serve", *options, MEMORIST_RATE="fast")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"ConfigError: MEMORIST_RATE")


BROKEN = """
from memorist.config import Settings
from memorist.errors import ConfigError
from memorist.server.http import run

def broken(*_):
    raise ConfigError("no luck today")

if __name__ == "__main__":
    run.make_app = broken
    settings = Settings(url=":memory:", embedder="none", auth="off")
    run.serve(settings, run.Address("127.0.0.1", 0), workers=2, ready=print)
"""


def test_a_server_process_that_cannot_start_ends_the_server(tmp_path: Path) -> None:
    (script := tmp_path / "broken.py").write_text(BROKEN)
    ready = program.__name__, "memorist.server.http.run"
    with tempfile.TemporaryFile("w+") as errors:
        server = Forked(program.__name__, script, ready=ready, stderr=errors.fileno())
        said, _ = server.communicate(timeout=120)
        errors.seek(0)
        problems = errors.read()
    assert (server.wait(), said) == (1, b"")
    assert "no luck today" in problems
    assert "ConfigError: a server process ended while it started (exit code 1)" in problems


def test_a_clients_file_with_half_a_character_keeps_it(tmp_path: Path) -> None:
    file, before = tmp_path / "mcp.json", r'{"a": "\ud800"}'
    file.write_text(before)
    write(file, before, merged(before, "cursor", TOLD, file))
    assert json.loads(file.read_text())["a"] == "\ud800"


@pytest.mark.parametrize("number", ["1e400", "NaN"])
def test_a_number_that_no_json_can_hold_leaves_a_clients_file_alone(
    number: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="not plain JSON"):
        merged(f'{{"a": {number}}}', "cursor", TOLD, tmp_path / "mcp.json")


def test_a_client_that_starts_a_server_for_another_one_gets_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"HOME": str(tmp_path), "MEMORIST_URL": "http://127.0.0.1:7077"}
    for name, value in {**settings, "MEMORIST_KEY": "mk_secret"}.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["mcp", "install", "cursor", "--yes"])
    assert done.exit_code == 0
    assert "secret" not in done.output
    told = json.loads((tmp_path / ".cursor/mcp.json").read_text())["mcpServers"]["memorist"]
    assert told["env"] == {"MEMORIST_URL": "http://127.0.0.1:7077", "MEMORIST_KEY": "mk_secret"}


def test_a_client_starts_a_server_with_the_embedder_that_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMORIST_EMBEDDER", "none")
    done = CliRunner().invoke(app, ["mcp", "install", "cursor", "--print"])
    told = json.loads(done.stdout)["mcpServers"]["memorist"]
    assert told["env"]["MEMORIST_EMBEDDER"] == "none"


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_key_is_written_only_where_its_owner_alone_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".cursor/mcp.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)
    install = ["mcp", "install", "cursor", "--yes", "--url", "http://127.0.0.1:7077"]
    assert CliRunner().invoke(app, install).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o644  # no secret, so as it was
    done = CliRunner().invoke(app, [*install, "--key", "mk_secret"])
    assert (done.exit_code, "Only you may read it" in done.output) == (0, True)
    modes = {it.stat().st_mode & 0o777 for it in file.parent.iterdir() if "7077" in it.read_text()}
    assert modes == {0o600}  # the copy of the old file, too

    before = file.read_text()
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    done = CliRunner().invoke(app, [*install, "--key", "mk_another"])
    assert isinstance(done.exception, ConfigError)
    assert "another user's" in str(done.exception)
    assert "mk_" not in str(done.exception)
    assert file.read_text() == before


def test_a_key_over_plain_http_to_another_machine_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    key = "mk_secret"
    for url, warned in {
        "http://127.0.0.1:7077": False,
        "http://localhost:7077": False,
        "http://[::1]:7077": False,
        "https://memory.example": False,
        "http://memory.example": True,
        "http://127.0.0.1.example": True,
        "http://192.0.2.7:7077": True,
    }.items():
        caplog.clear()
        connect(url, key=key).close()
        assert ("plain http://" in caplog.text) is warned, url
        done = CliRunner().invoke(
            app, ["mcp", "install", "cursor", "--print", "--url", url, "--key", key]
        )
        assert ("plain http://" in done.stderr) is warned, url
        assert key not in caplog.text + done.stderr
    caplog.clear()
    connect("http://memory.example").close()
    assert not caplog.text
