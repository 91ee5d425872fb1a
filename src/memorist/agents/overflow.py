"""Overflow: whether a model refused a request because it is longer than its window.

Providers say so by the type of the error, by a code in its body, or only in its text. Limits of
rates, quotas and the length of the answer are no overflow: a larger window would not help.
"""

import re
from collections.abc import Iterator, Mapping

_TYPE = re.compile(r"Context(Overflow|WindowExceeded|LengthExceeded)Error|ExceedContextSizeError")
_TEXT = re.compile(
    r"""
      context_(length|window)_exceeded | exceed_context_size_error   # codes
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
_OTHER_STATUSES = (401, 403, 404, 429)  # of authorisation, unknown models and rates
_MOST_CAUSES = 8
_LOOK_AT_CHARS = 10_000


def is_overflow(error: BaseException) -> bool:
    """Whether this error, or one of its causes, says that the request is too long for the model."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None or _is_overflow(cause):
            return cause is not None
        cause = cause.__cause__
    return False


def _is_overflow(error: BaseException) -> bool:
    if any(_TYPE.fullmatch(kind.__name__) for kind in type(error).__mro__):
        return True
    statuses = [getattr(error, name, None) for name in ("status_code", "status", "code")]
    statuses.append(getattr(getattr(error, "response", None), "status_code", None))
    if any(status in _OTHER_STATUSES for status in statuses):
        return False
    return _TEXT.search("\n".join([*_codes(error), str(error)])[:_LOOK_AT_CHARS]) is not None


def _codes(error: BaseException) -> Iterator[str]:
    """The codes and types of the error itself and in its body."""
    for body in (vars(error), getattr(error, "body", None), getattr(error, "details", None)):
        inner = body.get("error", body) if isinstance(body, Mapping) else None
        if isinstance(inner, Mapping):
            yield from (str(inner[key]) for key in ("code", "type") if inner.get(key))
    yield str(getattr(error, "code", ""))
