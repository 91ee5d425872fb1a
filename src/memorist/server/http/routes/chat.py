"""Chat: send a message, and get the answer as it comes.

The response is a stream of server-sent events, or one JSON object where only that is accepted:

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

import asyncio
from asyncio import to_thread
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from memorist.errors import MemoristError
from memorist.memory import Memory
from memorist.records.activity import RecalledId, TurnReceipt
from memorist.records.query import Recall
from memorist.server.chat import ChatQuestion, ChatRuntime, ReplyState, best_of, chat_question
from memorist.server.http.events import Accept, NamedEvent, event, event_response, wants_json
from memorist.server.http.openapi import MEMORY_ID, MESSAGE_ID, SESSION_ID, stream_response
from memorist.server.http.problems import on_error
from memorist.server.http.routes.context import ContextAnswer, ReceiptAnswer
from memorist.server.http.routing import Caller, operation
from memorist.server.http.schemas import AgentName, Question, UserRequest

NO_MODEL = (
    "No model is configured, so nobody answers. Your message is stored; `memory` is what was "
    "recalled for it, and `context` exactly what a model would have been sent. To have answers, "
    "set MEMORIST_MODEL=provider:name (as openai:gpt-5-mini), or the name of any model beside "
    "MEMORIST_MODEL_URL=http://… of a server that speaks OpenAI's format, and "
    "MEMORIST_MODEL_KEY if it asks for a key; then start the server again."
)
LISTEN_S = 0.5  # between two looks whether the client is there


class ChatAsk(UserRequest):
    """A message to the agent, or the id of a stored one that wants an answer."""

    message: Question | None = Field(None, examples=["Where shall I go today?"])
    asked_id: str | None = Field(None, description="The message's id, new or of a stored one.")
    session_id: str | None = Field(None, description="The one shown; else the active one.")
    agent: AgentName = None
    agent_id: AgentName = Field(None, description="The same as agent.", examples=["tutor"])


class ChatSession(BaseModel):
    """The conversation that goes on; `confirmed` says that it is the one the client named."""

    session_id: str
    confirmed: bool


class ChatTool(BaseModel):
    """What a tool answered, or how it failed."""

    model_config = ConfigDict(from_attributes=True)
    name: str
    arguments: dict[str, Any]
    result: str
    success: bool
    duration_ms: float


class ChatDone(BaseModel):
    """The ids of what is stored: the answer, if there is one, and the message it answers."""

    session_id: str
    message_id: str | None = None
    asked_id: str
    warnings: Annotated[list[str], Field(description="What of the memory failed or was late.")] = []


class ChatAnswer(ChatSession, ChatDone):
    """All events of a turn in one object; without a model `message` is null and `notice` set."""

    message: str | None = None
    notice: str | None = None
    memory: Recall | None = Field(default=None, description="What was recalled, best first.")
    tool_results: list[ChatTool] = []
    receipt: ReceiptAnswer | None = None
    context: ContextAnswer | None = None


_SESSION = ChatSession(session_id=SESSION_ID, confirmed=True)
_DONE = ChatDone(session_id=SESSION_ID, message_id=MEMORY_ID, asked_id=MESSAGE_ID)
_WHOLE = ChatAnswer(**{**dict(_SESSION), **dict(_DONE)}, message="In Berlin.")
_EVENTS = (("session", _SESSION), ("token", {"text": "In Berlin."}), ("done", _DONE))
_RESPONSE = stream_response(
    "Events: session, memory, token …, receipt, then done or error.",
    _WHOLE,
    b"".join(event(*it) for it in _EVENTS),
)


@operation("chat", response_model=ChatAnswer, responses={200: _RESPONSE})
async def chat(ask: ChatAsk, request: Request, caller: Caller, accept: Accept = "*/*") -> Response:
    """Send a message to the agent, and get its answer as it comes, or in one JSON object.

    The message is stored before the model sees it. A session_id of another user or agent, or of
    a session that is gone, is ignored. A message sent again with the same asked_id, or an
    asked_id alone, is not stored again: it is answered if it was not, or its answer is repeated.
    """
    runtime: ChatRuntime = request.app.state.chats
    question = await to_thread(
        chat_question,
        caller.memory,
        ask.message,
        ask.asked_id,
        user=caller.user(ask.user),
        agent=ask.agent or ask.agent_id,
        session=ask.session_id,
    )
    reply = await runtime.earlier_reply(caller.memory, question)
    turn = _ChatTurn(runtime, caller.memory, question, request)
    events = turn.events(question.chat.id == ask.session_id, reply)
    if not wants_json(accept):
        return event_response(events, turn.problem, runtime.settings.heartbeat_s)
    try:
        whole = await _unless_gone(request, _whole(events))
        return Response(whole, media_type="application/json")
    except MemoristError as error:
        return await turn.problem(error)


@dataclass(frozen=True, slots=True)
class _ChatTurn:
    """One request to chat, and its events."""

    runtime: ChatRuntime
    memory: Memory
    question: ChatQuestion
    request: Request

    async def events(self, confirmed: bool, reply: ReplyState) -> AsyncGenerator[NamedEvent, None]:
        """The answer as it comes; the earlier one, if there is; without a model, its context."""
        yield "session", ChatSession(session_id=self.question.chat.id, confirmed=confirmed)
        if reply.answer is not None:
            if reply.answer.text:
                yield "token", {"text": reply.answer.text}
            yield "done", self._done(reply.answer.message_id)
            return
        if self.runtime.model is None:
            recall, context = await to_thread(self._preview)
            yield "memory", recall
            yield "context", context
            yield "notice", {"code": "no_model", "text": NO_MODEL}
            yield "receipt", context.receipt
            yield "done", self._done()
            return
        answer = self.runtime.answer(self.memory, self.question, reply.next_number)
        recall = Recall(hits=())
        async with aclosing(answer):
            async for agent_event in answer:
                for name, data in self._translated(agent_event):
                    if name == "memory":
                        recall = data
                    elif name == "receipt":
                        await to_thread(self._keep, recall, data, agent_event.message_id)
                    yield name, data

    def _translated(self, agent_event: Any) -> list[NamedEvent]:
        from memorist.agents import react

        match agent_event:
            case react.Recalled(recall):
                return [("memory", best_of(recall, self.question.id))]
            case react.Token(text):
                return [("token", {"text": text})]
            case react.ToolStarted(name, arguments):
                return [("tool_started", {"name": name, "arguments": dict(arguments)})]
            case react.ToolResult():
                return [("tool_result", ChatTool.model_validate(agent_event))]
            case react.Response(receipt=receipt, message_id=message_id, warnings=warnings):
                done = self._done(message_id, warnings)
                receipts = [("receipt", ReceiptAnswer.model_validate(receipt))] if receipt else []
                return [*receipts, ("done", done)]
        return []

    def _preview(self) -> tuple[Recall, ContextAnswer]:
        """Store the question; what is recalled for it, and what a model would be sent."""
        preview = self.runtime.preview(self.question)
        context = ContextAnswer.model_validate(preview)
        self._keep(preview.recall, context.receipt)
        return preview.recall, context

    def _keep(self, recall: Recall, receipt: ReceiptAnswer, message_id: str | None = None) -> None:
        """Store the receipt of this turn, without texts, and what was recalled for it."""
        it = self.question
        turn = TurnReceipt(
            session_id=it.chat.id,
            asked_id=it.id,
            message_id=message_id,
            receipt=receipt.model_dump(mode="json", exclude={"compression"}),
            recalled=tuple(RecalledId(hit.kind, hit.id, hit.score) for hit in recall.hits),
        )
        with suppress(MemoristError):  # the answer matters more
            self.memory.add_receipt(turn, user=it.chat.session.scope.user)

    def _done(self, message_id: str | None = None, warnings: tuple[str, ...] = ()) -> ChatDone:
        it = self.question
        return ChatDone(
            session_id=it.chat.id, message_id=message_id, asked_id=it.id, warnings=list(warnings)
        )

    async def problem(self, error: MemoristError) -> Response:
        """An error, with the ids by which the question can be asked again, if it is stored."""
        question, ids = self.question, {}
        scope = question.chat.session.scope
        with suppress(MemoristError):  # the store may be away, too
            if await to_thread(self.memory.messages.get, scope, [question.id]):
                ids = {"asked_id": question.id, "session_id": question.chat.id}
        return await on_error(self.request, error, **ids)


async def _unless_gone(request: Request, answer: Coroutine[Any, Any, bytes]) -> bytes:
    """The answer; when the client hangs up, the work on it ends, as that on a stream does."""
    work = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({work}, timeout=LISTEN_S))[0]:
            if await request.is_disconnected():
                return b""
        return work.result()
    finally:
        work.cancel()


async def _whole(events: AsyncGenerator[NamedEvent, None]) -> bytes:
    """All events of a turn as one JSON object."""
    fields: dict[str, Any] = {}
    tokens, tools = list[str](), list[ChatTool]()
    async for name, data in events:
        if name == "token":
            tokens.append(data["text"])
        elif name == "tool_started":
            tokens.clear()  # the answer is what follows the last of them
        elif name == "tool_result":
            tools.append(data)
        elif name == "notice":
            fields["notice"] = data["text"]
        elif name in ("session", "done"):
            fields |= dict(data)
        else:
            fields[name] = data
    message = "".join(tokens) if "notice" not in fields else None
    return ChatAnswer(**fields, message=message, tool_results=tools).model_dump_json().encode()
