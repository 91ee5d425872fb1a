"""Real PostgreSQL servers for the tests, with and without pgvector, with no manual step.

``start_server(vector=...)`` takes the first of these that works:

1. the server MEMORIST_TEST_POSTGRES_URL (a superuser URL) points to: for ``vector=True`` if it
   passes the pgvector probe, for ``vector=False`` if it does not offer pgvector;
2. a new private cluster (127.0.0.1 only, random password, deleted by ``close()`` or at exit), run
   by the newest PostgreSQL on this machine, which ``apt-get install`` provides if there is none.

pgvector is the machine's own if it survives the probe. Otherwise it is built from the source
package on the machine's Debian or Ubuntu mirror, with OPTFLAGS="" because the default can give
code that dies with SIGILL. It never goes into the system's PostgreSQL: a server finds its files
relative to its programs, so it goes into a private copy of both. Where the system offers pgvector,
plain PostgreSQL is such a copy without it. Copies are cached; one that fails is made anew, once.
PostgreSQL refuses to run as root, so root runs it as ``nobody``. Failures raise one ServerError.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import fcntl
import functools
import hashlib
import hmac
import os
import platform
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import psycopg
from psycopg import sql

from tests.support.waiting import until

URL_VARIABLE = "MEMORIST_TEST_POSTGRES_URL"
ADVICE = (
    "To do: check the network; or brew install postgresql pgvector (macOS), apt-get install "
    f"postgresql gcc make (Debian, Ubuntu); or set {URL_VARIABLE} to a superuser's URL"
)
PREFIXES = ("usr/lib/postgresql/*", "opt/homebrew/opt/postgresql*", "usr/local/opt/postgresql*")
PROGRAMS = ("postgres", "initdb", "pg_ctl", "pg_config")
SERVER_USER = "nobody" if os.geteuid() == 0 else None
INITDB = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--username=postgres", "-N")
SETTINGS = """listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = {port}
"""
# Without fsync a server may crash, but the machine may not; a test can bring about only the first.
QUICK = """fsync = off
full_page_writes = off
max_wal_size = 128MB
"""
SIDES = ("Client", "Server")
ROOM = 4 << 30  # bytes that memory must have for clusters to go there
NEW_DATABASE = "CREATE DATABASE {} TEMPLATE {} ENCODING UTF8 LC_COLLATE 'C' LC_CTYPE 'C'"
BY_FILES = " STRATEGY FILE_COPY"  # half the work of the default; before PostgreSQL 15 the only way
DISTANCE = "SELECT array_fill(1, '{64}')::vector <-> array_fill(2, '{64}')::vector"
VECTOR_FILES = ("vector.control", "vector--*.sql", "vector.so", "vector.dylib")
GUARD = """
read -r _
pid=$(head -n 1 "$0/data/postmaster.pid") && kill -QUIT "$pid"
while kill -0 "$pid"; do sleep 0.1; done
rm -rf "$0"
"""
FOLLOWED = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
VECTOR_SOURCES = {"debian": "trixie main", "ubuntu": "noble universe"}

_connect = functools.partial(psycopg.connect, autocommit=True, connect_timeout=10)


class ServerError(RuntimeError):
    """There is no server as asked for, or this one cannot do that."""


@dataclass(frozen=True, eq=False)
class Server:
    """A running server. ``url`` is a superuser's, to the database ``postgres``."""

    url: str
    has_vector: bool
    version: str
    _programs: Path | None = None  # None: the server is not ours
    _folder: Path = Path()
    _guard: subprocess.Popen[bytes] | None = None
    _owner: int = field(default_factory=os.getpid)
    _databases: list[str] = field(default_factory=list)

    @property
    def can_restart(self) -> bool:
        return self._programs is not None

    def stop(self, mode: str = "fast") -> None:
        """Stop the server but keep its data; mode ``immediate`` is as good as a crash."""
        self._control("stop", "-m", mode)

    def start(self) -> None:
        """Start a stopped server again: same port, same data."""
        self._control("start")

    def kill(self) -> None:
        """Kill the server as a power cut would; it is gone when nothing answers at its port."""
        os.kill(self.processes()[0], signal.SIGKILL)

    def processes(self) -> list[int]:
        """The server's process and its children."""
        first = (self._folder / "data/postmaster.pid").read_text().split()[0]
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
        pairs = [line.split() for line in listed.stdout.splitlines()]
        return [int(first), *(int(pid) for pid, parent in pairs if parent == first)]

    def add_standby(self, port: int | None = None) -> Server:
        """A copy that follows this server: what is acknowledged from now on is on both."""
        port = port or _free_port()
        folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=_quickest()))
        if SERVER_USER:
            shutil.chown(folder, SERVER_USER)
        parts = urlsplit(self.url)
        url = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()
        standby = replace(self, url=url, _folder=folder, _guard=_start_guard(folder), _databases=[])
        atexit.register(standby.close)
        tool, data = _installations()[0] / "pg_basebackup", folder / "data"
        _run(tool, "-D", data, "-R", "-c", "fast", "-d", self.url, user=SERVER_USER)
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"port = {port}\n")
        standby.start()
        with _connect(self.url) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            until(lambda: connection.execute(FOLLOWED).fetchall())
            connection.execute("CHECKPOINT")  # by the process that makes commits wait
        return standby

    def promote(self) -> None:
        """Make a standby a server of its own."""
        self._control("promote")

    def _control(self, *arguments: str) -> None:
        if self._programs is None:
            raise ServerError(f"the server given by {URL_VARIABLE} is not ours to stop or start")
        data, log = self._folder / "data", self._folder / "log"
        try:
            _run(self._programs / "pg_ctl", "-D", data, "-l", log, *arguments, user=SERVER_USER)
        except ServerError as error:
            text = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise ServerError(f"{error}\n{text}") from error

    def create_database(self, name: str, *, copy_of: str = "") -> str:
        """Make a database, empty or a copy of the one at a URL that nobody has open; return its
        URL. The name gets a suffix that nobody else has.
        """
        name = f"{name}_{secrets.token_hex(4)}"
        self._databases.append(name)
        return _create_database(self.url, name, _name_in(copy_of) or "template0")

    def drop_database(self, url: str) -> None:
        """Delete a database made here, whoever is still connected to it."""
        name = _name_in(url)
        self._databases.remove(name)
        _drop_database(self.url, name)

    def close(self) -> None:
        """Stop and delete a private cluster; on a given server, drop the databases made here."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():
            return  # a forked child, at exit
        while self._databases and not self.can_restart:
            _drop_database(self.url, self._databases.pop())
        if self.can_restart:
            with contextlib.suppress(ServerError):  # it was not running
                self.stop("immediate")
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._guard:
            self._guard.communicate()


def start_server(*, vector: bool, durable: bool = False) -> Server:
    """Start a server with, or wholly without, pgvector (or take the one given).

    Unless it is `durable`, it writes to memory where there is room, and outlives no power cut.
    """
    tried = [f"No PostgreSQL server {'with' if vector else 'without'} pgvector. What failed:"]
    try:
        server = _given_server(vector, tried) or _private_server(vector, durable, tried)
    except (ServerError, OSError, psycopg.Error) as error:
        raise ServerError("\n- ".join([*tried, str(error), ADVICE])) from error
    atexit.register(server.close)
    return server


def _given_server(vector: bool, tried: list[str]) -> Server | None:
    """The server named by the environment, if any, and if it is of the kind wanted."""
    if not (url := os.environ.get(URL_VARIABLE)):
        return None
    tried.append(f"the server given by {URL_VARIABLE}")
    with _connect(url) as connection:
        version = "{}.{}".format(*divmod(connection.info.server_version, 10000))
        query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        offered = connection.execute(query).fetchone()
    problem = _probe(url) if vector else "it offers pgvector" if offered else None
    tried[-1] += f": {problem}"
    return None if problem else Server(url, vector, version)


def _private_server(vector: bool, durable: bool, tried: list[str]) -> Server:
    with (_base() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time, of this run or another
        for bindir in _candidates(vector):
            try:
                return _launch(bindir, vector, durable)
            except ServerError as error:
                tried.append(f"PostgreSQL in {bindir}: {error}")
    raise ServerError("there is nothing else to try")


def _candidates(vector: bool) -> Iterator[Path]:
    """Program folders to try: installations as they are, a private copy, that copy made anew."""
    if not (found := _installations()):
        apt_install("postgresql")
        found = _installations()
    for bindir in found if vector else found[:1]:
        if Path(_pg_config(bindir, "sharedir"), "extension/vector.control").exists() == vector:
            yield bindir
    for bindir in found[:1]:
        yield (copy := _private_copy(bindir, vector, None))
        yield _private_copy(bindir, vector, copy)


def _installations() -> list[Path]:
    """The program folders of the complete PostgreSQL installations here, newest first."""
    folders = [folder / "bin" for form in PREFIXES for folder in Path("/").glob(form)]
    with contextlib.suppress(ServerError):  # there is no pg_config in PATH
        folders.append(Path(_run("pg_config", "--bindir").strip()))
    found = {f.resolve() for f in folders if all((f / name).exists() for name in PROGRAMS)}
    numbers = {f: [int(n) for n in re.findall(r"\d+", _pg_config(f, "version"))] for f in found}
    return sorted(found, key=lambda folder: numbers[folder], reverse=True)


def _launch(bindir: Path, vector: bool, durable: bool) -> Server:
    """Make, start and probe a new cluster."""
    port, password = _free_port(), secrets.token_hex(16)
    url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
    base = _base() if durable else _quickest()
    folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=base))
    version = _pg_config(bindir, "version").split()[1]
    server = Server(url, vector, version, bindir, folder, _start_guard(folder))
    with contextlib.ExitStack() as undo:
        undo.callback(server.close)
        (folder / "password").write_text(_verifier(password))
        if SERVER_USER:
            _run("chown", "-R", SERVER_USER, folder)
        paths = ("-D", folder / "data", "--pwfile", folder / "password")
        _run(bindir / "initdb", *paths, *INITDB, user=SERVER_USER)
        (folder / "data/postgresql.auto.conf").write_text(
            SETTINGS.format(port=port) + ("" if durable else QUICK)
        )
        server.start()
        if vector and (problem := _probe(url)):
            raise ServerError(problem)
        undo.pop_all()
    return server


def _start_guard(folder: Path) -> subprocess.Popen[bytes]:
    """Stops and deletes a cluster when this process is no more, however it ended."""
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(
        ["sh", "-c", GUARD, folder], stdin=pipe, stdout=none, stderr=none, start_new_session=True
    )


def _verifier(password: str) -> str:
    """What a server keeps of a password, which is random: hashed once instead of 4,096 times, which
    is half of what a connection costs.
    """
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations=1)
    client, server = (hmac.digest(salted, f"{it} Key".encode(), "sha256") for it in SIDES)
    kept = (salt, hashlib.sha256(client).digest(), server)
    return "SCRAM-SHA-256$1:{}${}:{}".format(*(base64.b64encode(it).decode() for it in kept))


def _free_port() -> int:
    """A free port below those of outgoing connections, so that a restart finds it free."""
    while True:
        port = 20000 + secrets.randbelow(10000)
        with socket.socket() as candidate, contextlib.suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port


def _name_in(url: str) -> str:
    return unquote(urlsplit(url).path.removeprefix("/"))


def _create_database(url: str, name: str, template: str = "template0") -> str:
    names = sql.Identifier(name), sql.Identifier(template)
    with _connect(url) as connection:
        by_files = BY_FILES if connection.info.server_version >= 150000 else ""
        connection.execute(sql.SQL(NEW_DATABASE + by_files).format(*names))
    return urlsplit(url)._replace(path=f"/{quote(name, safe='')}").geturl()


def _drop_database(url: str, name: str) -> None:
    form = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    with contextlib.suppress(psycopg.Error), _connect(url) as connection:
        connection.execute(form.format(sql.Identifier(name)))


def _probe(url: str) -> str | None:
    """Let pgvector compute a distance in a scratch database; say what is wrong with it, if so."""
    name = f"memorist_probe_{secrets.token_hex(4)}"
    try:
        with _connect(_create_database(url, name)) as connection:
            connection.execute("CREATE EXTENSION vector")
            row = connection.execute(DISTANCE).fetchone()
        return None if row == (8.0,) else f"pgvector computes {row} where the distance is 8"
    except psycopg.Error as error:
        return f"pgvector does not work: {error}"
    finally:
        _drop_database(url, name)


def _private_copy(bindir: Path, vector: bool, bad: Path | None) -> Path:
    """The program folder of a private copy, from the cache unless that one is known to be bad."""
    inside = bindir.relative_to("/")
    kind = f"{_pg_config(bindir, 'version')} {bindir} {'vector' if vector else 'plain'}"
    key = re.sub(r"[^\w.]+", "-", kind)
    for root in _base().glob(f"{key}-*"):
        if root / inside != bad and (root / inside / "pg_config").exists():
            return root / inside
        shutil.rmtree(root)
    with tempfile.TemporaryDirectory(prefix="building-", dir=_base()) as work:
        tree = Path(work, "tree")
        _copy(bindir, tree)
        pgvector = _add_pgvector(tree / inside, tree, Path(work)) if vector else ""
        _run("chmod", "-R", "a+rX", tree)
        return tree.rename(_base() / f"{key}-{pgvector}-{secrets.token_hex(4)}") / inside


def _copy(bindir: Path, tree: Path) -> None:
    """Copy a PostgreSQL installation, but not its pgvector, to a new root."""
    target = tree / bindir.relative_to("/")
    target.mkdir(parents=True)
    for program in PROGRAMS:  # real copies: through a symlink, it would find the original's files
        shutil.copy2(bindir / program, target)
    ignore = shutil.ignore_patterns(*VECTOR_FILES, "bitcode")
    for item in ("pkglibdir", "sharedir", "includedir-server"):
        folder = Path(_pg_config(bindir, item))
        copy = tree / folder.relative_to("/")
        if Path(_pg_config(target, item)) != copy:
            raise ServerError(f"the PostgreSQL in {bindir} does not work when moved")
        if folder.exists():
            shutil.copytree(folder, copy, ignore=ignore, ignore_dangling_symlinks=True)


def _add_pgvector(bindir: Path, tree: Path, work: Path) -> str:
    """Build pgvector into a copy of an installation; return its version."""
    if not all(map(shutil.which, ("apt-get", "make", "gcc"))):
        apt_install("make", "gcc", "libc6-dev")
    if not Path(_pg_config(bindir, "includedir-server"), "postgres.h").exists():
        package = "postgresql-server-dev-" + re.findall(r"\d+", _pg_config(bindir, "version"))[0]
        _run("dpkg-deb", "-x", _private_apt(work, "", "download", package), tree)
    archive = _private_apt(work, _source_lines(), "source", "--download-only", "pgvector")
    _run("tar", "-xf", archive, cwd=work)
    source = next(path.parent for path in work.glob("*/vector.control"))
    flags = (f"PG_CONFIG={bindir}/pg_config", "OPTFLAGS=", "with_llvm=no")
    _run("make", "-j4", "install", *flags, cwd=source)
    return archive.name.split("_")[1].split(".orig")[0]


def _private_apt(work: Path, sources: str, *request: str) -> Path:
    """Download by apt-get with state of its own: it needs no root, and changes no system lists."""
    (work / "lists/partial").mkdir(parents=True, exist_ok=True)
    options = [f"-oDir::State={work}", f"-oDir::Cache={work}", "-oAcquire::Languages=none"]
    if sources:
        (work / "sources").write_text(sources)
        options += [f"-oDir::Etc::sourcelist={work}/sources", "-oDir::Etc::sourceparts=/dev/null"]
    with contextlib.suppress(ServerError):  # it fails even if only a list we do not need does
        _run("apt-get", "update", *options)
    _run("apt-get", *request, *options, cwd=work)
    return next(p for p in work.glob(f"{request[-1]}_*") if re.search(r"\.deb$|\.orig\.", p.name))


def _source_lines() -> str:
    """Where apt finds pgvector's source on the mirrors that this machine itself uses."""
    system = platform.freedesktop_os_release()
    name = "ubuntu" if "ubuntu" in system["ID"] + system.get("ID_LIKE", "") else "debian"
    keys = f"/usr/share/keyrings/{name}-archive-keyring.gpg"
    option = f"[signed-by={keys}]" if Path(keys).exists() else ""
    form = ("--no-release-info", "--format", "$(RELEASE) $(REPO_URI)")
    targets = _run("apt-get", "indextargets", *form)
    mirrors = set(re.findall(r"^[^-/\s]+ (\S+)$", targets, re.MULTILINE))  # no *-security and such
    return "\n".join(f"deb-src {option} {uri} {VECTOR_SOURCES[name]}" for uri in sorted(mirrors))


def apt_install(*packages: str) -> None:
    """Install packages as root, or by sudo; update apt's lists only if that is needed."""
    if not shutil.which("apt-get"):
        raise ServerError(f"there is no apt-get to install {', '.join(packages)} with")
    root = ("env",) if os.geteuid() == 0 else ("sudo", "-n", "env")
    apt = (*root, "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-oDPkg::Lock::Timeout=300")
    try:
        _run(*apt, "install", *packages)
    except ServerError:
        _run(*apt, "update")
        _run(*apt, "install", *packages)


def _pg_config(bindir: Path, item: str) -> str:
    return _run(bindir / "pg_config", f"--{item}").strip()


def _run(*command: str | Path, user: str | None = None, cwd: Path = Path("/")) -> str:
    """Run a command, as another user if one is named, and return what it prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    try:
        return subprocess.run(
            [str(part) for part in command],
            check=True,
            cwd=cwd,
            env=env | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        output = f"{getattr(error, 'stdout', '')}{getattr(error, 'stderr', '')}"
        raise ServerError(f"{error}\n{output[-2000:]}") from error


def _quickest() -> Path:
    """Memory, if it has room: there a new database costs a fifth of what it does on a disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > ROOM
    return memory if roomy and os.access(memory, os.W_OK) else _base()


def _base() -> Path:
    """Our own folder, which the server's user can reach."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path("/var/cache" if os.geteuid() == 0 else cache, "memorist-tests")
    base.mkdir(parents=True, exist_ok=True)
    base.chmod(0o755)  # fails if it is not our own
    return base.resolve()
