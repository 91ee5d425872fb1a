"""Memories and facts over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memorist import Memory
from memorist.derived import Facts, Memories
from tests.server.api import Api, an_api, get, post, walk


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with an_api(tmp_path_factory.mktemp("api")) as one:
        yield one


def test_a_memory_that_was_added_is_read_and_listed(api: Api) -> None:
    made = post(
        api.ada,
        "/api/memories",
        status=201,
        text="Ada sails on Sundays.",
        agent="mate",
        kind="procedure",
        category="hobby",
        importance=0.9,
        tags=["sail"],
        source="assistant",
        expires_at="2100-01-01T00:00:00+02:00",
    )
    one = get(api.ada, f"/api/memories/{made['id']}")
    assert (one["text"], one["kind"], one["tags"]) == (
        "Ada sails on Sundays.",
        "procedure",
        ["sail"],
    )
    assert one["expires_at"] == "2099-12-31T22:00:00Z"
    assert one["source"] == "assistant"
    assert get(api.ada, "/api/memories", agent="mate")["items"] == [one]
    assert get(api.ada, "/api/memories", agent="nobody")["items"] == []


def test_cursors_walk_through_all_memories_exactly_once(api: Api) -> None:
    made = {
        post(api.ada, "/api/memories", status=201, agent="walker", text=text)["id"]
        for text in ("Red is warm.", "Bees dance.", "Cats sleep.", "Tea cools.", "Snow melts.")
    }
    for limit in (1, 2, 5, 6):
        found = [one["id"] for one in walk(api.ada, "/api/memories", limit, agent="walker")]
        assert sorted(found) == sorted(made)


@pytest.mark.parametrize(
    "path",
    [
        "/api/memories",
        "/api/facts",
        "/api/notes/versions",
        "/api/articles",
        "/api/jobs",
        "/api/messages",
    ],
)
@pytest.mark.parametrize(
    "cursor", ["é", "_w", "!", "a" * 8_193, "W10", "WyJhIiwgMV0", "eyJhIjogMX0", "W3RydWVd"]
)
def test_a_cursor_that_no_page_gave_is_refused(api: Api, path: str, cursor: str) -> None:
    problem = get(api.ada, path, status=422, cursor=cursor)
    assert problem["code"] == "invalid"


def test_a_memory_is_taken_back_and_that_is_undone(api: Api) -> None:
    id_ = post(api.ada, "/api/memories", status=201, text="Ada plays chess.", agent="a")["id"]
    taken = post(api.ada, f"/api/memories/{id_}/retract", reason="a slip")
    assert taken["ended_at"] is not None
    assert taken["reason"] == "a slip"
    assert get(api.ada, "/api/memories", agent="a")["items"] == []
    assert len(get(api.ada, "/api/memories", agent="a", current=False)["items"]) == 1
    undone = post(api.ada, f"/api/memories/{id_}/undo")
    assert [one["change"] for one in undone["changes"]] == ["restore"]
    assert get(api.ada, "/api/memories", agent="a")["items"][0]["id"] == id_


def test_a_memory_is_removed_for_good(api: Api) -> None:
    id_ = post(api.ada, "/api/memories", status=201, text="Ada plays poker.", agent="b")["id"]
    gone = api.ada.delete(f"/api/memories/{id_}").json()
    assert gone["counts"]["memories"] == 1
    assert "in the background" in gone["residue"]
    get(api.ada, f"/api/memories/{id_}", status=404)
    assert api.ada.delete(f"/api/memories/{id_}").status_code == 404


def test_another_users_memory_is_as_good_as_none(api: Api) -> None:
    id_ = post(api.ada, "/api/memories", status=201, text="Ada has a cat.", agent="c")["id"]
    get(api.eve, f"/api/memories/{id_}", status=404)
    post(api.eve, f"/api/memories/{id_}/retract", status=404)
    post(api.eve, f"/api/memories/{id_}/undo", status=404)
    assert api.eve.delete(f"/api/memories/{id_}").status_code == 404
    get(api.stranger, f"/api/memories/{id_}", status=404, user="ada")
    get(api.eve, f"/api/memories/{id_}", status=403, user="ada")
    assert get(api.admin, f"/api/memories/{id_}", user="ada")["id"] == id_
    get(api.admin, f"/api/memories/{id_}", status=422)
    assert get(api.eve, "/api/memories")["items"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "x", "importance": 1.5},
        {"text": "x", "tags": [7]},
        {"text": "a\x00b"},
        {"text": "a\ud800b"},
        {"text": " "},
        {"text": "x", "kind": "opinion"},
        {"words": "x"},
        {"text": "x", "expires_at": "2030-01-01T00:00:00"},
        {"text": "x", "source": "rumour"},
        {"text": "x", "expires_at": "0001-01-01T00:00:00+23:00"},
        {},
        {"text": "x", "tags": ["t" * 1_001]},
        {"text": "x", "session": "\x00"},
    ],
)
def test_a_wrong_memory_is_refused_without_its_words(api: Api, wrong: dict[str, object]) -> None:
    import json

    body = json.dumps(wrong).encode()
    headers = {"Content-Type": "application/json"}
    answer = api.ada.post("/api/memories", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert "rumour" not in answer.text
    assert "opinion" not in answer.text


def test_a_fact_takes_the_place_of_the_one_that_held(api: Api) -> None:
    said = {"subject": "Ada", "predicate": "lives in", "single": True, "agent": "facts"}
    post(
        api.ada,
        "/api/facts",
        status=201,
        **said,
        object="Munich",
        valid_from="2020-01-01T00:00:00Z",
    )
    new = post(
        api.ada,
        "/api/facts",
        status=201,
        **said,
        object="Berlin",
        valid_from="2026-03-01T00:00:00Z",
    )["id"]
    now = get(api.ada, "/api/facts", agent="facts")["items"]
    assert [(one["id"], one["object"]) for one in now] == [(new, "Berlin")]
    then = get(api.ada, "/api/facts", agent="facts", valid="2021-01-01T00:00:00Z")["items"]
    assert [one["object"] for one in then] == ["Munich"]
    assert get(api.ada, "/api/facts", agent="facts", as_of="2021-01-01T00:00:00Z")["items"] == []
    both = walk(api.ada, "/api/facts", 1, agent="facts", always=True)
    assert [one["object"] for one in both] == ["Munich", "Berlin"]
    named = get(api.ada, "/api/facts", agent="facts", subject="ADA", predicate="Lives  In")
    assert len(named["items"]) == 1
    assert get(api.ada, "/api/facts", agent="facts", subject="Eve")["items"] == []


def test_a_fact_is_changed_taken_back_and_that_is_undone(api: Api) -> None:
    id_ = post(
        api.ada,
        "/api/facts",
        status=201,
        subject="Ada",
        predicate="drives",
        object="a tram",
        agent="f2",
    )["id"]
    changed = api.ada.patch(f"/api/facts/{id_}", json={"object": "a bus"})
    new = changed.json()["id"]
    assert changed.status_code == 200
    assert new != id_
    assert api.ada.patch(f"/api/facts/{new}", json={}).status_code == 422
    assert api.ada.patch(f"/api/facts/{id_}", json={"object": "a car"}).status_code == 422
    assert post(api.ada, f"/api/facts/{new}/retract", reason="no")["known_to"] is not None
    assert get(api.ada, "/api/facts", agent="f2")["items"] == []
    assert post(api.ada, f"/api/facts/{new}/undo")["changes"]
    assert [one["object"] for one in get(api.ada, "/api/facts", agent="f2")["items"]] == ["a bus"]


def test_another_users_fact_is_as_good_as_none(api: Api) -> None:
    id_ = post(
        api.ada,
        "/api/facts",
        status=201,
        subject="Ada",
        predicate="owns",
        object="a boat",
        agent="f3",
    )["id"]
    get(api.eve, f"/api/facts/{id_}", status=404)
    post(api.eve, f"/api/facts/{id_}/retract", status=404)
    post(api.eve, f"/api/facts/{id_}/undo", status=404)
    assert api.eve.patch(f"/api/facts/{id_}", json={"object": "a raft"}).status_code == 404
    get(api.stranger, f"/api/facts/{id_}", status=404, user="ada")
    assert get(api.ada, f"/api/facts/{id_}")["object"] == "a boat"


def test_an_id_of_a_fact_is_none_of_a_memory(api: Api) -> None:
    id_ = post(
        api.ada,
        "/api/facts",
        status=201,
        subject="Ada",
        predicate="eats",
        object="figs",
        agent="f4",
    )["id"]
    get(api.ada, f"/api/memories/{id_}", status=404)
    assert api.ada.delete(f"/api/memories/{id_}").status_code == 404


@pytest.mark.parametrize("moment", ["2021-01-01T00:00:00", "soon", "0001-01-01T00:00:00+23:00"])
def test_a_moment_without_a_place_on_the_clock_is_refused(api: Api, moment: str) -> None:
    get(api.ada, "/api/facts", status=422, valid=moment)
    get(api.ada, "/api/facts", status=422, as_of=moment)


def test_what_is_not_known_is_not_taken_in_a_query(api: Api) -> None:
    get(api.ada, "/api/facts", status=422, subjekt="Ada")


def test_the_memory_behind_the_server_sees_the_same(api: Api) -> None:
    memory: Memory = api.memory
    post(api.eve, "/api/memories", status=201, text="Eve paints.", agent="m")
    assert [one.text for one in memory.memories.list(user="eve", agent="m")] == ["Eve paints."]


def test_the_database_cuts_pages_and_no_more_is_read(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(25):
        api.memory.memories.add(f"Zoe keeps bee number {number}.", user="zoe")
        api.memory.facts.add("Zoe", f"keeps hive {number}", "a bee", user="zoe")
        api.memory.session(user="zoe", id=f"hive {number}")
    read: list[int] = []

    def counted(method: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def call(*args: Any, **options: Any) -> list[Any]:
            rows = method(*args, **options)
            read.append(len(rows))
            return rows

        return call

    monkeypatch.setattr(Memories, "list", counted(Memories.list))
    monkeypatch.setattr(Facts, "list", counted(Facts.list))
    for path in ("/api/memories", "/api/facts"):
        page = get(api.admin, path, user="zoe", limit=4)
        assert (len(page["items"]), read.pop()) == (4, 5)
        ids = [item["id"] for item in walk(api.admin, path, 4, user="zoe")]
        assert len(ids) == len(set(ids)) >= 25
        assert max(read) == 5
        read.clear()
    found = walk(api.admin, "/api/facts", 2, user="zoe", predicate="keeps hive 7")
    assert [fact["predicate"] for fact in found] == ["keeps hive 7"]
    assert len(walk(api.admin, "/api/sessions", 4, user="zoe")) == 25
