"""Sessions and messages: add, list, revise, append text and follow it as it comes."""

import asyncio
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Path
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.requests import Request

from memorist.errors import ConflictError, InvalidError, NotFoundError, naming_item
from memorist.operations import make_cursor, read_cursor
from memorist.providers.images import refuse_image
from memorist.records.log import LogEntry, Remembered, Session, SessionSummary
from memorist.records.message import Message
from memorist.records.query import Forgotten
from memorist.records.scope import Scope
from memorist.server.http import schemas
from memorist.server.http.media_guard import check_content, check_structured_data
from memorist.server.http.openapi import MESSAGE, MESSAGE_ID, SESSION, SESSION_ID, SUMMARY
from memorist.server.http.pagination import MAX_BATCH, MAX_PAGE_BYTES, Page, keyset_page, take_page
from memorist.server.http.routing import Caller, Url, operation

MAX_FOLLOW_S = 300.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.25
MessageId = Annotated[str, Path(description="The message's id.", examples=[MESSAGE_ID])]
SessionPath = Annotated[str, Path(description="The session's id.", examples=[SESSION_ID])]
SessionToFill = Annotated[str | None, Field(description="Else the active one, or a new one.")]
MessageContent = str | dict[str, Any] | list[Any] | None
LastEventId = Annotated[
    str | None, Header(max_length=20, description="Of the last event you got.", examples=["7"])
]
Patience = Annotated[float, Field(gt=0, le=MAX_FOLLOW_S, allow_inf_nan=False)]
Seq = Annotated[int, Field(ge=0, le=2**63 - 1)]
_EVENTS = (
    'event: text\ndata: {"text": "I moved", "at": 0}\nid: 7\n\n'
    f'event: finished\ndata: {{"message_id": "{MESSAGE_ID}", "chars": 7}}\n\n'
)
_FOLLOWED = {
    "description": "Events: text, then finished, timeout or gone.",
    "content": {"text/event-stream": {"example": _EVENTS}},
}


# Sessions


class ResolveSessionBody(schemas.AgentRequest):
    """Which session to go on with."""

    session_id: str | None = Field(None, description="The id that the client keeps.")
    id: str | None = Field(None, description="This session, begun if there is none.")
    new: bool = Field(False, description="Begin another one.")
    adopt: bool = Field(
        False, description="With LangChain's messages under this id; needs an admin's key."
    )


class ResolvedSession(BaseModel):
    """The session to go on with; `confirmed` says that it is the one the client keeps."""

    session_id: str
    session: Session
    confirmed: bool


_RESOLVED = ResolvedSession(session_id=SESSION.id, session=SESSION, confirmed=True)


@operation("resolve_session", example=_RESOLVED)
def resolve_session(body: ResolveSessionBody, caller: Caller) -> ResolvedSession:
    """Confirm the session that a client keeps, or find the active one, or begin a new one.

    An id of another user or agent, or of a session that is gone, is ignored.
    """
    claimed = None if body.new else body.session_id
    if body.adopt:
        caller.require_operator()
    chat = caller.memory.session(
        **caller.place(body), id=body.id, new=body.new, claimed=claimed, adopt=body.adopt
    )
    session = chat.session
    return ResolvedSession(session_id=session.id, session=session, confirmed=session.id == claimed)


@operation("active_session")
def get_active_session(query: Url[schemas.AgentRequest], caller: Caller) -> Session:
    """The active session with this agent; none is begun."""
    session = caller.memory.active_session(**caller.place(query))
    if session is None:
        raise NotFoundError("no session with this agent is active")
    return session


class SessionsQuery(schemas.SessionPageQuery):
    """A page of sessions."""

    newest_first: bool = Field(False, description="From the one that was last active back.")
    summary: bool = Field(False, description="With title and number of messages.")


class RenameSessionBody(schemas.UserRequest):
    """A session's title."""

    title: str | None = Field(description="Null takes it away.", examples=["Moving to Berlin"])


@operation("list_sessions", example=SUMMARY)
def list_sessions(query: Url[SessionsQuery], caller: Caller) -> Page[SessionSummary | Session]:
    """The user's sessions, oldest first, or with `newest_first` the one last active leads."""
    listed: Any = caller.memory.session_summaries if query.summary else caller.memory.sessions
    read = partial(listed, **caller.place(query), newest_first=query.newest_first)
    moment = "last_active_at" if query.newest_first else "created_at"
    return keyset_page(read, query, moment=moment, big=False)


@operation("rename_session", example=SUMMARY)
def rename_session(
    session_id: SessionPath, body: RenameSessionBody, caller: Caller
) -> SessionSummary:
    """Give a session a title of your own, or take it away."""
    user = caller.user(body.user)
    caller.memory.rename_session(session_id, body.title, user=user)
    return caller.memory.session_summaries(user=user, session=session_id)[0]


@operation("forget_session")
def forget_session(
    session_id: SessionPath, query: Url[schemas.ForgetQuery], caller: Caller
) -> Forgotten:
    """Delete a session for good, with its messages and what was derived from them."""
    user = caller.user(query.user)
    if not caller.memory.sessions(user=user, session=session_id):
        raise NotFoundError("no session with this id for this user")
    return caller.memory.forget(user=user, session=session_id, **query.arguments())


@operation("list_agents", example="tutor")
def list_agents(query: Url[schemas.UserRequest], caller: Caller) -> Page[str]:
    """The agents that the user has sessions with, by name, all at once."""
    return Page(items=caller.memory.agents(user=caller.user(query.user)))


# Messages


class MessageBody(schemas.RequestModel):
    """One message."""

    role: schemas.Role = Field(examples=["user"])
    content: MessageContent = Field(None, examples=["I moved to Berlin in March."])
    message_id: str | None = Field(None, description="Your id: sent again, it is stored once.")
    name: str | None = None
    tool_calls: list[dict[str, Any]] = Field([])
    agent_calls: list[dict[str, Any]] = Field([])
    structured_data: dict[str, Any] | None = None
    images: schemas.Images = Field([])
    tool_call_id: str | None = None
    created_at: datetime | None = Field(None, description="When it was said, if not now.")
    unfinished: bool = Field(False, description="More of it is to come.")

    def to_message(self, **known: Any) -> Message:
        """The message as a record, which raises what is wrong with it."""
        for image in self.images:
            refuse_image(image)
        check_content(self.content)
        check_structured_data(self.structured_data)
        return Message(**known | self.arguments("source"))


class AddMessageBody(schemas.SessionRequest, MessageBody):
    session: SessionToFill = None
    source: schemas.Origin = None


class ConversationBody(schemas.SessionRequest):
    """Messages of one user and session."""

    session: SessionToFill = None
    messages: list[MessageBody] = Field(min_length=1, max_length=schemas.MAX_ITEMS)


class AddMessagesBody(ConversationBody):
    source: schemas.Origin = None


class RememberManyBody(schemas.RequestModel):
    """Messages of several users and sessions, to store in one transaction."""

    items: list[ConversationBody] = Field(
        min_length=1,
        max_length=schemas.MAX_ITEMS,
        examples=[[{"user": "ada", "messages": [{"role": "user", "content": "Hi"}]}]],
    )
    source: schemas.Origin = None


class ReviseMessageBody(schemas.SessionRequest, MessageBody):
    """The new text of a message; the old one stays among its revisions."""

    message_id: Literal[None] = Field(None, description="The path names it.")


class MessagesQuery(schemas.SessionPageQuery):
    """A page of messages, newest page first."""

    limit: schemas.PageSize = 50
    role: schemas.Role | None = Field(None, description="Only messages of this role.")
    before: Seq | None = Field(None, description="Only those before this `seq`.")
    after: Seq | None = Field(None, description="Only those after this `seq`.")
    oldest_first: bool = Field(False, description="Forward, in a session; `before` and `role` not.")


class StoredMessage(BaseModel):
    """A message with its number in the log, its session and its source."""

    seq: int
    session_id: str
    source: str
    message: Message


_STORED = StoredMessage(seq=12, session_id=SESSION_ID, source="user", message=MESSAGE)


@operation("add_message", status_code=201)
def add_message(body: AddMessageBody, caller: Caller) -> Remembered:
    """Store a message durably; it can be recalled as soon as this answers.

    With `unfinished`, more text can be appended. Sent again with the same `message_id`, it is not
    stored again.
    """
    return _remember(body, [body], caller)


@operation("add_messages", status_code=201)
def add_messages(body: AddMessagesBody, caller: Caller) -> Remembered:
    """Store messages in order, all or none."""
    return _remember(body, body.messages, caller)


@operation("remember_many", status_code=201)
def remember_many(body: RememberManyBody, caller: Caller) -> Page[Remembered]:
    """Store messages of several users and sessions, all or none; in the order of the items.

    Only an admin's key names users.
    """
    items = list[dict[str, Any]]()
    for number, item in enumerate(body.items):
        with naming_item(number, len(body.items)):
            items.append(_remember_arguments(item, item.messages, caller))
    return Page(items=caller.memory.remember_many(items, source=body.source))


def _remember(
    body: AddMessageBody | AddMessagesBody, inputs: Sequence[MessageBody], caller: Caller
) -> Remembered:
    return caller.memory.remember(**_remember_arguments(body, inputs, caller), source=body.source)


def _remember_arguments(
    body: schemas.SessionRequest, inputs: Sequence[MessageBody], caller: Caller
) -> dict[str, Any]:
    """The messages of a request, their user and session."""
    place = caller.place(body)
    messages = [message.to_message() for message in inputs]
    ids = [message.message_id for message in inputs if message.message_id is not None]
    if body.session is None and ids:
        # A retry goes to the session that holds it: another one may be active by now.
        stored = caller.memory.messages.get(caller.scope(body), ids, limit=1)
        place["session"] = stored[0].session_id if stored else None
    return {**place, "messages": messages}


@operation("list_messages", response_model=Page[StoredMessage], example=_STORED)
def list_messages(query: Url[MessagesQuery], caller: Caller) -> Page[LogEntry]:
    """The newest messages, oldest of them first; the next page holds those before."""
    if query.oldest_first:
        return _forwards(caller, query)
    place = read_cursor(query.cursor, int)
    before = query.before if place is None else place[0]
    entries, more = take_page(_backwards(caller, before, query), query.limit)
    return Page(items=entries[::-1], next=make_cursor([entries[-1].seq]) if more else None)


def _forwards(caller: Caller, query: MessagesQuery) -> Page[LogEntry]:
    """The messages of a session from a number in the log on."""
    if query.before is not None or query.role is not None:
        raise InvalidError("oldest_first goes without before and role")
    scope, first = caller.scope(query), query.after or 0

    def read(after: int | None, **page: int) -> list[LogEntry]:
        return caller.memory.messages.following(scope, after=after or first, **page)

    return keyset_page(read, query, by=lambda entry: entry.seq)


def _backwards(caller: Caller, before: int | None, query: MessagesQuery) -> Iterator[LogEntry]:
    """The messages before a number in the log, newest first; read in batches, as some are long."""
    scope = caller.scope(query)
    while entries := caller.memory.messages.list(
        scope,
        last=min(query.limit + 1, MAX_BATCH),
        before=before,
        after=query.after,
        role=query.role,
        max_bytes=MAX_PAGE_BYTES,
    ):
        yield from reversed(entries)
        before = entries[0].seq


@operation("get_message", response_model=StoredMessage, example=_STORED)
def get_message(
    message_id: MessageId, query: Url[schemas.SessionRequest], caller: Caller
) -> LogEntry:
    """One message."""
    return _find(caller, caller.scope(query), message_id)


@operation("revise_message", response_model=StoredMessage, example=_STORED)
def revise_message(message_id: MessageId, body: ReviseMessageBody, caller: Caller) -> LogEntry:
    """Replace a message's text; the old one stays among its revisions."""
    scope = caller.scope(body)
    created_at = _find(caller, scope, message_id).message.created_at
    message = body.to_message(message_id=message_id, created_at=created_at)
    caller.memory.messages.revise(scope, message)
    return _find(caller, scope, message_id)


@operation("list_revisions")
def list_revisions(
    message_id: MessageId, query: Url[schemas.SessionPageQuery], caller: Caller
) -> Page[Message]:
    """What a message said before, oldest first."""
    scope = caller.scope(query)

    def read(after: int | None, **page: int) -> list[tuple[int, Message]]:
        messages = caller.memory.messages.revisions(scope, message_id, **page, after=after or 0)
        return list(enumerate(messages, (after or 0) + 1))

    page = keyset_page(read, query, by=lambda revision: revision[0])
    return Page(items=[message for _, message in page.items], next=page.next)


def _find(caller: Caller, scope: Scope, message_id: str) -> LogEntry:
    """The one message with this id in the scope."""
    entries = caller.memory.messages.get(scope, [message_id], limit=2)
    if not entries:
        raise NotFoundError("no message with this id for this user")
    if len(entries) > 1:
        raise ConflictError("several sessions hold a message with this id; name the session")
    return entries[0]


# Messages that grow


class AppendBody(schemas.SessionRequest):
    """More text of a message that was begun with `unfinished`."""

    text: str = Field("", examples=[" and I like it here."])
    at: schemas.Position = Field(
        description="How many characters come before it; a retry adds nothing.", examples=[27]
    )
    finish: bool = Field(False, description="Nothing more is to come.")
    tool_calls: list[dict[str, Any]] | None = None
    agent_calls: list[dict[str, Any]] | None = None
    structured_data: dict[str, Any] | None = None


class FollowQuery(schemas.SessionRequest):
    """From where on a message is followed, and for how long."""

    at: schemas.Position = Field(0, description="How many characters you have.")
    timeout_s: Patience = Field(30.0, description="Ends after so many seconds without news.")


class GrownMessage(BaseModel):
    """How long a message is by now."""

    message_id: str
    chars: int
    unfinished: bool


@operation("append_text", example=GrownMessage(message_id=MESSAGE_ID, chars=27, unfinished=True))
def append_text(message_id: MessageId, body: AppendBody, caller: Caller) -> GrownMessage:
    """Append text to an unfinished message, or finish it; 409 if it is finished already."""
    check_structured_data(body.structured_data)
    message = _grow(caller, caller.scope(body), message_id, body)
    chars = len(str(message.content))
    return GrownMessage(message_id=message_id, chars=chars, unfinished=message.unfinished)


def _grow(caller: Caller, scope: Scope, message_id: str, body: AppendBody) -> Message:
    """Store the longer message; if somebody else wrote meanwhile, check again whether it fits.

    The store never shortens a text, so acknowledged words stay where they were put.
    """
    fields = body.arguments("text", "at", "finish")
    while True:
        stored = _find(caller, scope, message_id).message
        content = _appended(stored, body)
        message = stored.changed(content=content, unfinished=not body.finish, **fields)
        try:
            caller.memory.messages.append_text(scope, message)
            return message
        except ConflictError:
            if _find(caller, scope, message_id).message == stored:
                raise


def _appended(stored: Message, body: AppendBody) -> str:
    """The text with what is appended; what was appended already is not appended again."""
    text = stored.content if stored.content is not None else ""
    if not isinstance(text, str):
        raise ConflictError("only text grows; revise the message to change other content")
    if body.at == len(text):
        return text + body.text
    if text[body.at : body.at + len(body.text)] == body.text and body.at < len(text):
        return text
    raise ConflictError(f"{len(text)} characters are stored; go on from there")


async def _followed_scope(message_id: MessageId, query: Url[FollowQuery], caller: Caller) -> Scope:
    """Where the message is; raises NotFoundError before the stream begins."""
    scope = caller.scope(query)
    end = schemas.MAX_INT  # past any text: nothing is read of it yet
    part = await to_thread(caller.memory.messages.text_from, scope, message_id, end)
    if part is None:
        raise NotFoundError("no message with this id for this user")
    return scope.within(session=part.session_id)


@operation("follow_message", response_class=EventSourceResponse, responses={200: _FOLLOWED})
async def follow_message(
    message_id: MessageId,
    query: Url[FollowQuery],
    scope: Annotated[Scope, Depends(_followed_scope)],
    caller: Caller,
    request: Request,
    last_event_id: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """The text of a message as it comes: server-sent events, until it is finished.

    `text` brings what was appended, and `finished`, `timeout` or `gone` is the last event. A
    client that reconnects sends Last-Event-ID, and gets what it has not seen.
    """
    seen, part = query.at, None
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        seen = int(last_event_id)
    clock = asyncio.get_running_loop().time
    ends_at, pause_s = clock() + query.timeout_s, FIRST_PAUSE_S
    stopping: asyncio.Event = request.app.state.stopping
    while True:  # until the client disconnects; polling, so that no thread waits
        read = caller.memory.messages.text_from
        part = await to_thread(read, scope, message_id, seen, known=part)
        if part is None:
            yield ServerSentEvent(event="gone", data={})
            return
        if part.text:
            data = {"text": part.text, "at": seen}
            seen += len(part.text)
            yield ServerSentEvent(event="text", data=data, id=str(seen))
            ends_at, pause_s = clock() + query.timeout_s, FIRST_PAUSE_S
            if seen < part.chars:
                continue
        if not part.unfinished:
            data = {"message_id": message_id, "chars": part.chars}
            yield ServerSentEvent(event="finished", data=data)
            return
        if stopping.is_set() or clock() >= ends_at:
            yield ServerSentEvent(event="timeout", data={"chars": seen})
            return
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.2, LONGEST_PAUSE_S)
