"""Keys that an issuer publishes: fetched when needed, not too often, believed for minutes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest

from memorist.config import Settings
from memorist.errors import ProviderError
from memorist.server.tokens import FRESH_S, LAST_S, PAUSE_S, RETRY_S, JwtTokens, Published
from tests.support.tokens import EC, PRIVATE, RSA, SECRET, Issuer, claims, coded, refused, signed


class Clock:
    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


class SlowIssuer(Issuer):
    """Answers when it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.coming = 0
        super().__init__()

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.coming += 1
        self.let_go.wait(10)
        super().finish_request(request, client_address)


@pytest.fixture
def issuer() -> Iterator[SlowIssuer]:
    server = SlowIssuer()
    server.let_go.set()
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
    clock.at += FRESH_S
    assert trusted.read(by_kid("one")).user == "ada"  # by what is known of old
    with pytest.raises(ProviderError):  # it may be new
        trusted.read(by_kid("two"))
    clock.at += LAST_S - FRESH_S
    with pytest.raises(ProviderError):
        trusted.read(by_kid("one"))


def test_one_fetches_and_nobody_waits_for_it(clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{hung.getsockname()[1]}/keys"
        trusted = JwtTokens(verifiers=Published(url, clock=clock))
        first = pool.submit(trusted.read, by_kid("one"))
        fetching, _ = hung.accept()
        clock.at += 10 * RETRY_S  # it takes its time, and the others' is not up before its end
        for _ in range(3):
            with pytest.raises(ProviderError):
                trusted.read(by_kid("one"))
        fetching.close()
        with pytest.raises(ProviderError):
            first.result()
        with pytest.raises(ProviderError):
            trusted.read(by_kid("one"))
        hung.settimeout(0.05)
        with pytest.raises(TimeoutError):
            hung.accept()


def test_while_one_fetches_the_others_go_on_with_the_keys_of_before(
    issuer: SlowIssuer, trusted: JwtTokens, clock: Clock
) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    trusted.read(by_kid("one"))
    with ThreadPoolExecutor() as pool:
        for number, (pause, kid) in enumerate([(FRESH_S, "one"), (PAUSE_S, "two")], start=2):
            issuer.let_go.clear()
            clock.at += pause
            first = pool.submit(trusted.read, by_kid(kid))
            while issuer.coming < number:
                time.sleep(0.01)
            assert trusted.read(by_kid("one")).user == "ada"
            with pytest.raises(ProviderError):
                trusted.read(by_kid("two"))
            issuer.publish(("one", RSA.public_key(), "RS256"), (kid, RSA.public_key(), "RS256"))
            issuer.let_go.set()
            assert first.result().user == "ada"
            assert issuer.asked == number


def test_an_issuer_that_speaks_no_http_is_away(clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{odd.getsockname()[1]}/keys"
        first = pool.submit(JwtTokens(verifiers=Published(url, clock=clock)).read, by_kid("one"))
        asking, _ = odd.accept()
        asking.sendall(b"what?\r\n\r\n")
        asking.close()
        with pytest.raises(ProviderError):
            first.result()


def test_a_secret_that_is_published_checks_nothing(issuer: Issuer, trusted: JwtTokens) -> None:
    issuer.publish(("one", RSA.public_key(), "RS256"))
    issuer.keys.append({"kty": "oct", "k": coded(SECRET.encode()), "kid": "two", "use": "sig"})
    token = jwt.encode(claims(), SECRET, "HS256", headers={"kid": "two"})
    assert "its issuer has not" in refused(trusted, token)
