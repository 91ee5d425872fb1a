"""MemoristStore at work: search, times to live, langmem, agents, processes, forgetting."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memorist import Memory
from memorist.agents.langgraph import MemoristStore, texts_of
from memorist.errors import InvalidError
from memorist.testing.scripted import ScriptedChatModel
from tests.support.examples import examples

ROOT = Path(__file__).parents[2]
ADA, BOB = ("memories", "ada"), ("memories", "bob")
SAID = {
    "home": "Ada moved to Berlin and rents a flat there",
    "pet": "Her dog is called Rex and barks at the postman",
    "food": "She is allergic to peanuts and hazelnuts",
}


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:", extraction=None) as memory:
        yield memory


@pytest.fixture
def store(memory: Memory, request: pytest.FixtureRequest) -> MemoristStore:
    """A store that no other test has, in a memory that has its model loaded."""
    return MemoristStore(memory, request.node.name, deadline_ms=None)


def filled(store: MemoristStore, memory: Memory) -> MemoristStore:
    for key, text in SAID.items():
        store.put(ADA, key, {"text": text, "words": len(text.split())})
    store.put(BOB, "home", {"text": "Bob lives in Munich, in a flat"})
    memory.jobs.catch_up()
    return store


class TestSearch:
    def test_meaning_and_words_say_what_comes_first(
        self, store: MemoristStore, memory: Memory
    ) -> None:
        filled(store, memory)
        for query, key in {
            "What animal does she keep?": "pet",
            "peanuts": "food",
            "the capital of Germany": "home",
        }.items():
            found = store.search(ADA, query=query)
            assert found[0].key == key
            assert {item.key for item in found} == SAID.keys()
            scores = [item.score for item in found if item.score is not None]
            assert scores == sorted(scores, reverse=True)
            assert len(scores) == 3

    def test_a_search_stays_below_its_prefix_and_its_filter(
        self, store: MemoristStore, memory: Memory
    ) -> None:
        filled(store, memory)
        assert store.search(BOB, query="Berlin flat")[0].namespace == BOB
        assert {item.namespace for item in store.search(("memories",), query="flat")} == {ADA, BOB}
        found = store.search(ADA, query="Berlin", filter={"words": {"$lt": 9}})
        assert [item.key for item in found] == ["food"]
        assert store.search(ADA, query="Berlin", filter={"words": 99}) == []

    def test_pages_of_a_search_follow_each_other(
        self, store: MemoristStore, memory: Memory
    ) -> None:
        filled(store, memory)
        every = [item.key for item in store.search(ADA, query="dog")]
        pages = [store.search(ADA, query="dog", limit=1, offset=n)[0].key for n in range(3)]
        assert pages == every
        assert store.search(ADA, query="dog", offset=3) == []

    def test_few_are_found_among_thousands_of_others(self) -> None:
        with Memory(":memory:", embedder=None, extraction=None) as memory:
            store = MemoristStore(memory, deadline_ms=None)
            said = {"text": "Rex the dog barks"}
            store.batch([PutOp(("crowd", str(n % 7)), str(n), said) for n in range(2_000)])
            store.put(ADA, "pet", {"text": "The cat sleeps, the dog barks"})
            store.put(ADA, "home", {"text": "Berlin"})
            found = store.search(ADA, query="Rex the dog barks")
            assert [(item.key, item.score is None) for item in found] == [
                ("pet", False),
                ("home", True),
            ]
            assert len(store.search(("crowd", "3"), query="Rex", limit=1_000)) == 286

    def test_what_was_put_this_moment_is_found(self, store: MemoristStore) -> None:
        store.put(ADA, "k", {"text": "Kangaroos"})
        [by_words] = store.search(ADA, query="kangaroo")
        assert by_words.score is not None
        [not_yet] = store.search(ADA, query="zzz")
        assert not_yet.key == "k"

    def test_fields_and_index_decide_what_finds_a_value_as_in_memory(self, memory: Memory) -> None:
        embedder = memory.embedder
        assert embedder is not None
        official = InMemoryStore(
            index={
                "dims": 384,
                "fields": ["text", "tags[*]"],
                "embed": lambda texts: [list(map(float, row)) for row in embedder.embed(texts)],
            }
        )
        ours = MemoristStore(memory, "fields", fields=["text", "tags[*]"], deadline_ms=None)
        for store in (official, ours):
            store.put(ADA, "text", {"text": "a dog barks", "other": "piano"})
            store.put(ADA, "tags", {"tags": ["a violin", "cooking pasta"]})
            store.put(ADA, "own", {"text": "a dog barks", "other": "piano"}, index=["other"])
            store.put(ADA, "none", {"text": "a violin"}, index=False)
            store.put(ADA, "empty", {"note": "a violin"})
        memory.jobs.catch_up()
        for query in ("puppies", "string instruments", "a pianist", "spaghetti"):
            answers = [store.search(ADA, query=query) for store in (official, ours)]
            assert answers[0][0].key == answers[1][0].key, query
            unscored = [{it.key for it in found if it.score is None} for found in answers]
            assert unscored[0] == unscored[1] == {"none", "empty"}

    def test_a_value_is_found_by_what_it_says_without_the_signs_of_json(self) -> None:
        value = {"a": {"theme": "dark"}, "n": [1, None, {"x": True}], "s": "Ü"}
        assert list(texts_of(value, ["$"])) == ["theme: dark\nn: 1\nx: True\ns: Ü"]
        assert list(texts_of(value, ["a.theme", "n[0]", "gone"])) == ["dark", "1"]

    @settings(max_examples=examples(50), deadline=None)
    @given(query=st.text(max_size=20), value=st.dictionaries(st.text(), st.text(), max_size=3))
    def test_no_text_breaks_a_search(self, memory: Memory, query: str, value: Any) -> None:
        store = MemoristStore(memory, "odd", deadline_ms=None)
        store.put(ADA, "k", value)
        [found] = store.search(ADA, query=query)
        assert found.value == value


class Watch:
    """A clock that is told the time."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


class TestTimesToLive:
    def test_an_entry_lives_for_its_minutes_and_longer_where_it_is_read(self) -> None:
        watch = Watch()
        with Memory(":memory:", embedder=None, extraction=None, clock=watch) as memory:
            store = MemoristStore(memory, ttl={"default_ttl": 10, "refresh_on_read": True})
            for key in ("got", "searched", "left"):
                store.put(ADA, key, {"key": key})
            store.put(ADA, "ever", {}, ttl=None)
            for _ in range(3):
                watch.wait(6)
                assert store.get(ADA, "got") is not None
                assert len(store.search(ADA, filter={"key": "searched"})) == 1
            assert {item.key for item in store.search(ADA, refresh_ttl=False)} == {
                "got",
                "searched",
                "ever",
            }
            watch.wait(9.9)
            assert store.get(ADA, "got", refresh_ttl=False) is not None
            watch.wait(0.1)
            assert [item.key for item in store.search(ADA)] == ["ever"]
            assert store.sweep_ttl() == 3
            item = store.get(ADA, "ever")
            assert item is not None
            assert item.created_at == datetime(2026, 3, 1, tzinfo=UTC)

    def test_without_refreshing_the_end_stays(self) -> None:
        watch = Watch()
        with Memory(":memory:", embedder=None, extraction=None, clock=watch) as memory:
            store = MemoristStore(memory, ttl={"refresh_on_read": False})
            store.put(ADA, "k", {}, ttl=10)
            watch.wait(6)
            assert store.get(ADA, "k") is not None
            watch.wait(6)
            assert store.get(ADA, "k") is None

    @pytest.mark.parametrize("ttl", [float("nan"), float("inf"), 1e300, "soon"])
    def test_a_time_that_is_none_is_refused(self, store: MemoristStore, ttl: Any) -> None:
        with pytest.raises(InvalidError):
            store.put(ADA, "k", {}, ttl=ttl)


class TestOperations:
    def test_fields_to_index_are_a_list_and_a_text_is_not_taken_for_its_characters(
        self, memory: Memory, store: MemoristStore
    ) -> None:
        wrong: Any
        for wrong in ("text", True, [5], {"text": 1}):
            with pytest.raises(InvalidError, match=r"^index must be"):
                store.put(ADA, "k", {"text": "tea"}, index=wrong)
            with pytest.raises(InvalidError, match=r"^fields must be"):
                MemoristStore(memory, fields=wrong)
        assert store.get(ADA, "k") is None

    def test_a_page_of_namespaces_that_cannot_be_is_refused(self, store: MemoristStore) -> None:
        store.put(ADA, "k", {"n": 1})
        wrong: Any
        for name in ("limit", "offset", "max_depth"):
            for wrong in (-1, 1.5, "1"):
                with pytest.raises(InvalidError, match=f"^{name} must be a whole number"):
                    store.list_namespaces(**{name: wrong})
        assert store.list_namespaces(max_depth=None) == [ADA]

    def test_asyncio_gives_the_same(self, store: MemoristStore) -> None:
        async def use() -> list[Any]:
            await store.aput(ADA, "k", {"n": 1})
            await asyncio.gather(*(store.aput(BOB, str(n), {"n": n}) for n in range(20)))
            ops: list[Op] = [GetOp(ADA, "k"), SearchOp(BOB, limit=99), PutOp(ADA, "k", None)]
            return await store.abatch(ops)

        got, found, put = asyncio.run(use())
        assert (got.value, len(found), put) == ({"n": 1}, 20, None)
        assert store.get(ADA, "k") is None

    def test_a_batch_with_something_wrong_in_it_changes_nothing(self, store: MemoristStore) -> None:
        wrong: list[Any] = [PutOp(ADA, "b", {"x": {1}}), SearchOp(ADA, {"n": {"$in": []}}), "op"]
        for op in wrong:
            with pytest.raises(InvalidError):
                store.batch([PutOp(ADA, "a", {}), op])
        assert store.search(()) == []

    def test_errors_do_not_tell_what_was_stored(self, store: MemoristStore) -> None:
        with pytest.raises(InvalidError) as raised:
            store.put(("secret",), "secret", {"secret": {"secret"}})
        assert "secret" not in str(raised.value)

    def test_an_empty_batch_is_nothing(self, store: MemoristStore) -> None:
        assert store.batch([]) == []


class TestForgetting:
    def test_a_users_own_store_is_recalled_and_goes_with_the_user(self, tmp_path: Path) -> None:
        with Memory(tmp_path / "memory.db", extraction=None) as memory:
            store = MemoristStore(memory, user="ada")
            store.put(("notes",), "k", {"text": "zqcanary sings at noon"})
            [hit] = memory.recall("zqcanary", user="ada", deadline_ms=None).hits
            assert (hit.kind, hit.text) == ("entry", "text: zqcanary sings at noon")
            assert memory.recall("zqcanary", user="ada", agent="tutor", deadline_ms=None).hits
            assert memory.recall("zqcanary", user="ada", kind="fact", deadline_ms=None).hits == ()
            assert memory.forget(user="ada", everything=True).counts["entries"] == 1
            assert store.get(("notes",), "k") is None
            assert memory.scrub() == ""
            files = [path.read_bytes() for path in tmp_path.iterdir()]
            assert not any(b"zqcanary" in held for held in files)

    def test_a_shared_store_is_nobodys_memory(self, store: MemoristStore, memory: Memory) -> None:
        store.put(ADA, "k", {"text": "ocelots"})
        assert memory.recall("ocelots", user="ada", deadline_ms=None).hits == ()
        memory.forget(user="ada", everything=True)
        assert store.get(ADA, "k") is not None

    def test_a_namespace_is_forgotten_with_all_below_it(self, tmp_path: Path) -> None:
        with Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory:
            store = MemoristStore(memory)
            for namespace in (ADA, (*ADA, "deep"), BOB):
                store.put(namespace, "k", {"text": f"zqcanary{namespace[1]}"})
            assert store.forget(ADA).counts == {"entries": 2}
            assert [item.namespace for item in store.search(())] == [BOB]
            files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
            assert b"zqcanaryada" not in files
            assert b"zqcanarybob" in files


class Seen(TypedDict):
    """A graph's state."""

    n: int


class TestInLangGraph:
    @pytest.mark.filterwarnings("ignore:Importing Send from langgraph:DeprecationWarning")
    def test_langmem_remembers_and_finds_in_it(self, store: MemoristStore, memory: Memory) -> None:
        from langmem import create_manage_memory_tool, create_search_memory_tool  # type: ignore[import-untyped]

        namespace = ("memories", "{langgraph_user_id}")
        manage = create_manage_memory_tool(namespace, store=store)
        search = create_search_memory_tool(namespace, store=store)
        ada: Any = {"configurable": {"langgraph_user_id": "ada"}}
        bob: Any = {"configurable": {"langgraph_user_id": "bob"}}
        manage.invoke({"content": "Ada is allergic to peanuts"}, ada)
        manage.invoke({"content": "Ada plays the violin"}, ada)
        memory.jobs.catch_up()
        found = json.loads(search.invoke({"query": "Which food must she avoid?"}, ada))
        assert found[0]["value"] == {"content": "Ada is allergic to peanuts"}
        assert json.loads(search.invoke({"query": "food"}, bob)) == []
        id_ = found[0]["key"]
        change = {"content": "Ada is allergic to hazelnuts", "action": "update", "id": id_}
        asyncio.run(manage.ainvoke(change, ada))
        item = store.get(ADA, id_)
        assert item is not None
        assert item.value == {"content": "Ada is allergic to hazelnuts"}
        manage.invoke({"action": "delete", "id": id_}, ada)
        assert len(json.loads(asyncio.run(search.ainvoke({"query": "food"}, ada)))) == 1

    def test_an_agent_gives_it_to_its_tools(self, store: MemoristStore) -> None:
        @tool
        def note(text: str, runtime: ToolRuntime) -> str:
            """Keep a note."""
            assert runtime.store is not None
            runtime.store.put(ADA, "note", {"text": text})
            return "kept"

        model = ScriptedChatModel([{"name": "note", "args": {"text": "tea"}}, "Done."])
        agent = create_agent(model, tools=[note], store=store)
        agent.invoke({"messages": [{"role": "user", "content": "Note that I like tea"}]})
        item = store.get(ADA, "note")
        assert item is not None
        assert item.value == {"text": "tea"}

    def test_a_node_of_a_graph_has_it(self, store: MemoristStore) -> None:
        async def remember(state: Seen, runtime: Runtime[None]) -> dict[str, Any]:
            assert runtime.store is not None
            await runtime.store.aput(ADA, "seen", dict(state))
            return {}

        graph = StateGraph(Seen)
        graph.add_node("remember", remember)
        graph.add_edge(START, "remember")
        graph.add_edge("remember", END)
        asyncio.run(graph.compile(store=store).ainvoke({"n": 1}))
        item = store.get(ADA, "seen")
        assert item is not None
        assert item.value == {"n": 1}


WRITER = """
import sys
from memorist import Memory
from memorist.agents.langgraph import MemoristStore

url, name = sys.argv[1:]
with Memory(url, embedder=None, extraction=None) as memory:
    store = MemoristStore(memory)
    sys.stdin.readline()
    for number in range(60):
        store.put(("own", name), str(number), {"by": name, "n": number})
        store.put(("shared",), str(number), {"by": name, "n": number})
"""


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_two_processes_at_once_lose_nothing_and_a_third_reads_it(
    database: str, tmp_path: Path, postgres_with_tables: str
) -> None:
    url = str(tmp_path / "memory.db") if database == "SQLite" else postgres_with_tables
    command = [sys.executable, "-c", WRITER, url]
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, cwd=ROOT, env=kept)
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.close()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    with Memory(url, embedder=None, extraction=None) as memory:
        store = MemoristStore(memory)
        assert store.list_namespaces() == [("own", "one"), ("own", "two"), ("shared",)]
        for name in ("one", "two"):
            own = store.search(("own", name), limit=99)
            assert sorted(item.value["n"] for item in own) == list(range(60))
        shared = store.search(("shared",), limit=99)
        assert sorted(item.value["n"] for item in shared) == list(range(60))


def test_without_langgraph_the_import_names_its_cure() -> None:
    code = """
import sys
sys.modules["langgraph.store.base"] = None
try:
    import memorist.agents.langgraph
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingExtraError")
    assert 'pip install "memorist[langgraph]"' in done.stdout


@pytest.mark.parametrize(
    "asked", [{"query": 5}, {"query": ["tea"]}, {"filter": 5}, {"filter": ["a"]}]
)
def test_a_search_of_a_wrong_type_is_named(asked: dict[str, Any]) -> None:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        with pytest.raises(InvalidError, match=rf"{next(iter(asked))} must be a"):
            MemoristStore(memory).search(("a",), **asked)
        with pytest.raises(InvalidError, match=r"^memory must be Memory, got int$"):
            MemoristStore(5)  # type: ignore[arg-type]
