"""The Store: everything that Memorist keeps, in one database.

Every method that reads or writes what users said takes a `Scope`, or a record that has one, and
sees that user's rows only; the scope's agent and session, where named, narrow it further. Each
method is one transaction: the functions of the modules beside this one run in it, and an `Engine`
provides it. Writing the same ids twice is the same as writing them once. `claim`, `backlog`,
`unprepared`, `users`, `spend` and the methods on API keys cross users, and see no words of theirs.
After `forget` nothing can be read any more; after `scrub` no byte of it is left in a file, or else
the answer says where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

from memorist.records.documents import Article
from memorist.records.entry import Answer, Ask, Put
from memorist.records.message import Appended, Job, Message, Source
from memorist.records.scope import ApiKey, Scope
from memorist.records.values import now, to_micros
from memorist.store import documents, entries, forgetting, jobs, keys, log, search, views
from memorist.store.engine import Db, Engine

P = ParamSpec("P")
T = TypeVar("T")


S = TypeVar("S", bound=Scope | Job | Article)
"""What says whose rows a method is about."""


def reads(
    work: Callable[Concatenate[Db, S, P], T], *, snapshot: bool = False
) -> Callable[Concatenate[Store, S, P], T]:
    """A method that reads rows of one user; with `snapshot`, all its queries see the same state."""

    @wraps(work)
    def run(store: Store, of: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        job = store._dated(work, of, *args, **kwargs)
        return store._engine.read(of.owner, job, snapshot=snapshot)

    return run


def writes(
    work: Callable[Concatenate[Db, S, P], T], *, exclusive: bool = False
) -> Callable[Concatenate[Store, S, P], T]:
    """A method that writes for one user; with `exclusive`, nobody else does meanwhile."""

    @wraps(work)
    def run(store: Store, of: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        job = store._dated(work, of, *args, **kwargs)
        return store._engine.write(of.owner, job, exclusive=exclusive)

    return run


def all_owners(work: Callable[Concatenate[Db, P], T]) -> Callable[Concatenate[Store, P], T]:
    """A method on the jobs of all users."""

    @wraps(work)
    def run(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store._engine.all_owners(store._dated(work, *args, **kwargs))

    return run


class Store:
    """A database of memories; see the module."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = now) -> None:
        self._engine = engine
        self._clock = clock

    # The log
    _append = writes(log.append)
    history = reads(log.history)
    following = reads(log.following)
    find = reads(log.find)
    revisions = reads(log.revisions)
    revise = writes(log.revise)
    append_text = writes(log.append_text)

    # Sessions
    open_session = writes(log.open_session)
    active = reads(log.active)
    sessions = reads(log.list_sessions)

    # Memories and facts
    apply = writes(views.apply)
    touch = writes(views.touch)
    version = reads(views.version)
    derived = reads(views.derived)
    superseded_by = reads(views.superseded_by, snapshot=True)
    records = reads(views.records, snapshot=True)
    items = reads(views.items)
    facts = reads(views.facts)

    # Notes, summaries, articles
    note = reads(documents.note)
    note_versions = reads(documents.note_versions)
    write_note = writes(documents.write_note)
    summary = reads(documents.summary)
    summaries = reads(documents.summaries)
    write_summary = writes(documents.write_summary)
    queue_summary = writes(documents.queue_summary)
    articles = reads(documents.articles)
    read_articles = reads(documents.read_articles)
    put_article = writes(documents.put_article, exclusive=True)  # or two could add one text at once

    # Search
    match_text = reads(search.match_text, snapshot=True)
    match_vector = reads(search.match_vector, snapshot=True)
    match_links = reads(search.match_links, snapshot=True)
    newest = reads(search.newest)
    passages = reads(search.passages)
    read = reads(search.read, snapshot=True)
    speakers = reads(search.speakers)

    # Vectors
    unembedded = reads(search.unembedded, snapshot=True)
    waiting = reads(search.waiting, snapshot=True)
    put_vectors = writes(search.put_vectors)
    unprepared = all_owners(search.unprepared)
    prepare = writes(search.prepare)

    # The queue
    claim = all_owners(jobs.claim)
    renew = writes(jobs.renew)
    release = writes(jobs.release)
    fail = writes(jobs.fail)
    backlog = all_owners(jobs.backlog)
    retry = writes(jobs.retry)
    users = all_owners(jobs.users)
    spend = all_owners(jobs.spend)
    spent = all_owners(jobs.spent)
    jobs = reads(jobs.list_jobs)

    # API keys
    put_key = all_owners(keys.put_key)
    revoke_key = all_owners(keys.revoke_key)

    # Entries
    _answer = reads(entries.answer, snapshot=True)
    _batch = writes(entries.batch)

    # Deleting
    sweep = writes(entries.sweep)
    forget = writes(forgetting.forget, exclusive=True)

    def append(
        self, scope: Scope, messages: Sequence[Message], *, source: Source | None = None
    ) -> Appended:
        """Add messages to the log, index and queue them; those stored already are left alone."""
        try:
            return self._append(scope, messages, source)
        except log.RepeatError:  # rare, so that the common case need not look first
            return self._append(scope, messages, source, unseen=True)

    def batch(self, scope: Scope, asks: Sequence[Ask], puts: Sequence[Put] = ()) -> list[Answer]:
        """Answer questions about entries, then write entries."""
        if not puts:
            answers = self._answer(scope, asks)
            if not entries.refreshed(asks, answers):
                return answers
        return self._batch(scope, asks, puts)

    def key(self, key_id: str) -> ApiKey | None:
        """An API key of any tenant."""
        return self._engine.read("", self._dated(keys.read_key, key_id))

    def has_keys(self) -> bool:
        """Whether there is an API key of any tenant, even a revoked one."""
        return self._engine.read("", self._dated(keys.has_keys))

    def keys(self, tenant: str) -> list[ApiKey]:
        """The API keys of a tenant, oldest first."""
        return self._engine.read("", self._dated(keys.list_keys, tenant))

    def scrub(self) -> str:
        """Remove deleted bytes from the files; say what remains, if anything."""
        return self._engine.scrub()

    def check(self) -> dict[str, str]:
        """What kind of database this is, and whether it is well."""
        return self._engine.check()

    def close(self) -> None:
        """Close the connections; the store cannot be used any more."""
        self._engine.close()

    def _dated(
        self, work: Callable[Concatenate[Db, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Callable[[Db], T]:
        """Work for a transaction, all of it dated by this moment."""
        moment = to_micros(self._clock())

        def run(db: Db) -> T:
            db.now = moment
            return work(db, *args, **kwargs)

        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
