"""Chat: say something, and hear the answer as it comes.

The answer is a stream of server-sent events, or one JSON object for those who accept only that:

    session        which conversation goes on
    memory         what was recalled, and what of it was late or failed
    token          a piece of what the model says
    tool_started   a tool is at work
    tool_result    what it answered
    context        without a model: what one would have been sent
    notice         without a model: that there is none, and how to have one
    receipt        what went into the window, to the token
    done           the ids of what is stored
    error          a problem, at the end, with the ids of the question if that is stored
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import BaseModel, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from memorist.aio import in_thread
from memorist.errors import ConflictError, InvalidError, MemoristError
from memorist.memory import Memory
from memorist.records.ids import new_id
from memorist.records.message import Message
from memorist.records.query import Recall
from memorist.server.chat import Chats, told
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import MEMORY_ID, MESSAGE_ID, SESSION_ID, example
from memorist.server.http.problems import on_error
from memorist.server.http.routes.context import ContextAnswer, ReceiptAnswer
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas_chat import (
    NO_MODEL,
    ChatAnswer,
    ChatAsk,
    ChatDone,
    ChatSession,
    ChatTool,
)
from memorist.server.http.sse import EventStream, event
from memorist.server.question import Asked, asked_before, chat_of, is_stored

router = APIRouter(tags=["chat"], route_class=ApiRoute)
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
            **example(_WHOLE)[200]["content"],
            "text/event-stream": {"example": b"".join(event(*it) for it in _PIECES).decode()},
        },
    }
}
_recall = TypeAdapter(Recall)


@operation(router, "chat", response_model=ChatAnswer, responses=_ANSWER)
async def chat(
    ask: ChatAsk, request: Request, caller: CurrentCaller, accept: Accept = "*/*"
) -> Response:
    """Say something to the agent, and hear its answer as it comes, or in one JSON object.

    The message is stored before the model sees it. A session_id of another user or agent, or of
    a session that is gone, is ignored. A message sent again with the same asked_id, or an
    asked_id alone, is not stored again: it is answered if it was not, or its answer is repeated.
    """
    chats: Chats = request.app.state.chats
    asked = await in_thread(_begin, ask, caller)
    session = ChatSession(session_id=asked.chat.id, confirmed=asked.chat.id == ask.session_id)
    before = await chats.before(caller.memory, asked) if asked.again else None
    if before is not None and before.answer is not None:
        events = _again(session, asked, before.answer)
    else:
        events = _turn(chats, caller.memory, session, asked)
    problem = partial(_problem, request, caller.memory, asked)
    if "application/json" not in accept or "text/event-stream" in accept:
        return EventStream(_wire(events, problem), chats.settings.heartbeat_s)
    try:
        return Response(await _whole(events), media_type="application/json")
    except MemoristError as error:
        return await problem(error)


def _begin(ask: ChatAsk, caller: CurrentCaller) -> Asked:
    """The message to be answered, in the conversation that goes on; nothing is said yet."""
    user, memory = caller.user(ask.user), caller.memory
    if ask.message is None and ask.asked_id is None:
        raise InvalidError("message is missing; or give the asked_id of a stored one")
    if ask.message is None:
        scope = memory.scope(user=user, agent=ask.agent_id, session=ask.session_id)
        return asked_before(memory, scope, str(ask.asked_id))
    if not ask.message.strip():
        raise InvalidError("message must say something")
    again = ask.asked_id is not None
    message = Message(
        "user", ask.message, message_id=new_id() if ask.asked_id is None else ask.asked_id
    )
    scope = memory.scope(user=user)
    for entry in memory.store.find(scope, [message.message_id]) if again else ():
        chat = chat_of(memory, scope, entry)  # and not the active one, which may be another by now
        same = chat.session.scope.agent == (ask.agent_id or "")
        if not same or entry.message.content != ask.message or entry.message.role != "user":
            raise ConflictError("this asked_id is the id of another message")
        return Asked(chat, message, again=True)
    begun = memory.session(user=user, agent=ask.agent_id, claimed=ask.session_id)
    return Asked(begun, message, again=again)


async def _again(
    session: ChatSession, asked: Asked, answer: Message
) -> AsyncGenerator[Event, None]:
    """What was answered before."""
    yield "session", session
    if answer.text:
        yield "token", {"text": answer.text}
    yield (
        "done",
        ChatDone(session_id=asked.chat.id, message_id=answer.message_id, asked_id=asked.id),
    )


async def _problem(
    request: Request, memory: Memory, asked: Asked, error: MemoristError
) -> Response:
    """An error, with the ids by which the question can be asked again, if it is stored."""
    answer = await on_error(request, error)
    if await in_thread(is_stored, memory, asked):
        told_ = {**json.loads(bytes(answer.body)), "asked_id": asked.id}
        told_["session_id"] = asked.chat.id
        answer.body = json.dumps(told_, ensure_ascii=False).encode()
        answer.headers["content-length"] = str(len(answer.body))
    return answer


async def _turn(
    chats: Chats, memory: Memory, session: ChatSession, asked: Asked
) -> AsyncGenerator[Event, None]:
    yield "session", session
    if chats.model is None:
        filled = await in_thread(chats.unanswered, asked)
        context = ContextAnswer.of(filled)
        yield "memory", filled.recall
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
    from memorist.agents.react import Recalled, Response, Token, ToolResult, ToolStarted

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
                session_id=one.session_id or asked.chat.id,
                message_id=one.message_id,
                asked_id=asked.id,
                warnings=list(one.warnings),
            )
            receipt = [("receipt", ReceiptAnswer.of(one.receipt))] if one.receipt else []
            return [*receipt, ("done", done)]
    return []


async def _wire(
    events: AsyncGenerator[Event, None], problem: Callable[[MemoristError], Awaitable[Response]]
) -> AsyncGenerator[bytes, None]:
    try:
        async for name, data in events:
            yield event(name, _json(data))
    except MemoristError as error:
        yield event("error", json.loads(bytes((await problem(error)).body)))
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
