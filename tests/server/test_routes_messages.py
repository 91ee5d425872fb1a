"""Messages over HTTP: added, revised, growing, followed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memorist.namespaces import Messages
from memorist.server.http import pagination
from tests.server.api import Api, an_api, get, post, walk
from tests.support.waiting import until


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with an_api(tmp_path_factory.mktemp("api")) as one:
        yield one


def begin(api: Api, text: str = "", **fields: Any) -> str:
    """A message of ada's that is to grow."""
    body = {"role": "assistant", "content": text, "unfinished": True, **fields}
    made = post(api.ada, "/api/messages", status=201, **body)
    return str(made["message_ids"][0])


def events(client: httpx.Client, id_: str, **query: Any) -> list[tuple[str, Any]]:
    """The events of a stream until its end, without heartbeats."""
    answer = client.get(f"/api/messages/{id_}/updates", params=query)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return read_events(answer.text)


def read_events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        lines = dict(
            line.split(": ", 1) for line in block.splitlines() if line[:1] not in ("", ":")
        )
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_a_message_is_read_again_as_it_was_said(api: Api) -> None:
    made = post(api.ada, "/api/messages", status=201, role="user", content="Hello", session="s1")
    one = get(api.ada, f"/api/messages/{made['message_ids'][0]}")
    assert (one["message"]["content"], one["session_id"], one["source"]) == ("Hello", "s1", "user")


@pytest.mark.parametrize("id_", ["a/b", "/", "%2F", "ü ?#&=", "x/updates", "…", "a\nb", "😀"])
def test_an_id_may_hold_anything(api: Api, id_: str) -> None:
    post(api.ada, "/api/messages", status=201, role="user", content="odd", message_id=id_)
    path = f"/api/messages/{quote(id_, safe='')}"
    assert get(api.ada, path)["message"]["message_id"] == id_
    assert get(api.ada, f"{path}/revisions")["items"] == []
    get(api.eve, path, status=404)


@pytest.mark.parametrize("id_", ["%00", "%ED%A0%80", "nobody"])
def test_an_id_that_nothing_has_is_not_found(api: Api, id_: str) -> None:
    assert api.ada.get(f"/api/messages/{id_}").status_code in (404, 422)


def test_a_revised_message_keeps_what_it_said_before(api: Api) -> None:
    made = post(api.ada, "/api/messages", status=201, role="user", content="Munic", session="s2")
    path = f"/api/messages/{made['message_ids'][0]}"
    before = get(api.ada, path)
    for text in ("Munich", "Münich", "München"):
        answer = api.ada.put(path, json={"role": "user", "content": text})
        assert answer.status_code == 200, answer.text
    now = get(api.ada, path)
    assert now["message"]["content"] == "München"
    assert now["message"]["created_at"] == before["message"]["created_at"]
    assert now["seq"] == before["seq"]
    said = [one["content"] for one in walk(api.ada, f"{path}/revisions", 2)]
    assert said == ["Munic", "Munich", "Münich"]


def test_another_users_message_cannot_be_touched(api: Api) -> None:
    id_ = begin(api, "mine", session="s3")
    path = f"/api/messages/{id_}"
    assert api.eve.put(path, json={"role": "user", "content": "hers"}).status_code == 404
    post(api.eve, f"{path}/append", status=404, text="hers", at=0)
    get(api.eve, f"{path}/revisions", status=404)
    get(api.eve, f"{path}/updates", status=404)
    get(api.stranger, path, status=404, user="ada")
    assert get(api.ada, path)["message"]["content"] == "mine"


def test_a_message_grows_until_it_is_finished(api: Api) -> None:
    id_ = begin(api, session="s4")
    path = f"/api/messages/{id_}/append"
    assert post(api.ada, path, text="I moved", at=0)["unfinished"] is True
    call = {"id": "c1", "name": "look", "arguments": "{}"}
    done = post(api.ada, path, text=" to Berlin", at=7, finish=True, tool_calls=[call])
    assert done == {"message_id": id_, "chars": 17, "unfinished": False}
    one = get(api.ada, f"/api/messages/{id_}")["message"]
    assert (one["content"], one["unfinished"]) == ("I moved to Berlin", False)
    assert one["tool_calls"][0]["name"] == "look"
    post(api.ada, path, status=409, text="!", at=17)
    post(api.ada, path, status=409, finish=True, text="!", at=17)


def test_an_append_that_is_sent_again_adds_nothing_again(api: Api) -> None:
    id_ = begin(api, session="s5")
    path = f"/api/messages/{id_}/append"
    for _ in range(2):
        assert post(api.ada, path, text="one ", at=0)["chars"] == 4
    for _ in range(2):
        assert post(api.ada, path, text="two", at=4, finish=True)["chars"] == 7
    assert get(api.ada, f"/api/messages/{id_}")["message"]["content"] == "one two"
    post(api.ada, path, status=409, text="three", at=3)
    post(api.ada, path, status=409, text="three", at=99)
    post(api.ada, path, status=422, text="three", at=2**63)


def test_an_append_says_where_it_belongs(api: Api) -> None:
    id_ = begin(api, session="s14")
    post(api.ada, f"/api/messages/{id_}/append", status=422, text="one")


def test_all_that_is_acknowledged_to_writers_at_once_is_there(api: Api) -> None:
    """Also where the words of one begin with those of another."""
    id_ = begin(api, session="s15")
    path = f"/api/messages/{id_}/append"
    texts = [letter * length for letter in "abcd" for length in (1, 2, 3, 4)]

    def write(text: str) -> list[tuple[int, str]]:
        with httpx.Client(base_url=api.url, headers=api.ada.headers, timeout=30) as client:
            told = [(at, client.post(path, json={"text": text, "at": at})) for at in range(5)]
        assert {answer.status_code for _, answer in told} <= {200, 409}
        return [(at, text) for at, answer in told if answer.status_code == 200]

    with ThreadPoolExecutor(8) as pool:
        acknowledged = [one for some in pool.map(write, texts) for one in some]
    said = get(api.ada, f"/api/messages/{id_}")["message"]["content"]
    assert acknowledged
    assert all(said[at : at + len(text)] == text for at, text in acknowledged)


def test_of_those_who_write_at_one_place_one_is_told_that_it_is_stored(api: Api) -> None:
    id_ = begin(api, session="s16")
    path = f"/api/messages/{id_}/append"

    def write(number: int) -> int:
        with httpx.Client(base_url=api.url, headers=api.ada.headers, timeout=30) as client:
            return client.post(path, json={"text": f"{number:02} ", "at": 0}).status_code

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(write, range(24)))
    assert codes == [200] + [409] * 23


def test_only_text_grows(api: Api) -> None:
    id_ = begin(api, content={"thought": "hm"}, session="s6")
    post(api.ada, f"/api/messages/{id_}/append", status=409, text="x", at=0)


def test_a_finished_message_is_told_at_once(api: Api) -> None:
    made = post(api.ada, "/api/messages", status=201, role="user", content="Hi", session="s7")
    id_ = made["message_ids"][0]
    assert events(api.ada, id_) == [
        ("text", {"text": "Hi", "at": 0}),
        ("finished", {"message_id": id_, "chars": 2}),
    ]
    assert events(api.ada, id_, at=1)[0] == ("text", {"text": "i", "at": 1})
    again = api.ada.get(f"/api/messages/{id_}/updates", headers={"Last-Event-ID": "2"})
    assert [name for name, _ in read_events(again.text)] == ["finished"]


def test_a_reader_sees_a_message_grow(api: Api) -> None:
    id_ = begin(api, session="s8")

    def write() -> None:
        with httpx.Client(base_url=api.url, headers=api.ada.headers) as client:
            for at, word in ((0, "It "), (3, "rains "), (9, "here")):
                time.sleep(0.1)
                path = f"/api/messages/{id_}/append"
                post(client, path, text=word, at=at, finish=word == "here")

    writer = threading.Thread(target=write)
    writer.start()
    found = events(api.ada, id_)
    writer.join()
    assert [name for name, _ in found][-1] == "finished"
    pieces = [data for name, data in found if name == "text"]
    assert "".join(piece["text"] for piece in pieces) == "It rains here"
    assert [piece["at"] for piece in pieces] == sorted({piece["at"] for piece in pieces})


def test_a_reader_is_told_when_nothing_comes(api: Api) -> None:
    id_ = begin(api, "half", session="s9")
    found = events(api.ada, id_, timeout_s=0.2)
    assert [name for name, _ in found] == ["text", "timeout"]
    for wrong in ("nan", "inf", "-1", "1e9"):
        get(api.ada, f"/api/messages/{id_}/updates", status=422, timeout_s=wrong)


def test_a_reader_is_told_when_the_message_is_forgotten(api: Api) -> None:
    id_ = begin(api, "half", session="s10")
    found: list[tuple[str, Any]] = []
    with api.ada.stream("GET", f"/api/messages/{id_}/updates") as stream:
        for line in stream.iter_lines():
            if line.startswith("event: text"):
                api.memory.forget(user="ada", message=id_, scrub=False)
            if line.startswith("event: "):
                found.append((line, None))
    assert [line for line, _ in found] == ["event: text", "event: gone"]


def test_following_ends_when_the_reader_leaves(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    polls: list[float] = []
    text_from = Messages.text_from

    def counted(*args: Any, **named: Any) -> Any:
        polls.append(time.monotonic())
        return text_from(*args, **named)

    monkeypatch.setattr(Messages, "text_from", counted)
    id_ = begin(api, "half", session="s11")
    with (
        httpx.Client(base_url=api.url, headers=api.ada.headers) as client,
        client.stream("GET", f"/api/messages/{id_}/updates", params={"timeout_s": 300}) as stream,
    ):
        lines = stream.iter_lines()  # kept: it closes the stream when it goes
        next(lines)
        until(lambda: len(polls) > 3)
    until(lambda: time.monotonic() - polls[-1] > 1)


def test_silence_is_filled_with_comments(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastapi.routing._PING_INTERVAL", 0.1)
    id_ = begin(api, session="s12")
    answer = api.ada.get(f"/api/messages/{id_}/updates", params={"timeout_s": 0.5})
    assert answer.text.count(": ping\n\n") >= 2
    assert answer.text.endswith('event: timeout\ndata: {"chars": 0}\n\n')


def test_pages_of_messages_hold_each_exactly_once(api: Api) -> None:
    said = [{"role": "user", "content": f"line {number}"} for number in range(7)]
    post(api.ada, "/api/messages/batch", status=201, messages=said, session="s13")
    for limit in (1, 3, 7, 8):
        found = walk(api.ada, "/api/messages", limit, session="s13")
        assert sorted(one["message"]["content"] for one in found) == [
            one["content"] for one in said
        ]


def test_a_page_ends_where_it_grows_heavy(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGE_BYTES", 10_000)
    long = ["a" * 4_000, "b" * 30_000, "c" * 4_000, "\x01" * 2_000, *"defghijklmnopqrstuvwxyz"]
    said = [{"role": "user", "content": text} for text in long]
    post(api.ada, "/api/messages/batch", status=201, messages=said, session="s17")
    sizes, found, cursor = [], list[str](), None
    while True:
        query = {"session": "s17", "limit": "500"} | ({"cursor": cursor} if cursor else {})
        answer = api.ada.get("/api/messages", params=query)
        sizes.append(len(answer.content))
        page = answer.json()
        found = [one["message"]["content"] for one in page["items"]] + found
        if (cursor := page["next"]) is None:
            break
    assert found == long
    assert [size > 30_000 for size in sizes] == [False, False, False, True, False]
    assert max(size for size in sizes if size < 30_000) < 15_000


def test_pages_of_revisions_end_where_they_grow_heavy(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGE_BYTES", 10_000)
    made = post(api.ada, "/api/messages", status=201, role="user", content="0", session="s18")
    path = f"/api/messages/{made['message_ids'][0]}"
    texts = [str(number) * 4_000 for number in range(5)]
    for text in texts:
        api.ada.put(path, json={"role": "user", "content": text}).raise_for_status()
    assert len(get(api.ada, f"{path}/revisions", limit=500)["items"]) == 3
    found = walk(api.ada, f"{path}/revisions", 500)
    assert [one["content"] for one in found] == ["0", *texts[:-1]]


def test_a_message_sent_again_with_its_id_is_stored_once_whichever_session_is_active(
    api: Api,
) -> None:
    body = {"role": "user", "content": "lost?", "agent": "crash", "message_id": "again-1"}
    first = post(api.ada, "/api/messages", status=201, **body)
    api.memory.session(user="ada", agent="crash", new=True)
    assert post(api.ada, "/api/messages", status=201, **body) == {**first, "added": 0}
    assert len(get(api.ada, "/api/messages", agent="crash")["items"]) == 1
    batch = {"agent": "crash", "messages": [{"role": "user", "content": "x", "message_id": "b1"}]}
    for added in (1, 0):
        assert post(api.ada, "/api/messages/batch", status=201, **batch)["added"] == added
    post(api.ada, "/api/messages", status=409, **{**body, "content": "other"})
