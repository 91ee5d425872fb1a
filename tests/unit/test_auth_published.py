"""Keys that an issuer publishes: cached, refreshed for new ids, not too often."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest

from memorist.config import Settings
from memorist.server.http import tokens as tokens_module
from memorist.server.http.problems import HttpError
from memorist.server.http.tokens import JwtTokens, PublishedKeys
from tests.support.tokens import EC, PRIVATE, RSA, SECRET, Issuer, claims, coded, refused, signed


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    server = Issuer()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def trusted(issuer: Issuer) -> JwtTokens:
    return JwtTokens(keys=PublishedKeys(issuer.url))


def by_kid(kid: str, private: Any = RSA, algorithm: str = "RS256") -> str:
    return jwt.encode(claims(), private, algorithm, headers={"kid": kid})


def test_published_keys_check_tokens_and_are_fetched_once(
    issuer: Issuer, trusted: JwtTokens
) -> None:
    issuer.publish(*((name, key.public_key(), name) for name, key in PRIVATE.items()))
    for _ in range(3):
        for name, private in PRIVATE.items():
            assert trusted.read(by_kid(name, private, name)).user == "ada"
    assert issuer.asked == 1
    refused(trusted, by_kid("ES256", RSA, "RS256"))
    refused(trusted, by_kid("RS256", EC, "ES256"))
    assert JwtTokens.of(Settings(url="", jwt_jwks_url=issuer.url)).read(by_kid("RS256"))


def test_unknown_key_ids_do_not_make_us_ask_again_and_again(
    issuer: Issuer, trusted: JwtTokens
) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    trusted.read(by_kid("one"))
    for number in range(50):
        assert "not published" in refused(trusted, by_kid(f"x{number}"))
    refused(trusted, signed(RSA, "RS256"))  # without any id
    assert issuer.asked == 1


def test_an_issuer_that_is_away_is_not_taken_for_a_wrong_token(
    issuer: Issuer, trusted: JwtTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.keys = None
    for _ in range(3):
        with pytest.raises(HttpError, match="cannot be fetched"):
            trusted.read(by_kid("one"))
    assert issuer.asked == 1  # and then a pause
    monkeypatch.setattr(tokens_module, "JWKS_RETRY_S", 0)
    for nonsense in ([], "nonsense", [7], [{"kty": "?"}]):
        issuer.keys = nonsense
        with pytest.raises(HttpError, match="cannot be fetched"):
            trusted.read(by_kid("one"))
    issuer.publish(("one", RSA.public_key(), "RS256"))
    assert trusted.read(by_kid("one")).user == "ada"
    issuer.keys = None
    assert trusted.read(by_kid("one")).user == "ada"  # from the cache


def test_known_keys_outlast_an_issuer_that_is_away(
    issuer: Issuer, trusted: JwtTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    assert trusted.read(by_kid("one")).user == "ada"
    issuer.keys = None
    for name in ("JWKS_FRESH_S", "JWKS_COOLDOWN_S"):
        monkeypatch.setattr(tokens_module, name, 0)  # as after some minutes
    for _ in range(5):
        assert trusted.read(by_kid("one")).user == "ada"
        with pytest.raises(HttpError, match="cannot be fetched") as away:
            trusted.read(by_kid("two"))  # perhaps a new one: we cannot know
        assert away.value.status == 503
    assert issuer.asked == 2  # and then a pause
    monkeypatch.setattr(tokens_module, "JWKS_STALE_S", 0)  # as after a day
    with pytest.raises(HttpError, match="cannot be fetched"):
        trusted.read(by_kid("one"))
    monkeypatch.setattr(tokens_module, "JWKS_RETRY_S", 0)
    monkeypatch.setattr(tokens_module, "JWKS_STALE_S", 60)
    issuer.publish(("two", RSA.public_key(), "RS256"))
    assert trusted.read(by_kid("two")).user == "ada"
    monkeypatch.setattr(tokens_module, "JWKS_COOLDOWN_S", 60)
    assert "not published" in refused(trusted, by_kid("one"))  # withdrawn


def test_an_issuer_that_speaks_no_http_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{odd.getsockname()[1]}/keys"
        first = pool.submit(JwtTokens(keys=PublishedKeys(url)).read, by_kid("one"))
        asking, _ = odd.accept()
        asking.sendall(b"what?\r\n\r\n")
        asking.close()
        with pytest.raises(HttpError):
            first.result()


def test_a_secret_that_is_published_checks_nothing(issuer: Issuer, trusted: JwtTokens) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    issuer.keys.append({"kty": "oct", "k": coded(SECRET.encode()), "kid": "two", "use": "sig"})
    token = jwt.encode(claims(), SECRET, "HS256", headers={"kid": "two"})
    assert "not published" in refused(trusted, token)
