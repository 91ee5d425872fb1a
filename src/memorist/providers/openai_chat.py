"""Chat models behind an OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp, …"""

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from memorist.errors import BadAnswerError, ProviderError
from memorist.providers.chat_model import (
    CallTimeout,
    ChatMessages,
    Reply,
    Schema,
    content_text,
    make_reply,
)
from memorist.providers.http import Endpoint

OPENAI_URL = "https://api.openai.com/v1"
MAX_BYTES = 4_000_000
_NO_SCHEMA = {400, 422}  # how servers refuse a field they do not know


class OpenAIChat:
    """A model behind POST {url}/chat/completions.

    `extra` goes into every request as it is: `{"temperature": 0}`, `{"reasoning_effort": "low"}`.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = OPENAI_URL,
        key: str | None = None,
        extra: Mapping[str, Any] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.name = f"openai/{model}"
        address = f"{url.rstrip('/')}/chat/completions"
        self._endpoint = Endpoint(address, key or "", max_bytes=max_bytes)
        self._timeout = CallTimeout(repr(self._endpoint), native=False)
        self._fixed = {"model": model, **(extra or {})}
        self._limit = _limit_field(url)
        self._takes_schema = True

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, {self._endpoint!r})"

    def complete(
        self, messages: ChatMessages, *, max_tokens: int, timeout_s: float, schema: Schema = None
    ) -> Reply:
        """The model's answer; a server that refuses the schema is asked again without it."""
        body = {**self._fixed, "messages": list(messages), self._limit: max_tokens}
        grace_s = timeout_s + 1  # the CallTimeout ends first, the socket's only closes it
        answer = self._timeout.run(lambda: self._ask(body, grace_s, schema), timeout_s)
        return self._read(answer, messages)

    def _ask(self, body: dict[str, Any], timeout_s: float, schema: Schema) -> Any:
        ends_at = time.monotonic() + timeout_s
        if schema is None or not self._takes_schema:
            return self._endpoint.post(body, attempts=1, timeout_s=timeout_s)
        try:
            named = {"name": schema.get("title", "answer"), "strict": True, "schema": dict(schema)}
            shaped = {**body, "response_format": {"type": "json_schema", "json_schema": named}}
            return self._endpoint.post(shaped, attempts=1, timeout_s=timeout_s)
        except ProviderError as error:
            if error.status not in _NO_SCHEMA:
                raise
        left_s = max(0.001, ends_at - time.monotonic())
        answer = self._endpoint.post(body, attempts=1, timeout_s=left_s)
        self._takes_schema = False  # it was the schema: without it the request was accepted
        return answer

    def _read(self, answer: Any, messages: ChatMessages) -> Reply:
        try:
            choice, usage = answer["choices"][0], answer.get("usage")
            text = content_text(choice["message"]["content"])
        except (KeyError, IndexError, TypeError, AttributeError):
            raise BadAnswerError(f"{self._endpoint} answered without a message") from None
        usage = usage if isinstance(usage, Mapping) else {}
        counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
        reply = make_reply(text, messages, *counts)
        problem = "" if text.strip() else "answered with nothing"
        if choice.get("finish_reason") == "length":
            problem = "was cut off: give it more max_tokens"
        if problem:
            raise BadAnswerError(f"{self._endpoint} {problem}", tokens=reply.tokens)
        return reply


def _limit_field(url: str) -> str:
    """OpenAI's newer models refuse `max_tokens`; other servers know nothing else."""
    host = urlsplit(url).hostname or ""
    own = host == "api.openai.com" or host.endswith(".openai.azure.com")
    return "max_completion_tokens" if own else "max_tokens"
