"""LangChain's embeddings, chat models and token counters as ours; LangChain is not imported.

No error repeats theirs, which may quote a text or show a key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from memorist.errors import BadAnswerError, InvalidError, ProviderError
from memorist.providers.chat_model import (
    CallTimeout,
    ChatMessages,
    Reply,
    Schema,
    content_text,
    make_reply,
)
from memorist.providers.embedder import CheckedEmbedder
from memorist.providers.http import retry_after
from memorist.providers.tokenizer import CountingTokenizer

if TYPE_CHECKING:
    from memorist.providers.embedder import Vectors

_CUT_OFF = ("LengthFinishReasonError", "ContentFilterFinishReasonError")  # of OpenAI's library


class Embeddings(Protocol):
    """What is used of LangChain's class of this name."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...
    def embed_query(self, text: str) -> list[float]: ...


class LangChainEmbedder(CheckedEmbedder):
    """Embeds with a LangChain object; `name` must change whenever its model does."""

    def __init__(self, embeddings: Embeddings, *, name: str) -> None:
        self.name = name
        self._embeddings = embeddings

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        vector: Vectors = self._ask(lambda: [self._embeddings.embed_query(text)], 1)[0]
        return vector

    def _embed(self, texts: Sequence[str]) -> Vectors:
        return self._ask(lambda: self._embeddings.embed_documents(list(texts)), len(texts))

    def _ask(self, call: Callable[[], list[list[float]]], count: int) -> Vectors:
        try:
            rows = call()
        except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
            raise ProviderError(_failure_text(self.name, error, self._embeddings)) from None
        return self._check(rows, count, self.name)


class LangChainChat:
    """Asks a LangChain chat model, with the key, retries and temperature it was made with."""

    def __init__(self, model: Any, *, name: str = "") -> None:
        self.name = name or _name_of(model)
        self._model = model
        self._timeout = CallTimeout(self.name)

    def complete(
        self, messages: ChatMessages, *, max_tokens: int, timeout_s: float, schema: Schema = None
    ) -> Reply:
        """The model's answer; its own structured output is used where it has one."""

        def work() -> Reply:
            try:
                model = _prepared(self._model, max_tokens, schema)
                return _read(model.invoke([dict(message) for message in messages]), messages)
            except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
                raise self._failure(error) from None

        reply = self._timeout.run(work, timeout_s)
        if not reply.text.strip():
            raise BadAnswerError(f"{self.name} answered with nothing", tokens=reply.tokens)
        return reply

    def _failure(self, error: Exception) -> ProviderError:
        text = _failure_text(self.name, error, self._model)
        if isinstance(error, ValueError) or type(error).__name__ in _CUT_OFF:
            return BadAnswerError(text)  # it answered, but the answer could not be read
        status = getattr(error, "status_code", None)
        headers = getattr(getattr(error, "response", None), "headers", {})
        return ProviderError(
            text,
            status=status if isinstance(status, int) else None,
            retry_after_s=retry_after(headers) if hasattr(headers, "get") else None,
        )


class LangChainTokenizer(CountingTokenizer):
    """Counts as the model's own client does, and is exact as far as that is.

    Some clients ask their server, so that each text is a request; some fall back to GPT-2's.
    """

    exact = True

    def __init__(self, model: Any) -> None:
        if not callable(getattr(model, "get_num_tokens", None)):
            raise InvalidError(f"a {type(model).__name__} has no get_num_tokens")
        self.name = f"langchain:{type(model).__name__}"
        self._model = model

    def count(self, texts: Sequence[str]) -> list[int]:
        try:
            return [int(self._model.get_num_tokens(text)) if text else 0 for text in texts]
        except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
            kind = type(error).__name__
            raise ProviderError(f"{self.name} cannot count ({kind}); use tokenizer_for") from None


def _failure_text(name: str, error: Exception, culprit: object) -> str:
    return f"{name} failed with {type(error).__name__}: try {type(culprit).__name__} alone"


def _prepared(model: Any, max_tokens: int, schema: Schema) -> Any:
    """The model with its own limit of tokens and structured output, where it has them."""
    if hasattr(model, "max_tokens") and hasattr(model, "model_copy"):
        limit = min(model.max_tokens or max_tokens, max_tokens)
        model = model.model_copy(update={"max_tokens": limit})
    if schema is None or not hasattr(model, "with_structured_output"):
        return model
    try:
        return model.with_structured_output(dict(schema), include_raw=True)
    except NotImplementedError:  # a model without tools; the prompt asks for JSON as well
        return model


def _read(answer: Any, messages: ChatMessages) -> Reply:
    raw, parsed = answer, None
    if isinstance(answer, Mapping):
        raw, parsed = answer["raw"], answer["parsed"]
    text = content_text(getattr(raw, "content", raw))
    if isinstance(parsed, Mapping):
        text = json.dumps(parsed, ensure_ascii=False)
    usage = getattr(raw, "usage_metadata", None) or {}
    return make_reply(text, messages, usage.get("input_tokens"), usage.get("output_tokens"))


def _name_of(model: Any) -> str:
    names = (getattr(model, field, None) for field in ("model_name", "model", "model_id"))
    named = next((name for name in names if isinstance(name, str) and name), "")
    return "/".join(filter(None, ("langchain", type(model).__name__, named)))
