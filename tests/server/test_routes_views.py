"""Notes, articles, contexts, jobs, upkeep and keys over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.errors import ScopeError
from memorist.library import Library
from memorist.records.log import MAX_ATTEMPTS
from memorist.records.scope import ApiKey
from memorist.records.values import now
from memorist.server.auth import Keys, digest_of
from tests.server.api import Api, an_api, get, post, walk


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with an_api(tmp_path_factory.mktemp("api")) as one:
        yield one


def put_notes(client: httpx.Client, status: int = 200, **body: Any) -> Any:
    answer = client.put("/api/notes", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_notes_are_written_for_the_version_they_were_made_of(api: Api) -> None:
    assert get(api.ada, "/api/notes", agent="n1")["version"] == 0
    assert put_notes(api.ada, agent="n1", text="one", base_version=0)["version"] == 1
    assert put_notes(api.ada, agent="n1", text="two", base_version=1)["version"] == 2
    problem = put_notes(api.ada, 409, agent="n1", text="three", base_version=1)
    assert problem["code"] == "conflict"
    put_notes(api.ada, 422, agent="n1", text="three")
    assert get(api.ada, "/api/notes", agent="n1")["text"] == "two"
    assert get(api.ada, "/api/notes", agent="n1", version=1)["text"] == "one"
    get(api.ada, "/api/notes", status=404, agent="n1", version=3)
    get(api.ada, "/api/notes", status=422, agent="n1", version=2**40)


def test_versions_of_notes_are_listed_and_restored(api: Api) -> None:
    for number in range(5):
        put_notes(api.ada, agent="n3", text=f"text {number}", base_version=number)
    found = walk(api.ada, "/api/notes/versions", 2, agent="n3")
    assert [one["version"] for one in found] == [5, 4, 3, 2, 1]
    assert post(api.ada, "/api/notes/restore", agent="n3", version=2)["text"] == "text 1"
    assert get(api.ada, "/api/notes", agent="n3")["version"] == 6
    post(api.ada, "/api/notes/restore", status=404, agent="n3", version=99)


def test_notes_are_managed_as_by_the_tool(api: Api) -> None:
    made = post(api.ada, "/api/notes/manage", agent="n4", operation="append", content="## A\nx")
    assert made["version"] == 1
    replace: dict[str, Any] = {
        "operation": "replace_section_by_header",
        "section_header": "A",
        "content": "y",
    }
    assert post(api.ada, "/api/notes/manage", agent="n4", **replace)["version"] == 2
    assert post(api.ada, "/api/notes/manage", agent="n4")["result"] == "## A\ny"
    post(api.ada, "/api/notes/manage", status=422, agent="n4", operation="shred")
    post(api.ada, "/api/notes/manage", status=422, agent="n4", operation="append")


def test_another_user_has_other_notes(api: Api) -> None:
    put_notes(api.ada, agent="n5", text="secret", base_version=0)
    assert get(api.eve, "/api/notes", agent="n5")["version"] == 0
    assert get(api.eve, "/api/notes/versions", agent="n5")["items"] == []
    post(api.eve, "/api/notes/restore", status=404, agent="n5", version=1)
    get(api.stranger, "/api/notes", agent="n5", user="ada", version=1, status=404)


RETURNS = "# Returns\n\nYou may return a kettle within thirty days."


def test_an_article_is_stored_found_and_removed(api: Api) -> None:
    made = post(api.ada, "/api/articles", status=201, title="Returns", text=RETURNS, uri="r.md")
    assert made["change"] == "added"
    assert get(api.ada, f"/api/articles/{made['id']}")["text"] == RETURNS
    [card] = get(api.ada, "/api/articles")["items"]
    assert card["chars"] == len(RETURNS)
    assert "text" not in card
    found = post(api.ada, "/api/articles/retrieve", query="return a kettle", window=4_000)
    assert found["found"][0]["citation"].startswith("Returns")
    assert found["tokens"] == found["found"][0]["article"]["tokens"]
    get(api.eve, f"/api/articles/{made['id']}", status=404)
    assert api.eve.delete(f"/api/articles/{made['id']}").status_code == 404
    assert post(api.eve, "/api/articles/retrieve", query="kettle")["found"] == []
    get(api.stranger, f"/api/articles/{made['id']}", status=404, user="ada")
    assert api.ada.delete(f"/api/articles/{made['id']}").json()["counts"]["articles"] == 1
    assert get(api.ada, "/api/articles")["items"] == []


def test_a_shared_shelf_is_read_by_all_and_written_by_an_admin(api: Api) -> None:
    body = {"title": "Rules", "text": "No kettles on the roof.", "shelf": "handbook"}
    post(api.ada, "/api/articles", status=403, **body)
    made = post(api.admin, "/api/articles", status=201, **body)
    assert Library(api.memory, "handbook").get(made["id"]).title == "Rules"
    for client in (api.ada, api.eve):
        assert get(client, f"/api/articles/{made['id']}", shelf="handbook")["title"] == "Rules"
        get(client, f"/api/articles/{made['id']}", status=404)
    assert get(api.stranger, "/api/articles", shelf="handbook")["items"] == []
    gone = api.eve.delete(f"/api/articles/{made['id']}", params={"shelf": "handbook"})
    assert gone.status_code == 403
    get(api.ada, "/api/articles", status=403, shelf="handbook", user="eve")


def test_cursors_walk_through_all_articles_exactly_once(api: Api) -> None:
    ids = {
        post(
            api.ada,
            "/api/articles",
            status=201,
            title="T",
            text=f"text {n}",
            agent="lib",
            uri="u" * 3_000 + str(n),
        )["id"]
        for n in range(5)
    }
    found = [one["id"] for one in walk(api.ada, "/api/articles", 2, agent="lib")]
    assert sorted(found) == sorted(ids)


def test_a_context_holds_what_is_remembered_and_a_receipt(api: Api) -> None:
    post(api.ada, "/api/messages", status=201, role="user", content="I keep bees.", session="c1")
    made = post(
        api.ada,
        "/api/context",
        question="What do I keep?",
        session="c1",
        max_tokens=2_000,
        system="Be kind.",
        tools=[{"type": "function", "function": {"name": "t"}}],
        library=True,
    )
    assert made["messages"][0]["content"].startswith("Be kind.")
    assert "I keep bees." in str(made["messages"])
    receipt = made["receipt"]
    assert receipt["window"] == 2_000
    assert receipt["used"] == sum(part["tokens"] for part in receipt["parts"])
    assert receipt["left"] == 2_000 - 250 - receipt["used"]  # an eighth is for the answer
    assert made["tools"][0]["function"]["name"] == "t"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 2**64},
        {"max_tokens": 0},
        {"images": ["/etc/passwd"]},
        {"notes": 2},
        {"images": ["http://127.0.0.1/x.png"]},
        {"deadline_ms": 0},
        {"max_tokens": 1},
        {"answer_tokens": 9_000},
        {"question": "\x00"},
        {"tools": [7]},
        {"keep_last": -1},
    ],
)
def test_a_window_that_cannot_be_is_refused(api: Api, wrong: dict[str, Any]) -> None:
    post(api.ada, "/api/context", status=422, **{"question": "Who am I?", **wrong})


def test_a_session_is_summed_up_when_asked(api: Api) -> None:
    said = [{"role": "user", "content": f"On day {n} I saw {n} herons fly."} for n in range(12)]
    post(api.ada, "/api/messages/batch", status=201, messages=said, session="c2")
    made = post(api.ada, "/api/compress", session="c2", keep_last=4)
    assert made["summary"]["messages"] == 8
    assert made["summary"]["made_by"] == "extractive"
    assert post(api.ada, "/api/compress", session="c2", keep_last=4) is None
    [summary] = walk(api.ada, "/api/summaries", 1, session="c2")
    assert summary["id"] == made["summary"]["id"]
    assert get(api.eve, "/api/summaries", session="c2")["items"] == []
    assert post(api.eve, "/api/compress", session="c2") is None


def test_jobs_that_were_given_up_get_another_life(tmp_path: Path) -> None:
    later = [timedelta()]
    with an_api(tmp_path, clock=lambda: now() + later[0]) as api:
        for n in range(3):
            post(api.eve, "/api/messages", status=201, role="user", content="x", session=f"j{n}")
        waiting = walk(api.eve, "/api/jobs", 1)
        assert len(waiting) == 3
        assert not any(job["dead"] for job in waiting)
        for _ in range(MAX_ATTEMPTS):
            later[0] += timedelta(days=1)
            api.memory.store.fail(api.memory.store.claim()[0], "no model")
        [dead] = get(api.eve, "/api/jobs", dead=True)["items"]
        assert dead["error"] == "no model"
        post(api.ada, f"/api/jobs/{dead['id']}/retry", status=404)
        post(api.eve, f"/api/jobs/{dead['id']}/retry", status=204)
        assert get(api.eve, "/api/jobs", dead=True)["items"] == []
        post(api.eve, f"/api/jobs/{2**64}/retry", status=422)
        post(api.eve, "/api/jobs/x/retry", status=422)


def test_what_waits_is_told_to_those_whose_it_is(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        post(api.eve, "/api/messages", status=201, role="user", content="x", session="a")
        for n in range(2):
            post(api.ada, "/api/messages", status=201, role="user", content="x", session=f"b{n}")
        asked: list[tuple[httpx.Client, dict[str, Any], int]] = [
            (api.eve, {}, 1),
            (api.ada, {}, 2),
            (api.admin, {}, 3),
            (api.admin, {"user": "ada"}, 2),
            (api.stranger, {"user": "ada"}, 0),
        ]
        for client, query, wanted in asked:
            told = get(client, "/api/waiting", **query)["waiting"]
            others = dict.fromkeys(("vectors", "derive", "summarize", "rebuild", "dead"), 0)
            assert told == {"embed": wanted, **others}
        get(api.eve, "/api/waiting", status=403, user="ada")
        assert httpx.get(f"{api.url}/ready").json() == {"status": "ready"}


def test_everybody_rebuilds_their_own_and_an_admin_all(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        said = {"role": "user", "content": "x", "session": "s"}
        post(api.eve, "/api/messages", status=201, **said)
        post(api.ada, "/api/messages", status=201, **said)
        post(api.stranger, "/api/messages", status=201, user="zoe", **said)
        assert post(api.eve, "/api/rebuild", status=202)["waiting"]["rebuild"] == 1
        post(api.eve, "/api/rebuild", status=403, user="ada")
        assert get(api.ada, "/api/waiting")["waiting"]["rebuild"] == 0
        assert post(api.admin, "/api/rebuild", status=202)["waiting"]["rebuild"] == 2
        assert get(api.stranger, "/api/waiting", user="zoe")["waiting"]["rebuild"] == 0


@pytest.mark.parametrize("room", ["library", "once", "store"])
def test_no_tenant_is_anothers_shelf(api: Api, room: str) -> None:
    post(api.admin, "/api/articles", status=201, title="T", text=f"of {room}", shelf="handbook")
    keys = Keys(api.memory.keys)
    with pytest.raises(ScopeError):
        keys.create(tenant=f"default/{room}", user="handbook")
    with pytest.raises(ScopeError):
        api.memory.tenant(f"default/{room}")
    with pytest.raises(ScopeError):
        Memory(api.memory.store, tenant=f"default/{room}", embedder=None, extraction=None)
    id_ = f"{len(room):016x}"
    old = f"mk_{id_}_{'A' * 43}"  # as it may have been made before
    record = ApiKey(id=id_, tenant=f"default/{room}", user="handbook", digest=digest_of(old))
    api.memory.store.put_key(record)
    assert not works(api, old)
    assert get(api.ada, "/api/articles", shelf="handbook")["items"]


def test_an_audit_and_maintenance_are_asked_for(api: Api) -> None:
    post(api.ada, "/api/memories", status=201, text="ok", agent="u1")
    found = get(api.ada, "/api/audit", agent="u1")
    assert found["memories"] == 1
    assert found["findings"]
    assert "ok" not in [piece for one in found["findings"] for piece in one["evidence"]]
    told = post(api.ada, "/api/maintain", agent="u1", dry_run=True)
    assert told["dry_run"] is True
    assert post(api.ada, "/api/maintain", agent="u1")["dry_run"] is False


def test_forgetting_is_told_what_and_counts_it(api: Api) -> None:
    one = post(api.ada, "/api/messages", status=201, role="user", content="x", session="f1")
    post(api.ada, "/api/messages", status=201, role="user", content="y", session="f1")
    id_ = one["message_ids"][0]
    post(api.eve, "/api/forget", status=404, message=id_)
    assert post(api.eve, "/api/forget", session="f1")["counts"] == {}
    assert post(api.ada, "/api/forget", message=id_)["counts"]["messages"] == 1
    assert post(api.ada, "/api/forget", session="f1", scrub=False)["counts"]["messages"] == 1
    get(api.ada, f"/api/messages/{id_}", status=404)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"session": None},
        {"message": None},
        {"everything": False},
        {"agent": None},
        {"everything": True, "session": "s"},
        {"source": "rumour"},
        {"sesion": "s"},
        {"user": "eve", "everything": True},
    ],
)
def test_a_slip_never_empties_a_memory(api: Api, wrong: dict[str, Any]) -> None:
    post(api.ada, "/api/messages", status=201, role="user", content="stays", session="f2")
    answer = api.ada.post("/api/forget", json=wrong)
    assert answer.status_code in (403, 422)
    assert get(api.ada, "/api/messages", session="f2")["items"]


def test_everything_of_a_user_goes_where_that_is_said(api: Api) -> None:
    post(api.admin, "/api/messages", status=201, role="user", content="x", user="zoe")
    post(api.admin, "/api/forget", status=422, everything=True)
    gone = post(api.admin, "/api/forget", user="zoe", everything=True)
    assert gone["counts"]["users"] == 1
    assert get(api.admin, "/api/messages", user="zoe")["items"] == []


def test_keys_are_made_shown_once_rotated_and_revoked(api: Api) -> None:
    made = post(api.admin, "/api/keys", status=201, user="ada", label="phone", lifetime_days=1)
    assert made["key"].startswith("mk_")
    assert made["info"]["expires_at"]
    listed = walk(api.admin, "/api/keys", 2)
    assert made["info"] in listed
    assert made["key"] not in str(listed)
    assert "digest" not in str(listed)
    new = post(api.admin, f"/api/keys/{made['info']['id']}/rotate", status=201, grace_s=0)
    assert works(api, new["key"])
    assert not works(api, made["key"])
    assert api.admin.delete(f"/api/keys/{new['info']['id']}").status_code == 204
    assert not works(api, new["key"])
    post(api.admin, f"/api/keys/{new['info']['id']}/rotate", status=409)
    post(api.admin, "/api/keys", status=422, user="x", lifetime_days=10**9)


def works(api: Api, key: str) -> bool:
    answer = httpx.get(f"{api.url}/api/sessions", headers={"Authorization": f"Bearer {key}"})
    return answer.status_code == 200


def test_keys_are_for_admins_of_their_own_tenant(api: Api) -> None:
    made = post(api.admin, "/api/keys", status=201, user="ada")["info"]["id"]
    for client in (api.ada, api.eve):
        get(client, "/api/keys", status=403)
        post(client, "/api/keys", status=403, admin=True)
        assert client.delete(f"/api/keys/{made}").status_code == 403
        post(client, f"/api/keys/{made}/rotate", status=403)
    post(api.admin, "/api/keys", status=422)  # nobody becomes an admin by an omission
    post(api.admin, "/api/keys", status=422, admin=True, user="ada")
    assert post(api.admin, "/api/keys", status=201, admin=True)["info"]["user"] is None
    assert made not in str(get(api.stranger, "/api/keys"))
    assert api.stranger.delete(f"/api/keys/{made}").status_code == 404
    post(api.stranger, f"/api/keys/{made}/rotate", status=404)


def test_an_unknown_kind_of_read_is_refused_without_its_words(api: Api) -> None:
    for op in ("SECRET", "SECRET\n'x'"):
        answer = api.ada.post("/api/entries/batch", json={"asks": [{"op": op}]})
        assert answer.status_code == 422
        assert "SECRET" not in answer.text
        assert "'search'" in answer.json()["detail"]
