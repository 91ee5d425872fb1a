"""Chat models by what they are or what they are called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from memorist.errors import ConfigError, InvalidError, MissingExtraError
from memorist.providers.chat_model import ChatModel
from memorist.providers.langchain_chat import LangChainChat
from memorist.providers.openai_chat import OPENAI_URL, OpenAIChat


def as_chat_model(model: Any) -> ChatModel:
    """Our protocol as it is; a LangChain chat model in a thin coat."""
    if callable(getattr(model, "complete", None)) and isinstance(getattr(model, "name", None), str):
        ours: ChatModel = model
        return ours
    if callable(getattr(model, "invoke", None)):
        return LangChainChat(model)
    raise InvalidError(
        f"model must be a ChatModel or a LangChain chat model, got {type(model).__name__}; "
        "for an OpenAI-compatible server give OpenAIChat(model, url=…)"
    )


def open_model(name: str, url: str = "", key: str = "") -> ChatModel:
    """The model that settings name: "openai:gpt-…", any model at a URL, "anthropic:claude-…".

    With `url` the server is asked in OpenAI's format, and `name` may hold colons of its own.
    """
    provider, _, model = name.partition(":")
    if provider == "openai" and model:
        return OpenAIChat(model, url=url or OPENAI_URL, key=key)
    if url and name:
        return OpenAIChat(name, url=url, key=key)
    if not provider or not model:
        raise ConfigError('a model is "provider:model", as "openai:gpt-5-mini", or has a URL')
    return _open_by_langchain(name, provider, key)


def _open_by_langchain(name: str, provider: str, key: str) -> ChatModel:
    try:
        init_chat_model = import_module("langchain.chat_models").init_chat_model
    except ImportError:
        raise MissingExtraError("agents") from None
    try:
        made = init_chat_model(name, **({"api_key": key} if key else {}))
    except ImportError as error:  # it names the package to install
        raise ConfigError(f"LangChain cannot open this model: {error}") from None
    except ValueError:
        raise ConfigError(f"LangChain knows no provider {provider!r}") from None
    return LangChainChat(made, name=name)
