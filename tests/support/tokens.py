"""Tokens and those who sign them, rightly or not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from memorist.config import Settings
from memorist.errors import UnauthorizedError
from memorist.server.http.tokens import JwtTokens

SECRET = "a shared secret that has 64 bytes, as the longest HMAC asks for."
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
PRIVATE: Mapping[str, Any] = {"RS256": RSA, "ES256": EC, "EdDSA": ED}


def pem(private: Any) -> str:
    """The public half, as an operator would set it."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(private.public_key().public_bytes(serialization.Encoding.PEM, form).decode())


def tokens(key: str = SECRET, **settings: Any) -> JwtTokens:
    """What a server with this key believes."""
    return JwtTokens.of(Settings(url="", jwt_key=key, **settings))


def claims(**more: Any) -> dict[str, Any]:
    """Ada's claims, and others; what is `...` is left out."""
    said = {"sub": "ada", "exp": int(time.time()) + 600, **more}
    return {name: value for name, value in said.items() if value is not ...}


def signed(private: Any = SECRET, algorithm: str = "HS256", **more: Any) -> str:
    """A token as an issuer makes it."""
    return jwt.encode(claims(**more), private, algorithm)


def coded(value: Any) -> str:
    """A piece of a token."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(header: Any, payload: Any, secret: bytes | None = None) -> str:
    """A token as an attacker makes it, signed with HMAC if there is a secret."""
    head = f"{coded(header)}.{coded(payload)}"
    mac = b"" if secret is None else hmac.new(secret, head.encode(), hashlib.sha256).digest()
    return f"{head}.{coded(mac)}"


def refused(trusted: JwtTokens, token: str) -> str:
    """Why a token proves nothing."""
    with pytest.raises(UnauthorizedError) as caught:
        trusted.read(token)
    return str(caught.value)


class Issuer(ThreadingHTTPServer):
    """Publishes keys, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.keys: Any = []
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where they are."""
        return f"http://127.0.0.1:{self.server_address[1]}/keys"

    def publish(self, *named: tuple[str, Any, str]) -> None:
        """Publish these: each an id, a public key and its algorithm."""
        self.keys = [
            {**json.loads(jwt.get_algorithm_by_name(alg).to_jwk(key)), "kid": kid, "use": "sig"}
            for kid, key, alg in named
        ]


class _Answer(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        self.server.asked += 1
        broken = self.server.keys is None
        self.send_response(503 if broken else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"keys": self.server.keys}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass
