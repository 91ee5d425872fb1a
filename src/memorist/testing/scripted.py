"""A LangChain chat model that says what a test tells it to, and keeps what it was asked.

    model = ScriptedChatModel([{"name": "recall", "args": {"query": "city"}}, "In Berlin."])
    agent = create_agent(model, tools=[recall])
    agent.invoke({"messages": "Where does Ada live?"})
    assert model.prompts[0].tools[0]["function"]["name"] == "recall"

`replies` is given one by one, or is a function of the messages. A reply is a text; a tool call
{"name": …, "args": …}, with an "id" if it matters, or a list of them; an `AIMessage`, or a dict
with "content" and whatever else one has; an exception, which is raised; `Cut`; or a function of
the messages that returns any of these.

With `max_input_tokens`, a longer prompt is refused as a provider would, and no reply is used up.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memorist.errors import InvalidError, MissingExtraError, ProviderError
from memorist.records.values import new_id
from memorist.testing.plain_counter import PlainCounter

try:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.exceptions import ContextOverflowError
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.language_models.model_profile import ModelProfile
    from langchain_core.messages import (
        AIMessage,
        AIMessageChunk,
        BaseMessage,
        convert_to_openai_messages,
    )
    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.messages.tool import tool_call, tool_call_chunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from pydantic import ConfigDict, Field, PrivateAttr
except ImportError as error:
    raise MissingExtraError("langchain") from error

__all__ = ["Cut", "Prompt", "ScriptedChatModel", "ScriptedOverflowError"]


_PIECES = re.compile(r"\S*\s*")  # a stream comes word by word


@dataclass(frozen=True)
class Cut:
    """A reply that breaks off: streamed, its text comes before the error."""

    text: str
    error: Exception = field(default_factory=lambda: ConnectionError("the connection was lost"))


ScriptedReply = (
    str
    | AIMessage
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
    | BaseException
    | type[BaseException]
    | Cut
    | Callable[[list[BaseMessage]], Any]
)


class _Script:
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


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model was asked: messages, tools in OpenAI's form, other options, and its size."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]]
    options: dict[str, Any]
    tokens: int


class ScriptedOverflowError(ContextOverflowError):
    """The prompt is longer than the window; says so as OpenAI does."""

    code = "context_length_exceeded"
    status_code = 400

    def __init__(self, tokens: int, max_tokens: int) -> None:
        super().__init__(
            f"Error code: 400 - This model's maximum context length is {max_tokens} tokens. "
            f"However, your messages resulted in {tokens} tokens. Please reduce the length of "
            "the messages. (context_length_exceeded)"
        )


class ScriptedChatModel(BaseChatModel):
    """A chat model with a script; see the module.

    `overflow` makes the error for a prompt of more than `max_input_tokens`, from its size and the
    limit. `counter` may be `memorist.context.tokens.TokenCounter`; the default never
    counts more than that.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    replies: Any = Field(default=(), exclude=True, repr=False)
    model: str = "scripted"
    max_input_tokens: int | None = None
    overflow: Callable[[int, int], BaseException] = Field(
        default=ScriptedOverflowError, exclude=True, repr=False
    )
    counter: Any = Field(default=None, exclude=True, repr=False)

    _script: _Script = PrivateAttr()
    _prompts: list[Prompt] = PrivateAttr(default_factory=list)

    def __init__(self, replies: Any = (), **fields: Any) -> None:
        if isinstance(replies, str):
            raise InvalidError("replies is a list of replies, or a function of the messages")
        fields["replies"] = replies
        super().__init__(**fields)
        self._script = _Script(replies)
        self.counter = self.counter or PlainCounter()

    @property
    def prompts(self) -> list[Prompt]:
        """Every prompt so far, also those that were refused; bound copies share the list."""
        return self._prompts

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model}

    def _resolve_model_profile(self) -> ModelProfile | None:
        if self.max_input_tokens is None:
            return None
        return ModelProfile(max_input_tokens=self.max_input_tokens, tool_calling=True)

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **options: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools, which each prompt then names."""
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        chosen = {"tool_choice": tool_choice} if tool_choice is not None else {}
        return self.bind(tools=schemas, **chosen, **options)

    def get_num_tokens(self, text: str) -> int:
        """The tokens of a text, counted offline."""
        return PlainCounter().texts([text])

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """The tokens of a prompt: its messages and its tools."""
        schemas = [convert_to_openai_tool(tool) for tool in tools or ()]
        counted: int = self.counter.request(convert_to_openai_messages(messages))
        return counted + int(self.counter.tools(schemas))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        said = self._reply(messages, stop, options)
        if isinstance(said, Cut):
            raise said.error
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._reply(messages, stop, options)
        whole = AIMessage(said.text) if isinstance(said, Cut) else said
        for chunk in _chunks(whole, last=not isinstance(said, Cut)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
        if isinstance(said, Cut):
            raise said.error

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]
    ) -> AIMessage | Cut:
        """The next reply of the script, or the error that it or the prompt's length is."""
        tools = list(options.get("tools") or ())
        others = {key: value for key, value in options.items() if key != "tools"}
        if stop:
            others["stop"] = stop
        tokens = self.get_num_tokens_from_messages(messages, tools)
        self._prompts.append(Prompt(list(messages), tools, others, tokens))
        if self.max_input_tokens is not None and tokens > self.max_input_tokens:
            raise self.overflow(tokens, self.max_input_tokens)
        said = self._script.next(messages)
        return said if isinstance(said, Cut) else self._priced(said, tokens)

    def _priced(self, said: AIMessage, tokens: int) -> AIMessage:
        """A copy, so that the script's own message stays as it is, with what it cost."""
        texts = [str(said.text), *(json.dumps(call["args"]) for call in said.tool_calls)]
        answered = PlainCounter().texts(texts)
        usage = UsageMetadata(
            input_tokens=tokens, output_tokens=answered, total_tokens=tokens + answered
        )
        finish = "tool_calls" if said.tool_calls else "stop"
        about = {"model_name": self.model, "finish_reason": finish, **said.response_metadata}
        return said.model_copy(
            update={"usage_metadata": said.usage_metadata or usage, "response_metadata": about}
        )


def _chunks(said: AIMessage, *, last: bool) -> Iterator[ChatGenerationChunk]:
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
