"""JSON Web Tokens of hosts that have users already.

The kind of key says which algorithm counts, never the token: a shared secret HS256, a public
key RS256, ES256 or EdDSA. A token must end (`exp`) and name its user (`sub`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from memorist.config import Settings
from memorist.errors import (
    ConfigError,
    MissingExtraError,
    ProviderError,
    ScopeError,
    UnauthorizedError,
)
from memorist.records.scope import Scope, check_tenant
from memorist.server.principal import Principal

try:
    import jwt
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
except ImportError as error:
    raise MissingExtraError("server") from error

ADMIN = "memorist:admin"
LEEWAY_S = 10  # two clocks never agree
MIN_SECRET_BYTES = 32
MIN_RSA_BITS = 2_048
FRESH_S = 300.0  # how long published keys are believed without asking again
LAST_S = 3_600.0  # how long they are believed while their issuer is away
PAUSE_S = 30.0  # between two fetches for key ids that nobody has published
RETRY_S = 5.0  # between two fetches where nothing can be told without one
TIMEOUT_S = 5.0
ASYMMETRIC = ("RS256", "ES256", "EdDSA")
# What PyJWT raises, and what its older releases let through where a token's JSON is odd.
BROKEN = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
log = logging.getLogger("memorist.server")

Verifier: TypeAlias = tuple[Any, str]
"""A key, and the one algorithm it is for."""


class Verifiers(Protocol):
    """Where the keys are that tokens are checked with."""

    def of(self, token: str) -> Verifier: ...


@dataclass(frozen=True, slots=True)
class OneKey:
    """The same key for every token."""

    verifier: Verifier = field(repr=False)

    def of(self, token: str) -> Verifier:
        return self.verifier


class Published:
    """The keys that an issuer publishes under a URL, fetched when needed and not too often."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ConfigError("MEMORIST_JWT_JWKS_URL must be https: who could change it, decides")
        try:
            self._client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=TIMEOUT_S)
        except jwt.PyJWTError as error:
            raise ConfigError("MEMORIST_JWT_JWKS_URL is no https:// URL") from error
        self._clock = clock
        self._lock = threading.Lock()  # never held while somebody fetches
        self._keys: Mapping[str, Verifier] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching = False

    def of(self, token: str) -> Verifier:
        kid = str(jwt.get_unverified_header(token).get("kid", ""))
        if self._begins_to_fetch(kid):
            self._fetch()
        with self._lock:
            age, found = self._clock() - self._fetched_at, self._keys.get(kid)
            unsure = self._fetching or age >= FRESH_S
        if age >= LAST_S or (found is None and unsure):
            raise ProviderError("the keys of the tokens' issuer cannot be fetched; retry")
        if found is None:
            raise UnauthorizedError("the token is signed with a key that its issuer has not")
        return found

    def _begins_to_fetch(self, kid: str) -> bool:
        """Whether it is on this caller to fetch: the others go on with what is there."""
        with self._lock:
            at = self._clock()
            stale = at - self._fetched_at >= FRESH_S
            waited = at - self._tried_at >= (RETRY_S if stale else PAUSE_S)
            if self._fetching or not waited or (kid in self._keys and not stale):
                return False
            self._fetching = True
            return True

    def _fetch(self) -> None:
        at, keys = self._clock(), None
        try:
            keys = self._client.get_signing_keys()
        except (*BROKEN, OSError, HTTPException) as error:
            log.warning("the keys of the tokens' issuer: %s", type(error).__name__)
        finally:
            with self._lock:
                self._fetching, self._tried_at = False, self._clock()
                if keys is not None:
                    self._fetched_at, self._keys = at, _checking(keys)


def _checking(keys: Sequence[jwt.PyJWK]) -> dict[str, Verifier]:
    """By their ids, those that check signatures: never a secret that everybody can read."""
    return {
        str(key.key_id): (key, key.algorithm_name)
        for key in keys
        if key.algorithm_name in ASYMMETRIC
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtTokens:
    """Reads who is calling from a signed token."""

    verifiers: Verifiers
    issuer: str | None = None
    audience: str | None = None
    tenant: str = "default"
    tenant_claim: str = "tenant"

    @classmethod
    def of(cls, settings: Settings) -> JwtTokens:
        """As the settings say."""
        if settings.jwt_key and settings.jwt_jwks_url:
            raise ConfigError("give one of MEMORIST_JWT_KEY and MEMORIST_JWT_JWKS_URL")
        key, url = settings.jwt_key, settings.jwt_jwks_url
        return cls(
            verifiers=Published(url) if url else OneKey(verifier_of(key)),
            issuer=settings.jwt_issuer or None,
            audience=settings.jwt_audience or None,
            tenant=settings.tenant,
            tenant_claim=settings.jwt_tenant_claim,
        )

    def read(self, token: str) -> Principal:
        """Whose token it is; raises UnauthorizedError where it proves nothing."""
        try:
            key, algorithm = self.verifiers.of(token)
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self.issuer,
                audience=self.audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "sub"], "enforce_minimum_key_length": True},
            )
        except BROKEN as error:
            raise UnauthorizedError(_why(error)) from None  # PyJWT's text may quote the token
        return self._principal(claims)

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        user, tenant = claims["sub"], claims.get(self.tenant_claim, self.tenant)
        if not user or not isinstance(user, str) or not tenant:
            raise UnauthorizedError("the token's user or tenant is no text, or empty")
        try:
            check_tenant(Scope(tenant=tenant, user=user).tenant)
        except ScopeError:
            raise UnauthorizedError("the token's user or tenant cannot be used") from None
        name = ascii(user)[1:-1]  # a subject with a line break in it is no second line of a log
        return Principal(tenant=tenant, user=None if _is_admin(claims) else user, name=name)


def verifier_of(text: str) -> Verifier:
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


def _public_key(pem: bytes) -> Verifier:
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


def _is_admin(claims: Mapping[str, Any]) -> bool:
    """Whether `memorist:admin` is among the scopes, which are words or a list of them."""
    scope = claims.get("scope", "")
    words = scope.split(" ") if isinstance(scope, str) else scope
    return isinstance(words, list) and ADMIN in words


def _why(error: Exception) -> str:
    """What is wrong with a token, in words of ours."""
    for kind, why in (
        (jwt.ExpiredSignatureError, "the token has expired"),
        (jwt.ImmatureSignatureError, "the token is not valid yet"),
        (jwt.InvalidAudienceError, "the token is for another audience"),
        (jwt.InvalidIssuerError, "the token is from another issuer"),
        (jwt.MissingRequiredClaimError, "the token lacks a claim: exp, sub, or what is checked"),
        (jwt.InvalidSignatureError, "the token is not signed with the key"),
        (jwt.InvalidAlgorithmError, "the token is not signed as its key wants"),
    ):
        if isinstance(error, kind):
            return why
    return "this is neither a key nor a token that can be read"
