"""OpenAI's wire format as a server writes it: answers, streams, models and vectors."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorist.errors import InvalidError
from memorist.records.values import new_id
from memorist.testing.openai_errors import ErrorAnswer
from memorist.testing.plain_counter import PlainCounter

Json = dict[str, Any]
DIMENSIONS = 64
_PIECES = re.compile(r"\S*\s*")  # a stream comes word by word


@dataclass(frozen=True, slots=True)
class Dropped:
    """An answer whose connection ends in the midst of it."""

    answer: Any


Answer = str | bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]] | ErrorAnswer | Dropped


def message_of(answer: Any) -> Json:
    """The assistant's message that an answer stands for; see `ModelServer`."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    if isinstance(answer, Mapping) and answer.get("role") == "assistant":
        return {"content": None, **answer}
    if isinstance(answer, Mapping):
        return message_of(json.dumps(answer, ensure_ascii=False))
    if isinstance(answer, list | tuple):
        return {"role": "assistant", "content": None, "tool_calls": [_call(it) for it in answer]}
    raise InvalidError(f"an answer cannot be a {type(answer).__name__}")


def _call(call: Any) -> Json:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise InvalidError('a tool call is a dict with a "name" and "args"')
    given = call.get("args", {})
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call.get("id") or f"call_{new_id()}", "type": "function", "function": function}


def completion(request: Json, message: Json, *, is_cut: bool = False) -> Json:
    """The whole answer to a request that did not ask for a stream."""
    choice = {
        "index": 0,
        "message": {"refusal": None, **message},
        "logprobs": None,
        "finish_reason": _finish(message, is_cut),
    }
    head = _head(request, "chat.completion")
    return {**head, "choices": [choice], "usage": usage(request, message)}


def stream(request: Json, message: Json, *, is_cut: bool = False) -> Iterator[bytes]:
    """The events of a stream: role, words, tool calls in parts, the end, and what it cost."""
    head = _head(request, "chat.completion.chunk")
    wants_usage = (request.get("stream_options") or {}).get("include_usage")
    silent = {"usage": None} if wants_usage else {}
    for delta in _deltas(message):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        yield _event({**head, "choices": [choice], **silent})
    end = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish(message, is_cut)}
    yield _event({**head, "choices": [end], **silent})
    if wants_usage:
        yield _event({**head, "choices": [], "usage": usage(request, message)})
    yield b"data: [DONE]\n\n"


def _deltas(message: Json) -> Iterator[Json]:
    content = message.get("content")
    yield {"role": "assistant", "content": None if content is None else "", "refusal": None}
    for piece in filter(None, _PIECES.findall(content or "")):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        begun = {**call, "function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **begun}]}
        arguments, half = function["arguments"], len(function["arguments"]) // 2
        for part in (arguments[:half], arguments[half:]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _event(data: Json) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _finish(message: Json, is_cut: bool) -> str:
    if is_cut:
        return "length"
    return "tool_calls" if message.get("tool_calls") else "stop"


def _head(request: Json, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{new_id()}",
        "object": kind,
        "created": int(time.time()),
        "model": request.get("model"),
    }


def usage(request: Json, message: Json) -> dict[str, int]:
    """What an answer cost, at four characters a token."""
    asked = sum(len(str(one.get("content"))) // 4 for one in request.get("messages", ()))
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    answered = sum(len(text) // 4 for text in (message.get("content") or "", *calls))
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def prompt_tokens(request: Json) -> int:
    """The tokens of a request's messages and tools."""
    counter = PlainCounter()
    return counter.request(request.get("messages", ())) + counter.tools(request.get("tools", ()))


def models(names: Sequence[str]) -> Json:
    """The list of models."""
    return {"object": "list", "data": [model(name) for name in names]}


def model(name: str) -> Json:
    """One model's entry in the list."""
    return {"id": name, "object": "model", "created": 1, "owned_by": "memorist"}


def embeddings(request: Json) -> Json:
    """Vectors for texts or tokens: the same for the same, and near for what shares words."""
    given = request.get("input", [])
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        given = [given]
    width = request.get("dimensions") or DIMENSIONS
    is_packed = request.get("encoding_format") == "base64"
    vectors = [vector(words_of(one), width) for one in given]
    data = [
        {"object": "embedding", "index": at, "embedding": _packed(row) if is_packed else row}
        for at, row in enumerate(vectors)
    ]
    count = sum(len(words_of(one)) for one in given)
    cost = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": request.get("model"), "usage": cost}


def words_of(given: str | Sequence[int]) -> list[str]:
    """The words of a text, or tokens as words."""
    return re.findall(r"\w+", given.lower()) if isinstance(given, str) else list(map(str, given))


def vector(words: Sequence[str], width: int) -> list[float]:
    """Words counted in places that their hashes choose, at unit length."""
    row = [0.0] * width
    row[0] = 1e-3  # what has no words is not zero
    for word in words:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        row[int.from_bytes(digest[:7], "big") % width] += 1 if digest[7] % 2 else -1
    length = sum(value * value for value in row) ** 0.5
    return [value / length for value in row]


def _packed(row: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()
