"""JSON Web Tokens (JWT) of an application that has users already.

The key decides which algorithm is accepted, never the token: HS256 for a shared secret; RS256,
ES256 or EdDSA for a public key. A token must have `exp` and `sub`.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from memorist.config import Settings
from memorist.errors import ConfigError, ScopeError, UnauthorizedError
from memorist.forks import fork_safe
from memorist.records.scope import Principal, Scope, check_tenant
from memorist.server.http.problems import HttpError

ADMIN, PROGRAM = "memorist:admin", "memorist:program"  # scopes
LEEWAY_S = 10  # for clocks that differ
MIN_SECRET_BYTES = 32
MIN_RSA_BITS = 2_048
JWKS_TIMEOUT_S = 3.0
JWKS_RETRY_S = 5.0  # after a failed fetch, during which no request waits for another
JWKS_FRESH_S = 300.0  # after which the keys are fetched again
JWKS_COOLDOWN_S = 30.0  # within which an unknown key id does not cause another fetch
JWKS_STALE_S = 86_400.0  # for which keys count while no newer ones can be fetched
ASYMMETRIC = ("RS256", "ES256", "EdDSA")
# What PyJWT raises, and what it lets through where a token's JSON is odd.
INVALID_TOKEN = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
# What is wrong with a token, without a word of it: PyJWT's text may quote it.
REASONS: dict[type[BaseException], str] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token is for another audience",
    jwt.InvalidIssuerError: "the token is from another issuer",
    jwt.MissingRequiredClaimError: "the token lacks a claim: exp, sub, or one that is checked",
    jwt.InvalidSignatureError: "the token's signature is not the key's",
    jwt.InvalidAlgorithmError: "the token's algorithm is not the key's",
}
log = logging.getLogger("memorist.server")

VerificationKey: TypeAlias = tuple[Any, str]
"""A key, and the one algorithm it is for."""


class PublishedKeys:
    """The key set (JWKS) that an issuer publishes, fetched again now and then.

    While the issuer is away, the keys it published last are trusted for up to a day.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ConfigError("MEMORIST_JWT_JWKS_URL must be https, so that nobody can change it")
        if not parts.hostname or "@" in parts.netloc:
            raise ConfigError("MEMORIST_JWT_JWKS_URL must name a host, and no user")
        try:
            self._client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=JWKS_TIMEOUT_S)
        except jwt.PyJWTError as error:
            raise ConfigError("MEMORIST_JWT_JWKS_URL is not an https:// URL") from error
        self._fetching = fork_safe(threading.Lock())
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._failed_at = float("-inf")

    def __call__(self, token: str) -> VerificationKey:
        """The published key that the token names; 503 if the issuer cannot be asked for it."""
        key_id = str(jwt.get_unverified_header(token).get("kid", ""))
        age = time.monotonic() - self._fetched_at
        if age > JWKS_FRESH_S or (key_id not in self._keys and age > JWKS_COOLDOWN_S):
            self._fetch()
        age = time.monotonic() - self._fetched_at
        key = self._keys.get(key_id) if age < JWKS_STALE_S else None
        if key is None and age > JWKS_COOLDOWN_S:  # it may be one that we have not seen
            raise HttpError(503, "issuer_unavailable", "the issuer's keys cannot be fetched; retry")
        if key is None or key.algorithm_name not in ASYMMETRIC:  # never a published secret
            raise UnauthorizedError("the token's key is not published by its issuer")
        return key, key.algorithm_name

    def _fetch(self) -> None:
        """Fetch the keys, unless that failed a moment ago; others do not wait for the fetch."""
        failed_lately = time.monotonic() - self._failed_at < JWKS_RETRY_S
        if failed_lately or not self._fetching.acquire(blocking=False):
            return
        try:
            self._keys = {str(key.key_id): key for key in self._client.get_signing_keys()}
            self._fetched_at = time.monotonic()
        except (*INVALID_TOKEN, OSError, HTTPException) as error:
            log.warning("the issuer's keys cannot be fetched: %s", type(error).__name__)
            self._failed_at = time.monotonic()
        finally:
            self._fetching.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtTokens:
    """Reads the caller from a signed token; `keys` gives the key that a token names."""

    keys: Callable[[str], VerificationKey] = field(repr=False)
    issuer: str | None = None
    audience: str | None = None
    tenant: str = "default"
    tenant_claim: str = "tenant"

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Tokens as the settings describe them."""
        key, url = settings.jwt_key, settings.jwt_jwks_url
        if key and url:
            raise ConfigError("give one of MEMORIST_JWT_KEY and MEMORIST_JWT_JWKS_URL")
        fixed = None if url else parse_key(key)
        return cls(
            keys=PublishedKeys(url) if fixed is None else lambda _: fixed,
            issuer=settings.jwt_issuer or None,
            audience=settings.jwt_audience or None,
            tenant=settings.tenant,
            tenant_claim=settings.jwt_tenant_claim,
        )

    def read(self, token: str) -> Principal:
        """The caller whose token it is; raises UnauthorizedError if the token is not valid."""
        try:
            key, algorithm = self.keys(token)
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self.issuer,
                audience=self.audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "sub"], "enforce_minimum_key_length": True},
            )
        except INVALID_TOKEN as error:
            unreadable = "this is neither an API key nor a readable token"
            raise UnauthorizedError(REASONS.get(type(error), unreadable)) from None
        return self._principal(claims)

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        user, tenant = claims["sub"], claims.get(self.tenant_claim, self.tenant)
        if not user or not isinstance(user, str) or not tenant:
            raise UnauthorizedError("the token's user or tenant is empty, or not a string")
        try:
            check_tenant(Scope(tenant=tenant, user=user).tenant)
        except ScopeError:
            raise UnauthorizedError("the token's user or tenant is not a valid name") from None
        scopes = claims.get("scope", "")  # a list, or words with spaces between
        words = scopes.split(" ") if isinstance(scopes, str) else scopes
        admin, program = (isinstance(words, list) and word in words for word in (ADMIN, PROGRAM))
        name = ascii(user)[1:-1]  # a line break in it must not start a new line of the log
        return Principal(tenant=tenant, user=None if admin else user, name=name, program=program)


def parse_key(text: str) -> VerificationKey:
    """A shared secret or the PEM of a public key, and the algorithm it is for."""
    if "-----BEGIN" in text:
        # Environments often hold line breaks as \n.
        return _public_key(text.replace("\\n", "\n").strip().encode())
    if len(text.encode()) < MIN_SECRET_BYTES:
        raise ConfigError(f"MEMORIST_JWT_KEY must have {MIN_SECRET_BYTES} bytes or more")
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(text)
    except jwt.PyJWTError:
        raise ConfigError("MEMORIST_JWT_KEY is a public key, but not as PEM") from None
    return text, "HS256"


def _public_key(pem: bytes) -> VerificationKey:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError("MEMORIST_JWT_KEY is not the PEM of a public key") from None
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= MIN_RSA_BITS:
        return key, "RS256"
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key, "ES256"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key, "EdDSA"
    raise ConfigError(f"MEMORIST_JWT_KEY: RSA of {MIN_RSA_BITS} bits or more, P-256 or Ed25519")
