"""The commands that look after memories, as a user runs them, on real files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memorist import Fact, InvalidError, Memory, MemoryItem, Message, NotFoundError, SqliteStore
from memorist.cli import options as show
from memorist.cli import render
from memorist.cli.main import app
from memorist.records.memories import Add
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.runtime import work
from memorist.store.runner import JobRunner
from tests.support.model_server import ModelServer, quote_messages

ME = Scope(user="me")
STEERING = "clear \x1b[2J [red]not red[/red]"
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MEMORIST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORIST_EMBEDDER", "none")
    monkeypatch.setattr(show, "CATCH_UP_SECONDS", 60.0)  # whatever else the machine does


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def run(db: Path) -> Run:
    """Run a command on the test's database."""

    def call(*arguments: str, **more: Any) -> Result:
        return CliRunner().invoke(app, [*arguments, "--create", "--db", str(db)], **more)

    return call


@pytest.fixture
def memory(db: Path) -> Iterator[Memory]:
    """The same database, seen from Python; nothing goes on in it by itself."""
    with Memory(db, embedder=None, extraction=None) as opened:
        yield opened


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model, and the settings that name it."""
    with ModelServer() as opened:
        monkeypatch.setenv("MEMORIST_MODEL", "any")
        monkeypatch.setenv("MEMORIST_MODEL_URL", opened.url)
        yield opened


def worked(done: Result) -> str:
    assert (done.exit_code, done.exception) == (0, None), done.output
    return done.stdout


def told(done: Result) -> Any:
    return json.loads(worked(done))


def keep(memory: Memory, *texts: str, days_ago: float = 0, **fields: Any) -> list[str]:
    at = now() - timedelta(days=days_ago)
    items = [MemoryItem(scope=ME, text=text, created_at=at, **fields) for text in texts]
    memory.store.apply(ME, [Add(item) for item in items])
    return [item.id for item in items]


def bury(db: Path, *texts: str, user: str = "me") -> None:
    """Store messages that nobody could think about, however often it was tried."""
    moment = [now() - timedelta(days=1)]
    store = SqliteStore(db, clock=lambda: moment[0])
    with Memory(store, embedder=None, extraction=None) as memory:
        for text in texts:
            memory.remember(text, user=user)
        while jobs := store.claim(kinds=("embed",), limit=99):
            for job in jobs:
                store.fail(job, "the answer \x1b[2J was not JSON")
            moment[0] += timedelta(minutes=1)


def test_a_message_is_stored_at_once_and_thought_about_by_whoever_asks(
    run: Run, memory: Memory
) -> None:
    worked(run("remember", "I prefer tea over coffee."))
    assert [job.kind for job in memory.jobs.list(user="me")] == ["embed"]
    assert memory.memories.list(user="me") == []

    assert "I prefer tea over coffee." in worked(run("memories"))
    assert "user prefers tea" in worked(run("facts"))


def test_a_model_is_not_asked_by_commands_that_nobody_waits_for(
    run: Run, server: ModelServer
) -> None:
    for command in (["remember", "I prefer tea."], ["recall", "tea"], ["memories"], ["facts"]):
        done = run(*command)
        worked(done)
    assert "jobs that wait to be processed: 1; `memorist worker --once`" in done.stderr
    assert server.requests == []


def test_memories_are_narrowed_and_the_ended_shown_with_their_reason(
    run: Run, memory: Memory
) -> None:
    keep(memory, "Likes tea", category="user_preferences", kind="concept")
    [bees] = keep(memory, "Keeps bees", category="knowledge")
    memory.memories.retract(bees, user="me", reason="they were wasps")

    assert "Keeps bees" not in worked(run("memories"))
    shown = worked(run("memories", "--all"))
    assert "Keeps bees" in shown
    assert "they were wasps" in " ".join(shown.split())
    for option in ("--category=user_preferences", "--kind=concept"):
        assert [item["text"] for item in told(run("memories", "--all", option, "--json"))] == [
            "Likes tea"
        ]


def test_what_cannot_be_meant_is_refused_and_nothing_is_stored(run: Run, memory: Memory) -> None:
    for command in (
        ("remember", " \n"),
        ("recall", "tea", "--limit=0"),
        ("history", "--last=-3"),
        ("memories", "--kind=silly"),
    ):
        assert run(*command).exit_code != 0
    assert memory.history(user="me") == []


def test_recall_shows_how_likely_each_hit_bears_on_the_question(run: Run, memory: Memory) -> None:
    memory.remember(Message("user", "I prefer tea."), user="me", session="s1")
    score = told(run("recall", "tea", "--kind=message", "--json"))[0]["score"]
    shown = worked(run("recall", "tea", "--kind=message"))

    assert f"{score:.0%}" in shown.splitlines()[1].split()
    assert f"1. {score:.0%}" in worked(run("recall", "tea", "--kind=message", "--explain"))
    assert "self_reference" not in shown


def test_what_is_over_is_marked_and_a_memory_names_its_message(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.console, "_width", 300)
    munich, berlin = (
        Message("user", f"I live in {city}.", created_at=datetime(2026, month, 2, tzinfo=UTC))
        for city, month in (("Munich", 3), ("Berlin", 4))
    )
    memory.remember([munich, berlin], user="me", session="s1")
    keep(memory, "Berlin suits me", sources=(berlin.message_id,))

    shown = " ".join(worked(run("facts", "--all")).split())
    assert "user lives in Munich 2026-03-02 2026-04-02" in shown
    assert "user lives in Berlin 2026" in shown
    assert "until April 2026: something newer" in worked(run("memories", "--all"))
    for options in ((), ("--explain",)):
        found = worked(run("recall", "Munich, Berlin", *options))
        assert "until April 2026" in found
        assert f"from message {berlin.message_id[-8:]} of session s1" in found


def test_json_of_a_memory_tells_whose_it_is_and_where_it_came_from(
    run: Run, memory: Memory
) -> None:
    keep(memory, "Grüße aus 東京", sources=("m1",))
    [item] = told(run("memories", "--json"))

    assert (item["text"], item["user"], item["sources"]) == ("Grüße aus 東京", "me", ["m1"])
    assert datetime.fromisoformat(item["created_at"]).tzinfo is not None
    assert "scope" not in item


def test_nothing_kept_is_no_error(run: Run) -> None:
    for command, line in (
        ("memories", "no memories yet"),
        ("facts", "no facts"),
        ("jobs", "no jo"),
    ):
        done = run(command)
        assert (worked(done), done.stderr.startswith(line)) == ("", True)


def test_facts_are_shown_as_of_a_moment_and_as_far_as_was_known(run: Run, memory: Memory) -> None:
    def new_year(year: int) -> datetime:
        return datetime(year, 1, 1, tzinfo=UTC)

    def moved(city: str, since: int, learnt: int) -> Fact:
        return Fact(
            scope=ME,
            subject="Ada",
            predicate="lives_in",
            object=city,
            valid_from=new_year(since),
            known_from=new_year(learnt),
            valid_to=new_year(2022) if city == "Munich" else None,
        )

    facts = (moved("Munich", 2015, 2016), moved("Berlin", 2022, 2023))
    memory.store.apply(ME, [Add(fact) for fact in facts])

    def cities(*options: str) -> list[str]:
        return [fact["object"] for fact in told(run("facts", "--json", *options))]

    assert cities() == ["Berlin"]
    assert cities("--all") == ["Munich", "Berlin"]
    assert cities("--valid", "2020-06-01") == ["Munich"]
    assert cities("--valid", "2022-06-01", "--known", "2022-06-01") == []
    assert cities("--known", "2016-06-01") == ["Munich"]
    assert "Ada lives_in Berlin" in worked(run("facts"))


def test_undo_takes_the_end_of_an_id_and_says_what_it_did(run: Run, memory: Memory) -> None:
    first, second = keep(memory, "Likes tea", "Keeps bees")
    memory.memories.retract(first, user="me")

    assert worked(run("undo", f"…{first[-8:]}")) == f"restored {first}\n"
    assert told(run("undo", second, "--json")) == [{"id": second, "change": "retracted"}]
    assert [item.id for item in memory.memories.list(user="me")] == [first]


def test_undo_refuses_to_guess(run: Run, memory: Memory) -> None:
    keep(memory, "Likes tea", id="one-and-the-same")
    keep(memory, "Keeps bees", id="two-and-the-same")

    assert isinstance(run("undo", "same").exception, InvalidError)
    assert isinstance(run("undo", "nobody").exception, NotFoundError)
    assert isinstance(run("undo", "").exception, NotFoundError)
    assert isinstance(run("undo", "one-and-the-same", "--user", "eve").exception, NotFoundError)


def test_what_was_given_up_is_shown_with_its_reason_and_tried_again(
    run: Run, db: Path, memory: Memory
) -> None:
    bury(db, "one", "two", "three")
    memory.remember("four", user="me")
    shown = worked(run("jobs", "--dead"))
    assert shown.count("dead") == 3
    assert len(told(run("jobs", "--json"))) == 4

    first = told(run("jobs", "--dead", "--json"))[0]["id"]
    assert worked(run("jobs", "--retry", str(first))) == "retried 1 job\n"
    assert len(memory.jobs.list(user="me", dead=True)) == 2
    assert worked(run("jobs", "--retry", "all")) == "retried 2 jobs\n"
    assert len(memory.jobs.list(user="me", dead=False)) == 4


def test_jobs_of_everyone_are_those_of_the_tenant(
    run: Run, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(db, "one", user="ada")
    bury(db, "two", user="bob")

    users = Memory.users
    by_one = lambda memory, after=None: users(memory, after=after, limit=1)  # noqa: E731
    monkeypatch.setattr(Memory, "users", by_one)
    assert told(run("jobs", "--json")) == []
    assert {job["user"] for job in told(run("jobs", "--everyone", "--json"))} == {"ada", "bob"}
    monkeypatch.setenv("MEMORIST_TENANT", "other")
    assert told(run("jobs", "--everyone", "--json")) == []


def test_rebuild_derives_all_again(run: Run, db: Path) -> None:
    with Memory(db, embedder=None) as memory:
        memory.remember("I live in Oslo.", user="ada")
        memory.remember("I live in Graz.", user="bob")
        memory.jobs.catch_up()
        before = [memory.memories.list(user=name) for name in ("ada", "bob")]
    assert worked(run("rebuild", "--everyone")) == "rebuilt\n"
    with Memory(db, embedder=None, extraction=None) as memory:
        assert [memory.memories.list(user=name) for name in ("ada", "bob")] == before
        assert sum(memory.jobs.waiting().values()) == 0


def test_a_job_that_is_not_there_is_not_retried(run: Run) -> None:
    assert isinstance(run("jobs", "--retry", "7").exception, NotFoundError)
    assert run("jobs", "--retry", "seven").exit_code == 2


def test_forgetting_needs_an_aim_and_a_yes(run: Run, memory: Memory) -> None:
    memory.remember("tea", user="me", session="monday")

    assert isinstance(run("forget", "--yes").exception, InvalidError)
    assert isinstance(run("forget", "--everything", "--session=x", "-y").exception, InvalidError)
    asked = run("forget", "--session", "monday", input="n\n")
    assert asked.exit_code == 1
    assert "Forget session monday of user me" in asked.stderr
    assert len(memory.history(user="me")) == 1


@pytest.mark.parametrize("option", ["--agent", "--session", "--message", "--memory", "--source"])
def test_what_is_forgotten_is_named_by_more_than_a_variable_that_is_not_set(
    run: Run, memory: Memory, option: str
) -> None:
    memory.remember("tea", user="me")
    keep(memory, "Likes tea")

    for empty in ("", "…") if option == "--memory" else ("",):
        assert run("forget", option, empty, "--yes").exit_code != 0
    assert len(memory.history(user="me")) == len(memory.memories.list(user="me")) == 1


def test_what_was_forgotten_is_counted(run: Run, memory: Memory) -> None:
    memory.remember("from the web", user="me", source="web")
    memory.remember("tea", user="me", session="monday")
    [kept] = memory.remember("bees", user="me", session="tuesday").message_ids

    assert worked(run("forget", "--source", "web", "--yes")).startswith("forgot 1 message")
    assert told(run("forget", "--session=monday", "--yes", "--json"))["counts"]["messages"] == 1
    assert [message.message_id for message in memory.history(user="me")] == [kept]
    worked(run("forget", "--message", kept, input="y\n"))
    assert memory.history(user="me") == []
    assert "nothing to forget" in worked(run("forget", "--source", "web", "--yes"))


def test_one_memory_is_forgotten_by_the_end_of_its_id(run: Run, memory: Memory) -> None:
    gone, kept = (memory.memories.add(text, user="me") for text in ("Likes tea.", "Has a dog."))
    asked = run("forget", "--memory", gone[-8:], input="y\n")
    assert f"Forget memory {gone} of user me" in asked.stderr
    assert "forgot 1 memory" in asked.stdout
    assert [item.id for item in memory.memories.list(user="me")] == [kept]


def test_a_dry_run_says_what_would_be_and_changes_nothing(run: Run, memory: Memory) -> None:
    keep(memory, "Likes tea", days_ago=40)
    keep(memory, "Fixed the build", importance=0.9)
    options = ("maintain", "--max-age", "30")

    planned = worked(run(*options, "--dry-run"))
    assert "1 would be promoted" in planned
    assert "1 would be expired: older than it may be kept" in planned
    assert "Likes tea" in planned
    assert [item.tier for item in memory.memories.list(user="me")] == ["short", "short"]

    assert "1 expired: older than it may be kept" in worked(run(*options))
    assert [(item.text, item.tier) for item in memory.memories.list(user="me")] == [
        ("Fixed the build", "long")
    ]
    again = run(*options)
    assert (worked(again).strip(), again.stderr) == ("", "nothing to do\n")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--max-count=1",), ["new and weighty"]),
        (("--max-age=30", "--category=knowledge"), ["new", "new and weighty", "old code"]),
        (("--min-importance=0.6",), ["new and weighty"]),
        (("--min-importance=0.4", "--half-life=20"), ["new", "new and weighty"]),
    ],
)
def test_the_options_make_a_rule(
    run: Run, memory: Memory, options: tuple[str, ...], left: list[str]
) -> None:
    keep(memory, "old", days_ago=40)
    keep(memory, "old code", days_ago=40, category="code_context")
    keep(memory, "new")
    keep(memory, "new and weighty", importance=0.65)
    worked(run("maintain", *options))

    assert sorted(item.text for item in memory.memories.list(user="me")) == left


def test_half_a_rule_is_refused(run: Run) -> None:
    assert isinstance(run("maintain", "--half-life", "9").exception, InvalidError)
    assert run("maintain", "--user", "ada", "--everyone").exit_code == 2


def test_everyone_is_tidied_without_showing_what_they_said(run: Run, memory: Memory) -> None:
    for user in ("ada", "bob"):
        memory.memories.add("Keeps bees on the roof", user=user)
    options = ("maintain", "--everyone", "--max-count", "0")

    dry = told(run(*options, "--dry-run", "--json"))
    assert {one["user"]: len(one["expired"]) for one in dry} == {"ada": 1, "bob": 1}
    shown = worked(run(*options))
    assert "2 expired: more than may be kept" in shown
    assert "bees" not in shown
    assert memory.memories.list(user="ada") == memory.memories.list(user="bob") == []


@pytest.mark.parametrize("command", ["memories", "facts", "jobs", "maintain"])
def test_what_was_said_cannot_steer_the_terminal(
    run: Run, db: Path, memory: Memory, command: str
) -> None:
    keep(memory, STEERING, category=STEERING)
    fact = Fact(scope=ME, subject="me", predicate="says", object=STEERING)
    memory.store.apply(ME, [Add(fact)])
    bury(db, "one")
    more = {"maintain": ["--max-count=0"], "jobs": ["--dead"]}.get(command, [])
    shown = worked(run(command, *more))

    assert "\x1b" not in shown
    assert "x1b[2J" in "".join(shown.split())


def test_the_worker_drains_the_queue_of_all_users_once(run: Run, memory: Memory) -> None:
    for user in ("ada", "bob"):
        memory.remember("I prefer tea over coffee.", user=user)
    done = run("worker", "--once")

    worked(done)
    assert "memories by rules" in done.stderr
    assert "the worker has ended; waiting: embed 0" in done.stderr
    assert [len(memory.memories.list(user=user)) for user in ("ada", "bob")] == [1, 1]


def test_the_worker_gives_vectors_too(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORIST_EMBEDDER", "static")
    memory.remember("I prefer tea over coffee.", user="me")
    worked(run("worker", "--once"))

    assert memory.jobs.list(user="me") == []  # the memory that was made has its vector, too
    assert len(memory.memories.list(user="me")) == 1


def test_the_worker_asks_the_model_that_the_settings_name(
    run: Run, memory: Memory, server: ModelServer
) -> None:
    memory.remember("I prefer tea over coffee.", user="me")
    done = run("worker", "--once", "--calls-per-hour", "7")

    worked(done)
    assert "memories by any" in done.stderr
    assert "this hour: 1 of 7 calls" in done.stderr
    assert len(server.requests) == 1
    assert [item.text for item in memory.memories.list(user="me")] == ["I prefer tea over coffee."]


def test_the_worker_keeps_to_its_budget_and_leaves_the_rest(
    run: Run, memory: Memory, server: ModelServer
) -> None:
    memory.remember("I prefer tea over coffee.", user="me")
    done = run("worker", "--once", "--calls-per-hour", "0")

    worked(done)
    assert "budget" in done.stderr
    assert "waiting: embed 1" in done.stderr
    assert server.requests == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_worker_after_the_job_at_hand(
    db: Path, memory: Memory, number: signal.Signals
) -> None:
    asked, go = threading.Event(), threading.Event()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        go.wait(30)
        return quote_messages(body)

    users = ("ada", "bob", "cyd")
    for user in users:
        memory.remember("I prefer tea over coffee.", user=user)
    with ModelServer(answer) as server:
        settings = {"MEMORIST_MODEL": "any", "MEMORIST_MODEL_URL": server.url}
        worker = subprocess.Popen(
            [Path(sys.executable).parent / "memorist", "worker", "--create", "--db", str(db)],
            env=os.environ | settings,
            stderr=subprocess.PIPE,
        )
        assert asked.wait(30)
        worker.send_signal(number)
        assert worker.stderr is not None
        lines = (line for line in worker.stderr if b"after the current job" in line)
        assert next(lines)
        go.set()
        assert worker.wait(30) == 0
        worker.stderr.close()

    assert len(server.requests) == 1
    assert sorted(len(memory.memories.list(user=user)) for user in users) == [0, 0, 1]
    left = [job for user in users for job in memory.jobs.list(user=user) if job.kind == "embed"]
    assert [(job.lease, job.attempts, job.dead) for job in left] == [(None, 0, False)] * 2


class Broken(JobRunner):
    """A runner with a bug."""

    def step(self) -> bool:
        raise ZeroDivisionError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_worker_ends_when_a_runner_has_a_bug(memory: Memory) -> None:
    broken = Broken(memory.store, ("embed",))

    assert not work([broken], lambda: None, signals=[], once=True)
    assert broken.stopped


def test_doctor_tells_of_the_backlog_by_kind_and_of_what_was_given_up(
    run: Run, db: Path, memory: Memory
) -> None:
    bury(db, "one", user="bob")
    memory.remember("two", user="ada")
    report = " ".join(worked(run("doctor")).split())

    assert "1 waiting, 1 dead (embed 1, vectors 0, derive 0, summarize 0, rebuild 0)" in report
    assert "warning queue" in report
    assert "none: memories are made by rules" in report


def test_doctor_tells_which_model_is_set_and_what_it_cost(
    run: Run, memory: Memory, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.store.spend(calls=3, tokens=1_200)
    report = " ".join(worked(run("doctor")).split())
    assert "any: 3 of 300 calls and 1,200 of 500,000 tokens spent this hour" in report
    assert server.requests == []

    monkeypatch.delenv("MEMORIST_MODEL_URL")
    done = run("doctor")
    assert done.exit_code == 1
    assert "ConfigError" in done.stdout


def test_long_passages_are_cut_in_the_table_and_whole_elsewhere(run: Run) -> None:
    text = f"The bees {'buzz ' * 100}and sleep.\n"
    worked(run("remember", text))

    shown = " ".join(worked(run("recall", "bees")).split())
    assert "buzz … words #1" in shown
    assert "and sleep." in worked(run("recall", "bees", "--explain"))
    assert json.loads(worked(run("recall", "bees", "--json")))[0]["text"] == text
