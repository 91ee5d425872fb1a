"""Conformance of lists: every filter, alone and with others, in both orders, page by page."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from itertools import chain, pairwise, product
from typing import Any

import pytest

from memorist.errors import InvalidError, NotFoundError
from memorist.records.log import Batch
from memorist.records.memories import (
    Add,
    Entity,
    Expire,
    Fact,
    MemoryItem,
    Restore,
    Retract,
    Supersede,
)
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import Tally, now
from memorist.store.base import Store
from tests.conformance.page_conformance import MARCH, paged, walk
from tests.conformance.worlds import ODD_TEXTS, fresh_scope

LONG = "x" * 300  # longer than what an index holds
NOW = now()
Filter = dict[str, Any]


def _items(scope: Scope) -> list[MemoryItem]:
    chance = random.Random(7)
    items = []
    for number in range(48):
        at = NOW - timedelta(days=number // 2)  # two share each moment
        items.append(
            MemoryItem(
                scope=scope.within(
                    session=chance.choice(["s1", "s2", f"{LONG}1", f"{LONG}2"]),
                    agent=chance.choice(["a1", "a2"]),
                ),
                text=f"Ada keeps {chance.choice(['tea', 'teapots', 'cakes'])} in box{number:02}",
                kind=chance.choice(["fact", "episode", "working"]),
                category=chance.choice(["c1", "c2"]),
                tags=tuple(chance.sample(["t1", "t2", "ä 't", f"{LONG}1", f"{LONG}2"], 2)),
                tier=chance.choice(["short", "long"]),
                source=chance.choice(["user", "web", f"{LONG}1"]),
                created_at=at,
                expires_at=chance.choice([None, None, NOW - timedelta(1), NOW + timedelta(1)]),
            )
        )
    return items


def _is_current(item: MemoryItem) -> bool:
    return item.ended_at is None and (item.expires_at is None or item.expires_at > NOW)


ITEM_FILTERS: dict[str, tuple[list[Any], Callable[[MemoryItem, Any], bool]]] = {
    "state": (
        ["current", "over", "all"],
        lambda it, state: state == "all" or _is_current(it) == (state == "current"),
    ),
    "kind": (["episode", "concept"], lambda it, kind: it.kind == kind),
    "category": (["c1", "none"], lambda it, category: it.category == category),
    "tag": (["t1", "ä 't", f"{LONG}1", LONG], lambda it, tag: tag in it.tags),
    "tier": (["long"], lambda it, tier: it.tier == tier),
    "source": (["web", f"{LONG}1", LONG], lambda it, source: it.source == source),
    "session": (["s1", f"{LONG}1", LONG], lambda it, id_: it.scope.session == id_),
    "agent": (["a1"], lambda it, agent: it.scope.agent == agent),
    "created_after": ([NOW - timedelta(20), NOW], lambda it, at: it.created_at >= at),
    "created_before": ([NOW - timedelta(20), NOW], lambda it, at: it.created_at <= at),
}


def _asked(filters: Iterable[tuple[str, tuple[list[Any], Any]]]) -> list[Filter]:
    """Each filter alone, then many together."""
    each = [[(name, value) for value in values] for name, (values, _) in filters]
    chance = random.Random(8)
    some = [chance.sample(each, chance.randint(2, 4)) for _ in range(30)]
    together = [dict(map(chance.choice, names)) for names in some]
    return [*({name: value} for name, value in chain(*each)), *together]


class ListConformance:
    """Needs a fixture `store`."""

    def test_memories_are_listed_by_every_filter(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        items = _items(whole)
        store.apply(whole, [Add(item) for item in items])
        ended = items[1::3]
        store.apply(whole, [Expire(id=item.id, at=NOW) for item in ended])
        store.apply(whole, [Restore(id=item.id) for item in ended[::4]])
        ids = [item.id for item in items]
        stored = [it for it in store.records(whole, ids) if isinstance(it, MemoryItem)]
        stored.sort(key=lambda it: (it.created_at, it.id))
        assert sum(map(_is_current, stored)) not in (0, len(stored))
        for asked, newest_first in product([{}, *_asked(ITEM_FILTERS.items())], (False, True)):
            named = {"state": "current", **asked}
            expected = [
                item
                for item in stored
                if all(ITEM_FILTERS[name][1](item, value) for name, value in named.items())
            ]
            expected = expected[::-1] if newest_first else expected
            rest = dict(asked)
            scope = whole.within(agent=rest.pop("agent", None), session=rest.pop("session", None))
            read = partial(store.items, scope, **rest, newest_first=newest_first)
            assert read() == expected, asked
            assert walk(paged(read), lambda it: (it.created_at, it.id), 7) == expected, asked
            few = partial(read, max_bytes=1)
            assert walk(paged(few), lambda it: (it.created_at, it.id), 7) == expected, asked

    def test_facts_are_listed_by_every_filter(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        chance = random.Random(9)
        ends = [None, None, NOW - timedelta(3), NOW + timedelta(3)]
        facts = [
            Fact(
                scope=whole,
                subject=chance.choice(["Ada", "Bob", f"{LONG}1"]),
                predicate=chance.choice(["likes", "owns"]),
                object=chance.choice(["tea", "a teapot", f"{LONG}1", f"{LONG}2"]),
                source=chance.choice(["user", "web", f"{LONG}1"]),
                known_from=NOW - timedelta(days=10 + number // 2),
                valid_to=chance.choice(ends),
            )
            for number in range(40)
        ]
        store.apply(whole, [Add(fact) for fact in facts])
        store.apply(whole, [Retract(id=fact.id, at=NOW) for fact in facts[::7]])
        records = store.records(whole, [fact.id for fact in facts])
        stored = [it for it in records if isinstance(it, Fact)]
        filters: dict[str, tuple[list[Any], Any]] = {
            name: (values, lambda it, value, name=name: getattr(it, name) == value)
            for name, values in {
                "subject": ["Ada", f"{LONG}1", LONG],
                "predicate": ["owns", "hates"],
                "object": ["tea", f"{LONG}1", LONG],
                "source": ["web", f"{LONG}1"],
            }.items()
        }
        moments = (None, now(), NOW - timedelta(5))
        for asked, valid_at, newest_first in product(
            [{}, *_asked(filters.items())], moments, (False, True)
        ):
            expected = [
                fact
                for fact in stored
                if fact.holds(valid_at)
                and all(filters[name][1](fact, value) for name, value in asked.items())
            ]
            expected = expected[::-1] if newest_first else expected
            read = partial(
                store.facts, whole, **asked, valid_at=valid_at, newest_first=newest_first
            )
            assert read() == expected, (asked, valid_at)
            assert walk(paged(read), lambda it: (it.known_from, it.id), 7) == expected, asked

    def test_lists_are_searched_as_one_types(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        texts: tuple[str, ...] = ("Runs in Köln", "Running shoes, red", "Likes Berlin")
        texts += ("喜欢东京的茶", "Vitamin C", "Любит интернационализмы")
        items = [
            MemoryItem(scope=whole, text=text, created_at=NOW + timedelta(number))
            for number, text in enumerate(texts)
        ]
        fact = Fact(scope=whole, subject="Ada", predicate="runs to", object="Berlin")
        message = Message("user", "I run in Berlin with red shoes")
        store.append(whole.within(session="s"), [message])
        store.apply(whole, [*map(Add, items), Add(fact)])
        found = {
            "r": texts,  # too little to search by
            "ru": texts[:2],
            "runni": texts[:2],
            "running": texts[:2],
            "koln": texts[:1],
            "KÖ": texts[:1],
            "shoes ru": texts[1:2],
            "run sho": texts[1:2],
            "sho runs": texts[:0],  # only the last word may go on
            "berl": texts[2:3],
            "东京": texts[3:4],
            "东": texts[3:4],
            "vitamin c": texts[4:5],
            "лю": texts[5:],
            "интернационали": texts[5:],  # longer than what is indexed of a word
            "лю интернац": texts[:0],
            "nothing": (),
            " ,. ": texts,
        }
        for text, expected in found.items():
            for newest_first in (False, True):
                listed = store.items(whole, text=text, newest_first=newest_first)
                wanted = expected[::-1] if newest_first else expected
                assert tuple(item.text for item in listed) == wanted, text
        page = store.items(whole, text="ru", limit=1)
        place = page[0].created_at, page[0].id
        assert store.items(whole, text="ru", after=place) == [items[1]]
        assert store.items(whole, text="ru", tag="none") == []
        assert store.facts(whole, text="run berl") == [fact]
        assert store.facts(whole, text="berl", subject="ada", predicate="Runs To") == [fact]
        assert store.facts(whole, text="berl", subject="Bob") == []
        assert store.facts(whole, text="sho") == []
        assert store.items(whole, text="ada") == []
        store.apply(whole, [Retract(id=items[0].id, at=NOW), Retract(id=fact.id, at=NOW)])
        assert store.items(whole, text="ru") == [items[1]]  # what has ended is not found
        assert store.facts(whole, text="ru") == []
        store.forget(whole, record_id=items[1].id)
        assert store.items(whole, text="ru") == []

    def test_a_search_is_paged_in_the_order_in_which_things_were_learnt(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        chance = random.Random(5)
        items = [
            MemoryItem(
                scope=whole,
                text=f"Ada keeps tea in box{number:03}. {'And more tea. ' * (number % 7 * 40)}",
                tags=("rare",) if number % 40 == 7 else (),
                created_at=NOW - timedelta(chance.randint(0, 99)),
            )
            for number in range(120)
        ]
        facts = [
            Fact(scope=whole, subject="Ada", predicate="drinks", object=f"tea {number}")
            for number in range(40)
        ]
        for start in range(0, 120, 30):
            beside = facts[start // 3 : start // 3 + 10]
            store.apply(whole, [*map(Add, items[start : start + 30]), *map(Add, beside)])
        for newest_first, max_bytes, rare in product((False, True), (None, 1), (False, True)):
            about: Filter = {"text": "tea", "newest_first": newest_first, "max_bytes": max_bytes}
            read = partial(store.items, whole, **about, tag="rare" if rare else None)
            learnt = [item.id for item in items if item.tags or not rare]
            found = walk(paged(read), lambda it: (it.created_at, it.id), 7)
            assert [it.id for it in found] == (learnt[::-1] if newest_first else learnt)
            told = partial(store.facts, whole, **about)
            found_facts = walk(paged(told), lambda it: (it.known_from, it.id), 7)
            known = [fact.id for fact in facts]
            assert [it.id for it in found_facts] == (known[::-1] if newest_first else known)
        assert len(store.items(whole, text="tea")) == 120
        place = items[3].created_at, items[3].id
        store.forget(whole, record_id=items[3].id)
        with pytest.raises(InvalidError, match="begin it again"):
            store.items(whole, text="tea", after=place)

    def test_any_text_can_be_searched_for(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        for text in ODD_TEXTS.values():
            if text.strip():
                store.apply(whole, [Add(MemoryItem(scope=whole, text=text))])
            assert isinstance(store.items(whole, text=text), list)
            assert isinstance(store.facts(whole, text=text), list)
        assert store.items(fresh_scope().whole_user(), text="html") == []

    def test_wrong_filters_are_refused(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        wrong: Any
        for wrong in ({"state": "gone"}, {"text": 1}, {"tag": "\0"}, {"created_after": 1}):
            with pytest.raises(InvalidError):
                store.items(scope, **wrong)
        for wrong in ({"object": 1}, {"text": "\ud800"}, {"source": "\0"}):
            with pytest.raises(InvalidError):
                store.facts(scope, **wrong)

    def test_a_chain_is_all_that_superseded_one_another(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        items = [
            MemoryItem(scope=whole, text=f"version {n}", created_at=NOW + timedelta(n))
            for n in range(5)
        ]
        facts = [
            Fact(
                scope=whole,
                subject="Ada",
                predicate="lives in",
                object=f"city {n}",
                known_from=NOW + timedelta(n),
            )
            for n in range(4)
        ]
        store.apply(whole, [Add(items[0]), Add(items[1]), Add(facts[0])])
        store.apply(
            whole,
            [
                Supersede(old_id=items[0].id, record=items[2]),  # the third stands for two
                Supersede(old_id=items[1].id, record=items[2]),
                Supersede(old_id=items[2].id, record=items[3]),
                Add(items[4]),
                *(Supersede(old_id=old.id, record=new) for old, new in pairwise(facts)),
            ],
        )
        for number in range(4):
            chained = [one.id for one in store.chain(whole, items[number].id)]
            assert chained == [item.id for item in items[:4]]
            chained = [one.id for one in store.chain(whole, facts[number].id)]
            assert chained == [fact.id for fact in facts]
        assert [one.id for one in store.chain(whole, items[4].id)] == [items[4].id]
        store.forget(whole, record_id=items[2].id)
        assert len(store.chain(whole, items[3].id)) > 1  # what is left is linked
        with pytest.raises(NotFoundError):
            store.chain(fresh_scope(), items[0].id)

    def test_entities_and_what_names_them(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        facts = [
            Fact(
                scope=whole,
                subject=subject,
                predicate=predicate,
                object=thing,
                known_from=NOW - timedelta(9 - number),
                valid_to=NOW if thing == "Munich" else None,
            )
            for number, (subject, predicate, thing) in enumerate(
                [
                    ("Ada", "lived in", "Munich"),
                    ("Ada", "lives in", "Berlin"),
                    ("Bob", "lives in", "BERLIN"),
                    ("Ädä", "likes", "Berlin Zoo"),
                    ("Ada", "dislikes", "東京"),
                ]
            )
        ]
        store.apply(whole, list(map(Add, facts)))
        expected = [
            Entity("ada", Tally(4)),
            Entity("berlin", Tally(2)),
            Entity("berlin zoo", Tally(1)),
            Entity("bob", Tally(1)),
            Entity("munich", Tally(1)),
            Entity("東 京", Tally(1)),
        ]
        assert store.entities(whole) == expected
        read = partial(store.entities, whole)
        for size in (1, 2, 6, 99):
            assert walk(paged(read), lambda it: it.name, size) == expected
        assert store.entities(whole, text="Ber") == expected[1:3]
        assert store.entities(whole, text="ber", limit=1, after="berlin") == expected[2:3]
        assert store.entities(whole, text="berlinx") == []
        assert store.neighbourhood(whole, "BERLIN") == facts[2:0:-1]
        assert store.neighbourhood(whole, "Ada", limit=2) == [facts[4], facts[3]]
        assert store.neighbourhood(whole, "munich", valid_at=NOW + timedelta(1)) == []
        assert store.neighbourhood(whole, "munich", valid_at=NOW - timedelta(1)) == facts[:1]
        assert store.neighbourhood(fresh_scope(), "Ada") == []
        store.forget(whole, record_id=facts[1].id)
        assert Entity("berlin", Tally(1)) in store.entities(whole)
        store.forget(whole)
        assert store.entities(whole) == []

    def test_of_many_facts_some_are_counted(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        things = (
            Fact(scope=whole, subject="Ada", predicate="owns", object=str(n)) for n in range(102)
        )
        store.apply(whole, list(map(Add, things)))
        assert store.entities(whole, text="ada") == [Entity("ada", Tally(100, more=True))]

    def test_sessions_are_listed_with_titles(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        said = [Message("assistant", "Hello!"), Message("user", "  Where\n do I " + "live " * 40)]
        store.append(whole.within(session="talk", agent="b"), said)
        parts = Message("user", [{"type": "text", "text": "in parts"}])
        store.append(whole.within(session="parts", agent="a"), [parts])
        store.append(whole.within(session="silent", agent="a"), [Message("assistant", "Hi")])
        store.open_session(whole.within(session="empty"))
        talk, in_parts, silent, empty = store.session_summaries(whole)
        assert (
            talk.title
            == "Where do I live live live live live live live live live live live live live…"
        )
        assert (talk.scope.agent, talk.messages) == ("b", Tally(2))
        assert talk.last_active_at == said[-1].created_at
        assert in_parts.title == "in parts"
        assert (silent.title, silent.messages) == ("", Tally(1))
        assert (empty.title, empty.messages) == ("", Tally(0))
        assert empty.last_active_at == empty.created_at
        assert store.agents(whole) == ["a", "b"]
        assert [it.id for it in store.session_summaries(whole.within(agent="a"))] == [
            "parts",
            "silent",
        ]
        read = partial(store.session_summaries, whole)
        pages = walk(paged(read), lambda it: (it.created_at, it.id), 2)
        assert pages == read()
        assert [(it.scope, it.created_at) for it in pages] == [
            (it.scope, it.created_at) for it in store.sessions(whole)
        ]
        store.rename_session(whole.within(session="talk"), "Home")
        [talk] = store.session_summaries(whole.within(session="talk"))
        assert talk.title == "Home"
        store.rename_session(whole.within(session="talk"), None)
        [talk] = store.session_summaries(whole.within(session="talk"))
        assert talk.title.startswith("Where do I live")
        for scope in (whole.within(session="none"), fresh_scope().within(session="talk")):
            with pytest.raises(NotFoundError):
                store.rename_session(scope, "x")
        assert store.agents(fresh_scope()) == []

    def test_the_session_that_was_last_active_leads_where_the_newest_do(self, store: Store) -> None:
        whole = fresh_scope().whole_user()
        for day, session in [(1, "a"), (5, "imported"), (2, "b"), (1, "c"), (3, "a"), (2, "c")]:
            said = Message("user", "hi", created_at=MARCH + timedelta(days=day))
            store.append(whole.within(session=session, agent=session[0]), [said])
        store.open_session(whole.within(session="empty"))
        expected = ["empty", "imported", "a", "c", "b"]  # equals by their ids
        listings: tuple[Any, ...] = (store.sessions, store.session_summaries)
        for listed in listings:
            newest = partial(listed, whole, newest_first=True)
            assert [it.id for it in newest()] == expected
            assert [it.created_at for it in listed(whole)] == sorted(
                it.created_at for it in newest()
            )
            for size in (1, 2, 9):
                pages = walk(paged(newest), lambda it: (it.last_active_at, it.id), size)
                assert pages == newest()
            assert [it.id for it in listed(whole.within(agent="a"), newest_first=True)] == ["a"]
            assert [it.id for it in listed(whole.within(session="c"), newest_first=True)] == ["c"]
        assert store.sessions(whole)[0].last_active_at == MARCH + timedelta(days=3)
        store.forget(whole.within(session="imported"))
        assert newest()[1].id == "a"

    def test_the_newest_sessions_are_in_order_whatever_was_said_changed_and_forgotten(
        self, store: Store
    ) -> None:
        whole, chance = fresh_scope().whole_user(), random.Random(3)
        said = dict[str, list[Message]]()
        for _ in range(150):
            name, about = f"s{chance.randrange(25)}", MARCH + timedelta(minutes=chance.randrange(9))
            home, at = whole.within(session=name), about + timedelta(seconds=chance.randrange(60))
            messages = said.setdefault(name, [])
            if messages and chance.random() < 0.2:
                messages[-1] = messages[-1].changed(content="other", created_at=at)
                store.revise(home, messages[-1])
            elif messages and chance.random() < 0.2:
                store.forget(home, message_id=messages.pop().message_id)
            else:
                new = [Message("user", "hi", created_at=it) for it in (about, at)]
                messages += new
                if chance.random() < 0.3:
                    store.append_each([Batch(home, [it]) for it in new])
                else:
                    store.append(home, new[:1])
                    store.append(home, new[1:])
        expected = sorted(store.sessions(whole), key=lambda it: (it.last_active_at, it.id))[::-1]
        newest = partial(store.sessions, whole, newest_first=True)
        for size in (1, 3, 99):
            assert walk(paged(newest), lambda it: (it.last_active_at, it.id), size) == expected

    def test_a_long_session_is_counted_up_to_a_thousand(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", str(number)) for number in range(1_001)])
        [summary] = store.session_summaries(scope)
        assert summary.messages == Tally(1_000, more=True)
        assert summary.title == "0"

    def test_a_dry_run_counts_what_a_forget_removes(self, store: Store) -> None:
        scope = fresh_scope()
        whole = scope.whole_user()
        message = Message("user", "I live in Berlin")
        store.append(scope, [message, Message("user", "and like it")])
        old = MemoryItem(scope=whole, text="Lives in Munich")
        item = MemoryItem(scope=whole, text="Lives in Berlin", sources=(message.message_id,))
        fact = Fact(scope=whole, subject="user", predicate="p", object="Berlin", memory=item.id)
        store.apply(whole, [Add(old), Supersede(old_id=old.id, record=item), Add(fact)])
        asked: list[tuple[Scope, Filter]] = [
            (whole, {"record_id": item.id}),
            (whole, {"message_id": message.message_id}),
            (scope, {}),
            (whole, {"source": "user"}),
            (whole, {}),
        ]

        def everything() -> list[Any]:
            return [
                store.history(scope),
                store.items(whole, state="all"),
                store.facts(whole),
                store.entities(whole),
                store.sessions(whole),
                store.items(whole, text="berl"),
                store.jobs(whole),
            ]

        before = everything()
        counted = [store.forget(of, **what, scrub=True, dry_run=True) for of, what in asked]
        assert everything() == before
        assert all(gone.counts and gone.residue == "" for gone in counted)
        with pytest.raises(NotFoundError):
            store.forget(whole, record_id="none", dry_run=True)
        for (of, what), dry in zip(asked[:1], counted[:1], strict=True):
            assert store.forget(of, **what).counts == dry.counts
        dry = store.forget(whole, dry_run=True)
        assert store.forget(whole).counts == dry.counts
