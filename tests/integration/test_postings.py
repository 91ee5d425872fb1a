"""PostgreSQL's lists of the passages of each word: filled in portions, emptied with what goes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest

from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.postgres import schema as engine
from memorist.store.postgres.db import _ids, word_keys
from memorist.store.postgres.store import PostgresStore
from tests.conformance.worlds import worded
from tests.support.schemas import earlier_schema
from tests.support.waiting import until

ADA = Scope(user="ada", session="s")
BEN = Scope(user="ben", session="s")
COUNT = 700


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        yield opened


def place(connection: psycopg.Connection[Any], scope: Scope) -> None:
    connection.execute("SELECT place_words(%s, 1)", (scope.owner,))


def waits(connection: psycopg.Connection[Any], scope: Scope) -> bool:
    waiting = "SELECT FROM passage_words WHERE owner = %s AND NOT placed LIMIT 1"
    return connection.execute(waiting, (scope.owner,)).fetchone() is not None


def held(connection: psycopg.Connection[Any], scope: Scope, word: str = "") -> int:
    """How often a word, or all words, stand in the lists and among the passages that wait."""
    named = {"owner": scope.owner, "keys": [*word_keys(scope.owner, [word])], "every": not word}
    row = connection.execute(
        "SELECT (SELECT coalesce(sum(length(places)) / 8, 0)::bigint FROM postings"
        "  WHERE owner = %(owner)s AND (%(every)s OR word = ANY(%(keys)s)))"
        " + (SELECT count(*) FROM passage_words, unnest(words) AS word"
        "  WHERE owner = %(owner)s AND NOT placed AND (%(every)s OR word = ANY(%(keys)s)))",
        named,
    ).fetchone()
    assert row is not None
    return int(row[0])


def counted(store: PostgresStore, scope: Scope) -> int:
    """How many messages a search takes there to be."""
    return store._engine.read(scope.owner, lambda db: db.count_records())


def say(store: PostgresStore, scope: Scope, *numbers: int) -> None:
    said = [Message("user", f"pelican number{n}", message_id=f"m{n}") for n in numbers]
    store.append(scope, said)


def test_words_are_found_while_passages_wait_and_when_they_are_placed_in_any_order(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    with PostgresStore(postgres_url) as store:
        say(store, ADA, *range(COUNT))
        say(store, BEN, 0)
        later = "UPDATE passage_words SET placed = true WHERE NOT placed AND id / 1048576 % 3 = 0"
        connection.execute(later)  # these are left to the second turn
        place(connection, ADA)
        connection.execute("UPDATE passage_words SET placed = false WHERE id / 1048576 % 3 = 0")
        place(connection, ADA)
        say(store, ADA, COUNT)
        parts = "SELECT max(length(places)), count(*) FROM postings WHERE word = ANY(%s)"
        keys = [*word_keys(ADA.owner, ["pelican"])]
        [(longest, rows)] = connection.execute(parts, (keys,)).fetchall()
        assert longest <= 8_000
        assert rows > 1
        assert len(worded(store, ADA, [("pelican",)], limit=2_000)) == COUNT + 1
        assert len(worded(store, ADA, [("number7",)], limit=9)) == 1
        assert len(worded(store, ADA, [(f"number{COUNT}",)], limit=9)) == 1
        assert len(worded(store, BEN, [("pelican",)], limit=9)) == 1


def test_where_nobody_embeds_words_are_placed_behind_the_write(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    placed = "SELECT FROM passage_words WHERE owner = %s AND placed LIMIT 1"
    numbers = count(COUNT + 1)

    def are_placed() -> bool:
        say(store, ADA, next(numbers))  # who is told before a write is seen finds nothing to place
        return bool(connection.execute(placed, (ADA.owner,)).fetchall())

    with PostgresStore(postgres_url) as store:
        say(store, ADA, COUNT)  # which makes the session
        say(store, ADA, *range(COUNT))
        until(are_placed)
        assert held(connection, ADA, "pelican") == counted(store, ADA) == next(numbers)


def test_what_is_forgotten_leaves_no_place_behind(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    with PostgresStore(postgres_url) as store:
        say(store, ADA, *range(COUNT))
        place(connection, ADA)
        say(store, ADA, COUNT)
        say(store, BEN, 1)
        place(connection, BEN)
        for number in (7, COUNT):
            assert held(connection, ADA, f"number{number}") == 1
            store.forget(ADA, message_id=f"m{number}")
            assert held(connection, ADA, f"number{number}") == 0
        assert held(connection, ADA, "pelican") == counted(store, ADA) == COUNT - 1
        store.revise(ADA, Message("user", "heron", message_id="m8"))
        assert held(connection, ADA, "number8") == 0
        assert held(connection, ADA, "heron") == 1
        store.forget(ADA.whole_user())
        assert held(connection, ADA) == counted(store, ADA) == 0
        assert held(connection, BEN, "pelican") == 1
        gone = "SELECT count(*) FROM passage_words WHERE owner = %s"
        assert connection.execute(gone, (ADA.owner,)).fetchone() == (0,)


def test_a_list_is_searched_in_any_part_of_its_words_lists(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    home = ADA.whole_user()
    said = [f"pelican{n} keeps box{n % 40} shelf{n // 600} of the house" for n in range(1_800)]
    with PostgresStore(postgres_url) as store:
        items = [MemoryItem(scope=home, text=text) for text in said]
        for start in range(0, 1_600, 100):
            store.apply(home, [Add(item) for item in items[start : start + 100]])
            place(connection, home)
        while waits(connection, home):
            place(connection, home)
        for start in range(1_600, 1_800, 100):  # these wait
            store.apply(home, [Add(item) for item in items[start : start + 100]])
        store.forget(home, record_id=items[799].id)
        del items[799], said[799]
        for text, found in {
            "keeps": r"keeps",
            "ke": r"keeps",
            "keeps pelican1": r"pelican1",
            "keeps pelican1799": r"pelican1799",
            "box39 ke": r"box39",
            "shelf2 pel": r"shelf2",
            "shelf0 pelican17": r"pelican17.*shelf0",
            "shelf1 shelf2": r"nothing",
            "box7 shelf1": r"box7 shelf1",
        }.items():
            wanted = [item.id for item in items if re.search(rf"{found}", item.text)]
            for newest_first in (False, True):
                ids, place_before = list[str](), None
                while page := store.items(
                    home, text=text, newest_first=newest_first, limit=90, after=place_before
                ):
                    ids += [item.id for item in page]
                    place_before = page[-1].created_at, page[-1].id
                assert ids == (wanted[::-1] if newest_first else wanted), text


def test_facts_have_words_of_their_own_also_those_of_the_tenth_schema(
    postgres_url: str, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ADA.whole_user()
    facts = [
        Fact(scope=home, subject=f"teapot{n}", predicate="is", object="blue") for n in range(9)
    ]
    item = MemoryItem(scope=home, text="A blue lamp")
    shipped = engine.MIGRATIONS
    monkeypatch.setattr(engine, "MIGRATIONS", shipped[:10])
    with PostgresStore(postgres_url) as store:
        store.apply(home, [Add(item), *map(Add, facts[:4])])
        place(connection, home)
        store.apply(home, [*map(Add, facts[4:6])])
    monkeypatch.setattr(engine, "MIGRATIONS", shipped)
    with PostgresStore(postgres_url) as store:
        for number in (6, 7, 8):
            store.apply(home, [Add(facts[number])])
            if number == 7:
                place(connection, home)
        assert store.facts(home, text="blue") == store.facts(home, text="teap") == facts
        assert store.facts(home, text="teapot5 is bl") == [facts[5]]
        assert store.facts(home, text="lamp") == []
        assert store.items(home, text="blue") == [item]
        for fact in facts:
            store.forget(home, record_id=fact.id)
        assert store.facts(home, text="teap") == []
        store.forget(home, record_id=item.id)
        assert held(connection, home) == 0


def test_a_store_of_the_schema_before_is_found_by_its_words_by_old_and_new_servers(
    postgres_url: str, connection: psycopg.Connection[Any]
) -> None:
    old = "SELECT word_postings(%s, ARRAY['pelican'], ARRAY['pelican'], 60000)"
    with earlier_schema(7), PostgresStore(postgres_url) as store:
        say(store, ADA, *range(COUNT))
        connection.execute("SELECT set_config('memorist.owner', %s, false)", (ADA.owner,))
        connection.execute("SET ROLE memorist_app")
        [before] = connection.execute(old, (ADA.owner,)).fetchall()
    with PostgresStore(postgres_url) as store:
        [after] = connection.execute(old, (ADA.owner,)).fetchall()
        assert sorted(_ids(after[0])) == sorted(_ids(before[0]))
        connection.execute("RESET ROLE")
        assert len(worded(store, ADA, [("pelican",)], limit=2_000)) == COUNT
        assert held(connection, ADA, "pelican") == counted(store, ADA) == COUNT
        store.forget(ADA, message_id="m7")
        assert held(connection, ADA, "number7") == 0
