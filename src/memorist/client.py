"""Client: a memory on a server, used like one at hand."""

import functools
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from types import MethodType
from typing import IO, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from memorist import client_json as codec
from memorist.config import Settings
from memorist.context.tokens import TokenCounter
from memorist.context.window import Context, Window
from memorist.derived import Facts, Memories
from memorist.documents import Articles, Entries
from memorist.errors import ConfigError, NotFoundError, StoreUnavailableError
from memorist.lifecycle.audit import Audit
from memorist.memory import Memory
from memorist.namespaces import Jobs
from memorist.operations import OPERATIONS, make_cursor
from memorist.providers.http import (
    MAX_SERVER_BYTES,
    PAGE,
    Connection,
    NotHereError,
    part,
    read_events,
)
from memorist.records.activity import Counts, Events, TurnReceipt
from memorist.records.archive import RestoreReport
from memorist.records.decoding import from_json
from memorist.records.documents import (
    Article,
    ArticleInfo,
    Chunk,
    Compression,
    Note,
    PutResult,
    Summary,
)
from memorist.records.entry import Answer, Ask, Put
from memorist.records.log import (
    Batch,
    Job,
    LogEntry,
    Remembered,
    Session,
    SessionSummary,
    Source,
    TextPart,
)
from memorist.records.memories import Entity, Fact, MemoryItem, Neighbourhood
from memorist.records.message import UNSET, Message
from memorist.records.query import RECALL_DEADLINE_MS, Forgotten, Recall
from memorist.records.scope import Scope
from memorist.records.values import check_seconds, check_whole, now
from memorist.runtime import Runtime
from memorist.store.base import Store

P = ParamSpec("P")
T = TypeVar("T")
TIMEOUT_S = 30.0
GRACE_S = 1.0  # for the network, beyond recall's own deadline
POLL_S = 0.2
EVENTS = "text/event-stream"
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

    def call(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """The server's answer; arguments go into the path, the query or the body."""
        method, path, repeatable = OPERATIONS[operation]
        body = {name: codec.to_json(it) for name, it in arguments.items() if it is not UNSET}
        for name in list(body):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", part(str(body.pop(name))))
        if method in ("GET", "DELETE"):
            return self.connection.call(method, path, query=body, idempotent=repeatable)
        timeout_s = None
        if operation == "recall" and (deadline := body.get("deadline_ms", RECALL_DEADLINE_MS)):
            timeout_s = deadline / 1_000 + GRACE_S
        return self.connection.call(method, path, body, idempotent=repeatable, timeout_s=timeout_s)

    def pages(self, operation: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
        """The items of a list, page by page: all of them, or `limit` of them `after` a place."""
        rest = without_bytes(arguments)
        left, after = rest.pop("limit", None), rest.pop("after", None)
        key = after if isinstance(after, tuple) else (after,)
        cursor = None if after is None else make_cursor(key)
        rest = {name.removeprefix("created_"): value for name, value in rest.items()}
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            page = self.call(operation, {**rest, "cursor": cursor, "limit": size})
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            if (cursor := page["next"]) is None:
                return


def api_of(owner: Any) -> Api:
    """The API that a remote memory, or a part of one, speaks to."""
    api: Api = owner._api if isinstance(owner, RemoteStore) else owner._runtime.api
    return api


class remote(Generic[P, T]):
    """A method that sends its arguments to an operation and reads the answer: a record of the kind
    `read`, a list of them with `pages`, or what the function `read` makes of it.

    `prepare` turns the arguments into those of the operation, `id` is the operation's name for
    the argument `id`. `keep` names an argument that the result keeps as it is, and `away` is
    the result where the server does not answer.
    """

    def __init__(
        self,
        method: Callable[Concatenate[Any, P], T],
        operation: str,
        read: Callable[..., Any],
        *,
        prepare: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
        pages: bool = False,
        id: str = "",
        keep: str = "",
        away: Callable[[StoreUnavailableError], T] | None = None,
    ) -> None:
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(owner: Any, *args: P.args, **named: P.kwargs) -> T:
            given = signature.bind(owner, *args, **named).arguments
            body = prepare({name: given[name] for name in given if name not in ("self", "db")})
            if id:
                body[id] = body.pop("id")
            make = functools.partial(from_json, read) if isinstance(read, type) else read
            try:
                if pages:
                    result: Any = [make(item) for item in api_of(owner).pages(operation, body)]
                else:
                    result = make(api_of(owner).call(operation, body))
            except StoreUnavailableError as error:
                if away is None:
                    raise
                return away(error)
            if keep in given:
                result = replace(result, **{keep: given[keep]})
            return cast(T, result)

        self._call: Callable[..., T] = call

    def __get__(self, owner: Any, kind: type) -> Callable[P, T]:
        return self._call if owner is None else MethodType(self._call, owner)


def without_bytes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without `max_bytes`: a server has limits of its own."""
    return {name: value for name, value in arguments.items() if name != "max_bytes"}


def empty_recall(error: StoreUnavailableError) -> Recall:
    """What recall finds where the server does not answer: nothing, and the reason."""
    log.warning("recall found nothing: %s", error)
    return Recall(hits=(), failed={"server": str(error)}, reason=str(error))


class RemoteFacts(Facts):
    """`Facts` on a server."""

    add = remote(Facts.add, "add_fact", codec.read_id)
    change = remote(Facts.change, "change_fact", codec.read_id, id="fact_id")
    get = remote(Facts.get, "get_fact", Fact, id="fact_id")
    list = remote(Facts.list, "list_facts", Fact, pages=True)
    as_of = remote(Facts.as_of, "list_facts", Fact, prepare=codec.of_all_times, pages=True)
    chain = remote(Facts.chain, "fact_history", codec.items_of(Fact), id="fact_id")
    entities = remote(Facts.entities, "list_entities", Entity, pages=True)
    neighbourhood = remote(Facts.neighbourhood, "get_neighbourhood", Neighbourhood)


class RemoteMemories(Memories):
    """`Memories` on a server."""

    add = remote(Memories.add, "add_memory", codec.read_id)
    list = remote(Memories.list, "list_memories", MemoryItem, pages=True)
    get = remote(Memories.get, "get_memory", MemoryItem, id="memory_id")
    change = remote(Memories.change, "change_memory", codec.read_id, id="memory_id")
    chain = remote(Memories.chain, "memory_history", codec.items_of(MemoryItem), id="memory_id")
    retract = remote(Memories.retract, "retract_memory", lambda data: None, id="record_id")
    undo = remote(Memories.undo, "undo_memory", codec.read_changes, id="record_id")
    audit = remote(Memories.audit, "audit", Audit, prepare=without_bytes)
    maintain = remote(Memories.maintain, "maintain", codec.read_maintained)


class RemoteJobs(Jobs):
    """`Jobs` on a server; an admin's key sees those of everybody."""

    waiting = remote(Jobs.waiting, "count_waiting", lambda data: dict(data["waiting"]))
    list = remote(Jobs.list, "list_jobs", Job, pages=True)
    retry = remote(Jobs.retry, "retry_job", lambda data: None)
    rebuild = remote(Jobs.rebuild, "rebuild", lambda data: int(data["waiting"]["rebuild"]))

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until only dead jobs are left in the server's queue; return how many are left."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while (left := sum((waiting := self.waiting()).values())) > waiting["dead"]:
            if ends_at is not None and time.monotonic() >= ends_at:
                break
            time.sleep(POLL_S)
        return left


class RemoteEntries(Entries):
    """`Entries` on a server; a store that a tenant shares needs an admin's key."""

    def batch(
        self,
        scope: Scope,
        asks: Sequence[Ask],
        puts: Sequence[Put] = (),
        *,
        deadline_ms: float | None = RECALL_DEADLINE_MS,
        max_bytes: int | None = None,
    ) -> list[Answer]:
        """The same on a server, which has its own `max_bytes`; 1,000 writes in a request."""
        is_shared = scope.tenant.endswith(codec.STORE_TENANT)
        whose = {"name" if is_shared else "user": scope.user}
        body = {**whose, "deadline_ms": codec.deadline_json(deadline_ms)}
        reads = [codec.operation_json(ask) for ask in asks]
        writes = [codec.operation_json(put) for put in puts]
        first = {**body, "asks": reads, "puts": writes[: codec.MAX_MESSAGES]}
        answers = api_of(self).call("batch_entries", first)["answers"]
        for start in range(codec.MAX_MESSAGES, len(writes), codec.MAX_MESSAGES):
            more = {**body, "puts": writes[start : start + codec.MAX_MESSAGES]}
            api_of(self).call("batch_entries", more)
        return [codec.read_answer(ask, answer) for ask, answer in zip(asks, answers, strict=True)]

    def sweep(self, scope: Scope, /, *, limit: int = 0) -> int:
        """Nothing to do: expired entries are never read, and each write removes some."""
        return 0


def list_options(**always: Any) -> Any:
    """The options of a list of the store, with arguments that it always sends."""
    return {"prepare": lambda asked: {**always, **codec.list_json(asked)}, "pages": True}


class RemoteStore:
    """The part of a store that conversations, notes, libraries and entries need, over HTTP."""

    kind = "server"

    sessions = remote(Store.sessions, "list_sessions", Session, **list_options())
    session_summaries = remote(
        Store.session_summaries, "list_sessions", SessionSummary, **list_options(summary=True)
    )
    revisions = remote(Store.revisions, "list_revisions", Message, **list_options())
    note_versions = remote(Store.note_versions, "list_versions", Note, **list_options())
    articles = remote(Store.articles, "list_articles", ArticleInfo, **list_options())
    following = remote(
        Store.following, "list_messages", LogEntry, **list_options(oldest_first=True)
    )
    summaries = remote(
        Store.summaries, "list_summaries", Summary, **list_options(oldest_first=False)
    )

    def __init__(self, api: Api) -> None:
        self._api = api
        self.place = api.connection.url
        self._sent: dict[str, int] = {}  # characters of unfinished messages that the server has

    def __getattr__(self, name: str) -> Any:
        raise NotHereError(name)

    def open_session(
        self, scope: Scope, *, claimed: str | None = None, new: bool = False, adopt: bool = False
    ) -> Session:
        where = {"user": scope.user, "agent": scope.agent, "id": scope.session}
        body = {**where, "session_id": claimed, "adopt": adopt}
        return from_json(Session, self._api.call("resolve_session", body)["session"])

    def rename_session(self, scope: Scope, title: str | None) -> None:
        where = {"user": scope.user, "session_id": scope.session}
        self._api.call("rename_session", {**where, "title": title})

    def agents(self, scope: Scope) -> list[str]:
        return list(self._api.call("list_agents", {"user": scope.user})["items"])

    def active(self, scope: Scope) -> Session | None:
        data = self._get("active_session", {"user": scope.user, "agent": scope.agent})
        return None if data is None else from_json(Session, data)

    def history(
        self,
        scope: Scope,
        *,
        last: int | None = None,
        before: int | None = None,
        after: int | None = None,
        role: str | None = None,
        max_bytes: int | None = None,
    ) -> list[LogEntry]:
        """The newest `last` messages, or all of them, oldest first; read page by page."""
        check_whole(0 if last is None else last, "last")
        pages: list[list[LogEntry]] = []  # the newest first
        count, cursor = 0, None
        where = {**scope.names, "role": role, "before": before, "after": after}
        while last is None or count < last:
            limit = PAGE if last is None else min(last - count, PAGE)
            page = self._api.call("list_messages", {**where, "cursor": cursor, "limit": limit})
            pages.append([from_json(LogEntry, item) for item in page["items"]])
            count, cursor = count + len(pages[-1]), page["next"]
            if cursor is None or (max_bytes is not None and len(pages[-1]) < limit):
                break
        return [entry for entries in reversed(pages) for entry in entries]

    def append(
        self, scope: Scope, messages: Sequence[Message], *, source: Source | None = None
    ) -> Remembered:
        """The same in as many requests as the server needs, each stored whole or not at all."""
        # The conversation is there from then on, as at hand, if there is nothing to say.
        session, added = scope.session if messages else self.open_session(scope).id, 0
        for batch in codec.message_batches(messages):
            body = {**scope.names, "session": session, "source": source, "messages": batch}
            stored = from_json(Remembered, self._api.call("add_messages", body))
            session, added = stored.session_id, added + stored.added
        ids = tuple(message.message_id for message in messages)
        return Remembered(session_id=session or "", message_ids=ids, added=added)

    def append_each(
        self, batches: Sequence[Batch], *, source: Source | None = None
    ) -> list[Remembered]:
        every = list[Remembered]()
        for batch in batches:
            every.append(self.append(batch.scope, batch.messages, source=source))
            if batch.title is not None and every[-1].added == len(batch.messages):
                self.rename_session(batch.scope, batch.title)
        return every

    def find(self, scope: Scope, ids: Sequence[str], *, limit: int | None = None) -> list[LogEntry]:
        where = {"user": scope.user, "session": scope.session}
        answers = [self._get("get_message", {"message_id": id_, **where}) for id_ in ids]
        return [from_json(LogEntry, data) for data in answers if data is not None][:limit]

    def text_from(
        self, scope: Scope, id: str, start: int, *, known: TextPart | None = None
    ) -> TextPart | None:
        for entry in self.find(scope, [id]):
            text = entry.message.content if isinstance(entry.message.content, str) else ""
            return TextPart(entry.session_id, text[start:], len(text), entry.message.unfinished)
        return None

    def append_text(self, scope: Scope, message: Message) -> None:
        """Send what was added to a message that is being written."""
        text, id_ = str(message.content or ""), message.message_id
        start = self._sent.get(id_, 0)
        more = {
            name: value
            for name, value in codec.message_json(message).items()
            if name in ("tool_calls", "agent_calls", "structured_data")
        }
        place = {"message_id": id_, "user": scope.user, "session": scope.session}
        added = {"text": text[start:], "at": start, "finish": not message.unfinished}
        self._api.call("append_text", {**place, **added, **more})
        self._sent[id_] = len(text)
        if not message.unfinished:
            del self._sent[id_]

    def revise(self, scope: Scope, message: Message) -> None:
        fields = codec.message_json(message)
        place = {"user": scope.user, "session": scope.session}
        self._api.call("revise_message", {**fields, "message_id": message.message_id, **place})

    def summary(self, scope: Scope, *, least: int | None = None) -> Summary | None:
        """The newest summary, or the shortest one of at least so many tokens of messages."""
        if least is None:
            return next(iter(self.summaries(scope, limit=1)), None)
        pages = self._api.pages("list_summaries", {"user": scope.user, "session": scope.session})
        made = (from_json(Summary, item) for item in pages)
        return next((it for it in made if it.tokens_before >= least), None)

    def note(self, scope: Scope, *, version: int | None = None) -> Note | None:
        where = {"user": scope.user, "agent": scope.agent, "version": version}
        data = self._get("get_notes", where)
        return from_json(Note, data) if data and data["version"] else None

    def write_note(self, scope: Scope, text: str, *, base_version: int) -> Note:
        where = {"user": scope.user, "agent": scope.agent}
        body = {**where, "text": text, "base_version": base_version}
        return from_json(Note, self._api.call("write_notes", body))

    def put_article(self, article: Article, chunks: Sequence[Chunk]) -> PutResult:
        body = {"title": article.title, "text": article.text, "uri": article.uri}
        data = self._api.call("add_article", {**codec.library_arguments(article.scope), **body})
        return PutResult(data["id"], data["change"])

    def read_articles(self, scope: Scope, ids: Sequence[str]) -> list[Article]:
        where = codec.library_arguments(scope)
        answers = [self._get("get_article", {"article_id": id_, **where}) for id_ in ids]
        return [from_json(Article, data) for data in answers if data is not None]

    def forget(self, scope: Scope, *, record_id: str) -> Forgotten:
        where = {"article_id": record_id, **codec.library_arguments(scope)}
        return from_json(Forgotten, self._api.call("remove_article", where))

    def _get(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        try:
            return self._api.call(operation, arguments)
        except NotFoundError:
            return None


class RemoteRuntime:
    """What the namespaces run on where the server does the work."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.store = RemoteStore(api)
        self.clock = now
        self.embedder = self.extraction = None  # the server's own

    def wake(self) -> None:
        """Nothing to do: the server's own worker knows."""

    def counter(self, window: Window) -> TokenCounter:
        """What counts the tokens of a window."""
        return TokenCounter(window.counts_with())


class RemoteArticles(Articles):
    """`Articles` on a server, which finds and fits them."""

    fit = remote(Articles.fit, "retrieve_articles", codec.read_quotations, prepare=codec.fit_json)


class RemoteSummarizer:
    """Has the server summarise a session, now or for the next request."""

    def __init__(self, memory: Memory, window: Window) -> None:
        self._memory, self._window = memory, window

    def take_in(self, scope: Scope, *_: Any) -> Compression | None:
        """The session's summary, extended on the server; None if it saved nothing."""
        compress, session = self._memory.compress, scope.session or ""
        return compress(user=scope.user, session=session, window=self._window)

    ask_for = take_in


class Client(Memory):
    """A memory on a server; `memorist.connect(url)` makes one.

    The key says whose memory it is; without one, the server serves one local user. What was cut
    off on its way is sent again where that is safe.
    """

    def __init__(self, url: str, *, key: str = "", timeout_s: float = TIMEOUT_S) -> None:
        check_seconds("timeout_s", timeout_s)
        api = Api(Connection(url, key, timeout_s=timeout_s, max_bytes=MAX_SERVER_BYTES))
        self.settings = Settings.from_environment()
        self._bind(cast(Runtime, RemoteRuntime(api)), "default")

    def _bind(self, runtime: Runtime, tenant: str) -> None:
        super()._bind(runtime, tenant)
        self.facts = RemoteFacts(runtime, tenant)
        self.memories = RemoteMemories(runtime, tenant)
        self.jobs = RemoteJobs(runtime, tenant)
        self.entries = RemoteEntries(runtime, tenant)
        self.articles = RemoteArticles(runtime, tenant)

    def __repr__(self) -> str:
        return f"Client({self.store.place!r})"

    def tenant(self, name: str) -> Memory:
        """The server knows the tenant by the key."""
        raise ConfigError("connect with a key of the other tenant instead")

    remember_many = remote(
        Memory.remember_many, "remember_many", codec.items_of(Remembered), prepare=codec.many_json
    )
    search = remote(Memory.search, "recall", Recall, prepare=codec.search_json, away=empty_recall)
    context = remote(Memory.context, "context", Context, prepare=codec.context_json, keep="tools")
    compress = remote(Memory.compress, "compress", codec.read_summary, prepare=codec.compress_json)
    forget = remote(Memory.forget, "forget", Forgotten, prepare=codec.forget_json)
    users = remote(Memory.users, "list_users", Scope, prepare=codec.users_json, pages=True)
    counts = remote(Memory.counts, "counts", Counts)
    events = remote(Memory.events, "events", Events)
    receipts = remote(Memory.receipts, "list_receipts", TurnReceipt, pages=True)

    def export(self, user: str | None = None, *, vectors: bool = False) -> Iterator[bytes]:
        """See `Memory.export`; only an admin's key gets the archive of all users."""
        method, path, _ = OPERATIONS["export"]
        query, connection = {"user": user, "vectors": vectors}, api_of(self).connection
        return connection.pieces(method, path, query, accept="application/gzip")

    def restore(
        self,
        chunks: Iterable[bytes] | IO[bytes],
        *,
        user: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RestoreReport:
        """See `Memory.restore`; without an admin's key, the archive is that of the key's user."""
        (method, path, _), connection = OPERATIONS["restore"], api_of(self).connection
        answer = connection.pieces(method, path, {"user": user}, chunks, accept=EVENTS)
        with closing(answer):
            for name, data in read_events(answer):
                if name == "report":
                    return from_json(RestoreReport, data)
                if progress is not None:
                    progress(data["done"], data["total"])
        raise StoreUnavailableError("the answer was cut off; restore the archive again")

    def builder(self, kind: Callable[..., T], scope: Scope, window: Window, **options: Any) -> T:
        """A context builder that runs here and reads from the server, which makes summaries."""
        summarizer = RemoteSummarizer(self, window)
        return super().builder(kind, scope, window, summarizer=lambda: summarizer, **options)

    def own_user(self) -> str | None:
        """The user whose key or server this is; None with an admin's key, which is for all."""
        user: str | None = api_of(self).call("me", {})["user"]
        return user

    def warm_up(self) -> None:
        """Connect now; the server has loaded what it needs when it started."""
        api_of(self).call("health", {})

    def close(self) -> None:
        """Close the connections; the server goes on."""
        api_of(self).connection.close()
