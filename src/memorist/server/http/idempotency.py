"""Once: a request that is sent again under the same Idempotency-Key does nothing again.

The ids of messages come of the key, so that no retry stores one twice, on whatever server and
after whatever crash. Beside that, an answer is kept for a day and given again.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from memorist.errors import InvalidError, MissingExtraError
from memorist.memory import Memory
from memorist.records.entry import Entry, Get, Put, Search
from memorist.records.query import Forgotten
from memorist.records.scope import Scope
from memorist.server.http.problems import HttpError
from memorist.server.http.schemas import Ask

try:
    from fastapi import Depends, Header
    from pydantic import TypeAdapter
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingExtraError("server") from error

T = TypeVar("T")
KEPT_FOR = timedelta(hours=24)
LONGEST = 255
_NAMES = uuid.UUID("f1a31b9c-4cfb-4c8b-9e07-6c1d8b8f2d11")
_guard = threading.Lock()
_going: dict[tuple[str, str], tuple[threading.Lock, int]] = {}


@dataclass(frozen=True, slots=True)
class Once:
    """The key of a request, if it has one, and what it asks for."""

    key: str | None
    where: str
    response: Response

    def id(self, scope: Scope, number: int = 0) -> str | None:
        """The id of what the request adds: the same each time it is sent."""
        if self.key is None:
            return None
        return str(uuid.uuid5(_NAMES, f"{scope.owner} {number} {self.key}"))

    def do(self, memory: Memory, scope: Scope, ask: Ask, work: Callable[[], T], kind: Any) -> T:
        """Do the work and keep its answer, or give again what was answered before."""
        if self.key is None:
            return work()
        place = (scope.owner,), hashlib.sha256(self.key.encode()).hexdigest()
        said = f"{self.where} {json.dumps(ask.model_dump(mode='json'), sort_keys=True)}"
        request = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        answers, like = home(memory.tenant), TypeAdapter[T](kind)
        with _alone(scope.owner, self.key):
            [found] = memory.store.exchange(answers, [Get(namespace=place[0], key=place[1])])
            for entry in found:
                assert isinstance(entry, Entry)
                if entry.value["request"] != request:
                    raise HttpError(422, "idempotency", "this key was used for another request")
                self.response.headers["Idempotency-Replayed"] = "true"
                return like.validate_python(entry.value["answer"])
            answer = work()
            kept = {"request": request, "answer": like.dump_python(answer, mode="json")}
            put = Put(namespace=place[0], key=place[1], value=kept, ttl=KEPT_FOR)
            memory.store.exchange(answers, [], [put])
            return answer


def home(tenant: str) -> Scope:
    """Where answers are kept: with an owner of its own, and not among what a user has.

    One for the whole tenant, so that what is over is swept whoever writes next.
    """
    return Scope(tenant=f"{tenant}/once", user="answers")


def forget_for_good(memory: Memory, user: str, /, *, scrub: bool, **what: Any) -> Forgotten:
    """Forget, with what was answered about it, and then scrub the bytes of both."""
    gone = memory.forget(user=user, scrub=False, **what)
    drop_answers(memory, memory.scope(user=user))
    return replace(gone, residue=memory.scrub()) if scrub else gone


def drop_answers(memory: Memory, scope: Scope) -> None:
    """Forget what a user was answered: it may name what they have forgotten."""
    answers = home(memory.tenant)
    [found] = memory.store.exchange(answers, [Search(prefix=(scope.owner,), limit=None)])
    entries = [entry for entry in found if isinstance(entry, Entry)]
    gone = [Put(namespace=entry.namespace, key=entry.key, value=None) for entry in entries]
    if gone:
        memory.store.exchange(answers, [], gone)


@contextmanager
def _alone(owner: str, key: str) -> Iterator[None]:
    """Let one request with this key through at a time; the others wait for its answer."""
    with _guard:
        lock, users = _going.get((owner, key), (threading.Lock(), 0))
        _going[owner, key] = lock, users + 1
    try:
        with lock:
            yield
    finally:
        with _guard:
            lock, users = _going.pop((owner, key))
            if users > 1:
                _going[owner, key] = lock, users - 1


async def _once(
    request: Request,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Yours, 1 to 255 printable ASCII characters: sent again with the same "
            "request, it does nothing again and gives the same answer, for a day.",
            max_length=LONGEST,
            examples=["6f1d2a9e-order-12"],
        ),
    ] = None,
) -> Once:
    key = idempotency_key
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise InvalidError("Idempotency-Key has 1 to 255 printable ASCII characters")
    return Once(key, f"{request.method} {request.url.path}", response)


AtMostOnce = Annotated[Once, Depends(_once)]
