"""Keys that an issuer publishes: fetched when needed, not too often, believed for minutes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from recollect.config import Settings
from recollect.errors import ProviderError
from recollect.server.tokens import FRESH_S, PAUSE_S, RETRY_S, JwtTokens, Published
from tests.support.tokens import EC, PRIVATE, RSA, SECRET, Issuer, claims, coded, refused, signed


class Clock:
    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    server = Issuer()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trusted(issuer: Issuer, clock: Clock) -> JwtTokens:
    return JwtTokens(verifiers=Published(issuer.url, clock=clock))


def by_kid(kid: str, private: Any = RSA, algorithm: str = "RS256") -> str:
    return jwt.encode(claims(), private, algorithm, headers={"kid": kid})


def test_published_keys_check_tokens_and_are_fetched_once(
    issuer: Issuer, trusted: JwtTokens
) -> None:
    public = [(name, key.public_key(), name) for name, key in PRIVATE.items()]
    issuer.publish(*public)
    for _ in range(3):
        for name, private in PRIVATE.items():
            assert trusted.read(by_kid(name, private, name)).user == "ada"
    assert issuer.asked == 1
    refused(trusted, by_kid("ES256", RSA, "RS256"))
    refused(trusted, by_kid("RS256", EC, "ES256"))
    assert JwtTokens.of(Settings(url="", jwt_jwks_url=issuer.url)).read(by_kid("RS256"))


def test_unknown_key_ids_do_not_make_us_ask_again_and_again(
    issuer: Issuer, trusted: JwtTokens, clock: Clock
) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    trusted.read(by_kid("one"))
    for number in range(50):
        assert "its issuer has not" in refused(trusted, by_kid(f"x{number}"))
    refused(trusted, signed(RSA, "RS256"))  # without any id
    assert issuer.asked == 1
    clock.at += PAUSE_S
    issuer.publish(("two", RSA.public_key(), "RS256"))
    assert trusted.read(by_kid("two")).user == "ada"
    assert "its issuer has not" in refused(trusted, by_kid("one"))  # it was taken back
    assert issuer.asked == 2


def test_keys_that_were_taken_back_are_believed_for_minutes_at_most(
    issuer: Issuer, trusted: JwtTokens, clock: Clock
) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    trusted.read(by_kid("one"))
    issuer.publish(("two", RSA.public_key(), "RS256"))
    clock.at += FRESH_S
    refused(trusted, by_kid("one"))


def test_an_issuer_that_is_away_is_not_taken_for_a_wrong_token(
    issuer: Issuer, trusted: JwtTokens, clock: Clock
) -> None:
    for nothing in (None, [], "nonsense", [7], [{"kty": "?"}]):
        issuer.keys = nothing
        before = issuer.asked
        for _ in range(3):
            with pytest.raises(ProviderError, match="cannot be fetched"):
                trusted.read(by_kid("one"))
        assert issuer.asked == before + 1
        clock.at += RETRY_S
    issuer.publish(("one", RSA.public_key(), "RS256"))
    assert trusted.read(by_kid("one")).user == "ada"
    issuer.keys = None
    clock.at += FRESH_S - 1
    assert trusted.read(by_kid("one")).user == "ada"
    clock.at += 1
    with pytest.raises(ProviderError):
        trusted.read(by_kid("one"))


def test_a_secret_that_is_published_checks_nothing(issuer: Issuer, trusted: JwtTokens) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    issuer.keys.append({"kty": "oct", "k": coded(SECRET.encode()), "kid": "two", "use": "sig"})
    token = jwt.encode(claims(), SECRET, "HS256", headers={"kid": "two"})
    assert "its issuer has not" in refused(trusted, token)
