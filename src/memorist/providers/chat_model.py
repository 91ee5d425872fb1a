"""The ChatModel contract, opening models by name, and a time limit for any call."""

import asyncio
import contextvars
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from memorist.errors import ConfigError, InvalidError, ProviderError, needs_extra
from memorist.providers.daemon_pool import DaemonPool, Task

BYTES_PER_TOKEN = 4  # bytes, not characters: other scripts than Latin cost more
MAX_ABANDONED = 8

T = TypeVar("T")
ChatMessages = Sequence[Mapping[str, str]]
"""Messages of the form {"role": …, "content": …}."""
Schema = Mapping[str, Any] | None
"""The JSON schema that an answer should have, if any."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer and its cost; `estimated` if the provider gave no token counts."""

    text: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False


class ChatModel(Protocol):
    """Answers messages of the form {"role": …, "content": …}.

    With `schema`, the text is meant to be JSON of that shape; the caller checks. Every failure
    is a `ProviderError`, and comes within `timeout_s`; nothing is retried.
    """

    name: str

    def complete(
        self, messages: ChatMessages, *, max_tokens: int, timeout_s: float, schema: Schema = None
    ) -> Reply: ...


class RunModel:
    """Any object with `run(messages)` as a ChatModel.

    It answers with text, with a message as a dict, with other JSON, or with a coroutine of these.
    """

    def __init__(self, model: Any) -> None:
        self.name = str(getattr(model, "model_name", type(model).__name__))
        self._model = model
        self._timeout = CallTimeout(self.name)

    def complete(
        self, messages: ChatMessages, *, max_tokens: int, timeout_s: float, schema: Schema = None
    ) -> Reply:
        """The model's answer; it knows neither `max_tokens` nor `schema`: the prompt must say."""

        def work() -> Any:
            answer = self._model.run([dict(message) for message in messages])
            return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer

        answer = self._timeout.run(work, timeout_s)
        content = answer.get("content", answer) if isinstance(answer, Mapping) else answer
        text = content_text(content) or json.dumps(content, ensure_ascii=False, default=str)
        return make_reply(text, messages, None, None)


def as_chat_model(model: Any) -> ChatModel:
    """A ChatModel as it is, or one of LangChain or any with `run(messages)` wrapped as one."""
    if callable(getattr(model, "complete", None)) and isinstance(getattr(model, "name", None), str):
        return cast(ChatModel, model)
    if callable(getattr(model, "invoke", None)):
        from memorist.providers.langchain import LangChainChat

        return LangChainChat(model)
    if callable(getattr(model, "run", None)):
        return RunModel(model)
    raise InvalidError(
        f"model must be a ChatModel, a LangChain chat model or an object with run(messages), got "
        f"{type(model).__name__}; for an OpenAI-compatible server give OpenAIChat(model, url=…)"
    )


def open_model(name: str, url: str = "", key: str = "") -> ChatModel:
    """The model that settings name: "openai:gpt-…", any model at a URL, "anthropic:claude-…".

    With `url` the server is asked in OpenAI's format, and `name` may hold colons of its own.
    """
    from memorist.providers.openai_chat import OPENAI_URL, OpenAIChat

    if openai_model := openai_name(name, url):
        return OpenAIChat(openai_model, url=url or OPENAI_URL, key=key)
    from memorist.providers.langchain import LangChainChat

    return LangChainChat(open_langchain_model(name, key), name=name)


def openai_name(name: str, url: str = "") -> str | None:
    """The model's name for a server that speaks OpenAI's format; None where LangChain opens it."""
    provider, _, model = name.partition(":")
    if provider == "openai" and model:
        return model
    if url and name:
        return name
    if not provider or not model:
        raise ConfigError(
            'MEMORIST_MODEL is "provider:model", as "openai:gpt-5-mini", or any name beside a '
            "MEMORIST_MODEL_URL"
        )
    return None


def open_langchain_model(name: str, key: str = "", *, extra: str = "agents") -> Any:
    """The LangChain chat model "provider:model", by the package of that provider."""
    with needs_extra(extra):
        init_chat_model = import_module("langchain.chat_models").init_chat_model
    try:
        return init_chat_model(name, **({"api_key": key} if key else {}))
    except ImportError as error:  # it names the package to install
        raise ConfigError(f"LangChain cannot open this model: {error}") from None
    except ValueError:
        provider = name.partition(":")[0]
        raise ConfigError(f"LangChain knows no provider {provider!r}, or wants a key") from None


class CallTimeout:
    """Runs calls to a model in threads, each with a time limit.

    A socket's timeout begins anew with every byte and does not cover the lookup of a host, and a
    library may have none at all. A call that is late goes on in its thread, abandoned; while
    `MAX_ABANDONED` of them do, new calls are refused. Only `native` calls are waited for when the
    process ends.
    """

    def __init__(self, who: str, *, native: bool = True) -> None:
        self._who = who
        self._pool = DaemonPool(MAX_ABANDONED, native=native)

    def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """What `work` returns or the ProviderError it raises; another one when time is up."""
        context = contextvars.copy_context()  # so that a host's tracing finds its parent
        task = Task(lambda: context.run(work))
        if not self._pool.start(task, at_once=True):
            raise ProviderError(f"{self._who} is still busy with {MAX_ABANDONED} calls")
        if not task.wait(timeout_s):
            task.drop()
            raise ProviderError(f"{self._who} gave no answer in {timeout_s:g} s")
        if task.error is None or isinstance(task.error, ProviderError):
            return task.result()
        raise ProviderError(f"{self._who} failed unexpectedly ({type(task.error).__name__})")


def estimate_tokens_of(text: str) -> int:
    """About how many tokens a text has, where the provider gives no number."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def make_reply(
    text: str, messages: ChatMessages, input_tokens: object, output_tokens: object
) -> Reply:
    """A reply with the tokens that the provider counted, or an estimate where it gave none."""
    numbers = [number for number in (input_tokens, output_tokens) if type(number) is int]
    if len(numbers) == 2 and all(0 <= number < 2**40 for number in numbers):
        return Reply(text, numbers[0], numbers[1])
    asked = sum(estimate_tokens_of(message["content"]) for message in messages)
    return Reply(text, asked, estimate_tokens_of(text), estimated=True)


def content_text(content: object) -> str:
    """The text of a message's content, given as text or in parts; reasoning is left out."""
    parts: list[Any] = content if isinstance(content, list) else [content]
    texts = [
        part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else part
        for part in parts
    ]
    return "".join(text for text in texts if isinstance(text, str))
