"""What a page of each list costs, first and last, of 1,000 items and of 100,000.

Run with `make bench-lists` or `python -m benchmarks.lists`. The stores are filled through the
store's own methods, but for sessions and articles, which are written in bulk. The older half of the
memories and facts is over. Each page of 20 is read several times; the least counts: of the CPU in
SQLite, which runs in the same thread, of the clock with `--postgres`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.storage import postgres_database
from memorist import Memory
from memorist.records.memories import Add, Change, Fact, MemoryItem
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.store.sqlite.store import SqliteStore

SIZES = (1_000, 100_000)
PAGE = 20
RUNS = 15
BATCH = 100  # of which a transaction of PostgreSQL writes 200 records in time
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = ("fact", "episode", "concept", "procedure")
# Stores of a hundred thousand sessions take an hour to fill one by one.
NUMBERS = """WITH RECURSIVE n (n) AS (
  SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM n WHERE n < {size} - 1)"""
BULK = (
    """INSERT INTO sessions (key, owner, session_hash, session_id, agent_name, created_at)
    SELECT {key}, {owner}, 'hash ' || n, 'session ' || n, 'agent ' || (n - n / 20 * 20), n * 1000000
    FROM n""",
    """INSERT INTO chat_message_history
      (id, owner, session_id, message_id, role, source, created_at, {column})
    SELECT n + 1, {owner}, {key}, 'message ' || n, 'user', 'user', {at}, {said}
    FROM n""",
    """INSERT INTO articles
      (owner, id, agent_name, uri_hash, uri, title, digest, chars, pieces, created_at, text)
    SELECT {owner}, 'article ' || n, '', '' || n, '', 'title ' || n, '' || n, 7, 1, n * 1000000,
      'article'
    FROM n""",
)
TEXT = "'What of ' || n"
SQLITE = {"key": "n + 1", "column": "content", "at": "n * 1000000", "said": TEXT}
POSTGRES = {"key": "CAST(md5('' || n) AS uuid)", "column": "message", "at": "to_timestamp(n)"}
POSTGRES["said"] = f"""jsonb_build_object(
  'type', 'human', 'data', jsonb_build_object('type', 'human', 'content', {TEXT}))"""
console = Console(width=120)


@dataclass(frozen=True)
class Listed:
    """A list: how a page of it is read, and what an item's place in it is."""

    name: str
    read: Callable[..., Sequence[Any]]
    place: Callable[[Any], Any]


def fill(store: Store, url: str, scope: Scope, size: int) -> None:
    """So many sessions, memories, facts and articles."""
    for start in range(0, size, BATCH):
        numbers = range(start, start + BATCH)
        changes: list[Change] = []
        for number in numbers:
            changes += (Add(item_of(scope, number, size)), Add(fact_of(scope, number, size)))
        store.apply(scope, changes)
    if isinstance(store, SqliteStore):
        store._engine.write(
            scope.owner, lambda db: fill_log(cast(Any, db).connection, scope.owner, size, SQLITE)
        )
        return
    with psycopg.connect(url) as connection:
        fill_log(connection, scope.owner, size, POSTGRES)
        # Who embeds places the words of what is stored; nobody does here.
        waits = "SELECT EXISTS (SELECT FROM passage_words WHERE owner = %s AND NOT placed)"
        while connection.execute(waits, [scope.owner]).fetchall()[0][0]:
            connection.execute("SELECT place_words(%s, 1)", [scope.owner])
            connection.commit()
        connection.execute("ANALYZE")


def fill_log(connection: Any, owner: str, size: int, words: dict[str, str]) -> None:
    """Sessions with a message each, and articles, as the store would write them."""
    for statement in BULK:
        sql = f"{NUMBERS} {statement}".format(owner=f"'{owner}'", size=size, **words)
        connection.execute(sql)


def item_of(scope: Scope, number: int, size: int) -> MemoryItem:
    at = BEGAN + timedelta(seconds=number)
    shown = scope.within(session=f"session {number % 20}")
    return MemoryItem(
        scope=shown,
        text=f"Ada keeps thing{number:06} in box{number % 20:02} of shelf{number % 977}",
        kind=KINDS[number % 4],  # type: ignore[arg-type]
        category=f"category {number % 20}",
        tags=(f"tag {number % 20}", "thing"),
        tier="long" if number % 20 == 0 else "short",
        source=f"source {number % 20}",
        created_at=at,
        ended_at=at if number < size // 2 else None,
    )


def fact_of(scope: Scope, number: int, size: int) -> Fact:
    at = BEGAN + timedelta(seconds=number)
    return Fact(
        scope=scope,
        subject=f"thing {number // 2}",
        predicate=f"is in {number % 20}",
        object=f"box {number % 20}",
        source=f"source {number % 20}",
        known_from=at,
        valid_to=at if number < size // 2 else None,
        ended_at=at if number < size // 2 else None,
    )


def lists_of(memory: Memory, user: str) -> list[Listed]:
    """Every list, by each of its filters."""

    def aged(item: Any) -> Any:
        return getattr(item, "created_at", None) or item.known_from, item.id

    memories, facts = (
        partial(memory.memories.list, user=user),
        partial(memory.facts.list, user=user),
    )
    always = partial(memory.facts.as_of, user=user)
    by_item: list[dict[str, Any]] = [
        {},
        {"newest_first": True},
        {"state": "over"},
        {"state": "all"},
        {"kind": "episode"},
        {"category": "category 3"},
        {"tag": "tag 3"},
        {"tier": "long"},
        {"source": "source 3"},
        {"session": "session 3"},
        {"created_after": BEGAN + timedelta(seconds=600), "created_before": BEGAN + timedelta(1)},
        {"text": "keeps"},
        {"text": "keeps box03"},
        {"text": "th"},
    ]
    by_fact: list[dict[str, Any]] = [
        {},
        {"newest_first": True},
        {"predicate": "is in 3"},
        {"object": "box 3"},
        {"source": "source 3"},
        {"text": "box"},
        {"text": "keeps"},
    ]
    return [
        Listed("sessions", partial(memory.sessions, user=user), aged),
        Listed("sessions of an agent", partial(memory.sessions, user=user, agent="agent 3"), aged),
        Listed("session summaries", partial(memory.session_summaries, user=user), aged),
        Listed("articles", partial(memory.articles.list, memory.scope(user=user)), aged),
        Listed("jobs", partial(memory.jobs.list, user=user), lambda job: job.id),
        Listed("entities", partial(memory.facts.entities, user=user), lambda it: it.name),
        *(Listed(f"memories {told(it)}", partial(memories, **it), aged) for it in by_item),
        *(Listed(f"facts {told(it)}", partial(facts, **it), aged) for it in by_fact),
        Listed("facts always", always, aged),
    ]


def told(filters: dict[str, Any]) -> str:
    return ", ".join(
        name if isinstance(value, bool | datetime) else f"{name}={value}"
        for name, value in filters.items()
    )


def cost_ms(read: Callable[..., Sequence[Any]], clock: Callable[[], float], **page: Any) -> float:
    """The least that a page took."""
    took = []
    for _ in range(RUNS):
        began = clock()
        read(limit=PAGE + 1, **page)
        took.append(clock() - began)
    return min(took) * 1_000


def last_place(listed: Listed) -> Any:
    """The place before the last page."""
    places: list[Any] = []
    while page := listed.read(limit=1_000, after=places[-1] if places else None):
        places = [*places[-PAGE:], *map(listed.place, page)]
    return places[-PAGE - 1] if len(places) > PAGE else None


def measure(url: str, size: int, clock: Callable[[], float]) -> dict[str, tuple[float, float]]:
    with Memory(url, embedder=None, extraction=None) as memory:
        user = f"ada {size}"
        fill(memory.store, url, memory.scope(user=user), size)
        console.print(f"{size:,} of each are stored")
        costs = {}
        for listed in lists_of(memory, user):
            first = cost_ms(listed.read, clock)
            costs[listed.name] = first, cost_ms(listed.read, clock, after=last_place(listed))
        return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="URL", nargs="?", const="", help="of a superuser")
    parser.add_argument("--sizes", type=int, nargs=2, default=SIZES)
    asked = parser.parse_args()
    on_postgres = asked.postgres is not None
    clock = time.perf_counter if on_postgres else time.thread_time
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        urls = [str(Path(folder) / f"{size}.db") for size in asked.sizes]
        if on_postgres:
            database = postgres_database(asked.postgres or None, vector=True)
            urls = [opened.enter_context(database)] * len(urls)
        few, many = (measure(url, size, clock) for url, size in zip(urls, asked.sizes, strict=True))
    small, large = (f"{size:,}" for size in asked.sizes)
    table = Table("list", f"first of {small}", f"of {large}", f"last of {small}", f"of {large}")
    table.add_column("ratio")
    for name, costs in few.items():
        (first, last), (first_many, last_many) = costs, many[name]
        ratio = max(first_many / first, last_many / last)
        columns = (f"{cost:.2f} ms" for cost in (first, first_many, last, last_many))
        table.add_row(name, *columns, f"{ratio:.1f} ×")
    console.print(table)


if __name__ == "__main__":
    main()
