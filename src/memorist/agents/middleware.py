"""MemoristMiddleware: memory for any agent of LangChain's `create_agent`.

    agent = create_agent(model, tools, middleware=[MemoristMiddleware(memory, user="ada")])

Messages are stored as they come; notes, memories and the summary of older turns are put into each
request, and only there. Whatever fails of the memory, the agent answers; `state["memorist"]` and
the log say what was missing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar

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
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.circuit_breaker import PATIENCE_S, CircuitBreaker
from memorist.agents.messages import field_of, tool_failure, tool_messages, tool_results
from memorist.agents.overflow import is_overflow
from memorist.agents.pending_writes import Identity, PendingWrites
from memorist.agents.reply_recorder import ReplyRecorder
from memorist.agents.request_builder import BuiltRequest, RequestBuilder
from memorist.aio import in_thread
from memorist.context.builder import DEADLINE_MS, ArticleSource, ContextBuilder
from memorist.context.window import Receipt, Window
from memorist.memory import Memory
from memorist.providers.daemon_pool import Task
from memorist.providers.images import encode_image
from memorist.records.query import Recall

MOST_RECALLS = 256
GRACE_MS = 1_000.0  # recall keeps its own deadline; one that is later by so much hangs
TIMES_LARGER = 4  # than the window, where a larger model does not say how large its own is
NO_USER = (
    "no user is named: give MemoristMiddleware a user=, or the run a user_id in its context or "
    "in config['configurable']"
)
NEAR = "near the limit"
OVERFLOW = "the model refused the request as too long"

log = logging.getLogger("memorist.agents")
receipts = logging.getLogger("memorist.context")
B = TypeVar("B", bound=ContextBuilder)


class MemoryReport(TypedDict, total=False):
    """What the state says about the memory; it has no user content."""

    session: str | None
    window: int
    used: int
    parts: dict[str, int]
    saved: int
    moved: str
    late: list[str]
    failed: dict[str, str]


class MemoristState(AgentState[Any]):
    """The agent's state, with the report on its memory in the last run."""

    memorist: NotRequired[Annotated[MemoryReport, OmitFromSchema(input=True, output=False)]]
    memorist_summary: NotRequired[Annotated[str, PrivateStateAttr]]


class MemoristMiddleware(AgentMiddleware[MemoristState, Any, Any]):
    """Stores what an agent and its user say, and puts what is remembered before the model.

    `user`, `agent` and `session` may also come with each run, as `user_id`, `agent_id` and
    `session_id` or `thread_id` of its context or configuration. `larger_model` is asked where the
    window is too small, or the model says that it is. `library` quotes articles, `deadline_ms` is
    recall's, `restore=False` leaves out turns that only the log has, and `trim_state=False` keeps
    summarised messages in the agent's state. With `store_partial_replies` a reply that streams is
    stored as it comes, unfinished until the model is done. No call to the memory is waited for
    longer than `patience_s`.
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
        larger_window: Window | None = None,
        library: ArticleSource | None = None,
        deadline_ms: float | None = DEADLINE_MS,
        read_image: Callable[[str], str] | None = encode_image,
        restore: bool = True,
        trim_state: bool = True,
        store_partial_replies: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__()
        if isinstance(larger_model, str):
            larger_model = init_chat_model(larger_model)
        self.memory = memory
        self.last_receipt: Receipt | None = None
        self._fixed = Identity(user or "", agent, session)
        self._window = window or Window()
        self._larger = larger_model
        self._larger_window = larger_window
        self._deadline_ms = deadline_ms
        self._store_partial_replies = store_partial_replies
        self._restore, self._trim_state = restore, trim_state
        self._context_options = {
            "library": library,
            "deadline_ms": deadline_ms,
            "read_image": read_image,
        }
        self._breaker = CircuitBreaker(patience_s)
        self._writes = PendingWrites(memory)
        self._recalls: OrderedDict[tuple[Identity, str], Task[Recall]] = OrderedDict()
        self._lock = threading.Lock()

    def before_agent(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Store the new messages, while recall is running."""
        failed: dict[str, str] = {}
        identity = self._begin(runtime, failed)
        if identity is None:
            return {"memorist": {"failed": failed}}
        self._start_recall(identity, state["messages"])
        self._store(identity, state["messages"], failed)
        return {"memorist": {"session": identity.session, "failed": failed}}

    async def abefore_agent(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any]:
        return await in_thread(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Ask the model with what is remembered; once more, with less, if that was too long."""
        built = self.build(request)
        try:
            return self.answered(built, self._ask(built, handler))
        except Exception as error:
            again = self._retry(error, request, built)
            if again is None:
                raise
        return self.answered(again, self._ask(again, handler))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        built = await in_thread(self.build, request)
        try:
            return self.answered(built, await self._aask(built, handler))
        except Exception as error:
            again = await in_thread(self._retry, error, request, built)
            if again is None:
                raise
        return self.answered(again, await self._aask(again, handler))

    def after_model(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store the reply before its tools run."""
        failed: dict[str, str] = {}
        identity = self._identity(runtime, state)
        if identity is not None:
            self._store(identity, state["messages"], failed)
        if not failed:
            return None
        said = state.get("memorist", {})
        return {"memorist": {**said, "failed": {**failed, **said.get("failed", {})}}}

    async def aafter_model(
        self, state: MemoristState, runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        return await in_thread(self.after_model, state, runtime)

    def after_agent(self, state: MemoristState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store what other middleware has added."""
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
            self._store_failure(request, error, began)
            raise
        self._store_results(request, result, began)
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
            await in_thread(self._store_failure, request, error, began)
            raise
        await in_thread(self._store_results, request, result, began)
        return result

    def _begin(self, runtime: Any, failed: dict[str, str]) -> Identity | None:
        """The identity of a run that begins; without a session, its active one or a new one."""
        identity = identity_of_run(self._fixed, runtime)
        if identity is None:
            failed["user"] = NO_USER
            log.warning("the agent goes on without its memory: %s", NO_USER)
            return None
        if identity.session is not None:
            return identity
        user, agent = identity.user, identity.agent
        session = self._breaker.run(
            "session", lambda: self.memory.session(user=user, agent=agent).id, None, failed
        )
        with_session = replace(identity, session=session)
        self._writes.move(identity, with_session)
        return with_session

    def _identity(self, runtime: Any, state: Any) -> Identity | None:
        """The identity of a run, with the session that it began with."""
        identity = identity_of_run(self._fixed, runtime)
        report = state.get("memorist") or {} if isinstance(state, dict) else {}
        if identity is None or identity.session is not None:
            return identity
        return replace(identity, session=report.get("session"))

    def _store(
        self, identity: Identity, messages: Sequence[BaseMessage], failed: dict[str, str]
    ) -> None:
        if self._writes.add(identity, messages):
            self._breaker.run("store", lambda: self._writes.write(identity), 0, failed)

    def _store_failure(self, request: ToolCallRequest, error: Exception, began: float) -> None:
        identity = self._identity(request.runtime, request.state)
        if identity is None or isinstance(error, GraphBubbleUp):  # an interrupt, not a failure
            return
        message = tool_failure(request.tool_call, error, _ms_since(began))
        self._writes.add_converted(identity, message)
        self._breaker.run("store", lambda: self._writes.write(identity), 0, {})

    def _store_results(self, request: ToolCallRequest, result: Any, began: float) -> None:
        identity = self._identity(request.runtime, request.state)
        if identity is None:
            return
        took_ms = _ms_since(began)

        def store() -> int:  # in here, as a result may be nothing that can be stored
            for message in tool_results(request.tool_call, tool_messages(result), took_ms):
                self._writes.add_converted(identity, message)
            return self._writes.write(identity)

        self._breaker.run("store", store, 0, {})

    def _start_recall(self, identity: Identity, messages: Sequence[BaseMessage]) -> None:
        """Begin the recall for the question, also where it was asked before in other words."""
        if (question := _question(messages)) is not None and question.id:
            self._writes.recheck(identity, question.id)
            with self._lock:
                self._recalls.pop((identity, question.id), None)
        self._recall_task(identity, messages)

    def _recall_task(self, identity: Identity, messages: Sequence[BaseMessage]) -> Task[Recall]:
        """The recall for the question; one for each."""
        question = _question(messages)
        key = (identity, (question.id if question is not None else None) or "")
        with self._lock:
            if key in self._recalls:
                return self._recalls[key]
            while len(self._recalls) >= MOST_RECALLS:
                self._recalls.popitem(last=False)
            text = str(question.text) if question is not None else ""
            task = self._breaker.start(
                "recall", lambda: self._builder(ContextBuilder, identity, self._window).recall(text)
            )
            self._recalls[key] = task
            return task

    def _recalled(self, identity: Identity, messages: Sequence[BaseMessage]) -> Recall:
        """What was found by the deadline, which runs since the recall began."""
        task, failed = self._recall_task(identity, messages), dict[str, str]()
        deadline_ms = self._deadline_ms
        left_ms = None if deadline_ms is None else deadline_ms + GRACE_MS - task.elapsed_ms()
        task.wait(left_ms if left_ms is None else max(left_ms, 0) / 1_000)
        recall = self._breaker.take("recall", task, Recall(hits=(), late=("recall",)), failed)
        return replace(recall, failed={**recall.failed, **failed}) if failed else recall

    def _builder(self, kind: type[B], identity: Identity, window: Window, **more: Any) -> B:
        scope = self.memory.scope(
            user=identity.user, agent=identity.agent, session=identity.session
        )
        return self.memory.builder(kind, scope, window, **self._context_options, **more)

    def build(self, request: ModelRequest[Any]) -> BuiltRequest:
        """The request with what is remembered, for the larger model if the window is too small.

        Subclasses may extend it: it is called before each request to the model.
        """
        built = self._built(request, self._window)
        if built.tight and self._larger is not None:
            return self._moved(request, NEAR)
        return built

    def _built(self, request: ModelRequest[Any], window: Window) -> BuiltRequest:
        identity, failed = self._identity(request.runtime, request.state), dict[str, str]()
        if identity is None or not request.messages:
            return BuiltRequest(request=request)

        def work() -> BuiltRequest:
            builder = self._builder(
                RequestBuilder,
                identity,
                window,
                recalled=lambda: self._recalled(identity, request.messages),
                stored_id=lambda id_: self._writes.stored_id(identity, id_),
                prior=request.state.get("memorist_summary", ""),
                restore=self._restore,
                trim_state=self._trim_state,
            )
            return builder.build(request)

        built = self._breaker.run("context", work, BuiltRequest(request=request), failed)
        return replace(built, failed=failed) if failed else built

    def _moved(self, request: ModelRequest[Any], reason: str) -> BuiltRequest:
        """The request for the larger model, in its window."""
        assert self._larger is not None
        window = self._larger_window
        if window is None:
            size = (self._larger.profile or {}).get("max_input_tokens")
            window = replace(
                self._window, max_tokens=size or self._window.max_tokens * TIMES_LARGER
            )
        built = self._built(request, window)
        log.warning("the agent moves to a model with a larger window: %s", reason)
        return replace(built, request=built.request.override(model=self._larger), moved=reason)

    def _retry(
        self, error: Exception, request: ModelRequest[Any], built: BuiltRequest
    ) -> BuiltRequest | None:
        """What to send after the model refused a request as too long; None for other errors."""
        if built.moved or not is_overflow(error):
            return None
        if self._larger is not None:
            return self._moved(request, OVERFLOW)
        used = built.receipt.used if built.receipt is not None else 0
        half = max(used // 2, self._window.answer_tokens + 1)
        smaller = self._built(request, replace(self._window, max_tokens=half))
        if smaller.receipt is None or smaller.receipt.used >= used:
            return None
        log.warning("the model takes in less than its window says: %d tokens are too much", used)
        return replace(smaller, gone=())

    def _ask(
        self, built: BuiltRequest, handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        recorder = self._recorder(built.request)
        return recorder.ask(built.request, handler) if recorder else handler(built.request)

    async def _aask(
        self,
        built: BuiltRequest,
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        recorder, request = self._recorder(built.request), built.request
        return await (recorder.aask(request, handler) if recorder else handler(request))

    def _recorder(self, request: ModelRequest[Any]) -> ReplyRecorder | None:
        identity = self._identity(request.runtime, request.state)
        if identity is None or not self._store_partial_replies:
            return None
        return ReplyRecorder(identity, self._writes, self._breaker, self.reply_namer(request))

    def reply_namer(self, request: ModelRequest[Any]) -> Callable[[], str] | None:
        """What gives the ids of replies that are stored while they stream; None: the model.

        Subclasses may extend it: it is called before each such reply.
        """
        return None

    def answered(
        self, built: BuiltRequest, response: ModelResponse[Any]
    ) -> ExtendedModelResponse[Any]:
        """The response, with the update of the state.

        Subclasses may extend it: it is called after each response of the model.
        """
        receipt = built.receipt
        report: MemoryReport = {"failed": dict(built.failed)}
        update: dict[str, Any] = {}
        if receipt is not None:
            self.last_receipt = receipt
            receipts.info("%s", receipt)
            report = _report(receipt, built)
            update["memorist_summary"] = built.summary
        identity = self._identity(built.request.runtime, built.request.state)
        report["session"] = identity.session if identity is not None else None
        before: Any = built.request.state.get("memorist") or {}
        report["failed"] |= before.get("failed", {})  # the first failure is the cause
        update["memorist"] = report
        update["messages"] = [RemoveMessage(id=id_) for id_ in built.gone]
        return ExtendedModelResponse(model_response=response, command=Command(update=update))


def identity_of_run(fixed: Identity, runtime: Any) -> Identity | None:
    """Who a run is for: what the middleware was made with, the run's context, or its config."""
    context = getattr(runtime, "context", None)
    try:
        configured = get_config().get("configurable") or {}
    except RuntimeError:  # outside of a run
        configured = {}

    def look(*names: str) -> str | None:
        values = [field_of(place, name) for name in names for place in (context, configured)]
        return next((str(value) for value in values if value), None)

    user, agent = fixed.user or look("user_id"), fixed.agent or look("agent_id")
    session = fixed.session or look("session_id", "thread_id")
    return Identity(user, agent, session) if user else None


def _question(messages: Sequence[BaseMessage]) -> HumanMessage | None:
    return next((it for it in reversed(messages) if isinstance(it, HumanMessage)), None)


def _report(receipt: Receipt, built: BuiltRequest) -> MemoryReport:
    made = receipt.compression
    return {
        "window": receipt.window,
        "used": receipt.used,
        "parts": {part.name: part.tokens for part in receipt.parts},
        "saved": made.saved if made is not None else 0,
        "moved": built.moved,
        "late": list(receipt.late),
        "failed": {**receipt.failed, **built.failed},
    }


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1_000
