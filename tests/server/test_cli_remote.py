"""The command line on a server: `MEMORIST_URL=http://… memorist …`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.stdio import stdio_client
from typer.testing import CliRunner, Result

from memorist import ConfigError, client
from memorist.cli import options, upkeep
from memorist.cli.main import app
from tests.support.http_server import Served
from tests.support.mcp_servers import over_stdio, structured

Run = Callable[..., Result]


@pytest.fixture
def run(served: Served, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """Run a command as a user of the server, one for each test, with a key of theirs."""
    for name in [name for name in os.environ if name.startswith("MEMORIST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(client, "GRACE_S", 60)  # whatever else the machine does
    monkeypatch.setattr(options, "CATCH_UP_SECONDS", 60)
    monkeypatch.setattr(upkeep, "DEADLINE_MS", 60_000)
    user = request.node.name
    monkeypatch.setenv("MEMORIST_URL", served.url)
    monkeypatch.setenv("MEMORIST_KEY", served.key(user))
    monkeypatch.setenv("MEMORIST_USER", user)
    return lambda *arguments, **more: CliRunner().invoke(app, arguments, **more)


def worked(done: Result) -> str:
    assert (done.exit_code, done.exception) == (0, None), done.output
    return done.stdout


def read(done: Result) -> Any:
    return json.loads(worked(done))


def test_a_chat_without_a_model_shows_the_context_that_the_server_makes(run: Run) -> None:
    worked(run("remember", "I moved to Berlin in March.", "--session", "s", "--json"))
    done = run("chat", "--session", "s", input="Where do I live?\n")

    assert "  I moved to Berlin in March." in worked(done)
    assert "set MEMORIST_MODEL" in done.stderr
    said = [message["content"] for message in read(run("history", "--session", "s", "--json"))]
    assert said == ["I moved to Berlin in March.", "Where do I live?"]


def test_messages_are_stored_read_recalled_and_forgotten(run: Run) -> None:
    assert worked(run("remember", "I moved to Berlin in March.")).startswith("remembered ")
    worked(run("remember", "-", "--role", "assistant", "--session", "s", input="Noted."))

    assert [message["content"] for message in read(run("history", "--json"))] == [
        "I moved to Berlin in March.",
        "Noted.",
    ]
    assert "movedtoBerlin" in "".join(worked(run("recall", "Berlin")).split())
    assert "words" in worked(run("recall", "Berlin", "--explain"))
    [hit] = read(run("recall", "Berlin", "--role", "user", "--kind", "message", "--json"))
    assert hit["role"] == "user"
    assert "forgot 1 message" in worked(run("forget", "--session", "s", "--yes"))
    assert "forgot" in worked(run("forget", "--everything", "--yes"))
    assert "no messages yet" in run("history").stderr


def test_whoever_the_key_is_of_need_not_be_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORIST_USER")
    worked(run("remember", "I moved to Berlin in March."))

    assert "I moved to Berlin in March." in worked(run("history"))
    assert "of another user" in str(run("history", "--user", "somebody").exception)


def test_memories_and_facts_are_listed_undone_maintained_and_audited(run: Run) -> None:
    worked(run("remember", "I prefer tea over coffee."))

    [item] = read(run("memories", "--json"))
    assert item["text"] == "I prefer tea over coffee."
    assert "I prefer tea over coffee." in worked(run("memories"))
    [fact] = read(run("facts", "--json"))
    assert (fact["predicate"], fact["object"]) == ("prefers", "tea over coffee")
    assert read(run("audit", "--json"))["memories"] == 1
    assert "1 memory, " in worked(run("audit"))
    assert read(run("maintain", "--dry-run", "--json"))[0]["expired"] == []
    assert worked(run("undo", f"…{fact['id'][-8:]}")) == f"retracted {fact['id']}\n"
    assert "no facts" in run("facts").stderr
    assert "no jobs" in run("jobs").stderr


def test_a_context_has_its_messages_and_its_receipt(run: Run) -> None:
    worked(run("remember", "I live in Berlin.", "--session", "trip"))

    shown = worked(run("context", "Where do I live?", "--session", "trip"))
    assert "  I live in Berlin.\n" in shown
    assert "of 8,000, counted by o200k_base" in shown
    made = read(run("context", "Where do I live?", "--json"))
    receipt = made["receipt"]
    assert receipt["used"] + receipt["left"] + receipt["answer"] == 8_000


def test_notes_and_articles_are_written_read_and_asked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 70 degrees.\n")
    worked(run("notes", "--append", "Speaks German."))
    assert worked(run("notes")) == "Speaks German.\n"
    assert [note["version"] for note in read(run("notes", "--versions", "--json"))] == [1]

    assert worked(run("ingest", str(tmp_path / "tea.md"))) == "1 added\n"
    [card] = read(run("articles", "--json"))
    assert card["title"] == "Tea"
    assert "70 degrees" in worked(run("articles", "--ask", "how hot is green tea?"))
    worked(run("articles", "--remove", card["id"][-8:]))
    assert "no articles yet" in run("articles").stderr


def test_doctor_makes_its_round_trip_through_the_server(run: Run) -> None:
    worked(run("remember", "hello"))
    report = worked(run("doctor"))

    assert all(f" {step} " in report for step in ("server", "queue", "recall", "forget"))
    assert "fails" not in report
    assert [message["content"] for message in read(run("history", "--json"))] == ["hello"]


def test_an_mcp_server_on_stdio_serves_the_memory_of_a_server(served: Served) -> None:
    key = served.key("eve")
    stdio = over_stdio(Path(), "--user", "eve", MEMORIST_URL=served.url, MEMORIST_KEY=key)

    async def talk() -> Any:
        async with stdio_client(stdio) as streams, ClientSession(*streams) as session:
            await session.initialize()
            structured(await session.call_tool("remember", {"content": "I live in Berlin."}))
            return structured(await session.call_tool("recall", {"query": "Berlin"}))

    assert "I live in Berlin." in str(asyncio.run(talk()))


@pytest.mark.parametrize(
    "command",
    [
        ["worker", "--once"],
        ["serve"],
        ["backup", "copy.db"],
        ["keys", "list"],
        ["maintain", "--max-age", "30"],
    ],
    ids=lambda command: str(command[0]),
)
def test_what_needs_the_database_itself_says_so(run: Run, command: list[str]) -> None:
    refusal = run(*command).exception

    assert isinstance(refusal, ConfigError)
    assert f"memorist {command[0]}" in str(refusal)
    assert "needs the database itself" in str(refusal)


def test_a_server_that_is_away_is_one_clear_error(run: Run) -> None:
    refusal = run("history", "--db", "http://127.0.0.1:1").exception

    assert "http://127.0.0.1:1 does not answer" in str(refusal)
