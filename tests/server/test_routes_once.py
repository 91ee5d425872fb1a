"""Requests that are sent again under their Idempotency-Key do nothing again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist.agents.langgraph import MemoristStore
from memorist.records.entry import Namespaces, Search
from memorist.server.http import idempotency as once
from tests.server.api import Api, an_api, get, post


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with an_api(tmp_path_factory.mktemp("api")) as one:
        yield one


def keyed(
    client: httpx.Client, path: str, key: str, body: dict[str, Any], status: int = 201
) -> httpx.Response:
    answer = client.post(path, json=body, headers={"Idempotency-Key": key})
    assert answer.status_code == status, answer.text
    return answer


MESSAGES = {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}]}
FACT = {"subject": "Ada", "predicate": "likes", "object": "figs"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/messages", {"role": "user", "content": "I like figs."}),
        ("/api/messages/batch", MESSAGES),
        ("/api/memories", {"text": "Ada likes figs."}),
        ("/api/facts", FACT),
        ("/api/articles", {"title": "Figs", "text": "Figs are sweet."}),
        ("/api/holds", {"reason": "case 1"}),
    ],
)
def test_what_is_sent_again_gets_the_same_answer(api: Api, path: str, body: dict[str, Any]) -> None:
    first = keyed(api.ada, path, f"key of {path}", body)
    again = keyed(api.ada, path, f"key of {path}", body)
    assert again.json() == first.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = keyed(api.ada, path, f"another of {path}", body)
    assert "idempotency-replayed" not in other.headers


def test_a_message_that_is_sent_again_is_stored_once(api: Api) -> None:
    body = {**MESSAGES, "session": "once"}
    for _ in range(3):
        keyed(api.ada, "/api/messages/batch", "k1", body)
    assert len(get(api.ada, "/api/messages", session="once")["items"]) == 2


def test_a_message_is_stored_once_also_where_no_answer_was_kept(api: Api) -> None:
    """As after a crash between the two, and though another session is the active one by then."""
    body = {"role": "user", "content": "lost?", "agent": "crash"}
    first = keyed(api.ada, "/api/messages", "k2", body).json()
    once.drop_answers(api.memory, api.memory.scope(user="ada"))
    api.memory.session(user="ada", agent="crash", new=True)
    again = keyed(api.ada, "/api/messages", "k2", body)
    assert "idempotency-replayed" not in again.headers
    assert again.json() == {**first, "added": 0}
    assert len(get(api.ada, "/api/messages", agent="crash")["items"]) == 1


def test_another_server_knows_what_was_answered(tmp_path: Path) -> None:
    body = {"role": "user", "content": "to whom?"}
    with an_api(tmp_path) as one, an_api(tmp_path) as other:
        first = keyed(one.ada, "/api/messages", "k11", body)
        again = keyed(other.ada, "/api/messages", "k11", body)
        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"
        assert len(get(one.ada, "/api/messages")["items"]) == 1


def test_a_hold_is_placed_once_also_where_no_answer_was_kept(api: Api) -> None:
    body = {"reason": "case 7"}
    first = keyed(api.eve, "/api/holds", "k3", body).json()
    once.drop_answers(api.memory, api.memory.scope(user="eve"))
    assert keyed(api.eve, "/api/holds", "k3", body).json()["id"] == first["id"]
    assert len(get(api.eve, "/api/holds")["items"]) == 1


def test_a_key_is_good_for_one_request(api: Api) -> None:
    keyed(api.ada, "/api/memories", "k4", {"text": "Ada skis."})
    other = keyed(api.ada, "/api/memories", "k4", {"text": "Ada swims."}, 422)
    assert other.json()["code"] == "idempotency"
    keyed(api.ada, "/api/facts", "k4", FACT, 422)


def test_a_key_is_the_users_own(api: Api) -> None:
    body = {"role": "user", "content": "same words"}
    first = keyed(api.ada, "/api/messages", "k5", body).json()
    other = keyed(api.eve, "/api/messages", "k5", body).json()
    assert other["message_ids"] != first["message_ids"]
    assert get(api.eve, f"/api/messages/{other['message_ids'][0]}")["session_id"]


def test_an_error_is_not_kept(api: Api) -> None:
    keyed(api.ada, "/api/memories", "k6", {"text": " "}, 422)
    keyed(api.ada, "/api/memories", "k6", {"text": "Ada skates."})


@pytest.mark.parametrize("key", [b"", b"a" * 256, b"caf\xc3\xa9", b"a\tb", b"\x7f"])
def test_a_key_that_is_not_plain_is_refused(api: Api, key: bytes) -> None:
    headers = {b"Idempotency-Key": key, b"Content-Type": b"application/json"}
    answer = api.ada.post("/api/memories", content=b'{"text": "x"}', headers=headers)
    assert answer.status_code == 422, answer.text


def test_requests_in_flight_wait_for_the_first(api: Api) -> None:
    body = {"text": "Ada climbs in winter."}
    answers: list[httpx.Response] = []

    def send() -> None:
        with httpx.Client(base_url=api.url, headers=api.ada.headers) as client:
            answers.append(keyed(client, "/api/memories", "k7", body))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert not once._going


def test_kept_answers_are_not_among_what_a_user_or_a_graph_has(api: Api) -> None:
    keyed(api.ada, "/api/memories", "k8", {"text": "Ada dives."})
    assert MemoristStore(api.memory).list_namespaces() == []
    assert MemoristStore(api.memory, user="ada").search(()) == []
    scope = api.memory.scope(user="ada")
    assert api.memory.store.exchange(scope, [Namespaces()]) == [[]]


def test_forgetting_forgets_the_answers_too(api: Api) -> None:
    keyed(api.eve, "/api/messages", "k9", {"role": "user", "content": "x", "session": "diary"})
    post(api.eve, "/api/forget", session="diary")
    home = once.home("default")
    owner = api.memory.scope(user="eve").owner
    assert api.memory.store.exchange(home, [Search(prefix=(owner,))]) == [[]]
    again = {"role": "user", "content": "y"}
    keyed(api.eve, "/api/messages", "k9", again)


def test_forgetting_one_memory_forgets_the_answers_too(api: Api) -> None:
    body = {"text": "Eve paints in oil."}
    kept = keyed(api.eve, "/api/memories", "k12", body).json()["id"]
    assert api.eve.delete(f"/api/memories/{kept}").status_code == 200
    again = keyed(api.eve, "/api/memories", "k12", body)
    assert "idempotency-replayed" not in again.headers
    assert get(api.eve, f"/api/memories/{again.json()['id']}")["text"] == body["text"]


def test_what_is_kept_of_an_answer_is_nobodys_words(api: Api) -> None:
    said = {"role": "user", "content": "canary", "session": "cage"}
    keyed(api.ada, "/api/messages", "k13", said)
    keyed(api.ada, "/api/holds", "k14", {"reason": "canary", "target": "canary"})
    keyed(api.ada, "/api/memories", "k15", {"text": "The canary sings."})
    keyed(api.ada, "/api/articles", "k16", {"title": "canary", "text": "canary"})
    keyed(api.ada, "/api/facts", "k17", {**FACT, "object": "canary"})
    [found] = api.memory.store.exchange(once.home("default"), [Search(limit=None)])
    assert len(found) >= 5
    assert "canary" not in str(found)


def test_an_answer_is_kept_for_a_day(api: Api) -> None:
    keyed(api.ada, "/api/memories", "k10", {"text": "Ada hikes."})
    [found] = api.memory.store.exchange(once.home("default"), [Search(limit=None)])
    assert found
    for entry in found:
        assert not isinstance(entry, str | tuple)
        assert entry.expires_at is not None
        assert entry.expires_at - entry.updated_at == timedelta(hours=24)
