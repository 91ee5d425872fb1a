"""`memorist mcp install`: what is written for which client, and that nothing is lost by it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from platformdirs import user_config_path
from typer.testing import CliRunner, Result

from memorist.cli import mcp as mcp_command
from memorist.cli import settings_files
from memorist.cli.main import app
from memorist.cli.mcp import CLIENTS
from memorist.errors import ConfigError
from tests.support.mcp_servers import structured

KEY = "mk_0123456789"
URL = "http://127.0.0.1:8765"
RUN = ["-m", "memorist", "mcp", "--user"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("MEMORIST", "XDG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def install(*options: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["mcp", "install", *options], input=answer)


def remove(*options: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["mcp", "remove", *options], input=answer)


def written(file: Path) -> Any:
    return parsed(file.read_text(), toml=file.suffix == ".toml")


def parsed(text: str, *, toml: bool) -> Any:
    return tomllib.loads(text) if toml else json.loads(text)


@pytest.mark.parametrize(
    ("settings", "home"),
    [
        (".config", "home/ada"),
        ("Users/ada/Library/Application Support", "Users/ada"),
        ("C/Users/ada/AppData/Roaming", "C/Users/ada"),
    ],
)
def test_each_client_has_its_file_on_each_system(settings: str, home: str) -> None:
    def where(client: str) -> str:
        return str(mcp_command.config_file(client, settings=Path(settings), home=Path(home)))

    assert where("claude-code") == f"{home}/.claude.json"
    assert where("claude-desktop") == f"{settings}/Claude/claude_desktop_config.json"
    assert where("cursor") == f"{home}/.cursor/mcp.json"
    assert where("vscode") == f"{settings}/Code/User/mcp.json"
    assert where("windsurf") == f"{home}/.codeium/windsurf/mcp_config.json"
    storage = "globalStorage/saoudrizwan.claude-dev/settings"
    assert where("cline") == f"{settings}/Code/User/{storage}/cline_mcp_settings.json"
    assert where("codex") == f"{home}/.codex/config.toml"
    assert where("gemini") == f"{home}/.gemini/settings.json"
    assert where("zed") == f"{settings}/zed/settings.json"


@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_is_told_how_to_start_the_server(client: str, home: Path) -> None:
    done = install(
        client, "--user", "ada", "--create", "--db", "m.db", "--agent", "tutor", answer="y\n"
    )
    assert done.exit_code == 0, done.output
    place = mcp_command.config_file(client, settings=user_config_path(roaming=True), home=home)
    assert str(place) in done.output
    [told] = written(place)[CLIENTS[client].section].values()
    named = ("claude-code", "cursor", "vscode", "cline")
    assert told.pop("type", "none") == ("stdio" if client in named else "none")
    arguments = [*RUN, "ada", "--agent", "tutor", "--db", str(home / "m.db")]
    assert told == {"command": sys.executable, "args": arguments}
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


HEADERS = {"Authorization": f"Bearer {KEY}"}
AT_URL: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "http", "url": f"{URL}/mcp", "headers": HEADERS},
    "cursor": {"url": f"{URL}/mcp", "headers": HEADERS},
    "vscode": {"type": "http", "url": f"{URL}/mcp", "headers": HEADERS},
    "windsurf": {"serverUrl": f"{URL}/mcp", "headers": HEADERS},
    "cline": {"type": "streamableHttp", "url": f"{URL}/mcp", "headers": HEADERS},
    "codex": {"url": f"{URL}/mcp", "http_headers": HEADERS},
    "gemini": {"httpUrl": f"{URL}/mcp", "headers": HEADERS},
    "zed": {"url": f"{URL}/mcp", "headers": HEADERS},
}


@pytest.mark.parametrize("client", AT_URL)
def test_the_client_is_told_where_a_server_runs(client: str) -> None:
    for url in (URL, f"{URL}/mcp", f"{URL}/mcp/"):
        done = install(client, "--url", url, "--key", KEY, "--print")
        told = parsed(done.stdout, toml=client == "codex")
        assert told[CLIENTS[client].section]["memorist"] == AT_URL[client]
    without = install(client, "--url", "https://example.org", "--print", "--tools", "all").stdout
    assert "Authorization" not in without
    assert "https://example.org/mcp?tools=all" in without


def test_the_key_is_written_but_not_shown(home: Path) -> None:
    done = install("cursor", "--url", URL, "--key", KEY, "--yes")
    assert done.exit_code == 0
    assert KEY not in done.output
    assert KEY in (home / ".cursor/mcp.json").read_text()


def test_a_client_that_takes_no_addresses_starts_a_server_that_asks_ours(home: Path) -> None:
    refused = install("claude-desktop", "--url", URL, "--key", KEY, "--print").exception
    assert isinstance(refused, ConfigError)
    assert "give the address as --db" in str(refused)
    arguments = ("claude-desktop", "--db", URL, "--user", "ada", "--key", KEY)
    told = parsed(install(*arguments, "--print").stdout, toml=False)["mcpServers"]["memorist"]
    assert told["args"] == [*RUN, "ada"]
    assert told["env"] == {"MEMORIST_KEY": KEY, "MEMORIST_URL": URL}


def test_a_file_without_the_key_keeps_its_mode(home: Path) -> None:
    file = home / ".claude.json"
    file.write_text("{}")
    file.chmod(0o640)
    done = install("claude-code", "--user", "ada", "--key", KEY, "--yes")  # of no server
    assert KEY not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "holds a key" not in done.output


def test_what_the_environment_says_is_told_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(**more: str) -> Any:
        for name, value in more.items():
            monkeypatch.setenv(f"MEMORIST_{name}", value)
        return json.loads(install("claude-code", "--print").stdout)["mcpServers"]["memorist"]

    assert told()["args"] == [*RUN, "me"]
    assert told(USER="ada", AGENT="tutor")["args"] == [*RUN, "ada", "--agent", "tutor"]
    secret = "postgresql://ada:secret@db/memory"
    remote = told(URL=secret, TENANT="acme")
    assert remote["env"] == {"MEMORIST_URL": secret, "MEMORIST_TENANT": "acme"}
    assert "secret" not in str(remote["args"])


PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "zed": ".zed/settings.json",
}


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_a_project_has_a_file_of_its_own(client: str, home: Path) -> None:
    assert install(client, "--project", "--yes").exit_code == 0
    assert "memorist" in (home / PROJECT_FILES[client]).read_text()


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_added_is_taken_out_and_nothing_else(client: str, home: Path) -> None:
    place = mcp_command.config_file(client, settings=user_config_path(roaming=True), home=home)
    section = CLIENTS[client].section
    place.parent.mkdir(parents=True, exist_ok=True)
    other = {"other": {"command": "x"}}
    text = '[mcp_servers.other]\ncommand = "x"\n' if client == "codex" else ""
    place.write_text(text or json.dumps({section: other, "theme": "dark"}, indent=2) + "\n")
    before = place.read_text()
    assert install(client, "--yes").exit_code == 0
    assert set(written(place)[section]) == {"other", "memorist"}
    assert remove(client, answer="n\n").exit_code == 1
    assert remove(client, answer="y\n").exit_code == 0
    assert place.read_text().strip() == before.strip()
    assert "nothing was written" in remove(client, "--yes").stderr


CODEX = """# my model
model = "gpt-5"  # the best

[mcp_servers.memorist]
command = "old"
args = []
# what follows is mine
[profiles.fast]
model = "small"

[[list]]
text = '''
[not a table]
'''
"""


def test_codex_keeps_its_file_and_comments(home: Path) -> None:
    file = home / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(CODEX)
    done = install("codex", "--url", URL, "--key", KEY, "--yes")
    assert done.exit_code == 0, done.output
    text, told = file.read_text(), written(file)
    assert '# my model\nmodel = "gpt-5"  # the best\n' in text
    assert "# what follows is mine\n[profiles.fast]" in text
    assert told["mcp_servers"] == {"memorist": AT_URL["codex"]}
    assert told["list"] == [{"text": "[not a table]\n"}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert install("codex", "--url", URL, "--key", KEY, "--yes").exit_code == 0
    assert file.read_text() == text
    assert remove("codex", "--yes").exit_code == 0
    assert "memorist" not in file.read_text()
    assert "# what follows is mine" in file.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "model = ",
        'mcp_servers = { memorist = { command = "x" } }\n',
        '[mcp_servers]\nmemorist.command = "x"\n',
        '[mcp_servers.memorist]\ncommand = "x"\n\nenabled = false\n',
        "[mcp_servers.memorist]\nargs = [\n[],\n]\n",
        "mcp_servers = 1\n",
    ],
)
def test_a_codex_file_that_is_written_otherwise_is_left_as_it_is(home: Path, text: str) -> None:
    file = home / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(text)
    done = install("codex", "--yes")
    assert isinstance(done.exception, ConfigError)
    assert "[mcp_servers.memorist]" in done.stdout  # what to paste
    assert file.read_text() == text


def test_zeds_settings_with_comments_are_left_and_what_to_paste_is_shown(home: Path) -> None:
    file = home / ".config/zed/settings.json"
    file.parent.mkdir(parents=True)
    file.write_text('// Zed settings\n{"theme": "One Dark",}\n')
    done = install("zed", "--yes")
    assert isinstance(done.exception, ConfigError)
    assert json.loads(done.stdout)["context_servers"]["memorist"]
    assert file.read_text() == '// Zed settings\n{"theme": "One Dark",}\n'


EXISTING: Mapping[str, Any] = {
    "numStartups": 12,
    "theme": "dunkel – größer",
    "projects": {"/x": {"mcpServers": {"a": {}}}},
    "mcpServers": {"other": {"command": "x", "args": []}, "memorist": {"command": "old"}},
    "last": None,
}


@pytest.mark.parametrize("indent", [2, 4, "\t", None])
def test_all_else_in_the_file_stays_and_the_old_one_is_kept(home: Path, indent: Any) -> None:
    file = home / ".claude.json"
    before = json.dumps(EXISTING, indent=indent, ensure_ascii=False)
    file.write_text(before)
    file.chmod(0o640)
    assert install("claude-code", "--user", "ada", "--yes").exit_code == 0
    after = written(file)
    assert list(after) == list(EXISTING)
    told = after["mcpServers"].pop("memorist")
    assert told["args"] == [*RUN, "ada"]
    assert after["mcpServers"] == {"other": EXISTING["mcpServers"]["other"]}
    assert {**after, "mcpServers": None} == {**EXISTING, "mcpServers": None}
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    [kept] = home.glob(".claude.json.*.bak")
    assert kept.read_text() == before
    assert sorted(path.name for path in home.iterdir()) == [".claude.json", kept.name]
    if indent:
        mark = indent if isinstance(indent, str) else " " * indent
        assert f'\n{mark}"numStartups": 12' in file.read_text()


def test_a_second_time_changes_nothing(home: Path) -> None:
    assert install("cursor", "--yes").exit_code == 0
    done = install("cursor")
    assert done.exit_code == 0
    assert "already" in done.stderr
    assert list((home / ".cursor").iterdir()) == [home / ".cursor" / "mcp.json"]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_without_a_yes_nothing_is_written(home: Path, answer: str) -> None:
    done = install("cursor", answer=answer)
    assert done.exit_code == 1
    assert '"memorist"' in done.stdout
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["{", "// mine\n{}", "[]", '{"mcpServers": []}', '"x"', "[" * 99999]
)
def test_a_file_that_is_not_understood_is_left_as_it_is(home: Path, text: str) -> None:
    (home / ".claude.json").write_text(text)
    done = install("claude-code", "--yes")
    assert isinstance(done.exception, ConfigError)
    assert ".claude.json" in str(done.exception)
    assert (home / ".claude.json").read_text() == text
    assert len(list(home.iterdir())) == 1


def test_a_file_that_changed_in_the_meantime_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"newer": 1}')
    with pytest.raises(ConfigError, match="in the meantime"):
        settings_files.write(file, "{}", '{"a": 1}')
    assert file.read_text() == '{"newer": 1}'
    assert [path.suffix for path in tmp_path.iterdir() if path != file] == [".bak"]


def test_a_link_stays_a_link_and_no_copy_is_overwritten(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles.json", tmp_path / "link.json"
    target.write_text("1")
    link.symlink_to(target)
    for number in (2, 3):
        kept = settings_files.write(link, str(number - 1), str(number))
        assert kept
        assert kept.read_text() == str(number - 1)
    assert link.is_symlink()
    assert target.read_text() == "3"


@pytest.mark.parametrize(
    "options",
    [("emacs",), (), ("cursor", "--url", "ftp://x"), ("cursor", "--url", URL, "--user", "ada")],
)
def test_a_wrong_command_says_what_is_wrong(options: tuple[str, ...]) -> None:
    assert install(*options).exit_code == 2


def test_claude_desktop_has_no_projects() -> None:
    assert isinstance(install("claude-desktop", "--project").exception, ConfigError)


def test_what_is_printed_starts_the_server(home: Path) -> None:
    options = ("--user", "ada", "--create", "--db", str(home / "m.db"), "--tools", "all", "--print")
    printed = install("cursor", *options).stdout
    told = json.loads(printed)["mcpServers"]["memorist"]
    env = {**os.environ, "MEMORIST_EMBEDDER": "none"}
    server = StdioServerParameters(command=told["command"], args=told["args"], env=env)

    async def talk() -> None:
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            assert structured(await session.call_tool("store_concept", {"content": "Hi."}))["id"]

    asyncio.run(talk())
