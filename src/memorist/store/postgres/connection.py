"""Connections that send statements together, and give up a server that vanished, after seconds."""

import re
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, count, repeat
from typing import Any, TypeVar

import psycopg
from psycopg import abc, adapt
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait

from memorist.store.rows import Row

T = TypeVar("T")

SILENCE_SECONDS = 3.0  # without an answer, before the server is asked whether it is there
PROBE_SECONDS = 3.0  # for that question
_ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)  # the first packet of a connection; all answer it
# For the kernel, where a host sends nothing at all: it would wait for minutes, or hours.
DEFAULTS: dict[str, int | str] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
    "application_name": "memorist",
}


def defaults(url: str) -> dict[str, Any]:
    """The parameters of a connection that the URL leaves open."""
    own = conninfo_to_dict(url)
    several = {"target_session_attrs": "read-write"} if "," in str(own.get("host", "")) else {}
    return {name: value for name, value in {**DEFAULTS, **several}.items() if name not in own}


def place_of(url: str) -> str:
    """The database that a URL names, and the user; nothing secret."""
    own = {"user": "", "host": "", "port": "", "dbname": "", **conninfo_to_dict(url)}
    user, port = own["user"] and f"{own['user']}@", own["port"] and f":{own['port']}"
    return f"postgresql://{user}{own['host']}{port}/{own['dbname']}"


Parsed = tuple[bytes, tuple[int, ...]]
"""A statement that the server parses: its SQL, and the types of its values."""
MAX_PARSED = 200  # of a connection
_numbers = count()  # their names, of which a connection uses none twice


@dataclass(slots=True, eq=False)
class SentStatement:
    """One that was sent, or waits to be sent with the next; and what came of it."""

    sql: str
    values: dict[str, Any] = field(default_factory=dict)
    prepare: bool = True
    binary: bool = False
    is_read: bool = True  # else nobody looks at its rows
    rows: list[Row] | None = None  # None where there is no answer
    count: int = 0


class Integers(tuple[int, ...]):
    """Sent as an array of bigint in binary form: psycopg would write each one by itself."""


class Reals(tuple[float, ...]):
    """The same of real."""


class PackedIntegers:
    """Numbers that are kept in the form in which they are sent as an array of bigint."""

    __slots__ = ("packed",)

    def __init__(self, packed: Iterable[bytes]) -> None:
        self.packed = [*packed]

    def __iter__(self) -> Iterator[int]:
        return (int.from_bytes(it, "big", signed=True) for it in self.packed)

    def __len__(self) -> int:
        return len(self.packed)


class ArrayDumper(adapt.Dumper):
    """One dimension, no nulls, the type of each; how many, counted from 1; each after its size."""

    format = psycopg.pq.Format.BINARY
    oid, element = (psycopg.adapters.types["int8"].array_oid, psycopg.adapters.types["int8"].oid)
    letter, size = "q", 8

    def dump(self, obj: Sequence[float]) -> bytes:
        sized = chain.from_iterable(zip(repeat(self.size), obj, strict=False))
        form = f">5i{f'i{self.letter}' * len(obj)}"
        return struct.pack(form, 1, 0, self.element, len(obj), 1, *sized)


class PackedDumper(ArrayDumper):
    def dump(self, obj: PackedIntegers) -> bytes:  # type: ignore[override]
        head = struct.pack(">5i", 1, 0, self.element, len(obj.packed), 1)
        return head + struct.pack(">i", self.size).join([b"", *obj.packed])


class RealsDumper(ArrayDumper):
    oid, element = (
        psycopg.adapters.types["float4"].array_oid,
        psycopg.adapters.types["float4"].oid,
    )
    letter, size = "f", 4


def _joined(values: list[Any]) -> Any:
    """A list as it is sent: numbers as one array, and numbers of several texts, too."""
    if type(values[0]) is int:
        return Integers(values)
    if type(values[0]) is PackedIntegers:
        return PackedIntegers(chain.from_iterable(it.packed for it in values))
    return values


@cache
def numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbers for the names of its values, and the names in their order."""
    names = tuple(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    by_number = re.sub(r"%\((\w+)\)s", lambda name: f"${names.index(name[1]) + 1}", sql)
    return by_number.encode(), names


class WatchedConnection(psycopg.Connection[Row]):
    """A connection on which no statement waits forever.

    It is closed when the time for it is over (`until`), and before that when the server has been
    silent for a while and answers no new connection either. A slow statement is left alone.
    """

    until: float | None = None  # by the monotonic clock; None: for as long as the server answers
    heard_at = 0.0
    is_set_up = False  # as `PostgresEngine` does it

    @cached_property
    def _transformer(self) -> abc.Transformer:
        self.adapters.register_dumper(Integers, ArrayDumper)
        self.adapters.register_dumper(PackedIntegers, PackedDumper)
        self.adapters.register_dumper(Reals, RealsDumper)
        return adapt.Transformer(self)

    @cached_property
    def _parsed(self) -> dict[Parsed, bytes]:
        """The names of the statements that the server has parsed."""
        return {}

    def send(self, statements: Sequence[SentStatement]) -> None:
        """Run statements that are sent at once, while psycopg's pipeline sends each by itself.

        After one that fails none is run.
        """
        dumped = [self._dumped(it) for it in statements]
        owed: list[SentStatement | Parsed] = []  # what each answer is to
        self.pgconn.enter_pipeline_mode()
        try:
            for it in dumped:
                owed += self._queued(*it)
            self.pgconn.pipeline_sync()
            results = self.wait(self._results())
        finally:
            try:
                self.pgconn.exit_pipeline_mode()
            except psycopg.Error:  # there are answers that nobody has read
                self.close()
        self._read(owed, results)

    def _dumped(self, statement: SentStatement) -> tuple[SentStatement, Parsed, list[Any], Any]:
        sql, names = numbered(statement.sql)
        given = [statement.values[name] for name in names]
        values = [_joined(it) if type(it) is list and it else it for it in given]
        sent = self._transformer.dump_sequence(values, [adapt.PyFormat.AUTO] * len(values))
        types = tuple(self._transformer.types or ())
        return statement, (sql, types), list(sent), self._transformer.formats

    def _queued(
        self, statement: SentStatement, key: Parsed, values: list[Any], formats: Any
    ) -> Iterator[SentStatement | Parsed]:
        """Send a statement, and first what makes the server parse it; say what is answered."""
        line, how = self.pgconn, {"result_format": int(statement.binary)}
        if not statement.prepare or self.prepare_threshold is None:
            line.send_query_params(key[0], values or None, key[1], formats, **how)
            yield statement
            return
        if key not in self._parsed:
            if len(self._parsed) >= MAX_PARSED:
                oldest = self._parsed.pop(next(iter(self._parsed)))
                line.send_query_params(b"DEALLOCATE " + oldest, None)
                yield b"", ()
            self._parsed[key] = b"m%d" % next(_numbers)
            line.send_prepare(self._parsed[key], *key)
            yield key
        line.send_query_prepared(self._parsed[key], values, formats, **how)
        yield statement

    def _results(self) -> PQGen[list[PGresult]]:
        """All that the server answers to what was sent."""
        results: list[PGresult] = []
        line = self.pgconn
        unsent = line.flush()
        while True:
            if not (ready := (yield Wait.RW if unsent else Wait.R)):
                continue
            if ready & Ready.R:
                line.consume_input()
            unsent = unsent and line.flush()
            ends = 0  # in a row: the first is one statement's, the second says to wait
            while ends < 2 and not line.is_busy():
                result = line.get_result()
                ends = ends + 1 if result is None else 0
                if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
                    return results
                if result is not None:
                    results.append(result)

    def _read(self, owed: Sequence[SentStatement | Parsed], results: Sequence[PGresult]) -> None:
        """Give each statement its answer; raise the error of the one that failed.

        An answer more than there are statements is that the work could not be committed.
        """
        failed: PGresult | None = None
        if len(results) > len(owed):
            failed = results[len(owed)]
        for it, result in zip(owed, results, strict=False):
            if result.status == ExecStatus.FATAL_ERROR:
                failed = failed or result
            if not isinstance(it, SentStatement):
                if result.status != ExecStatus.COMMAND_OK:
                    self._parsed.pop(it, None)
            elif result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                it.rows = self._rows_of(result) if it.is_read else []
                it.count = result.command_tuples or 0
        if failed is not None:
            raise error_from_result(failed)

    def _rows_of(self, result: PGresult) -> list[Row]:
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def wait(self, gen: PQGen[T], *args: Any, **named: Any) -> T:
        return super().wait(self._bounded(gen), *args, **named)

    def _bounded(self, gen: PQGen[T]) -> PQGen[T]:
        self.heard_at = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    self.heard_at = time.monotonic()
                else:
                    self._check()
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _check(self) -> None:
        """Raise if there is no point in waiting any longer."""
        now = time.monotonic()
        is_over = self.until is not None and now > self.until
        if is_over or (now > self.heard_at + SILENCE_SECONDS and not self._server_answers()):
            self.close()
            raise psycopg.OperationalError("the server does not answer")

    def _server_answers(self) -> bool:
        place = self.info.hostaddr or self.info.host, self.info.port
        if not place[0].startswith(("/", "@")):  # on this machine, which is there
            try:
                with socket.create_connection(place, PROBE_SECONDS) as line:
                    line.sendall(_ASK_FOR_TLS)
                    if not line.recv(1):
                        return False
            except OSError:
                return False
        self.heard_at = time.monotonic()
        return True
