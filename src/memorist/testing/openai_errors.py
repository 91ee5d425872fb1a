"""Errors as OpenAI, vLLM and llama.cpp really send them: they agree in nothing but the status."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Like = Literal["openai", "vllm", "vllm-0.9", "llama.cpp"]
_INVALID = "invalid_request_error"


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An answer that is an error: its status, body and headers."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def wrong_key(like: Like = "openai") -> ErrorAnswer:
    """401: the key is not known."""
    if like == "openai":
        page = "https://platform.openai.com/account/api-keys"
        text = f"Incorrect API key provided: sk-****. You can find your API key at {page}."
        return _openai(401, text, _INVALID, "invalid_api_key")
    if like == "llama.cpp":
        return _llama_cpp(401, "Invalid API Key", "authentication_error")
    return ErrorAnswer(401, {"error": "Unauthorized"})


def rate_limit(retry_after_s: float = 1) -> ErrorAnswer:
    """429, with Retry-After, as OpenAI sends it; local servers know no such limit."""
    text = (
        "Rate limit reached for requests on tokens per min (TPM): Limit 30000, Used 29980, "
        f"Requested 60. Please try again in {retry_after_s:g}s."
    )
    headers = {"Retry-After": f"{retry_after_s:g}"}
    return replace(_openai(429, text, "tokens", "rate_limit_exceeded"), headers=headers)


def server_error(like: Like = "openai") -> ErrorAnswer:
    """500: something broke on the server."""
    if like == "openai":
        text = "The server had an error while processing your request. Sorry about that!"
        return _openai(500, text, "server_error")
    if like == "llama.cpp":
        return _llama_cpp(500, "Compute error.", "server_error")
    return _vllm(500, "EngineCore encountered an issue.", "InternalServerError", like)


def overflow(tokens: int, max_tokens: int, like: Like = "openai") -> ErrorAnswer:
    """400: the prompt is longer than the window; each maker says so in its own way."""
    limit = f"This model's maximum context length is {max_tokens} tokens. However, "
    if like == "openai":
        cure = "Please reduce the length of the messages."
        text = f"{limit}your messages resulted in {tokens} tokens. {cure}"
        return _openai(400, text, _INVALID, "context_length_exceeded", "messages")
    if like == "llama.cpp":
        size = f"the available context size ({max_tokens} tokens), try increasing it"
        text, kind = f"request ({tokens} tokens) exceeds {size}", "exceed_context_size_error"
        return _llama_cpp(400, text, kind, n_prompt_tokens=tokens, n_ctx=max_tokens)
    text = (
        f"{limit}you requested {tokens + 100} tokens ({tokens} in the messages, 100 in the "
        "completion). Please reduce the length of the messages or completion."
    )
    return _vllm(400, text, "BadRequestError", like)


def not_found(path: str) -> ErrorAnswer:
    """404: there is no such path."""
    return _openai(404, f"Invalid URL ({path})", _INVALID)


def bad_request(message: str, param: str | None = None) -> ErrorAnswer:
    """400: the request cannot be read."""
    return _openai(400, message, _INVALID, param=param)


def _openai(
    status: int, message: str, kind: str, code: str | None = None, param: str | None = None
) -> ErrorAnswer:
    error = {"message": message, "type": kind, "param": param, "code": code}
    return ErrorAnswer(status, {"error": error})


def _vllm(status: int, message: str, kind: str, like: Like) -> ErrorAnswer:
    error: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": status}
    is_bare = like == "vllm-0.9"  # later versions wrap the error
    return ErrorAnswer(status, {"object": "error", **error} if is_bare else {"error": error})


def _llama_cpp(status: int, message: str, kind: str, **sizes: int) -> ErrorAnswer:
    return ErrorAnswer(
        status, {"error": {"code": status, "message": message, "type": kind, **sizes}}
    )
