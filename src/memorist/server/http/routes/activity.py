"""Who is calling, what there is, and what happens: events as they come, receipts of past turns."""

import asyncio
from asyncio import to_thread
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import Header, Path
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel, Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from memorist import __version__
from memorist.context.window import QUOTED_SCORE
from memorist.errors import MemoristError, NotFoundError
from memorist.records.activity import Counts, Event, Events, RecalledId, TurnReceipt
from memorist.records.query import MIN_SCORE
from memorist.records.values import Tally
from memorist.server.chat import ChatRuntime
from memorist.server.http import schemas
from memorist.server.http.events import STREAM_HEADERS, Accept, event, wants_json, with_pings
from memorist.server.http.openapi import AT, MEMORY_ID, MESSAGE_ID, SESSION_ID, stream_response
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routes.messages import Patience
from memorist.server.http.routing import Caller, Url, operation

LIMITS = ("body_bytes", "file_bytes", "requests_per_s", "burst")  # that callers may know
POLL_S = 1.0
PING_S = 15.0
LastPlace = Annotated[
    str | None, Header(max_length=40, description="Of the last event you got.", examples=["12.7"])
]
ReceiptId = Annotated[str, Path(description="The receipt's id.", examples=[MEMORY_ID])]


class Me(BaseModel):
    """The caller, and the server that they speak to."""

    user: str | None = Field(
        default=None, description="Null with an admin's key, which names the user."
    )
    tenant: str
    admin: bool = False
    local: bool = Field(default=False, description="The only user of this server, without a key.")
    version: str = __version__
    model: str | None = Field(default=None, description="The model that answers in chats.")
    embedder: str | None = None
    store: str = Field(default="sqlite", description="sqlite or postgres.")
    limits: dict[str, float] = Field(
        default={}, description="body_bytes, file_bytes, requests_per_s, burst."
    )
    min_score: float = Field(default=MIN_SCORE, description="Recall's, where a request names none.")
    window_min_score: float = Field(default=QUOTED_SCORE, description="That of a chat's window.")


class User(BaseModel):
    """A user of the tenant."""

    user: str


class EventsQuery(schemas.AgentRequest):
    """Whose events, and from where on."""

    after: str | None = Field(None, max_length=40, description="A place; else begins now.")
    limit: schemas.PageSize = schemas.MAX_PAGE
    timeout_s: Patience = Field(60.0, description="After which a stream ends; then reconnect.")


class ReceiptsQuery(schemas.CursorQuery, schemas.UserRequest):
    """A page of receipts."""

    session: schemas.SessionId = None
    id: str | None = Field(None, description="Only the one with this id.")


_COUNTS = Counts(**dict.fromkeys(Counts.__dataclass_fields__, Tally(12)))
_EVENT = Event(kind="memory", id=MEMORY_ID, change="add", at=AT, session=SESSION_ID, place="12.7")
_EVENTS = Events(items=(_EVENT,), place="12.7")
_RECEIPT = TurnReceipt(
    session_id=SESSION_ID,
    asked_id=MESSAGE_ID,
    receipt={"window": 4_000, "used": 10, "parts": []},
    recalled=(RecalledId("memory", MEMORY_ID, 0.91),),
    id=MEMORY_ID,
    created_at=AT,
)


@operation("me", example=Me(user="ada", tenant="default"))
def me(request: Request, caller: Caller) -> Me:
    """Who is calling, and what this server is like."""
    who, limits = caller.principal, request.app.state.limits
    chats: ChatRuntime = request.app.state.chats
    window, embedder = chats.settings.window, caller.memory.embedder
    return Me(
        **{name: getattr(who, name) for name in ("user", "tenant", "admin", "local")},
        model=None if chats.model is None else window.model or type(chats.model).__name__,
        embedder=None if embedder is None else embedder.name,
        store=caller.memory.database,
        limits={name: getattr(limits, name) for name in LIMITS},
        window_min_score=window.min_score,
    )


@operation("list_users", example=User(user="ada"))
def list_users(query: Url[schemas.CursorQuery], caller: Caller) -> Page[User]:
    """The users of the tenant, in an order of their own; for admins."""
    caller.require_admin()
    memory = caller.memory

    def read(limit: int, after: str | None) -> list[User]:
        last = None if after is None else memory.scope(user=after)
        return [User(user=it.user) for it in memory.users(after=last, limit=limit)]

    return keyset_page(read, query, by=attrgetter("user"), kind=str, big=False)


@operation("counts", example=_COUNTS)
def counts(query: Url[schemas.UserRequest], caller: Caller) -> Counts:
    """How much the user has of each kind, counted up to 10,000."""
    return caller.memory.counts(user=caller.user(query.user))


@operation("list_receipts", example=_RECEIPT)
def list_receipts(query: Url[ReceiptsQuery], caller: Caller) -> Page[TurnReceipt]:
    """What went into the windows of past turns of chats, newest first."""
    read = partial(caller.memory.receipts, **caller.place(query), id=query.id)
    return keyset_page(read, query, big=False)


@operation("get_receipt", example=_RECEIPT)
def get_receipt(
    receipt_id: ReceiptId, query: Url[schemas.UserRequest], caller: Caller
) -> TurnReceipt:
    """What went into the window of one turn."""
    for receipt in caller.memory.receipts(user=caller.user(query.user), id=receipt_id):
        return receipt
    raise NotFoundError("no receipt with this id for this user")


# Events


class EventPolls:
    """Polls for the place of a user's newest event once a second, for all who follow them."""

    def __init__(self) -> None:
        self._polls: dict[str, asyncio.Task[str]] = {}

    async def next_place(self, owner: str, read: Callable[[], Events]) -> str:
        """The place of now, in a second at most; those who ask meanwhile share the read."""
        if (poll := self._polls.get(owner)) is None:
            # In a context of its own: it is work for all of them, not for this request.
            poll = asyncio.create_task(self._poll(read), context=Context())
            poll.add_done_callback(lambda _: self._polls.pop(owner, None))
            self._polls[owner] = poll
        return await asyncio.shield(poll)

    async def _poll(self, read: Callable[[], Events]) -> str:
        await asyncio.sleep(POLL_S)
        with suppress(MemoristError):  # those who follow will see why
            return (await to_thread(read)).place
        return ""


_RESPONSE = stream_response(
    "Events: message, memory, fact and job, as they come.",
    _EVENTS,
    event("memory", {"id": MEMORY_ID}, "12.7"),
)


@operation("events", response_model=Events, responses={200: _RESPONSE})
async def events(
    query: Url[EventsQuery],
    request: Request,
    caller: Caller,
    accept: Accept = "*/*",
    last_event_id: LastPlace = None,
) -> Response:
    """What changes in the memory, by ids alone, whichever process changes it.

    A stream of server-sent events, each with its place as `id`; a client that reconnects sends it
    as Last-Event-ID. Or, where only JSON is accepted, those after a place in one object.
    """
    now = partial(caller.memory.events, user=caller.user(query.user))
    read = partial(now, agent=query.agent, limit=query.limit)
    first = await to_thread(read, after=last_event_id or query.after)
    if wants_json(accept):
        return Response(TypeAdapter(Events).dump_json(first), media_type="application/json")
    polls: EventPolls = request.app.state.polls
    place_of_now = partial(polls.next_place, caller.scope(query).owner, now)
    stopping: asyncio.Event = request.app.state.stopping
    stream = _followed(first, read, place_of_now, stopping, query.timeout_s)
    return EventSourceResponse(with_pings(stream, PING_S), headers=STREAM_HEADERS)


async def _followed(
    batch: Events,
    read: Callable[..., Events],
    place_of_now: Callable[[], Awaitable[str]],
    stopping: asyncio.Event,
    timeout_s: float,
) -> AsyncGenerator[bytes, None]:
    """The events as bytes, until the time is over or the server stops."""
    clock = asyncio.get_running_loop().time
    ends_at = clock() + timeout_s
    yield format_sse_event(id=batch.place if not batch.items else None, comment="the events")
    with suppress(MemoristError):  # the store is away: the client connects again
        while True:
            for item in batch.items:
                data = {name: getattr(item, name) for name in ("id", "change", "at", "session")}
                yield event(item.kind, data, item.place)
            if stopping.is_set() or clock() >= ends_at:
                return
            is_new = await place_of_now() != batch.place
            batch = await to_thread(read, after=batch.place) if is_new else replace(batch, items=())
