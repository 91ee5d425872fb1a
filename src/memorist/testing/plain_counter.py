"""How long a prompt is to the models of this room: counted offline, and never too high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memorist.providers.tokenizer import Tokenizer, tokenizer_for

PER_MESSAGE = 3


class PlainCounter:
    """Counts words, and three tokens for each message: never more than Memorist's own counter.

    So a prompt that fits by Memorist's count is never refused here.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self._tokenizer = tokenizer or tokenizer_for()

    def texts(self, texts: Sequence[str]) -> int:
        """The tokens of texts together."""
        return sum(self._tokenizer.count(texts))

    def request(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """The tokens of messages in chat-completions form, and of what opens the reply."""
        texts = [text for message in messages for text in _texts(message)]
        return self.texts(texts) + PER_MESSAGE * len(messages) + PER_MESSAGE

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """The tokens of tools' names and descriptions."""
        inner = [tool["function"] for tool in tools if isinstance(tool.get("function"), Mapping)]
        return self.texts([f"{it.get('name', '')}:{it.get('description') or ''}" for it in inner])


def _texts(wire: Mapping[str, Any]) -> list[str]:
    content = wire.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    for call in wire.get("tool_calls") or ():
        inner = call.get("function") or {}
        texts += [inner.get("name"), inner.get("arguments")]
    return [str(wire.get("role", "")), *(text for text in texts if isinstance(text, str))]
