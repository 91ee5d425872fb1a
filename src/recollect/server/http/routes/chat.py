"""Chat: say something, and hear the answer as it comes.

The answer is a stream of server-sent events, or one JSON object for those who accept only that:

    session        which conversation goes on
    memory         what was recalled, and what of it was late or failed
    token          a piece of what the model says
    tool_started   a tool is at work
    tool_result    what it answered
    notice         no model is configured; with it come the `context` and how to have one
    receipt        what went into the window, to the token
    done           the ids of what is stored
    error          a problem, at the end
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from recollect.aio_life import in_thread
from recollect.context.window import Receipt
from recollect.errors import InvalidError, MissingExtraError, RecollectError
from recollect.memory import Memory
from recollect.records.ids import new_id
from recollect.records.message import Message
from recollect.records.query import Recall
from recollect.server.chat import Asked, Chats, told
from recollect.server.http.caller import Asking
from recollect.server.http.examples import MEMORY_ID, MESSAGE_ID, SESSION_ID, shown
from recollect.server.http.once import AtMostOnce, Once
from recollect.server.http.problems import HttpError, problem_response, request_id_of
from recollect.server.http.shapes_chat import (
    NO_MODEL,
    ChatAnswer,
    ChatAsk,
    ChatDone,
    ChatSession,
    ChatTool,
)
from recollect.server.http.shapes_context import ContextAnswer, ReceiptAnswer
from recollect.server.http.sse import EventStream, event

try:
    from fastapi import APIRouter, Header
    from pydantic import BaseModel, TypeAdapter
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingExtraError("server") from error

router = APIRouter(prefix="/api", tags=["chat"])
Accept = Annotated[str, Header(description="application/json for one answer, else events.")]
Event = tuple[str, Any]
_SESSION = ChatSession(session_id=SESSION_ID, confirmed=True)
_DONE = ChatDone(session_id=SESSION_ID, message_id=MEMORY_ID, asked_id=MESSAGE_ID)
_WHOLE = ChatAnswer(**{**dict(_SESSION), **dict(_DONE)}, message="In Berlin.")
_PIECES = (("session", dict(_SESSION)), ("token", {"text": "In Berlin."}), ("done", dict(_DONE)))
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: session, memory, token …, receipt, then done or error.",
        "content": {
            **shown(_WHOLE)[200]["content"],
            "text/event-stream": {"example": b"".join(event(*it) for it in _PIECES).decode()},
        },
    }
}
_recall = TypeAdapter(Recall)


@router.post("/chat", response_model=ChatAnswer, responses=_ANSWER)
async def chat(
    ask: ChatAsk, request: Request, caller: Asking, once: AtMostOnce, accept: Accept = "*/*"
) -> Response:
    """Say something to the agent, and hear its answer as it comes, or in one JSON object.

    What you say is stored before anybody thinks about it; with an Idempotency-Key, once. A
    session_id of another user or agent, or of one that is gone, is as good as none.
    """
    chats: Chats = request.app.state.chats
    session, asked = await in_thread(_begin, ask, caller, once)
    events = _turn(chats, caller.memory, session, asked)
    if "application/json" in accept and "text/event-stream" not in accept:
        return Response(await _whole(events), media_type="application/json")
    wire = _wire(events, request_id_of(request.scope))
    return EventStream(wire, chats.settings.heartbeat_s)


def _begin(ask: ChatAsk, caller: Asking, once: Once) -> tuple[ChatSession, Asked]:
    """The conversation that goes on, and the message in it; nothing is said yet."""
    if not ask.message.strip():
        raise InvalidError("message must say something")
    user, memory = caller.user(ask.user), caller.memory
    scope = memory.scope(user=user)
    message = Message("user", ask.message, message_id=once.id(scope) or new_id())
    if once.key is not None:
        found = memory.store.find(scope, [message.message_id])
        if any(entry.message.content != ask.message for entry in found):
            raise HttpError(422, "idempotency", "this key was used for another message")
    begun = memory.session(user=user, agent=ask.agent_id, claimed=ask.session_id)
    session = ChatSession(session_id=begun.id, confirmed=begun.id == ask.session_id)
    return session, Asked(begun, message)


async def _turn(
    chats: Chats, memory: Memory, session: ChatSession, asked: Asked
) -> AsyncGenerator[Event, None]:
    yield "session", session
    if chats.model is None:
        silent = await in_thread(chats.unanswered, memory, asked)
        context = ContextAnswer.of(silent.context)
        yield "memory", silent.recall
        yield "context", context
        yield "notice", {"code": "no_model", "text": NO_MODEL}
        yield "receipt", context.receipt
        yield "done", ChatDone(session_id=asked.chat.id, asked_id=asked.id)
        return
    said = chats.answered(memory, asked)
    try:
        async for one in said:
            for told_event in _events(one, asked):
                yield told_event
    finally:
        await said.aclose()


def _events(one: Any, asked: Asked) -> list[Event]:
    """What the agent does, as events."""
    from recollect.agent.react import Recalled, Response, Token, ToolResult, ToolStarted

    match one:
        case Recalled(recall):
            return [("memory", told(recall, asked.id))]
        case Token(text):
            return [("token", {"text": text})]
        case ToolStarted(name, arguments):
            return [("tool_started", {"name": name, "arguments": dict(arguments)})]
        case ToolResult():
            fields = {name: getattr(one, name) for name in ChatTool.model_fields}
            return [("tool_result", ChatTool(**fields))]
        case Response():
            done = ChatDone(
                session_id=one.session_id or asked.chat.id, message_id=one.message_id,
                asked_id=asked.id, warnings=list(one.warnings),
            )  # fmt: skip
            receipt = [("receipt", _receipt(one.receipt))] if one.receipt else []
            return [*receipt, ("done", done)]
    return []


def _receipt(receipt: Receipt) -> ReceiptAnswer:
    return ReceiptAnswer(**{name: getattr(receipt, name) for name in ReceiptAnswer.model_fields})


async def _wire(
    events: AsyncGenerator[Event, None], request_id: str
) -> AsyncGenerator[bytes, None]:
    try:
        async for name, data in events:
            yield event(name, _json(data))
    except RecollectError as error:
        yield event("error", json.loads(bytes(problem_response(error, request_id).body)))
    finally:
        await events.aclose()


async def _whole(events: AsyncGenerator[Event, None]) -> bytes:
    """All events of a turn as one answer."""
    fields: dict[str, Any] = {}
    said, tools = list[str](), list[ChatTool]()
    async for name, data in events:
        if name == "token":
            said.append(data["text"])
        elif name == "tool_started":
            said.clear()  # the answer is what follows the last of them
        elif name == "tool_result":
            tools.append(data)
        elif name == "notice":
            fields["notice"] = data["text"]
        elif name in ("session", "done"):
            fields |= dict(data)
        else:
            fields[name] = data
    message = "".join(said) if "notice" not in fields else None
    return ChatAnswer(**fields, message=message, tool_results=tools).model_dump_json().encode()


def _json(data: Any) -> Any:
    if isinstance(data, Recall):
        return _recall.dump_python(data, mode="json")
    return data.model_dump(mode="json") if isinstance(data, BaseModel) else data
