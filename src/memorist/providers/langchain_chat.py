"""Any LangChain chat model as ours; LangChain itself is not imported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memorist.errors import BadAnswerError, ProviderError
from memorist.providers.chat_model import Patience, Reply, content_text, make_reply
from memorist.providers.http import retry_after

_CUT_OFF = ("LengthFinishReasonError", "ContentFilterFinishReasonError")  # of OpenAI's library


class LangChainChat:
    """Asks a LangChain chat model; keys, retries and temperature are as its owner made it."""

    def __init__(self, model: Any, *, name: str = "") -> None:
        self.name = name or _name_of(model)
        self._model = model
        self._patience = Patience(self.name)

    def __repr__(self) -> str:
        return f"LangChainChat({self.name!r})"  # theirs may show its key

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The model's answer; its own structured output is used where it has one."""

        def work() -> Reply:
            try:
                answer = self._runner(max_tokens, schema).invoke([dict(one) for one in messages])
                return _read(answer, messages)
            except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
                raise self._failure(error) from None

        reply = self._patience.run(work, timeout_s)
        if not reply.text.strip():
            tokens = reply.input_tokens + reply.output_tokens
            raise BadAnswerError(f"{self.name} answered with nothing", tokens=tokens)
        return reply

    def _failure(self, error: Exception) -> ProviderError:
        """An error of ours without their text: that may quote what was asked, or a key."""
        theirs = type(error).__name__
        said = f"{self.name} failed with {theirs}: try {type(self._model).__name__} alone"
        if (
            isinstance(error, ValueError) or theirs in _CUT_OFF
        ):  # it answered, but could not be read
            return BadAnswerError(said)
        status = getattr(error, "status_code", None)
        headers = getattr(getattr(error, "response", None), "headers", {})
        return ProviderError(
            said,
            status=status if isinstance(status, int) else None,
            retry_after_s=retry_after(headers) if hasattr(headers, "get") else None,
        )

    def _runner(self, max_tokens: int, schema: Mapping[str, Any] | None) -> Any:
        model = _limited(self._model, max_tokens)
        if schema is None or not hasattr(model, "with_structured_output"):
            return model
        try:
            return model.with_structured_output(dict(schema), include_raw=True)
        except NotImplementedError:  # a model without tools; the prompt asks for JSON as well
            return model


def _limited(model: Any, max_tokens: int) -> Any:
    """A copy that answers in no more tokens, where the model has a field of that name."""
    if not hasattr(model, "max_tokens") or not hasattr(model, "model_copy"):
        return model
    own = model.max_tokens
    return model.model_copy(update={"max_tokens": min(own or max_tokens, max_tokens)})


def _read(answer: Any, messages: Sequence[Mapping[str, str]]) -> Reply:
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
