"""The command line, as a user runs it: a process of its own each time, on a real file."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import CliRunner

import memorist
from memorist import metrics
from memorist.cli.main import app
from tests.support.forked import run as run_command

MEMORIST = Path(sys.executable).parent / "memorist"
Done = subprocess.CompletedProcess[bytes]
Run = Callable[..., Done]


def clean_environment(home: Path) -> dict[str, str]:
    """What every shell has, and nothing of whoever runs the tests."""
    return {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}


def start(folder: Path, *arguments: str | bytes, said: bytes = b"", **env: str) -> Done:
    """Run `memorist` in a folder that is also its user's home, without an embedder."""
    texts = [os.fsdecode(argument) for argument in arguments]
    plain = clean_environment(folder) | {"MEMORIST_EMBEDDER": "none"}
    return run_command(folder, texts, said, plain | env)


def start_afresh(folder: Path, *arguments: str, said: bytes = b"", **env: str) -> Done:
    """The same by the installed script, with the default embedder, as Python itself starts."""
    return subprocess.run(
        [MEMORIST, *arguments],
        input=said,
        env=clean_environment(folder) | env,
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run `memorist` with m.db in the test's folder for its database."""

    def call(*arguments: str | bytes, afresh: bool = False, **more: Any) -> Done:
        begin: Run = start_afresh if afresh else start
        return begin(tmp_path, *arguments, "--create", "--db", "m.db", **more)

    return call


@pytest.fixture
def memory(tmp_path: Path) -> memorist.Memory:
    """The same database, seen from Python."""
    return memorist.Memory(tmp_path / "m.db")


def worked(done: Done) -> str:
    """What it shows; a slow machine may remark that some jobs are not done yet."""
    said = [line for line in done.stderr.splitlines() if not line.startswith(b"jobs that wait")]
    assert (done.returncode, said) == (0, [])
    return done.stdout.decode()


def failed(done: Done, code: int = 1) -> str:
    """The one line that an error is, with nothing on the standard output."""
    assert (done.returncode, done.stdout) == (code, b"")
    line = done.stderr.decode()
    assert "Traceback" not in line
    assert line.count("\n") == 1
    return line.strip()


def squeezed(text: str) -> str:
    """Without the spaces and line breaks that a table puts in."""
    return "".join(text.split())


def test_the_version_is_shown(tmp_path: Path) -> None:
    assert worked(start_afresh(tmp_path, "--version")) == f"memorist {memorist.__version__}\n"


@pytest.mark.parametrize("command", [(), ("history",), ("keys", "create")])
def test_the_help_shows_no_value_for_what_takes_none(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"]).output

    assert "--help" in shown
    assert "bool" not in shown


def test_a_first_message_is_remembered_and_recalled_with_nothing_set_up(tmp_path: Path) -> None:
    said = worked(start_afresh(tmp_path, "remember", "I moved to Berlin in March."))
    found = worked(start_afresh(tmp_path, "recall", "who moved to Berlin?"))
    told = worked(start(tmp_path, "history"))

    assert said.startswith("remembered ")
    assert "I moved to Berlin in March." in found
    assert "words #1" in found
    assert "user  I moved to Berlin in March." in told
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["memorist.db"]


def test_doctor_finds_a_new_memory_well_and_leaves_nothing_in_it(
    run: Run, memory: memorist.Memory
) -> None:
    report = worked(run("doctor", afresh=True))

    assert all(f" {step} " in report for step in ("remember", "recall", "history", "forget"))
    assert "fails" not in report
    assert "0 waiting, 0 dead" in report
    assert memory.store.claim() == []


def test_doctor_does_not_time_the_first_recall_of_a_process(tmp_path: Path) -> None:
    def recalls() -> int:
        points = metrics.snapshot()["memorist.recall.hits"].points
        return sum(point.count for point in points)

    before = recalls()
    done = CliRunner().invoke(app, ["doctor", "--create", "--db", str(tmp_path / "m.db")])

    assert done.exit_code == 0
    assert recalls() == before + 2


def test_what_remember_prints_names_the_message_and_the_session(
    run: Run, memory: memorist.Memory
) -> None:
    line = worked(run("remember", "hello", "--session", "[bold]monday[/bold]"))
    (message,) = memory.history(user="me", session="[bold]monday[/bold]")

    assert line == f"remembered {message.message_id} in session [bold]monday[/bold]\n"


def test_what_remember_prints_is_one_line(run: Run, memory: memorist.Memory) -> None:
    line = worked(run("remember", "hello", "--role", "assistant", "--user", "ada"))
    (message,) = memory.history(user="ada", role="assistant")
    session = memory.session(user="ada").id

    assert line == f"remembered {message.message_id} in session {session}\n"


def test_json_of_a_recall_tells_everything_about_each_hit(
    run: Run, memory: memorist.Memory
) -> None:
    memory.remember(memorist.Message("assistant", "Grüße aus 東京 🗼"), user="ada")
    memory.remember("Grüße aus Berlin", user="bob")
    (hit,) = json.loads(worked(run("recall", "grusse", "--user", "ada", "--json")))

    names = {"kind", "id", "text", "score", "created_at", "session_id", "role", "speaker", "why"}
    assert hit.keys() == names | {"over", "partly_over", "sources"}
    assert hit["why"].keys() == {"ranks", "scores", "parts", "age", "start", "stop"}
    assert 0 < hit["score"] < 1
    assert (hit["kind"], hit["role"], hit["text"]) == ("message", "assistant", "Grüße aus 東京 🗼")


def test_json_goes_out_whatever_the_terminals_encoding(run: Run, memory: memorist.Memory) -> None:
    memory.remember("Grüße aus 東京 🗼", user="me")

    history = worked(run("history", "--json", PYTHONIOENCODING="ascii", afresh=True))
    assert json.loads(history)[0]["content"] == "Grüße aus 東京 🗼"


def test_options_narrow_to_agent_session_and_number(run: Run, memory: memorist.Memory) -> None:
    for text, agent in (("one", "tutor"), ("two", "tutor"), ("three", "coach")):
        memory.remember(text, user="me", agent=agent)

    def told(*options: str) -> list[str]:
        messages = json.loads(worked(run("history", "--json", *options)))
        return [message["content"] for message in messages]

    assert told() == ["one", "two", "three"]
    assert told("--agent", "tutor", "--last", "1") == ["two"]
    [tutoring] = memory.sessions(user="me", agent="tutor")
    assert told("--session", tutoring.id) == ["one", "two"]


def test_the_history_for_programs_says_where_and_when_each_was_said_and_how_tools_did(
    run: Run, memory: memorist.Memory
) -> None:
    call = memorist.ToolCallMsg("c1", "c1", "function", "file_read", "{}")
    asked = memorist.Message("assistant", "", tool_calls=[call])
    outcome = {"success": False, "duration_ms": 150, "error": "no such file"}
    answer = memorist.Message("tool", "-", tool_call_id="c1", structured_data=outcome)
    memory.remember([asked, answer], user="me", agent="tutor", session="s1")
    memory.remember("bye", user="me", session="s2")

    first, second, third = json.loads(worked(run("history", "--json")))
    assert (first["id"], first["session"], first["agent"]) == (asked.message_id, "s1", "tutor")
    assert (third["content"], third["session"], third["agent"]) == ("bye", "s2", "")
    assert first["created_at"] == asked.created_at.isoformat()
    assert first["tool_calls"][0]["name"] == "file_read"
    assert (second["tool_call_id"], second["structured_data"]) == ("c1", outcome)
    assert (second["role"], second["source"], second["seq"]) == ("tool", "tool", first["seq"] + 1)


def test_a_mistyped_path_is_an_error_and_a_new_database_is_asked_for(tmp_path: Path) -> None:
    for database in ("memroy.db", "sqlite:///memroy.db"):
        told = failed(start(tmp_path, "history", "--db", database))
        assert told == (
            "ConfigError: there is no database at memroy.db; mend the path, or add --create"
        )
    assert not (tmp_path / "memroy.db").exists()
    start(tmp_path, "remember", "hello", "--create", "--db", "memory.db")
    assert "hello" in worked(start(tmp_path, "history", "--db", "memory.db"))
    worked(start(tmp_path, "remember", "hello"))  # the default needs no word
    [default] = tmp_path.rglob("memorist.db")
    assert "hello" in worked(start(tmp_path, "history", "--db", str(default)))


def test_the_environment_names_database_user_tenant_and_agent(tmp_path: Path) -> None:
    names = {"URL": "other.db", "USER": "ada", "TENANT": "acme", "AGENT": "tutor"}
    settings: dict[str, Any] = {f"MEMORIST_{name}": value for name, value in names.items()}
    worked(start(tmp_path, "remember", "hello", **settings))

    with memorist.Memory(tmp_path / "other.db", tenant="acme") as memory:
        assert memory.history(user="ada", agent="tutor")[0].content == "hello"


MARKUP = "[bold]not bold[/bold] [link=http://x]y[/link] [/] [red :smile: \\[x]"
LONG_WORD = "https://example.org/" + "x" * 300
STEERING = "title \x1b]0;pwned\x07 clear \x1b[2J eight-bit \x9b31m back\x08\x08 \u202eend"


@pytest.fixture(scope="module", params=["history", "recall"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a terminal is given to show of three texts that try to look different."""
    folder = tmp_path_factory.mktemp("shown")
    with memorist.Memory(folder / "m.db") as memory:
        memory.remember([f"tea {text}" for text in (MARKUP, LONG_WORD, STEERING)], user="me")
    asked = ["recall", "tea"] if request.param == "recall" else ["history"]
    return worked(start(folder, *asked, "--create", "--db", "m.db"))


def test_markup_in_what_was_said_is_shown_as_it_was_typed(shown: str) -> None:
    for word in MARKUP.split():
        assert word in squeezed(shown)


def test_a_long_word_is_shown_whole(shown: str) -> None:
    assert shown.count("x") >= 300
    assert "…" not in shown


def test_what_was_said_cannot_steer_the_terminal(shown: str) -> None:
    assert not {"\x1b", "\x07", "\x08", "\x9b", "\u202e"} & set(shown)
    assert "end" in shown


def test_a_dash_reads_standard_input_to_the_last_character(
    run: Run, memory: memorist.Memory
) -> None:
    text = "first line\n\n  Ünïcödé 🧠 [bold]\tlast line\n"
    worked(run("remember", "-", said=text.encode()))

    assert [message.content for message in memory.history(user="me")] == [text]


def test_input_that_is_not_text_is_refused_in_one_line(run: Run, memory: memorist.Memory) -> None:
    strict, lenient = "utf-8:strict", "utf-8:surrogateescape"
    refusals = [
        run("remember", b"caf\xe9"),
        run("remember", "-", said=b"caf\xe9", PYTHONIOENCODING=lenient, afresh=True),
        run("remember", "-", said=b"caf\xe9", PYTHONIOENCODING=strict, afresh=True),
    ]

    for refusal in refusals:
        assert failed(refusal).startswith("MessageError: content")
    assert memory.history(user="me") == []


def test_a_wrong_role_is_one_line_and_status_one(run: Run) -> None:
    line = failed(run("remember", "my secret", "--role", "nobody"))

    assert line == "MessageError: role must be one of user, assistant, system, tool"


def test_a_wrong_setting_is_one_line_and_status_one(run: Run) -> None:
    line = failed(run("history", MEMORIST_DURABILITY="perhaps"))

    assert line == "ConfigError: MEMORIST_DURABILITY is one of full, normal"


def test_a_database_that_cannot_be_opened_is_one_line_and_status_one(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "m.db").write_text("This is a letter, not a database. " * 100)

    assert failed(run("history")).startswith("StoreDamagedError: ")
    assert failed(start(tmp_path, "history", "--db", ".")).startswith("StoreUnavailableError: ")


def test_the_cure_for_a_missing_driver_is_shown_whole(tmp_path: Path) -> None:
    code = "import sys; sys.modules['psycopg'] = None; from memorist.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "history", "--db", "postgresql://localhost/x"],
        env=clean_environment(tmp_path),
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert 'pip install "memorist[postgres]"' in failed(done)


def as_a_module(folder: Path, *command: str) -> Done:
    """Run `python -m memorist`, begun in another way."""
    here = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MEMORIST_EMBEDDER": "none"}
    environment = clean_environment(folder) | here
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, check=False, timeout=300
    )


def test_files_are_read_as_utf_8_whatever_the_system_writes(tmp_path: Path) -> None:
    strict = ("-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-m", "memorist")
    done = as_a_module(
        tmp_path, sys.executable, *strict, "remember", "tea", "--create", "--db", "m"
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_standard_input_is_an_empty_one(tmp_path: Path) -> None:
    command = f"{sys.executable} -m memorist chat --create --db m.db <&-"
    done = as_a_module(tmp_path, "/bin/sh", "-c", command)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_finding_nothing_is_no_error(run: Run) -> None:
    for command, told in (
        (["recall", "tea"], b"nothing is remembered here\n"),
        (["history"], b"no messages yet\n"),
    ):
        done = run(*command)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", told)


@pytest.mark.parametrize("command", [["history"], ["recall", "tea"], ["context", "tea"]])
def test_a_session_that_does_not_exist_is_an_error(run: Run, command: list[str]) -> None:
    done = run(*command, "--session", "none")

    assert (done.returncode, done.stdout) == (3, b"")
    assert b"no such session" in done.stderr


@pytest.mark.parametrize("option", ["--user", "--session"])
def test_an_empty_id_is_an_error(run: Run, option: str) -> None:
    done = run("remember", "I moved to Ghent.", option, "")

    assert (done.returncode, done.stdout) == (1, b"")
    name = option.removeprefix("--").encode()
    assert done.stderr == b"ScopeError: %b is empty: it must name a %b\n" % (name, name)


def test_a_moment_that_is_none_says_how_to_write_one(run: Run) -> None:
    for command in (["recall", "tea", "--after", "yesterday"], ["facts", "--valid", "2026-13-01"]):
        done = run(*command)
        assert done.returncode == 2
        assert b"write a day as 2026-05-01" in done.stderr


def test_a_command_without_its_argument_says_how_it_is_used(run: Run) -> None:
    done = run("remember")

    assert done.returncode == 2
    assert b"Usage: memorist remember" in done.stderr
    assert b"Traceback" not in done.stderr


def examined(run: Run) -> str:
    """The report of a doctor who found something wrong."""
    done = run("doctor")
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"fails" in done.stdout
    return done.stdout.decode()


def test_doctor_says_when_a_file_is_no_database(run: Run, tmp_path: Path) -> None:
    letter = "This is a letter, not a database. " * 100
    (tmp_path / "m.db").write_text(letter)

    assert "damaged or is not a SQLite database; name another" in " ".join(examined(run).split())
    assert (tmp_path / "m.db").read_text() == letter


@pytest.mark.parametrize(
    "part", ["chat_message_history", "messages_by_id", "all but the first page"]
)
def test_doctor_says_when_pages_are_damaged_and_does_not_write_to_them(
    run: Run, tmp_path: Path, memory: memorist.Memory, part: str
) -> None:
    memory.remember([f"message {number} " * 30 for number in range(200)], user="me")
    memory.close()
    path = tmp_path / "m.db"
    with contextlib.closing(apsw.Connection(str(path))) as database:
        size = database.pragma("page_size")
        root = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (part,)).get
    data = path.read_bytes()
    first, last = ((root - 1) * size, root * size) if root else (size, len(data))
    harmed = data[:first] + random.Random(7).randbytes(last - first) + data[last:]
    path.write_bytes(harmed)

    assert "damaged" in examined(run)
    assert path.read_bytes() == harmed
