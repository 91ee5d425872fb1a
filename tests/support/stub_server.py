"""A model's server to test against, which answers by a script.

It listens on this machine only, speaks OpenAI's wire format (chat completions with tools and
streams, embeddings, the list of models) and needs no key.

    with ModelServer(["Hello, Ada."]) as server:
        chat = OpenAIChat("any", url=server.url)
        print(chat.complete([{"role": "user", "content": "Hi"}], max_tokens=9, timeout_s=5).text)
        assert server.requests[0].body["model"] == "any"

`answers` are given one by one, or are a function from the request's body to an answer:

    "text"                                     the model's text
    [{"name": "recall", "args": {…}}, …]       tool calls, with an "id" each if it matters
    {"role": "assistant", "content": …, …}     a message in OpenAI's own form
    {…}                                        any other dict, as the model's JSON text
    ErrorAnswer(429, {…})                      an error, with its status and body
    b"…"                                       the whole body of the response
"""

import base64
import contextlib
import hashlib
import json
import re
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from memorist.errors import InvalidError
from memorist.records.values import new_id

Json = dict[str, Any]
DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An answer that is an error: its status, body and headers."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def refusal(cls, message: str, status: int = 400) -> Self:
        """The error as OpenAI words it; by default of a request that it cannot read."""
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return cls(status, {"error": error})


Answer = str | bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]] | ErrorAnswer
Script = Iterable[Any] | Callable[[Json], Any]
"""The answers, one by one, or a function that makes them."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; `at` is by the monotonic clock."""

    body: Json
    authorization: str | None
    at: float
    path: str = "/v1/chat/completions"


class Handler(BaseHTTPRequestHandler):
    """One connection, which brings requests to the server that owns it, and its answers back."""

    protocol_version = "HTTP/1.1"  # so that a client notices a stream that breaks off
    owner: "ModelServer"

    def do_GET(self) -> None:
        self.keep({})
        place, _, name = self.path.partition("/models")
        models = {"object": "list", "data": [_model("scripted")]}
        with contextlib.suppress(ConnectionError):
            if place == "/v1":
                self.send(_model(name[1:]) if name else models)
            else:
                self.send(_not_found(self.path))

    def do_POST(self) -> None:
        self.close_connection = True
        raw, body = self.rfile.read(int(self.headers.get("Content-Length", 0))), None
        with contextlib.suppress(ValueError):
            body = json.loads(raw)
        with contextlib.suppress(ConnectionError):  # the client may have given up
            if isinstance(body, dict):
                self.serve(self.keep(body))
            else:
                problem = "We could not parse the JSON body of your request."
                self.send(ErrorAnswer.refusal(problem))

    def keep(self, body: Json) -> Request:
        """Note what was asked."""
        key = self.headers.get("Authorization")
        request = Request(body, key, time.monotonic(), self.path)
        self.owner.requests.append(request)
        return request

    def serve(self, request: Request) -> None:
        """Answer a request with a body."""
        if self.path.endswith("/chat/completions"):
            self.reply(request.body, self.owner.answer(request))
        elif self.path.endswith("/embeddings"):
            self.send(_embeddings(request.body))
        else:
            self.send(_not_found(self.path))

    def reply(self, asked: Json, answer: Any) -> None:
        """Send an answer of the script."""
        if isinstance(answer, bytes | ErrorAnswer):
            return self.send(answer)
        message = message_of(answer)
        return self.say(asked, message, "tool_calls" if message.get("tool_calls") else "stop")

    def say(self, asked: Json, message: Json, finish: str) -> None:
        """Send the model's message as the request wants it: whole or in a stream."""
        if not asked.get("stream"):
            return self.send(_completion(asked, message, finish))
        self._send_head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        events = (*_events(asked, message, finish), b"")  # the empty chunk is the last
        return self.write([b"%x\r\n%s\r\n" % (len(event), event) for event in events])

    def send(self, answer: bytes | Mapping[str, Any] | ErrorAnswer) -> None:
        """Send a whole body; an error with its status."""
        status, headers = 200, dict[str, str]()
        if isinstance(answer, ErrorAnswer):
            status, headers, answer = answer.status, dict(answer.headers), answer.body
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._send_head(status, "application/json", headers | {"Content-Length": str(len(data))})
        self.write([data])

    def _send_head(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def write(self, parts: Sequence[bytes]) -> None:
        """Write what follows the headers."""
        for part in parts:
            self.wfile.write(part)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


class _Listener(ThreadingHTTPServer):
    request_queue_size = 128


class ModelServer:
    """The server, for as long as its `with` block lasts; see the module."""

    handler: type[Handler] = Handler

    def __init__(self, answers: Script = ()) -> None:
        self.requests: list[Request] = []
        self._script = answers if callable(answers) else iter(list(map(self.checked, answers)))
        self._closing = threading.Event()
        self._server = _Listener(("127.0.0.1", 0), type("_", (self.handler,), {"owner": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def checked(self, answer: Any) -> Any:
        """An answer, unless it cannot be sent: a test should hear that at once."""
        if not isinstance(answer, bytes | ErrorAnswer):
            message_of(answer)
        return answer

    def answer(self, request: Request) -> Any:
        """What the script says next."""
        if callable(self._script):
            return self._script(request.body)
        over = ErrorAnswer.refusal("the script is over: give it one more answer", 500)
        return next(self._script, over)


def message_of(answer: Any) -> Json:
    """The assistant's message that an answer stands for."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    if isinstance(answer, Mapping) and answer.get("role") == "assistant":
        return {"content": None, **answer}
    if isinstance(answer, Mapping):
        return message_of(json.dumps(answer, ensure_ascii=False))
    if isinstance(answer, list | tuple):
        return {"role": "assistant", "content": None, "tool_calls": list(map(_call, answer))}
    raise InvalidError(f"an answer cannot be a {type(answer).__name__}")


def _call(call: Any) -> Json:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise InvalidError('a tool call is a dict with a "name" and "args"')
    arguments = call.get("args", {})
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call.get("id") or f"call_{new_id()}", "type": "function", "function": function}


def _completion(request: Json, message: Json, finish: str) -> Json:
    """The whole answer to a request that did not ask for a stream."""
    message = {"refusal": None, **message}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    head = _head(request, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(request, message)}


def _events(request: Json, message: Json, finish: str) -> Iterator[bytes]:
    """The events of a stream: role, words, tool calls in parts, the end, and what it cost."""
    head = _head(request, "chat.completion.chunk")
    wants_usage = (request.get("stream_options") or {}).get("include_usage")
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}
        for delta, reason in (*((delta, None) for delta in _deltas(message)), ({}, finish))
    ]
    if wants_usage:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({"choices": [], "usage": _usage(request, message)})
    for chunk in chunks:
        yield b"data: " + json.dumps({**head, **chunk}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _deltas(message: Json) -> Iterator[Json]:
    content = message.get("content")
    yield {"role": "assistant", "content": None if content is None else "", "refusal": None}
    for piece in re.findall(r"\S+\s*|\s+", content or ""):  # word by word
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        begun = {**call, "function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **begun}]}
        arguments, half = function["arguments"], len(function["arguments"]) // 2
        for part in (arguments[:half], arguments[half:]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _head(request: Json, kind: str) -> Json:
    about = {"object": kind, "created": int(time.time()), "model": request.get("model")}
    return {"id": f"chatcmpl-{new_id()}", **about}


def _usage(request: Json, message: Json) -> dict[str, int]:
    """What an answer cost, at four characters a token."""
    asked = sum(len(str(turn.get("content"))) // 4 for turn in request.get("messages", ()))
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    answered = sum(len(text) // 4 for text in (message.get("content") or "", *calls))
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 1, "owned_by": "memorist"}


def _not_found(path: str) -> ErrorAnswer:
    return ErrorAnswer.refusal(f"Invalid URL ({path})", 404)


def _embeddings(request: Json) -> Json:
    """Vectors for texts or tokens: the same for the same, and near for what shares words."""
    inputs = request.get("input", [])
    if isinstance(inputs, str) or (inputs and isinstance(inputs[0], int)):
        inputs = [inputs]
    width = request.get("dimensions") or DIMENSIONS
    words = [re.findall(r"\w+", str(text).lower()) for text in inputs]
    vectors: list[Any] = [_vector(each, width) for each in words]
    if request.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{width}f", *row)).decode() for row in vectors]
    rows = [{"object": "embedding", "index": at, "embedding": it} for at, it in enumerate(vectors)]
    count = sum(map(len, words))
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": rows, "model": request.get("model"), "usage": usage}


def _vector(words: Sequence[str], width: int) -> list[float]:
    """Words counted in places that their hashes choose, at unit length."""
    row = [0.0] * width
    row[0] = 1e-3  # so that no row is zero
    for word in words:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        row[int.from_bytes(digest[:7], "big") % width] += 1 if digest[7] % 2 else -1
    length = sum(value * value for value in row) ** 0.5
    return [value / length for value in row]
