"""The lists that a page shows, edits and previews: at hand, on a server, and over plain HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import AsyncMemory, InvalidError, Memory, NotFoundError, connect
from memorist.operations import make_cursor
from memorist.records.memories import Entity
from memorist.records.values import Tally
from tests.support.http_server import Served

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=["at hand", "on a server"])
def memory(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> Iterator[Memory]:
    """A memory at hand and one on a server, to the same lines."""
    if request.param == "at hand":
        opened = Memory(tmp_path / "memory.db", embedder=None, extraction=None)
    else:
        opened = connect(served.url, key=served.key(f"ada of {request.node.name}"))
    with opened:
        yield opened


@pytest.fixture
def ada(request: pytest.FixtureRequest) -> str:
    return f"ada of {request.node.name}"


def test_memories_by_filter(memory: Memory, ada: str) -> None:
    add, listed = memory.memories.add, memory.memories.list
    add("Ada sails at night", user=ada, kind="episode", category="sport", tags=["sea"])
    add("Ada owns a teapot", user=ada, agent="tutor", session="s", source="web")
    everything = listed(user=ada, newest_first=True)
    assert [item.text for item in everything] == ["Ada owns a teapot", "Ada sails at night"]
    teapot, sails = everything
    filters: dict[str, Any]
    for filters in (
        {"kind": "episode"},
        {"category": "sport"},
        {"tag": "sea"},
        {"text": "ada sai"},
        {"created_before": sails.created_at},
        {"limit": 1},
    ):
        assert listed(user=ada, **filters) == [sails], filters
    for filters in (
        {"source": "web"},
        {"session": "s"},
        {"created_after": teapot.created_at},
        {"after": (sails.created_at, sails.id)},
        {"text": "teap", "state": "all", "tier": "short"},
    ):
        assert listed(user=ada, **filters) == [teapot], filters
    assert listed(user=ada, state="over") == listed(user=ada, tier="long") == []
    memory.memories.retract(sails.id, user=ada)
    assert [item.id for item in listed(user=ada, state="over")] == [sails.id]
    assert [item.id for item in listed(user=ada, state="all")] == [sails.id, teapot.id]


def test_a_memory_is_edited_and_the_edit_undone(memory: Memory, ada: str) -> None:
    said = memory.remember({"role": "user", "content": "Good morning."}, user=ada)
    cited = list(said.message_ids)
    old = memory.memories.add("Ada lives in Berlin.", user=ada, tags=["home"], sources=cited)
    fact = memory.facts.add("Ada", "lives in", "Berlin", user=ada, sources=cited)
    new = memory.memories.change(old, user=ada, text="Ada lives in Berlin-Mitte.", importance=0.9)
    newer = memory.memories.change(new, user=ada, tags=["home", "city"])
    [item] = memory.memories.list(user=ada)
    assert (item.id, item.text, item.tags) == (
        newer,
        "Ada lives in Berlin-Mitte.",
        ("home", "city"),
    )
    assert (item.importance, item.sources) == (0.9, tuple(cited))
    assert memory.memories.list(user=ada, tag="city", text="mitt") == [item]
    for each in (old, new, newer):
        chained = [one.id for one in memory.memories.chain(each, user=ada)]
        assert chained == [old, new, newer]
    assert [one.id for one in memory.facts.list(user=ada)] == [fact]  # its facts go on
    with pytest.raises(InvalidError):
        memory.memories.change(old, user=ada, text="too late")
    memory.memories.undo(newer, user=ada)
    assert [one.id for one in memory.memories.list(user=ada)] == [new]
    memory.memories.undo(old, user=ada)
    assert [one.text for one in memory.memories.list(user=ada)] == ["Ada lives in Berlin."]
    assert [one.id for one in memory.facts.list(user=ada)] == [fact]
    wrong: dict[str, Any]
    for wrong in ({"text": " "}, {"kind": "odd"}, {"importance": 2}):
        with pytest.raises(InvalidError):
            memory.memories.change(old, user=ada, **wrong)
    with pytest.raises(NotFoundError):
        memory.memories.change("none", user=ada, text="x")
    with pytest.raises(NotFoundError):
        memory.memories.chain(fact, user=ada)


def test_a_memory_is_corrected_by_a_message_and_ends_with_its_facts(
    memory: Memory, ada: str
) -> None:
    said, no = (
        memory.remember({"role": role, "content": text}, user=ada).message_ids[0]
        for role, text in (("user", "Munich, of course."), ("assistant", "Berlin by now."))
    )
    old = memory.memories.add("Ada lives in Munich.", user=ada, sources=[said])
    memory.facts.add("Ada", "lives in", "Munich", user=ada, sources=[said])
    new = memory.memories.change(old, user=ada, text="Ada lives in Berlin.", said_in=no)
    [item] = memory.memories.list(user=ada)
    assert (item.id, item.sources, item.source) == (new, (no,), "assistant")
    assert memory.facts.list(user=ada) == []
    assert [fact.object for fact in memory.facts.as_of(user=ada)] == ["Munich"]
    memory.memories.undo(new, user=ada)
    assert [one.id for one in memory.memories.list(user=ada)] == [old]
    assert [fact.object for fact in memory.facts.list(user=ada)] == ["Munich"]
    with pytest.raises(NotFoundError):
        memory.memories.change(old, user=ada, text="x", said_in="nothing")


def test_an_edited_memory_goes_with_its_message(memory: Memory, ada: str) -> None:
    said = memory.remember({"role": "user", "content": "I live in Berlin."}, user=ada)
    [cited] = said.message_ids
    old = memory.memories.add("Ada lives in Berlin.", user=ada, sources=[cited])
    memory.memories.change(old, user=ada, text="Ada lives by the Spree.")
    memory.forget(user=ada, message=cited)
    assert memory.memories.list(user=ada, state="all") == []


def test_the_words_that_an_edited_memory_had_can_be_forgotten_alone(
    memory: Memory, ada: str
) -> None:
    old = memory.memories.add("Ada lives in Rome.", user=ada)
    new = memory.memories.change(old, user=ada, text="Ada lives somewhere.")
    memory.forget(user=ada, memory=old)
    assert [it.id for it in memory.memories.list(user=ada, state="all")] == [new]


def test_facts_by_filter_their_chain_and_their_graph(memory: Memory, ada: str) -> None:
    munich = memory.facts.add("Ada", "lives in", "Munich", user=ada, source="web")
    berlin = memory.facts.change(munich, user=ada, object="Berlin")
    tea = memory.facts.add("Bob", "likes", "Earl Grey", user=ada)

    def ids(**filters: Any) -> list[str]:
        return [fact.id for fact in memory.facts.list(user=ada, **filters)]

    assert ids(newest_first=True) == [tea, berlin]
    assert ids(object="Berlin") == ids(source="web") == ids(text="ada liv") == [berlin]
    assert ids(text="grey ear") == ids(limit=1, newest_first=True) == [tea]
    always = memory.facts.as_of(user=ada, newest_first=True, source="web")
    assert [fact.id for fact in always] == [berlin, munich]
    for each in (munich, berlin):
        assert [fact.id for fact in memory.facts.chain(each, user=ada)] == [munich, berlin]
    with pytest.raises(NotFoundError):
        memory.facts.chain("none", user=ada)
    names = ["ada", "berlin", "bob", "earl grey", "munich"]
    assert [it.name for it in memory.facts.entities(user=ada)] == names
    assert memory.facts.entities(user=ada, text="Ad") == [Entity("ada", Tally(2))]
    assert [it.name for it in memory.facts.entities(user=ada, limit=2, after="ada")] == names[1:3]
    near = memory.facts.neighbourhood("ADA", user=ada)
    assert ([fact.id for fact in near.facts], near.more) == ([berlin], False)
    always_near = memory.facts.neighbourhood("Ada", user=ada, always=True, limit=1)
    assert ([fact.id for fact in always_near.facts], always_near.more) == ([berlin], True)
    assert memory.facts.neighbourhood("Munich", user=ada).facts == ()
    before = near.facts[0].known_from - timedelta(microseconds=1)
    past = memory.facts.neighbourhood("Munich", user=ada, as_of=before)
    assert [fact.id for fact in past.facts] == [munich]
    with pytest.raises(NotFoundError):
        memory.facts.neighbourhood("nobody/at all", user=ada)


def test_a_friend_is_not_another_friend(memory: Memory, ada: str) -> None:
    memory.facts.add("user", "has friend", "Lena", user=ada)
    memory.facts.add("user", "has pet", "Miso", user=ada)
    memory.facts.add("Lena", "likes", "chess", user=ada)
    memory.facts.add("Miso", "likes", "fish", user=ada)
    near = memory.facts.neighbourhood("Lena", user=ada).facts
    assert {fact.object for fact in near} == {"Lena", "chess"}
    assert [fact.subject for fact in memory.facts.list(user=ada, subject="Miso")] == ["Miso"]


def test_sessions_with_titles_and_agents(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada, agent="tutor", new=True)
    chat.add("user", "Where do I live?")
    other = memory.session(user=ada, agent="coach", new=True)
    first, second = memory.session_summaries(user=ada)
    assert (first.id, first.title, first.messages) == (chat.id, "Where do I live?", Tally(1))
    assert (second.id, second.title, second.last_active_at) == (other.id, "", second.created_at)
    chat.add("user", "Still here?")
    for listed in (memory.sessions, memory.session_summaries):
        leading, last = listed(user=ada, newest_first=True)
        assert (leading.id, last.id) == (chat.id, other.id)
        assert leading.last_active_at
        place = leading.last_active_at, leading.id
        assert listed(user=ada, newest_first=True, after=place) == [last]
    assert memory.session_summaries(user=ada, agent="coach") == [second]
    assert memory.agents(user=ada) == ["coach", "tutor"]
    memory.rename_session(chat.id, " Home ", user=ada)
    assert memory.session_summaries(user=ada, session=chat.id)[0].title == "Home"
    memory.rename_session(chat.id, None, user=ada)
    assert memory.session_summaries(user=ada, session=chat.id)[0].title == "Where do I live?"
    with pytest.raises(InvalidError):
        memory.rename_session(chat.id, " ", user=ada)
    with pytest.raises(NotFoundError):
        memory.rename_session("none", "x", user=ada)


def test_forget_counts_before_it_removes(memory: Memory, ada: str) -> None:
    chat = memory.session(user=ada, new=True)
    chat.add("user", "I live in Berlin.")
    counted = memory.forget(user=ada, session=chat.id, dry_run=True)
    assert counted.counts["messages"] == counted.counts["sessions"] == 1
    assert counted.residue == ""
    assert len(memory.history(user=ada)) == 1
    gone = memory.forget(user=ada, session=chat.id)
    for kind in ("messages", "sessions"):  # a worker may have made memories of it meanwhile
        assert gone.counts[kind] == counted.counts[kind]
    assert memory.history(user=ada) == []


def test_the_same_for_asyncio(tmp_path: Path) -> None:
    asyncio.run(_asked(tmp_path))


async def _asked(tmp_path: Path) -> None:
    async with AsyncMemory(tmp_path / "memory.db", embedder=None, extraction=None) as memory:
        id_ = await memory.memories.add("Ada sails", user="ada")
        new = await memory.memories.change(id_, user="ada", text="Ada swims")
        assert [it.id for it in await memory.memories.chain(new, user="ada")] == [id_, new]
        await memory.facts.add("Ada", "likes", "tea", user="ada")
        assert len(await memory.facts.entities(user="ada")) == 2
        assert len((await memory.facts.neighbourhood("tea", user="ada")).facts) == 1
        chat = await memory.session(user="ada", agent="tutor")
        await memory.rename_session(chat.id, "Sea", user="ada")
        assert [it.title for it in await memory.session_summaries(user="ada")] == ["Sea"]
        assert await memory.agents(user="ada") == ["tutor"]


def test_the_lists_over_http(served: Served) -> None:
    http = served.client("http lists")

    def get(path: str, **query: Any) -> Any:
        answer = http.get(f"/api/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    http.post("/api/messages", json={"role": "user", "content": "Where am I?", "session": "s/1"})
    old = http.post("/api/memories", json={"text": "Ada sails at night", "tags": ["sea"]}).json()
    [session] = get("sessions", summary=True)["items"]
    assert (session["title"], session["messages"]) == ("Where am I?", {"count": 1, "more": False})
    assert "title" not in get("sessions")["items"][0]
    renamed = http.patch("/api/sessions/s%2F1", json={"title": "Where"})
    assert (renamed.status_code, renamed.json()["title"]) == (200, "Where")
    changed = http.patch(f"/api/memories/{old['id']}", json={"text": "Ada swims at night"})
    new = changed.json()["id"]
    history = get(f"memories/{new}/history")
    assert ([it["id"] for it in history["items"]], history["next"]) == ([old["id"], new], None)
    assert [it["id"] for it in get("memories", text="swi")["items"]] == [new]
    assert [it["id"] for it in get("memories", state="over")["items"]] == [old["id"]]
    moment = history["items"][1]["created_at"]
    assert [it["id"] for it in get("memories", after=moment)["items"]] == [new]
    assert get("memories", before="2020-01-01T00:00:00Z")["items"] == []
    assert http.patch(f"/api/memories/{new}", json={}).status_code == 422
    assert http.patch("/api/memories/none", json={"text": "x"}).status_code == 404
    for wrong in ({"state": "odd"}, {"kind": "odd"}, {"after": "x"}, {"text": "x" * 1_001}):
        assert http.get("/api/memories", params=wrong).status_code == 422, wrong
    dry = http.delete(f"/api/memories/{new}", params={"dry_run": True}).json()
    assert dry["counts"]["memories"] == 2  # with what it said before
    assert get(f"memories/{new}")["ended_at"] is None
    dry = http.post("/api/forget", json={"everything": True, "dry_run": True}).json()
    assert dry["counts"]["messages"] == 1
    dry = http.delete("/api/sessions/s%2F1", params={"dry_run": True}).json()
    assert dry["counts"]["messages"] == 1
    assert http.delete("/api/sessions/s%2F1").json()["counts"]["messages"] == 1
    assert http.delete("/api/sessions/s%2F1").status_code == 404
    assert get("sessions")["items"] == []


def test_pages_over_http_make_up_the_list(served: Served) -> None:
    http = served.client("http pages")
    for number in range(7):
        fact = {"subject": f"S{number}", "predicate": "is", "object": "O", "source": "web"}
        assert http.post("/api/facts", json=fact).status_code == 201
        http.post("/api/memories", json={"text": f"number {number} is odd or even"})
        http.post("/api/sessions/resolve", json={"new": True})
    lists: list[tuple[str, dict[str, Any]]] = [
        ("facts", {"newest_first": True, "object": "O"}),
        ("facts", {"text": "is o"}),
        ("memories", {"newest_first": True}),
        ("memories", {"text": "odd ev", "newest_first": True}),
        ("sessions", {"summary": True, "newest_first": True}),
        ("sessions", {"newest_first": True}),
        ("entities", {}),
        ("entities", {"text": "s"}),
    ]
    for path, query in lists:
        whole = http.get(f"/api/{path}", params=query).json()
        pages, cursor = [], None
        while True:
            asked = {**query, "limit": 2, **({"cursor": cursor} if cursor else {})}
            page = http.get(f"/api/{path}", params=asked).json()
            pages += page["items"]
            if (cursor := page["next"]) is None:
                break
        assert len(pages) >= 7
        assert pages == whole["items"], (path, query)
    forged = make_cursor([MARCH, "\0"])  # which PostgreSQL refuses
    for path, cursor in (("entities", "x"), ("articles", forged)):
        assert http.get(f"/api/{path}", params={"cursor": cursor}).status_code == 422
