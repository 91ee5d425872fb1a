"""MemoristMiddleware: memory for any agent of LangChain's `create_agent`.

    agent = create_agent(model, tools, middleware=[MemoristMiddleware(memory, user="ada")])

What is said is stored as it is said; notes, memories and the summary of older turns are put into
each request, and only there. Whatever fails, the agent answers; `state["memorist"]` and the log
say what was missing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired, TypedDict, Unpack

from memorist.errors import MissingExtraError

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        OmitFromSchema,
        PrivateStateAttr,
    )
    from langchain.chat_models import init_chat_model
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, ToolMessage
    from langgraph.errors import GraphBubbleUp
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.circuit_breaker import Careful
from memorist.agents.identity import NOBODY, Who, who_runs
from memorist.agents.overflow import is_overflow
from memorist.agents.pending_writes import Ledger
from memorist.agents.reply_recorder import Growing
from memorist.agents.request_builder import Filled, Filling
from memorist.agents.tool_use import failure, results_of
from memorist.aio import in_thread
from memorist.context.builder import DEADLINE_MS, ArticleSource, ContextBuilder
from memorist.context.window import Receipt, Window
from memorist.errors import ConfigError
from memorist.memory import Memory
from memorist.recall.daemon_pool import Task
from memorist.records.query import Recall

MOST_RECALLS = 256
GRACE_MS = 1_000.0  # recall keeps its own deadline; who is later by so much hangs, or loads a model
TIMES_LARGER = 4  # than the window, where a larger model does not say how large its own is

NEAR = "near the limit"
OVERFLOW = "the model refused the request as too long"

log = logging.getLogger("memorist.agents")
receipts = logging.getLogger("memorist.context")


class Options(TypedDict, total=False):
    """What a middleware may be made with besides; all have a default."""

    library: ArticleSource
    deadline_ms: float | None
    read_image: Callable[[str], str] | None
    larger_window: Window
    restore: bool
    trim_state: bool
    patience_s: float
    grow: bool


class Report(TypedDict, total=False):
    """What the state says of the memory: no word of a user is in it."""

    session: str | None
    window: int
    used: int
    parts: dict[str, int]
    saved: int
    moved: str
    late: list[str]
    failed: dict[str, str]


class MemoristState(AgentState[Any]):
    """The agent's state, and what became of its memory in the last run."""

    memorist: NotRequired[Annotated[Report, OmitFromSchema(input=True, output=False)]]
    memorist_summary: NotRequired[Annotated[str, PrivateStateAttr]]


class MemoristMiddleware(AgentMiddleware[MemoristState, Any, Any]):
    """Remembers what an agent and its user say, and puts what matters before the model.

    `user` and `session` may also come with each run; see the documents. `larger_model` is asked
    where the window is too small, or the model says that it is. Of the options, `library` quotes
    articles, `deadline_ms` is recall's, `restore=False` keeps out turns that only the log has,
    and `trim_state=False` leaves summarised messages in the agent's state. With `grow=True` a
    reply that streams is stored as it comes, unfinished until the model is done.
    """

    state_schema = MemoristState

    def __init__(
        self,
        memory: Memory,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        window: Window | None = None,
        larger_model: BaseChatModel | str | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        if unknown := options.keys() - Options.__annotations__.keys():
            raise ConfigError(f"MemoristMiddleware takes no {', '.join(sorted(unknown))}")
        if isinstance(larger_model, str):
            larger_model = init_chat_model(larger_model)
        self.memory = memory
        self.last_receipt: Receipt | None = None
        self._fixed = {"user": user, "agent": agent, "session": session}
        self._window = window or Window()
        self._larger = larger_model
        self._options = options
        patience = {"patience_s": options["patience_s"]} if "patience_s" in options else {}
        self._careful = Careful(**patience)
        self._ledger = Ledger(memory)
        self._recalls: OrderedDict[tuple[Who, str], Task[Recall]] = OrderedDict()
        self._lock = threading.Lock()

    def before_agent(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Store what was said, while what is remembered of it is looked for."""
        failed: dict[str, str] = {}
        who = self._begin(runtime, failed)
        if who is None:
            return {"memorist": {"failed": failed}}
        self._ask(who, state["messages"])
        self._keep(who, state["messages"], failed)
        return {"memorist": {"session": who.session, "failed": failed}}

    async def abefore_agent(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any]:
        return await in_thread(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Ask with what is remembered, and once more elsewhere if that was too much."""
        filled = self.fill(request)
        try:
            return self.answered(filled, self._asked(filled, handler))
        except Exception as error:
            again = self._after(error, request, filled)
            if again is None:
                raise
        return self.answered(again, self._asked(again, handler))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        filled = await in_thread(self.fill, request)
        try:
            return self.answered(filled, await self._aasked(filled, handler))
        except Exception as error:
            again = await in_thread(self._after, error, request, filled)
            if again is None:
                raise
        return self.answered(again, await self._aasked(again, handler))

    def after_model(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store the reply before anything is made of it."""
        failed: dict[str, str] = {}
        who = self._who(runtime, state)
        if who is not None:
            self._keep(who, state["messages"], failed)
        if not failed:
            return None
        said = state.get("memorist", {})
        return {"memorist": {**said, "failed": {**failed, **said.get("failed", {})}}}

    async def aafter_model(
        self, state: MemoristState, runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        return await in_thread(self.after_model, state, runtime)

    def after_agent(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what others have added meanwhile."""
        return self.after_model(state, runtime)

    async def aafter_agent(
        self, state: MemoristState, runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        return await in_thread(self.after_agent, state, runtime)

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Store what a tool returned or how it failed, and how long that took."""
        began = time.perf_counter()
        try:
            result = handler(request)
        except Exception as error:
            self._keep_failure(request, error, began)
            raise
        self._keep_results(request, result, began)
        return result

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        began = time.perf_counter()
        try:
            result = await handler(request)
        except Exception as error:
            await in_thread(self._keep_failure, request, error, began)
            raise
        await in_thread(self._keep_results, request, result, began)
        return result

    def _begin(self, runtime: Any, failed: dict[str, str]) -> Who | None:
        """Who speaks; without a session it is the active one, or a new one."""
        who = who_runs(self._fixed, runtime)
        if who is None:
            failed["user"] = NOBODY
            log.warning("the agent goes on without its memory: %s", NOBODY)
            return None
        if who.session is not None:
            return who
        user, agent = who.user, who.agent
        found = self._careful.run(
            "session", lambda: self.memory.session(user=user, agent=agent).id, None, failed
        )
        named = replace(who, session=found)
        self._ledger.move(who, named)
        return named

    def _who(self, runtime: Any, state: Any) -> Who | None:
        """Who speaks, in the session that the run began with."""
        who = who_runs(self._fixed, runtime)
        begun = state.get("memorist") or {} if isinstance(state, dict) else {}
        if who is None or who.session is not None:
            return who
        return replace(who, session=begun.get("session"))

    def _keep(self, who: Who, messages: Sequence[BaseMessage], failed: dict[str, str]) -> None:
        if self._ledger.note(who, messages):
            self._careful.run("store", lambda: self._ledger.write(who), 0, failed)

    def _keep_failure(self, request: ToolCallRequest, error: Exception, began: float) -> None:
        who = self._who(request.runtime, request.state)
        if who is None or isinstance(error, GraphBubbleUp):  # it waits for a person, or goes on
            return
        self._ledger.note_one(who, failure(request.tool_call, error, _ms_since(began)))
        self._careful.run("store", lambda: self._ledger.write(who), 0, {})

    def _keep_results(self, request: ToolCallRequest, result: Any, began: float) -> None:
        who = self._who(request.runtime, request.state)
        if who is None:
            return
        took_ms = _ms_since(began)

        def keep() -> int:  # a result may be nothing that can be stored
            for message in results_of(request.tool_call, result, took_ms):
                self._ledger.note_one(who, message)
            return self._ledger.write(who)

        self._careful.run("store", keep, 0, {})

    def _ask(self, who: Who, messages: Sequence[BaseMessage]) -> None:
        """Begin anew with the question, which may have been asked before in other words."""
        if (asked := _question(messages)) is not None and asked.id:
            self._ledger.ask(who, asked.id)
            with self._lock:
                self._recalls.pop((who, asked.id), None)
        self._recalling(who, messages)

    def _recalling(self, who: Who, messages: Sequence[BaseMessage]) -> Task[Recall]:
        """The search for what bears on the question; begun once for each."""
        asked = _question(messages)
        key = (who, (asked.id if asked is not None else None) or "")
        with self._lock:
            if key in self._recalls:
                return self._recalls[key]
            while len(self._recalls) >= MOST_RECALLS:
                self._recalls.popitem(last=False)
            text = str(asked.text) if asked is not None else ""
            task = self._careful.start(
                lambda: self._request(who, ContextBuilder, self._window).recall(text)
            )
            self._recalls[key] = task
            return task

    def _recalled(self, who: Who, messages: Sequence[BaseMessage]) -> Recall:
        """What was found by the deadline, wherever that ran from."""
        task, failed = self._recalling(who, messages), dict[str, str]()
        deadline_ms = self._options.get("deadline_ms", DEADLINE_MS)
        left_ms = None if deadline_ms is None else deadline_ms + GRACE_MS - task.elapsed_ms()
        task.wait(left_ms if left_ms is None else max(left_ms, 0) / 1_000)
        found = self._careful.take("recall", task, Recall(hits=(), late=("recall",)), failed)
        return replace(found, failed={**found.failed, **failed}) if failed else found

    def _request(self, who: Who, kind: type[Any], window: Window, **more: Any) -> Any:
        memory = self.memory
        scope = memory.scope(user=who.user, agent=who.agent, session=who.session)
        return memory.builder(kind, scope, window, given=dict(self._options), **more)

    def fill(self, request: ModelRequest[Any]) -> Filled:
        """The request with what is remembered; for the larger model where it must be.

        For subclasses: it goes before each question to the model.
        """
        filled = self._filled(request, self._window)
        if filled.tight and self._larger is not None:
            return self._moved(request, NEAR)
        return filled

    def _filled(self, request: ModelRequest[Any], window: Window) -> Filled:
        who, failed = self._who(request.runtime, request.state), dict[str, str]()
        if who is None or not request.messages:
            return Filled(request=request)

        def work() -> Filled:
            filling = self._request(
                who,
                Filling,
                window,
                recalled=lambda: self._recalled(who, request.messages),
                stored_id=lambda id_: self._ledger.stored_id(who, id_),
                prior=request.state.get("memorist_summary", ""),
            )
            filled: Filled = filling.fill(request)
            return filled

        filled = self._careful.run("context", work, Filled(request=request), failed)
        return replace(filled, failed=failed) if failed else filled

    def _moved(self, request: ModelRequest[Any], why: str) -> Filled:
        """The request for the larger model, in its window."""
        assert self._larger is not None
        filled = self._filled(request, self._larger_window(self._larger))
        log.warning("the agent moves to a model with a larger window: %s", why)
        return replace(filled, request=filled.request.override(model=self._larger), moved=why)

    def _larger_window(self, model: BaseChatModel) -> Window:
        if (given := self._options.get("larger_window")) is not None:
            return given
        told = (model.profile or {}).get("max_input_tokens")
        size = told or self._window.max_tokens * TIMES_LARGER
        return replace(self._window, max_tokens=size)

    def _after(self, error: Exception, request: ModelRequest[Any], was: Filled) -> Filled | None:
        """What to ask instead when the model says that it was too much; None for other errors."""
        if was.moved or not is_overflow(error):
            return None
        if self._larger is not None:
            return self._moved(request, OVERFLOW)
        used = was.receipt.used if was.receipt is not None else 0
        small = max(used // 2, self._window.answer_tokens + 1)
        less = self._filled(request, replace(self._window, max_tokens=small))
        if less.receipt is None or less.receipt.used >= used:
            return None
        log.warning("the model takes in less than its window says: %d tokens are too much", used)
        return replace(less, gone=())

    def _asked(
        self, filled: Filled, handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        growing = self._growing(filled.request)
        return growing.ask(filled.request, handler) if growing else handler(filled.request)

    async def _aasked(
        self, filled: Filled, handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        growing = self._growing(filled.request)
        return await (growing.aask(filled.request, handler) if growing else handler(filled.request))

    def _growing(self, request: ModelRequest[Any]) -> Growing | None:
        """Who stores the reply as it comes, if that is wanted."""
        who = self._who(request.runtime, request.state) if self._options.get("grow") else None
        if who is None:
            return None
        return Growing(who, self._ledger, self._careful, self.names(request))

    def names(self, request: ModelRequest[Any]) -> Callable[[], str] | None:
        """Who gives a reply that is stored as it comes its id; else the model does.

        For subclasses: it goes before each such reply.
        """
        return None

    def answered(self, filled: Filled, response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
        """The reply, and what the state is told. For subclasses: it follows each answer."""
        receipt = filled.receipt
        report: Report = {"failed": dict(filled.failed)}
        update: dict[str, Any] = {}
        if receipt is not None:
            self.last_receipt = receipt
            receipts.info("%s", receipt)
            report = _report(receipt, filled)
            update["memorist_summary"] = filled.summary
        who = self._who(filled.request.runtime, filled.request.state)
        report["session"] = who.session if who is not None else None
        before: Any = filled.request.state.get("memorist") or {}
        report["failed"] = {
            **report["failed"],
            **before.get("failed", {}),
        }  # the first is the cause
        update["memorist"] = report
        update["messages"] = [RemoveMessage(id=id_) for id_ in filled.gone]
        return ExtendedModelResponse(model_response=response, command=Command(update=update))


def _question(messages: Sequence[BaseMessage]) -> HumanMessage | None:
    return next((it for it in reversed(messages) if isinstance(it, HumanMessage)), None)


def _report(receipt: Receipt, filled: Filled) -> Report:
    made = receipt.compression
    return {
        "window": receipt.window,
        "used": receipt.used,
        "parts": {part.name: part.tokens for part in receipt.parts},
        "saved": made.saved if made is not None else 0,
        "moved": filled.moved,
        "late": list(receipt.late),
        "failed": {**receipt.failed, **filled.failed},
    }


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1_000
