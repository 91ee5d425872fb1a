"""A LangChain chat model that answers by a script, and keeps what it was asked.

    model = ScriptedChatModel([{"name": "recall", "args": {"query": "city"}}, "In Berlin."])
    agent = create_agent(model, tools=[recall])
    agent.invoke({"messages": "Where does Ada live?"})
    assert model.prompts[0].tools[0]["function"]["name"] == "recall"

`replies` are given one by one, or are a function of the messages. A reply is a text; a tool call
{"name": …, "args": …}, with an "id" if it matters, or a list of them; an `AIMessage`, or a dict
with "content" and whatever else one has; an exception, which is raised; `Cut`; or a function of
the messages that returns any of these.

With `max_input_tokens`, a longer prompt is refused as a provider would, and no reply is used up.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from memorist.context.tokens import TokenCounter
from memorist.errors import InvalidError, ProviderError, needs_extra
from memorist.providers.tokenizer import tokenizer_for
from memorist.records.values import new_id

with needs_extra("langchain"):
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


@dataclass(frozen=True)
class Cut:
    """A reply that breaks off: streamed, its text comes before the error."""

    text: str
    error: Exception = field(default_factory=lambda: ConnectionError("the connection was lost"))


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
    limit. `counter` counts the tokens; the default is Memorist's own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    replies: Any = Field(default=(), exclude=True, repr=False)
    model: str = "scripted"
    max_input_tokens: int | None = None
    overflow: Callable[[int, int], BaseException] = Field(
        default=ScriptedOverflowError, exclude=True, repr=False
    )
    counter: Any = Field(default=None, exclude=True, repr=False)

    _script: Iterator[Any] = PrivateAttr()
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _prompts: list[Prompt] = PrivateAttr(default_factory=list)

    def __init__(self, replies: Any = (), **fields: Any) -> None:
        if isinstance(replies, str):
            raise InvalidError("replies is a list of replies, or a function of the messages")
        fields["replies"] = replies
        super().__init__(**fields)
        over = ProviderError("the script is over: give it one more reply")
        self._script = chain(repeat(replies) if callable(replies) else replies, repeat(over))
        self.counter = self.counter or TokenCounter(tokenizer_for())

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
        if tool_choice is not None:
            options["tool_choice"] = tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def get_num_tokens(self, text: str) -> int:
        """The tokens of a text, counted offline."""
        return int(self.counter.text(text))

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """The tokens of a prompt: its messages and its tools."""
        schemas = [convert_to_openai_tool(tool) for tool in tools or ()]
        messages_tokens = self.counter.request(convert_to_openai_messages(messages))
        return int(messages_tokens + self.counter.tools(schemas))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        reply = self._reply(messages, stop, options)
        if isinstance(reply, Cut):
            raise reply.error
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages, stop, options)
        for message in _chunks(reply):
            chunk = ChatGenerationChunk(message=message)
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
        if isinstance(reply, Cut):
            raise reply.error

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]
    ) -> AIMessage | Cut:
        """The next reply of the script; raises the error that it or the prompt's length is."""
        others = {**options, "stop": stop} if stop else dict(options)
        tools = list(others.pop("tools", None) or ())
        tokens = self.get_num_tokens_from_messages(messages, tools)
        self._prompts.append(Prompt(list(messages), tools, others, tokens))
        if self.max_input_tokens is not None and tokens > self.max_input_tokens:
            raise self.overflow(tokens, self.max_input_tokens)
        with self._lock:
            scripted = next(self._script)
        reply = _message(scripted, messages)
        return reply if isinstance(reply, Cut) else self._priced(reply, tokens)

    def _priced(self, reply: AIMessage, tokens: int) -> AIMessage:
        """A copy with what it cost, so that the script's own message stays as it is."""
        texts = [str(reply.text), *(json.dumps(call["args"]) for call in reply.tool_calls)]
        out = sum(self.counter.texts(texts))
        usage = UsageMetadata(input_tokens=tokens, output_tokens=out, total_tokens=tokens + out)
        finish = "tool_calls" if reply.tool_calls else "stop"
        about = {"model_name": self.model, "finish_reason": finish, **reply.response_metadata}
        return reply.model_copy(
            update={"usage_metadata": reply.usage_metadata or usage, "response_metadata": about}
        )


def _message(reply: Any, messages: list[BaseMessage]) -> AIMessage | Cut:
    """A reply of any form as a message; an exception is raised."""
    is_kind = isinstance(reply, type) and issubclass(reply, BaseException)
    if is_kind or isinstance(reply, BaseException):
        raise reply
    if isinstance(reply, AIMessage | Cut):
        return reply
    if isinstance(reply, str):
        return AIMessage(reply)
    if isinstance(reply, Mapping) and "content" in reply:
        return AIMessage(**reply)
    if isinstance(reply, Mapping | list | tuple):
        calls = [reply] if isinstance(reply, Mapping) else reply
        return AIMessage("", tool_calls=[_call(call) for call in calls])
    if callable(reply):
        return _message(reply(list(messages)), messages)
    raise InvalidError(f"a scripted reply cannot be a {type(reply).__name__}")


def _call(call: Any) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise InvalidError('a scripted tool call is a dict with a "name" and "args"')
    return tool_call(
        name=call["name"], args=dict(call.get("args", {})), id=call.get("id") or f"call_{new_id()}"
    )


def _chunks(reply: AIMessage | Cut) -> Iterator[AIMessageChunk]:
    """A reply as a provider streams it: words, then tool calls in parts, then what it cost."""
    whole = AIMessage(reply.text) if isinstance(reply, Cut) else reply
    content = whole.content
    words = re.findall(r"\S+\s*|\s+", content) if isinstance(content, str) else [content]
    for piece in filter(None, words):
        yield AIMessageChunk(content=piece, id=whole.id)
    for index, call in enumerate(whole.tool_calls):
        args = json.dumps(call["args"], ensure_ascii=False)
        half = len(args) // 2
        begun = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
        rest = [tool_call_chunk(args=it, index=index) for it in (args[:half], args[half:])]
        for part in (begun, *rest):
            yield AIMessageChunk(content="", tool_call_chunks=[part], id=whole.id)
    if not isinstance(reply, Cut):
        yield AIMessageChunk(
            content="",
            id=whole.id,
            name=whole.name,
            additional_kwargs=whole.additional_kwargs,
            response_metadata=whole.response_metadata,
            usage_metadata=whole.usage_metadata,
            chunk_position="last",
        )
