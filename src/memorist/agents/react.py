"""ReactAgent: an agent that reasons, uses tools, and remembers.

    agent = ReactAgent("openai:gpt-5", memory, user="ada", tools=[search])
    print(agent.process_message("Where did I leave my bike?").message)

LangChain's `create_agent` with `MemoristMiddleware`, and an answer that says what the memory gave
and cost. Whatever fails of the memory, the agent answers, and `warnings` say so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Unpack

from memorist.errors import MissingExtraError

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import ToolErrorMiddleware
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.middleware import MemoristMiddleware
from memorist.agents.middleware import Options as MemoryOptions
from memorist.agents.replies import reply_id
from memorist.agents.request_builder import Filled
from memorist.context.window import Receipt, Window
from memorist.errors import ConfigError, InvalidError
from memorist.memory import Memory
from memorist.records.ids import new_id
from memorist.records.query import Recall

ERROR_CHARS = 1_000
MOST_MESSAGES, MOST_SESSIONS = 50, 1_000  # that are kept in this process
Answer = ToolMessage | Command[Any]
MODES = ["messages", "custom", "values"]
NO_MEMORY = "memory: there is none; the agent answers without"

log = logging.getLogger("memorist.agents")


class Options(MemoryOptions, total=False):
    """What an agent may be made with besides; those of `MemoristMiddleware`, and more."""

    window: Window
    larger_model: BaseChatModel | str
    middleware: Sequence[AgentMiddleware[Any, Any, Any]]
    tell_recall: bool


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is remembered of the question; a stream gives it where `tell_recall` asks for it."""

    recall: Recall


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of what the model says."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is at work."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, or how it failed."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    success: bool
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The agent's answer, and what it took.

    `receipt` says what was put before the model the last time, and its cost to the token; it is
    None where the memory failed. `recalled` are the ids of the memories in it. `warnings` name
    what of the memory failed or was late; nobody's words are in them. `message_id` and
    `asked_id` are the answer's and the question's in the log.
    """

    message: str
    tool_results: tuple[ToolResult, ...] = ()
    session_id: str | None = None
    receipt: Receipt | None = None
    recalled: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    message_id: str | None = None
    asked_id: str | None = None


Event = Recalled | Token | ToolStarted | ToolResult | Response
"""What a stream gives, and at its end the response."""


@dataclass(slots=True)
class Turn:
    """One run: whose it is, and what it leaves behind; LangGraph hands it to all who take part.

    Where `replied` says how many replies the question has, those that are stored as they come are
    named after it, the next by that number.
    """

    user_id: str
    session_id: str | None
    asked_id: str = field(default_factory=new_id)
    receipt: Receipt | None = None
    tells_recall: bool = False
    replied: int | None = None
    named: set[str] = field(default_factory=set)
    rounds: dict[str, int] = field(default_factory=dict)
    results: list[tuple[tuple[int, int], ToolResult]] = field(default_factory=list)

    def name_reply(self) -> str:
        """The id of the next reply."""
        number = self.replied or 0
        id_ = reply_id(self.asked_id, number)
        self.replied = number + 1
        self.named.add(id_)
        return id_


class ReactAgent:
    """An agent with a memory, for one user.

    `model` is a chat model of LangChain's or its name. Without a `memory` it answers all the same.
    Of the options, `window` is how much the model takes in, `larger_model` is asked where that is
    too little, `library` quotes articles, and `middleware` is your own. `graph` is what
    `create_agent` made.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        memory: Memory | None,
        *,
        user: str,
        agent: str | None = "assistant",
        tools: Sequence[Any] = (),
        system: str = "",
        **options: Unpack[Options],
    ) -> None:
        if unknown := options.keys() - Options.__annotations__.keys():
            raise ConfigError(f"ReactAgent takes no {', '.join(sorted(unknown))}")
        self.memory = memory
        self.user = user
        self._lately = _Lately()
        given: dict[str, Any] = dict(options)
        own, self._tells_recall = given.pop("middleware", ()), given.pop("tell_recall", False)
        watching: list[Any] = [_Tools()]
        if memory is None:
            log.warning("%s", NO_MEMORY)
        else:
            watching.insert(0, _Remembering(memory, user=user, agent=agent, **given))
        self.graph: Any = create_agent(
            model,
            list(tools),
            system_prompt=system or None,
            middleware=[*watching, *own],
            context_schema=Turn,
        )

    def process_message(self, text: str, session_id: str | None = None) -> Response:
        """Answer the user, in the session named or else their active one with this agent.

        Errors of the model are raised; what the user said is stored by then.
        """
        turn = Turn(self.user, session_id)
        return self._response(self.graph.invoke(self._asked(text, turn), context=turn), turn)

    async def aprocess_message(self, text: str, session_id: str | None = None) -> Response:
        """`process_message`, for asyncio."""
        turn = Turn(self.user, session_id)
        state = await self.graph.ainvoke(self._asked(text, turn), context=turn)
        return self._response(state, turn)

    def stream(
        self,
        text: str,
        session_id: str | None = None,
        *,
        asked_id: str | None = None,
        replied: int | None = None,
    ) -> Iterator[Event]:
        """What the model says, piece by piece, and what tools do; at the end the response.

        With an `asked_id`, which is the message's in the log, it may be asked again. Replies that
        grow are then named by it if `replied` says how many are whole: one that broke off is
        said anew in its place.
        """
        turn, state = self._turn(session_id, asked_id, replied), dict[str, Any]()
        asked = self._asked(text, turn)
        for mode, data in self.graph.stream(asked, context=turn, stream_mode=MODES):
            if mode == "values":
                state = data
            elif (event := _event(mode, data, turn)) is not None:
                yield event
        yield self._response(state, turn)

    async def astream(
        self,
        text: str,
        session_id: str | None = None,
        *,
        asked_id: str | None = None,
        replied: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """`stream`, for asyncio."""
        turn, state = self._turn(session_id, asked_id, replied), dict[str, Any]()
        asked = self._asked(text, turn)
        told = self.graph.astream(asked, context=turn, stream_mode=MODES)
        async with aclosing(told):  # whoever stops listening ends the work at once
            async for mode, data in told:
                if mode == "values":
                    state = data
                elif (event := _event(mode, data, turn)) is not None:
                    yield event
        yield self._response(state, turn)

    def _turn(self, session_id: str | None, asked_id: str | None, replied: int | None) -> Turn:
        return Turn(
            self.user,
            session_id,
            asked_id=asked_id or new_id(),
            replied=replied,
            tells_recall=self._tells_recall,
        )

    def _asked(self, text: str, turn: Turn) -> dict[str, Any]:
        if not isinstance(text, str) or not text.strip():
            raise InvalidError("the agent needs a text to answer")
        return {
            "messages": [*self._lately.said(turn.session_id), HumanMessage(text, id=turn.asked_id)]
        }

    def _response(self, state: Mapping[str, Any], turn: Turn) -> Response:
        report = state.get("memorist")
        forgetful = report is None or report.get("failed")
        self._lately.keep(turn.session_id, state["messages"] if forgetful else ())
        return _response(state["messages"], report, turn)


class _Lately:
    """What was said while the memory failed, so that the conversation goes on without it."""

    def __init__(self) -> None:
        self._said: OrderedDict[str | None, list[BaseMessage]] = OrderedDict()
        self._lock = threading.Lock()

    def said(self, session_id: str | None) -> list[BaseMessage]:
        with self._lock:
            return self._said.get(session_id, [])

    def keep(self, session_id: str | None, messages: Sequence[BaseMessage]) -> None:
        """The newest of them, from something that the user said; without any, the log has all."""
        last = messages[-MOST_MESSAGES:]
        first = next((at for at, it in enumerate(last) if isinstance(it, HumanMessage)), len(last))
        with self._lock:
            self._said.pop(session_id, None)
            if first < len(last):
                self._said[session_id] = list(last[first:])
            while len(self._said) > MOST_SESSIONS:
                self._said.popitem(last=False)


class _Remembering(MemoristMiddleware):
    """The middleware, which leaves the receipt of each run with that run."""

    def fill(self, request: ModelRequest[Any]) -> Filled:
        filled = super().fill(request)
        turn = request.runtime.context
        if isinstance(turn, Turn) and turn.tells_recall and filled.recall is not None:
            turn.tells_recall = False  # once for each question
            request.runtime.stream_writer(Recalled(filled.recall))
        return filled

    def names(self, request: ModelRequest[Any]) -> Callable[[], str] | None:
        turn = request.runtime.context
        named = isinstance(turn, Turn) and turn.replied is not None
        return turn.name_reply if named else None

    def answered(self, filled: Filled, response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
        if isinstance(turn := filled.request.runtime.context, Turn):
            turn.receipt = filled.receipt
        return super().answered(filled, response)


class _Tools(ToolErrorMiddleware[Any, Any]):
    """Tells of tools as they start and end; one that raises answers the model with its error."""

    def __init__(self) -> None:
        super().__init__(_why)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
        began = _started(request)
        return _ended(request, super().wrap_tool_call(request, handler), began)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        began = _started(request)
        return _ended(request, await super().awrap_tool_call(request, handler), began)


def _why(error: Exception, _: ToolCallRequest) -> str:
    return f"{type(error).__name__}: {error}"[:ERROR_CHARS]


def _started(request: ToolCallRequest) -> float:
    call = request.tool_call
    request.runtime.stream_writer(ToolStarted(call["name"], call["args"]))
    return time.perf_counter()


def _ended(request: ToolCallRequest, result: Answer, began: float) -> Answer:
    call, turn, said = request.tool_call, request.runtime.context, _said(result)
    took_ms = round((time.perf_counter() - began) * 1_000, 3)
    told = ToolResult(
        name=call["name"],
        arguments=call["args"],
        result=str(said.text) if said else "",
        success=said is None or said.status != "error",
        duration_ms=took_ms,
    )
    request.runtime.stream_writer(told)
    if isinstance(turn, Turn):
        turn.results.append((_place(turn, request), told))
    return result


def _place(turn: Turn, request: ToolCallRequest) -> tuple[int, int]:
    """Which call of which round it is: those of one round run at the same time."""
    asked = [it for it in request.state["messages"] if isinstance(it, AIMessage)][-1]
    ids = [call["id"] for call in asked.tool_calls]
    nth = turn.rounds.setdefault(asked.id or "", len(turn.rounds))
    return nth, ids.index(request.tool_call["id"])


def _said(result: Answer) -> ToolMessage | None:
    """The message that a tool answered with, if it did not only change the state."""
    if isinstance(result, Command):
        update = result.update if isinstance(result.update, Mapping) else {}
        found = [one for one in update.get("messages") or () if isinstance(one, ToolMessage)]
        return found[0] if found else None
    return result


def _event(mode: str, data: Any, turn: Turn) -> Event | None:
    """What is worth telling of what LangGraph streams: not what models say inside of tools."""
    if mode == "custom":
        return data if isinstance(data, Recalled | ToolStarted | ToolResult) else None
    message, about = data
    spoken = isinstance(message, AIMessage) and about.get("langgraph_node") == "model"
    if message.id in turn.named:  # LangGraph tells it once more, as it has got another name
        return None
    return Token(str(message.text)) if spoken and message.text else None


def _response(
    messages: Sequence[BaseMessage], report: Mapping[str, Any] | None, turn: Turn
) -> Response:
    said = [message for message in messages if isinstance(message, AIMessage)]
    return Response(
        message=str(said[-1].text) if said else "",
        tool_results=tuple(told for _, told in sorted(turn.results, key=itemgetter(0))),
        session_id=(report or {}).get("session") or turn.session_id,
        receipt=turn.receipt,
        recalled=turn.receipt.part("memories").ids if turn.receipt else (),
        warnings=_warnings(report),
        message_id=said[-1].id if said else None,
        asked_id=turn.asked_id,
    )


def _warnings(report: Mapping[str, Any] | None) -> tuple[str, ...]:
    if report is None:
        return (NO_MEMORY,)
    failed = [f"{what}: {why}" for what, why in report.get("failed", {}).items()]
    late = [f"{what}: late, and not waited for" for what in report.get("late", ())]
    return (*failed, *late)
