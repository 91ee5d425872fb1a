"""Conformance of pagination: pages, cut by key in the database, make up the whole list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from memorist.records.documents import Article, Chunk
from memorist.records.memories import Add, Expire, Fact, MemoryItem, Retract
from memorist.records.message import Message
from memorist.store.base import Store
from tests.conformance.worlds import fresh_scope

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = [MARCH + timedelta(days=number // 2) for number in range(7)]  # two share each moment


def walk(
    read: Callable[[int, Any], Sequence[Any]], key: Callable[[Any], Any], size: int
) -> list[Any]:
    """All pages of a list, one after the other."""
    found: list[Any] = []
    while page := read(size, key(found[-1]) if found else None):
        assert len(page) <= size
        found += page
    return found


class PageConformance:
    """Needs a fixture `store`."""

    def test_pages_of_every_list_make_up_the_list(self, store: Store) -> None:
        scope = fresh_scope()
        whole = scope.whole_user()
        store.apply(
            whole,
            [
                *(Add(MemoryItem(scope=whole, text=f"m{at}", created_at=at)) for at in DAYS),
                *(
                    Add(Fact(scope=whole, subject="s", predicate="p", object=str(n), known_from=at))
                    for n, at in enumerate(DAYS)
                ),
            ],
        )
        for number in range(5):
            store.append(whole.within(session=f"s{number}"), [Message("user", "hi")])
            store.write_note(scope, f"version {number}", base_version=number)
            article = Article(scope=whole, title=f"t{number % 2}", text=str(number), uri="")
            store.put_article(article, [Chunk(0, 1)])

        dated = store.items(whole)
        learnt = store.facts(whole)
        lists: list[tuple[Sequence[Any], Callable[..., Sequence[Any]], Callable[[Any], Any]]] = [
            (
                dated,
                lambda limit, after: store.items(whole, limit=limit, after=after),
                lambda item: (item.created_at, item.id),
            ),
            (
                learnt,
                lambda limit, after: store.facts(whole, limit=limit, after=after),
                lambda fact: (fact.known_from, fact.id),
            ),
            (
                store.sessions(whole),
                lambda limit, after: store.sessions(whole, limit=limit, after=after),
                lambda session: (session.created_at, session.id),
            ),
            (
                store.articles(whole),
                lambda limit, after: store.articles(whole, limit=limit, after=after),
                lambda card: (card.created_at, card.id),
            ),
            (
                store.jobs(whole),
                lambda limit, after: store.jobs(whole, limit=limit, after=after),
                lambda job: job.id,
            ),
            (
                store.note_versions(scope),
                lambda limit, before: store.note_versions(scope, limit=limit, before=before),
                lambda note: note.version,
            ),
        ]
        for expected, read, key in lists:
            assert len(expected) >= 5
            for size in (1, 2, len(expected), 99):
                assert walk(read, key, size) == expected

    def test_a_page_of_facts_is_full_whatever_did_not_hold(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        facts = [
            Fact(
                scope=scope,
                subject="s",
                predicate="p",
                object=str(number),
                valid_from=None if number % 3 else MARCH + timedelta(days=2),
                known_from=at,
            )
            for number, at in enumerate(DAYS)
        ]
        store.apply(scope, [Add(fact) for fact in facts])
        store.apply(scope, [Retract(id=facts[1].id, at=MARCH + timedelta(days=5))])
        store.apply(scope, [Expire(id=facts[2].id, at=MARCH + timedelta(days=3))])
        everything = store.records(scope, [fact.id for fact in facts])
        moments = [None, *(MARCH + timedelta(days=days) for days in (-1, 0, 1, 2, 3, 4, 6, 3_000))]

        def pages(valid_at: datetime | None, known_at: datetime | None) -> list[Any]:
            return walk(
                lambda limit, after: store.facts(
                    scope, valid_at=valid_at, known_at=known_at, limit=limit, after=after
                ),
                lambda fact: (fact.known_from, fact.id),
                2,
            )

        for valid_at, known_at in product(moments, moments):
            expected = [
                fact
                for fact in everything
                if isinstance(fact, Fact) and fact.holds(valid_at, known_at)
            ]
            assert pages(valid_at, known_at) == sorted(
                expected, key=lambda fact: (fact.known_from, fact.id)
            )
