"""Serve: one process, or several, on one port."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from recollect.config import Settings
from recollect.errors import ConfigError, MissingExtraError
from recollect.memory import Memory, open_embedder, open_store, open_thinking

try:
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol
    from uvicorn.supervisors import Multiprocess
except ImportError as error:
    raise MissingExtraError("server") from error

from recollect.server.auth import Guard, build_guard
from recollect.server.chat import Chats
from recollect.server.http.app import Limits, build_app

GRACE_S = 10
KEEP_ALIVE_S = 30
MOST_CONNECTIONS = 1_000
BACKLOG = 2_048


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """How to reach it from this machine."""
        return f"http://{self.name}:{self.port}"

    @property
    def name(self) -> str:
        """The host as an address has it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def anywhere(self) -> bool:
        """Whether it is every address of this machine, and no name that one could call."""
        return self.host in ("0.0.0.0", "::")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class Prompt(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP that holds nothing back: the end of an answer would else wait 40 ms for the client.

    asyncio sees to that only for sockets that it opens itself.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a connection."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


def settled(settings: Settings, address: Address, *, keys: bool) -> Settings:
    """Settings that fit an address: its name is a good one, and callers show keys.

    They need none where only one local user can connect, and nobody has made `keys` or set up
    tokens: whoever did wants them asked for.
    """
    if settings.auth == "off" and not address.loopback:
        raise ConfigError(
            f"{address.host} can be reached from other machines: that needs keys; "
            "listen on 127.0.0.1, or leave --no-auth and RECOLLECT_AUTH=off out"
        )
    wanted = keys or settings.jwt_key or settings.jwt_jwks_url
    asks = settings.auth == "on" or not address.loopback or (settings.auth == "auto" and wanted)
    known = address.anywhere or address.loopback  # no name to call, or one that is let in anyway
    names = settings.hosts.split() + [address.name] * (not known)
    return replace(settings, auth="on" if asks else "off", hosts=" ".join(names))


def serve(
    settings: Settings,
    address: Address,
    *,
    workers: int = 1,
    ready: Callable[[Address], None] = lambda _: None,
) -> None:
    """Listen until told to stop; `ready` is called with the address once it is known to be free."""
    listening = _bind(address)
    app = make_app(settings) if workers == 1 else None  # what is wrong with it is told first
    ready(Address(address.host, listening.getsockname()[1]))
    if app is not None:
        uvicorn.Server(configured(app)).run(sockets=[listening])
        return
    os.environ.update(settings.to_environment())  # all that the other processes get to know
    config = configured("recollect.server.run:make_app", factory=True, workers=workers)
    Multiprocess(config, sockets=[listening]).run()


def configured(app: Any, **options: Any) -> uvicorn.Config:
    """How any app is served here."""
    return uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        ws="none", http=Prompt, timeout_keep_alive=KEEP_ALIVE_S, timeout_worker_healthcheck=60,
        timeout_graceful_shutdown=GRACE_S, limit_concurrency=MOST_CONNECTIONS, **options,
    )  # fmt: skip


def make_app(settings: Settings | None = None) -> Any:
    """The app of these settings, or of the environment's; it closes its memory at the end."""
    settings = settings or Settings.from_environment()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    store = open_store(settings.url, settings.durability)
    memory = Memory(
        store, tenant=settings.tenant, embedder=open_embedder(settings.embedder),
        thinking=open_thinking(settings),
    )  # fmt: skip
    if settings.auth == "off":
        guard = Guard.local(settings.tenant, settings.user)
    else:
        guard = build_guard(store, settings)
    limits = Limits(
        requests_per_s=_number(settings.rate), hosts=settings.hosts.split(),
        origins=settings.origins.split(),
    )  # fmt: skip
    return build_app(memory, guard, limits, chats=Chats.of(settings), owned=True)


def _number(rate: str) -> float:
    try:
        return float(rate)
    except ValueError:
        raise ConfigError("RECOLLECT_RATE is a number of requests a second") from None


def _bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        listening.listen(BACKLOG)  # who is told of it may connect at once
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"cannot listen on {address.url} ({error.strerror}); is it running already? "
            "Choose another with --port"
        ) from None
    return listening
