"""Memory: the first lines a user writes, and the promises behind them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import (
    AsyncMemory,
    ConfigError,
    InvalidError,
    MemoristError,
    Memory,
    Message,
    MessageError,
    NotFoundError,
    RecordError,
    ScopeError,
    StoreUnavailableError,
    connect,
)
from memorist.agents.toolbox import Toolbox
from memorist.derived import DerivedPart

DSN = "host=localhost dbname=memory password=secret"
SLIPS = ("postgresql:/ada:secret@host/db", "postgres:host", "https:/host", "file:m.db?mode=ro")


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's settings, and nobody's data folder but the test's."""
    for name in [name for name in os.environ if name.startswith("MEMORIST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)


@pytest.fixture(params=["memory", "file"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(":memory:" if request.param == "memory" else tmp_path / "m.db") as opened:
        yield opened


def contents(messages: list[Message]) -> list[Any]:
    return [message.content for message in messages]


def test_the_first_ten_lines_work_with_nothing_configured(tmp_path: Path) -> None:
    with Memory() as memory:
        chat = memory.session(user="ada", agent="tutor")
        chat.add("user", "I moved to Berlin in March. No more Munich commutes!")
        chat.add("assistant", "How is Berlin treating you?")

        found = memory.recall("who moved to Berlin?", user="ada", deadline_ms=None)

    assert found.hits[0].text == "I moved to Berlin in March. No more Munich commutes!"
    assert (str(found.hits[0].why)[:8], found.failed) == ("words #1", {})
    files = [path.name for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files == ["memorist.db"]


def test_the_same_lines_work_anywhere(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor")
    first = chat.add("user", "I moved to Berlin in March.", name="ada")
    chat.add("assistant", "How is Berlin treating you?")

    assert contents(chat.history())[0] == "I moved to Berlin in March."
    assert contents(chat.history(last=1)) == ["How is Berlin treating you?"]
    hit = chat.recall("March", limit=1, deadline_ms=None).hits[0]
    assert (hit.kind, hit.id, hit.role) == ("message", first, "user")
    assert hit.session_id == chat.id == chat.session.id


def test_a_message_without_a_moment_has_that_of_the_memorys_clock() -> None:
    moment, other = (datetime(2025, month, 1, tzinfo=UTC) for month in (5, 6))
    with Memory(":memory:", embedder=None, extraction=None, clock=lambda: moment) as memory:
        chat = memory.session(user="ada")
        given: list[Any] = ["one", {"role": "user", "content": "two"}, Message("user", "three")]
        memory.remember([*given, Message("user", "old", created_at=other)], user="ada")
        chat.add("user", "four")
        Toolbox(memory, user="ada").remember("five")
        with chat.stream() as reply:
            reply.write("six")
        at = {message.text: message.created_at for message in memory.history(user="ada")}
    assert at == {
        **dict.fromkeys(("one", "two", "three", "four", "five", "six"), moment),
        "old": other,
    }


def test_a_hit_tells_its_age_by_the_memorys_clock() -> None:
    times = [datetime(2026, 3, 1, tzinfo=UTC)]
    memory = Memory(":memory:", clock=lambda: times[-1])
    memory.remember(Message("user", "Berlin", created_at=times[0]), user="ada")
    times.append(times[0] + timedelta(days=3, hours=1))

    why = memory.recall("berlin", user="ada", deadline_ms=None).hits[0].why
    assert (why.age.days, str(why)[-10:]) == (3, "3 days ago")


def test_a_session_is_found_again_by_user_and_agent(memory: Memory) -> None:
    tutor = memory.session(user="ada", agent="tutor")

    assert memory.session(user="ada", agent="tutor").id == tutor.id
    assert memory.session(user="ada", agent="tutor", id=tutor.id).id == tutor.id
    for user, agent in (("ada", "coach"), ("bob", "tutor"), ("ada", "")):
        assert memory.session(user=user, agent=agent).id != tutor.id


def test_a_new_session_becomes_the_active_one_and_the_old_one_stays(memory: Memory) -> None:
    old = memory.session(user="ada")
    old.add("user", "before")
    new = memory.session(user="ada", new=True)

    assert new.id != old.id
    assert new.history() == []
    assert memory.session(user="ada").id == new.id
    assert [session.id for session in memory.sessions(user="ada")] == [old.id, new.id]
    assert contents(memory.history(user="ada", session=old.id)) == ["before"]


def test_a_session_can_be_given_a_name(memory: Memory) -> None:
    assert memory.session(user="ada", id="monday/09:00 %").id == "monday/09:00 %"
    assert memory.session(user="ada").id == "monday/09:00 %"
    with pytest.raises(InvalidError, match="not both"):
        memory.session(user="ada", id="x", new=True)


def test_sessions_are_listed_by_agent_and_keep_to_theirs(memory: Memory) -> None:
    ids = [memory.session(user="ada", agent=agent).id for agent in ("", "tutor", "coach")]

    assert [session.id for session in memory.sessions(user="ada")] == ids
    assert [session.id for session in memory.sessions(user="ada", agent="tutor")] == [ids[1]]
    assert [session.id for session in memory.sessions(user="ada", agent="")] == [ids[0]]
    assert memory.sessions(user="bob") == []
    tutor = memory.session(user="ada", agent="tutor")
    with pytest.raises(ScopeError, match="another agent"):
        memory.remember("hello", user="ada", agent="coach", session=tutor.id)
    assert tutor.history() == []


def test_text_messages_dicts_and_lists_of_them_are_remembered_in_order(memory: Memory) -> None:
    made = Message("assistant", "a message")
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    asked: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    memory.remember("text", user="ada")
    memory.remember(made, user="ada")
    memory.remember({"role": "user", "content": "a dict"}, user="ada")
    done = memory.remember(["again", asked, Message("tool", "9", tool_call_id="c1")], user="ada")

    history = memory.history(user="ada")
    assert contents(history) == ["text", "a message", "a dict", "again", None, "9"]
    assert [message.role for message in history[::2]] == ["user", "user", "assistant"]
    assert history[1] == made
    assert history[4].tool_calls[0].name == "now"
    assert done.message_ids == tuple(message.message_id for message in history[3:])
    assert (done.added, done.session_id) == (3, memory.session(user="ada").id)


def test_the_dict_of_a_message_keeps_every_field(memory: Memory) -> None:
    fields: dict[str, Any] = {"role": "assistant", "content": "look", "message_id": "m1"}
    fields |= {"name": "scout", "structured_data": {"mood": "good"}, "images": ["a.png"]}
    fields |= {"agent_calls": [{"agent_name": "guide", "request": "go"}]}
    memory.remember(fields, user="ada")

    (stored,) = memory.history(user="ada")
    assert stored == Message(**{**fields, "created_at": stored.created_at})


def test_a_message_remembered_twice_is_stored_once(memory: Memory) -> None:
    message = Message("user", "once")

    assert memory.remember(message, user="ada").added == 1
    assert memory.remember([message, message], user="ada").added == 0
    assert memory.history(user="ada") == [message]


@pytest.mark.parametrize("said", [None, 5, [None], [["nested"]], {"content": "no role"}, b"bytes"])
def test_what_is_nothing_said_is_refused_as_invalid(memory: Memory, said: Any) -> None:
    with pytest.raises(InvalidError):
        memory.remember(said, user="ada")
    assert memory.history(user="ada") == []
    with pytest.raises(MessageError, match="role"):
        memory.remember(["good", {"role": "nobody", "content": "bad"}], user="ada")
    assert memory.history(user="ada") == []


def test_history_is_narrowed_by_role_agent_session_and_number(memory: Memory) -> None:
    tutor = memory.session(user="ada", agent="tutor")
    for role, text in (("user", "one"), ("assistant", "two")):
        tutor.add(role, text)
    memory.remember("three", user="ada", agent="coach")

    assert contents(memory.history(user="ada")) == ["one", "two", "three"]
    assert contents(memory.history(user="ada", last=2)) == ["two", "three"]
    assert contents(memory.history(user="ada", role="user")) == ["one", "three"]
    assert contents(memory.history(user="ada", agent="coach")) == ["three"]
    assert contents(memory.history(user="ada", session=tutor.id, role="assistant")) == ["two"]


@pytest.mark.parametrize("other", ["%", "*", "ada ", "Ada", "ada\n", "a_a"])
def test_nobody_reads_another_users_words(memory: Memory, other: str) -> None:
    secret = memory.session(user="ada", id="shared-id")
    message_id = secret.add("user", "my password is swordfish")

    assert memory.recall("password swordfish", user=other).hits == ()
    assert memory.recall("swordfish", user=other, session="shared-id").hits == ()
    assert memory.history(user=other) == []
    assert memory.session(user=other, id="shared-id").history() == []
    with pytest.raises(NotFoundError):
        memory.forget(user=other, message=message_id)
    assert memory.forget(user=other, everything=True).counts.get("messages") is None
    assert memory.recall("swordfish", user="ada", deadline_ms=None).hits[0].id == message_id


def test_an_empty_user_or_session_is_refused(memory: Memory) -> None:
    unset: list[dict[str, Any]] = [{"user": ""}, {"user": "ada", "session": ""}]
    for names in unset:
        with pytest.raises(ScopeError, match="is empty"):
            memory.remember("I moved to Ghent.", **names)
        with pytest.raises(ScopeError, match="is empty"):
            memory.recall("where?", **names)
    for read in (memory.facts.list, memory.memories.list, memory.notes):
        with pytest.raises(ScopeError, match="is empty"):
            read(user="")


def test_tenants_share_a_file_and_nothing_else(tmp_path: Path) -> None:
    tenants = ["acme", "umbrella", "default", ""]
    for tenant in tenants:
        with Memory(tmp_path / "m.db", tenant=tenant) as memory:
            memory.remember(f"we are [{tenant}]", user="ada")
    for tenant in tenants:
        with Memory(tmp_path / "m.db", tenant=tenant) as memory:
            assert contents(memory.history(user="ada")) == [f"we are [{tenant}]"]


@pytest.mark.parametrize("question", ["", "the", '"', "NEAR(", "a\x00b", "\ud83d", "'; --", "(*"])
def test_no_question_breaks_recall(memory: Memory, question: str) -> None:
    memory.remember("hello", user="ada")

    assert "words" not in memory.recall(question, user="ada", deadline_ms=None).hits[0].why.ranks
    found = memory.recall(question + " hello", user="ada", deadline_ms=None)
    assert found.hits[0].why.ranks["words"] == 1
    assert found.failed == {}


def test_users_are_not_listed_by_a_negative_number(memory: Memory) -> None:
    memory.remember("hello", user="ada")

    assert [scope.user for scope in memory.users(limit=1)] == ["ada"]
    with pytest.raises(InvalidError, match="limit must be a whole number, and not negative"):
        memory.users(limit=-1)


@pytest.mark.parametrize("pair", [("user", "hello"), [("human", "hello"), ("ai", "hi")]])
def test_a_pair_of_role_and_text_is_not_taken_for_two_messages(memory: Memory, pair: Any) -> None:
    with pytest.raises(InvalidError, match="give a pair as a dict"):
        memory.remember(pair, user="ada")

    assert memory.remember(("hello", "user"), user="ada").added == 2


def test_an_empty_recall_says_that_the_search_failed() -> None:
    memory = Memory(":memory:", embedder=None)
    memory.close()

    found = memory.recall("hello", user="ada", deadline_ms=None)
    assert found.reason == "the search failed: the store is closed"


def test_a_recall_after_warming_up_loads_nothing() -> None:
    code = """if True:
        import sys
        from memorist import Memory
        memory = Memory(":memory:", embedder=None, extraction=None)
        memory.remember(["I lived in Ghent.", "I live in Aalst."], user="ada")
        memory.warm_up()
        before = set(sys.modules)
        assert memory.recall("where do I live?", user="ada", deadline_ms=None).hits
        print(sorted(sys.modules.keys() - before))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", None])
def test_recall_refuses_a_limit_that_no_answer_can_have(memory: Memory, limit: Any) -> None:
    memory.remember("hello", user="ada")

    with pytest.raises(InvalidError, match=r"limit .* at least 1, got"):
        memory.recall("hello", user="ada", limit=limit)


def test_a_memory_says_where_it_stores_and_for_whom(tmp_path: Path) -> None:
    file = str(tmp_path / "m.db")
    with Memory(file, tenant="acme") as memory:
        chat = memory.session(user="ada", agent="tutor", id="s-1")

        assert repr(memory) == f"Memory({file!r}, tenant='acme')"
        assert repr(memory.tenant("other")) == f"Memory({file!r}, tenant='other')"
        assert repr(chat) == "Chat(user='ada', agent='tutor', session='s-1')"
    assert repr(AsyncMemory(":memory:")) == "AsyncMemory(':memory:', tenant='default')"
    assert repr(connect("http://127.0.0.1:1", key="mk_x")) == "Client('http://127.0.0.1:1')"


def test_what_ended_this_month_says_the_day_and_earlier_the_month() -> None:
    today = datetime(2026, 11, 18, tzinfo=UTC)
    with Memory(":memory:", embedder=None, clock=lambda: today) as memory:
        for day, text in (("09-14", "I live in Ghent."), ("11-14", "I moved to Aalst.")):
            said = {"role": "user", "content": text, "created_at": f"2026-{day}T08:00:00Z"}
            memory.remember(said, user="ada")
        memory.jobs.catch_up()

        def mark() -> set[str]:
            hits = memory.recall("Ghent", user="ada", deadline_ms=None).hits
            return {hit.over for hit in hits if "Ghent" in hit.text}

        assert mark() == {"until 14 November 2026"}
        today = datetime(2026, 12, 1, tzinfo=UTC)
        assert mark() == {"until November 2026"}


def test_forgetting_all_from_a_source_that_is_none_is_an_error(memory: Memory) -> None:
    with pytest.raises(InvalidError, match="source must be one of"):
        memory.forget(user="ada", source="wbe")  # type: ignore[arg-type]


def test_forgetting_everything_has_to_be_said(memory: Memory) -> None:
    chat = memory.session(user="ada")
    chat.add("user", "keep me")
    unsaid: list[dict[str, Any]] = [{}, {"agent": None}, {"session": None}, {"message": None}]
    unsaid += [{name: ""} for name in ("agent", "session", "message", "memory", "source")]
    unsaid.append({"session": chat.id, "message": None})
    unclear = [{"session": chat.id}, {"agent": ""}, {"message": "m"}]
    for named in unsaid + [{**one, "everything": True} for one in unclear]:
        with pytest.raises(InvalidError, match=r"say everything|is empty"):
            memory.forget(user="ada", **named)

    assert contents(memory.history(user="ada")) == ["keep me"]


def test_a_message_a_session_an_agent_and_a_user_are_forgotten(memory: Memory) -> None:
    tutor, coach = (memory.session(user="ada", agent=agent) for agent in ("tutor", "coach"))
    first = tutor.add("user", "tea one")
    tutor.add("user", "tea two")
    coach.add("user", "tea three")
    memory.session(user="ada", agent="coach", new=True).add("user", "tea four")

    def left() -> list[str]:
        return sorted(hit.text for hit in memory.recall("tea", user="ada", deadline_ms=None).hits)

    assert memory.forget(user="ada", message=first).counts["messages"] == 1
    assert left() == ["tea four", "tea three", "tea two"]
    assert memory.forget(user="ada", session=coach.id).counts["messages"] == 1
    assert left() == ["tea four", "tea two"]
    assert memory.forget(user="ada", agent="tutor").counts["messages"] == 1
    assert left() == ["tea four"]
    assert memory.forget(user="ada", everything=True).counts["messages"] == 1
    assert memory.sessions(user="ada") == []
    with pytest.raises(NotFoundError):
        memory.forget(user="ada", message=first)


def test_what_was_remembered_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "not there yet" / "m.db"
    with Memory(path) as memory:
        chat = memory.session(user="ada", agent="tutor")
        chat.add("user", "I moved to Berlin", structured_data={"mood": "good"})
        before = chat.history()
    with Memory(f"sqlite:///{path}") as memory:
        assert memory.session(user="ada", agent="tutor").history() == before
        assert (
            memory.recall("berlin", user="ada", deadline_ms=None).hits[0].text
            == "I moved to Berlin"
        )


def test_a_closed_memory_says_so_and_can_be_closed_again(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.close()
    memory.close()

    for late in (memory.history, memory.sessions, memory.session):
        with pytest.raises(StoreUnavailableError, match="closed"):
            late(user="ada")


def test_the_environment_names_the_store_and_the_tenant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORIST_URL", str(tmp_path / "chosen.db"))
    monkeypatch.setenv("MEMORIST_TENANT", "acme")
    with Memory() as memory:
        memory.remember("hello", user="ada")
        assert memory.tenant_name == "acme"
    for tenant, found in (("acme", ["hello"]), ("other", [])):
        with Memory(tmp_path / "chosen.db", tenant=tenant) as memory:
            assert contents(memory.history(user="ada")) == found


def test_durability_is_a_setting_and_a_wrong_one_is_a_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORIST_DURABILITY", "normal")
    with Memory() as memory:
        assert memory.store.check()["synchronous"] == "normal"
    monkeypatch.setenv("MEMORIST_DURABILITY", "perhaps")
    with pytest.raises(ConfigError, match="MEMORIST_DURABILITY is one of full, normal"):
        Memory()


@pytest.mark.parametrize(
    "url", ["mysql://host/db", "htp://host", "sqlite://m.db", "redis://x", DSN, *SLIPS]
)
def test_a_url_of_an_unknown_kind_is_a_config_error_and_no_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        Memory(url)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_a_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        Memory(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoristError):
        Memory(tmp_path / "file" / "below.db")


def run(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, env=env | environment, text=True, timeout=60)


def test_a_missing_driver_names_its_cure() -> None:
    code = """
import sys
sys.modules["psycopg"] = None
import memorist
try:
    memorist.Memory("postgresql://localhost/db")
except memorist.MissingExtraError as error:
    print(error.extra, isinstance(error, ImportError), error)
"""
    cure = 'this needs an optional part: pip install "memorist[postgres]"'
    assert run(code).strip() == f"postgres True {cure}"


def test_importing_memorist_is_cheap(tmp_path: Path) -> None:
    def cost(imports: str) -> tuple[float, list[str]]:
        code = f"""
import json, sys, time
started = time.process_time()
import {imports}
spent = time.process_time() - started
print(json.dumps([spent, sorted(sys.modules)]))
"""
        spent, modules = json.loads(run(code, PYTHONPYCACHEPREFIX=str(tmp_path)))
        return spent, modules

    some = "asyncio, unittest.mock, email.message, http.server, xml.dom.minidom, logging.config"
    _, modules = cost("memorist")  # which also compiles them
    cost(some)
    heavy = {"langchain", "langchain_core", "pydantic", "numpy", "psycopg", "typer", "rich"}

    assert heavy.union({"asyncio"}).isdisjoint(modules)
    ratios = (cost("memorist")[0] / cost(some)[0] for _ in range(10))
    assert any(ratio < 1.8 for ratio in ratios)  # of what some of Python's own modules cost


AT_ONCE = ("__init__", "of_tenant", "scope", "stream", "follow")  # nothing to await before


def test_the_ten_lines_work_with_await(tmp_path: Path) -> None:
    async def lines() -> None:
        async with AsyncMemory(tmp_path / "m.db") as memory:
            chat = await memory.session(user="ada", agent="tutor")
            await chat.add("user", "I moved to Berlin in March.")
            await asyncio.gather(*(chat.add("user", f"note {number}") for number in range(20)))
            await chat.remember(Message("assistant", "How is Berlin?"))
            done = await memory.remember(["bye"], user="ada", agent="tutor")

            assert done.session_id == chat.id == (await memory.sessions(user="ada"))[0].id
            assert len(await chat.history()) == len(await memory.history(user="ada")) == 23
            found = await memory.recall("march", user="ada", deadline_ms=1_000)
            assert found.hits[0].role == "user"
            assert len((await chat.recall("berlin", limit=1, deadline_ms=None)).hits) == 1
            gone = await memory.forget(user="ada", everything=True)
            assert gone.counts["messages"] == 23
            with pytest.raises(InvalidError):
                await memory.forget(user="ada")
        with pytest.raises(StoreUnavailableError):
            await memory.history(user="ada")

    asyncio.run(lines())


def test_a_new_employer_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        for employer in ("Siemens", "Zeiss"):
            memory.facts.add("Ada", "employer", employer, user="ada")
        for friend in ("Eva", "Max"):
            memory.facts.add("Ada", "friend", friend, user="ada")
        held = [fact.object for fact in memory.facts.as_of(user="ada", valid=datetime.now(UTC))]
        assert sorted(held) == ["Eva", "Max", "Zeiss"]
        assert memory.memories.audit(user="ada").of("contradictory") == ()


def test_what_was_derived_is_looked_after_with_await(tmp_path: Path) -> None:
    async def lines() -> None:
        async with AsyncMemory(tmp_path / "m.db", embedder=None) as memory:
            said = await memory.remember("I prefer tea over coffee.", user="ada", source="import")
            await memory.memories.add("Keeps bees on the roof", user="ada", kind="concept")
            await memory.jobs.catch_up(300)
            texts = [item.text for item in await memory.memories.list(user="ada")]
            assert any("tea" in text for text in texts)
            assert "Keeps bees on the roof" in texts

            berlin = await memory.facts.add("Ada", "lives_in", "Berlin", user="ada", single=True)
            await memory.memories.retract(berlin, user="ada", reason="a slip")
            assert berlin not in [fact.id for fact in await memory.facts.list(user="ada")]
            assert len(await memory.memories.undo(berlin, user="ada")) == 1
            assert berlin in [fact.id for fact in await memory.facts.as_of(user="ada")]

            assert (await memory.memories.maintain(user="ada", dry_run=True)).expired == 0
            assert (await memory.memories.audit(user="ada")).memories == len(texts)
            assert await memory.jobs.list(user="ada", dead=True) == []
            with pytest.raises(NotFoundError):
                await memory.jobs.retry(1, user="ada")
            gone = await memory.forget(user="ada", message=said.message_ids[0], scrub=False)
            assert gone.counts["messages"] == 1

    asyncio.run(lines())


def test_one_memory_is_forgotten_and_its_message_stays() -> None:
    with Memory(":memory:", embedder=None) as memory:
        chat = memory.session(user="ada", agent="tutor")
        for text in ("I live in Munich.", "I moved to Berlin.", "I moved to Oslo."):
            chat.add("user", text)
            memory.jobs.catch_up(300)
        told = {fact.object: fact for fact in memory.facts.as_of(user="ada")}
        gone = memory.forget(user="ada", memory=str(told["Berlin"].memory))
        assert (gone.counts["memories"], gone.counts["facts"]) == (1, 1)
        assert len(chat.history()) == 3
        kept = {fact.object: fact.superseded_by for fact in memory.facts.as_of(user="ada")}
        assert kept == {"Munich": told["Oslo"].id, "Oslo": None}
        memory.forget(user="ada", memory=told["Oslo"].id)
        assert [fact.object for fact in memory.facts.list(user="ada")] == ["Munich"]
        with pytest.raises(NotFoundError):
            memory.forget(user="ada", memory=told["Oslo"].id)
        with pytest.raises(InvalidError):
            memory.forget(user="ada", memory=None)  # type: ignore[arg-type]


def test_a_program_that_closes_nothing_ends_well_while_a_model_is_at_work(tmp_path: Path) -> None:
    code = f"""
from memorist import Memory
memory = Memory({str(tmp_path / "memory.db")!r})
memory.remember([f"message {{n}}, of tea and coffee and more" for n in range(300)], user="ada")
memory.recall("tea", user="ada", deadline_ms=1)
print(len(memory.history(user="ada")))
"""
    assert run(code).strip() == "300"


@pytest.mark.parametrize("after", ["x", "xy", ("x", "y"), (1, 2, 3)])
def test_a_page_after_what_is_no_place_is_a_wrong_argument(memory: Memory, after: Any) -> None:
    for read in (memory.sessions, memory.memories.list, memory.facts.list):
        with pytest.raises(InvalidError, match="after must be"):
            read(user="ada", after=after)


def test_what_is_too_long_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "ü" * 32_769
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        monkeypatch.setattr(DerivedPart, "_keep", None)
        monkeypatch.setattr(memory.store, "records", None)
        with pytest.raises(RecordError, match="object is longer than 65,536 bytes"):
            memory.facts.add("Ada", "likes", long, user="ada")
        with pytest.raises(RecordError, match="text is longer than 65,536 bytes"):
            memory.memories.add(long, user="ada")
        with pytest.raises(RecordError, match="category is longer than 1,000 bytes"):
            memory.memories.add("Tea.", user="ada", category="a" * 1_001)
        with pytest.raises(RecordError, match="reason is longer than 65,536 bytes"):
            memory.memories.retract("id", user="ada", reason=long)
