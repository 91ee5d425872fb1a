"""A state machine that drives stores side by side, against a model and each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memorist.errors import MemoristError
from memorist.records.memories import Add, MemoryItem, Retract
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import fold, new_id
from memorist.store.base import Store
from tests.conformance.worlds import worded
from tests.support.hostile import HOSTILE_SHAPES

USERS = st.sampled_from(["alice", "alice ", "*", ""])
SESSIONS = st.sampled_from(["one", "two", "0190a0a0-0000-7000-8000-000000000001"])
WORDS = st.sampled_from(["apple", "berlin", "canary", "дом", "柏林"])
RUNS = st.builds(str.__mul__, st.sampled_from(HOSTILE_SHAPES), st.integers(1, 40))
ODD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
SAID = st.lists(WORDS | RUNS | ODD)


@dataclass
class Person:
    """What the model knows of one user: sessions of (id, text), memories, a note."""

    sessions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)
    note: list[str] = field(default_factory=list)

    def holders(self, message_id: str) -> list[str]:
        return [
            name
            for name, said in self.sessions.items()
            if any(id_ == message_id for id_, _ in said)
        ]

    def texts(self) -> list[str]:
        return [text for said in self.sessions.values() for _, text in said]


class StoreMachine(RuleBasedStateMachine):
    """Subclass it with `stores`; every rule runs on all of them and on the model."""

    stores: ClassVar[list[Store]]

    @initialize()
    def begin(self) -> None:
        self.tenant = new_id()
        self.people: dict[str, Person] = {}
        self.ids: list[str] = []

    def person(self, user: str) -> Person:
        return self.people.setdefault(user, Person())

    def scope(self, user: str, session: str | None = None) -> Scope:
        return Scope(tenant=self.tenant, user=user, session=session)

    def same(self, call: Callable[[Store], Any]) -> Any:
        """Make a call on every store; they must agree, also on the error."""
        answers = [_answer(call, store) for store in self.stores]
        for answer in answers[1:]:
            assert answer == answers[0]
        return answers[0]

    @rule(user=USERS, session=SESSIONS, parts=st.lists(SAID, min_size=1, max_size=3))
    def append(self, user: str, session: str, parts: list[list[str]]) -> None:
        messages = [Message("user", " ".join(words)) for words in parts]
        scope = self.scope(user, session)
        assert self.same(lambda store: store.append(scope, messages).added) == len(messages)
        said = self.person(user).sessions.setdefault(session, [])
        said += [(message.message_id, message.text) for message in messages]
        self.ids += [message.message_id for message in messages]

    @rule(user=USERS, session=SESSIONS, data=st.data())
    def append_again(self, user: str, session: str, data: st.DataObject) -> None:
        message_id = data.draw(st.sampled_from(self.ids or ["none"]))
        known = dict(self.person(user).sessions.get(session, []))
        message = Message("user", known.get(message_id, "new here"), message_id=message_id)
        scope = self.scope(user, session)
        added = self.same(lambda store: store.append(scope, [message]).added)
        assert added == (message_id not in known)
        if added:
            self.person(user).sessions.setdefault(session, []).append((message_id, message.text))

    @rule(user=USERS, session=SESSIONS, words=SAID, data=st.data())
    def revise(self, user: str, session: str, words: list[str], data: st.DataObject) -> None:
        message_id = data.draw(st.sampled_from(self.ids or ["none"]))
        message = Message("user", " ".join(words), message_id=message_id)
        scope = self.scope(user, session)
        answer = self.same(lambda store: store.revise(scope, message))
        said = self.person(user).sessions.get(session, [])
        if message_id in dict(said):
            assert answer is None
            place = [id_ for id_, _ in said].index(message_id)
            said[place] = (message_id, message.text)
        else:
            assert answer == "NotFoundError"

    @rule(user=USERS, data=st.data())
    def forget_message(self, user: str, data: st.DataObject) -> None:
        message_id = data.draw(st.sampled_from(self.ids or ["none"]))
        person = self.person(user)
        holders = person.holders(message_id)
        scope = self.scope(user)
        answer = self.same(lambda store: store.forget(scope, message_id=message_id).counts)
        if not holders:
            assert answer == "NotFoundError"
            return
        assert answer["messages"] == len(holders)
        for name in holders:
            said = person.sessions[name]
            person.sessions[name] = [entry for entry in said if entry[0] != message_id]

    @rule(user=USERS, session=SESSIONS | st.none())
    def forget(self, user: str, session: str | None) -> None:
        person = self.person(user)
        scope = self.scope(user, session)
        counts = self.same(lambda store: store.forget(scope).counts)
        gone = person.sessions.get(session, []) if session else person.texts()
        assert counts.get("messages", 0) == len(gone)
        if session:
            person.sessions.pop(session, None)
        else:
            self.people[user] = Person()

    @rule(user=USERS, text=WORDS)
    def derive(self, user: str, text: str) -> None:
        item = MemoryItem(scope=self.scope(user), text=text)
        self.same(lambda store: store.apply(self.scope(user), [Add(item)]))
        self.person(user).memories[item.id] = text

    @rule(user=USERS, data=st.data())
    def retract(self, user: str, data: st.DataObject) -> None:
        every = [id_ for person in self.people.values() for id_ in person.memories]
        id_ = data.draw(st.sampled_from(every or ["none"]))
        mine = self.person(user).memories
        change = Retract(id=id_)
        answer = self.same(lambda store: store.apply(self.scope(user), [change]))
        assert answer == (None if id_ in mine else "NotFoundError")
        mine.pop(id_, None)

    @rule(user=USERS, text=SAID, base=st.integers(0, 3))
    def write_note(self, user: str, text: list[str], base: int) -> None:
        scope = self.scope(user)
        words = " ".join(text)
        answer = self.same(lambda store: store.write_note(scope, words, base_version=base).version)
        versions = self.person(user).note
        if base == len(versions):
            assert answer == base + 1
            versions.append(words)
        else:
            assert answer == "ConflictError"

    @rule(user=USERS, word=WORDS)
    def search(self, user: str, word: str) -> None:
        term = tuple(fold(word).split())
        found = self.same(
            lambda store: sorted(
                match.text
                for match in worded(store, self.scope(user), [term], limit=10_000)
                if match.kind == "message"
            )
        )
        spoken = [f" {' '.join(fold(text).split())} " for text in self.person(user).texts()]
        held = [text for text in spoken if f" {' '.join(term)} " in text]
        assert len(found) >= len(held)  # a stem may find more
        assert all(term[0][:4] in fold(text) for text in found)

    @invariant()
    def every_history_is_the_models(self) -> None:
        for user, person in getattr(self, "people", {}).items():
            for session, said in person.sessions.items():
                assert self.same(partial(_said, scope=self.scope(user, session))) == said

    @invariant()
    def every_note_and_memory_is_the_models(self) -> None:
        for user, person in getattr(self, "people", {}).items():
            scope = self.scope(user)
            assert self.same(partial(_notes, scope=scope)) == person.note
            # A retracted memory is no longer current; the model has dropped it.
            assert self.same(partial(_memories, scope=scope)) == person.memories


def _said(store: Store, scope: Scope) -> list[tuple[str, str]]:
    found = store.history(scope)
    return [(entry.message.message_id, entry.message.text) for entry in found]


def _notes(store: Store, scope: Scope) -> list[str]:
    return [note.text for note in reversed(store.note_versions(scope))]


def _memories(store: Store, scope: Scope) -> dict[str, str]:
    return {item.id: item.text for item in store.items(scope)}


def _answer(call: Callable[[Store], Any], store: Store) -> Any:
    try:
        return call(store)
    except MemoristError as error:
        return type(error).__name__
