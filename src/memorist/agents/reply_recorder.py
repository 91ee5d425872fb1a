"""ReplyRecorder: stores a reply while it streams, so that a crash leaves its beginning."""

import threading
from asyncio import to_thread
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from memorist.agents.circuit_breaker import CircuitBreaker
from memorist.agents.pending_writes import Identity, PendingWrites
from memorist.agents.request_builder import ModelReply, Request
from memorist.chat import Stream
from memorist.forks import fork_safe
from memorist.records.message import Message
from memorist.records.values import replace_unstorable

FLUSH_SECONDS = 0.1

ModelHandler = Callable[[Request], ModelReply]
AsyncModelHandler = Callable[[Request], Awaitable[ModelReply]]


@dataclass(slots=True)
class _PartialReply:
    """The pieces of a reply that are not stored yet, and the stream that stores them."""

    id: str
    pieces: deque[str] = field(default_factory=deque)
    stream: Stream | None = None
    failed: bool = False

    def take(self) -> str:
        """The text that came since the last time; more may come meanwhile."""
        return "".join(self.pieces.popleft() for _ in range(len(self.pieces)))


class ReplyRecorder(BaseCallbackHandler):
    """Stores the reply to one request bit by bit, as an unfinished message.

    `PendingWrites` replaces it by the whole reply. After a failure it stops, and the reply is
    stored at its end as any other. `next_id` makes the ids of replies; by default the model does.
    """

    # Called in line with the stream, before the caller gets a token, as callers may leave at any
    # token. So nothing here may wait: a timer thread does all storing.
    run_inline = True

    def __init__(
        self,
        identity: Identity,
        writes: PendingWrites,
        breaker: CircuitBreaker,
        next_id: Callable[[], str] | None = None,
    ) -> None:
        self._identity, self._writes, self._breaker = identity, writes, breaker
        self._next_id = next_id
        self._replies: dict[UUID, _PartialReply] = {}
        self._runs: dict[str, UUID] = {}  # by the id that the whole reply has
        self._timer: threading.Timer | None = None
        self._is_over = False
        self._lock = fork_safe(threading.Lock())

    def ask(self, request: Request, handler: ModelHandler) -> ModelReply:
        """The model's response, whose reply is stored as it comes."""
        try:
            response = handler(self._listening(request))
        except BaseException:
            self._end(abandoned=True)
            raise
        self._end()
        return self._renamed(response)

    async def aask(self, request: Request, handler: AsyncModelHandler) -> ModelReply:
        """`ask`, for asyncio."""
        try:
            response = await handler(self._listening(request))
        except BaseException:  # also where the caller has gone
            await to_thread(self._end, abandoned=True)
            raise
        if self._replies:
            await to_thread(self._end)
        return self._renamed(response)

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any) -> None:
        """LangChain calls it for each piece, one after the other."""
        message = getattr(chunk, "message", None)
        if not isinstance(message, BaseMessage) or not message.text:
            return
        is_new = run_id not in self._replies
        if is_new:
            id_ = self._next_id() if self._next_id else message.id or f"lc_run--{run_id}"
            self._replies[run_id] = _PartialReply(id_)
        self._replies[run_id].pieces.append(replace_unstorable(str(message.text)))
        self._store_in(0 if is_new else FLUSH_SECONDS)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """The whole reply is there; its id may differ from that of its first piece."""
        for generation in response.generations[0][:1]:
            self._runs[getattr(generation.message, "id", None) or ""] = run_id

    def _store_in(self, seconds: float) -> None:
        """By a timer, as the next piece may be long in coming."""
        if self._timer is None and not self._is_over:
            self._timer = threading.Timer(seconds, self._tick)
            self._timer.daemon = True
            self._timer.start()

    def _tick(self) -> None:
        self._timer = None  # first: a piece that comes from now on waits for the next
        with self._lock:
            if not self._is_over:
                self._store(at_once=False)

    def _end(self, *, abandoned: bool = False) -> None:
        """Stop, after what is being stored; an abandoned reply is stored as far as it came."""
        with self._lock:
            if abandoned:
                self._store(at_once=True)
            self._is_over = True

    def _store(self, *, at_once: bool) -> None:
        for reply in list(self._replies.values()):
            if reply.failed:
                continue
            if reply.stream is None:
                self._open(reply)
            elif reply.stream.gather(reply.take()) or at_once:
                reply.failed = not self._succeeds(reply.stream.flush)
            else:  # a slow store is asked less often
                self._store_in(FLUSH_SECONDS)

    def _open(self, reply: _PartialReply) -> None:
        message = Message("assistant", reply.take(), message_id=reply.id, unfinished=True)
        reply.failed = not self._succeeds(lambda: self._writes.begin(self._identity, message))
        if not reply.failed:
            append = partial(self._writes.append, self._identity)
            reply.stream = Stream(message, append, flush_s=FLUSH_SECONDS / 2)

    def _succeeds(self, work: Callable[[], None]) -> bool:
        failed: dict[str, str] = {}
        self._breaker.run("store", work, None, failed)
        return not failed

    def _listening(self, request: Request) -> Request:
        """The request with this recorder among the callbacks of its model."""
        model = request.model
        if not isinstance(model, BaseChatModel):
            return request
        callbacks: Any = model.callbacks
        if isinstance(callbacks, BaseCallbackManager):
            callbacks = callbacks.copy()
            callbacks.add_handler(self, inherit=False)
        else:
            callbacks = [*(callbacks or ()), self]
        return request.override(model=model.model_copy(update={"callbacks": callbacks}))

    def _renamed(self, response: ModelReply) -> ModelReply:
        """The response with each reply under the id that it is stored by."""
        return replace(response, result=[self._with_stored_id(it) for it in response.result])

    def _with_stored_id(self, message: BaseMessage) -> BaseMessage:
        run_id = self._runs.get(message.id or "")
        if run_id is None:
            return message
        reply, id_ = self._replies.get(run_id), message.id
        if reply is None:
            id_ = self._next_id() if self._next_id is not None else id_
        elif self._next_id is not None or reply.stream is not None:
            id_ = reply.id
        return message if id_ == message.id else message.model_copy(update={"id": id_})
