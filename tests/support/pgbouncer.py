"""PgBouncer in transaction mode before a server of the tests, as found or by ``apt-get``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.support import postgres
from tests.support.waiting import until

SESSIONS = 3  # of the server, which all clients share: each transaction gets another one
SETTINGS = """[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {door}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {sessions}
server_round_robin = 1
"""


def program() -> str:
    """Where PgBouncer is, installed first if need be."""
    path = "/usr/sbin:/usr/bin:/opt/homebrew/bin:/usr/local/bin"
    if not (found := shutil.which("pgbouncer") or shutil.which("pgbouncer", path=path)):
        postgres.apt_install("pgbouncer")
        found = shutil.which("pgbouncer", path=path)
    if found is None:
        raise postgres.ServerError("there is no pgbouncer; brew install pgbouncer (macOS)")
    return found


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """The URL of the same database through a pooler."""
    parts, door = urlsplit(url), postgres._free_port()
    with tempfile.TemporaryDirectory(dir=postgres._base()) as folder:
        users, settings = Path(folder, "users"), Path(folder, "settings")
        users.write_text(f'"{parts.username}" "{parts.password}"\n')
        text = SETTINGS.format(
            host=parts.hostname, port=parts.port, door=door, users=users, sessions=SESSIONS
        )
        settings.write_text(text)
        command: list[str | Path] = [program(), "--quiet", settings]
        if user := postgres.SERVER_USER:
            postgres._run("chown", "-R", user, folder)
            command += ["--user", user]
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            pooled_url = parts._replace(
                netloc=f"{parts.username}:{parts.password}@127.0.0.1:{door}"
            ).geturl()
            until(lambda: _answers(pooled_url, process, Path(folder, "log")))
            yield pooled_url
        finally:
            process.terminate()
            process.wait()


def _answers(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    if process.poll() is not None:
        raise postgres.ServerError(f"pgbouncer ended: {log.read_text()[-2000:]}")
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.OperationalError:
        return False
    return True
