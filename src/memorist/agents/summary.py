"""A summariser for LangChain's own SummarizationMiddleware: our compressor behind its door.

SummarizationMiddleware(
    model, trigger=("tokens", 8_000), trim_tokens_to_summarize=None,
    summarizer=MemoristSummarizer(memory),
)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from memorist.errors import MissingExtraError

try:
    from langchain_core.messages import BaseMessage
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.log_lines import entry_of, is_others_summary
from memorist.context.compression.compress import DEFAULT, Compress, compress
from memorist.context.compression.summarizer import style_of
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.errors import MemoristError
from memorist.lifecycle.model import BudgetedModel
from memorist.memory import Memory
from memorist.providers.chat_model import ChatModel
from memorist.records.scope import Scope
from memorist.records.summary import Summary

NOTHING = "(Nothing was said before.)"
_SCOPE = Scope(user="summary", session="summary")  # of what is returned and not stored

log = logging.getLogger("memorist.agents")


class MemoristSummarizer:
    """Messages in, a summary in eight parts out; it never raises.

    With a memory whose `extraction` has a model, that model writes it within its budget; without
    one, or where it fails, the messages' own words do.
    """

    def __init__(self, memory: Memory | None = None, *, window: Window | None = None) -> None:
        self._style = style_of(window or Window(), TokenCounter((window or Window()).counts_with()))
        self._model = _model_of(memory)

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        """The summary of the messages, and of the summary before if it is among them."""
        said = [message for message in messages if not is_others_summary(message)]
        before = "\n".join(str(it.text) for it in messages if is_others_summary(it))
        if not said:
            return before or NOTHING
        try:
            return self._written(said, before, self._model)
        except MemoristError as error:
            log.warning("a summary was made of the messages' own words: %s", error)
            return self._written(said, before, None)

    def _written(self, said: Sequence[BaseMessage], before: str, model: ChatModel | None) -> str:
        settings: Compress = replace(DEFAULT, max_tokens=self._style.max_tokens)
        entries = [entry_of(message, place) for place, message in enumerate(said, start=1)]
        done = compress(
            entries,
            scope=_SCOPE,
            counter=self._style.counter,
            model=model,
            settings=settings,
            previous=_previous(before, self._style.counter),
        )
        return done.summary.text or NOTHING


def _previous(text: str, counter: TokenCounter) -> Summary | None:
    if not text:
        return None
    tokens = counter.text(text)
    return Summary(
        scope=_SCOPE,
        text=text,
        last_seq=0,
        messages=0,
        made_by="langchain",
        tokens_before=tokens,
        tokens=tokens,
    )


def _model_of(memory: Memory | None) -> ChatModel | None:
    extraction = memory.extraction if memory is not None else None
    if memory is None or extraction is None or extraction.model is None:
        return None
    return BudgetedModel(extraction.model, memory.store, extraction)
