"""Growing: a reply that is stored while the model says it. A crash leaves what was heard of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from recollect.agent.careful import Careful
from recollect.agent.ledger import Ledger
from recollect.agent.who import Who
from recollect.aio_life import in_thread
from recollect.errors import MissingExtraError
from recollect.records.message import Message
from recollect.stream import Stream

try:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
except ImportError as error:
    raise MissingExtraError("agents") from error

FLUSH_SECONDS = 0.1
UNKEPT = re.compile("[\x00\ud800-\udfff]")  # what no store keeps


class Growing(BaseCallbackHandler):
    """Hears one request's reply, and stores it bit by bit as an unfinished message.

    The ledger finishes it when the whole is there. Where the memory fails, it is left alone:
    then the reply is stored at its end, as any other.
    """

    def __init__(self, who: Who, ledger: Ledger, careful: Careful) -> None:
        self._who = who
        self._ledger = ledger
        self._careful = careful
        self._streams: dict[UUID, Stream | None] = {}  # None: the memory failed it
        self._runs: dict[str, UUID] = {}  # by the id that a whole reply has
        self._timer: threading.Timer | None = None
        self._over = False
        self._lock = threading.Lock()

    def ask(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
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
        if self._streams:
            await in_thread(self._end)
        return self._named(response)

    def on_llm_new_token(
        self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any
    ) -> None:  # fmt: skip
        """LangChain calls it for each piece, one after the other, and not in the loop's thread."""
        said = getattr(chunk, "message", None)
        if not isinstance(said, BaseMessage) or not said.text:
            return
        text = UNKEPT.sub("\ufffd", str(said.text))
        with self._lock:
            if run_id not in self._streams:
                self._streams[run_id] = self._open(said.id or f"lc_run--{run_id}", text)
            elif (stream := self._streams[run_id]) is not None:
                stream.gather(text)
                self._flush_soon()

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """The whole reply is there; its id may be another than that of its first piece."""
        for said in response.generations[0][:1]:
            self._runs[getattr(said.message, "id", None) or ""] = run_id

    def _open(self, id_: str, text: str) -> Stream | None:
        message = Message("assistant", text, message_id=id_, unfinished=True)
        if self._done(lambda: self._ledger.begin(self._who, message)):
            return Stream(message, lambda it: self._ledger.grow(self._who, it))
        return None

    def _flush_soon(self) -> None:
        """By the clock, as the next piece may be long in coming."""
        if self._timer is None and not self._over:
            self._timer = threading.Timer(FLUSH_SECONDS, self._tick)
            self._timer.daemon = True
            self._timer.start()

    def _tick(self) -> None:
        with self._lock:
            self._timer = None
            if not self._over:
                self._flush(lambda stream: stream.gather(""))

    def _flush(self, is_due: Callable[[Stream], bool]) -> None:
        for run_id, stream in self._streams.items():
            if stream is None:
                continue
            if not is_due(stream):
                self._flush_soon()
            elif not self._done(stream.flush):
                self._streams[run_id] = None

    def _leave(self) -> None:
        """Store what had arrived; it stays unfinished."""
        with self._lock:
            self._flush(lambda _: True)
        self._end()

    def _end(self) -> None:
        """Nothing more comes; what is being stored is waited for."""
        with self._lock:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()

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
        """The reply under the id that it is stored by, should its end have brought another."""
        return replace(response, result=[self._renamed(one) for one in response.result])

    def _renamed(self, said: BaseMessage) -> BaseMessage:
        run_id = self._runs.get(said.id or "")
        stream = self._streams.get(run_id) if run_id is not None else None
        if stream is None or stream.id == said.id:
            return said
        return said.model_copy(update={"id": stream.id})
