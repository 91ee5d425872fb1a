"""Tokens that somebody else signed: which are believed, and every way to forge one."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from memorist.config import Settings
from memorist.errors import ConfigError, UnauthorizedError
from memorist.records.scope import Principal
from memorist.server.auth import Guard, Keys, build_guard
from memorist.store.sqlite.store import SqliteStore
from tests.support.http_server import keys_of
from tests.support.tokens import (
    ED,
    PRIVATE,
    RSA,
    SECRET,
    by_hand,
    claims,
    coded,
    pem,
    refused,
    signed,
    tokens,
)

# What is believed


def test_a_token_names_its_user_and_tenant() -> None:
    assert tokens().read(signed()) == Principal(tenant="default", user="ada", name="ada")
    assert tokens(tenant="acme").read(signed()).tenant == "acme"
    assert tokens().read(signed(tenant="globex")).tenant == "globex"
    assert tokens(jwt_tenant_claim="org").read(signed(tenant="no", org="yes")).tenant == "yes"


@pytest.mark.parametrize("algorithm", PRIVATE)
def test_a_public_key_checks_what_its_private_half_signed(algorithm: str) -> None:
    private = PRIVATE[algorithm]
    token = signed(private, algorithm)
    for written in (pem(private), pem(private).replace("\n", "\\n"), f"\n  {pem(private)}"):
        assert tokens(written).read(token).user == "ada"


@pytest.mark.parametrize(
    ("scope", "admin"),
    [
        ("memorist:admin", True),
        ("openid memorist:admin", True),
        (["memorist:admin"], True),
        ("memorist:administrator", False),
        ("xmemorist:admin", False),
        ("", False),
        (None, False),
        ([["memorist:admin"]], False),
        ({"memorist:admin": 1}, False),
        (7, False),
    ],
)
def test_a_scope_makes_an_admin(scope: Any, admin: bool) -> None:
    who = tokens().read(signed(scope=scope))
    assert (who.admin, who.user, who.name) == (admin, None if admin else "ada", "ada")
    assert not who.program


def test_a_scope_makes_a_program() -> None:
    for scope, program in (("memorist:program", True), ("memorist:programs", False)):
        who = tokens().read(signed(SECRET, "HS256", scope=scope))
        assert (who.program, who.admin) == (program, False)


def test_issuer_and_audience_are_checked_where_they_are_set() -> None:
    strict = tokens(jwt_issuer="https://id.example", jwt_audience="memorist")
    good: dict[str, Any] = {"iss": "https://id.example", "aud": ["other", "memorist"]}
    assert strict.read(signed(**good)).user == "ada"
    assert "another audience" in refused(strict, signed(**{**good, "aud": "other"}))
    assert "another issuer" in refused(strict, signed(**{**good, "iss": "https://evil.example"}))
    for missing in ("iss", "aud"):
        assert "lacks a claim" in refused(strict, signed(**{**good, missing: ...}))


def test_a_token_for_somebody_else_is_refused_also_where_no_audience_is_set() -> None:
    assert "another audience" in refused(tokens(), signed(aud="billing"))


def test_clocks_may_differ_by_a_little() -> None:
    at = int(time.time())
    assert tokens().read(signed(exp=at - 5, iat=at + 5, nbf=at + 5)).user == "ada"
    assert "expired" in refused(tokens(), signed(exp=at - 60))
    assert "not valid yet" in refused(tokens(), signed(nbf=at + 60))
    assert "not valid yet" in refused(tokens(), signed(iat=at + 60))


def test_a_subject_cannot_write_a_line_of_the_log() -> None:
    who = tokens().read(signed(sub="ada\n2026-01-01 root logged in"))
    assert who.user == "ada\n2026-01-01 root logged in"
    assert "\n" not in who.name


# What is forged


def test_an_unsigned_token_is_refused() -> None:
    names: list[Any] = ["none", "None", "NONE", "nOnE", "", None, [], {}, 0]
    for name in names:
        for trusted in (tokens(), *(tokens(pem(private)) for private in PRIVATE.values())):
            refused(trusted, by_hand({"alg": name, "typ": "JWT"}, claims()))
            refused(trusted, by_hand({"alg": name}, claims(), SECRET.encode()))
    refused(tokens(), by_hand({"typ": "JWT"}, claims()))


@pytest.mark.parametrize("algorithm", PRIVATE)
def test_a_token_signed_with_the_public_key_as_a_secret_is_refused(algorithm: str) -> None:
    public = pem(PRIVATE[algorithm])
    trusted = tokens(public)
    for secret in (public.encode(), public.strip().encode(), b"", b"\x00" * 32):
        for name in ("HS256", algorithm):
            refused(trusted, by_hand({"alg": name}, claims(), secret))


def test_another_algorithm_than_the_keys_own_is_refused() -> None:
    for name in ("HS384", "HS512"):
        assert "algorithm is not the key's" in refused(tokens(), signed(algorithm=name))
    for name in ("RS384", "RS512", "PS256"):
        assert "algorithm is not the key's" in refused(tokens(pem(RSA)), signed(RSA, name))
    for name, private in PRIVATE.items():
        refused(tokens(), signed(private, name))


def test_another_key_or_a_changed_token_is_refused() -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert "signature is not the key's" in refused(tokens(pem(RSA)), signed(other, "RS256"))
    assert "signature is not the key's" in refused(
        tokens(), signed("another secret of 32 bytes or so")
    )
    head, body, mac = signed().split(".")
    refused(tokens(), f"{head}.{coded(claims(sub='root'))}.{mac}")
    refused(tokens(), f"{head}.{body}.{mac[:-2]}")
    refused(tokens(), f"{head}.{body}.")
    refused(tokens(), f"{head}.{body}")


def test_keys_that_a_token_brings_along_are_not_used() -> None:
    evil = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(evil.public_key()))
    for headers in ({"jwk": jwk}, {"jku": "http://127.0.0.1:1/keys"}, {"kid": "../../dev/null"}):
        token = jwt.encode(claims(), evil, "RS256", headers=headers)
        assert "signature is not the key's" in refused(tokens(pem(RSA)), token)


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": ...},
        {"exp": None},
        {"exp": "soon"},
        {"exp": []},
        {"exp": 1},
        {"exp": -1},
        {"sub": ...},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["ada"]},
        {"sub": "a\x00b"},
        {"tenant": None},
        {"tenant": ""},
        {"tenant": 7},
        {"tenant": ["a"]},
        {"tenant": "a\x00b"},
        {"tenant": "a/library"},
        {"nbf": "x"},
        {"iat": "x"},
        {"aud": {"a": 1}},
    ],
)
def test_claims_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    payload = {**claims(), **wrong}
    payload = {name: value for name, value in payload.items() if value is not ...}
    refused(tokens(), by_hand({"alg": "HS256"}, payload, SECRET.encode()))


def test_odd_json_in_a_token_with_a_right_signature_is_refused() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    for body in (deep, b"", b"null", b"[]", b"7", b"\xff", b'{"sub":"ada","exp":Infinity}',
                 b'{"sub":"ada","exp":NaN}', b'{"sub":"ada","exp":1e999}',
                 b'{"sub":"\\ud800","exp":9999999999}'):  # fmt: skip
        refused(tokens(), by_hand({"alg": "HS256"}, body, SECRET.encode()))
    for head in (deep, b"", b"null", b"[]", b"\xff", b'{"alg":"HS256","kid":7}',
                 b'{"alg":"HS256","b64":false,"crit":["b64"]}'):  # fmt: skip
        refused(tokens(), by_hand(head, claims(), SECRET.encode()))


PIECE = st.one_of(
    st.text("abcXYZ019-_=", max_size=12),
    st.binary(max_size=12).map(coded),
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.text(),
            st.booleans(),
            st.lists(st.text(), max_size=2),
            st.just("HS256"),
        ),
    ).map(coded),
)


@given(st.lists(PIECE, max_size=5).map(".".join))
def test_no_token_raises_anything_else(token: str) -> None:
    for trusted in (tokens(), TRUSTED[0]):
        said = refused(trusted, token)
        assert len(token) < 30 or token not in said


TRUSTED = [tokens(pem(ED))]


def test_a_huge_token_is_refused_before_it_is_read() -> None:
    with SqliteStore(":memory:") as store:
        guard = build_guard(keys_of(store), Settings(url="", jwt_key=SECRET))
        assert guard.authenticate(f"Bearer {signed()}").user == "ada"
        with pytest.raises(UnauthorizedError, match="over 8192"):
            guard.authenticate(f"Bearer {signed(padding='x' * 10_000)}")


def test_keys_and_tokens_stand_side_by_side_and_are_not_mixed_up() -> None:
    with SqliteStore(":memory:") as store:
        guard = build_guard(keys_of(store), Settings(url="", jwt_key=SECRET))
        key = Keys(keys_of(store)).create(tenant="acme", user="bob").text
        assert guard.authenticate(f"Bearer {key}").user == "bob"
        assert guard.authenticate(f"Bearer {signed()}").user == "ada"
        with pytest.raises(UnauthorizedError):
            guard.authenticate(f"Bearer mk_{signed()}")
        with pytest.raises(UnauthorizedError):
            Guard(keys_of(store)).authenticate(f"Bearer {signed()}")


# Settings


def _weak() -> str:
    return pem(rsa.generate_private_key(public_exponent=65537, key_size=1024))


@pytest.mark.parametrize(
    "key",
    [
        "short",
        "x" * 31,
        "-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----",
        _weak(),
        pem(ec.generate_private_key(ec.SECP384R1())),
        pem(dsa.generate_private_key(1024)),
        RSA.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        RSA.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode(),
    ],
    ids=["short", "31", "nonsense", "1024 bits", "P-384", "DSA", "private", "ssh"],
)
def test_a_key_that_cannot_protect_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="MEMORIST_JWT_KEY") as caught:
        tokens(key)
    assert key not in str(caught.value)
    assert key not in repr(Settings(url="", jwt_key=key))


def test_the_secret_never_stands_in_a_repr() -> None:
    assert SECRET not in repr(tokens())
    given = Settings.from_environment({"MEMORIST_URL": "x", "MEMORIST_JWT_KEY": SECRET})
    assert given.jwt_key == SECRET
    assert SECRET not in repr(given)


def test_only_one_kind_of_key_is_taken() -> None:
    with pytest.raises(ConfigError, match="give one of"):
        tokens(SECRET, jwt_jwks_url="https://id.example/keys")


@pytest.mark.parametrize(
    "url", ["http://id.example/keys", "file:///etc/passwd", "keys.json", "ftp://localhost/x"]
)
def test_published_keys_come_over_a_safe_way(url: str) -> None:
    with pytest.raises(ConfigError, match="MEMORIST_JWT_JWKS_URL"):
        tokens("", jwt_jwks_url=url)
