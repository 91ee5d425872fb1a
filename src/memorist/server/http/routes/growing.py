"""Growing messages: written bit by bit, and read as they grow."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, Field
from starlette.requests import Request

from memorist.aio import in_thread
from memorist.errors import ConflictError
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import MESSAGE_ID, shown
from memorist.server.http.paths import Parts
from memorist.server.http.routes.messages import MessageId, the_message
from memorist.server.http.schemas import Ask, Grow, SessionId, User
from memorist.server.http.sse import EventStream, event, growth

LONGEST_S = 300.0
router = APIRouter(prefix="/api/messages", tags=["messages"], route_class=Parts)
LastEventId = Annotated[
    str | None, Header(max_length=20, description="Of the last event you got.", examples=["7"])
]
_EVENTS = event("text", {"text": "I moved", "at": 0}, id=7) + event(
    "finished", {"message_id": MESSAGE_ID, "chars": 7}
)
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: text, then finished, timeout or gone.",
        "content": {"text/event-stream": {"example": _EVENTS.decode()}},
    }
}


class Grown(BaseModel):
    """How far a message has come."""

    message_id: str
    chars: int
    unfinished: bool


class Follow(Ask):
    """From where on a message is followed, and for how long nothing may come."""

    user: User = None
    session: SessionId = None
    at: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(0, description="Characters you have.")
    timeout_s: Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)] = Field(
        30.0, description="Seconds in which nothing came, after which it ends."
    )


@router.post(
    "/{message_id}/append", responses=shown(Grown(message_id=MESSAGE_ID, chars=27, unfinished=True))
)
def append_text(message_id: MessageId, ask: Grow, caller: CurrentCaller) -> Grown:
    """Add text to an unfinished message, or finish it; 409 where it is finished already."""
    scope = caller.memory.scope(user=caller.user(ask.user), agent=ask.agent, session=ask.session)
    message = _grow(caller, scope, message_id, ask)
    if not message.unfinished:
        caller.memory.wake()
    return Grown(
        message_id=message_id, chars=len(str(message.content)), unfinished=message.unfinished
    )


@router.get("/{message_id}/updates", status_code=200, response_class=EventStream, responses=_ANSWER)
async def follow_message(
    message_id: MessageId,
    asked: Annotated[Follow, Query()],
    caller: CurrentCaller,
    request: Request,
    last_event_id: LastEventId = None,
) -> EventStream:
    """The text of a message as it comes: server-sent events, until it is finished.

    `text` brings what was added, and `finished`, `timeout` or `gone` is the last event. A client
    that connects again sends Last-Event-ID, and gets what it has not seen.
    """
    scope = caller.memory.scope(user=caller.user(asked.user), session=asked.session)
    await in_thread(the_message, caller, scope, message_id)
    store = caller.memory.store

    def look() -> Message | None:
        found = store.find(scope, [message_id])
        return found[0].message if found else None

    seen = asked.at
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        seen = int(last_event_id)
    return EventStream(growth(look, request, seen=seen, timeout_s=asked.timeout_s))


def _grow(caller: CurrentCaller, scope: Scope, message_id: str, ask: Grow) -> Message:
    """Store the longer message; where somebody came between, look again whether it still fits.

    The store takes nothing back of a text. So the words of everybody who is told that they are
    stored stand where they said.
    """
    while True:
        held = the_message(caller, scope, message_id).message
        content = _longer(held, ask)
        message = held.changed(content=content, unfinished=not ask.finish, **ask.fields())
        try:
            caller.memory.store.grow(scope, message)
            return message
        except ConflictError:
            if the_message(caller, scope, message_id).message == held:
                raise


def _longer(held: Message, ask: Grow) -> str:
    """The text as it is to be; what was appended already is not appended again."""
    before = held.content if held.content is not None else ""
    if not isinstance(before, str):
        raise ConflictError("only text grows; revise the message to change other content")
    if ask.at == len(before):
        return before + ask.text
    if before[ask.at : ask.at + len(ask.text)] == ask.text and ask.at < len(before):
        return before
    raise ConflictError(f"{len(before)} characters are stored; go on from there")
