"""Client: a memory on a server, used like one at hand."""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, cast, get_args

from memorist.config import Settings
from memorist.context.compression.compress import Compression
from memorist.context.documents.excerpts import Retrieved
from memorist.context.window import Context, Part, Receipt, Window
from memorist.errors import ConfigError, InvalidError, NotFoundError, StoreUnavailableError
from memorist.lifecycle.audit import Audit
from memorist.lifecycle.maintenance import Maintained
from memorist.memory import Memory
from memorist.namespaces import (
    ApiKeys,
    Articles,
    Entries,
    Facts,
    Jobs,
    Memories,
    Messages,
    NoteVersions,
)
from memorist.operations import OPERATIONS
from memorist.providers.http import PAGE, Connection, NotHereError, part
from memorist.providers.images import encode_image
from memorist.records.article import Article, Card, Chunk, Shelved
from memorist.records.change import Change
from memorist.records.decode import from_plain
from memorist.records.entry import Answer, Ask, Entry, Get, Ids, Namespaces, Put, Search
from memorist.records.fact import Fact
from memorist.records.ids import now
from memorist.records.inputs import UNSET, Remembered, Said, as_messages
from memorist.records.log import Job, LogEntry, Source
from memorist.records.memory_item import MemoryItem
from memorist.records.message import Message
from memorist.records.note import Note
from memorist.records.query import (
    NO_FILTERS,
    RECALL_DEADLINE_MS,
    Filters,
    Forgotten,
    Names,
    Recall,
    check_deadline,
)
from memorist.records.scope import Scope, shared_scope
from memorist.records.session import Session
from memorist.records.summary import Summary
from memorist.runtime import Runtime
from memorist.views.library import DEADLINE_MS, TOP_K, WINDOW, Library

P = ParamSpec("P")
T = TypeVar("T")
TIMEOUT_S = 30.0
MAX_DEADLINE_MS = 10_000  # the longest that a server searches
GRACE_S = 1.0  # for the network, beyond recall's own deadline
POLL_S = 0.2
MAX_MESSAGES, MAX_BYTES = 1_000, 4_000_000  # of one request
# What ends the tenant of a scope that all users of the tenant share.
LIBRARY_TENANT, STORE_TENANT = "/library", "/store"
log = logging.getLogger("memorist")


def connect(url: str | None = None, *, key: str = "", timeout_s: float = TIMEOUT_S) -> Memory:
    """The memory of a server, by default that of MEMORIST_URL with the key in MEMORIST_KEY.

    with connect("http://127.0.0.1:7077", key="mk_…") as memory:
        chat = memory.session(user="ada", agent="tutor")
        chat.add("user", "I moved to Berlin in March.")
        print(memory.recall("where does she live now?", user="ada").hits[0].text)
    """
    settings = Settings.from_environment()
    return Client(url or settings.url, key=key or settings.key, timeout_s=timeout_s)


class Api:
    """Calls operations of the HTTP API by their names in `OPERATIONS`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def call(
        self, operation: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """The server's answer; arguments go into the path, the query or the body."""
        method, path, repeatable = OPERATIONS[operation]
        rest = {name: value for name, value in arguments.items() if value is not UNSET}
        for name in list(rest):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", part(str(rest.pop(name))))
        if method in ("GET", "DELETE"):
            return self.connection.call(method, path, query=rest, timeout_s=timeout_s)
        body = {name: to_json(value) for name, value in rest.items()}
        return self.connection.call(method, path, body, idempotent=repeatable, timeout_s=timeout_s)

    def pages(self, operation: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
        """Every item of a list, page by page."""
        cursor = None
        while True:
            page = self.call(operation, {**arguments, "cursor": cursor, "limit": PAGE})
            yield from page["items"]
            if (cursor := page["next"]) is None:
                return


class remote(Generic[P, T]):
    """A method that sends its arguments to an operation and reads the answer with `read`."""

    def __init__(
        self,
        method: Callable[Concatenate[Any, P], T],
        operation: str,
        read: Callable[[Any], T],
        *,
        pages: bool = False,
        id: str = "",
    ) -> None:
        self._method, self._operation, self._read = method, operation, read
        self._pages, self._id = pages, id
        self._signature = inspect.signature(method)
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, kind: type) -> Callable[P, T]:
        if owner is None:
            return cast(Callable[P, T], self._method)

        def call(*args: P.args, **named: P.kwargs) -> T:
            arguments = dict(self._signature.bind(owner, *args, **named).arguments)
            del arguments["self"]
            if self._id:
                arguments[self._id] = arguments.pop("id")
            if self._pages:
                return self._read(owner._api.pages(self._operation, arguments))
            return self._read(owner._api.call(self._operation, arguments))

        return call


def record(kind: type[T]) -> Callable[[Any], T]:
    """Reads an answer that is one record."""
    return lambda data: from_plain(kind, data)


def records(kind: type[T]) -> Callable[[Any], list[T]]:
    """Reads the items of a list as records."""
    return lambda items: [from_plain(kind, item) for item in items]


def read_id(data: Any) -> str:
    """The id in an answer; empty where nothing was kept."""
    return str(data["id"] or "")


def read_changes(data: Any) -> list[Change]:
    """The changes in an answer, each by its name."""
    return [read_change(item["change"], item["what"]) for item in data["changes"]]


def read_change(name: str, data: Mapping[str, Any]) -> Change:
    """One change by its name."""
    kind: Any = {kind.__name__.lower(): kind for kind in get_args(Change)}[name]
    if "record" not in data:
        return cast(Change, from_plain(kind, data))
    fields = {key: value for key, value in data.items() if key != "record"}
    if "at" in fields:
        fields["at"] = datetime.fromisoformat(fields["at"])
    holder: Any = Fact if "predicate" in data["record"] else MemoryItem
    return cast(Change, kind(record=from_plain(holder, data["record"]), **fields))


class RemoteFacts(Facts):
    """`Facts` on a server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    add = remote(Facts.add, "add_fact", read_id)
    change = remote(Facts.change, "change_fact", read_id, id="fact_id")
    get = remote(Facts.get, "get_fact", record(Fact), id="fact_id")
    list = remote(Facts.list, "list_facts", records(Fact), pages=True)

    def as_of(
        self,
        *,
        user: str,
        agent: str | None = None,
        valid: datetime | None = None,
        known: datetime | None = None,
    ) -> list[Fact]:  # type: ignore[valid-type]
        """The facts that were true at one moment, as far as was known at another."""
        always = valid is None and known is None
        arguments = {"user": user, "agent": agent, "valid": valid, "known": known, "always": always}
        return records(Fact)(self._api.pages("list_facts", arguments))


class RemoteMemories(Memories):
    """`Memories` on a server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    add = remote(Memories.add, "add_memory", read_id)
    list = remote(Memories.list, "list_memories", records(MemoryItem), pages=True)
    get = remote(Memories.get, "get_memory", record(MemoryItem), id="memory_id")
    audit = remote(Memories.audit, "audit", record(Audit))
    maintain = remote(
        Memories.maintain,
        "maintain",
        lambda data: Maintained(
            changes=cast(Any, tuple(read_changes(data))), dry_run=data["dry_run"]
        ),
    )

    def retract(self, id: str, *, user: str, reason: str = "") -> None:
        """Take a memory or a fact back as wrong; it stays visible as once believed."""
        self._either("retract", id, {"user": user, "reason": reason})

    def undo(self, id: str, *, user: str) -> list[Change]:  # type: ignore[valid-type]
        """Take back the last change of a memory or a fact; return what that changed."""
        return read_changes(self._either("undo", id, {"user": user}))

    def _either(self, verb: str, id_: str, arguments: Mapping[str, Any]) -> Any:
        """Do something to a memory, or else to the fact with this id."""
        try:
            return self._api.call(f"{verb}_memory", {"memory_id": id_, **arguments})
        except NotFoundError:
            return self._api.call(f"{verb}_fact", {"fact_id": id_, **arguments})


class RemoteJobs(Jobs):
    """`Jobs` on a server; an admin's key sees those of everybody."""

    def __init__(self, api: Api) -> None:
        self._api = api

    waiting = remote(Jobs.waiting, "count_waiting", lambda data: dict(data["waiting"]))
    list = remote(Jobs.list, "list_jobs", records(Job), pages=True)
    retry = remote(Jobs.retry, "retry_job", lambda data: None)

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until the server's queue is empty; return how many jobs are left."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while left := sum(self.waiting().values()):
            if ends_at is not None and time.monotonic() >= ends_at:
                return left
            time.sleep(POLL_S)
        return 0

    def spent(self) -> NoReturn:
        """The budget is the server's own."""
        raise NotHereError("the model's budget")


class RemoteEntries(Entries):
    """`Entries` on a server; a store that a tenant shares needs an admin's key."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def batch(
        self,
        scope: Scope,
        asks: Sequence[Ask],
        puts: Sequence[Put] = (),
        *,
        deadline_ms: float | None = RECALL_DEADLINE_MS,
    ) -> list[Answer]:
        """Answer the reads and then do the writes, in one transaction."""
        body = {
            **shared_arguments(scope, STORE_TENANT, "store"),
            "asks": [operation_json(ask) for ask in asks],
            "puts": [operation_json(put) for put in puts],
            "deadline_ms": deadline_ms,
        }
        answers = self._api.call("batch_entries", body)["answers"]
        return [read_answer(ask, answer) for ask, answer in zip(asks, answers, strict=True)]

    def sweep(self, scope: Scope) -> int:
        """Nothing to do: entries whose time is over are never read, and the server sweeps them."""
        return 0


class RemoteStore:
    """The part of a store that conversations, notes, libraries and entries need, over HTTP."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._sent: dict[str, int] = {}  # characters of unfinished messages that the server has

    def __getattr__(self, name: str) -> Any:
        raise NotHereError(name)

    def open_session(self, scope: Scope, *, claimed: str | None = None) -> Session:
        body = {
            "user": scope.user,
            "agent": scope.agent,
            "id": scope.session,
            "session_id": claimed,
        }
        return from_plain(Session, self._api.call("resolve_session", body)["session"])

    def active(self, scope: Scope) -> Session | None:
        data = self._get("active_session", {"user": scope.user, "agent": scope.agent})
        return None if data is None else from_plain(Session, data)

    def sessions(self, scope: Scope) -> list[Session]:
        where = {"user": scope.user, "agent": scope.agent}
        sessions = records(Session)(self._api.pages("list_sessions", where))
        return [session for session in sessions if scope.session in (None, session.id)]

    def history(
        self,
        scope: Scope,
        *,
        last: int | None = None,
        before: int | None = None,
        after: int | None = None,
        role: str | None = None,
    ) -> list[LogEntry]:
        """The newest `last` messages, or all of them, oldest first; read page by page."""
        if last is not None and (not isinstance(last, int) or last < 0):
            raise InvalidError("last must be a number, and not negative")
        entries: list[LogEntry] = []
        cursor = None
        where = {**to_arguments(scope), "role": role, "before": before, "after": after}
        while last is None or len(entries) < last:
            limit = PAGE if last is None else min(last - len(entries), PAGE)
            page = self._api.call("list_messages", {**where, "cursor": cursor, "limit": limit})
            entries = [*map(read_entry, page["items"]), *entries]
            cursor = page["next"]
            if cursor is None:
                break
        return entries

    def following(self, scope: Scope, *, after: int, limit: int) -> list[LogEntry]:
        return self.history(scope, after=after)[:limit]

    def find(self, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]:
        where = {"user": scope.user, "session": scope.session}
        answers = [self._get("get_message", {"message_id": id_, **where}) for id_ in message_ids]
        return [read_entry(data) for data in answers if data is not None]

    def grow(self, scope: Scope, message: Message) -> None:
        """Send what was added to a message that is being written."""
        text, id_ = str(message.content or ""), message.message_id
        start = self._sent.get(id_, 0)
        more = {
            name: value
            for name, value in message_json(message).items()
            if name in ("tool_calls", "agent_calls", "structured_data")
        }
        body = {
            "message_id": id_,
            "user": scope.user,
            "session": scope.session,
            "text": text[start:],
            "at": start,
            "finish": not message.unfinished,
            **more,
        }
        self._api.call("append_text", body)
        self._sent[id_] = len(text)
        if not message.unfinished:
            del self._sent[id_]

    def revise(self, scope: Scope, message: Message) -> None:
        fields = message_json(message)
        place = {"user": scope.user, "session": scope.session}
        self._api.call("revise_message", {**fields, "message_id": message.message_id, **place})

    def revisions(self, scope: Scope, message_id: str) -> list[Message]:
        place = {"message_id": message_id, "user": scope.user, "session": scope.session}
        return records(Message)(self._api.pages("list_revisions", place))

    def summary(self, scope: Scope, *, least: int | None = None) -> Summary | None:
        summaries = [s for s in self.summaries(scope) if least is None or s.messages <= least]
        return summaries[0] if summaries else None

    def summaries(self, scope: Scope) -> list[Summary]:
        where = {"user": scope.user, "session": scope.session}
        return records(Summary)(self._api.pages("list_summaries", where))[::-1]

    def note(self, scope: Scope, *, version: int | None = None) -> Note | None:
        where = {"user": scope.user, "agent": scope.agent, "version": version}
        data = self._get("get_notes", where)
        return from_plain(Note, data) if data and data["version"] else None

    def note_versions(self, scope: Scope) -> list[Note]:
        where = {"user": scope.user, "agent": scope.agent}
        return records(Note)(self._api.pages("list_versions", where))

    def write_note(self, scope: Scope, text: str, *, base_version: int) -> Note:
        where = {"user": scope.user, "agent": scope.agent}
        body = {**where, "text": text, "base_version": base_version}
        return from_plain(Note, self._api.call("write_notes", body))

    def put_article(self, article: Article, chunks: Sequence[Chunk]) -> Shelved:
        body = {"title": article.title, "text": article.text, "uri": article.uri}
        data = self._api.call("add_article", {**library_arguments(article.scope), **body})
        return Shelved(data["id"], data["change"])

    def read_articles(self, scope: Scope, ids: Sequence[str]) -> list[Article]:
        where = library_arguments(scope)
        answers = [self._get("get_article", {"article_id": id_, **where}) for id_ in ids]
        return [from_plain(Article, data) for data in answers if data is not None]

    def articles(self, scope: Scope) -> list[Card]:
        return records(Card)(self._api.pages("list_articles", library_arguments(scope)))

    def forget(self, scope: Scope, *, record_id: str) -> Forgotten:
        where = {"article_id": record_id, **library_arguments(scope)}
        return from_plain(Forgotten, self._api.call("remove_article", where))

    def _get(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        try:
            return self._api.call(operation, arguments)
        except NotFoundError:
            return None


class RemoteRuntime:
    """What the namespaces run on where the server does the work."""

    def __init__(self, api: Api) -> None:
        self.store = RemoteStore(api)
        self.clock = now
        self.embedder = self.extraction = None  # the server's own

    def wake(self) -> None:
        """Nothing to do: the server's own worker knows."""


class RemoteLibrary(Library):
    """`Library` on a server: files are read here, found and quoted there."""

    def __init__(self, memory: Memory, api: Api, scope: Scope) -> None:
        self._memory, self._api, self.scope = memory, api, scope

    def retrieve(
        self,
        query: str,
        top_k: int = TOP_K,
        reserved_tokens: int = 0,
        *,
        window: int = WINDOW,
        model: str = "",
        deadline_ms: float | None = DEADLINE_MS,
    ) -> list[Retrieved]:
        """The articles that bear on a question, whole or in passages, as far as they fit."""
        body = {
            "query": query,
            "top_k": top_k,
            "reserved_tokens": reserved_tokens,
            "window": window,
            "model": model,
            "deadline_ms": deadline_ms,
        }
        data = self._api.call("retrieve_articles", {**library_arguments(self.scope), **body})
        return [from_plain(Retrieved, quoted["article"]) for quoted in data["found"]]

    def quotes(self, question: str, max_tokens: int, counter: Any) -> Any:
        """What of the library bears on a question and fits, to be quoted in a context."""
        return [found.quote for found in self.retrieve(question, window=max_tokens)]


class Client(Memory):
    """A memory on a server; `memorist.connect(url)` makes one.

    The key says whose memory it is; without one, the server serves one local user. What was cut
    off on its way is sent again where that is safe.
    """

    def __init__(self, url: str, *, key: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._api = api = Api(Connection(url, key, timeout_s))
        self.tenant_name = "default"
        runtime: Any = RemoteRuntime(api)
        self._runtime = cast(Runtime, runtime)
        self.messages = Messages(runtime, self.tenant_name)
        self.facts = RemoteFacts(api)
        self.memories = RemoteMemories(api)
        self.jobs = RemoteJobs(api)
        self.entries = RemoteEntries(api)
        self.articles = Articles(runtime, self.tenant_name)
        self.note_versions = NoteVersions(runtime, self.tenant_name)
        self.keys = ApiKeys(runtime, self.tenant_name)

    def tenant(self, name: str) -> Memory:
        """The server knows the tenant by the key."""
        raise ConfigError("connect with a key of the other tenant instead")

    def remember(
        self,
        messages: Said | Iterable[Said],
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        source: Source | None = None,
    ) -> Remembered:
        """Store messages durably, in order; they can be recalled as soon as this returns.

        More than the server takes at once go in several requests, each stored whole or not at all.
        """
        ids: tuple[str, ...] = ()
        added = 0
        all_messages = [message_json(message) for message in as_messages(messages)]
        if not all_messages:  # as at hand: the conversation is there from then on
            session = self.session(user=user, agent=agent, id=session).id
        for batch in batches(all_messages):
            body = {"user": user, "agent": agent, "session": session, "source": source}
            answer = self._api.call("add_messages", {**body, "messages": batch})
            stored = from_plain(Remembered, answer)
            session, ids, added = stored.session_id, ids + stored.message_ids, added + stored.added
        return Remembered(session_id=session or "", message_ids=ids, added=added)

    def recall(
        self,
        question: str,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        limit: int = 10,
        deadline_ms: float | None = RECALL_DEADLINE_MS,
        kind: Names = None,
        category: Names = None,
        role: Names = None,
        tags: Names = None,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
    ) -> Recall:
        """What is remembered that bears on the question, best first, each with its reason.

        A server that does not answer gives an empty result that names the server as failed.
        """
        named: dict[str, Any] = {"kind": kind, "category": category, "role": role, "tags": tags}
        named |= {"after": after, "before": before, "as_of": as_of}
        Filters.of(**named)  # what is wrong with them is raised here, as at hand
        check_deadline(deadline_ms)
        if deadline_ms is not None and deadline_ms > MAX_DEADLINE_MS:
            deadline_ms = None
        body: dict[str, Any] = {
            "question": question,
            "user": user,
            "agent": agent,
            "session": session,
        }
        body |= {name: value for name, value in named.items() if value}
        timeout_s = None if deadline_ms is None else deadline_ms / 1_000 + GRACE_S
        try:
            body |= {"limit": limit, "deadline_ms": deadline_ms}
            answer = self._api.call("recall", body, timeout_s)
        except StoreUnavailableError as error:
            log.warning("recall found nothing: %s", error)
            return Recall(hits=(), failed={"server": str(error)})
        return from_plain(Recall, answer)

    def search(
        self,
        scope: Scope,
        question: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = RECALL_DEADLINE_MS,
        filters: Filters = NO_FILTERS,
    ) -> Recall:
        """`recall` for callers that have a scope and filters in hand."""
        return self.recall(
            question,
            user=scope.user,
            agent=scope.agent,
            session=scope.session,
            limit=limit,
            deadline_ms=deadline_ms,
            kind=filters.kinds,
            category=filters.categories,
            role=filters.roles,
            tags=filters.tags,
            after=filters.after,
            before=filters.before,
        )

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
        library: Any = None,
        deadline_ms: float | None = RECALL_DEADLINE_MS,
        read_image: Callable[[str], str] | None = encode_image,
    ) -> Context:
        """Messages ready for a model, filled to `max_tokens` on the server, and the receipt."""
        if read_image is not encode_image:
            raise InvalidError("read_image cannot be sent to a server")
        body: dict[str, Any] = {
            **question_json(question),
            "user": user,
            "agent": agent,
            "session": session,
            "system": UNSET if system is None else system,
            "tools": [dict(tool) for tool in tools] if tools else UNSET,
            "deadline_ms": deadline_ms,
            **library_option(library),
            **window_json(window),
        }
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        answer = self._api.call("context", body)
        return Context(
            messages=answer["messages"], receipt=read_receipt(answer["receipt"]), tools=tools
        )

    def compress(
        self, *, user: str, session: str, window: Window | None = None
    ) -> Compression | None:
        """Summarise all but the last messages of a session now; None where that is done already."""
        body = {"user": user, "session": session, **window_json(window)}
        answer = self._api.call("compress", body)
        return None if answer is None else from_plain(Compression, answer)

    def library(
        self, name: str = "library", *, user: str | None = None, agent: str | None = None
    ) -> Library:
        """Articles to find and quote: shared by the tenant under a name, or a user's own."""
        if user is None:
            scope = shared_scope(self.tenant_name, "library", name)
        else:
            scope = self.scope(user=user, agent=agent)
        return RemoteLibrary(self, self._api, scope)

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
    ) -> Forgotten:
        """Remove a message, a session, all of an agent's, or everything of a user, for good."""
        named = {"agent": agent, "session": session, "message": message, "memory": memory}
        named["source"] = source
        if None in named.values():
            raise InvalidError("an id to forget by is None")
        body = {"user": user, "everything": everything, "scrub": scrub, **named}
        return from_plain(Forgotten, self._api.call("forget", body))

    def warm_up(self) -> None:
        """Connect now; the server has loaded what it needs when it started."""
        self._api.call("health", {})

    def close(self) -> None:
        """Close the connections; the server goes on."""
        self._api.connection.close()


def batches(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Messages in as few requests as a server takes."""
    batch: list[dict[str, Any]] = []
    batch_bytes = 0
    for message in messages:
        size = len(json.dumps(message, ensure_ascii=False).encode())
        if batch and (len(batch) == MAX_MESSAGES or batch_bytes + size > MAX_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(message)
        batch_bytes += size
    if batch:
        yield batch


def to_arguments(scope: Scope) -> dict[str, str | None]:
    """A scope as a request's arguments."""
    return {"user": scope.user, "agent": scope.agent, "session": scope.session}


def library_arguments(scope: Scope) -> dict[str, str | None]:
    """The scope of a library as a request's arguments."""
    return shared_arguments(scope, LIBRARY_TENANT, "shelf")


def shared_arguments(scope: Scope, ending: str, name: str) -> dict[str, str | None]:
    """The scope of something shared by its name, or that of a user, as a request's arguments."""
    if scope.tenant.endswith(ending):
        return {name: scope.user}
    return {"user": scope.user, "agent": scope.agent}


def library_option(library: Any) -> dict[str, Any]:
    """The library that a context quotes from, as far as a request can name it."""
    if library is None:
        return {}
    if not isinstance(library, RemoteLibrary):
        raise InvalidError("quote from a library of this server: memory.library(…)")
    return {"library": True, "shelf": library_arguments(library.scope).get("shelf")}


def message_json(message: Message) -> dict[str, Any]:
    """A message as a request holds it, without the fields that say nothing."""
    fields = {
        name: value for name, value in asdict(message).items() if value not in (None, (), False)
    }
    return {**fields, "created_at": message.created_at.isoformat()}


def to_json(value: Any) -> Any:
    """An argument as JSON has it."""
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def read_entry(data: dict[str, Any]) -> LogEntry:
    """A message of the log with its position."""
    message = from_plain(Message, data["message"])
    return LogEntry(data["seq"], data["session_id"], data["source"], message)


def operation_json(operation: Ask | Put) -> dict[str, Any]:
    """A read or write of entries as a request holds it, by the name of its kind."""
    if isinstance(operation, Ids):
        return {"op": "ids", "of": operation_json(operation.of)}
    fields = {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in asdict(operation).items()
        if name != "ranks"  # the server ranks by the query
    }
    return {"op": type(operation).__name__.lower(), **fields}


def read_answer(ask: Ask, answer: list[Any]) -> Answer:
    """The answer to one read of entries."""
    if isinstance(ask, Get | Search):
        return [from_plain(Entry, item) for item in answer]
    return [tuple(item) for item in answer] if isinstance(ask, Namespaces) else list(answer)


def question_json(question: str | Message) -> dict[str, Any]:
    """A question as a request holds it."""
    if not isinstance(question, Message):
        return {"question": question}
    if question.role != "user":
        raise InvalidError("the question must be a user's")
    if not isinstance(question.content, str):
        raise InvalidError("a question for a server is text, with images where there are some")
    return {"question": question.content, "images": list(question.images)}


def window_json(window: Window | None) -> dict[str, Any]:
    """A window as a request holds it."""
    if window is None:
        return {}
    if window.tokenizer is not None:
        raise InvalidError("a tokenizer cannot be sent to a server; name the window's model")
    names = [name for name in Window.__dataclass_fields__ if name != "tokenizer"]
    return {name: getattr(window, name) for name in names}


def read_receipt(data: Mapping[str, Any]) -> Receipt:
    """The receipt in an answer."""
    compression = data["compression"]
    return Receipt(
        window=data["window"],
        answer=data["answer"],
        counted_by=data["counted_by"],
        exact=data["exact"],
        parts=tuple(from_plain(Part, item) for item in data["parts"]),
        compression=None if compression is None else from_plain(Compression, compression),
        timings_ms=data["timings_ms"],
        late=tuple(data["late"]),
        failed=data["failed"],
    )
