"""Who is calling, what there is, what happens, and the page's own files, over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import AsyncMemory, Memory, connect
from memorist.records.activity import Events
from memorist.server.auth import Guard
from memorist.server.chat import ChatRuntime, ChatSettings
from memorist.server.http.app import Limits, build_app
from memorist.server.http.routes.activity import EventPolls
from tests.server.api import Api, an_api, get, post, walk
from tests.server.test_chat import say
from tests.support.http_server import Served, serving

JSON = {"Accept": "application/json"}
STREAM = {"Accept": "text/event-stream"}
Told = tuple[str, str, str]  # kind, change, id


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with an_api(tmp_path) as api:
        yield api


class Follower:
    """Reads a stream of events in a thread."""

    def __init__(self, stream: httpx.Response) -> None:
        self._lines = stream.iter_lines()
        self.place = ""

    def read(self, count: int) -> list[Told]:
        """The next events."""
        told: list[Told] = []
        kind, data = "", dict[str, Any]()
        while len(told) < count:
            name, _, value = next(self._lines).partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = json.loads(value)
                assert data.keys() == {"id", "change", "at", "session"}
            elif name == "id":
                self.place = value
            elif not name and kind:
                told.append((kind, data["change"], data["id"]))
                kind = ""
        return told

    def rest(self) -> list[str]:
        """The lines up to the end."""
        return list(self._lines)


@contextmanager
def following(client: httpx.Client, after: str = "", **query: Any) -> Iterator[Follower]:
    headers = {**STREAM, **({"Last-Event-ID": after} if after else {})}
    with client.stream("GET", "/api/events", params=query, headers=headers) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in stream.headers
        follower = Follower(stream)
        if not after:
            while not follower.place:  # from here on nothing is missed
                name, _, value = next(follower._lines).partition(": ")
                follower.place = value if name == "id" else ""
        yield follower


def test_callers_are_told_who_they_are(api: Api) -> None:
    ada, admin = get(api.ada, "/api/me"), get(api.admin, "/api/me")
    assert (ada["user"], ada["tenant"], ada["admin"], ada["local"]) == (
        "ada",
        "default",
        False,
        False,
    )
    assert (admin["user"], admin["admin"]) == (None, True)
    assert get(api.stranger, "/api/me")["tenant"] == "other"
    assert (ada["model"], ada["embedder"], ada["store"]) == (None, None, "sqlite")
    assert ada["limits"] == {
        "body_bytes": 8_388_608,
        "file_bytes": 1_073_741_824,
        "requests_per_s": 0,
        "burst": 200,
    }
    assert 0 < ada["window_min_score"] < ada["min_score"] < 1
    get(api.ada, "/api/me", status=422, user="eve")


def test_the_only_user_of_a_server_is_told_so_and_which_model_answers(tmp_path: Path) -> None:
    settings = ChatSettings(window=ChatSettings().window)
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        chats = ChatRuntime(object(), settings)
        app = build_app(memory, Guard.local("default", "me"), chats=chats)
        with serving(app) as url:
            me = httpx.get(f"{url}/api/me").json()
    assert (me["user"], me["local"], me["admin"], me["model"]) == ("me", True, False, "object")


def test_an_admin_lists_the_users_of_the_tenant(api: Api) -> None:
    names = {f"user {number}" for number in range(7)}
    for name in names:
        api.memory.remember("hi", user=name)
    listed = [item["user"] for item in walk(api.admin, "/api/users", 3)]
    assert (set(listed), len(listed)) == (names, 7)
    assert walk(api.stranger, "/api/users", 3) == []
    get(api.ada, "/api/users", status=403)
    get(api.admin, "/api/users", status=422, cursor="x")


def test_counts_are_of_the_user_who_asks(api: Api) -> None:
    api.memory.remember(["hi", "ho"], user="ada")
    assert get(api.ada, "/api/counts")["messages"] == {"count": 2, "more": False}
    assert get(api.eve, "/api/counts")["messages"] == {"count": 0, "more": False}
    assert get(api.admin, "/api/counts", user="ada")["sessions"] == {"count": 1, "more": False}
    get(api.eve, "/api/counts", status=403, user="ada")


def test_events_come_whoever_makes_them_and_go_on_where_they_broke_off(
    api: Api, tmp_path: Path
) -> None:
    with following(api.ada) as follower:
        id_ = post(api.admin, "/api/messages", status=201, user="ada", role="user", content="hi")
        [message] = id_["message_ids"]
        assert follower.read(1) == [("message", "stored", message)]
        code = f"""
from memorist import Memory
with Memory({str(tmp_path / "api.db")!r}, embedder=None, extraction=None) as memory:
    print(memory.memories.add("Ada sails.", user="ada"))
    memory.memories.add("Eve sails.", user="eve")
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        memory = done.stdout.strip()
        assert follower.read(1) == [("memory", "add", memory)]
    post(api.ada, f"/api/memories/{memory}/retract")
    post(api.ada, "/api/forget", memory=memory, scrub=False)
    with following(api.ada, after=follower.place) as again:
        assert again.read(1) == [("memory", "forget", memory)]
    get(api.eve, "/api/events", status=403, user="ada")
    with following(api.eve, after="0.0") as eves:
        [(kind, change, id_of_eve)] = eves.read(1)
        assert (kind, change) == ("memory", "add")
        assert id_of_eve != memory


def test_events_of_one_agent(api: Api) -> None:
    with following(api.ada, agent="tutor") as follower:
        for agent in ("cook", "tutor"):
            api.memory.remember("hi", user="ada", agent=agent, session=agent)
        own = api.memory.memories.add("Ada sails.", user="ada", agent="tutor")
        api.memory.memories.add("Ada cooks.", user="ada", agent="cook")
        shared = api.memory.memories.add("Ada reads.", user="ada")
        [first, *others] = follower.read(3)
    assert first[:2] == ("message", "stored")
    assert others == [("memory", "add", own), ("memory", "add", shared)]


def test_events_are_read_at_once_where_only_json_is_accepted(api: Api) -> None:
    place = api.ada.get("/api/events", headers=JSON).json()["place"]
    api.memory.remember("hi", user="ada", session="s")
    told = api.ada.get("/api/events", headers=JSON, params={"after": place}).json()
    [event] = told["items"]
    assert (event["kind"], event["change"], event["session"]) == ("message", "stored", "s")
    assert event["place"] == told["place"]
    for wrong in ("x", "1", "1.x"):
        get(api.ada, "/api/events", status=422, after=wrong)
    assert api.ada.get("/api/events", headers={"Last-Event-ID": "x"}).status_code == 422


def test_a_stream_ends_when_its_time_is_over_and_when_the_server_stops(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None, extraction=None) as memory:
        app = build_app(memory, Guard.local("default", "ada"), Limits(requests_per_s=0))
        ended = threading.Event()

        def follow(url: str) -> None:
            with httpx.Client(base_url=url, timeout=60) as client, following(client) as follower:
                begun.set()
                follower.rest()
                ended.set()

        with serving(app) as url:
            with httpx.Client(base_url=url) as client, following(client, timeout_s=0.1) as short:
                assert not [line for line in short.rest() if line.startswith("event")]
            begun = threading.Event()
            thread = threading.Thread(target=follow, args=[url])
            thread.start()
            assert begun.wait(30)
            inner: Any = app
            while not hasattr(inner, "state"):  # from the outermost middleware to the routes
                inner = inner._app
            inner.state.stopping.set()  # as a signal does
            assert ended.wait(30)
            thread.join()


def test_however_many_follow_a_user_is_polled_for_once() -> None:
    reads: list[int] = []

    def read() -> Events:
        reads.append(1)
        return Events(items=(), place="1.1")

    async def run() -> None:
        polls = EventPolls()
        for number in (1, 2):
            waiting = [polls.next_place("ada", read) for _ in range(20)]
            assert set(await asyncio.gather(*waiting)) == {"1.1"}
            assert len(reads) == number
        await asyncio.gather(polls.next_place("ada", read), polls.next_place("eve", read))
        assert len(reads) == 4

    asyncio.run(run())


def test_streams_leave_room_for_other_requests(api: Api) -> None:
    def follow(number: int) -> list[Told]:
        with (
            httpx.Client(base_url=api.url, headers=api.ada.headers, timeout=60) as client,
            following(client) as follower,
        ):
            ready.wait(30)
            return follower.read(1)

    ready = threading.Barrier(41)
    with ThreadPoolExecutor(40) as threads:
        told = threads.map(follow, range(40))  # more than the 16 requests that a user has at once
        ready.wait(30)
        said = post(api.ada, "/api/messages", status=201, role="user", content="hi")
        assert {tuple(it) for it in told} == {(("message", "stored", said["message_ids"][0]),)}


def test_turns_of_a_chat_leave_receipts(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None, extraction=None) as memory:
        chats = ChatRuntime(settings=ChatSettings(deadline_ms=None))
        app = build_app(memory, Guard(memory.keys), Limits(requests_per_s=0), chats=chats)
        with serving(app) as url, Served(url, memory).clients as clients:
            server = Served(url, memory, clients)
            ada, eve = server.client("ada"), server.client("eve")
            bike = say(ada, "My bike is in the cellar.")
            told = say(ada, "Where is my bike?")
            other = say(ada, "Where is my bike?", agent_id="tutor")
            assert len(walk(ada, "/api/receipts", 2)) == 3
            [newest, oldest] = walk(ada, "/api/receipts", 1, session=told["session_id"])
            assert (newest["asked_id"], newest["message_id"]) == (told["asked_id"], None)
            assert newest["receipt"] == {
                name: value for name, value in told["receipt"].items() if name != "compression"
            }
            [hit] = told["memory"]["hits"]
            assert newest["recalled"] == [
                {"kind": "message", "id": bike["asked_id"], "score": hit["score"]}
            ]
            assert "cellar" not in json.dumps(newest)
            path = f"/api/receipts/{newest['id']}"
            assert get(ada, path) == newest
            assert oldest["recalled"] == []
            get(eve, path, status=404)
            assert get(eve, "/api/receipts") == {"items": [], "next": None}
            get(eve, path, status=403, user="ada")
            post(ada, "/api/forget", session=other["session_id"], scrub=False)
            assert len(walk(ada, "/api/receipts", 9)) == 2
            post(ada, "/api/forget", message=bike["asked_id"], scrub=False)
            assert walk(ada, "/api/receipts", 9) == []


def test_a_client_reads_the_same(api: Api) -> None:
    key = api.ada.headers["Authorization"].split()[1]
    with connect(api.url, key=key) as ada:
        place = ada.events(user="ada").place
        chat = ada.session(user="ada", agent="tutor")
        chat.add("user", "hi")
        here, there = (it.events(user="ada", after=place) for it in (api.memory, ada))
        assert here == there
        assert [event.kind for event in there.items] == ["message"]
        assert ada.counts(user="ada") == api.memory.counts(user="ada")
        say(api.ada, "Where is my bike?")
        kept = api.memory.receipts(user="ada")
        assert ada.receipts(user="ada") == kept
        assert ada.receipts(user="ada", session=kept[0].session_id, limit=1) == kept[:1]
        assert ada.receipts(user="ada", id=kept[0].id) == kept
        assert ada.receipts(user="ada", after=(kept[0].created_at, kept[0].id)) == []

        async def ask() -> None:
            remote = AsyncMemory.of(ada)
            assert await remote.counts(user="ada") == api.memory.counts(user="ada")
            assert (await remote.events(user="ada", after=place)).items
            assert await remote.receipts(user="ada") == kept

        asyncio.run(ask())
    with connect(api.url, key=api.admin.headers["Authorization"].split()[1]) as admin:
        api.memory.remember("hi", user="eve")
        users = admin.users()
        assert users == api.memory.users()
        assert admin.users(limit=1) == users[:1]
        assert admin.users(after=users[0]) == users[1:]


def test_the_page_loads_without_a_key_and_its_files_are_what_they_are(api: Api) -> None:
    with httpx.Client(base_url=api.url) as nobody:
        look_at_the_page(nobody)


def look_at_the_page(nobody: httpx.Client) -> None:
    page = nobody.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    for rule in ("default-src 'self'", "connect-src 'self'", "img-src 'self' data:"):
        assert rule in policy
    assert nobody.get("/api/me").status_code == 401
    script = nobody.get("/web/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["content-encoding"] == "gzip"
    assert script.headers["cache-control"] == "no-cache"
    assert nobody.get("/web/style.css").headers["content-type"].startswith("text/css")
    again = {"If-None-Match": script.headers["etag"]}
    assert nobody.get("/web/app.js", headers=again).status_code == 304
    assert nobody.get("/web/nothing.js").status_code == 404
    assert nobody.get("/web/").status_code == 404
