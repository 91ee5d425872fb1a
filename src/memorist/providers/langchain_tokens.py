"""The counter of a LangChain chat model as our tokenizer; LangChain itself is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memorist.errors import InvalidError, ProviderError
from memorist.providers.tokenizer import longest_start


class LangChainTokenizer:
    """Counts as the model's own client does, and is exact as far as that is.

    Some clients ask their server, so that each text is a request; some fall back to GPT-2's.
    """

    exact = True

    def __init__(self, model: Any) -> None:
        if not callable(getattr(model, "get_num_tokens", None)):
            raise InvalidError(f"a {type(model).__name__} has no get_num_tokens")
        self.name = f"langchain:{type(model).__name__}"
        self._model = model

    def __repr__(self) -> str:
        return f"LangChainTokenizer({self.name!r})"  # theirs may show its key

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text."""
        return [self._count(text) for text in texts]

    def truncate(self, text: str, max_tokens: int) -> str:
        """The start of the text, at most so many tokens of it."""
        return longest_start(text, max_tokens, self._count)

    def _count(self, text: str) -> int:
        if not text:
            return 0
        try:
            return int(self._model.get_num_tokens(text))
        except Exception as error:  # noqa: BLE001 - whatever its own libraries raise
            theirs = type(error).__name__
            raise ProviderError(f"{self.name} cannot count ({theirs}); use tokenizer_for") from None
