"""Overflow: whether a model refused a request because it is longer than its window.

Providers say so by the type of the error, by a code in its body, or only in words; some libraries
translate one into another. What a larger window would not cure (rates, quotas, the length of the
answer) is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES = {
    "ContextOverflowError",
    "ContextWindowExceededError",
    "ContextLengthExceededError",
    "ExceedContextSizeError",
}
_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
}
_TEXT = re.compile(
    r"""
      context_length_exceeded | exceed_context_size_error
    | context[ ](length|window|size|limit)[ ]exceeded
    | (maximum|max)[ ](context|model|prompt)[ ]length        # OpenAI, vLLM, Mistral, xAI, Ollama
    | exceeds?[ ](the[ ]|this[ ]|model[ ]|maximum[ ])*(available[ ])?
      context[ ](window|size|limit|length)                   # OpenAI, Anthropic, llama.cpp, Ollama
    | (prompt|input)[ ]is[ ]too[ ]long                       # Anthropic, Bedrock
    | prompt[ ]too[ ]long
    | input[ ]token[ ]count.*(exceeds[ ]the[ ]maximum|only[ ]supports[ ]up[ ]to)   # Gemini
    | input[ ]tokens[ ]exceed[ ]the[ ]configured[ ]limit     # OpenAI
    | tokens`?[ ]\+[ ]`?max_new_tokens`?[ ]must[ ]be[ ]<=    # Hugging Face
    | tokens[ ]in[ ]the[ ]prompt[ ]cannot[ ]exceed           # Cohere
    | when[ ]context[ ]the[ ]overflows                       # LM Studio
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NOT_CURED = (401, 403, 404, 429)  # who may ask, and how often
_MOST_CAUSES = 8


def is_overflow(error: BaseException) -> bool:
    """Whether this error, or one it came from, says that the request is too long for the model."""
    return any(map(_says_so, _causes(error)))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__


def _says_so(error: BaseException) -> bool:
    if _TYPES & {kind.__name__ for kind in type(error).__mro__}:
        return True
    if _status(error) in _NOT_CURED:
        return False
    return bool(_CODES & set(_codes(error))) or _TEXT.search(str(error)) is not None


def _status(error: BaseException) -> Any:
    """The HTTP status under the names that clients give it; Gemini's has it as its code."""
    response = getattr(error, "response", None)
    names = [getattr(error, name, None) for name in ("status_code", "status", "code")]
    return next((it for it in (*names, getattr(response, "status_code", None)) if _is_int(it)), 0)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _codes(error: BaseException) -> Iterator[str]:
    """Codes and types, of the error itself and in its body."""
    for body in (vars(error), getattr(error, "body", None), getattr(error, "details", None)):
        inner = body.get("error", body) if isinstance(body, Mapping) else None
        if isinstance(inner, Mapping):
            yield from (str(inner[key]) for key in ("code", "type") if inner.get(key))
    yield str(getattr(error, "code", ""))
