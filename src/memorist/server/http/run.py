"""Serves the app with uvicorn: one process, or several, on one port."""

import asyncio
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from memorist.config import Settings
from memorist.errors import ConfigError
from memorist.memory import Memory
from memorist.providers.http import is_loopback
from memorist.server.auth import Guard, build_guard
from memorist.server.chat import ChatRuntime
from memorist.server.http.app import Limits, build_app
from memorist.server.http.problems import problem
from memorist.server.observe import set_up_logging
from memorist.server.worker_process import WorkerLink, WorkerProcess, without_interrupts

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
else:  # httptools where it is installed, else h11, which limits headers and pipelines by itself
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as Protocol

SHUTDOWN_S = 8
KEEP_ALIVE_S = 30
MAX_CONNECTIONS = 1_000
MAX_HEADER_BYTES = 65_536
MAX_PIPELINED = 100  # requests of a connection that wait for their turn
BACKLOG = 2_048
THREAD_SECONDS = 0.0005  # that one request computes before others get a turn
MEMORY = ":memory:"  # a database that no other process can open
_BUSY = object()


@dataclass(frozen=True, slots=True)
class Address:
    """The host and port that a server listens on."""

    host: str
    port: int
    scheme: str = "http"

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        here = Address("127.0.0.1" if self.host == "0.0.0.0" else "::1", self.port)
        return f"{self.scheme}://{(here if self.anywhere else self).name}:{self.port}"

    @property
    def name(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def anywhere(self) -> bool:
        """Whether it means every address of this machine."""
        return self.host in ("0.0.0.0", "::")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)


class BoundedConnection(Protocol):
    """A connection that is closed when its next request does not come in time, or has no end.

    uvicorn's own timer ends with the first byte of a request: a client that sends nothing, or a
    header now and then, would hold its connection for ever. Headers and waiting requests would
    take as much memory as a client likes.
    """

    _timer: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look(_BUSY)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless headers, those behind a body too, or waiting requests are too many."""
        self._header_bytes += len(data)
        super().data_received(data)
        if len(getattr(self, "pipeline", ())) > MAX_PIPELINED:
            self.transport.abort()
        elif self._header_bytes > MAX_HEADER_BYTES and hasattr(self, "parser"):
            self.send_400_response("The headers are too large.")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request with a problem, as the app does; uvicorn has plain text."""
        answer = problem(400, "bad_request", msg, "")
        lines = [name + b": " + value for name, value in answer.raw_headers]
        lines = [b"HTTP/1.1 400 Bad Request", *lines, b"connection: close", b"", b""]
        self.transport.write(b"\r\n".join(lines) + bytes(answer.body))
        self.transport.close()

    def on_headers_complete(self) -> None:
        self._header_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._header_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._header_bytes = 0
        super().on_message_complete()

    def _look(self, before: object) -> None:
        """Close the connection if it waits for the same request as at the look `before`."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        now = self.cycle if is_waiting else _BUSY
        if is_waiting and now is before:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self.timeout_keep_alive, self._look, now)


class ServerProcesses(Multiprocess):
    """Several server processes, which this one ends; `ready` is called when all of them serve."""

    def __init__(self, ready: Callable[[], None], *uvicorns: Any) -> None:
        super().__init__(*uvicorns)
        self._ready: Callable[[], None] | None = ready

    def init_processes(self) -> None:
        """Start them: a terminal's Ctrl-C would show a traceback of each that is loading."""
        with without_interrupts():
            super().init_processes()

    def keep_subprocess_alive(self) -> None:
        """Replace those that ended; at the start wait, for a moment, until all serve.

        One that ends before would end again: so does the server then.
        """
        if self._ready is None:
            super().keep_subprocess_alive()
        elif all(process.wait_until_ready(0.5, self.should_exit) for process in self.processes):
            self._ready()
            self._ready = None
        elif ended := [it.exitcode for it in self.processes if it.exitcode is not None]:
            raise ConfigError(
                f"a server process ended while it started (exit code {ended[0]}); "
                "what it wrote to standard error says why"
            )


class OwnSocketLoop(asyncio.SelectorEventLoop):
    """The loop of each of several processes: if they shared a socket, one could take it all."""

    async def create_server(self, *arguments: Any, **options: Any) -> Any:
        """Listen on a socket of its own at the address of the one that is given."""
        options["sock"] = _beside(options["sock"])
        return await super().create_server(*arguments, **options)


def resolve_auth(settings: Settings, address: Address, *, keys: bool) -> Settings:
    """The settings with `auth` resolved, and with the address's own name among the hosts.

    `auto` becomes `local` on loopback without API `keys` and tokens: nobody needs a key until
    there is one. Otherwise authentication is on, or off where the settings say so.
    """
    if settings.auth == "off" and not address.loopback:
        raise ConfigError(
            f"{address.host} can be reached from other machines: that needs keys; "
            "listen on 127.0.0.1, or leave --no-auth and MEMORIST_AUTH=off out"
        )
    names = settings.hosts.split() + [address.name] * (not address.anywhere)
    auth = settings.auth
    if auth == "auto":
        tokens = settings.jwt_key or settings.jwt_jwks_url
        halves = settings.jwt_issuer or settings.jwt_audience  # which `build_guard` refuses alone
        required = keys or tokens or halves or not address.loopback
        auth = "on" if required else "local"
    return replace(settings, auth=auth, hosts=" ".join(names))


def serve(
    settings: Settings,
    address: Address,
    *,
    workers: int = 1,
    certfile: str | None = None,
    keyfile: str | None = None,
    ready: Callable[[Address], None] = lambda _: None,
) -> None:
    """Serve until a signal ends it; `ready` is called with the address once clients can connect.

    With a `certfile` it speaks TLS; the private key is in `keyfile`, or in the same file.
    """
    options = _tls_options(certfile, keyfile)
    listening = _bind(address)
    bound = Address(address.host, listening.getsockname()[1], "https" if options else "http")
    if workers > 1 and sys.platform == "linux":  # others do not divide connections evenly
        with listening:  # until the address is kept, so that no other server takes it
            listening = _beside(listening)  # it does not listen, as it would get a share
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)  # others are refused
        options["loop"] = f"{__name__}:{OwnSocketLoop.__name__}"
    with ExitStack() as stack:
        link = None
        if settings.url != MEMORY:  # which is in this process alone
            link = stack.enter_context(WorkerProcess(settings)).link
        if workers == 1:
            app = make_app(settings, link)  # raises before anybody is told that it is ready
            ready(bound)
            uvicorn.Server(uvicorn_config(app, **options)).run(sockets=[listening])
            return
        with Memory(settings=settings) as memory:
            _app(settings, memory)  # here once, as errors in a server process would reach nobody
        make = partial(make_app, settings, link)
        config = uvicorn_config(make, factory=True, workers=workers, **options)
        processes = ServerProcesses(partial(ready, bound), config, [listening])
        try:
            processes.run()
        finally:
            processes.terminate_all()  # those that are left if `ready` fails


def _tls_options(certfile: str | None, keyfile: str | None) -> dict[str, Any]:
    """uvicorn's options for TLS, checked; none without a certificate."""
    if not certfile:
        if keyfile:
            raise ConfigError("--keyfile needs --certfile, the certificate of that key")
        return {}
    try:  # here, as uvicorn would fail after it was said to be ready
        # An empty password, so that nobody is asked for one at the terminal.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certfile, keyfile, password="")
    except OSError as error:  # also ssl.SSLError
        raise ConfigError(
            "--certfile and --keyfile cannot be used: they are the certificate and its private "
            f"key, as PEM and without a password ({type(error).__name__})"
        ) from None
    return {"ssl_certfile": certfile, "ssl_keyfile": keyfile}


def uvicorn_config(app: Any, **options: Any) -> uvicorn.Config:
    """The uvicorn settings of every server of ours."""
    return uvicorn.Config(
        app,
        log_config=None,  # as the rest of the process logs
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=BoundedConnection,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_worker_healthcheck=60,
        timeout_graceful_shutdown=SHUTDOWN_S,
        limit_concurrency=MAX_CONNECTIONS,
        **options,
    )


def make_app(settings: Settings | None = None, worker: WorkerLink | None = None) -> Any:
    """The app of these settings, or of the environment; it closes its memory at shutdown.

    Without the link to a worker process, background work is done in threads of this one.
    """
    settings = settings or Settings.from_environment()
    set_up_logging(settings)
    sys.setswitchinterval(THREAD_SECONDS)
    memory = Memory(settings=settings, wake_worker=None if worker is None else worker.wake)
    return _app(settings, memory, worker)


def _app(settings: Settings, memory: Memory, worker: WorkerLink | None = None) -> Any:
    if settings.auth in ("off", "local"):
        keys = memory.keys if settings.auth == "local" else None
        home = memory.scope(user=settings.user)  # raises where it cannot be one
        guard = Guard.local(home.tenant, home.user, keys)
    else:
        guard = build_guard(memory.keys, settings)
    hosts, origins = settings.hosts.split(), settings.origins.split()
    limits = Limits(requests_per_s=settings.rate, hosts=hosts, origins=origins)
    chats = ChatRuntime.of(settings)
    return build_app(memory, guard, limits, chats=chats, owned=True, worker=worker)


def _bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on what it accepts: without that, the end
    # of each response waits for the client, for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"cannot listen on {address.url} ({error.strerror}); is it running already? "
            "Choose another with --port"
        ) from None
    return listening


def _beside(there: socket.socket) -> socket.socket:
    """Another socket at the address: Linux divides connections among those that listen."""
    there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    beside = socket.socket(there.family, there.type, there.proto)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        beside.setsockopt(socket.SOL_SOCKET, option, 1)
    beside.bind(there.getsockname())
    return beside
