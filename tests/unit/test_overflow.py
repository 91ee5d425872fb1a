"""A request that is too long is known by what providers really send, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import httpx2
import openai
import pytest
from langchain_core.exceptions import ContextOverflowError

from memorist.agents.overflow import is_overflow
from memorist.testing.scripted import ScriptedOverflowError

URL = "https://api.example.org/v1/chat/completions"


def by_openai(status: int, message: str, **body: object) -> openai.APIStatusError:
    """The error that OpenAI's client makes of a server's answer."""
    kind = {400: openai.BadRequestError, 429: openai.RateLimitError}
    kind |= {401: openai.AuthenticationError, 500: openai.InternalServerError}
    response = httpx2.Response(status, request=httpx2.Request("POST", URL))
    told = {"message": message, **body}
    return kind[status](f"Error code: {status} - {told}", response=response, body=told)


def by_anthropic(status: int, kind: str, message: str) -> Exception:
    """The error that Anthropic's client makes of a server's answer."""
    import anthropic  # takes seconds

    response = httpx2.Response(status, request=httpx2.Request("POST", URL))
    body = {"type": "error", "error": {"type": kind, "message": message}}
    made = anthropic.BadRequestError if status == 400 else anthropic.APIStatusError
    return made(f"Error code: {status} - {body}", response=response, body=body)


class GeminiError(Exception):
    """As google-genai's: the status is its code."""

    def __init__(self, code: int, status: str, message: str) -> None:
        super().__init__(
            f"{code} {status}. {{'error': {{'code': {code}, 'message': '{message}'}}}}"
        )
        self.code, self.status, self.message = code, status, message


class OllamaError(Exception):
    """As ollama's ResponseError."""

    def __init__(self, error: str, status_code: int) -> None:
        super().__init__(f"{error} (status code: {status_code})")
        self.error, self.status_code = error, status_code


TOO_LONG: dict[str, Exception | Callable[[], Exception]] = {
    "langchain": ContextOverflowError("too long"),
    "scripted": ScriptedOverflowError(9_000, 8_192),
    "openai": by_openai(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "10346 tokens. Please reduce the length of the messages.",
        type="invalid_request_error",
        param="messages",
        code="context_length_exceeded",
    ),
    "openai, by its code alone": by_openai(400, "Too much.", code="context_length_exceeded"),
    "openai responses": by_openai(
        400,
        "Your input exceeds the context window of this model. Please adjust your input.",
        type="invalid_request_error",
        param="input",
        code=None,
    ),
    "openai configured limit": by_openai(
        400, "Input tokens exceed the configured limit of 272000 tokens."
    ),
    "openrouter": by_openai(
        400,
        "This endpoint's maximum context length is 1048576 tokens. However, you requested "
        "about 1293741 tokens.",
        code=400,
    ),
    "anthropic": partial(
        by_anthropic,
        400,
        "invalid_request_error",
        "prompt is too long: 213462 tokens > 200000 maximum",
    ),
    "anthropic with max_tokens": partial(
        by_anthropic,
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: "
        "199759 + 8192 > 200000, decrease input length or `max_tokens` and try again",
    ),
    "gemini": GeminiError(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "vertex": GeminiError(
        400,
        "INVALID_ARGUMENT",
        "Unable to submit request because the input token count is "
        "40000 but the model only supports up to 32768.",
    ),
    "vllm": by_openai(
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 8203 "
        "tokens (7691 in the messages, 512 in the completion).",
        type="BadRequestError",
        param=None,
        code=400,
    ),
    "vllm with max_tokens": by_openai(
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum "
        "context length is 4096 tokens and your request has 2104 input tokens.",
        type="BadRequestError",
        code=400,
    ),
    "vllm decoder": by_openai(
        400,
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        type="BadRequestError",
        code=400,
    ),
    "llama.cpp": by_openai(
        400,
        "the request exceeds the available context size. try increasing the context size or "
        "enable context shift",
        type="exceed_context_size_error",
        code=400,
        n_prompt_tokens=14429,
        n_ctx=8192,
    ),
    "llama.cpp, by its type alone": by_openai(
        500, "No.", type="exceed_context_size_error", n_prompt_tokens=1407, n_ctx=256
    ),
    "llama.cpp, newer": by_openai(
        400,
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        type="exceed_context_size_error",
        code=400,
    ),
    "llama-cpp-python": ValueError("Requested tokens (2285) exceed context window of 2048"),
    "ollama": OllamaError("the input length exceeds the context length", 400),
    "ollama runner": OllamaError("prompt too long; exceeded max context length by 12 tokens", 400),
    "bedrock": ValueError("ValidationException: Input is too long for requested model."),
    "mistral": by_openai(
        400,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
        "maximum context length",
        type="invalid_request_prompt",
        code="3051",
    ),
    "xai": by_openai(
        400, "This model's maximum prompt length is 131072 but the request contains 200000 tokens."
    ),
    "hugging face": by_openai(
        400, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096."
    ),
}

OTHERS: dict[str, Exception | Callable[[], Exception]] = {
    "a rate": by_openai(
        429,
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. "
        "The input or output tokens must be reduced. Maximum context length is not it.",
        type="tokens",
        code="rate_limit_exceeded",
    ),
    "a quota": by_openai(429, "You exceeded your current quota.", code="insufficient_quota"),
    "a key": by_openai(401, "Incorrect API key provided.", code="invalid_api_key"),
    "the answer's length": by_openai(
        400,
        "max_tokens is too large: 100000. This model supports at most 16384 completion "
        "tokens, whereas you provided 100000.",
        code="invalid_value",
    ),
    "a schema": by_openai(400, "Invalid schema for function 'f'.", code="invalid_parameter"),
    "a server's own": by_openai(500, "The server had an error while processing your request."),
    "anthropic overloaded": partial(by_anthropic, 529, "overloaded_error", "Overloaded"),
    "gemini's rate": GeminiError(429, "RESOURCE_EXHAUSTED", "Quota exceeded for input tokens."),
    "a connection": ConnectionError("the connection was lost"),
    "a bug": KeyError("context"),
}


def made(error: Exception | Callable[[], Exception]) -> Exception:
    return error if isinstance(error, Exception) else error()


@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
def test_what_is_too_long_is_known(error: Exception | Callable[[], Exception]) -> None:
    assert is_overflow(made(error))


@pytest.mark.parametrize("error", OTHERS.values(), ids=OTHERS)
def test_what_a_larger_window_would_not_cure_is_none(
    error: Exception | Callable[[], Exception],
) -> None:
    assert not is_overflow(made(error))


def test_an_error_that_was_translated_is_known_by_its_cause() -> None:
    ours = RuntimeError("the model failed")
    ours.__cause__ = made(TOO_LONG["openai"])
    assert is_overflow(ours)
