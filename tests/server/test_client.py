"""`connect("http://…")`: the same lines on a server as at hand."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

import memorist
from memorist import (
    AsyncMemory,
    Client,
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    Memory,
    Message,
    MessageError,
    Notebook,
    NotFoundError,
    StoreUnavailableError,
    ToolCallMsg,
    UnauthorizedError,
    Window,
    connect,
)
from memorist.agents.langgraph import MemoristStore
from memorist.library import Library
from memorist.records.entry import Entry, Get, Put
from memorist.records.query import SourceMessage
from memorist.views.knowledge import KGMemory
from tests.support.http_server import Served

LOOK = ToolCallMsg("c1", "c1", "function", "look", '{"a": 1}')
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
Open = Callable[[], Memory]


@pytest.fixture(params=["at hand", "on a server"])
def memory(
    request: pytest.FixtureRequest, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Memory]:
    """A memory at hand and one on a server, to the same lines."""
    user = f"ada of {request.node.name}"
    if request.param == "at hand":
        opened = Memory(tmp_path / "memory.db", embedder=None)
    else:
        monkeypatch.setenv("MEMORIST_KEY", served.key(user))
        opened = connect(served.url)
    with opened:
        opened.ada = user  # type: ignore[attr-defined]
        yield opened


@pytest.fixture
def ada(memory: Any) -> str:
    return str(memory.ada)


def test_the_first_ten_lines_are_the_same(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada, agent="tutor")
    chat.add("user", "I moved to Berlin in March. No more Munich commutes!")
    chat.add("assistant", "How is Berlin treating you?")
    found = memory.recall("who moved to Berlin?", user=ada, deadline_ms=None)
    assert found.hits[0].text.startswith("I moved to Berlin")
    assert "words" in found.hits[0].why.ranks
    waited = memory.recall("Munich", user=ada, deadline_ms=None)  # waits for all
    assert waited.total_found >= len(waited.hits) > 0
    window = chat.context("Plan my weekend", max_tokens=4000, deadline_ms=None)
    assert window.messages[-1]["content"].endswith("Plan my weekend")
    assert window.receipt.used + window.receipt.left == 3500  # an eighth is for the answer
    assert memory.session(user=ada, agent="tutor").id == chat.id


def test_a_hit_says_who_said_it_where_it_came_from_and_what_is_over(
    memory: Memory, ada: str
) -> None:
    said = [
        Message("user", "I live in Munich.", created_at=MARCH),
        Message("assistant", "Noted: a home in Munich.", created_at=MARCH),
        Message("user", "I live in Berlin now.", created_at=datetime(2026, 4, 2, tzinfo=UTC)),
    ]
    chat = memory.session(user=ada)
    memory.remember(said, user=ada, session=chat.id)
    memory.jobs.catch_up()
    hits = memory.recall("who lives in Munich?", user=ada, deadline_ms=None).hits
    told = {hit.text: (hit.role, hit.speaker, hit.over) for hit in hits}
    assert told["Noted: a home in Munich."] == ("assistant", None, "")
    assert told["I live in Munich."] == ("user", None, "until April 2026")
    for kind in ("memory", "fact"):
        recall = memory.recall("who lives in Berlin?", user=ada, kind=kind, deadline_ms=None)
        assert [hit.sources for hit in recall.hits] == [
            (SourceMessage(said[2].message_id, chat.id, said[2].created_at),)
        ]
        assert recall.hits[0].created_at == said[2].created_at


def test_messages_come_back_as_they_were_said(memory: Memory, ada: str) -> None:
    said = [
        Message("user", "Zürich ☃ \u202e", images=["data:image/png;base64,iVBORw0KGgo="]),
        Message("assistant", None, tool_calls=[LOOK]),
        Message("tool", {"found": [1, 2.5, None]}, tool_call_id="c1", name="look"),
        Message("assistant", ["parts", {"type": "text", "text": "of it"}], created_at=MARCH),
        Message("user", "", structured_data={"x": {"y": []}}),
    ]
    done = memory.remember(said, user=ada, agent="tutor", session="s/1 ?")
    assert (done.session_id, done.added) == ("s/1 ?", 5)
    assert memory.history(user=ada, session="s/1 ?") == said
    assert memory.history(user=ada, last=2) == said[-2:]
    assert memory.history(user=ada, role="tool") == said[2:3]
    assert memory.remember(said, user=ada, session="s/1 ?").added == 0
    assert memory.remember([], user=ada, session="s/1 ?").session_id == "s/1 ?"


def test_messages_of_several_sessions_are_remembered_at_once(memory: Memory, ada: str) -> None:
    said = Message("user", "I collect tin robots", message_id="many-1")
    items: list[dict[str, Any]] = [
        {"user": ada, "messages": [said], "session": "many-a"},
        {"user": ada, "messages": "And kites", "agent": "tutor", "session": "many-b"},
    ]
    first, second = memory.remember_many(items)
    assert (first.session_id, first.message_ids, first.added) == ("many-a", ("many-1",), 1)
    assert (second.session_id, second.added) == ("many-b", 1)
    assert [one.added for one in memory.remember_many(items[:1])] == [0]
    assert memory.history(user=ada, session="many-a")[0].content == said.content
    with pytest.raises(ConflictError, match="item 1: "):
        memory.remember_many([items[1], {**items[0], "messages": [said.changed(content="other")]}])
    with pytest.raises(InvalidError, match="messages"):
        memory.remember_many([{"user": ada}])


def test_long_histories_come_in_whole(memory: Memory, ada: str) -> None:
    memory.remember([Message("user", f"line {n}") for n in range(1_200)], user=ada)
    assert [one.content for one in memory.history(user=ada)] == [f"line {n}" for n in range(1_200)]
    assert len(memory.history(user=ada, last=700)) == 700


def test_a_message_grows_while_others_read_it(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada)
    with chat.stream("assistant", flush_s=0) as reply:
        reply.write("It is ")
        assert chat.history()[-1].content == "It is "
        assert chat.history()[-1].unfinished
        reply.write("raining.")
    assert chat.history()[-1].content == "It is raining."
    assert not chat.history()[-1].unfinished
    assert "".join(chat.follow(reply.id)) == "It is raining."
    with pytest.raises(NotFoundError):
        list(chat.follow("nobody's"))


def test_facts_are_added_changed_and_remembered_as_they_were(memory: Memory, ada: str) -> None:
    first = memory.facts.add("Ada", "lives in", "Munich", user=ada, single=True, valid_from=MARCH)
    second = memory.facts.change(first, user=ada, object="Berlin")
    assert [fact.object for fact in memory.facts.list(user=ada)] == ["Berlin"]
    assert [fact.object for fact in memory.facts.as_of(user=ada, valid=MARCH)] == ["Munich"]
    assert len(memory.facts.as_of(user=ada)) == 2
    assert [f.id for f in memory.facts.list(user=ada, subject="Ada", predicate="lives in")] == [
        second
    ]
    memory.memories.retract(second, user=ada, reason="she said so")
    assert memory.facts.list(user=ada) == []
    changes = memory.memories.undo(second, user=ada)
    assert [type(change).__name__ for change in changes] == ["Restore"]


def test_memories_are_kept_listed_and_forgotten(memory: Memory, ada: str) -> None:
    id_ = memory.memories.add(
        "Ada drinks green tea.", user=ada, kind="concept", tags=("tea",), importance=0.9
    )
    [item] = memory.memories.list(user=ada)
    assert (item.id, item.kind, item.tags[0], item.importance) == (id_, "concept", "tea", 0.9)
    found = memory.recall("green tea", user=ada, kind="memory", tags="tea", deadline_ms=None)
    assert found.hits[0].id == id_
    gone = memory.forget(user=ada, memory=id_)
    assert gone.counts["memories"] == 1
    assert memory.memories.list(user=ada, current=False) == []


def test_notes_are_one_text_with_versions(memory: Memory, ada: str) -> None:
    notes = Notebook(memory, user=ada, agent="tutor")
    assert notes.read() == ""
    notes.append("## Likes\ntea")
    notes.replace_section("Likes", "coffee")
    assert "coffee" in notes.read()
    assert [one.version for one in notes.versions()] == [2, 1]
    with pytest.raises(ConflictError):
        notes.write("late", base_version=1)
    notes.restore(1)
    assert notes.read() == "## Likes\ntea"


def test_a_langgraph_store_keeps_and_finds_values(memory: Memory, ada: str) -> None:
    store = MemoristStore(memory, user=ada, deadline_ms=None)
    store.put(("food",), "tea", {"likes": "green tea"})
    store.put(("food",), "bread", {"likes": "rye"}, ttl=60)
    store.put(("trips",), "rome", {"year": 2025})
    found = store.get(("food",), "tea")
    assert found is not None
    assert found.value == {"likes": "green tea"}
    assert [item.key for item in store.search(("food",), query="which tea?", limit=1)] == ["tea"]
    assert [item.key for item in store.search((), filter={"year": {"$gt": 2024}})] == ["rome"]
    assert store.list_namespaces() == [("food",), ("trips",)]
    store.delete(("food",), "tea")
    assert store.get(("food",), "tea") is None


def test_a_library_is_filled_searched_and_emptied(memory: Memory, ada: str, tmp_path: Path) -> None:
    (tmp_path / "returns.md").write_text("# Returns\n\nGoods may be returned on Sundays.")
    library = memory.library(user=ada)
    assert len(library.ingest(tmp_path).added) == 1
    [found] = library.retrieve("When may goods be returned?", 1, window=500, deadline_ms=None)
    assert "on Sundays" in found.text
    [card] = library.articles()
    assert library.get(card.id).title == "Returns"
    library.remove(card.id)
    assert library.articles() == []


def test_a_library_made_of_the_memory_is_searched_too(memory: Memory, ada: str) -> None:
    library = Library(memory, user=ada)
    library.add("Returns", "Goods may be returned on Sundays.", uri="returns")
    [found] = library.retrieve("When may goods be returned?", 1, window=500, deadline_ms=None)
    assert "on Sundays" in found.text


def test_many_values_are_put_and_forgotten(memory: Memory, ada: str) -> None:
    store = MemoristStore(memory, user=ada, deadline_ms=None)
    store.batch([PutOp(("n",), f"k{number}", {"n": number}) for number in range(1_100)])
    assert len(store.search(("n",), limit=2_000)) == 1_100
    assert store.forget(("n",), scrub=False).counts == {"entries": 1_100}
    assert store.search(("n",)) == []


def test_an_entry_that_was_written_elsewhere_keeps_its_date(memory: Memory, ada: str) -> None:
    then, scope = datetime(2024, 5, 6, tzinfo=UTC), memory.scope(user=ada)
    put = Put(namespace=("n",), key="k", value={"n": 1}, written_at=then)
    memory.entries.batch(scope, [], [put])
    [[entry]] = memory.entries.batch(scope, [Get(namespace=("n",), key="k")])
    assert isinstance(entry, Entry)
    assert entry.updated_at == then


def test_the_history_of_a_topic_has_what_held_before(memory: Memory, ada: str) -> None:
    for city in ("Munich", "Berlin"):
        memory.facts.add("Ada", "lives in", city, user=ada, single=True)
    memory.facts.add("Ada", "likes", "tea", user=ada)
    past = memory.facts.history("Ada", "lives in", user=ada)
    assert [fact.object for fact in past] == ["Munich", "Berlin"]
    [now] = memory.facts.list(user=ada, subject="Ada", predicate="lives in")
    assert now.object == "Berlin"


def test_a_list_narrowed_by_subject_or_session_is_cut_last(memory: Memory, ada: str) -> None:
    for subject in ("Bob", "Ada"):
        memory.facts.add(subject, "likes", "tea", user=ada)
    [fact] = memory.facts.list(user=ada, subject="Ada", limit=1)
    assert fact.subject == "Ada"
    ids = [memory.session(user=ada, new=True).id for _ in range(2)]
    [session] = memory.sessions(user=ada, session=ids[1], limit=1)
    assert session.id == ids[1]


def test_a_context_has_the_sessions_own_system_prompt(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada, new=True)
    chat.add("system", "You are a kind tutor.")
    [first, *_] = chat.context("Hello?", max_tokens=500, deadline_ms=None).messages
    assert "kind tutor" in first["content"]


def test_facts_are_an_agents_memory(memory: Memory, ada: str) -> None:
    graph = KGMemory(memory=memory, user=ada, agent="tutor")
    fact = graph.add_fact("Paris", "is capital of", "France")
    graph.update(fact, object="the French Republic")
    assert [fact["object"] for fact in graph.retrieve_all()] == ["the French Republic"]
    graph.reset()
    assert graph.retrieve_all() == []


def test_messages_are_read_between_positions(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada, new=True)
    for number in range(5):
        chat.add("user", f"line {number}")
    scope = chat.session.scope
    entries = memory.messages.list(scope)
    first, last = entries[0].seq, entries[-1].seq
    between = memory.messages.list(scope, after=first, before=last)
    assert [entry.message.text for entry in between] == ["line 1", "line 2", "line 3"]


def test_jobs_are_seen(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada)
    chat.add("user", "keep this")
    assert isinstance(memory.jobs.list(user=ada), list)
    assert memory.jobs.catch_up(timeout_s=300) == 0
    assert sum(memory.jobs.waiting().values()) == 0
    assert memory.jobs.rebuild(user=ada) == 1
    assert memory.jobs.catch_up(timeout_s=300) == 0


def test_upkeep_is_told_of(memory: Memory, ada: str) -> None:
    memory.memories.add("Ada's plan for today is tea.", user=ada, kind="working")
    assert memory.memories.audit(user=ada).memories == 1
    assert memory.memories.maintain(user=ada, dry_run=True).dry_run


def test_a_session_is_summed_up(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada)
    for n in range(12):
        chat.add("user", f"On day {n} I walked {n} miles along the river with my dog.")
    made = chat.compress(Window(keep_last=2))
    assert made is not None
    assert made.made_by == "extractive"
    assert memory.summaries(user=ada, session=chat.id)[0].text == made.summary.text
    assert chat.compress(Window(keep_last=2)) is None
    receipt = chat.context("where?", max_tokens=400).receipt
    assert receipt.part("summary").tokens > 0


def test_sessions_are_resolved_and_listed(memory: Memory, ada: str) -> None:
    assert memory.active_session(user=ada, agent="tutor") is None
    first = memory.session(user=ada, agent="tutor")
    assert memory.active_session(user=ada, agent="tutor") == first.session
    second = memory.session(user=ada, agent="tutor", new=True)
    assert memory.session(user=ada, agent="tutor", claimed=first.id).id == first.id
    assert memory.session(user=ada, agent="coach", claimed=first.id).id != first.id
    assert memory.session(user=ada, agent="tutor", id="mine").id == "mine"
    listed = [one.id for one in memory.sessions(user=ada, agent="tutor")]
    assert listed == [first.id, second.id, "mine"]
    memory.forget(user=ada, session=first.id)
    assert first.id not in [one.id for one in memory.sessions(user=ada)]


def test_what_is_wrong_is_told_with_the_same_errors(memory: Memory, ada: str) -> None:
    with pytest.raises(MessageError, match="NUL"):
        memory.remember(Message("user", "x").changed(content="a\x00"), user=ada)
    with pytest.raises(InvalidError):
        memory.recall("x", user=ada, kind="nonsense")
    with pytest.raises(InvalidError):
        memory.forget(user=ada)
    with pytest.raises(InvalidError):
        memory.forget(user=ada, session=None)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        memory.facts.change("nobody's", user=ada, object="x")
    with pytest.raises(NotFoundError):
        memory.memories.undo("nobody's", user=ada)
    with pytest.raises(NotFoundError):
        memory.jobs.retry(123_456, user=ada)


def test_every_public_method_of_a_memory_is_a_clients_too() -> None:
    local = {"scrub"}  # a server's own business
    for name, method in inspect.getmembers(Memory, inspect.isfunction):
        if name.startswith("_") or name in local:
            continue
        theirs, ours = inspect.signature(method), inspect.signature(getattr(Client, name))
        assert list(ours.parameters) == list(theirs.parameters), name
        for one in theirs.parameters.values():
            assert ours.parameters[one.name].default == one.default, (name, one.name)


async def _a_turn(url: str) -> list[str]:
    async with AsyncMemory.of(connect(url)) as memory:
        chat = await memory.session(user="grace")
        await chat.add("user", "hello from asyncio")
        found = await memory.recall("hello", user="grace", deadline_ms=None)
        return [one.text for one in found.hits]


def test_asyncio_works_on_a_server(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setenv("MEMORIST_KEY", served.key("grace"))
    assert asyncio.run(_a_turn(served.url)) == ["hello from asyncio"]


def test_keys_decide_whose_memory_it_is(served: Served) -> None:
    with Client(served.url, key=served.key("ada")) as ada, pytest.raises(ForbiddenError):
        ada.recall("x", user="grace")
    with Client(served.url, key="mk_wrong") as nobody, pytest.raises(UnauthorizedError):
        nobody.recall("x", user="ada")
    assert "mk_" not in repr(vars(Client(served.url, key="mk_secret")))


def test_a_server_that_is_away_leaves_recall_empty_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Client("http://127.0.0.1:9", timeout_s=1) as away:
        found = away.recall("x", user="ada")
        assert (found.hits, found.failed) == ((), {"server": found.reason})
        assert "does not answer" in found.reason
        assert found.reason in caplog.text
        with pytest.raises(StoreUnavailableError):
            away.remember("x", user="ada")


def test_what_needs_the_database_says_so(served: Served) -> None:
    with Client(served.url) as client, pytest.raises(ConfigError, match="database"):
        client.store.claim()
    with pytest.raises(ConfigError, match=r"memorist\.connect"):
        Memory(served.url)
    with connect(served.url) as client, pytest.raises(ConfigError, match="key of the other"):
        client.tenant("other")


def test_the_environment_may_name_the_server(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "MEMORIST_URL", served.url)
    monkeypatch.setitem(os.environ, "MEMORIST_KEY", served.key("ada"))
    with connect() as memory:
        assert isinstance(memory, memorist.Client)
        memory.warm_up()
