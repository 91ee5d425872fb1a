"""What a scripted chat model says: replies of many forms, as messages and as streams."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memorist.errors import InvalidError, MissingExtraError, ProviderError
from memorist.records.ids import new_id

try:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
    from langchain_core.messages.tool import tool_call, tool_call_chunk
    from langchain_core.outputs import ChatGenerationChunk
except ImportError as error:
    raise MissingExtraError("langchain") from error

_PIECES = re.compile(r"\S*\s*")  # a stream comes word by word


@dataclass(frozen=True)
class Cut:
    """A reply that breaks off: streamed, its text comes before the error."""

    text: str
    error: Exception = field(default_factory=lambda: ConnectionError("the connection was lost"))


Reply = (
    str
    | AIMessage
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
    | BaseException
    | type[BaseException]
    | Cut
    | Callable[[list[BaseMessage]], Any]
)


class Script:
    """Replies one by one, for any number of threads."""

    def __init__(self, replies: Any) -> None:
        self._function = replies if callable(replies) else None
        self._replies = iter(()) if callable(replies) else iter(replies)
        self._given = 0
        self._lock = threading.Lock()

    def next(self, messages: list[BaseMessage]) -> AIMessage | Cut:
        """What the model says now."""
        if self._function is not None:
            return _message(self._function, messages)
        with self._lock:
            try:
                reply = next(self._replies)
            except StopIteration:
                told = f"the script is over after {self._given} replies: give it one more"
                raise ProviderError(told) from None
            self._given += 1
        return _message(reply, messages)


def _message(reply: Any, messages: list[BaseMessage]) -> AIMessage | Cut:
    """A reply of any form as a message; an exception is raised."""
    if isinstance(reply, BaseException) or (
        isinstance(reply, type) and issubclass(reply, BaseException)
    ):
        raise reply
    if isinstance(reply, AIMessage | Cut):
        return reply
    if isinstance(reply, str):
        return AIMessage(reply)
    if isinstance(reply, Mapping) and "content" in reply:
        return AIMessage(**reply)
    if isinstance(reply, Mapping):
        return AIMessage("", tool_calls=[_call(reply)])
    if isinstance(reply, list | tuple):
        return AIMessage("", tool_calls=[_call(call) for call in reply])
    if callable(reply):
        return _message(reply(list(messages)), messages)
    raise InvalidError(f"a scripted reply cannot be a {type(reply).__name__}")


def _call(call: Any) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise InvalidError('a scripted tool call is a dict with a "name" and "args"')
    return tool_call(
        name=call["name"], args=dict(call.get("args", {})), id=call.get("id") or f"call_{new_id()}"
    )


def chunks(said: AIMessage, *, last: bool) -> Iterator[ChatGenerationChunk]:
    """A message as a provider streams it: words, then tool calls in parts, then what it cost."""
    for content in _contents(said.content):
        yield _chunk(content=content, id=said.id)
    for index, call in enumerate(said.tool_calls):
        arguments = json.dumps(call["args"], ensure_ascii=False)
        half = len(arguments) // 2
        begun = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
        rest = [
            tool_call_chunk(args=part, index=index) for part in (arguments[:half], arguments[half:])
        ]
        for part in (begun, *rest):
            yield _chunk(content="", tool_call_chunks=[part], id=said.id)
    if last:
        yield _chunk(
            content="",
            id=said.id,
            name=said.name,
            additional_kwargs=said.additional_kwargs,
            response_metadata=said.response_metadata,
            usage_metadata=said.usage_metadata,
            chunk_position="last",
        )


def _chunk(**fields: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(**fields))


def _contents(content: str | list[Any]) -> Iterator[Any]:
    if isinstance(content, str):
        yield from filter(None, _PIECES.findall(content))
    elif content:
        yield content
