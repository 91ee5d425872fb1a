"""Client: a memory on a server, used like one at hand."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from memorist.chat import Chat
from memorist.client_life import RemoteLife
from memorist.client_store import RemoteStore, plain, where
from memorist.context.window import Context, Part, Receipt, Window
from memorist.contexts import Given
from memorist.errors import InvalidError, NotFoundError, StoreUnavailableError
from memorist.providers.http import Connection, NotHereError
from memorist.records.decode import from_plain
from memorist.records.ids import new_id
from memorist.records.inputs import UNSET, Remembered, Said, What, as_messages
from memorist.records.log import Source
from memorist.records.message import Message
from memorist.records.query import NO_FILTERS, Filters, Forgotten, Only, Recall, check_deadline
from memorist.records.scope import Scope
from memorist.records.session import Session
from memorist.records.summary import Summary

TIMEOUT_S = 30.0
LONGEST_MS = 10_000  # that a server searches, whatever it is allowed
GRACE_S = 1.0  # for the way there and back, beyond recall's own deadline
LOOK_S = 0.2
MOST_AT_ONCE, MOST_BYTES = 1_000, 4_000_000  # messages in one request
log = logging.getLogger("memorist")


class Client(RemoteLife):
    """A memory on a server; `Memory("http://…")` is one, and `AsyncMemory("http://…")` has one.

        with Client("http://127.0.0.1:7077", key="mk_…") as memory:
            chat = memory.session(user="ada", agent="tutor")
            chat.add("user", "I moved to Berlin in March.")
            print(memory.recall("where does she live now?", user="ada").hits[0].text)

    The key says whose memory it may be; without one, the server serves one local user. What was
    cut off on its way is sent again, and stored once.
    """

    def __init__(self, url: str, *, key: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._connection = Connection(url, key, timeout_s)
        self.store: Any = RemoteStore(self._connection)

    def __getattr__(self, name: str) -> Any:
        raise NotHereError(name)

    def scope(self, *, user: str, agent: str | None = None, session: str | None = None) -> Scope:
        """The scope of a user; which tenant's, the server knows by the key."""
        return Scope(user=user, agent=agent, session=session)

    def session(
        self,
        *,
        user: str,
        agent: str | None = None,
        id: str | None = None,
        new: bool = False,
        claimed: str | None = None,
    ) -> Chat:
        """The conversation named, else the user's active one with this agent, else a new one."""
        if new and id is not None:
            raise InvalidError("give an id or ask for a new session, not both")
        named = new_id() if new else id  # named here, so that a second try finds the same one
        body = {"user": user, "agent": agent, "id": named, "session_id": claimed}
        told = self._connection.call("POST", "/api/sessions/resolve", body)
        return Chat(self, from_plain(Session, told["session"]))  # type: ignore[arg-type]

    def active(self, *, user: str, agent: str | None = None) -> Session | None:
        """The conversation that goes on with this agent, if there is one."""
        try:
            told = self._connection.call(
                "GET", "/api/sessions/active", query={"user": user, "agent": agent}
            )
        except NotFoundError:
            return None
        return from_plain(Session, told)

    def sessions(self, *, user: str, agent: str | None = None) -> list[Session]:
        """Every conversation of the user, oldest first."""
        return self._all(Session, "/api/sessions", user=user, agent=agent)

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

        More than the server takes at once go in several pieces, each of them whole or not at all.
        """
        ids: tuple[str, ...] = ()
        added = 0
        all_said = [plain(message) for message in as_messages(said)]
        if not all_said:  # as at hand: the conversation is there from then on
            session = self.session(user=user, agent=agent, id=session).id
        for messages in _pieces(all_said):
            body = {
                "user": user,
                "agent": agent,
                "session": session,
                "source": source,
                "messages": messages,
            }
            told = self._connection.call("POST", "/api/messages/batch", body, idempotent=True)
            done = from_plain(Remembered, told)
            session, ids, added = done.session_id, ids + done.message_ids, added + done.added
        return Remembered(session_id=session or "", message_ids=ids, added=added)

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

        A server that does not answer leaves the result empty, and named as failed in it.
        """
        Filters.of(only)  # what is wrong with it is told here as there
        check_deadline(deadline_ms)
        if deadline_ms is not None and deadline_ms > LONGEST_MS:
            deadline_ms = None
        given = {name: _told(value) for name, value in dict[str, Any](**only).items()}
        body = {
            "question": question,
            "user": user,
            "agent": agent,
            "session": session,
            "limit": limit,
            "deadline_ms": deadline_ms,
            **given,
        }
        patience = None if deadline_ms is None else deadline_ms / 1_000 + GRACE_S
        try:
            told = self._connection.call("POST", "/api/recall", body, timeout_s=patience)
        except StoreUnavailableError as error:
            log.warning("recall found nothing: %s", error)
            return Recall(hits=(), failed={"server": str(error)})
        return from_plain(Recall, told)

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
        names = {"kind": "kinds", "category": "categories", "role": "roles", "tags": "tags"}
        only: dict[str, Any] = {name: getattr(filters, field) for name, field in names.items()}
        only |= {"after": filters.after, "before": filters.before}
        given = {name: value for name, value in only.items() if value}
        who: dict[str, Any] = where(scope)
        return self.recall(question, limit=limit, deadline_ms=deadline_ms, **who, **given)

    def context(
        self,
        question: str | Message,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        max_tokens: int | None = None,
        **given: Unpack[Given],
    ) -> Context:
        """Messages ready for a model, filled to `max_tokens` on the server, and the receipt."""
        size = {} if max_tokens is None else {"max_tokens": max_tokens}
        body = {
            **_question(question),
            "user": user,
            "agent": agent,
            "session": session,
            **_given(given),
            **size,
        }
        told = self._connection.call("POST", "/api/context", body)
        return Context(
            messages=told["messages"],
            receipt=_receipt(told["receipt"]),
            tools=given.get("tools", ()),
        )

    def compress(self, *, user: str, session: str, window: Window | None = None) -> Any:
        """Have all but the last messages of a session stand as a summary now; None if they do."""
        from memorist.context.compression.compress import Compression

        body = {"user": user, "session": session, **_window(window)}
        told = self._connection.call("POST", "/api/compress", body)
        return None if told is None else from_plain(Compression, told)

    def summaries(self, *, user: str, session: str) -> list[Summary]:
        """The summaries that a session has had, newest first."""
        return self._all(Summary, "/api/summaries", user=user, session=session)[::-1]

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
        """Remove a message, a session, all of an agent's, or everything of a user, for good."""
        named = {"agent": agent, "session": session, **what}
        given = {name: value for name, value in named.items() if value is not UNSET}
        if None in given.values():
            raise InvalidError("an id to forget by is None")
        body = {"user": user, "everything": everything, "scrub": scrub, **given}
        return from_plain(Forgotten, self._connection.call("POST", "/api/forget", body))

    def waiting(self) -> dict[str, int]:
        """How many jobs of each kind wait at the server: an admin's key is told of all of them."""
        told: dict[str, int] = self._connection.call("GET", "/api/waiting")["waiting"]
        return told

    def catch_up(self, timeout_s: float | None = None) -> int:
        """Wait until the server has thought about all that is stored; how many jobs are left.

        It is all of everybody's for an admin's key or a server's only user, else the user's own.
        """
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while left := sum(self.waiting().values()):
            if ends_at is not None and time.monotonic() >= ends_at:
                return left
            time.sleep(LOOK_S)
        return 0

    def warm_up(self) -> None:
        """Connect now; the server has loaded what it needs when it started."""
        self._connection.call("GET", "/health")

    def wake(self) -> None:
        """Nothing: the server's own worker knows."""

    def close(self) -> None:
        """Let go of the connections; the server goes on."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _pieces(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Messages in as few pieces as a server takes."""
    piece: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        took = len(json.dumps(message, ensure_ascii=False).encode())
        if piece and (len(piece) == MOST_AT_ONCE or size + took > MOST_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += took
    if piece:
        yield piece


def _told(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _question(question: str | Message) -> dict[str, Any]:
    if not isinstance(question, Message):
        return {"question": question}
    if question.role != "user":
        raise InvalidError("the question must be a user's")
    if not isinstance(question.content, str):
        raise InvalidError("a question for a server is text, with images where there are some")
    return {"question": question.content, "images": list(question.images)}


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a context is made with, as far as it can be sent."""
    if unknown := {"library", "read_image"} & given.keys():
        raise InvalidError(f"{', '.join(sorted(unknown))} cannot be sent to a server")
    told: dict[str, Any] = {name: value for name, value in given.items() if name != "window"}
    if "tools" in told:
        told["tools"] = [dict(tool) for tool in told["tools"]]
    return {**_window(given.get("window")), **told}


def _window(window: Window | None) -> dict[str, Any]:
    if window is None:
        return {}
    if window.tokenizer is not None:
        raise InvalidError("a tokenizer cannot be sent to a server; name the window's model")
    names = [name for name in Window.__dataclass_fields__ if name != "tokenizer"]
    return {name: getattr(window, name) for name in names}


def _receipt(told: Mapping[str, Any]) -> Receipt:
    from memorist.context.compression.compress import Compression

    made = told["compression"]
    return Receipt(
        window=told["window"],
        answer=told["answer"],
        counted_by=told["counted_by"],
        exact=told["exact"],
        parts=tuple(from_plain(Part, one) for one in told["parts"]),
        compression=None if made is None else from_plain(Compression, made),
        timings_ms=told["timings_ms"],
        late=tuple(told["late"]),
        failed=told["failed"],
    )
