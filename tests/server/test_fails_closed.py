"""Authentication fails closed; probes answer whatever others do; no connection is held for ever."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memorist import Memory
from memorist.cli.main import app as command
from memorist.config import Settings
from memorist.server.auth import KEYS_SECONDS, Guard, Keys
from memorist.server.http import run
from memorist.server.http.app import Limits, build_app
from memorist.server.http.routes import system
from memorist.server.http.run import BoundedConnection, make_app, uvicorn_config
from tests.support.http_server import serving

MESSAGE = {"role": "user", "content": "I moved to Berlin."}


@pytest.fixture(params=["sqlite", "postgres"])
def any_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    where = tmp_path / "m.db"
    if request.param == "postgres":
        where = request.getfixturevalue("postgres_with_tables")
    with Memory(where, embedder=None, extraction=None) as memory:
        yield memory


def answering(app: Any) -> AbstractContextManager[str]:
    """A server with this app that starts at once: without MCP, its OpenAPI made when needed."""
    return serving(app, lifespan="off")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_key_turns_authentication_on_while_the_server_runs(any_memory: Memory) -> None:
    keys = Keys(any_memory.keys)
    guard = Guard.local("default", "me", any_memory.keys)
    with answering(build_app(any_memory, guard)) as url, httpx.Client(base_url=url) as client:
        assert client.get("/api/sessions").status_code == 200
        assert client.get("/metrics").status_code == 200
        made_elsewhere = f"mk_{'0' * 16}_{'x' * 43}"
        refused = client.post("/api/messages", json=MESSAGE, headers=bearer(made_elsewhere))
        assert refused.status_code == 401
        assert "memorist keys create" in refused.json()["detail"]
        assert not any_memory.users()

        key = keys.create(tenant="acme", user="ada")
        time.sleep(KEYS_SECONDS)
        for path in ("/api/sessions", "/metrics"):
            assert client.get(path).status_code == 401
        assert client.get("/metrics", headers=bearer(key.text)).status_code == 403
        stored = client.post("/api/messages", json=MESSAGE, headers=bearer(key.text))
        assert stored.status_code == 201
        assert any_memory.users() == []
        assert [scope.user for scope in any_memory.tenant("acme").users()] == ["ada"]

        keys.revoke("acme", key.record.id)
        assert client.get("/api/sessions").status_code == 401
        admin = keys.create(tenant="acme", user=None).text
        assert client.get("/metrics", headers=bearer(admin)).status_code == 200


def test_a_revoked_key_of_another_tenant_counts_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    started: list[Settings] = []
    monkeypatch.setattr(run, "serve", lambda settings, *_, **__: started.append(settings))
    arguments = ["serve", "--create", "--db", str(tmp_path / "m.db")]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    with Memory(tmp_path / "m.db", embedder=None, extraction=None) as memory:
        key = Keys(memory.keys).create(tenant="acme", user="ada")
        Keys(memory.keys).revoke("acme", key.record.id)
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert [settings.auth for settings in started] == ["local", "on"]


def test_an_app_without_resolved_settings_asks_for_keys(tmp_path: Path) -> None:
    app = make_app(Settings(url=str(tmp_path / "m.db"), embedder="none"))
    with answering(app) as url:
        assert httpx.get(f"{url}/api/sessions").status_code == 401


def test_a_server_with_authentication_off_refuses_keys(memory: Memory) -> None:
    key = Keys(memory.keys).create(tenant="acme", user="ada").text
    with answering(build_app(memory, Guard.local("default", "me"))) as url:
        assert httpx.get(f"{url}/api/sessions").status_code == 200
        refused = httpx.post(f"{url}/api/messages", json=MESSAGE, headers=bearer(key))
        assert (refused.status_code, memory.users()) == (401, [])
        assert "--no-auth" in refused.json()["detail"]


def test_pages_of_other_sites_read_nothing(memory: Memory) -> None:
    with (
        answering(build_app(memory, Guard.local("default", "me"))) as url,
        httpx.Client(base_url=url) as client,
    ):
        for path in ("/api/sessions", "/api/memories", "/metrics", "/mcp", "/nowhere"):
            refused = client.get(path, headers={"Sec-Fetch-Site": "Cross-Site"})
            assert refused.status_code == 403
        twice = [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")]
        assert client.get("/api/sessions", headers=twice).status_code == 403
        for site in ("same-origin", "same-site", "none"):
            headers = {"Sec-Fetch-Site": site}
            assert client.get("/api/sessions", headers=headers).status_code == 200
        assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


# Probes


def test_probes_are_not_rate_limited_by_others(memory: Memory) -> None:
    app = build_app(memory, Guard(memory.keys), Limits(requests_per_s=0.001, burst=1))
    with answering(app) as url, httpx.Client(base_url=url) as client:
        assert [client.get("/").status_code for _ in range(3)] == [200, 429, 429]
        statuses = {client.get(path).status_code for path in ("/health", "/ready") * 20}
        assert statuses == {200}


def test_ready_needs_no_write(memory: Memory, tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    with answering(build_app(memory, Guard(memory.keys))) as url, closing(writer):
        writer.execute("BEGIN IMMEDIATE")
        assert httpx.get(f"{url}/ready", timeout=20).status_code == 200


def test_ready_answers_while_the_database_hangs_and_asks_it_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "PROBE_S", 0.2)
    hanging, looks = threading.Event(), []
    exist = memory.keys.exist

    def hang() -> bool:
        looks.append(1)
        hanging.wait(20)
        return exist()

    monkeypatch.setattr(memory.keys, "exist", hang)
    app = build_app(memory, Guard(memory.keys))
    with answering(app) as url, httpx.Client(base_url=url) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.get("/ready", timeout=20), range(24)))
        assert {answer.status_code for answer in answers} == {503}
        assert answers[0].json()["code"] == "store_unavailable"
        assert len(looks) == 1
        assert client.get("/health").status_code == 200
        hanging.set()
        while client.get("/ready").status_code != 200:
            pass


async def _read_twice(probe: system.StoreProbe) -> list[bool]:
    first = asyncio.ensure_future(probe.answers())
    while probe._reading is None or not probe._reading.done():
        await asyncio.sleep(0)
    second = asyncio.ensure_future(probe.answers())  # starts before the first one is woken
    return list(await asyncio.gather(second, first))


def test_probes_that_overlap_both_answer(memory: Memory) -> None:
    assert asyncio.run(_read_twice(system.StoreProbe(memory))) == [True, True]


def test_ready_answers_while_postgres_holds_the_table(postgres_with_tables: str) -> None:
    with (
        Memory(postgres_with_tables, embedder=None, extraction=None) as memory,
        answering(build_app(memory, Guard(memory.keys))) as url,
        httpx.Client(base_url=url, timeout=20) as client,
        psycopg.connect(postgres_with_tables) as holder,
    ):
        assert client.get("/ready").status_code == 200
        holder.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
        assert client.get("/ready").status_code == 503
        holder.rollback()
        while client.get("/ready").status_code != 200:
            pass


# Connections


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(0.7)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def test_a_connection_without_a_request_is_closed() -> None:
    """Slowloris: each sends something now and then, and never a whole request."""
    assert uvicorn_config(hello).http is BoundedConnection
    started = {
        "silent": b"",
        "slow headers": b"GET / HTTP/1.1\r\n",
        "slow second request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "a body that nobody reads": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
    }
    options: dict[str, Any] = {"http": BoundedConnection, "timeout_keep_alive": 0.2}
    with serving(hello, lifespan="off", **options) as url:
        address = httpx.URL(url)
        for kind, first in started.items():
            where = (address.host, address.port or 0)
            with socket.create_connection(where, timeout=0.05) as client:
                client.sendall(first)
                assert _closed_while(client, b"X" if first else b""), kind
        assert httpx.get(f"{url}/slow").text == "hello"  # longer than the bound, and not cut


def test_headers_without_end_are_refused() -> None:
    chunked = b"POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    starts = {
        "a header": b"GET / HTTP/1.1\r\nX: ",
        "a path": b"GET /",
        "of a second request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nX: ",
        "behind a body": chunked + b"1\r\nx\r\n0\r\nX: ",
    }
    options: dict[str, Any] = {"http": BoundedConnection, "timeout_keep_alive": 60}
    with serving(hello, lifespan="off", **options) as url:
        for kind, start in starts.items():
            assert _answers(url, start + b"x" * 1_000_000).count(b"hello") < 2, kind
        assert httpx.get(url, headers={"X": "x" * 60_000}).text == "hello"
        assert httpx.post(url, content=iter([b"x"] * 20_000)).text == "hello"  # in chunks of one


def test_requests_that_wait_on_one_connection_are_bounded() -> None:
    ask = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
    options: dict[str, Any] = {"http": BoundedConnection, "timeout_keep_alive": 60}
    with serving(hello, lifespan="off", **options) as url:
        assert _answers(url, ask * (run.MAX_PIPELINED + 2)) == b""
        assert _answers(url, ask * 2).count(b"hello") == 2


def _answers(url: str, sent: bytes) -> bytes:
    """What the server answers until it closes the connection, or twice."""
    address, answers = httpx.URL(url), b""
    with socket.create_connection((address.host, address.port or 0), timeout=60) as client:
        with suppress(ConnectionError):
            client.sendall(sent)
            while answers.count(b"hello") < 2 and (more := client.recv(10_000)):
                answers += more
        return answers


def _closed_while(client: socket.socket, drip: bytes) -> bool:
    """Whether the server closes the connection while bytes keep dripping in."""
    for _ in range(200):
        try:
            client.sendall(drip)
            while client.recv(1_000):
                pass
            return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_the_server_speaks_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    _self_signed(certificate, key)
    options = run._tls_options(str(certificate), str(key))
    options |= {"http": BoundedConnection, "lifespan": "off"}
    with serving(hello, **options) as url:
        trusted = ssl.create_default_context(cafile=certificate)
        answer = httpx.get(url.replace("http://", "https://"), verify=trusted)
    assert answer.text == "hello"
    assert run.Address("127.0.0.1", 7, "https").url == "https://127.0.0.1:7"


def _self_signed(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
