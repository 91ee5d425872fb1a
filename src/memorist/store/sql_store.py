"""SqlStore: the Store contract, once, over any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from memorist.errors import InvalidError
from memorist.records.api_key import ApiKey
from memorist.records.article import Article, Card, Chunk, Shelved
from memorist.records.change import Change
from memorist.records.entry import Answer, Ask, Put
from memorist.records.fact import Fact
from memorist.records.ids import check_moment, now, to_micros
from memorist.records.log import Appended, Job, LogEntry, Source
from memorist.records.memory_item import MemoryItem
from memorist.records.message import Message
from memorist.records.note import Note
from memorist.records.query import NO_FILTERS, Filters, Forgotten, Found, Match, Passage
from memorist.records.scope import Scope
from memorist.records.session import Session
from memorist.records.summary import Summary
from memorist.records.text import check_text
from memorist.store import (
    articles,
    budget,
    entries,
    forgetting,
    keys,
    log,
    notes,
    queue,
    search,
    sessions,
    summaries,
    views,
)
from memorist.store.base import Synonym, Term
from memorist.store.engine import Engine


class SqlStore:
    """Each method is one transaction; what happens in it is in the modules beside this one."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = now) -> None:
        self._engine = engine
        self._clock = clock

    def _now(self) -> int:
        return to_micros(self._clock())

    def append(
        self, scope: Scope, messages: Sequence[Message], *, source: Source | None = None
    ) -> Appended:
        now = self._now()
        try:
            return self._engine.write(
                scope.owner, lambda db: log.append(db, scope, messages, source, now)
            )
        except log.RepeatError:  # rare, so the common case does not pay for looking
            return self._engine.write(
                scope.owner, lambda db: log.append_unseen(db, scope, messages, source, now)
            )

    def history(
        self,
        scope: Scope,
        *,
        last: int | None = None,
        before: int | None = None,
        after: int | None = None,
        role: str | None = None,
    ) -> list[LogEntry]:
        if last is not None and (not isinstance(last, int) or last < 0):
            raise InvalidError("last must be a number, and not negative")
        _check("role", role)
        return self._engine.read(
            scope.owner, lambda db: log.history(db, scope, last, (after, before), role)
        )

    def following(self, scope: Scope, *, after: int, limit: int) -> list[LogEntry]:
        return self._engine.read(scope.owner, lambda db: log.following(db, scope, after, limit))

    def find(self, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]:
        _check("message_id", *message_ids)
        return self._engine.read(scope.owner, lambda db: log.find(db, scope, message_ids))

    def revise(self, scope: Scope, message: Message) -> None:
        now = self._now()
        self._engine.write(scope.owner, lambda db: log.revise(db, scope, message, now))

    def grow(self, scope: Scope, message: Message) -> None:
        now = self._now()
        self._engine.write(scope.owner, lambda db: log.grow(db, scope, message, now))

    def revisions(self, scope: Scope, message_id: str) -> list[Message]:
        _check("message_id", message_id)
        return self._engine.read(scope.owner, lambda db: log.revisions(db, scope, message_id))

    def open_session(self, scope: Scope, *, claimed: str | None = None) -> Session:
        now = self._now()
        return self._engine.write(
            scope.owner, lambda db: sessions.open_session(db, scope, claimed, now)
        )

    def active(self, scope: Scope) -> Session | None:
        return self._engine.read(scope.owner, lambda db: sessions.active(db, scope))

    def sessions(self, scope: Scope) -> list[Session]:
        return self._engine.read(scope.owner, lambda db: sessions.list_sessions(db, scope))

    def apply(
        self,
        scope: Scope,
        changes: Sequence[Change],
        *,
        done: Job | Sequence[Job] = (),
        base_version: int | None = None,
    ) -> None:
        now = self._now()
        jobs = [done] if isinstance(done, Job) else done
        self._engine.write(
            scope.owner, lambda db: views.apply(db, scope, changes, jobs, base_version, now)
        )

    def derived(self, scope: Scope, message_ids: Sequence[str]) -> list[str]:
        ids = list(message_ids)
        return self._engine.read(scope.owner, lambda db: views.derived(db, scope, ids))

    def version(self, scope: Scope) -> int:
        return self._engine.read(scope.owner, lambda db: views.version(db, scope))

    def superseded_by(self, scope: Scope, id_: str) -> list[MemoryItem | Fact]:
        _check("id", id_)
        return self._engine.read(
            scope.owner, lambda db: views.superseded_by(db, scope, id_), steady=True
        )

    def records(self, scope: Scope, ids: Sequence[str]) -> list[MemoryItem | Fact]:
        _check("id", *ids)
        return self._engine.read(scope.owner, lambda db: views.records(db, scope, ids), steady=True)

    def items(self, scope: Scope, *, current: bool = True) -> list[MemoryItem]:
        now = self._now()
        return self._engine.read(scope.owner, lambda db: views.items(db, scope, current, now))

    def facts(
        self,
        scope: Scope,
        *,
        topic: str | None = None,
        valid_at: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Fact]:
        return self._engine.read(
            scope.owner, lambda db: views.facts(db, scope, topic, valid_at, known_at)
        )

    def note(self, scope: Scope, *, version: int | None = None) -> Note | None:
        return self._engine.read(scope.owner, lambda db: notes.note(db, scope, version))

    def note_versions(self, scope: Scope) -> list[Note]:
        return self._engine.read(scope.owner, lambda db: notes.note_versions(db, scope))

    def write_note(self, scope: Scope, text: str, *, base_version: int) -> Note:
        now = self._now()
        return self._engine.write(
            scope.owner, lambda db: notes.write_note(db, scope, text, base_version, now)
        )

    def summary(self, scope: Scope, *, least: int | None = None) -> Summary | None:
        return self._engine.read(scope.owner, lambda db: summaries.summary(db, scope, least))

    def summaries(self, scope: Scope) -> list[Summary]:
        return self._engine.read(scope.owner, lambda db: summaries.summaries(db, scope))

    def write_summary(
        self, scope: Scope, summary: Summary, *, of: Sequence[LogEntry], done: Sequence[Job] = ()
    ) -> None:
        now = self._now()
        self._engine.write(
            scope.owner, lambda db: summaries.write_summary(db, scope, summary, of, done, now)
        )

    def queue_summary(self, scope: Scope, last_seq: int) -> None:
        now = self._now()
        self._engine.write(
            scope.owner, lambda db: summaries.queue_summary(db, scope, last_seq, now)
        )

    def articles(self, scope: Scope) -> list[Card]:
        return self._engine.read(scope.owner, lambda db: articles.articles(db, scope))

    def read_articles(self, scope: Scope, ids: Sequence[str]) -> list[Article]:
        _check("id", *ids)
        return self._engine.read(scope.owner, lambda db: articles.read_articles(db, scope, ids))

    def put_article(self, article: Article, chunks: Sequence[Chunk]) -> Shelved:
        now = self._now()
        return self._engine.write(
            article.scope.owner,
            lambda db: articles.put_article(db, article, chunks, now),
            alone=True,  # or two could add one text at once
        )

    def exchange(self, scope: Scope, asks: Sequence[Ask], puts: Sequence[Put] = ()) -> list[Answer]:
        now = self._now()
        if not puts:
            answers = self._engine.read(
                scope.owner, lambda db: entries.answer(db, scope, asks, now), steady=True
            )
            if not entries.refreshed(asks, answers):
                return answers
        return self._engine.write(
            scope.owner, lambda db: entries.exchange(db, scope, asks, puts, now)
        )

    def sweep(self, scope: Scope) -> int:
        now = self._now()
        return self._engine.write(
            scope.owner, lambda db: entries.sweep(db, scope, now, entries.ALL)
        )

    def touch(self, scope: Scope, ids: Sequence[str]) -> None:
        now = self._now()
        self._engine.write(scope.owner, lambda db: views.touch(db, scope, ids, now))

    def match_text(
        self,
        scope: Scope,
        terms: Sequence[Term],
        *,
        synonyms: Sequence[Synonym] = (),
        limit: int,
        filters: Filters = NO_FILTERS,
    ) -> list[Found]:
        return self._engine.read(
            scope.owner,
            lambda db: search.match_text(db, scope, terms, synonyms, filters, limit),
            steady=True,
        )

    def match_vector(
        self,
        scope: Scope,
        embedder: str,
        vector: Sequence[float],
        *,
        limit: int,
        filters: Filters = NO_FILTERS,
    ) -> list[Found]:
        return self._engine.read(
            scope.owner,
            lambda db: search.match_vector(db, scope, embedder, vector, filters, limit),
            steady=True,
        )

    def match_links(
        self, scope: Scope, names: Sequence[str], *, limit: int, filters: Filters = NO_FILTERS
    ) -> list[Found]:
        return self._engine.read(
            scope.owner,
            lambda db: search.match_links(db, scope, names, filters, limit),
            steady=True,
        )

    def newest(self, scope: Scope, *, limit: int, filters: Filters = NO_FILTERS) -> list[int]:
        return self._engine.read(scope.owner, lambda db: search.newest(db, scope, filters, limit))

    def passages(self, scope: Scope, ids: Sequence[int]) -> list[Passage]:
        now = self._now()
        return self._engine.read(scope.owner, lambda db: search.passages(db, scope, ids, now))

    def read(self, scope: Scope, ids: Sequence[int]) -> list[Match]:
        now = self._now()
        return self._engine.read(
            scope.owner, lambda db: search.read(db, scope, ids, now), steady=True
        )

    def speakers(self, scope: Scope) -> list[str]:
        return self._engine.read(scope.owner, lambda db: search.speakers(db, scope))

    def waiting(self, embedder: str, job: Job, *, limit: int) -> dict[int, str]:
        now = self._now()
        return self._engine.read(
            job.scope.owner, lambda db: search.waiting(db, embedder, job, limit, now), steady=True
        )

    def unprepared(self, embedder: str, *, limit: int = 100) -> list[Scope]:
        rows = self._engine.across_owners(
            lambda db: db.rows("owners_without_embedder", embedder=embedder, limit=limit)
        )
        return [Scope(tenant=tenant, user=user) for tenant, user in rows]

    def prepare(self, scope: Scope, embedder: str) -> None:
        now = self._now()
        self._engine.write(scope.owner, lambda db: search.prepare(db, scope, embedder, now))

    def unembedded(self, scope: Scope, embedder: str, *, limit: int) -> dict[int, str]:
        now = self._now()
        return self._engine.read(
            scope.owner, lambda db: search.unembedded(db, scope, embedder, limit, now), steady=True
        )

    def put_vectors(
        self,
        scope: Scope,
        embedder: str,
        vectors: Mapping[int, Sequence[float]],
        *,
        done: Sequence[Job] = (),
    ) -> None:
        now = self._now()
        self._engine.write(
            scope.owner, lambda db: search.put_vectors(db, scope, embedder, vectors, done, now)
        )

    def claim(
        self, *, kinds: Sequence[str] = (), limit: int = 1, lease_seconds: float = 60
    ) -> list[Job]:
        now = self._now()
        return self._engine.across_owners(
            lambda db: queue.claim(db, kinds, limit, lease_seconds, now)
        )

    def renew(self, job: Job, *, lease_seconds: float = 60) -> None:
        now = self._now()
        self._engine.write(job.scope.owner, lambda db: queue.renew(db, job, lease_seconds, now))

    def release(self, job: Job) -> None:
        now = self._now()
        self._engine.write(job.scope.owner, lambda db: queue.release(db, job, now))

    def backlog(self, kinds: Sequence[str] = (), *, dead: bool = False) -> int:
        return self._engine.across_owners(lambda db: queue.backlog(db, kinds, dead))

    def fail(self, job: Job, error: str) -> None:
        now = self._now()
        _check("error", error)
        self._engine.write(job.scope.owner, lambda db: queue.fail(db, job, error, now))

    def jobs(self, scope: Scope, *, dead: bool | None = None) -> list[Job]:
        return self._engine.read(scope.owner, lambda db: queue.list_jobs(db, scope, dead))

    def retry(self, scope: Scope, job_id: int) -> None:
        now = self._now()
        self._engine.write(scope.owner, lambda db: queue.retry(db, scope, job_id, now))

    def users(self, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
        last = "0" * 32 if after is None else after.owner
        rows = self._engine.across_owners(lambda db: db.rows("users", after=last, limit=limit))
        return [Scope(tenant=tenant, user=user) for tenant, user in rows]

    def spend(
        self,
        *,
        calls: int,
        tokens: int,
        max_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> bool:
        now = self._now()
        return self._engine.across_owners(
            lambda db: budget.spend(db, calls, tokens, max_calls, max_tokens, now)
        )

    def spent(self) -> tuple[int, int]:
        now = self._now()
        return self._engine.across_owners(lambda db: budget.spent(db, now))

    def put_key(self, key: ApiKey) -> None:
        self._engine.write("", lambda db: keys.put_key(db, key))

    def key(self, key_id: str) -> ApiKey | None:
        _check("key_id", key_id)
        return self._engine.read("", lambda db: keys.read_key(db, key_id))

    def keys(self, tenant: str) -> list[ApiKey]:
        return self._engine.read("", lambda db: keys.list_keys(db, tenant))

    def revoke_key(self, tenant: str, key_id: str, *, at: datetime | None = None) -> None:
        now, end = self._now(), None if at is None else check_moment(at, "at")
        _check("key_id", key_id)
        self._engine.write("", lambda db: keys.revoke_key(db, tenant, key_id, now, end))

    def forget(
        self,
        scope: Scope,
        *,
        message_id: str | None = None,
        record_id: str | None = None,
        source: str | None = None,
    ) -> Forgotten:
        now, what = self._now(), forgetting.What(message_id, record_id, source)
        _check("what to forget", *what)
        gone = self._engine.write(
            scope.owner, lambda db: forgetting.forget(db, scope, what, now), alone=True
        )
        return Forgotten(counts=dict(gone))

    def scrub(self) -> str:
        return self._engine.scrub()

    def check(self) -> dict[str, str]:
        return self._engine.check()

    def close(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check(field: str, *texts: str | None) -> None:
    """Refuse what no database keeps: one would find nothing by it, another one would fail."""
    for text in texts:
        if text is not None:
            check_text(text, field)
