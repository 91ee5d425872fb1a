"""Opening chat models: by the name that settings have, or from an object of another library."""

import asyncio
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from memorist.errors import ConfigError, InvalidError, needs_extra
from memorist.providers.chat_model import (
    CallTimeout,
    ChatMessages,
    ChatModel,
    Reply,
    Schema,
    content_text,
    make_reply,
)
from memorist.providers.langchain import LangChainChat
from memorist.providers.openai_chat import OPENAI_URL, OpenAIChat


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
    if openai_model := openai_name(name, url):
        return OpenAIChat(openai_model, url=url or OPENAI_URL, key=key)
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
            'a model is "provider:model", as "openai:gpt-5-mini", or any name beside a '
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
