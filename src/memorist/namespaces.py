"""The namespaces of the log, its jobs and the keys, and what every namespace is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memorist.arguments import NamesArguments
from memorist.errors import InvalidError
from memorist.records.log import Job, LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope, named_scope
from memorist.records.values import MadeAt
from memorist.runtime import Runtime
from memorist.store.base import Store

P = ParamSpec("P")
T = TypeVar("T")
List = list  # the methods named `list` hide the builtin inside their classes


class MemoryPart(NamesArguments):
    """A part of a memory's interface: its runtime, and the scopes of its tenant."""

    def __init__(self, runtime: Runtime, tenant: str) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._tenant = tenant

    def _scope(self, user: str, agent: str | None = None, session: str | None = None) -> Scope:
        return named_scope(self._tenant, user, agent, session)


def stored(
    method: Callable[Concatenate[Store, P], T], *, wakes: bool = False
) -> Callable[Concatenate[Any, P], T]:
    """A method of a memory or a part of it that does what the store's own does.

    If it `wakes`, background work that this needs begins.
    """
    name = next(name for name, it in vars(Store).items() if it is method)

    @wraps(method)
    def run(part: Any, /, *args: P.args, **named: P.kwargs) -> T:
        runtime: Runtime = part._runtime
        of = (named.pop("scope"),) if "scope" in named else ()
        result: T = getattr(runtime.store, name)(*of, *args, **named)
        if wakes:
            runtime.wake()
        return result

    return run


class Messages(MemoryPart):
    """The log by id and position: `memory.messages`."""

    list = stored(Store.history)
    get = stored(Store.find)
    text_from = stored(Store.text_from)
    revisions = stored(Store.revisions)
    add = stored(Store.append_each, wakes=True)

    def following(
        self, scope: Scope, *, after: int, limit: int, max_bytes: int | None = None
    ) -> List[LogEntry]:
        """The first `limit` messages of a session after a position, oldest first."""
        if scope.session is None:
            raise InvalidError("session is missing: messages follow one another in a session")
        return self._store.following(scope, after=after, limit=limit, max_bytes=max_bytes)

    def revise(self, scope: Scope, message: Message) -> None:
        """Replace what a message says; what it said before stays among its revisions.

        It was said when it was stored to be, unless the message says otherwise.
        """
        if isinstance(message.created_at, MadeAt):
            for entry in self._store.find(scope, [message.message_id]):
                message = message.changed(created_at=entry.message.created_at)
        self._store.revise(scope, message)
        self._runtime.wake()

    def append_text(self, scope: Scope, message: Message) -> None:
        """Store the longer text of a message that is being written; finished, it is indexed."""
        self._store.append_text(scope, message)
        if not message.unfinished:
            self._runtime.wake()


class Jobs(MemoryPart):
    """The queue of background work: `memory.jobs`."""

    def waiting(self, *, user: str | None = None) -> dict[str, int]:
        """How many jobs of each kind wait or run, of all users or of one; "dead" were given up."""
        counts = None if user is None else self._store.waiting_jobs(self._scope(user))
        return self._runtime.waiting(counts)

    def list(
        self,
        *,
        user: str,
        session: str | None = None,
        dead: bool | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> List[Job]:
        """The jobs of a user that wait, those that were given up (`dead`), or both, by their ids.

        For a page, give a `limit`, and as `after` the id of the last job before.
        """
        scope = self._scope(user, session=session)
        return self._store.jobs(scope, dead=dead, limit=limit, after=after)

    def dead(self) -> int:
        """How many jobs were given up, of all users."""
        return self.waiting()["dead"]

    def retry(self, job_id: int, *, user: str) -> None:
        """Put a job that was given up back into the queue."""
        self._store.retry(self._scope(user), job_id)
        self._runtime.wake()

    def rebuild(self, *, user: str | None = None) -> int:
        """Throw away what was derived from the log, of a user or all of the tenant; derive it anew.

        Memories, facts, links, passages and vectors go, user by user in the background, and recall
        finds messages meanwhile. What was added, changed, retracted, undone or forgotten by hand
        stays so. Returns how many users wait; a rebuild that was interrupted goes on.
        """
        self._store.queue_rebuild(self._tenant, user)
        if self._runtime.worker is not None:
            self._runtime.worker.wake()
        return self.waiting(user=user)["rebuild"]

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until everything stored has its vectors and memories.

        Nobody needs to: it happens in the background, and words find it until then. Returns how
        many jobs are not done: those left when the time is over, and those that were given up.
        """
        return self._runtime.catch_up(timeout_s)

    spent = stored(Store.spent)


class ApiKeys(MemoryPart):
    """The API keys of a server, of which only hashes are stored: `memory.keys`."""

    put = stored(Store.put_key)
    get = stored(Store.key)
    exist = stored(Store.has_keys)
    list = stored(Store.keys)
    revoke = stored(Store.revoke_key)
