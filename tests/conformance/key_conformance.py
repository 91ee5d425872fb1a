"""Conformance of keys: read by anybody's server, ended for good, each in its tenant."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memorist.errors import ConflictError, InvalidError, NotFoundError
from memorist.records.message import Message
from memorist.records.scope import ApiKey, Scope
from memorist.records.values import new_id
from memorist.store.base import Store
from tests.conformance.worlds import HOSTILE_USERS, ODD_TEXTS

MADE = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def fresh_key(**fields: Any) -> ApiKey:
    """A key of a tenant that no other test has."""
    digest = hashlib.sha256(new_id().encode()).hexdigest()
    given = {"id": new_id(), "tenant": new_id(), "user": "alice", "digest": digest}
    return ApiKey(**{**given, "created_at": MADE, **fields})


def ended(store: Store, key: ApiKey) -> tuple[datetime | None, datetime | None]:
    """When the key expires, and when it was revoked."""
    found = store.key(key.id)
    assert found is not None
    return found.expires_at, found.revoked_at


class KeyConformance:
    """Needs a fixture `store`."""

    def test_a_key_comes_back_as_it_was(self, store: Store) -> None:
        later = MADE + timedelta(days=90)
        for key in (
            fresh_key(label="laptop", expires_at=later),
            fresh_key(user=None, revoked_at=later),
            fresh_key(user=""),
            fresh_key(program=True),
        ):
            store.put_key(key)
            assert store.key(key.id) == key
            assert store.has_keys()

    def test_odd_names_of_keys_come_back(self, store: Store) -> None:
        tenant = new_id()
        odd = [fresh_key(tenant=tenant, user=user) for user in HOSTILE_USERS]
        short = [text for text in ODD_TEXTS.values() if len(text) < 200]
        odd += [fresh_key(tenant=tenant, label=text) for text in short]
        odd += [fresh_key(tenant=f"{user}{tenant}") for user in HOSTILE_USERS]
        for key in odd:
            store.put_key(key)
            assert store.key(key.id) == key
            assert key in store.keys(key.tenant)

    def test_a_key_that_nobody_made_is_not_there(self, store: Store) -> None:
        assert store.key(new_id()) is None
        assert store.key("") is None
        assert store.keys(new_id()) == []
        for hostile in ("a\x00b", "\ud800"):
            with pytest.raises(InvalidError):
                store.key(hostile)

    def test_keys_are_listed_oldest_first_and_each_in_its_tenant(self, store: Store) -> None:
        first, other = fresh_key(), fresh_key()
        second = fresh_key(tenant=first.tenant, user=None, created_at=MADE + timedelta(seconds=1))
        for key in (second, other, first):
            store.put_key(key)
        assert store.keys(first.tenant) == [first, second]
        assert store.keys(other.tenant) == [other]

    def test_a_key_is_kept_once_and_never_replaced(self, store: Store) -> None:
        key = fresh_key()
        store.put_key(key)
        store.revoke_key(key.tenant, key.id)
        revoked = store.key(key.id)
        store.put_key(key)  # again, as after a lost answer: it is not brought back to life
        assert store.key(key.id) == revoked
        for other in (
            replace(key, user=None),
            replace(key, tenant=new_id()),
            replace(key, digest="0" * 64),
        ):
            with pytest.raises(ConflictError):
                store.put_key(other)
        assert store.key(key.id) == revoked

    def test_a_revoked_key_stays_revoked_since_the_first_time(self, store: Store) -> None:
        key = fresh_key()
        store.put_key(key)
        store.revoke_key(key.tenant, key.id)
        _, first = ended(store, key)
        assert first is not None
        store.revoke_key(key.tenant, key.id)
        assert ended(store, key) == (None, first)

    def test_a_key_ends_at_the_earlier_of_two_moments(self, store: Store) -> None:
        key, one = fresh_key(), timedelta(hours=1)
        store.put_key(key)
        store.revoke_key(key.tenant, key.id, at=MADE + 2 * one)
        assert ended(store, key) == (MADE + 2 * one, None)
        store.revoke_key(key.tenant, key.id, at=MADE + 3 * one)
        assert ended(store, key) == (MADE + 2 * one, None)
        store.revoke_key(key.tenant, key.id, at=MADE + one)
        assert ended(store, key) == (MADE + one, None)

    def test_only_a_key_of_the_tenant_is_revoked(self, store: Store) -> None:
        key, other = fresh_key(), fresh_key()
        for one in (key, other):
            store.put_key(one)
        for tenant, key_id in ((other.tenant, key.id), (key.tenant, new_id())):
            for at in (None, MADE):
                with pytest.raises(NotFoundError):
                    store.revoke_key(tenant, key_id, at=at)
        assert store.key(key.id) == key
        store.revoke_key(key.tenant, key.id)
        assert store.key(other.id) == other

    def test_forgetting_a_user_leaves_their_keys(self, store: Store) -> None:
        key = fresh_key()
        store.put_key(key)
        scope = Scope(tenant=key.tenant, user="alice", session="talk")
        store.append(scope, [Message("user", "hello")])
        assert store.forget(scope.whole_user()).counts["users"] == 1
        assert store.key(key.id) == key
