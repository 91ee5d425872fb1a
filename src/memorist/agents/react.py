"""ReactAgent: an agent that reasons, uses tools, and remembers."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import chain, dropwhile
from typing import Any

from memorist.errors import needs_extra

with needs_extra("agents"):
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware, ToolCallRequest, ToolErrorMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
    from langchain_core.tools import StructuredTool, ToolException

from memorist.agents.circuit_breaker import PATIENCE_S
from memorist.agents.messages import tool_messages
from memorist.agents.middleware import (
    AToolHandler,
    MemoristMiddleware,
    MemoryRun,
    ToolAnswer,
    ToolHandler,
)
from memorist.agents.pending_writes import Identity
from memorist.agents.tool_schema import McpResult, McpTool, ToolCaller
from memorist.config import Settings
from memorist.context.builder import ArticleSource
from memorist.context.window import Receipt, Window
from memorist.errors import InvalidError
from memorist.forks import fork_safe
from memorist.memory import Memory
from memorist.providers.images import encode_image
from memorist.records.message import UNSET
from memorist.records.query import Recall
from memorist.records.values import new_id

ERROR_CHARS = 1_000
MOST_MESSAGES, MOST_SESSIONS = 50, 1_000  # that are kept in this process
MODES = ["messages", "custom", "values"]
MOST_STEPS = 16  # of a task, in case its model never stops calling tools
NO_STREAM = "nostream"  # LangGraph's tag for messages that the graph's streams leave out
NO_MEMORY = "memory: there is none; the agent answers without"

log = logging.getLogger("memorist.agents")


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was recalled for the question; streamed with `stream_recall` only."""

    recall: Recall


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the model's reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool was called."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returned, or how it failed."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    success: bool
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The agent's answer, and what it took.

    `receipt` lists the tokens of the last request to the model; it is None if the memory failed.
    `recalled` are the ids of the memories in it. `warnings` name what of the memory failed or was
    late, without user content. `message_id` and `asked_id` are the ids of the answer and of the
    question in the log.
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
"""What a stream yields; the last one is the response."""


@dataclass(slots=True)
class AgentRun(MemoryRun):
    """The context of one run, its newest state, and results of tools by the ids of their calls."""

    state: Mapping[str, Any] = field(default_factory=dict)
    results: dict[str, list[ToolResult]] = field(default_factory=dict)


class ReactAgent:
    """LangChain's `create_agent` with a memory, and a response that reports what the memory gave.

        agent = ReactAgent("openai:gpt-5", memory, user="ada", tools=[search])
        print(agent.process_message("Where did I leave my bike?").message)

    `model` is a LangChain chat model or its name. With `memory=None` the agent answers without
    one. Without a `user` each call names one. `middleware` is your own, after the memory's; with
    `stream_recall`, streams begin with a `Recalled`. The other options are those of
    `MemoristMiddleware`. `graph` is the graph that `create_agent` made.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        memory: Memory | None,
        *,
        user: str | None = None,
        agent: str | None = "assistant",
        tools: Sequence[Any] = (),
        system: str = "",
        window: Window | None = None,
        larger_model: BaseChatModel | str | None = None,
        larger_window: Window | None = None,
        library: ArticleSource | None = None,
        deadline_ms: float | None = UNSET,
        read_image: Callable[[str], str] | None = encode_image,
        store_partial_replies: bool = False,
        patience_s: float = PATIENCE_S,
        middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
        stream_recall: bool = False,
    ) -> None:
        self.memory, self.user, self.agent = memory, user, agent
        self._stream_recall = stream_recall
        # The newest messages of conversations whose memory failed, so that they can go on.
        self._unstored: OrderedDict[Identity, list[BaseMessage]] = OrderedDict()
        self._lock = fork_safe(threading.Lock())
        ours: list[AgentMiddleware[Any, Any, Any]] = [_ToolEvents()]
        if memory is None:
            log.warning("%s", NO_MEMORY)
        else:
            remembering = MemoristMiddleware(
                memory,
                window=window,
                larger_model=larger_model,
                larger_window=larger_window,
                library=library,
                deadline_ms=deadline_ms,
                read_image=read_image,
                store_partial_replies=store_partial_replies,
                patience_s=patience_s,
                user=user,
                agent=agent,
            )
            ours.insert(0, remembering)
        self.graph: Any = create_agent(
            model,
            list(tools),
            system_prompt=system or None,
            middleware=[*ours, *middleware],
            context_schema=AgentRun,
        )

    def process_message(self, text: str, session_id: str | None = None) -> Response:
        """Answer the user, in this session or their active one; raises the model's errors."""
        run, messages = self._start(text, session_id)
        return self._response(self.graph.invoke(messages, context=run), run)

    async def aprocess_message(self, text: str, session_id: str | None = None) -> Response:
        """`process_message`, for asyncio."""
        run, messages = self._start(text, session_id)
        return self._response(await self.graph.ainvoke(messages, context=run), run)

    def stream(
        self,
        text: str,
        session_id: str | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        asked_id: str | None = None,
        next_reply: int | None = None,
    ) -> Iterator[Event]:
        """The model's reply piece by piece and the events of tools; at the end the response.

        `asked_id` is the message's id in the log, to ask it again. `next_reply` is then the number
        of replies that are complete: one that broke off is replaced.
        """
        run, messages = self._start(text, session_id, user, agent, asked_id, next_reply)
        for mode, data in self.graph.stream(messages, context=run, stream_mode=MODES):
            if (event := _event(mode, data, run)) is not None:
                yield event
        yield self._response(run.state, run)

    async def astream(
        self,
        text: str,
        session_id: str | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        asked_id: str | None = None,
        next_reply: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """`stream`, for asyncio."""
        run, messages = self._start(text, session_id, user, agent, asked_id, next_reply)
        parts = self.graph.astream(messages, context=run, stream_mode=MODES)
        async with aclosing(parts):  # a caller who stops listening ends the work at once
            async for mode, data in parts:
                if (event := _event(mode, data, run)) is not None:
                    yield event
        yield self._response(run.state, run)

    def _start(
        self,
        text: str,
        session_id: str | None,
        user: str | None = None,
        agent: str | None = None,
        asked_id: str | None = None,
        next_reply: int | None = None,
    ) -> tuple[AgentRun, dict[str, Any]]:
        """The context of a run, and its input."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidError("the agent needs a text to answer")
        if not (user_id := self.user or user):
            raise InvalidError("no user is named; give the ReactAgent or the call a user")
        run = AgentRun(user_id, self.agent or agent, session_id, asked_id or new_id())
        run.next_reply, run.stream_recall = next_reply, self._stream_recall
        question = HumanMessage(text, id=run.asked_id)
        with self._lock:
            earlier = self._unstored.get(run.identity, [])
        return run, {"messages": [*earlier, question]}

    def _response(self, state: Mapping[str, Any], run: AgentRun) -> Response:
        messages, report = state["messages"], state.get("memorist")
        if report is None:
            warnings = [NO_MEMORY]
        else:
            warnings = [f"{what}: {why}" for what, why in report.get("failed", {}).items()]
        self._keep(run.identity, messages[-MOST_MESSAGES:] if warnings else ())
        late = [f"{what}: late, and not waited for" for what in (report or {}).get("late", ())]
        replies = [message for message in messages if isinstance(message, AIMessage)]
        results, calls = run.results, [call["id"] or "" for it in replies for call in it.tool_calls]
        told = [results[id_].pop(0) for id_ in calls if results.get(id_)]
        return Response(
            message=str(replies[-1].text) if replies else "",
            tool_results=(*chain.from_iterable(results.values()), *told),  # some calls are gone
            session_id=(report or {}).get("session") or run.session_id,
            receipt=run.receipt,
            recalled=run.receipt.part("memories").ids if run.receipt else (),
            warnings=(*warnings, *late),
            message_id=replies[-1].id if replies else None,
            asked_id=run.asked_id,
        )

    def _keep(self, identity: Identity, newest: Sequence[BaseMessage]) -> None:
        """Keep messages that the log may not have, from one of the user's on."""
        kept = list(dropwhile(lambda message: not isinstance(message, HumanMessage), newest))
        with self._lock:
            self._unstored.pop(identity, None)
            if kept:
                self._unstored[identity] = kept
            while len(self._unstored) > MOST_SESSIONS:
                self._unstored.popitem(last=False)


class TaskAgent:
    """An agent without a memory that does one task after another.

        agent = create_react_agent(await manager.list_tools(), manager, model)
        print((await agent.execute("Store that Ada lives in Berlin."))["messages"][-1].text)

    `tools` are those of an MCP server, which the manager calls, and any other tools of LangChain.
    `model` is a LangChain chat model or its name; without one it is that of `MEMORIST_MODEL`.
    """

    def __init__(
        self,
        tools: Iterable[Any],
        mcp_manager: ToolCaller,
        model: BaseChatModel | str | None = None,
        *,
        system: str = "",
    ) -> None:
        if not (model := model or Settings.from_environment().model):
            raise InvalidError("the agent needs a model: give one, or set MEMORIST_MODEL")
        known = [_callable(tool, mcp_manager) for tool in tools]
        self.graph: Any = create_agent(
            model, known, system_prompt=system or None, checkpointer=False
        )

    async def execute(self, prompt: str) -> dict[str, Any]:
        """Do what the prompt says; the last of the `messages` of the result is the answer."""
        # Its messages appear in no checkpoint, and in no stream except those of subgraphs.
        config = {"recursion_limit": MOST_STEPS, "tags": [NO_STREAM]}
        result: dict[str, Any] = await self.graph.ainvoke({"messages": [("user", prompt)]}, config)
        return result


create_react_agent = TaskAgent


def _callable(tool: Any, manager: ToolCaller) -> Any:
    """A tool of an MCP server as a LangChain tool; a tool of another kind as it is."""
    if not isinstance(tool, McpTool) and not hasattr(tool, "inputSchema"):
        return tool
    tool = McpTool.of(tool)

    async def call(**arguments: Any) -> str:
        result = McpResult.of(await manager.call_tool(tool.name, arguments))
        if result.failed:
            raise ToolException(result.text)
        return result.text

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        coroutine=call,
        args_schema=dict(tool.schema),
        handle_tool_error=True,
    )


class _ToolEvents(ToolErrorMiddleware[Any, Any]):
    """Streams the start and end of tools; an exception becomes an error text for the model."""

    def __init__(self) -> None:
        super().__init__(lambda error, _: f"{type(error).__name__}: {error}"[:ERROR_CHARS])

    def wrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        began = _started(request)
        return _ended(request, super().wrap_tool_call(request, handler), began)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: AToolHandler) -> ToolAnswer:
        began = _started(request)
        return _ended(request, await super().awrap_tool_call(request, handler), began)


def _started(request: ToolCallRequest) -> float:
    call = request.tool_call
    request.runtime.stream_writer(ToolStarted(call["name"], call["args"]))
    return time.perf_counter()


def _ended(request: ToolCallRequest, answer: ToolAnswer, began: float) -> ToolAnswer:
    call, run = request.tool_call, request.runtime.context
    took_ms = round((time.perf_counter() - began) * 1_000, 3)
    message = next(iter(tool_messages(answer)), None)  # None if it only changed the state
    text, success = (str(message.text), message.status != "error") if message else ("", True)
    result = ToolResult(call["name"], call["args"], text, success, took_ms)
    request.runtime.stream_writer(result)
    if isinstance(run, AgentRun):
        run.results.setdefault(call["id"] or "", []).append(result)
    return answer


def _event(mode: str, data: Any, run: AgentRun) -> Event | None:
    """The event for what LangGraph streams; None for the replies of models inside of tools."""
    if mode == "values":
        run.state = data
        return None
    if mode == "custom":
        event = Recalled(data) if isinstance(data, Recall) else data
        return event if isinstance(event, Recalled | ToolStarted | ToolResult) else None
    message, metadata = data
    is_reply = isinstance(message, AIMessage) and metadata.get("langgraph_node") == "model"
    is_again = message.id in run.named  # LangGraph streams it once more, under its other id
    return Token(str(message.text)) if is_reply and message.text and not is_again else None
