"""Memory: the public class. Remember, recall, fill a context, forget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from memorist.arguments import NamesArguments
from memorist.chat import Chat
from memorist.config import Settings
from memorist.context.window import Context, Window
from memorist.derived import Facts, Memories
from memorist.documents import Articles, Entries, NoteVersions
from memorist.errors import InvalidError, naming_item
from memorist.lifecycle.settings import Extraction
from memorist.namespaces import ApiKeys, Jobs, Messages, stored
from memorist.providers.embedder import Embedder
from memorist.providers.images import encode_image, note_given
from memorist.recall.fusion import DEFAULT_RANKING, Ranking
from memorist.records.activity import Counts, Events, TurnReceipt
from memorist.records.documents import Compression, Summary
from memorist.records.log import Batch, Remembered, Session, SessionSummary, Source
from memorist.records.message import UNSET, Message, MessageLike, given, to_messages
from memorist.records.query import MIN_SCORE, NO_FILTERS, Filters, Forgotten, Names, Query, Recall
from memorist.records.scope import Scope, check_tenant, named_scope
from memorist.records.values import MadeAt, check_flags, check_key, check_text, new_id, now
from memorist.runtime import Runtime, deadline_of, summary_model, window_of
from memorist.store.base import Store

if TYPE_CHECKING:  # imported where it is used: `import memorist` stays light
    from memorist.context.builder import ArticleSource
    from memorist.library import Library
    from memorist.notebook import Notebook
    from memorist.providers.chat_model import ChatModel
    from memorist.records.archive import RestoreReport

T = TypeVar("T")
_NEEDED, _TAKEN = {"user", "messages"}, {"user", "messages", "agent", "session"}  # of an item


class Memory(NamesArguments):
    """The memory of an agent.

        with Memory() as memory:
            chat = memory.session(user="ada", agent="tutor")
            chat.add("user", "I moved to Berlin in March.")
            print(memory.recall("where does she live now?", user="ada").hits[0].text)

    `store` is a path, `":memory:"`, a `postgresql://` URL or an open Store; without one it is
    MEMORIST_URL or a file in the user's data folder. `embedder` is the local MiniLM unless
    MEMORIST_EMBEDDER says otherwise; with None, recall goes by words and links alone. `extraction`
    says how memories are extracted from messages; with None, another process's worker does it.
    `wake_worker` wakes a process that does all background work, none of which is then done here.
    `settings` are those of the environment. For a server, use `memorist.connect(url)`.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        tenant: str | None = None,
        embedder: Embedder | None = UNSET,
        ranking: Ranking = DEFAULT_RANKING,
        extraction: Extraction | None = UNSET,
        clock: Callable[[], datetime] = now,
        settings: Settings | None = None,
        wake_worker: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings = settings or Settings.from_environment()
        tenant = check_tenant(settings.tenant if tenant is None else tenant)
        runtime = Runtime(store, embedder, ranking, extraction, clock, settings, wake_worker)
        self._bind(runtime, tenant)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store.place!r}, tenant={self.tenant_name!r})"

    def _bind(self, runtime: Runtime, tenant: str) -> None:
        self._runtime = runtime
        self.clock = runtime.clock
        self.tenant_name = tenant
        self.messages = Messages(runtime, tenant)
        self.facts = Facts(runtime, tenant)
        self.memories = Memories(runtime, tenant)
        self.jobs = Jobs(runtime, tenant)
        self.entries = Entries(runtime, tenant)
        self.articles = Articles(runtime, tenant)
        self.note_versions = NoteVersions(runtime, tenant)
        self.keys = ApiKeys(runtime, tenant)

    check = stored(Store.check)
    backup = stored(Store.backup)
    scrub = stored(Store.scrub)

    @property
    def store(self) -> Store:
        """Where everything is kept. Doors use the methods of `Memory` instead."""
        return self._runtime.store

    @property
    def database(self) -> str:
        """Where everything is kept: sqlite, postgres, or a server."""
        return self.store.kind

    @property
    def embedder(self) -> Embedder | None:
        """What turns text into vectors; None where recall goes by words and links alone."""
        return self._runtime.embedder

    @property
    def extraction(self) -> Extraction | None:
        """How memories are extracted; None where another process's worker does it."""
        return self._runtime.extraction

    @property
    def summary_model(self) -> ChatModel | None:
        """The extraction model within its hourly budget, for summaries; None without one."""
        return summary_model(self.store, self.extraction)

    def tenant(self, name: str) -> Memory:
        """The same memory for the users of another tenant; closing either closes both."""
        other = copy(self)
        other._bind(self._runtime, check_tenant(name))
        return other

    def scope(self, *, user: str, agent: str | None = None, session: str | None = None) -> Scope:
        """The scope of a user of this memory's tenant."""
        return named_scope(self.tenant_name, user, agent, session)

    def session(
        self,
        *,
        user: str,
        agent: str | None = None,
        id: str | None = None,
        new: bool = False,
        claimed: str | None = None,
        adopt: bool = False,
    ) -> Chat:
        """The session with this id, else the user's active one with this agent, else a new one.

        `claimed` is an id that a client brings, as a browser does: it is used if it belongs to
        this user and agent, and is ignored otherwise. `adopt` makes what LangChain has stored
        in PostgreSQL under this `id` the user's; set it only where you know that it is theirs.
        """
        check_flags(new=new, adopt=adopt)
        if new and id is not None:
            raise InvalidError("give an id or ask for a new session, not both")
        if adopt and id is None:
            raise InvalidError("name the session to adopt by its id")
        scope = self.scope(user=user, agent=agent, session=new_id() if new else id)
        session = self.store.open_session(scope, claimed=claimed, new=new, adopt=adopt)
        return Chat(self, session)

    def active_session(self, *, user: str, agent: str | None = None) -> Session | None:
        """The user's active conversation with this agent, if there is one."""
        return self.store.active(self.scope(user=user, agent=agent))

    def sessions(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
        newest_first: bool = False,
    ) -> list[Session]:
        """Every conversation of the user, oldest first; or the one named, if it is theirs.

        With `newest_first`, the one that was last active leads, and `after` is the
        `last_active_at` and the id of the last one before; else its `created_at` and its id.
        """
        scope = self.scope(user=user, agent=agent, session=session)
        return self.store.sessions(scope, limit=limit, after=after, newest_first=newest_first)

    def session_summaries(
        self,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
        newest_first: bool = False,
    ) -> list[SessionSummary]:
        """The same as `sessions`, each with its title, its last message and their number."""
        scope = self.scope(user=user, agent=agent, session=session)
        return self.store.session_summaries(
            scope, limit=limit, after=after, newest_first=newest_first
        )

    def rename_session(self, id: str, title: str | None, *, user: str) -> None:
        """Give a session a title of the user's own; None takes it away."""
        if title is not None and not (title := check_key(title, "title", InvalidError).strip()):
            raise InvalidError("title is empty; None takes a title away")
        self.store.rename_session(self.scope(user=user, session=id), title)

    def agents(self, *, user: str) -> list[str]:
        """The agents that the user has sessions with, by name."""
        return self.store.agents(self.scope(user=user))

    def remember(
        self,
        messages: MessageLike | Iterable[MessageLike],
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        source: Source | None = None,
    ) -> Remembered:
        """Store messages durably, in order; they can be recalled as soon as this returns.

        A message is a `Message`, a dict with `role` and `content`, or the text that the user said.
        Without a session they go to the user's active one with this agent, or to a new one.
        """
        batch = self._batch(messages, user=user, agent=agent, session=session)
        stored = self.store.append(batch.scope, batch.messages, source=source)
        if stored.added:
            self.wake()
        ids = batch.message_ids
        return Remembered(session_id=stored.session_id, message_ids=ids, added=stored.added)

    def remember_many(
        self, items: Sequence[Mapping[str, Any]], *, source: Source | None = None
    ) -> list[Remembered]:
        """Store messages of several users and sessions in one transaction: all of them, or none.

        Each item has a `user` and `messages`, and may have an `agent` and a `session`, as
        `remember` takes them. An error says which item it is about, counted from 0.
        """
        batches = list[Batch]()
        for place, item in enumerate(items):
            with naming_item(place, len(items)):
                if not isinstance(item, Mapping) or not _NEEDED <= item.keys() <= _TAKEN:
                    raise InvalidError("give user and messages; agent and session may be left out")
                batches.append(self._batch(**item))
        return self.messages.add(batches, source=source)

    def _batch(self, messages: MessageLike | Iterable[MessageLike], **names: Any) -> Batch:
        """The messages as they are stored, and their scope."""
        new, scope = to_messages(messages), self.scope(**names)
        if self.clock is not now:
            at = {"created_at": self.clock()}
            new = [it.changed(**at) if isinstance(it.created_at, MadeAt) else it for it in new]
        if any(it.images or isinstance(it.content, list) for it in new):
            note_given(scope, new)
        return Batch(scope, new)

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
        return [entry.message for entry in self.messages.list(scope, last=last, role=role)]

    def recall(
        self,
        question: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int = 10,
        min_score: float = MIN_SCORE,
        deadline_ms: float | None = UNSET,
        kind: Names = None,
        category: Names = None,
        role: Names = None,
        tags: Names = None,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
    ) -> Recall:
        """Find what bears on the question, best first, each hit with its reason (`hit.why`).

        All that the user has is searched, or what an `agent` or a `session` sees of it. A hit's
        `score` is the probability that it bears on the question; what is below `min_score` is
        left out. What was not searched within `deadline_ms` (50) is named in `late`; None waits
        for all. `kind` is message, memory, fact, note, article or entry, or several of these;
        the other filters are explained at `Filters`.
        """
        scope = self.scope(user=user, agent=agent, session=session)
        only = Filters.of(
            kind=kind,
            category=category,
            role=role,
            tags=tags,
            after=after,
            before=before,
            as_of=as_of,
        )
        return self.search(
            scope, question, limit=limit, min_score=min_score, deadline_ms=deadline_ms, filters=only
        )

    def search(
        self,
        scope: Scope,
        question: str,
        *,
        limit: int = 10,
        min_score: float = MIN_SCORE,
        deadline_ms: float | None = UNSET,
        filters: Filters = NO_FILTERS,
    ) -> Recall:
        """`recall` for callers with a scope and filters; one without an agent sees all."""
        query = Query(
            scope=replace(scope, agent=scope.agent or None),
            question=question,
            now=self._runtime.clock(),
            limit=limit,
            deadline_ms=deadline_of(deadline_ms, self.settings),
            filters=filters,
            min_score=min_score,
        )
        return self._runtime.search(query)

    def context(
        self,
        question: str | Message,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        max_tokens: int | None = None,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        window: Window | None = None,
        library: ArticleSource | None = None,
        deadline_ms: float | None = UNSET,
        read_image: Callable[[str], str] | None = encode_image,
    ) -> Context:
        """Messages ready for a model, filled to `max_tokens`, and the receipt for them.

        They hold the system prompt, the notes, the summary and the newest turns of the `session`
        (none without one), what is recalled for the question, and the question. `tools` are only
        counted. `window` says how tokens are counted and shared out; `library` is where articles
        are quoted from. What cannot be read is left out, and the receipt says so.
        """
        from memorist.context.builder import ContextBuilder

        if not isinstance(question, str | Message):
            raise InvalidError(f"question must be text or a Message, got {type(question).__name__}")
        check_text("" if system is None else system, "system", InvalidError)
        if library is not None and not hasattr(library, "quotes"):
            raise InvalidError(f"library must be a Library, got {type(library).__name__}")
        window = window_of(window, self.settings)
        if max_tokens is not None:
            window = replace(window, max_tokens=max_tokens)
        builder = self.builder(
            ContextBuilder,
            self.scope(user=user, agent=agent, session=session),
            window,
            system=system,
            tools=tools,
            library=library,
            deadline_ms=deadline_of(deadline_ms, self.settings),
            read_image=read_image,
        )
        asked = question if isinstance(question, Message) else Message("user", question)
        return builder.context(asked)

    def builder(self, kind: Callable[..., T], scope: Scope, window: Window, **options: Any) -> T:
        """A context builder that reads from this memory: `ContextBuilder` or a subclass of it."""
        window = window_of(window, self.settings)
        options.setdefault("summarizer", lambda: self._runtime.summarizer())
        options |= {"search": self.search, "counter": self._runtime.counter(window)}
        return kind(store=self.store, scope=scope, window=window, **options)

    def compress(
        self, *, user: str, session: str, window: Window | None = None
    ) -> Compression | None:
        """Summarise all but the last messages of a session now; None where that is done already.

        A model makes the summary where there is one, and is waited for; otherwise it is extracted
        from the messages' own words. The log keeps every message.
        """
        from memorist.context.builder import last_to_summarise
        from memorist.context.compression.compress import style_of

        window = window_of(window, self.settings)
        scope = self.scope(user=user, session=session)
        if (last := last_to_summarise(self.store, scope, window.keep_last)) is None:
            return None
        style = style_of(window, self._runtime.counter(window))
        return self._runtime.summarizer().extend(scope, last, style, asked=True)

    def summaries(
        self,
        *,
        user: str,
        session: str,
        limit: int | None = None,
        after: int | None = None,
        oldest_first: bool = False,
        max_bytes: int | None = None,
    ) -> list[Summary]:
        """A session's summaries, newest first; for a page, `limit` of them `after` a `last_seq`."""
        scope = self.scope(user=user, session=session)
        return self.store.summaries(
            scope, limit=limit, after=after, oldest_first=oldest_first, max_bytes=max_bytes
        )

    def notes(self, *, user: str, agent: str | None = None, max_chars: int = 64_000) -> Notebook:
        """The Markdown notes of a user and agent, to read and edit."""
        from memorist.notebook import Notebook

        return Notebook(self, user=user, agent=agent, max_chars=max_chars)

    def library(
        self, name: str = "library", *, user: str | None = None, agent: str | None = None
    ) -> Library:
        """Articles to find and quote: shared by the tenant under a name, or a user's own."""
        from memorist.library import Library

        return Library(self, name, user=user, agent=agent)

    def forget(
        self,
        *,
        user: str,
        agent: str = UNSET,
        session: str = UNSET,
        message: str = UNSET,
        memory: str = UNSET,
        source: Source = UNSET,
        everything: bool = False,
        scrub: bool = True,
        dry_run: bool = False,
    ) -> Forgotten:
        """Remove a message, a session, all of an agent's, or everything of a user, for good.

        `message` removes one message, `source` all that came from there ("web"); with either goes
        everything derived from it, and what other messages said is derived again. `memory`
        removes one memory or fact alone, also as it was before an edit or a correction. Everything
        goes only with `everything=True`, and an id that is None or empty is an error: it must not
        empty a memory. The bytes leave the files in the background, or at once with `scrub()`; with
        `scrub=False` only with the next one. A `dry_run` removes nothing, and counts what would go.
        """
        check_flags(everything=everything, scrub=scrub, dry_run=dry_run)
        where = given(agent=agent, session=session)
        what = given(message=message, memory=memory, source=source)
        if everything == bool(where or what):
            raise InvalidError(
                "name an agent, session, message, memory or source, or else say everything"
            )
        if not all((*where.values(), *what.values())):
            raise InvalidError("an id to forget by is empty; name what is meant")
        for name, id_ in what.items():
            check_text(id_, name)
        gone = self.store.forget(
            self.scope(user=user, **where),
            message_id=what.get("message"),
            record_id=what.get("memory"),
            source=what.get("source"),
            scrub=scrub,
            dry_run=dry_run,
        )
        if gone.counts and not dry_run:
            self.wake()
        if gone.residue:
            self._runtime.scrubber.wake()
        return gone

    def users(self, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
        """The users of this tenant as scopes, in order; `after` is the last of the page before."""
        return self.store.users(after=after, limit=limit, tenant=self.tenant_name)

    def counts(self, *, user: str) -> Counts:
        """How much the user has of each kind, counted up to 10,000."""
        return self.store.counts(self.scope(user=user))

    def events(
        self, *, user: str, agent: str | None = None, after: str | None = None, limit: int = 500
    ) -> Events:
        """What changed after a place, oldest first: which message, memory, fact or job, and how.

        Begin without a place, which gives that of now, and go on `after` the one of the answer.
        The changes of all processes are there; of old ones the newest 1,000, and messages.
        """
        found = self.store.events(self.scope(user=user), after=after, limit=limit)
        return replace(found, items=tuple(it for it in found.items if it.concerns(agent)))

    def receipts(
        self,
        *,
        user: str,
        session: str | None = None,
        id: str | None = None,
        limit: int | None = None,
        after: tuple[datetime, str] | None = None,
    ) -> list[TurnReceipt]:
        """What went into the windows of past turns of chats, newest first; or of one, by its id."""
        scope = self.scope(user=user, session=session)
        return self.store.receipts(scope, id=id, limit=limit, after=after)

    def add_receipt(self, receipt: TurnReceipt, *, user: str) -> None:
        """Keep the receipt of a turn of a chat; the newest 1,000 of a user are kept."""
        self.store.add_receipt(self.scope(user=user), receipt)

    def export(self, user: str | None = None, *, vectors: bool = False) -> Iterator[bytes]:
        """An archive of everything that a user has, or all users of this tenant, piece by piece.

        It holds each user as of one moment, however much is written meanwhile. API keys are not in
        it; vectors are made again where it is restored, unless they are asked for.
        """
        from memorist import archive

        every = archive.scopes_of(self.store, self.tenant_name)
        scopes = every if user is None else [self.scope(user=user)]
        return archive.export(self.store, scopes, self.tenant_name, vectors=vectors)

    def restore(
        self,
        chunks: Iterable[bytes] | IO[bytes],
        *,
        user: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RestoreReport:
        """Store what an archive holds; the archive of one user is restored for `user`, if given.

        One that is cut off, altered or of a newer version is refused before anything is stored.
        What is there already stays as it is, so that a restore that was interrupted goes on when it
        is run again. `progress` is told how much of how much is done.
        """
        from memorist import archive

        report = archive.restore(
            self.store,
            chunks,
            partial(archive.scope_in, self.tenant_name, user=user),
            only_one=user is not None,
            embedder=None if self.embedder is None else self.embedder.name,
            progress=progress,
        )
        self.wake()
        return report

    def warm_up(self) -> None:
        """Load what the first recall or context of a process would otherwise wait for."""
        self._runtime.warm_up()

    def wake(self) -> None:
        """Start the background work that new messages need."""
        self._runtime.wake()

    def close(self) -> None:
        """Close the store. What has no vector yet waits in the queue; nothing else waits."""
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
