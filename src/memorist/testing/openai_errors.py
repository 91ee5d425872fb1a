"""Errors as OpenAI, vLLM and llama.cpp really send them: they agree in nothing but the status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Like = Literal["openai", "vllm", "vllm-0.9", "llama.cpp"]


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An answer that is an error: its status, body and headers."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def wrong_key(like: Like = "openai") -> ErrorAnswer:
    """401: the key is not known."""
    if like == "openai":
        told = (
            "Incorrect API key provided: sk-****. You can find your API key at "
            "https://platform.openai.com/account/api-keys."
        )
        return _openai(401, told, "invalid_request_error", "invalid_api_key")
    if like == "llama.cpp":
        return _llama_cpp(401, "Invalid API Key", "authentication_error")
    return ErrorAnswer(401, {"error": "Unauthorized"})


def rate_limit(retry_after_s: float = 1, code: str = "rate_limit_exceeded") -> ErrorAnswer:
    """429, with Retry-After, as OpenAI sends it; local servers know no such limit."""
    told = (
        "Rate limit reached for requests on tokens per min (TPM): Limit 30000, Used 29980, "
        f"Requested 60. Please try again in {retry_after_s:g}s."
    )
    error = _openai(429, told, "tokens", code)
    return ErrorAnswer(error.status, error.body, {"Retry-After": f"{retry_after_s:g}"})


def server_error(like: Like = "openai") -> ErrorAnswer:
    """500: something broke on the other side."""
    if like == "openai":
        told = "The server had an error while processing your request. Sorry about that!"
        return _openai(500, told, "server_error", None)
    if like == "llama.cpp":
        return _llama_cpp(500, "Compute error.", "server_error")
    return _vllm(500, "EngineCore encountered an issue.", "InternalServerError", like)


def overflow(tokens: int, max_tokens: int, like: Like = "openai") -> ErrorAnswer:
    """400: the prompt is longer than the window; each maker says so in its own way."""
    if like == "openai":
        told = (
            f"This model's maximum context length is {max_tokens} tokens. However, your messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages."
        )
        code = "context_length_exceeded"
        return _openai(400, told, "invalid_request_error", code, "messages")
    if like == "llama.cpp":
        told = (
            f"request ({tokens} tokens) exceeds the available context size "
            f"({max_tokens} tokens), try increasing it"
        )
        sizes = {"n_prompt_tokens": tokens, "n_ctx": max_tokens}
        return _llama_cpp(400, told, "exceed_context_size_error", sizes)
    told = (
        f"This model's maximum context length is {max_tokens} tokens. However, you requested "
        f"{tokens + 100} tokens ({tokens} in the messages, 100 in the completion). Please reduce "
        "the length of the messages or completion."
    )
    return _vllm(400, told, "BadRequestError", like)


def _openai(
    status: int, message: str, kind: str, code: str | None, param: str | None = None
) -> ErrorAnswer:
    told = {"message": message, "type": kind, "param": param, "code": code}
    return ErrorAnswer(status, {"error": told})


def not_found(path: str) -> ErrorAnswer:
    """404: no such place."""
    return _openai(404, f"Invalid URL ({path})", "invalid_request_error", None)


def bad_request(message: str, param: str | None = None) -> ErrorAnswer:
    """400: the request cannot be read."""
    return _openai(400, message, "invalid_request_error", None, param)


def _vllm(status: int, message: str, kind: str, like: Like) -> ErrorAnswer:
    told: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": status}
    if like == "vllm-0.9":  # until then the error lay bare
        return ErrorAnswer(status, {"object": "error", **told})
    return ErrorAnswer(status, {"error": told})


def _llama_cpp(
    status: int, message: str, kind: str, more: Mapping[str, int] | None = None
) -> ErrorAnswer:
    told = {"code": status, "message": message, "type": kind, **(more or {})}
    return ErrorAnswer(status, {"error": told})
