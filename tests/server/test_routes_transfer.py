"""Archives and files of other programs over HTTP, and with the client."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from memorist import AsyncMemory, Memory, connect
from memorist.errors import ForbiddenError, RecordError, TooLargeError
from memorist.server.auth import Guard, Keys
from memorist.server.http.app import Limits, build_app
from memorist.server.http.routes.transfer import Tell, events_of
from tests.server.api import Api, an_api
from tests.support.http_server import serving

EXPORT = Path(__file__).parent.parent / "data/exports/chatgpt/conversations.json"
JSON = {"Accept": "application/json", "Content-Type": "application/octet-stream"}
STREAM = {"Accept": "text/event-stream", "Content-Type": "application/octet-stream"}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with an_api(tmp_path) as api:
        yield api


def sent(client: httpx.Client, path: str, file: bytes, **query: Any) -> Any:
    """The report on a file."""
    answer = client.post(f"/api/{path}", params=query, content=file, headers=JSON)
    assert answer.status_code == 200, answer.text
    return answer.json()


def streamed(client: httpx.Client, path: str, file: bytes, **query: Any) -> list[tuple[str, Any]]:
    """The events of the answer to a file."""
    answer = client.post(f"/api/{path}", params=query, content=file, headers=STREAM)
    assert answer.status_code == 200, answer.text
    blocks = [
        dict(it.split(": ", 1) for it in block.splitlines())
        for block in answer.text.split("\n\n")
        if block
    ]
    return [(it["event"], json.loads(it["data"])) for it in blocks if "event" in it]


def texts(memory: Memory, user: str) -> list[str]:
    return [
        it.text
        for session in memory.sessions(user=user)
        for it in memory.history(user=user, session=session.id)
    ]


def test_a_file_is_looked_at_and_comes_in_once(api: Api) -> None:
    file = EXPORT.read_bytes()
    looked = sent(api.ada, "import", file, filename=EXPORT.name, dry_run=True)
    assert (looked["format"], looked["dry_run"], looked["added"]) == ("chatgpt", True, {})
    assert looked["found"]["messages"] > 1
    assert texts(api.memory, "ada") == []

    events = streamed(api.ada, "import", file, filename=EXPORT.name)
    assert {name for name, _ in events[:-1]} == {"progress"}
    assert {data["doing"] for _, data in events[:-1]} == {"reading", "writing"}
    name, report = events[-1]
    assert (name, report["added"]) == ("report", looked["found"])
    came = texts(api.memory, "ada")
    assert len(came) == report["added"]["messages"]

    again = sent(api.ada, "import", gzip.compress(file), filename="../../conversations.json.gz")
    assert (again["added"]["messages"], again["known"]["messages"]) == (0, len(came))
    assert texts(api.memory, "ada") == came
    assert texts(api.memory, "eve") == []


def test_what_is_no_export_is_refused_and_stores_nothing(api: Api) -> None:
    whole = EXPORT.read_bytes()
    for file, query, code in (
        (whole[: len(whole) // 2], {"filename": EXPORT.name}, "record"),
        (b"\x00\x01", {}, "record"),
        (whole, {"format": "nothing"}, "invalid"),
    ):
        [*_, (name, problem)] = streamed(api.ada, "import", file, **query)
        assert (name, problem["status"], problem["code"]) == ("error", 422, code)
        answer = api.ada.post("/api/import", params=query, content=file, headers=JSON)
        assert (answer.status_code, answer.json()["detail"]) == (422, problem["detail"])
    assert texts(api.memory, "ada") == []
    wrong = api.ada.post("/api/import", json={})
    assert (wrong.status_code, wrong.json()["code"]) == (415, "not_a_file")
    others: dict[str, Any] = {"filename": "x", "one_user": False}
    assert (
        api.ada.post("/api/import", params=others, content=b"[]", headers=JSON).status_code == 403
    )
    assert api.ada.post("/api/messages", content=b"{}", headers=JSON).status_code == 415


def test_a_file_has_a_limit_of_its_own(tmp_path: Path) -> None:
    limits = Limits(requests_per_s=0, body_bytes=1_000, file_bytes=20_000)
    with Memory(tmp_path / "m.db", embedder=None, extraction=None) as memory:
        app = build_app(memory, Guard.local("default", "ada"), limits)
        with serving(app) as url, httpx.Client(base_url=url) as client:
            many = b"".join(b'{"role": "user", "content": "line %d"}\n' % n for n in range(200))
            assert sent(client, "import", many, filename="chat.jsonl", format="openai_jsonl")[
                "added"
            ]
            for body in (b"x" * 20_001, iter([b"x" * 15_000, b"x" * 15_000])):
                answer = client.post("/api/import", content=body, headers=JSON)
                assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
            with connect(url) as remote, pytest.raises(TooLargeError):
                remote.restore([b"x" * 15_000, b"x" * 15_000])


def test_who_hangs_up_stops_the_work() -> None:
    stopped = threading.Event()

    def work(path: Path, tell: Tell) -> None:
        try:
            while True:
                tell("reading", 1, 2)
        finally:
            stopped.set()

    async def run(folder: TemporaryDirectory[str]) -> None:
        events = events_of(folder, Path(folder.name) / "file", work)
        assert (await anext(events))[0] == "progress"
        await events.aclose()
        assert await asyncio.to_thread(stopped.wait, 60)

    asyncio.run(run(folder := TemporaryDirectory()))  # waits for the thread, too
    assert not Path(folder.name).exists()


def test_an_archive_goes_out_and_in_over_http(api: Api, tmp_path: Path) -> None:
    api.memory.remember("I moved to Berlin in March.", user="ada")
    api.memory.facts.add("user", "likes", "tea", user="ada")
    api.memory.remember("Mine alone.", user="eve")
    answer = api.ada.get("/api/export")
    assert answer.headers["content-type"] == "application/gzip"
    assert answer.headers["content-disposition"].startswith('attachment; filename="memorist-ada-20')
    assert b"Mine alone" not in gzip.decompress(answer.content)

    # For another user, and twice.
    assert sent(api.eve, "restore", answer.content)["added"]["message"] == 1
    assert sorted(texts(api.memory, "eve")) == ["I moved to Berlin in March.", "Mine alone."]
    assert sent(api.eve, "restore", answer.content)["added"] == {}
    cut = api.eve.post("/api/restore", content=answer.content[:-20], headers=JSON)
    assert (cut.status_code, cut.json()["code"]) == (422, "record")

    # Of everybody, for admins alone.
    everybody = api.admin.get("/api/export").content
    assert b"Mine alone" in gzip.decompress(everybody)
    assert api.ada.get("/api/export", params={"user": "eve"}).status_code == 403
    assert api.ada.post("/api/restore", content=everybody, headers=JSON).status_code == 422
    with Memory(tmp_path / "other.db", embedder=None, extraction=None) as other:
        assert other.restore([everybody]).users == 2
        assert texts(other, "ada") == texts(api.memory, "ada")


def test_the_client_exports_and_restores(api: Api, tmp_path: Path) -> None:
    api.memory.remember("I moved to Berlin in March.", user="ada")
    key, admin = (
        Keys(api.memory.keys).create(tenant="default", user=it).text for it in ("ada", None)
    )
    with connect(api.url, key=key) as remote:
        archive = list(remote.export("ada"))
        with pytest.raises(ForbiddenError):
            next(remote.export("eve"))
        with pytest.raises(RecordError, match="archive"):
            remote.restore([b"".join(archive)[:-20]])
    with Memory(tmp_path / "other.db", embedder=None, extraction=None) as other:
        told: list[tuple[int, int]] = []
        with (
            serving(build_app(other, Guard.local("default", "eve"), Limits())) as url,
            connect(url) as remote,
        ):
            assert (
                remote.restore(archive, progress=lambda *it: told.append(it)).added["message"] == 1
            )
        assert texts(other, "eve") == ["I moved to Berlin in March."]
        assert told[-1][0] == told[-1][1] > 0

    async def whole() -> bytes:
        async with AsyncMemory.of(connect(api.url, key=admin)) as memory:
            return b"".join([it async for it in memory.export("ada")])

    assert asyncio.run(whole()) == b"".join(archive)
