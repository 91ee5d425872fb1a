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

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial, wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

from memorist.errors import ConfigError, ConflictError, LeaseLostError, NotFoundError, naming_item
from memorist.records.activity import Events
from memorist.records.archive import ArchiveRecord
from memorist.records.documents import Article, Chunk, PutResult
from memorist.records.entry import Answer, Ask, Put
from memorist.records.log import Appended, Batch, Job, Remembered, Session, Source
from memorist.records.memories import Change
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import Count, now, to_micros
from memorist.store import (
    activity,
    appending,
    archive,
    documents,
    entries,
    forgetting,
    jobs,
    keys,
    log,
    search,
    views,
)
from memorist.store.engine import AnswerLostError, Db, DryRunError, Engine, Piece
from memorist.store.indexing import (
    MAX_MESSAGE_BYTES,
    Preparation,
    PreparedMessage,
    UnpreparedError,
    check_size,
)
from memorist.store.rows import END, check_count

NO_SESSION = "there is no such session: "
ATTEMPTS = 20  # while other processes change the same user's memories
BACKOFF_SECONDS = 0.01  # longer with each attempt
P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=Change)
S = TypeVar("S", bound=Scope | Job | Article)
"""What says whose rows a method is about."""


def reads(
    work: Callable[Concatenate[Db, S, P], T], *, snapshot: bool = False, bounded: bool = True
) -> Callable[Concatenate[Store, S, P], T]:
    """A method that reads rows of one user; `Engine.read` says how."""

    @wraps(work)
    def run(store: Store, of: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        job = store._dated(work, of, *args, **kwargs)
        return store._engine.read(of.owner, job, snapshot=snapshot, bounded=bounded)

    return run


def writes(
    work: Callable[Concatenate[Db, S, P], T],
    *,
    exclusive: bool = False,
    texts: Callable[..., Iterable[str]] = lambda *_, **__: (),
    load: Callable[..., None] = lambda *_, **__: None,
) -> Callable[Concatenate[Store, S, P], T]:
    """A method that writes for one user; with `exclusive`, nobody else does meanwhile.

    `texts` are those that it indexes, by its arguments, and are prepared first, after `load` has
    read data that it needs. If it comes upon other texts, it is rolled back and runs again when
    they are prepared. A dry run is rolled back, too.
    """

    @wraps(work)
    def run(store: Store, of: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        load(*args, **kwargs)
        ready: dict[str, list[Piece] | None] = dict.fromkeys(texts(*args, **kwargs))
        job = store._dated(work, of, *args, **kwargs)

        def index(db: Db) -> T:
            db.texts = ready
            result = job(db)
            if None in ready.values():
                raise UnpreparedError
            return result

        while True:
            for text in [text for text, pieces in ready.items() if pieces is None]:
                ready[text] = store._preparation.text(of.owner, text)
            try:
                return store._engine.write(of.owner, index, exclusive=exclusive)
            except DryRunError as rolled_back:
                result: T = rolled_back.result
                return result
            except UnpreparedError:
                pass

    return run


def all_owners(
    work: Callable[Concatenate[Db, P], T], *, reads: bool = False
) -> Callable[Concatenate[Store, P], T]:
    """A method on the jobs of all users, which it changes unless it only `reads`."""

    @wraps(work)
    def run(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store._engine.all_owners(store._dated(work, *args, **kwargs), reads=reads)

    return run


class Store:
    """A database of memories; see the module."""

    kind = ""  # sqlite or postgres
    place = ""  # the file, or the database's URL without its password

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], datetime] = now,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._engine = engine
        self.scrubs = engine.scrubs
        self.saves_trips = engine.saves_trips
        self._clock = clock
        self.max_message_bytes = max_message_bytes
        self._preparation = Preparation(engine, max_message_bytes)

    # The log
    _append = writes(appending.append)
    _append_at_once = writes(appending.append_at_once)
    _append_each = writes(appending.append_each)
    history = reads(log.history)
    following = reads(log.following)
    find = reads(log.find)
    text_from = reads(log.text_from, snapshot=True)
    revisions = reads(log.revisions, snapshot=True)
    _revise = writes(forgetting.revise, load=forgetting.load_language)
    _unseen = reads(appending.unseen, snapshot=True)
    _growth = reads(log.growth, snapshot=True)
    _append_text = writes(log.append_text)
    _reindex = writes(log.reindex)

    # Sessions
    _open_session = writes(log.open_session)
    _active_id = reads(log.active_id)
    _just_active = reads(log.just_active)
    active = reads(log.active)
    sessions = reads(log.list_sessions)
    session_summaries = reads(log.summarized, snapshot=True)
    rename_session = writes(log.rename_session)
    agents = reads(log.agents)

    # Memories and facts
    apply = writes(views.apply, texts=views.texts_of)
    touch = writes(views.touch)
    version = reads(views.version)
    derived = reads(views.derived)
    updates = reads(views.updates)
    facts_of = reads(views.facts_of)
    kept_by_hand = reads(views.kept_by_hand)
    superseded_by = reads(views.superseded_by, snapshot=True)
    records = reads(views.records, snapshot=True)
    items = reads(views.items)
    facts = reads(views.facts)
    naming = reads(views.naming)
    similar = reads(views.similar, snapshot=True)
    chain = reads(views.chain, snapshot=True)
    entities = reads(views.entities)
    neighbourhood = reads(views.neighbourhood, snapshot=True)
    stated_by = reads(views.stated_by, snapshot=True)

    # What happens
    _events = reads(activity.events)
    counts = reads(activity.counts, snapshot=True)
    receipts = reads(activity.receipts)
    add_receipt = writes(activity.add_receipt)

    # Notes, summaries, articles
    note = reads(documents.note)
    note_versions = reads(documents.note_versions)
    write_note = writes(documents.write_note, texts=documents.texts_of_note)
    summary = reads(documents.summary)
    summaries = reads(documents.summaries)
    write_summary = writes(documents.write_summary)
    queue_summary = writes(documents.queue_summary)
    articles = reads(documents.articles)
    read_articles = reads(documents.read_articles)
    _put_article = writes(documents.put_article, exclusive=True)  # or two could add one text

    # Search
    match_text = reads(search.match_text, snapshot=True)
    match_vector = reads(search.match_vector, snapshot=True)
    match_links = reads(search.match_links, snapshot=True)
    foresee = reads(search.foresee)
    newest = reads(search.newest)
    passages = reads(search.passages)
    read = reads(search.read, snapshot=True)
    speakers = reads(search.speakers)

    # Vectors
    unembedded = reads(search.unembedded, snapshot=True)
    waiting = reads(search.waiting, snapshot=True)
    earlier_statements = reads(search.earlier_statements, snapshot=True)
    put_vectors = writes(search.put_vectors)
    unprepared = all_owners(search.unprepared, reads=True)
    prepare = writes(search.prepare)

    # The queue
    claim = all_owners(jobs.claim)
    any_due = all_owners(jobs.any_due, reads=True)
    renew = writes(jobs.renew)
    release = writes(jobs.release)
    fail = writes(jobs.fail)
    backlog = all_owners(jobs.backlog, reads=True)
    new_wait = all_owners(jobs.new_wait, reads=True)
    retry = writes(jobs.retry)
    users = all_owners(jobs.users, reads=True)
    spend = all_owners(jobs.spend)
    spent = all_owners(jobs.spent, reads=True)
    queue_rebuild = all_owners(jobs.queue_rebuild)
    next_rebuild = all_owners(jobs.next_rebuild, reads=True)
    waiting_jobs = reads(jobs.waiting_jobs)
    jobs = reads(jobs.list_jobs)

    # API keys
    put_key = all_owners(keys.put_key)
    revoke_key = all_owners(keys.revoke_key)
    key = all_owners(keys.read_key, reads=True)
    has_keys = all_owners(keys.has_keys, reads=True)
    keys = all_owners(keys.list_keys, reads=True)

    # Entries
    _answer = reads(entries.answer, snapshot=True)
    _write_entries = writes(entries.write)

    # Archives
    export = reads(archive.export, snapshot=True, bounded=False)
    _stored = reads(archive.stored, snapshot=True)
    _restore = writes(archive.restore, texts=archive.texts_of)

    # Deleting
    sweep = writes(entries.sweep)
    forget = writes(forgetting.forget, exclusive=True, load=forgetting.load_language)
    rebuild = writes(forgetting.rebuild, exclusive=True)

    def open_session(
        self, scope: Scope, *, claimed: str | None = None, new: bool = False, adopt: bool = False
    ) -> Session:
        """See `log.open_session`; nothing is written of a session that was active just now."""
        known = None if new or adopt else self._just_active(scope, claimed)
        return known or self._open_session(scope, claimed=claimed, new=new, adopt=adopt)

    def append(
        self, scope: Scope, messages: Sequence[Message], *, source: Source | None = None
    ) -> Appended:
        """Add messages to the log, index and queue them; those stored already are left alone."""
        given = [self._preparation.message(scope.owner, message) for message in messages]
        seqs: dict[str, int] = {}
        fresh = given
        while True:
            try:
                appended = self._append_known(scope, fresh, source)
                appended = appended or self._append(scope, fresh, source)
            except appending.RepeatError as repeat:  # rare: the common case need not look first
                stored_in = scope.within(session=repeat.session_id)
                seqs, fresh = self._unseen(stored_in, given)
                scope = stored_in if seqs else scope  # if none is there, it was rolled back
                continue
            if fresh is given:
                return appended
            seqs.update(zip([it.id for it in fresh], appended.seqs, strict=True))
            return replace(appended, seqs=tuple(seqs[it.id] for it in given))

    def _append_known(
        self, scope: Scope, messages: Sequence[PreparedMessage], source: Source | None
    ) -> Appended | None:
        """Append in one round trip, where the database can and the session exists."""
        if not messages or not self.saves_trips:
            return None
        if (session := scope.session or self._active_id(scope)) is None:
            return None
        scope = scope.within(session=session)
        rows = self._append_at_once(scope, messages, source)
        try:
            seqs = tuple(seq for (seq,) in rows())
        except AnswerLostError:
            seqs = tuple(self._unseen(scope, messages)[0].values())
        return Appended(session_id=session, seqs=seqs, added=len(seqs)) if seqs else None

    def append_each(
        self, batches: Sequence[Batch], *, source: Source | None = None
    ) -> list[Remembered]:
        """Add messages of several users and sessions, all or none; those stored are left alone."""
        if not batches:
            return []
        ready = list[tuple[Batch, list[PreparedMessage]]]()
        for place, one in enumerate(batches):
            with naming_item(place, len(batches)):
                prepared = [self._preparation.message(one.scope.owner, it) for it in one.messages]
                ready.append((one, prepared))
        at_once, of = self.saves_trips, batches[0].scope
        while True:
            try:
                sessions = self._append_each(of, ready, source, at_once=at_once)
            except appending.RepeatError:
                ready = self._unstored(ready)
                continue
            return [
                Remembered(session_id=id_, message_ids=one.message_ids, added=len(fresh))
                for id_, (one, fresh) in zip(sessions, ready, strict=True)
            ]

    def _unstored(
        self, ready: Sequence[tuple[Batch, list[PreparedMessage]]]
    ) -> list[tuple[Batch, list[PreparedMessage]]]:
        """The batches without the messages that are stored, or are in a batch before."""
        given = defaultdict[Scope, list[PreparedMessage]](list)
        places = dict[Scope, int]()
        for place, (one, messages) in enumerate(ready):
            scope = one.scope
            active = None if scope.session else self.active(scope)
            session = scope.session or (active.id if active else f"{NO_SESSION}{scope.agent}")
            home = Scope(user=scope.user, tenant=scope.tenant, session=session)
            given[home] += messages
            places.setdefault(home, place)
        fresh = set[int]()
        for home, messages in given.items():
            with naming_item(places[home], len(ready)):
                fresh.update(map(id, self._unseen(home, messages)[1]))
        return [(one, [it for it in messages if id(it) in fresh]) for one, messages in ready]

    def revise(self, scope: Scope, message: Message) -> None:
        """Replace the message with this id; what it said before stays among its revisions."""
        self._revise(scope, self._preparation.message(scope.owner, message))

    def change(
        self,
        scope: Scope,
        decide: Callable[[], list[C]],
        *,
        done: Sequence[Job] = (),
        by_hand: bool = False,
    ) -> list[C]:
        """Apply the changes decided upon; decide again where another process was quicker."""
        for attempt in range(ATTEMPTS):
            time.sleep(random.uniform(0, BACKOFF_SECONDS * attempt))
            version = self.version(scope)
            try:
                changes = decide()
                self.apply(scope, changes, done=done, base_version=version, by_hand=by_hand)
            except LeaseLostError:
                raise
            except (ConflictError, NotFoundError):
                continue
            return changes
        raise ConflictError("this user's memories keep changing; try again later")

    def reindex(self, job: Job) -> None:
        """Cut and index the messages of a job anew; their vectors are made again, too."""
        preparation = Preparation(self._engine, END)  # none that is stored is too long
        entries = self.history(job.scope, after=job.first_seq - 1, before=job.last_seq + 1)
        ready = [(one.seq, preparation.message(job.owner, one.message)) for one in entries]
        self._reindex(job, ready)

    def append_text(self, scope: Scope, message: Message) -> None:
        """Replace an unfinished message by a longer version of it."""
        while (growth := self._growth(scope, message)) is not None:
            ready = log.prepare_growth(self._preparation, scope.owner, message, growth)
            if self._append_text(scope, growth, *ready):
                break

    def put_article(self, article: Article, chunks: Sequence[Chunk]) -> PutResult:
        """Store an article, in place of the one of its uri unless that is the same."""
        check_size(article.text, "article")
        pieces = self._preparation.pieces(article.owner, documents.pieces_of(article, chunks))
        return self._put_article(article, article.digest, pieces)

    def batch(
        self,
        scope: Scope,
        asks: Sequence[Ask],
        puts: Sequence[Put] = (),
        *,
        max_bytes: Count = None,
    ) -> list[Answer]:
        """Answer questions about entries, then write entries.

        With `max_bytes`, TooLargeError before more than that is read, and nothing is written.
        """
        answers = self._answer(scope, asks, max_bytes=max_bytes) if asks else []
        refreshed = entries.refreshed(asks, answers)
        if puts or refreshed:
            self._write_entries(scope, entries.prepare(self._preparation, scope, puts), refreshed)
        return answers

    def restore(
        self,
        scope: Scope,
        records: Sequence[ArchiveRecord],
        cut: Callable[[str], Sequence[Chunk]],
        *,
        own: bool = False,
    ) -> list[archive.Outcome]:
        """Store what is not stored of some records of an archive; None for each that was added.

        True says that a record was there, False that it is there with other content, which stays.
        """
        preparation = Preparation(self._engine, END)  # callers know how long they are
        while True:
            outcomes = self._stored(scope, records)
            fresh = [place for place, outcome in enumerate(outcomes) if outcome is None]
            ready = [archive.prepare(preparation, scope, records[it], cut) for it in fresh]
            try:
                added = self._restore(scope, ready, own=own)
            except appending.RepeatError:  # somebody else has stored one meanwhile
                continue
            for place, is_new in zip(fresh, added, strict=True):
                outcomes[place] = None if is_new else True
            return outcomes

    def events(self, scope: Scope, *, after: str | None = None, limit: int = 500) -> Events:
        """The user's events after a place, oldest first; without one, none, and the place of now.

        A write that is under way may be about to store what comes before the newest: it is waited
        for, up to a second.
        """
        read = partial(self._events, scope, after=after, limit=check_count(limit, "limit"))
        for _ in range(20):
            if (found := read()) is not None:
                return found
            time.sleep(0.05)
        return read(settled=False) or Events(items=(), place=after or "0.0")

    def reading(
        self, scope: Scope, left: Callable[[], float | None]
    ) -> AbstractContextManager[None]:
        """A time in which this thread's reads of a user may share a transaction; see `Engine`."""
        return self._engine.reading(scope.owner, left)

    def scrub(self) -> str:
        """Remove deleted bytes from the files; say what remains, if anything."""
        return self._engine.scrub()

    def merge(self) -> bool:
        """Merge a little of the text index, if it is in many parts; say whether more is left."""
        return self._engine.merge()

    def unscrubbed_s(self) -> float | None:
        """For how many seconds something forgotten waits for a scrub; None if nothing does."""
        since = self._engine.unscrubbed_since()
        return None if since is None else (to_micros(self._clock()) - since) / 1_000_000

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy all that is committed into a new file, while this one is in use."""
        raise ConfigError("backup copies a SQLite file; use pg_dump for PostgreSQL")

    def size(self) -> int:
        """The bytes that the database takes."""
        return self._engine.read("", lambda db: int(db.rows("store_size")[0][0]))

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
