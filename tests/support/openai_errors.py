"""Errors as OpenAI, vLLM and llama.cpp really send them: they agree in nothing but the status."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, Literal

from tests.support.stub_server import ErrorAnswer

Like = Literal["openai", "vllm", "vllm-0.9", "llama.cpp"]
# By kind and maker: the status and the body, with fields in braces.
_ERRORS = json.loads((files(__package__) / "openai_errors.json").read_text("utf-8"))


def wrong_key(like: Like = "openai") -> ErrorAnswer:
    """401: the key is not known."""
    return _error("wrong_key", like)


def rate_limit(retry_after_s: float = 1) -> ErrorAnswer:
    """429, with Retry-After, as OpenAI sends it; local servers know no such limit."""
    seconds = f"{retry_after_s:g}"
    return replace(_error("rate_limit", seconds=seconds), headers={"Retry-After": seconds})


def server_error(like: Like = "openai") -> ErrorAnswer:
    """500: something broke on the server."""
    return _error("server_error", like)


def overflow(tokens: int, max_tokens: int, like: Like = "openai") -> ErrorAnswer:
    """400: the prompt is longer than the window; each maker says so in its own way."""
    return _error("overflow", like, tokens=tokens, max_tokens=max_tokens, requested=tokens + 100)


def bad_request(message: str, param: str | None = None) -> ErrorAnswer:
    """400: the request cannot be read."""
    return _error("bad_request", message=message, param=param)


def _error(kind: str, like: Like = "openai", **values: Any) -> ErrorAnswer:
    status, body = _ERRORS[kind][like]
    return ErrorAnswer(status, _filled(body, values))


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    """A body with its fields filled in; a text that is one field becomes the value itself."""
    if isinstance(part, dict):
        return {name: _filled(inner, values) for name, inner in part.items()}
    if not isinstance(part, str):
        return part
    return values[part[1:-1]] if part[1:-1] in values else part.format(**values)
