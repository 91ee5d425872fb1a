"""Messages: add, list, revise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.errors import ConflictError, NotFoundError
from memorist.operations import make_cursor, read_cursor
from memorist.records.message import LogEntry, Message, Remembered
from memorist.records.scope import Scope
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import (
    MESSAGE,
    MESSAGE_ID,
    REMEMBERED,
    SESSION_ID,
    example,
    example_page,
)
from memorist.server.http.pagination import Page, page_of, take_page
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    AddMessageBody,
    AddMessagesBody,
    MessageBody,
    MessageQuery,
    MessagesQuery,
    ReviseMessageBody,
    RevisionsQuery,
)

BATCH = 16
router = APIRouter(route_class=ApiRoute)
MessageId = Annotated[str, Path(description="The message's id.", examples=[MESSAGE_ID])]


class StoredMessage(BaseModel):
    """A message with its number in the log, its session and its source."""

    seq: int
    session_id: str
    source: str
    message: Message

    @classmethod
    def of(cls, entry: LogEntry) -> StoredMessage:
        """An entry of the log as it is answered."""
        return cls(**{name: getattr(entry, name) for name in cls.model_fields})


_STORED = StoredMessage(seq=12, session_id=SESSION_ID, source="user", message=MESSAGE)


@operation(router, "add_message", status_code=201, responses=example(REMEMBERED, 201))
def add_message(body: AddMessageBody, caller: CurrentCaller) -> Remembered:
    """Store a message durably; it can be recalled as soon as this answers.

    With `unfinished`, more text can be appended. Sent again with the same `message_id`, it is not
    stored again.
    """
    return _remember(body, [body], caller)


@operation(router, "add_messages", status_code=201, responses=example(REMEMBERED, 201))
def add_messages(body: AddMessagesBody, caller: CurrentCaller) -> Remembered:
    """Store messages in order, all or none."""
    return _remember(body, body.messages, caller)


@operation(router, "list_messages", responses=example_page(_STORED))
def list_messages(
    query: Annotated[MessagesQuery, Query()], caller: CurrentCaller
) -> Page[StoredMessage]:
    """The newest messages, oldest of them first; the next page holds those before."""
    user = caller.user(query.user)
    scope = caller.memory.scope(user=user, agent=query.agent, session=query.session)
    place = read_cursor(query.cursor, int)
    before = query.before if place is None else place[0]
    entries, more = take_page(_backwards(caller, scope, before, query), query.limit)
    return Page(
        items=[StoredMessage.of(entry) for entry in reversed(entries)],
        next=make_cursor([entries[-1].seq]) if more else None,
    )


@operation(router, "get_message", responses=example(_STORED))
def get_message(
    message_id: MessageId, query: Annotated[MessageQuery, Query()], caller: CurrentCaller
) -> StoredMessage:
    """One message."""
    scope = caller.memory.scope(user=caller.user(query.user), session=query.session)
    return StoredMessage.of(find_message(caller, scope, message_id))


@operation(router, "revise_message", responses=example(_STORED))
def revise_message(
    message_id: MessageId, body: ReviseMessageBody, caller: CurrentCaller
) -> StoredMessage:
    """Replace a message's text; the old one stays among its revisions."""
    user = caller.user(body.user)
    scope = caller.memory.scope(user=user, agent=body.agent, session=body.session)
    created_at = find_message(caller, scope, message_id).message.created_at
    message = body.to_message(message_id=message_id, created_at=created_at)
    caller.memory.messages.revise(scope, message)
    return StoredMessage.of(find_message(caller, scope, message_id))


@operation(router, "list_revisions", responses=example_page(MESSAGE))
def list_revisions(
    message_id: MessageId, query: Annotated[RevisionsQuery, Query()], caller: CurrentCaller
) -> Page[Message]:
    """What a message said before, oldest first."""
    scope = caller.memory.scope(user=caller.user(query.user), session=query.session)
    find_message(caller, scope, message_id)
    numbered = list(enumerate(caller.memory.messages.revisions(scope, message_id)))
    page = page_of(numbered, query, lambda revision: f"{revision[0]:010}")
    return Page(items=[message for _, message in page.items], next=page.next)


def find_message(caller: CurrentCaller, scope: Scope, message_id: str) -> LogEntry:
    """The one message with this id in the scope."""
    entries = caller.memory.messages.get(scope, [message_id])
    if not entries:
        raise NotFoundError("no message with this id for this user")
    if len(entries) > 1:
        raise ConflictError("several sessions hold a message with this id; name the session")
    return entries[0]


def _remember(
    body: AddMessageBody | AddMessagesBody, inputs: Sequence[MessageBody], caller: CurrentCaller
) -> Remembered:
    user, session = caller.user(body.user), body.session
    messages = [message.to_message() for message in inputs]
    ids = [message.message_id for message in inputs if message.message_id is not None]
    if session is None and ids:
        # A retry goes to the session that holds it: another one may be active by now.
        stored = caller.memory.messages.get(caller.memory.scope(user=user, agent=body.agent), ids)
        session = stored[0].session_id if stored else None
    return caller.memory.remember(
        messages, user=user, agent=body.agent, session=session, source=body.source
    )


def _backwards(
    caller: CurrentCaller, scope: Scope, before: int | None, query: MessagesQuery
) -> Iterator[LogEntry]:
    """The messages before a number in the log, newest first; read in batches, as some are long."""
    while True:
        entries = caller.memory.messages.list(
            scope, last=BATCH, before=before, after=query.after, role=query.role
        )
        yield from reversed(entries)
        if len(entries) < BATCH:
            return
        before = entries[0].seq
