"""What one key can make a server hold in memory: pages and parts, whatever is stored."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.records.documents import Article, Chunk, Summary
from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.message import Message
from memorist.server.http.limits import FACTORS, MAX_CONCURRENT
from memorist.store.rows import Row
from memorist.store.sqlite.db import SqliteDb
from tests.server.api import Api, an_api, get, post, walk
from tests.support.servers import ServerProcess, end_servers

MIB = 1024 * 1024
START = datetime(2026, 3, 1, tzinfo=UTC)
LISTS = [
    "memories",
    "facts",
    "facts?subject=s1",
    "facts?predicate=p",
    "facts?always=true",
    "sessions",
    "sessions?newest_first=true",
    "messages",
    "messages?session=s1&oldest_first=true",
    "messages/revised/revisions",
    "notes/versions",
    "articles",
    "jobs",
    "summaries?session=s1",
    "summaries?session=s1&oldest_first=false",
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with an_api(tmp_path_factory.mktemp("bounds")) as opened:
        fill(opened.memory, 80)
        yield opened


@dataclass
class Fetched:
    """What came out of the database."""

    rows: int = 0
    bytes: int = 0
    largest: int = 0  # bytes of one statement

    def count(self, rows: list[Row]) -> list[Row]:
        size = sum(sys.getsizeof(value) for row in rows for value in row)
        self.rows += len(rows)
        self.bytes += size
        self.largest = max(size, self.largest)
        return rows


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Fetched]:
    """Begins to count what is fetched, anew with each call."""
    now = [Fetched()]

    def counting(name: str) -> None:
        read = getattr(SqliteDb, name)

        def wrapped(*args: Any, **named: Any) -> Any:
            counted = now[0]
            before = counted.rows, counted.bytes
            rows = read(*args, **named)
            counted.rows, counted.bytes = before  # `page` may call `rows`
            return counted.count(rows)

        monkeypatch.setattr(SqliteDb, name, wrapped)

    for name in ("rows", "page"):
        counting(name)

    def begin() -> Fetched:
        now[0] = Fetched()
        return now[0]

    return begin


def fill(memory: Memory, count: int) -> None:
    """Some of everything that is listed, for the user ada."""
    store, home = memory.store, memory.scope(user="ada")
    moments = [START + timedelta(seconds=number) for number in range(count)]
    store.apply(
        home,
        [
            *(Add(MemoryItem(scope=home, text=f"m{at}", created_at=at)) for at in moments),
            *(
                Add(
                    Fact(
                        scope=home, subject=f"s{n % 2}", predicate="p", object=f"{n}", known_from=at
                    )
                )
                for n, at in enumerate(moments)
            ),
        ],
    )
    talk = home.within(session="s1")
    revised = Message("user", "0", message_id="revised")
    store.append(talk, [Message("user", f"hi {n}") for n in range(count)])
    store.append(home.within(session="revised"), [revised])
    for number, entry in enumerate(store.history(talk)):
        store.append(home.within(session=f"s{number} of many"), [Message("user", "hi")])
        store.revise(home, revised.changed(content=f"{number}"))
        store.write_note(home, f"version {number}", base_version=number)
        article = Article(scope=home, title="t", text=f"text {number}", uri=f"{number}")
        store.put_article(article, [Chunk(0, 4)])
        summary = Summary(
            scope=talk,
            text="so far",
            last_seq=entry.seq,
            messages=number,
            id=f"{number}",
            made_by="extractive",
            tokens_before=9,
            tokens=1,
            created_at=START,
        )
        store._engine.write(talk.owner, partial(_put_summary, talk=talk, summary=summary))


def _put_summary(db: Any, talk: Any, summary: Summary) -> None:
    """Without reading the messages again each time."""
    from memorist.store.log import ensure_session
    from memorist.store.rows import SUMMARY

    key, *_ = ensure_session(db, talk)
    db.run("put_summary", owner=talk.owner, session=key, **SUMMARY.row(summary))


def test_a_page_reads_its_own_rows_and_no_others(api: Api, fetched: Callable[[], Fetched]) -> None:
    for path in LISTS:
        where, _, query = path.partition("?")
        asked: dict[str, Any] = dict(pair.split("=") for pair in query.split("&")) if query else {}
        items = walk(api.ada, f"/api/{where}", 70, **asked)
        assert len(items) >= 40, path
        counted = fetched()
        first = get(api.ada, f"/api/{where}", limit=5, **asked)
        assert len(first["items"]) == 5, path
        assert first["next"], path
        assert counted.rows <= 20, path  # the page, the sources of what is in it, and the key
        counted = fetched()
        get(api.ada, f"/api/{where}", limit=5, cursor=first["next"], **asked)
        assert counted.rows <= 20, path


def test_keys_and_counts_of_jobs_read_no_more_than_a_page(
    api: Api, fetched: Callable[[], Fetched]
) -> None:
    for number in range(30):
        post(api.stranger, "/api/keys", status=201, user=f"user {number}")
    counted = fetched()
    assert len(get(api.stranger, "/api/keys", limit=5)["items"]) == 5
    assert counted.rows <= 10
    assert len(walk(api.stranger, "/api/keys", 7)) == 31  # with the admin's own
    counted = fetched()
    assert get(api.ada, "/api/waiting")["waiting"]["embed"] > 40
    assert counted.rows <= 10


def test_a_page_of_long_items_ends_at_its_bytes(
    api: Api, fetched: Callable[[], Fetched], monkeypatch: pytest.MonkeyPatch
) -> None:
    most, session, text = 240_000, "long", "x " * 15_000
    for module in ("pagination", "routes.messages"):
        monkeypatch.setattr(f"memorist.server.http.{module}.MAX_PAGE_BYTES", most)
    monkeypatch.setattr("memorist.context.builder.PAGE_BYTES", most)
    monkeypatch.setattr("memorist.context.compression.compress.CHUNK_BYTES", most)
    monkeypatch.setattr("memorist.context.builder.MAX_READ_BYTES", most)
    scope = api.memory.scope(user="eve", session=session)
    messages = [
        Message("user", f"{number:02} {text}", message_id=f"m{number}") for number in range(24)
    ]
    api.memory.store.append(scope, messages)
    for number in range(10):
        api.memory.store.revise(scope, messages[0].changed(content=f"{number}{text}"))
    for path, count in (("messages", 24), ("messages/m0/revisions", 10)):
        counted = fetched()
        page = get(api.eve, f"/api/{path}", session=session, limit=500)
        assert 5 <= len(page["items"]) <= 8
        assert page["next"]
        assert counted.bytes <= most + 100_000
        assert len(walk(api.eve, f"/api/{path}", 500, session=session)) == count
    made = post(api.eve, "/api/compress", session=session, keep_last=9)
    assert made["summary"]["messages"] >= 14  # although the nine that stay fill what is read
    context: dict[str, Any] = {"question": "what was it?", "session": session, "max_tokens": 4_000}
    counted = fetched()
    assert post(api.eve, "/api/context", **context)["messages"]
    assert counted.largest <= 3 * most  # sixteen messages, to quote from them


def test_a_reader_of_a_growing_message_gets_parts_and_reads_only_what_is_new(
    api: Api, fetched: Callable[[], Fetched]
) -> None:
    text = "ä" * 200_000
    message = Message("assistant", text, message_id="growing", unfinished=True)
    api.memory.store.append(api.memory.scope(user="ada", session="g"), [message])
    counted = fetched()
    answer = api.ada.get("/api/messages/growing/updates", params={"timeout_s": 0.8})
    assert "".join(_texts(answer.text)) == text
    assert answer.text.count("event: text") == 4
    assert "event: timeout" in answer.text
    assert counted.bytes <= 3 * 2 * len(text)  # polled many times, read once


def _texts(stream: str) -> Iterator[str]:
    for event in stream.split("\n\n"):
        if event.startswith("event: text"):
            yield json.loads(event.split("data: ", 1)[1].split("\n")[0])["text"]


def test_what_is_in_many_sessions_or_revisions_is_not_read_to_find_one(
    api: Api, fetched: Callable[[], Fetched]
) -> None:
    text = "y" * 200_000
    for number in range(20):
        scope = api.memory.scope(user="eve", session=f"copy {number}")
        api.memory.store.append(scope, [Message("user", text, message_id="copied")])
    counted = fetched()
    get(api.eve, "/api/messages/copied", status=409)
    get(api.eve, "/api/messages/copied/updates", status=409)
    assert counted.bytes <= 3 * len(text)
    inputs = [{"role": "user", "content": "z", "message_id": "copied"}]
    counted = fetched()
    post(api.eve, "/api/messages/batch", status=409, messages=inputs)
    assert counted.bytes <= 3 * len(text)


def test_an_audit_of_too_much_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorist.server.http.routes.maintenance.MAX_AUDIT_BYTES", 20_000)
    assert get(api.ada, "/api/audit", status=413)["code"] == "too_large"
    assert get(api.eve, "/api/audit")["memories"] == 0


@pytest.mark.prove
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_one_key_cannot_make_a_server_grow(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The most that one user may ask at once, of the longest things there are."""
    if database == "sqlite":
        target = str(tmp_path / "memory.db")
    else:
        target = request.getfixturevalue("postgres_url")
    with Memory(target, embedder=None, extraction=None) as memory:
        store, scope = memory.store, memory.scope(user="ada", session="s")
        text = "ä " * (MIB // 3 - 100)
        for number in range(100):
            message = Message("user", f"{number} needle {text}", message_id=f"m{number}")
            store.append(scope, [message])
        growing = Message("assistant", text, message_id="growing", unfinished=True)
        store.append(scope, [growing])
        for number in range(40):
            long = f"# {number}\n\nneedle {text}"
            memory.library(user="ada").add(f"{number}", long, uri=f"{number}")
    server = ServerProcess(target, "--rate", "0", embedder="none")
    try:
        url = server.until_up().url
        before = peak(server)
        requests: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", "/api/messages", {"session": "s", "limit": 500}),
            ("POST", "/api/recall", {"question": "needle", "limit": 200}),
            ("POST", "/api/context", {"question": "needle", "session": "s"}),
            ("POST", "/api/compress", {"session": "s"}),
            ("POST", "/api/articles/retrieve", {"query": "needle", "top_k": 100}),
        ]

        def ask(number: int) -> int:
            method, path, body = requests[number % len(requests)]
            named: dict[str, Any] = {"params": body} if method == "GET" else {"json": body}
            return httpx.request(method, f"{url}{path}", timeout=300, **named).status_code

        def follow(_: int) -> int:
            where = f"{url}/api/messages/growing/updates"
            return len(httpx.get(where, params={"timeout_s": 5}, timeout=300).content)

        streams = round(MAX_CONCURRENT * FACTORS["stream"])
        with ThreadPoolExecutor(MAX_CONCURRENT + streams) as threads:
            lengths = threads.map(follow, range(streams))
            statuses = list(threads.map(ask, range(3 * MAX_CONCURRENT)))
            assert {*statuses} <= {200, 409, 429, 503}
            assert statuses.count(200) > MAX_CONCURRENT
            assert min(lengths) > len(text)
        grown = peak(server) - before
        print(f"from {before / MIB:.0f} MiB by {grown / MIB:.0f} MiB: {Counter(statuses)}")
        assert grown < 1_024 * MIB
    finally:
        end_servers()


def peak(server: ServerProcess) -> int:
    """The most memory that a server has had, in bytes."""
    status = Path(f"/proc/{server.child.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1_024
