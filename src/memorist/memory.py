"""Memory: where the rooms meet. Remember, recall, forget."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from memorist import metrics
from memorist.chat import Chat
from memorist.config import Settings
from memorist.context.window import Window
from memorist.contexts import Contexts
from memorist.errors import ConfigError, InvalidError, MissingExtraError
from memorist.language.synonyms import synonyms_of
from memorist.life import Life
from memorist.lifecycle.settings import DEFAULT_EXTRACTION, Extraction
from memorist.providers.embedder import Embedder
from memorist.providers.minilm import MiniLM
from memorist.recall.channels import no_synonyms
from memorist.recall.fusion import DEFAULT_RANKING, Period, Ranking
from memorist.recall.indexer import Indexer
from memorist.recall.search import Searcher
from memorist.records.ids import new_id, now
from memorist.records.inputs import UNSET, Remembered, Said, What, as_messages
from memorist.records.log import Source
from memorist.records.message import Message
from memorist.records.query import (
    NO_FILTERS,
    Filters,
    Forgotten,
    Only,
    Query,
    Recall,
    check_deadline,
)
from memorist.records.scope import Scope, check_tenant
from memorist.records.session import Session
from memorist.records.text import check_text
from memorist.store.background import Courtesy
from memorist.store.base import Store
from memorist.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from memorist.language.dates import Span
    from memorist.lifecycle.worker import Worker


class Memory(Life, Contexts):
    """The memory of an agent.

        with Memory() as memory:
            chat = memory.session(user="ada", agent="tutor")
            chat.add("user", "I moved to Berlin in March.")
            print(memory.recall("where does she live now?", user="ada").hits[0].text)

    `store` is a Store, a path, `":memory:"` or a `postgresql://` URL; without one, MEMORIST_URL
    or a file in the user's data folder. With the `http://` address of a server it is a `Client`
    of that, with the key in MEMORIST_KEY. `embedder` is the local MiniLM unless MEMORIST_EMBEDDER
    says otherwise; with None, recall goes by words and links alone. `extraction` says how memories
    are made of what was said; with None, that is left to another process's worker.
    """

    def __new__(cls, store: Any = None, **options: Any) -> Any:
        """A memory at hand, or where an address is given a client of the server there."""
        url = Settings.from_environment().url if store is None else store
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            return open_client(url, options)
        return super().__new__(cls)

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        tenant: str | None = None,
        embedder: Embedder | None = UNSET,
        ranking: Ranking = DEFAULT_RANKING,
        extraction: Extraction | None = UNSET,
        clock: Callable[[], datetime] = now,
    ) -> None:
        settings = Settings.from_environment()
        self.tenant = check_tenant(settings.tenant if tenant is None else str(tenant))
        if store is None:
            store = open_store(settings.url, settings.durability, clock)
        elif isinstance(store, str | os.PathLike):
            store = open_store(os.fspath(store), "full", clock)
        self.store: Store = store
        self.embedder = open_embedder(settings.embedder) if embedder is UNSET else embedder
        self._clock = clock
        self._searcher = Searcher(
            store=store,
            embedder=self.embedder,
            ranking=ranking,
            synonyms_of=no_synonyms if self.embedder is None else synonyms_of,
            time_asked_about=time_asked_about,
        )
        self._courtesy = Courtesy()
        self.extraction = open_extraction(settings) if extraction is UNSET else extraction
        self._worker = self._open_worker()
        self._indexer = self._open_indexer()
        self._counters, self._summarizer = {}, None
        metrics.watch("memorist.queue.depth", self.waiting)

    def _open_worker(self) -> Worker | None:
        if self.extraction is None:
            return None
        from memorist.lifecycle.worker import Worker  # here: `import memorist` stays light

        # Where nobody makes vectors, what was said is thought about at once.
        kinds = ("derive",) if self.embedder is not None else ("embed", "vectors", "derive")
        return Worker(
            self.store, self.extraction, kinds=kinds, clock=self._clock, courtesy=self._courtesy
        )

    def _open_indexer(self) -> Indexer | None:
        if self.embedder is None:
            return None
        then = self._worker.wake if self._worker is not None else lambda: None
        return Indexer(self.store, self.embedder, then)

    def of_tenant(self, tenant: str) -> Memory:
        """The same memory for the users of another tenant; closing either closes both."""
        self._open_summarizer()  # one for all
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, tenant=check_tenant(str(tenant)))
        return other

    def scope(self, *, user: str, agent: str | None = None, session: str | None = None) -> Scope:
        """The scope of a user of this memory's tenant."""
        try:
            return _scope(self.tenant, user, agent, session)
        except TypeError:  # not to be looked up, so not a string either: let Scope say so
            return Scope(user=user, tenant=self.tenant, agent=agent, session=session)

    def session(
        self,
        *,
        user: str,
        agent: str | None = None,
        id: str | None = None,
        new: bool = False,
        claimed: str | None = None,
    ) -> Chat:
        """The conversation named, else the user's active one with this agent, else a new one.

        `claimed` is an id that somebody brings, as a browser does: it is taken if it is of this
        user and agent, and is otherwise as good as none.
        """
        if new and id is not None:
            raise InvalidError("give an id or ask for a new session, not both")
        if new:
            id = new_id()
        scope = self.scope(user=user, agent=agent, session=id)
        return Chat(self, self.store.open_session(scope, claimed=claimed))

    def active(self, *, user: str, agent: str | None = None) -> Session | None:
        """The conversation that goes on with this agent, if there is one."""
        return self.store.active(self.scope(user=user, agent=agent))

    def sessions(self, *, user: str, agent: str | None = None) -> list[Session]:
        """Every conversation of the user, oldest first."""
        return self.store.sessions(self.scope(user=user, agent=agent))

    def remember(
        self,
        said: Said | Iterable[Said],
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        source: Source | None = None,
    ) -> Remembered:
        """Store messages durably, in order; they can be recalled as soon as this returns.

        Without a session they go to the user's active one with this agent, or to a new one.
        """
        messages = as_messages(said)
        scope = self.scope(user=user, agent=agent, session=session)
        done = self.store.append(scope, messages, source=source)
        if done.added:
            self.wake()
        return Remembered(
            session_id=done.session_id,
            message_ids=tuple(message.message_id for message in messages),
            added=done.added,
        )

    def history(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        last: int | None = None,
        role: str | None = None,
    ) -> list[Message]:
        """The newest `last` messages in the scope, or all of them, oldest first."""
        scope = self.scope(user=user, agent=agent, session=session)
        return [entry.message for entry in self.store.history(scope, last=last, role=role)]

    def recall(
        self,
        question: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int = 10,
        deadline_ms: float | None = 50.0,
        **only: Unpack[Only],
    ) -> Recall:
        """What is remembered that bears on the question, best first, each with its reason.

        A channel that is not done by the deadline is named in the result, which holds what
        the others found; None waits for all. `only` narrows the search: `kind="fact"`,
        `role="user"`, `category=…`, `tags=…`, `after=…`, `before=…`, `as_of=…`.
        """
        if not isinstance(question, str):
            raise InvalidError(f"question must be a string, got {type(question).__name__}")
        if not isinstance(limit, int):
            raise InvalidError(f"limit must be a whole number, got {type(limit).__name__}")
        check_deadline(deadline_ms)
        scope = self.scope(user=user, agent=agent, session=session)
        return self.search(
            scope, question, limit=limit, deadline_ms=deadline_ms, filters=Filters.of(only)
        )

    def search(
        self,
        scope: Scope,
        question: str,
        *,
        limit: int,
        deadline_ms: float | None,
        filters: Filters = NO_FILTERS,
    ) -> Recall:
        """`recall`, for those who have a scope in hand."""
        query = Query(
            scope=scope,
            question=question,
            now=self._clock(),
            limit=limit,
            deadline_ms=deadline_ms,
            filters=filters,
        )
        if self._indexer is not None:
            self._indexer.start()
        _dates()
        with self._courtesy:
            found = self._searcher.search(query)
        if self._worker is not None and found.hits:
            ids = {
                kind: [hit.id for hit in found.hits if hit.kind == kind]
                for kind in ("memory", "message")
            }
            self._worker.used(query.scope.whole_user(), ids["memory"], ids["message"])
        return found

    def warm_up(self) -> None:
        """Load now what the first recall or context of a process would else wait for."""
        self._counter(Window()).text("ready")
        time_asked_about("", self._clock())
        if self.embedder is not None:
            synonyms_of("")
            self.embedder.embed_query("")

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until all that is stored can be found by its meaning, and was thought about.

        Nobody needs to: it happens in the background, and words find it until then. Returns
        how many jobs still wait when the time is over.
        """
        began, left = time.monotonic(), dict[object, int]()
        helpers = (self._indexer, self._worker, self._indexer, self._summarizer)
        for helper in helpers:  # the indexer twice: memories need vectors too
            if helper is not None:
                spent = time.monotonic() - began
                patience = None if timeout_s is None else max(timeout_s - spent, 0)
                left[helper] = helper.catch_up(patience)
        return sum(left.values())

    def waiting(self) -> dict[str, int]:
        """How many jobs of each kind wait or are worked on, of all users."""
        return waiting(self.store, self.embedder)

    def wake(self) -> None:
        """There is something new to be indexed and thought about."""
        first = self._indexer or self._worker  # the indexer wakes the worker when it is done
        if first is not None:
            first.wake()

    def forget(
        self,
        *,
        user: str,
        agent: str = UNSET,
        session: str = UNSET,
        everything: bool = False,
        scrub: bool = True,
        **what: Unpack[What],
    ) -> Forgotten:
        """Remove a message, a session, all of an agent's, or everything of a user, for good.

        `forget(user=…, message=…)` removes one message, `source="web"` all that was stamped so;
        with either goes everything derived from it, and what other messages said is thought anew.
        `memory=…` removes one memory or fact alone.
        Everything goes only where `everything=True` says so, and an id that happens to be None
        is an error: it must not empty a memory. Scrubbing the bytes takes time in proportion to
        the store: for many in a row, say `scrub=False` and call `scrub()` after the last.
        """
        if unknown := what.keys() - What.__annotations__.keys():
            raise TypeError(f"forget takes no {', '.join(sorted(unknown))}")
        where = {"agent": agent, "session": session}
        where = {name: id_ for name, id_ in where.items() if id_ is not UNSET}
        if everything == bool(where or what):
            raise InvalidError(
                "name an agent, session, message or source, or else say everything=True"
            )
        if None in (*where.values(), *what.values()):
            raise InvalidError("an id to forget by is None")
        for name, id_ in what.items():
            check_text(id_, name)
        gone = self.store.forget(
            self.scope(user=user, **where),
            message_id=what.get("message"),
            record_id=what.get("memory"),
            source=what.get("source"),
        )
        self.wake()
        return replace(gone, residue=self.store.scrub()) if scrub else gone

    def scrub(self) -> str:
        """Remove the bytes of all that was forgotten from the store's files; say what remains."""
        return self.store.scrub()

    def close(self) -> None:
        """Close the store. What has no vector yet waits in the queue; nothing else waits."""
        for helper in (self._worker, self._indexer, self._summarizer):
            if helper is not None:
                helper.close()
        self._searcher.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@lru_cache(maxsize=1_024)
def _scope(tenant: str, user: str, agent: str | None, session: str | None) -> Scope:
    return Scope(user=user, tenant=tenant, agent=agent, session=session)


def open_store(url: str, durability: str = "full", clock: Callable[[], datetime] = now) -> Store:
    """The store that a URL or path names."""
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from memorist.store.postgres.store import PostgresStore
        except ImportError as error:
            raise MissingExtraError("postgres") from error
        return PostgresStore(url, clock=clock)
    path = url.removeprefix("sqlite:///")
    if not path or re.match(r"\w[\w+.-]*://", path):
        raise ConfigError(
            "the store is a path, :memory:, sqlite:///path or postgresql://…; the http:// address "
            "of a server is for Memory(…)"
        )
    return SqliteStore(path, durability="normal" if durability == "normal" else "full", clock=clock)


def open_client(url: str, options: Mapping[str, Any]) -> Any:
    """A client of the server at an address, with the key in MEMORIST_KEY."""
    from memorist.client import Client

    usual = (None, UNSET, DEFAULT_RANKING, now)
    if "key" in options:
        raise ConfigError("set MEMORIST_KEY, or use memorist.Client(url, key=…)")
    if chosen := sorted(name for name, value in options.items() if value not in usual):
        raise ConfigError(f"{', '.join(chosen)}: that is the server's to choose")
    return Client(url, key=Settings.from_environment().key)


def waiting(store: Store, embedder: Embedder | None = None) -> dict[str, int]:
    """How many jobs of each kind wait or are worked on, of all users."""
    own = () if embedder is None else (f"vectors:{embedder.name}",)
    kinds = {
        "embed": ("embed",),
        "vectors": ("vectors", *own),
        "derive": ("derive",),
        "summarize": ("summarize",),
    }
    return {name: store.backlog(those) for name, those in kinds.items()}


def open_extraction(settings: Settings) -> Extraction:
    """How memories are made by default: by rules, or by the model that the settings name."""
    if not settings.model:
        return DEFAULT_EXTRACTION
    from memorist.providers.open_chat import open_model

    model = open_model(settings.model, settings.model_url, settings.model_key)
    return Extraction(model=model)


def open_embedder(name: str) -> Embedder | None:
    """One of the embedders that need no key, by its name in MEMORIST_EMBEDDER."""
    if name == "static":
        from memorist.providers.static import StaticEmbedder

        return StaticEmbedder()
    return MiniLM() if name == "minilm" else None


def time_asked_about(question: str, now: datetime) -> Period | None:
    """From the first to the last of the times that a question names: "last May", "a week ago"."""
    spans = _dates()(question, now, lean=-1)
    past = [span for span in spans if span.start <= now]
    if not past:
        return None
    return min(span.start for span in past), max(span.end for span in past)


@cache
def _dates() -> Callable[..., list[Span]]:
    """What finds dates: read once in a process, and before the time of a search is counted."""
    from memorist.language.dates import find_dates  # here: `import memorist` stays light

    find_dates("today", now())
    return find_dates
