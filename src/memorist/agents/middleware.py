"""MemoristMiddleware: memory for any agent of LangChain's `create_agent`."""

import logging
import threading
import time
from asyncio import to_thread
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar

from memorist.errors import MemoristError, needs_extra

with needs_extra("agents"):
    from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ToolCallRequest
    from langchain.agents.middleware.types import AgentState, OmitFromSchema, PrivateStateAttr
    from langchain.chat_models import init_chat_model
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, ToolMessage
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime
    from langgraph.types import Command

from memorist.agents.circuit_breaker import PATIENCE_S, CircuitBreaker
from memorist.agents.messages import tool_failure, tool_messages, tool_results
from memorist.agents.overflow import is_overflow
from memorist.agents.pending_writes import Identity, PendingWrites, identity_of_run
from memorist.agents.reply_recorder import AsyncModelHandler, ModelHandler, ReplyRecorder
from memorist.agents.request_builder import BuiltRequest, ModelReply, Request, RequestBuilder
from memorist.context.builder import ArticleSource, ContextBuilder
from memorist.context.window import Receipt, Window
from memorist.forks import fork_safe
from memorist.memory import Memory
from memorist.providers.daemon_pool import Task
from memorist.providers.images import encode_image
from memorist.records.message import UNSET
from memorist.records.query import Recall
from memorist.records.values import check_type, new_id, reply_id
from memorist.runtime import deadline_of, window_of

MOST_RECALLS = 256
GRACE_MS = 1_000.0  # after its deadline, a recall counts as hanging
TIMES_LARGER = 4  # the larger model's window by default, in windows of the model
NO_USER = "no user is named: give the middleware a user, or the run's context or config a user_id"
NEAR = "near the limit"
OVERFLOW = "the model refused the request as too long"

log = logging.getLogger("memorist.agents")
receipts = logging.getLogger("memorist.context")
B = TypeVar("B", bound=ContextBuilder)
Update = dict[str, Any]
ModelAnswer = ExtendedModelResponse[Any]
ToolAnswer = ToolMessage | Command[Any]
ToolHandler = Callable[[ToolCallRequest], ToolAnswer]
AToolHandler = Callable[[ToolCallRequest], Awaitable[ToolAnswer]]


class MemoryReport(TypedDict, total=False):
    """The report on the memory in the agent's state; it holds no user content."""

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


@dataclass(slots=True)
class MemoryRun:
    """A context for runs: their user, agent, session and question, and what the memory reports.

    With `stream_recall` the recall is written to the run's custom stream. Where `next_reply` is a
    number, replies that are stored while they stream get ids derived from the question's id and
    that number; `named` are those ids.
    """

    user_id: str
    agent_id: str | None
    session_id: str | None
    asked_id: str = field(default_factory=new_id)
    receipt: Receipt | None = None
    stream_recall: bool = False
    next_reply: int | None = None
    named: set[str] = field(default_factory=set)

    @property
    def identity(self) -> Identity:
        return Identity(self.user_id, self.agent_id, self.session_id)

    def name_reply(self) -> str:
        """The id of the next reply."""
        number = self.next_reply or 0
        id_ = reply_id(self.asked_id, number)
        self.next_reply = number + 1
        self.named.add(id_)
        return id_


class MemoristMiddleware(AgentMiddleware[MemoristState, Any, Any]):
    """Stores the conversation of an agent, and adds what is remembered to the model's requests.

        agent = create_agent(model, tools, middleware=[MemoristMiddleware(memory, user="ada")])

    `user`, `agent` and `session` may also come with each run, as `user_id`, `agent_id` and
    `session_id` or `thread_id` of its context or configuration. `larger_model` is used if the
    window is too small, or the model refuses a request as too long. `library` quotes articles,
    `deadline_ms` is recall's, `restore=False` leaves out turns that only the log has, and
    `trim_state=False` keeps summarised messages in the agent's state. With `store_partial_replies`
    a reply that streams is stored as it comes, unfinished until the model is done. No call to the
    memory is waited for longer than `patience_s`; if the memory fails, the agent still answers, and
    `state["memorist"]` and the log name what was missing.
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
        deadline_ms: float | None = UNSET,
        read_image: Callable[[str], str] | None = encode_image,
        restore: bool = True,
        trim_state: bool = True,
        store_partial_replies: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__()
        check_type(memory, Memory, "memory")
        memory.scope(user=user or "-", agent=agent or None, session=session or None)  # checks names
        if isinstance(larger_model, str):
            larger_model = init_chat_model(larger_model)
        self.memory = memory
        self.last_receipt: Receipt | None = None
        self._fixed = Identity(user or "", agent, session)
        self._window = window_of(window, memory.settings)
        self._larger, self._larger_window = larger_model, larger_window
        self._deadline_ms = deadline_ms = deadline_of(deadline_ms, memory.settings)
        self._store_partial_replies = store_partial_replies
        self._request_options = {"restore": restore, "trim_state": trim_state}
        self._options = {"library": library, "deadline_ms": deadline_ms, "read_image": read_image}
        self._breaker = CircuitBreaker(patience_s)
        self._writes = PendingWrites(memory)
        self._recalls: OrderedDict[tuple[Identity, str], Task[Recall]] = OrderedDict()
        self._lock = fork_safe(threading.Lock())
        log.info(
            "an agent with memory compression (threshold: %d tokens at %d%%, window: %d)",
            *(self._window.threshold, self._window.compress_at * 100, self._window.max_tokens),
        )
        self._has_recalled, self._first_wait_s = False, patience_s / 2
        self._breaker.start("warm up", memory.warm_up)

    def before_agent(self, state: MemoristState, runtime: Runtime[Any]) -> Update:
        """Store the new messages, while recall is running."""
        failed: dict[str, str] = {}
        identity = identity_of_run(runtime, self._fixed)
        if not identity.user:
            log.warning("the agent goes on without its memory: %s", NO_USER)
            return {"memorist": {"failed": {"user": NO_USER}}}
        if identity.session is None:
            identity = self._with_session(identity, failed)
        self._recall_task(identity, state["messages"], begins=True)
        self._store(identity, state["messages"], failed)
        return {"memorist": {"session": identity.session, "failed": failed}}

    async def abefore_agent(self, state: MemoristState, runtime: Runtime[Any]) -> Update:
        return await to_thread(self.before_agent, state, runtime)

    def wrap_model_call(self, request: Request, handler: ModelHandler) -> ModelAnswer:
        """Ask the model with what is remembered; once more, with less, if that was too long."""
        built = self._build(request)
        try:
            return self._with_state_update(built, self._ask(built, handler))
        except Exception as error:
            again = self._retry(error, request, built)
            if again is None:
                raise
        return self._with_state_update(again, self._ask(again, handler))

    async def awrap_model_call(self, request: Request, handler: AsyncModelHandler) -> ModelAnswer:
        built = await to_thread(self._build, request)
        try:
            return self._with_state_update(built, await self._aask(built, handler))
        except Exception as error:
            again = await to_thread(self._retry, error, request, built)
            if again is None:
                raise
        return self._with_state_update(again, await self._aask(again, handler))

    def after_model(self, state: MemoristState, runtime: Runtime[Any]) -> Update | None:
        """Store the reply before its tools run."""
        failed: dict[str, str] = {}
        identity = self._identity(runtime, state)
        if identity is not None:
            self._store(identity, state["messages"], failed)
        if not failed:
            return None
        report = state.get("memorist", {})
        return {"memorist": {**report, "failed": {**failed, **report.get("failed", {})}}}

    async def aafter_model(self, state: MemoristState, runtime: Runtime[Any]) -> Update | None:
        return await to_thread(self.after_model, state, runtime)

    after_agent, aafter_agent = after_model, aafter_model  # stores what other middleware added

    def wrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        """Store what a tool returned or how it failed, and how long that took."""
        began = time.perf_counter()
        try:
            result = handler(request)
        except Exception as error:
            self._store_result(request, error, began)
            raise
        self._store_result(request, result, began)
        return result

    async def awrap_tool_call(self, request: ToolCallRequest, handler: AToolHandler) -> ToolAnswer:
        began = time.perf_counter()
        try:
            result = await handler(request)
        except Exception as error:
            await to_thread(self._store_result, request, error, began)
            raise
        await to_thread(self._store_result, request, result, began)
        return result

    def _with_session(self, identity: Identity, failed: dict[str, str]) -> Identity:
        """The identity with its active session, or a new one."""
        user, agent = identity.user, identity.agent
        session = self._breaker.run(
            "session", lambda: self.memory.session(user=user, agent=agent).id, None, failed
        )
        with_session = replace(identity, session=session)
        self._writes.move(identity, with_session)
        return with_session

    def _identity(self, runtime: Any, state: Any) -> Identity | None:
        """The identity of a run, with the session that it began with."""
        identity = identity_of_run(runtime, self._fixed)
        if not identity.user:
            return None
        report = state.get("memorist") or {} if isinstance(state, dict) else {}
        return replace(identity, session=identity.session or report.get("session"))

    def _store(
        self, identity: Identity, messages: Sequence[BaseMessage], failed: dict[str, str]
    ) -> None:
        if self._writes.add(identity, messages):
            self._breaker.run("store", lambda: self._writes.write(identity), 0, failed)

    def _store_result(self, request: ToolCallRequest, result: Any, began: float) -> None:
        """Store what a tool returned, or the exception that it raised."""
        identity = self._identity(request.runtime, request.state)
        if identity is None or isinstance(result, GraphBubbleUp):  # an interrupt, not a failure
            return
        call, took_ms = request.tool_call, (time.perf_counter() - began) * 1_000
        if isinstance(result, Exception):
            self._writes.add_converted(identity, tool_failure(call, result, took_ms))

        def store() -> int:  # converts in here, as a result may be nothing that can be stored
            for message in tool_results(call, tool_messages(result), took_ms):
                self._writes.add_converted(identity, message)
            return self._writes.write(identity)

        self._breaker.run("store", store, 0, {})

    def _recall_task(
        self, identity: Identity, messages: Sequence[BaseMessage], begins: bool = False
    ) -> Task[Recall]:
        """The recall for the question: one for each run, so a run that `begins` starts it anew."""
        question = next((it for it in reversed(messages) if isinstance(it, HumanMessage)), None)
        id_, text = (question.id or "", str(question.text)) if question is not None else ("", "")
        if begins:  # the question may have been asked before, in other words
            self._writes.recheck(identity, id_)
        with self._lock:
            task = None if begins else self._recalls.get((identity, id_))
            if task is None:
                task = self._recalls[identity, id_] = self._breaker.start(
                    "recall", lambda: self._recall(identity, text)
                )
            while len(self._recalls) > MOST_RECALLS:
                self._recalls.popitem(last=False)
            return task

    def _recall(self, identity: Identity, question: str) -> Recall:
        builder = self._builder(ContextBuilder, identity, self._window)
        if not self._has_recalled:  # the deadline is not for loading models and caches
            with suppress(MemoristError):
                self.memory.warm_up()
            if builder.deadline_ms is not None:
                builder.deadline_ms = max(builder.deadline_ms, GRACE_MS)
        recall = builder.recall(question)
        self._has_recalled = True
        return recall

    def _recalled(self, identity: Identity, messages: Sequence[BaseMessage]) -> Recall:
        """What was found by the deadline, which runs since the recall began.

        The first one is waited for longer: it may have to load models, or to connect.
        """
        task, failed = self._recall_task(identity, messages), dict[str, str]()
        wait_s = self._first_wait_s
        if self._has_recalled and self._deadline_ms is not None:
            wait_s = max(self._deadline_ms + GRACE_MS - task.elapsed_ms(), 0) / 1_000
        task.wait(wait_s if self._deadline_ms is not None else None)
        recall = self._breaker.take("recall", task, Recall(hits=(), late=("recall",)), failed)
        return replace(recall, failed={**recall.failed, **failed}) if failed else recall

    def _builder(self, kind: type[B], identity: Identity, window: Window, **more: Any) -> B:
        scope = self.memory.scope(**identity.names)
        return self.memory.builder(kind, scope, window, **self._options, **more)

    def _build(self, request: Request) -> BuiltRequest:
        """The request with what is remembered, for the larger model if the window is too small."""
        built = self._request_within(request, self._window)
        if built.tight and self._larger is not None:
            built = self._request_for_larger(request, self._larger, NEAR)
        run = request.runtime.context
        if isinstance(run, MemoryRun) and run.stream_recall and built.recall is not None:
            run.stream_recall = False  # once for each question
            request.runtime.stream_writer(built.recall)
        return built

    def _request_within(self, request: Request, window: Window) -> BuiltRequest:
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
                **self._request_options,
            )
            return builder.build(request)

        built = self._breaker.run("context", work, BuiltRequest(request=request), failed)
        return replace(built, failed=failed) if failed else built

    def _request_for_larger(
        self, request: Request, larger: BaseChatModel, reason: str
    ) -> BuiltRequest:
        """The request for the larger model, in its window."""
        size = (larger.profile or {}).get("max_input_tokens")
        size = size or self._window.max_tokens * TIMES_LARGER
        window = self._larger_window or replace(self._window, max_tokens=size)
        built = self._request_within(request, window)
        log.warning("the agent moves to a model with a larger window: %s", reason)
        return replace(built, request=built.request.override(model=larger), moved=reason)

    def _retry(self, error: Exception, request: Request, sent: BuiltRequest) -> BuiltRequest | None:
        """What to send after the model refused a request as too long; None for other errors."""
        if sent.moved or not is_overflow(error):
            return None
        if self._larger is not None:
            return self._request_for_larger(request, self._larger, OVERFLOW)
        used = sent.receipt.used if sent.receipt is not None else 0
        half = max(used // 2, (self._window.answer_tokens or 0) + 1)
        smaller = self._request_within(request, replace(self._window, max_tokens=half))
        if smaller.receipt is None or smaller.receipt.used >= used:
            return None
        log.warning("the model takes in less than its window says: %d tokens are too much", used)
        return replace(smaller, gone=())

    def _ask(self, built: BuiltRequest, handler: ModelHandler) -> ModelReply:
        recorder = self._recorder(built.request)
        return recorder.ask(built.request, handler) if recorder else handler(built.request)

    async def _aask(self, built: BuiltRequest, handler: AsyncModelHandler) -> ModelReply:
        recorder, request = self._recorder(built.request), built.request
        return await (recorder.aask(request, handler) if recorder else handler(request))

    def _recorder(self, request: Request) -> ReplyRecorder | None:
        identity = self._identity(request.runtime, request.state)
        if identity is None or not self._store_partial_replies:
            return None
        run = request.runtime.context
        is_named = isinstance(run, MemoryRun) and run.next_reply is not None
        namer = run.name_reply if is_named else None
        return ReplyRecorder(identity, self._writes, self._breaker, namer)

    def _with_state_update(self, built: BuiltRequest, response: ModelReply) -> ModelAnswer:
        """The response, with the update of the state."""
        request, receipt = built.request, built.receipt
        identity = self._identity(request.runtime, request.state)
        before: Any = request.state.get("memorist") or {}
        report: MemoryReport = {"session": identity.session if identity is not None else None}
        report["failed"] = {**built.failed, **before.get("failed", {})}  # the first is the cause
        update = {"memorist": report, "messages": [RemoveMessage(id=id_) for id_ in built.gone]}
        if isinstance(run := request.runtime.context, MemoryRun):
            run.receipt = receipt
        if receipt is not None:
            self.last_receipt = receipt
            receipts.info("%s", receipt)
            compression = receipt.compression
            report["window"], report["used"] = receipt.window, receipt.used
            report["parts"] = {part.name: part.tokens for part in receipt.parts}
            report["saved"] = compression.saved if compression is not None else 0
            report["moved"], report["late"] = built.moved, list(receipt.late)
            report["failed"] = {**receipt.failed, **report["failed"]}
            update["memorist_summary"] = built.summary
        return ExtendedModelResponse(model_response=response, command=Command(update=update))
