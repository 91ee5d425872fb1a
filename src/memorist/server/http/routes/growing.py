"""Messages that grow: text is appended, and read as server-sent events while it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from starlette.requests import Request

from memorist.aio import in_thread
from memorist.errors import ConflictError
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import MESSAGE_ID, example
from memorist.server.http.routes.messages import MessageId, find_message
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import AppendBody, FollowQuery

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.25
router = APIRouter(route_class=ApiRoute)
LastEventId = Annotated[
    str | None, Header(max_length=20, description="Of the last event you got.", examples=["7"])
]
_EVENTS = (
    'event: text\ndata: {"text": "I moved", "at": 0}\nid: 7\n\n'
    f'event: finished\ndata: {{"message_id": "{MESSAGE_ID}", "chars": 7}}\n\n'
)
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: text, then finished, timeout or gone.",
        "content": {"text/event-stream": {"example": _EVENTS}},
    }
}


class GrownMessage(BaseModel):
    """How long a message is by now."""

    message_id: str
    chars: int
    unfinished: bool


_GROWN = GrownMessage(message_id=MESSAGE_ID, chars=27, unfinished=True)


@operation(router, "append_text", responses=example(_GROWN))
def append_text(message_id: MessageId, body: AppendBody, caller: CurrentCaller) -> GrownMessage:
    """Append text to an unfinished message, or finish it; 409 if it is finished already."""
    user = caller.user(body.user)
    scope = caller.memory.scope(user=user, agent=body.agent, session=body.session)
    message = _grow(caller, scope, message_id, body)
    return GrownMessage(
        message_id=message_id, chars=len(str(message.content)), unfinished=message.unfinished
    )


async def _followed_scope(
    message_id: MessageId, query: Annotated[FollowQuery, Query()], caller: CurrentCaller
) -> Scope:
    """Where the message is; raises NotFoundError before the stream begins."""
    scope = caller.memory.scope(user=caller.user(query.user), session=query.session)
    await in_thread(find_message, caller, scope, message_id)
    return scope


@operation(router, "follow_message", response_class=EventSourceResponse, responses=_ANSWER)
async def follow_message(
    message_id: MessageId,
    query: Annotated[FollowQuery, Query()],
    scope: Annotated[Scope, Depends(_followed_scope)],
    caller: CurrentCaller,
    request: Request,
    last_event_id: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """The text of a message as it comes: server-sent events, until it is finished.

    `text` brings what was appended, and `finished`, `timeout` or `gone` is the last event. A
    client that reconnects sends Last-Event-ID, and gets what it has not seen.
    """
    seen = query.at
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        seen = int(last_event_id)
    clock = asyncio.get_running_loop().time
    ends_at, pause_s = clock() + query.timeout_s, FIRST_PAUSE_S
    stopping: asyncio.Event = request.app.state.stopping
    while True:  # until the client disconnects; polling, so that no thread waits
        entries = await in_thread(caller.memory.messages.get, scope, [message_id])
        if not entries:
            yield ServerSentEvent(event="gone", data={})
            return
        message = entries[0].message
        text = message.content if isinstance(message.content, str) else ""
        if len(text) > seen:
            data = {"text": text[seen:], "at": seen}
            yield ServerSentEvent(event="text", data=data, id=str(len(text)))
            seen, ends_at, pause_s = len(text), clock() + query.timeout_s, FIRST_PAUSE_S
        if not message.unfinished:
            data = {"message_id": message.message_id, "chars": len(text)}
            yield ServerSentEvent(event="finished", data=data)
            return
        if stopping.is_set() or clock() >= ends_at:
            yield ServerSentEvent(event="timeout", data={"chars": seen})
            return
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.2, LONGEST_PAUSE_S)


def _grow(caller: CurrentCaller, scope: Scope, message_id: str, body: AppendBody) -> Message:
    """Store the longer message; if somebody else wrote meanwhile, check again whether it fits.

    The store never shortens a text, so acknowledged words stay where they were put.
    """
    while True:
        stored = find_message(caller, scope, message_id).message
        content = _appended(stored, body)
        message = stored.changed(content=content, unfinished=not body.finish, **body.fields())
        try:
            caller.memory.messages.append_text(scope, message)
            return message
        except ConflictError:
            if find_message(caller, scope, message_id).message == stored:
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
