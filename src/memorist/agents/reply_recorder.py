"""Growing: a reply that is stored while the model says it. A crash leaves what was heard of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

from memorist.errors import MissingExtraError

try:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.circuit_breaker import Careful
from memorist.agents.identity import Who
from memorist.agents.pending_writes import Ledger
from memorist.aio import in_thread
from memorist.chat import Stream
from memorist.records.message import Message

FLUSH_SECONDS = 0.1
UNKEPT = re.compile("[\x00\ud800-\udfff]")  # what no store keeps


@dataclass(slots=True)
class Reply:
    """What was heard of a reply, and how much of it was taken to be stored."""

    id: str
    pieces: list[str] = field(default_factory=list)
    taken: int = 0
    stream: Stream | None = None
    failed: bool = False

    def take(self) -> str:
        """What was heard since."""
        upto = len(self.pieces)
        text = "".join(self.pieces[self.taken : upto])
        self.taken = upto
        return text


class Growing(BaseCallbackHandler):
    """Hears one request's reply, and stores it bit by bit as an unfinished message.

    The ledger finishes it when the whole is there. Where the memory fails, it is left alone:
    then the reply is stored at its end, as any other. `name` gives what is heard its ids, or
    else the model does.
    """

    # With the words, and not after them: whoever hears them may leave at once. So nothing may wait
    # there: all that is stored is stored by a thread of the clock's.
    run_inline = True

    def __init__(
        self, who: Who, ledger: Ledger, careful: Careful, name: Callable[[], str] | None = None
    ) -> None:
        self._who = who
        self._ledger = ledger
        self._careful = careful
        self._name = name
        self._replies: dict[UUID, Reply] = {}
        self._runs: dict[str, UUID] = {}  # by the id that a whole reply has
        self._timer: threading.Timer | None = None
        self._over = False
        self._lock = threading.Lock()

    def ask(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """What the model replies, which is stored as it comes."""
        try:
            response = handler(self._heard(request))
        except BaseException:
            self._leave()
            raise
        self._end()
        return self._named(response)

    async def aask(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """`ask`, for asyncio."""
        try:
            response = await handler(self._heard(request))
        except BaseException:  # also where whoever asked has gone
            await in_thread(self._leave)
            raise
        if self._replies:
            await in_thread(self._end)
        return self._named(response)

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any) -> None:
        """LangChain calls it for each piece, one after the other."""
        said = getattr(chunk, "message", None)
        if not isinstance(said, BaseMessage) or not said.text:
            return
        is_new = run_id not in self._replies
        if is_new:
            id_ = self._name() if self._name is not None else said.id or f"lc_run--{run_id}"
            self._replies[run_id] = Reply(id_)
        reply = self._replies[run_id]
        reply.pieces.append(UNKEPT.sub("\ufffd", str(said.text)))
        self._store_in(0 if is_new else FLUSH_SECONDS)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """The whole reply is there; its id may be another than that of its first piece."""
        for said in response.generations[0][:1]:
            self._runs[getattr(said.message, "id", None) or ""] = run_id

    def _store_in(self, seconds: float) -> None:
        """By the clock, as the next piece may be long in coming."""
        if self._timer is None and not self._over:
            self._timer = threading.Timer(seconds, self._tick)
            self._timer.daemon = True
            self._timer.start()

    def _tick(self) -> None:
        self._timer = None  # first: what is heard from now on waits for the next
        with self._lock:
            if not self._over:
                self._store(at_once=False)

    def _leave(self) -> None:
        """Store what had arrived; it stays unfinished."""
        with self._lock:
            self._store(at_once=True)
        self._end()

    def _end(self) -> None:
        """Nothing more comes; what is being stored is waited for."""
        with self._lock:
            self._over = True

    def _store(self, *, at_once: bool) -> None:
        for reply in list(self._replies.values()):
            if reply.failed:
                continue
            if reply.stream is None:
                self._open(reply)
            elif reply.stream.gather(reply.take()) or at_once:
                reply.failed = not self._done(reply.stream.flush)
            else:  # a store that takes its time is asked less often
                self._store_in(FLUSH_SECONDS)

    def _open(self, reply: Reply) -> None:
        message = Message("assistant", reply.take(), message_id=reply.id, unfinished=True)
        reply.failed = not self._done(lambda: self._ledger.begin(self._who, message))
        if not reply.failed:
            grow = partial(self._ledger.grow, self._who)
            reply.stream = Stream(message, grow, flush_s=FLUSH_SECONDS / 2)

    def _done(self, work: Callable[[], None]) -> bool:
        failed: dict[str, str] = {}
        self._careful.run("store", work, None, failed)
        return not failed

    def _heard(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request to the same model, which tells us what it says."""
        model = request.model
        if not isinstance(model, BaseChatModel):
            return request
        known = model.callbacks
        if isinstance(known, BaseCallbackManager):
            heard: Any = known.copy()
            heard.add_handler(self, inherit=False)
        else:
            heard = [*(known or ()), self]
        return request.override(model=model.model_copy(update={"callbacks": heard}))

    def _named(self, response: ModelResponse[Any]) -> ModelResponse[Any]:
        """The reply under the id that it is stored by, whatever its end calls it."""
        return replace(response, result=[self._renamed(one) for one in response.result])

    def _renamed(self, said: BaseMessage) -> BaseMessage:
        run_id = self._runs.get(said.id or "")
        if run_id is None:
            return said
        id_, reply = said.id, self._replies.get(run_id)
        if self._name is not None:
            id_ = reply.id if reply is not None else self._name()
        elif reply is not None and reply.stream is not None:
            id_ = reply.id
        return said if id_ == said.id else said.model_copy(update={"id": id_})
