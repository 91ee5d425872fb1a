"""A model's server to test against, in good health or in one of 13 kinds of bad.

It listens on this machine only, speaks the wire format of OpenAI (chat completions with tools and
streams, embeddings, the list of models), needs no key and knows no language: asked to extract
memories, it quotes each of the user's messages.

    with ModelServer() as server:
        memory = Memory(…, model=OpenAIChat("any", url=server.url))
        server.mode = "500"        # from now on every answer is an internal error
        server.mode = "ok"         # and now it has recovered
        assert server.requests[0].body["model"] == "any"

`answers` scripts its chat: a list of answers given one by one before it goes on as its mode says,
or a function from the request's body to an answer. An answer is

    "text"                                     the model's text
    [{"name": "recall", "args": {…}}, …]       tool calls, with an "id" each if it matters
    {"role": "assistant", "content": …, …}     a message in OpenAI's own form
    {…}                                        any other dict, as the model's JSON text
    ErrorAnswer(…)                               an error; `openai_errors` has the real ones
    Dropped(answer)                            a connection that ends in the midst of the answer
    b"…"                                       the whole body of the response

With `limit`, a longer prompt is refused as its maker's server would, and no answer is used up.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self, get_args

from memorist.testing.http_replies import Replies, from_json, to_json
from memorist.testing.openai_errors import (
    ErrorAnswer,
    Like,
    bad_request,
    not_found,
    overflow,
    rate_limit,
    server_error,
)
from memorist.testing.openai_wire import (
    Answer,
    Dropped,
    completion,
    embeddings,
    message_of,
    model,
    models,
    prompt_tokens,
    stream,
)
from memorist.testing.quoting import BAD_ANSWERS, quote_messages

__all__ = [
    "FAILURES",
    "HUGE_BYTES",
    "Answer",
    "Dropped",
    "ErrorAnswer",
    "Limit",
    "Mode",
    "ModelServer",
    "Request",
    "Script",
    "quote_messages",
]

Mode = Literal[
    "ok",
    "500",
    "429",
    "hang",
    "slow",
    "garbage",
    "truncated",
    "empty",
    "wrong_shape",
    "wrong_types",
    "huge",
    "nan",
    "hostile",
    "drop",
]
"""How the server answers: as it should, or

"500" and "429" with that status, the latter with Retry-After; "hang" not at all; "slow" byte by
byte; "garbage" with words instead of JSON; "truncated" with its JSON cut off; "empty" with no
text; "wrong_shape" with other JSON; "wrong_types" with the right names and wrong values; "huge"
with many megabytes; "nan" with numbers that are none; "hostile" with memories that nobody said
and that give orders; "drop" with half of the body before the connection ends.
"""

FAILURES: tuple[str, ...] = tuple(mode for mode in get_args(Mode) if mode != "ok")
HUGE_BYTES = 16_000_000

Script = Iterable[Answer] | Callable[[dict[str, Any]], Answer]


@dataclass(frozen=True, slots=True)
class Limit:
    """The most tokens a prompt may have, and whose error says that it has more."""

    tokens: int
    like: Like = "openai"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; `at` is by the monotonic clock."""

    body: dict[str, Any]
    authorization: str | None
    mode: Mode
    at: float
    path: str = "/v1/chat/completions"


class ModelServer:
    """The server, for as long as its `with` block lasts; see the module."""

    def __init__(
        self,
        answers: Script = (),
        *,
        mode: Mode = "ok",
        limit: Limit | None = None,
        takes_schema: bool = True,
        retry_after_s: float = 1,
        byte_every_s: float = 0.05,
    ) -> None:
        self.mode = mode
        self.limit = limit
        self.takes_schema = takes_schema
        self.retry_after_s = retry_after_s
        self.byte_every_s = byte_every_s
        self.requests: list[Request] = []
        self._script = answers if callable(answers) else iter(_checked(answers))
        self._closing = threading.Event()
        self._server = _Listener(("127.0.0.1", 0), _handler_for(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def mode(self) -> Mode:
        """How it answers; may be set at any time, and holds from the next request on."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}")
        self._mode: Mode = mode

    def __enter__(self) -> Self:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()  # whoever hangs or drips stops
        self._server.shutdown()
        self._server.server_close()

    def _pause(self, seconds: float) -> bool:
        """Wait so long, unless the server closes; whether it is still open."""
        return not self._closing.wait(seconds)

    def _refusal(self, request: Request) -> ErrorAnswer | None:
        """The error that the server's state or the request itself asks for."""
        body = request.body
        if "response_format" in body and not self.takes_schema:
            return bad_request("response_format is not supported", "response_format")
        if request.mode == "500":
            return server_error()
        if request.mode == "429":
            return rate_limit(self.retry_after_s, "rate_limit")  # the mode's name for it
        tokens = prompt_tokens(body) if self.limit else 0
        if self.limit and tokens > self.limit.tokens:
            return overflow(tokens, self.limit.tokens, self.limit.like)
        return None

    def _answer(self, request: Request) -> Answer:
        """What the mode or the script says next, or else what a model of good will would say."""
        mode = request.mode
        if mode == "huge":
            return "x" * HUGE_BYTES
        if mode in BAD_ANSWERS:
            return BAD_ANSWERS[mode]
        if callable(self._script):
            return self._script(request.body)
        answer = next(self._script, None)
        return quote_messages(request.body) if answer is None else answer


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


def _handler_for(owner: ModelServer) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"owner": owner})


class _Handler(Replies):
    """Brings requests to the server that owns it, and its answers back."""

    owner: ModelServer

    def do_GET(self) -> None:
        request = self._keep({})
        place, _, name = self.path.partition("/models")
        found = model(name[1:]) if name else models(["scripted"])
        with contextlib.suppress(ConnectionError):
            if place == "/v1":
                self.send_whole(to_json(found), request.mode)
            else:
                self.send_fault(not_found(self.path))

    def do_POST(self) -> None:
        self.close_connection = True
        body = from_json(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        with contextlib.suppress(ConnectionError):  # the asker may have lost its patience
            if body is None:
                self.send_fault(bad_request("We could not parse the JSON body of your request."))
            else:
                self._serve(self._keep(body))

    def pause(self) -> bool:
        """Wait for as long as a byte takes; False if the server closes."""
        return self.owner._pause(self.owner.byte_every_s)

    def _keep(self, body: dict[str, Any]) -> Request:
        key = self.headers.get("Authorization")
        request = Request(body, key, self.owner.mode, time.monotonic(), self.path)
        self.owner.requests.append(request)
        return request

    def _serve(self, request: Request) -> None:
        chats = self.path.endswith("/chat/completions")
        if not chats and not self.path.endswith("/embeddings"):
            self.send_fault(not_found(self.path))
        elif refusal := self.owner._refusal(request):
            self.send_fault(refusal)
        elif request.mode == "hang":
            while self.owner._pause(60):
                pass
        elif chats:
            self._chat(request, self.owner._answer(request))
        else:
            self.send_whole(to_json(embeddings(request.body)), request.mode)

    def _chat(self, request: Request, answer: Answer) -> None:
        """The answer, as the request wants it: whole or in a stream."""
        body, mode = request.body, request.mode
        if isinstance(answer, Dropped):
            answer, mode = answer.answer, "drop"
        if isinstance(answer, ErrorAnswer):
            return self.send_fault(answer)
        if isinstance(answer, bytes):
            return self.send_whole(answer, mode)
        message, is_cut = message_of(answer), mode == "truncated"
        if is_cut:
            text = message["content"] or ""
            message["content"] = text[: len(text) // 2]
        if body.get("stream"):
            return self.send_stream(stream(body, message, is_cut=is_cut), mode)
        return self.send_whole(to_json(completion(body, message, is_cut=is_cut)), mode)


def _checked(answers: Iterable[Answer]) -> list[Answer]:
    """The answers, unless one cannot be sent: a test should hear that at once."""
    listed = list(answers)
    for answer in listed:
        inner = answer.answer if isinstance(answer, Dropped) else answer
        if not isinstance(inner, bytes | ErrorAnswer):
            message_of(inner)
    return listed
