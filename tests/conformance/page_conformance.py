"""Conformance of pagination: pages, cut by key in the database, make up the whole list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest

from memorist.errors import ConflictError, InvalidError
from memorist.records.documents import Article, Chunk
from memorist.records.log import PART_CHARS
from memorist.records.memories import Add, Expire, Fact, MemoryItem, Retract, topic_of
from memorist.records.message import Message
from memorist.records.scope import ApiKey, Scope
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


def paged(read: Callable[..., Sequence[Any]], place: str = "after") -> Callable[..., Any]:
    """Reads a page of a list, given its size and its place."""
    return lambda size, at: read(limit=size, **{place: at})


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

    def test_sessions_keys_users_and_revisions_come_in_pages(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        place = scope.within(session="s")
        message = Message("user", "version 0")
        store.append(place, [message])
        for number in range(1, 6):
            store.append(scope.within(session=f"s{number}"), [Message("user", "hi")])
            store.revise(place, message.changed(content=f"version {number}"))
        key: dict[str, Any] = {
            "tenant": scope.tenant,
            "user": None,
            "digest": "0" * 64,
            "created_at": MARCH,
        }
        for number in range(5):
            store.put_key(ApiKey(id=f"{scope.user} {number}", **key))
        tenant = f"tenant of {scope.user}"
        for number in range(5):
            store.open_session(Scope(tenant=tenant, user=f"{scope.user} {number}"))

        def by_age(item: Any) -> Any:
            return item.created_at, item.id

        sessions = partial(store.sessions, scope)
        newest = partial(store.sessions, scope, newest_first=True)
        keys = partial(store.keys, scope.tenant)
        users = partial(store.users, tenant=tenant)
        revisions = partial(store.revisions, place, message.message_id)
        assert {user.tenant for user in users()} == {tenant}
        assert [it.content for it in revisions()] == [f"version {number}" for number in range(5)]
        for size in (1, 2, 5, 99):
            for read in (sessions, keys):
                whole: Sequence[Any] = read()
                assert walk(paged(read), by_age, size) == whole
            assert walk(paged(newest), lambda it: (it.last_active_at, it.id), size) == newest()
            assert walk(paged(users), lambda it: it, size) == users()
            seen: list[Message] = []
            while page := revisions(limit=size, after=len(seen)):
                seen += page
            assert seen == revisions()

    def test_facts_by_subject_or_predicate_come_in_pages(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        long = "s" * 300  # longer than what the index holds
        pairs = [
            ("Ada", "likes"),
            ("ada", "likes"),
            ("Ada", "owns"),
            (long, "owns"),
            (f"{long}!", "x"),
        ]
        facts = [
            Fact(scope=scope, subject=subject, predicate=predicate, object=str(n), known_from=at)
            for n, at in enumerate(DAYS)
            for subject, predicate in pairs
        ]
        store.apply(scope, [Add(fact) for fact in facts])
        asked: list[dict[str, Any]] = [
            *({"subject": subject} for subject, _ in pairs),
            *({"predicate": predicate} for _, predicate in pairs),
            {"subject": "ADA", "predicate": "likes "},
            {"subject": "nobody"},
        ]
        for about in asked:
            if len(about) == 2:
                expected = [fact for fact in facts if fact.topic == topic_of(*about.values())]
            else:
                [(name, value)] = about.items()
                expected = [fact for fact in facts if getattr(fact, name) == value]
            expected.sort(key=lambda fact: (fact.known_from, fact.id))
            read = partial(store.facts, scope, **about)
            assert read() == expected
            pages = walk(paged(read), lambda it: (it.known_from, it.id), 3)
            assert pages == expected

    def test_a_page_ends_at_its_bytes_and_has_one_item_at_least(self, store: Store) -> None:
        scope = fresh_scope()
        place = scope.within(session="long")
        messages = [Message("user", f"{number} " + "long " * 4_000) for number in range(6)]
        store.append(place, messages)
        for number in range(6):
            store.write_note(scope, f"{number} " + "long " * 4_000, base_version=number)
            store.revise(place, messages[0].changed(content=f"{number} " + "long " * 4_000))
        for max_bytes, most in ((1, 1), (30_000, 2), (10**9, 6)):
            entries, before = list[Any](), None
            while page := store.history(place, last=6, before=before, max_bytes=max_bytes):
                assert len(page) <= most
                entries, before = [*page, *entries], page[0].seq
            assert entries == store.history(place)
            versions = partial(store.note_versions, scope, max_bytes=max_bytes)
            notes = walk(paged(versions, "before"), lambda note: note.version, 6)
            assert notes == store.note_versions(scope)
            assert len(store.revisions(place, messages[0].message_id, max_bytes=max_bytes)) <= most

    def test_a_place_in_a_list_that_makes_no_sense_is_refused(self, store: Store) -> None:
        scope = fresh_scope()
        wrong: Any
        for wrong in ("x", -1, 1.5, True, ("x",)):
            for read in (store.jobs, store.summaries):
                with pytest.raises(InvalidError, match="after"):
                    read(scope, after=wrong)
            with pytest.raises(InvalidError, match="before"):
                store.note_versions(scope, before=wrong)
            with pytest.raises(InvalidError, match="limit"):
                store.items(scope, limit=wrong)
            for page in ({"after": wrong, "limit": 1}, {"after": 0, "limit": wrong}):
                with pytest.raises(InvalidError, match="must be a whole number"):
                    store.following(scope.within(session="a"), **page)
        naive = MARCH.replace(tzinfo=None)
        for wrong in ("x", 1, (MARCH,), (MARCH, 1), ("x", "y"), (naive, "y")):
            for listed in (store.items, store.facts, store.sessions, store.articles):
                with pytest.raises(InvalidError, match="after"):
                    listed(scope, after=wrong)

    def test_a_growing_message_is_read_from_where_its_reader_is(self, store: Store) -> None:
        scope = fresh_scope().within(session="growing")
        text = "äöü😀" * PART_CHARS  # four parts of it
        message = Message("assistant", text[:10], unfinished=True)
        store.append(scope, [message])
        id_ = message.message_id
        part = store.text_from(scope, id_, 4)
        assert part is not None
        assert (part.text, part.chars, part.unfinished) == (text[4:10], 10, True)
        assert store.text_from(scope, id_, 10, known=part) == replace(part, text="")
        store.append_text(scope, message.changed(content=text[:20]))
        again = store.text_from(scope, id_, 10, known=part)
        assert again is not None
        assert (again.text, again.chars, again.unfinished) == (text[10:20], 20, True)
        store.append_text(scope, message.changed(content=text, unfinished=False))
        seen, part = "", again
        while part.unfinished or len(seen) < part.chars:
            found = store.text_from(scope.whole_user(), id_, len(seen), known=part)
            assert found is not None
            part = found
            assert 0 < len(part.text) <= PART_CHARS
            seen += part.text
        assert seen == text
        assert store.text_from(scope, "unknown", 0) is None
        other = Message("assistant", [{"type": "text", "text": "in parts"}], images=())
        store.append(scope, [other])
        found = store.text_from(scope, other.message_id, 0)
        assert found is not None
        assert (found.text, found.chars, found.unfinished) == ("", 0, False)
        store.append(scope.whole_user().within(session="another"), [message])
        with pytest.raises(ConflictError):
            store.text_from(scope.whole_user(), id_, 0)

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
