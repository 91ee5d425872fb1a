"""The chat model that settings name, as LangChain has it."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from memorist.config import Settings
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.errors import ConfigError, InvalidError, MissingExtraError
from memorist.records.text import check_text

TIMEOUT_S = 60.0  # of silence
RETRIES = 1
CURE = "see MEMORIST_MODEL, MEMORIST_MODEL_URL and MEMORIST_MODEL_KEY"
LEAST_WINDOW = 4_000  # the tools alone may take a quarter of that
NO_KEY = "none"  # a server on this machine asks for none, and the client for one in any case


def open_langchain_model(settings: Settings) -> Any | None:
    """The model of MEMORIST_MODEL, _MODEL_URL and _MODEL_KEY; None where none is named.

    "openai:name", or any name with a URL, is asked in OpenAI's format; else LangChain opens
    "provider:name" by the package of that provider.
    """
    provider, _, model = settings.model.partition(":")
    if not settings.model:
        return None
    if provider == "openai" and model:
        return _openai(model, settings)
    if settings.model_url:
        return _openai(settings.model, settings)
    if not model:
        raise ConfigError(
            'MEMORIST_MODEL is "provider:model", as "openai:gpt-5-mini", or any name beside a '
            "MEMORIST_MODEL_URL"
        )
    return _by_its_provider(settings, provider)


def window_of(settings: Settings, usual: Window) -> Window:
    """The window of MEMORIST_MODEL_WINDOW tokens, counted as the model counts; else the usual."""
    window = replace(usual, model=usual.model or settings.model.rpartition(":")[2])
    if not settings.model_window:
        return window
    given = settings.model_window
    tokens = int(given) if given.isascii() and given.isdigit() and len(given) < 12 else 0
    if tokens < LEAST_WINDOW:
        raise ConfigError(
            f"MEMORIST_MODEL_WINDOW is a number of tokens, and at least {LEAST_WINDOW:,}"
        )
    return replace(window, max_tokens=tokens, answer_tokens=min(usual.answer_tokens, tokens // 4))


def system_of(settings: Settings, usual: str, window: Window) -> str:
    """The prompt of MEMORIST_SYSTEM, or else the usual one."""
    if not settings.system.strip():
        return usual
    try:
        system = check_text(settings.system, "MEMORIST_SYSTEM", InvalidError)
    except InvalidError as error:
        raise ConfigError(str(error)) from None
    taken = TokenCounter(window.counts_with()).request([{"role": "system", "content": system}])
    if taken > window.budget // 2:
        raise ConfigError(
            f"MEMORIST_SYSTEM takes {taken:,} tokens, more than half of the window; shorten it "
            "or raise MEMORIST_MODEL_WINDOW"
        )
    return system


def _openai(model: str, settings: Settings) -> Any:
    try:
        made = import_module("langchain_openai").ChatOpenAI
    except ImportError:
        raise MissingExtraError("chat") from None
    options: dict[str, Any] = {"timeout": TIMEOUT_S, "max_retries": RETRIES}
    if settings.model_url:
        options |= {"base_url": settings.model_url, "api_key": settings.model_key or NO_KEY}
        options["use_responses_api"] = False  # which few servers but OpenAI's own have
    elif settings.model_key:
        options["api_key"] = settings.model_key
    try:
        return made(model=model, **options)
    except Exception as error:  # noqa: BLE001 - the client's own kinds, whose text may hold the key
        raise ConfigError(f"the model cannot be opened ({type(error).__name__}); {CURE}") from None


def _by_its_provider(settings: Settings, provider: str) -> Any:
    try:
        init_chat_model = import_module("langchain.chat_models").init_chat_model
    except ImportError:
        raise MissingExtraError("chat") from None
    key = {"api_key": settings.model_key} if settings.model_key else {}
    try:
        return init_chat_model(settings.model, **key)
    except ImportError as error:  # it names the package to install
        raise ConfigError(f"LangChain cannot open this model: {error}") from None
    except ValueError:
        raise ConfigError(f"LangChain knows no provider {provider!r}, or wants a key") from None
