"""Messages: add to a conversation, read it page by page, revise it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.errors import ConflictError, InvalidError, NotFoundError
from memorist.records.inputs import Remembered
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import MESSAGE, MESSAGE_ID, REMEMBERED, SESSION_ID, listed, shown
from memorist.server.http.pagination import (
    Cursor,
    Limit,
    Page,
    fill,
    make_cursor,
    page_of,
    read_cursor,
)
from memorist.server.http.paths import Parts
from memorist.server.http.schemas import Add, AddOne, Agent, Revise, Role, Said, SessionId, User

FEW = 16
router = APIRouter(prefix="/api/messages", tags=["messages"], route_class=Parts)
Position = Annotated[
    int | None, Query(ge=0, le=2**63 - 1, description="A message's `seq`, itself left out.")
]
MessageId = Annotated[str, Path(description="The message's id.", examples=[MESSAGE_ID])]


class Entry(BaseModel):
    """A message as it is stored: its place in the log, its conversation, where it came from."""

    seq: int
    session_id: str
    source: str
    message: Message


ENTRY = Entry(seq=12, session_id=SESSION_ID, source="user", message=MESSAGE)


@router.post("", status_code=201, responses=shown(REMEMBERED, 201))
def add_message(ask: AddOne, caller: CurrentCaller) -> Remembered:
    """Store a message durably; it can be recalled as soon as this answers.

    With `unfinished` it is begun, and grows by what is appended to it. Sent again with the same
    `message_id`, it is not stored again.
    """
    return _remember(caller, ask, [ask])


@router.post("/batch", status_code=201, responses=shown(REMEMBERED, 201))
def add_messages(ask: Add, caller: CurrentCaller) -> Remembered:
    """Store messages in order, all or none."""
    return _remember(caller, ask, ask.messages)


@router.get("", responses=listed(ENTRY))
def list_messages(
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    session: SessionId = None,
    role: Role | None = None,
    before: Position = None,
    after: Position = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Entry]:
    """The newest messages, oldest of them first; the next page holds those before."""
    scope = caller.memory.scope(user=caller.user(user), agent=agent, session=session)
    start = before if cursor is None else _place(cursor)
    kept, more = fill(_backwards(caller, scope, start, after, role), limit)
    return Page(
        items=[_entry(one) for one in reversed(kept)],
        next=make_cursor(str(kept[-1].seq)) if more else None,
    )


@router.get("/{message_id}", responses=shown(ENTRY))
def get_message(
    message_id: MessageId, caller: CurrentCaller, user: User = None, session: SessionId = None
) -> Entry:
    """One message."""
    scope = caller.memory.scope(user=caller.user(user), session=session)
    return _entry(the_message(caller, scope, message_id))


@router.put("/{message_id}", responses=shown(ENTRY))
def revise_message(message_id: MessageId, ask: Revise, caller: CurrentCaller) -> Entry:
    """Let a message say something else; what it said stays among its revisions."""
    scope = caller.memory.scope(user=caller.user(ask.user), agent=ask.agent, session=ask.session)
    held = the_message(caller, scope, message_id)
    given = {"message_id": message_id, "created_at": held.message.created_at}
    caller.memory.messages.revise(scope, ask.message(**given))
    caller.memory.wake()
    return _entry(the_message(caller, scope, message_id))


@router.get("/{message_id}/revisions", responses=listed(MESSAGE))
def list_revisions(
    message_id: MessageId,
    caller: CurrentCaller,
    user: User = None,
    session: SessionId = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Message]:
    """What a message said before, oldest first."""
    scope = caller.memory.scope(user=caller.user(user), session=session)
    the_message(caller, scope, message_id)
    found = list(enumerate(caller.memory.messages.revisions(scope, message_id)))
    page = page_of(found, limit, cursor, lambda one: f"{one[0]:010}")
    return Page(items=[message for _, message in page.items], next=page.next)


def the_message(caller: CurrentCaller, scope: Scope, message_id: str) -> LogEntry:
    """The one message with this id in the scope."""
    found = caller.memory.messages.get(scope, [message_id])
    if not found:
        raise NotFoundError("no message with this id for this user")
    if len(found) > 1:
        raise ConflictError("several sessions hold a message with this id; name the session")
    return found[0]


def _remember(caller: CurrentCaller, ask: Add | AddOne, inputs: Sequence[Said]) -> Remembered:
    user, session = caller.user(ask.user), ask.session
    messages = [one.message() for one in inputs]
    ids = [one.message_id for one in inputs if one.message_id is not None]
    if session is None and ids:
        # Sent again, they go where they are: another session may be the active one by now.
        stored = caller.memory.messages.get(caller.memory.scope(user=user, agent=ask.agent), ids)
        session = stored[0].session_id if stored else None
    return caller.memory.remember(
        messages, user=user, agent=ask.agent, session=session, source=ask.source
    )


def _backwards(
    caller: CurrentCaller, scope: Scope, before: int | None, after: int | None, role: str | None
) -> Iterator[LogEntry]:
    """The messages before a place, newest first; a few at a time, as each may be long."""
    while True:
        found = caller.memory.messages.list(scope, last=FEW, before=before, after=after, role=role)
        yield from reversed(found)
        if len(found) < FEW:
            return
        before = found[0].seq


def _place(cursor: str | None) -> int | None:
    place = read_cursor(cursor)
    if place is None:
        return None
    if not place.isascii() or not place.isdigit() or len(place) > 18:
        raise InvalidError("cursor is none that a page gave")
    return int(place)


def _entry(entry: LogEntry) -> Entry:
    return Entry(
        seq=entry.seq, session_id=entry.session_id, source=entry.source, message=entry.message
    )
