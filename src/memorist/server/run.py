"""Serve: one process, or several, on one port."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from memorist.config import Settings
from memorist.errors import ConfigError, MissingExtraError
from memorist.memory import Memory, open_embedder, open_store, open_thinking

try:
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol
    from uvicorn.supervisors import Multiprocess
except ImportError as error:
    raise MissingExtraError("server") from error

from memorist.server.auth import Guard, build_guard
from memorist.server.chat import Chats
from memorist.server.http.app import Limits, build_app
from memorist.server.http.rate_limit import address_of

GRACE_S = 10
KEEP_ALIVE_S = 30
HEAD_S = 10.0  # in which the head of a request must come
MOST_CONNECTIONS = 1_000
MOST_OF_ONE = 250  # connections that one address may have
BACKLOG = 2_048
log = logging.getLogger("memorist.server")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """How to reach it from this machine."""
        here = Address("127.0.0.1" if self.host == "0.0.0.0" else "::1", self.port)
        return f"http://{(here if self.anywhere else self).name}:{self.port}"

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
    """HTTP that neither holds back nor waits for long.

    The end of an answer would else wait 40 ms for the client: asyncio sees to that only for
    sockets that it opens itself. And connections that never ask would take the place of others:
    they are closed, be they silent or slow, and one address has only so many. Not so on loopback,
    where a proxy has those of everybody.
    """

    head_s = HEAD_S
    most_of_one = MOST_OF_ONE
    spared: tuple[str, ...] = ("127.", "::/64")  # how addresses begin that may have more
    address: tuple[str, ...] = ()
    _late: asyncio.TimerHandle | None = None  # closes it when no head comes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a connection, or end it where there are too many of one address."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self.address = address_of({"client": self.client})
        if self._crowded():
            log.warning("one address has over %d connections", self.most_of_one)
            self.transport.close()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read on; what is no part of a request that is being answered is not awaited for long."""
        super().data_received(data)
        if self._busy():
            self._stop_waiting()
        elif self._late is None and not self.transport.is_closing():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End with a connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._late = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None

    def _give_up(self) -> None:
        self._late = None
        if not self._busy():
            self.transport.abort()  # who sends nothing may not read either

    def _busy(self) -> bool:
        return bool(self.cycle and not self.cycle.response_complete)

    def _crowded(self) -> bool:
        of_one = sum(it.address == self.address for it in self.connections)
        return of_one > self.most_of_one and not self.address[1].startswith(self.spared)


def settled(settings: Settings, address: Address, *, keys: bool) -> Settings:
    """Settings that fit an address: its name is a good one, and callers show keys.

    They need none where only one local user can connect, and nobody has made `keys` or set up
    tokens: whoever did wants them asked for.
    """
    if settings.auth == "off" and not address.loopback:
        raise ConfigError(
            f"{address.host} can be reached from other machines: that needs keys; "
            "listen on 127.0.0.1, or leave --no-auth and MEMORIST_AUTH=off out"
        )
    wanted = keys or settings.jwt_key or settings.jwt_jwks_url
    asks = settings.auth == "on" or not address.loopback or (settings.auth == "auto" and wanted)
    names = settings.hosts.split() + [address.name] * (not address.anywhere)
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
    if app is None:
        _try(settings)
    ready(Address(address.host, listening.getsockname()[1]))
    if app is not None:
        uvicorn.Server(configured(app)).run(sockets=[listening])
        return
    os.environ.update(settings.to_environment())  # all that the other processes get to know
    config = configured("memorist.server.run:make_app", factory=True, workers=workers)
    Multiprocess(config, sockets=[listening]).run()


def configured(app: Any, **options: Any) -> uvicorn.Config:
    """How any app is served here."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=Prompt,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_worker_healthcheck=60,
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MOST_CONNECTIONS,
        **options,
    )


def make_app(settings: Settings | None = None) -> Any:
    """The app of these settings, or of the environment's; it closes its memory at the end."""
    settings = settings or Settings.from_environment()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return _app(settings, _memory(settings))


def _try(settings: Settings) -> None:
    """Make the app for nothing: in the other processes nobody would be told why it cannot be."""
    with _memory(settings) as memory:
        _app(settings, memory)


def _memory(settings: Settings) -> Memory:
    memory: Memory = Memory(
        open_store(settings.url, settings.durability),
        tenant=settings.tenant,
        embedder=open_embedder(settings.embedder),
        thinking=open_thinking(settings),
    )
    return memory


def _app(settings: Settings, memory: Memory) -> Any:
    if settings.auth == "off":
        guard = Guard.local(settings.tenant, settings.user)
    else:
        guard = build_guard(memory.store, settings)
    limits = Limits(
        requests_per_s=_number(settings.rate),
        hosts=settings.hosts.split(),
        origins=settings.origins.split(),
    )
    return build_app(memory, guard, limits, chats=Chats.of(settings), owned=True)


def _number(rate: str) -> float:
    try:
        number = float(rate)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ConfigError("MEMORIST_RATE is a number of requests a second, 0 for no limit")
    return number


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
