"""Who is calling: what the guard believes, and what it does not."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist.config import Settings
from memorist.errors import (
    ConfigError,
    ConflictError,
    InvalidError,
    NotFoundError,
    RecordError,
    ScopeError,
    StoreUnavailableError,
    UnauthorizedError,
)
from memorist.language.unsafe import find_secrets
from memorist.records.scope import ApiKey, Principal
from memorist.records.values import now
from memorist.server import auth
from memorist.server.auth import MAX_CHARS, Guard, Keys, NewKey, build_guard
from memorist.store.base import Store
from memorist.store.sqlite.store import SqliteStore
from tests.support.http_server import keys_of

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with SqliteStore(":memory:") as opened:
        yield opened


@pytest.fixture(scope="module")
def guard(store: Store) -> Guard:
    return Guard(keys_of(store))


def made(store: Store, user: str | None = "ada", tenant: str = "acme") -> NewKey:
    return Keys(keys_of(store)).create(tenant=tenant, user=user)


def refused(guard: Guard, header: str | None) -> str:
    """Why nobody is let in with this header."""
    with pytest.raises(UnauthorizedError) as caught:
        guard.authenticate(header)
    return str(caught.value)


# Keys


def test_a_key_opens_the_memory_of_its_user(store: Store, guard: Guard) -> None:
    new = made(store)
    who = guard.authenticate(f"Bearer {new.text}")
    assert who == Principal(tenant="acme", user="ada", name=new.record.id)
    assert not who.admin


def test_a_key_without_a_user_is_an_admins_and_one_with_an_empty_user_is_refused(
    store: Store, guard: Guard
) -> None:
    assert guard.authenticate(f"Bearer {made(store, user=None).text}").admin
    with pytest.raises(ScopeError):
        made(store, user="")


def test_the_scheme_may_be_written_in_any_case_and_with_spaces(store: Store, guard: Guard) -> None:
    text = made(store).text
    for header in (f"bearer {text}", f"BEARER  {text}", f"Bearer {text} "):
        assert guard.authenticate(header).user == "ada"


def test_a_key_is_long_random_and_told_from_text_as_a_secret(store: Store) -> None:
    texts = {made(store).text for _ in range(50)}
    assert len(texts) == len({text[-43:] for text in texts}) == 50
    for text in texts:
        assert re.fullmatch(r"mk_[0-9a-f]{16}_[\w-]{43}", text)
        assert find_secrets(f"my key is {text}")  # it would not become a memory


def test_nothing_of_a_key_is_kept_but_its_digest(store: Store) -> None:
    new = made(store)
    secret = new.text.split("_", 2)[2]
    assert secret not in repr(store.keys("acme"))
    assert secret not in repr(new)
    assert new.record.digest not in repr(new.record)


def test_a_wrong_secret_or_id_is_refused_in_the_same_words(store: Store, guard: Guard) -> None:
    one, two = made(store).text, made(store, user="bob").text
    head, tail = one[:20], two[20:]
    assert refused(guard, f"Bearer {head}{tail}") == "this key is not known"
    assert refused(guard, f"Bearer mk_{'0' * 16}{one[19:]}") == "this key is not known"
    for at in range(20, 63):
        changed = f"{one[:at]}{'A' if one[at] != 'A' else 'B'}{one[at + 1 :]}"
        assert refused(guard, f"Bearer {changed}") == "this key is not known"


def test_the_digest_of_a_key_is_no_key(store: Store, guard: Guard) -> None:
    record = made(store).record
    assert refused(guard, f"Bearer mk_{record.id}_{record.digest[:43]}") == "this key is not known"


def test_a_revoked_key_is_refused_from_the_next_request_on(store: Store, guard: Guard) -> None:
    new = made(store)
    header = f"Bearer {new.text}"
    assert guard.authenticate(header).user == "ada"
    Keys(keys_of(store)).revoke("acme", new.record.id)
    assert refused(guard, header) == "this key was revoked"


def test_a_revoked_key_is_refused_also_by_a_clock_that_is_behind(store: Store) -> None:
    new = made(store)
    Keys(keys_of(store)).revoke("acme", new.record.id)
    behind = Guard(keys_of(store), clock=lambda: now() - DAY)
    assert refused(behind, f"Bearer {new.text}") == "this key was revoked"


def test_a_key_is_refused_once_its_time_is_over(store: Store) -> None:
    new = Keys(keys_of(store)).create(tenant="acme", user="ada", lifetime=DAY)
    end = new.record.created_at + DAY
    header = f"Bearer {new.text}"
    before = Guard(keys_of(store), clock=lambda: end - timedelta(microseconds=1))
    assert before.authenticate(header).user == "ada"
    assert refused(Guard(keys_of(store), clock=lambda: end), header) == "this key has expired"


@pytest.mark.parametrize("lifetime", [timedelta(0), -DAY, timedelta(days=40_000)])
def test_a_lifetime_that_makes_no_sense_is_refused(store: Store, lifetime: timedelta) -> None:
    with pytest.raises(InvalidError):
        Keys(keys_of(store)).create(tenant="acme", user="ada", lifetime=lifetime)


def test_another_tenant_neither_sees_nor_revokes_nor_rotates_a_key(store: Store) -> None:
    keys, new = Keys(keys_of(store)), made(store, tenant="one")
    assert keys.of("two") == []
    with pytest.raises(NotFoundError):
        keys.revoke("two", new.record.id)
    with pytest.raises(NotFoundError):
        keys.rotate("two", new.record.id)
    assert keys.of("one") == [new.record]


# Rotation


def test_a_rotated_key_is_like_the_old_one_which_goes_on(store: Store, guard: Guard) -> None:
    keys = Keys(keys_of(store))
    for user in ("ada", None):
        old = keys.create(tenant="acme", user=user, label="laptop", lifetime=DAY)
        new = keys.rotate("acme", old.record.id)
        assert (new.record.user, new.record.label) == (user, "laptop")
        assert new.record.expires_at == new.record.created_at + DAY
        assert new.text != old.text
        for text in (old.text, new.text):
            assert guard.authenticate(f"Bearer {text}").user == user


def test_the_old_key_ends_with_its_grace_and_not_later_than_it_would_have(store: Store) -> None:
    keys = Keys(keys_of(store))
    old = keys.create(tenant="acme", user="ada")
    new = keys.rotate("acme", old.record.id, grace=DAY)
    for ahead, works in ((timedelta(0), True), (DAY, False)):
        later = Guard(keys_of(store), clock=lambda ahead=ahead: now() + ahead)  # type: ignore[misc]
        assert later.authenticate(f"Bearer {new.text}").user == "ada"
        if works:
            assert later.authenticate(f"Bearer {old.text}").user == "ada"
        else:
            assert refused(later, f"Bearer {old.text}") == "this key has expired"
    short = keys.create(tenant="acme", user="ada", lifetime=timedelta(hours=1))
    keys.rotate("acme", short.record.id, grace=DAY)
    kept = store.key(short.record.id)
    assert kept is not None
    assert kept.expires_at == short.record.expires_at


def test_no_grace_at_all_ends_the_old_key_at_once(store: Store, guard: Guard) -> None:
    old = made(store)
    Keys(keys_of(store)).rotate("acme", old.record.id, grace=timedelta(0))
    assert refused(guard, f"Bearer {old.text}") == "this key has expired"


def test_a_key_that_has_ended_is_not_rotated(store: Store) -> None:
    keys, over = Keys(keys_of(store)), made(store)
    keys.revoke("acme", over.record.id)
    old = keys.create(tenant="acme", user="ada", lifetime=DAY)
    for dated, ended in ((keys, over), (Keys(keys_of(store), clock=lambda: now() + DAY), old)):
        with pytest.raises(ConflictError):
            dated.rotate("acme", ended.record.id)


# What is no key


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Basic YWRhOnB3",
        "mk_x",
        "Bearer mk_",
        "Bearer mk__",
        "Bearer mk_a_b",
        f"Bearer mk_{'a' * 16}_{'b' * 42}",
        f"Bearer mk_{'a' * 16}_{'b' * 44}",
        f"Bearer mk_{'A' * 16}_{'b' * 43}",
        f"Bearer mk_{'٣' * 16}_{'b' * 43}",
        f"Bearer mk_{'a' * 16}_{'b' * 43}\n",
        f"Bearer\trk_{'a' * 16}_{'b' * 43}",
        "Bearer a b",
        "Bearer \x00",
        "Bearer \ud800",
        "Bearer ' OR 1=1 --",
        "Bearer *",
        "Bearer %",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        f"Bearer {'x' * 10_000}",
        "x" * 1_000_000,
    ],
)
def test_what_is_no_key_is_refused(guard: Guard, header: str | None) -> None:
    assert len(refused(guard, header)) < 100


KEYISH = st.from_regex(r"(?i:bearer) mk_[0-9a-f]{15,17}_[\w-]{42,44}", fullmatch=True)


@given(st.one_of(st.none(), st.text(), st.text().map(lambda text: f"Bearer {text}"), KEYISH))
def test_no_header_raises_anything_else(guard: Guard, header: str | None) -> None:
    said = refused(guard, header)
    assert header is None or len(header) < 20 or header not in said


@pytest.mark.parametrize("over", [0, 1])
def test_a_header_that_is_too_long_is_not_looked_at(guard: Guard, over: int) -> None:
    header = "Bearer " + "x" * (MAX_CHARS - 7 + over)
    assert ("over 8192 characters" in refused(guard, header)) is bool(over)


def test_a_key_never_stands_in_what_is_raised_or_logged(
    store: Store, guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    new = made(store)
    wrong = new.text[:-1] + ("A" if new.text[-1] != "A" else "B")
    Keys(keys_of(store)).revoke("acme", new.record.id)
    for text in (new.text, wrong, new.text + "x"):
        assert new.text[20:60] not in refused(guard, f"Bearer {text}")
    assert new.text[20:60] not in caplog.text


def test_a_store_that_is_away_is_not_taken_for_a_wrong_key() -> None:
    with SqliteStore(":memory:") as gone:
        text = made(gone).text
    with pytest.raises(StoreUnavailableError):
        Guard(keys_of(gone)).authenticate(f"Bearer {text}")


# The open door, and settings


def test_a_local_guard_takes_everyone_without_a_key_for_its_one_user() -> None:
    local = Guard.local("default", "me")
    everyone = Principal(tenant="default", user="me", name="local", local=True)
    assert local.authenticate(None) == everyone
    for header in ("", "Bearer mk_nonsense"):
        assert "leave the key out" in refused(local, header)


def test_a_local_guard_knows_for_a_moment_that_there_is_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auth, "KEYS_SECONDS", 60)
    with SqliteStore(":memory:") as store:
        local = Guard.local("default", "me", keys_of(store))
        assert local.at_once(None) is None
        assert local.authenticate(None) == local.at_once(None)
        assert local.at_once("Bearer mk_nonsense") is None
        key = made(store)
        assert "send a key" in refused(local, None)
        with pytest.raises(UnauthorizedError):
            local.at_once(None)
        assert local.authenticate(f"Bearer {key.text}").user == "ada"


def test_tokens_are_off_unless_the_settings_say_how_to_check_them(store: Store) -> None:
    plain = build_guard(keys_of(store), Settings(url=""))
    assert "not a key" in refused(plain, "Bearer eyJhbGciOiJub25lIn0.e30.")
    assert plain.authenticate(f"Bearer {made(store).text}").user == "ada"
    for half in (Settings(url="", jwt_issuer="x"), Settings(url="", jwt_audience="x")):
        with pytest.raises(ConfigError, match="MEMORIST_JWT_KEY"):
            build_guard(keys_of(store), half)


def test_keys_need_no_other_package() -> None:
    code = (
        "import sys\n"
        "for name in ('jwt', 'fastapi', 'starlette', 'cryptography'): sys.modules[name] = None\n"
        "from memorist.server.auth import Guard, Keys, build_guard\n"
        "from memorist.config import Settings\n"
        "from memorist import Memory\n"
        "keys = Memory(':memory:', embedder=None, extraction=None).keys\n"
        "new = Keys(keys).create(tenant='t', user='ada')\n"
        "print(Guard(keys).authenticate('Bearer ' + new.text).user)\n"
        "try: build_guard(keys, Settings(url='', jwt_key='k' * 32))\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ('ada\nthis needs an optional part: pip install "memorist[server]"\n')


# The record


def test_a_record_of_a_key_that_cannot_be_is_refused() -> None:
    good = ApiKey(id="k", tenant="t", user="u", digest="0" * 64)
    for wrong in ("", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 63 + "\n"):
        with pytest.raises(RecordError):
            replace(good, digest=wrong)
    with pytest.raises(ScopeError):
        replace(good, tenant="a\x00b")
    with pytest.raises(ScopeError):
        replace(good, user="\ud800")
    with pytest.raises(RecordError):
        replace(good, label="x" * 1_001)
    with pytest.raises(RecordError):
        replace(good, expires_at=datetime(2026, 1, 1))
