"""`memorist hooks`: what is written to Claude Code's settings, and what its hooks do."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memorist import Memory
from memorist.cli import hook
from memorist.cli.hook import ACTIONS, HEADER
from memorist.cli.main import app
from memorist.errors import ConfigError
from memorist.transfer.formats.claude_code import read
from memorist.transfer.items import Turn
from memorist.transfer.source import Source

THEIRS = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}],
    },
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("MEMORIST", "XDG", "CLAUDE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hook, "RECALL_MS", None)  # whatever else the machine does
    monkeypatch.setattr(hook, "EXTRACT_S", 60.0)
    return tmp_path


def hooks(*options: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["hooks", *options], input=answer)


def command_of(settings: Path, event: str) -> list[str]:
    """What the settings say is run at an event, the last of it."""
    written = json.loads(settings.read_text())["hooks"][event]
    return shlex.split(written[-1]["hooks"][0]["command"])


def run(command: list[str], event: object, *, afresh: bool = False) -> str:
    """What a hook tells Claude Code; it must not fail. `afresh` runs the very command."""
    text = event if isinstance(event, bytes) else json.dumps(event).encode()
    if not afresh:
        assert command[:3] == [sys.executable, "-m", "memorist.cli.hook"]
        return hook.main(command[3:], text)
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_hooks_are_shown_then_written_beside_others_and_taken_out_again(home: Path) -> None:
    file = home / ".claude/settings.json"
    file.parent.mkdir()
    before = json.dumps(THEIRS, indent=2) + "\n"
    file.write_text(before)
    refused = hooks("install", answer="n\n")
    assert refused.exit_code == 1
    assert "+" in refused.stdout
    assert "memorist.cli.hook" in refused.stdout
    assert file.read_text() == before
    assert hooks("install", "--user", "ada", "--yes").exit_code == 0
    written = json.loads(file.read_text())
    assert set(written["hooks"]) == {*ACTIONS, "PreToolUse"}
    assert written["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]  # type: ignore[index]
    text = file.read_text()
    assert "already" in hooks("install", "--user", "ada").stderr
    assert file.read_text() == text
    assert hooks("remove", answer="y\n").exit_code == 0
    assert json.loads(file.read_text()) == THEIRS
    assert hooks("install", "--project", "--yes").exit_code == 0
    assert (home / ".claude/settings.local.json").exists()
    assert hooks("remove", "--project", "--yes").exit_code == 0
    assert json.loads((home / ".claude/settings.local.json").read_text()) == {}


@pytest.mark.parametrize("text", ["// mine\n{}", "[]", '{"hooks": 1}', '{"hooks": {"Stop": [1]}}'])
def test_settings_that_are_not_understood_are_left_as_they_are(home: Path, text: str) -> None:
    file = home / ".claude/settings.json"
    file.parent.mkdir()
    file.write_text(text)
    assert isinstance(hooks("install", "--yes").exception, ConfigError)
    assert file.read_text() == text


def line(number: int, role: str, text: str, session: str = "s-1") -> str:
    said = {
        "type": role,
        "uuid": f"u{number}",
        "sessionId": session,
        "timestamp": f"2026-11-01T10:{number:02}:00.000Z",
        "message": {"role": role, "content": text},
    }
    return json.dumps(said) + "\n"


def test_a_conversation_is_stored_once_and_comes_back_in_the_next(home: Path) -> None:
    assert hooks("install", "--user", "ada", "--create", "--db", "m.db", "--yes").exit_code == 0
    settings, transcript = home / ".claude/settings.json", home / "t.jsonl"
    told = (
        line(1, "user", "We deploy with Ansible. I moved to Berlin."),
        line(2, "assistant", "Noted."),
    )
    transcript.write_text("".join(told) + '{"type": "user", "uu')  # one more is being written
    ended: dict[str, Any] = {"session_id": "s-1", "transcript_path": str(transcript)}
    for event in ("Stop", "Stop", "PreCompact"):
        asked = {"hook_event_name": event, **ended}
        assert run(command_of(settings, event), asked, afresh=event == "PreCompact") == ""
    transcript.write_text("".join((*told, line(3, "user", "Thanks."))))
    assert run(command_of(settings, "Stop"), {"hook_event_name": "Stop", **ended}) == ""

    started = {"hook_event_name": "SessionStart", "session_id": "s-2", "source": "startup"}
    context = run(command_of(settings, "SessionStart"), started, afresh=True)
    assert context.startswith(HEADER)
    assert "I moved to Berlin." in context
    asked = {"hook_event_name": "UserPromptSubmit", "prompt": "How do we deploy with Ansible?"}
    prompt = command_of(settings, "UserPromptSubmit")
    assert "[u1] 2026-11-01 user: We deploy" in run(prompt, {**asked, "session_id": "s-2"})
    assert run(prompt, {**asked, "session_id": "s-1"}) == ""  # where it was said

    with Memory(home / "m.db", embedder=None, extraction=None) as memory:
        stored = memory.history(user="ada", agent="claude-code", session="s-1")
        assert [it.message_id for it in stored] == ["u1", "u2", "u3"]
        turns = [it for it in read(Source(transcript)) if isinstance(it, Turn)]  # as an import does
        again = memory.remember(
            [turn.message for turn in turns], user="ada", agent="claude-code", session="s-1"
        )
        assert again.added == 0


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"\xff{",
        [],
        {"hook_event_name": "Nobody"},
        {"hook_event_name": "UserPromptSubmit"},
        {"hook_event_name": "UserPromptSubmit", "prompt": {"SECRET": 1}},
        {"hook_event_name": "Stop", "transcript_path": "nowhere.jsonl"},
    ],
)
def test_whatever_fails_the_session_goes_on_and_the_log_has_a_line(
    home: Path, event: object
) -> None:
    command = [sys.executable, "-m", "memorist.cli.hook", "--db", str(home / "m.db"), "--odd"]
    assert run(command, event, afresh=event == []) == ""
    [log] = home.rglob("hooks.log")
    assert log.read_text().count("\n") == 1
    assert "SECRET" not in log.read_text()


def test_a_hook_starts_without_the_command_line_and_an_embedder(home: Path) -> None:
    code = (
        "import sys\nfrom memorist.cli.hook import main\n"
        "main(['--db', ':memory:'], b'{\"hook_event_name\": \"SessionStart\"}')\n"
        "heavy = {'typer', 'rich', 'pydantic', 'httpx', 'onnxruntime', 'mcp', 'langchain_core'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
