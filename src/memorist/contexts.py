"""Contexts: what Memory does for a window. Contexts, and the summaries in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from memorist import metrics
from memorist.context.window import Context, Window
from memorist.errors import InvalidError, ProviderError
from memorist.lifecycle.settings import Extraction
from memorist.providers.chat_model import ChatModel, Reply, estimate_tokens_of
from memorist.records.message import Message
from memorist.records.query import Recall, check_deadline
from memorist.records.scope import Scope
from memorist.records.summary import Summary
from memorist.records.text import check_text
from memorist.store.base import Store

if TYPE_CHECKING:  # imported where it is used: `import memorist` stays light
    from memorist.context.builder import ArticleSource
    from memorist.context.compression.compress import Compression
    from memorist.context.compression.summarizer import Summarizer
    from memorist.context.tokens import TokenCounter

MOST_COUNTERS = 16
AT_THE_EDGE = 1_000  # messages that are looked at for calls whose results must stay with them


class Given(TypedDict, total=False):
    """What a context may be made with; all have a default."""

    system: str
    tools: Sequence[Mapping[str, Any]]
    window: Window
    library: ArticleSource
    deadline_ms: float | None
    read_image: Callable[[str], str] | None


class Contexts:
    """The part of Memory that fills windows."""

    store: Store
    extraction: Extraction | None
    scope: Callable[..., Scope]
    search: Callable[..., Recall]
    _clock: Callable[[], datetime]
    _counters: dict[tuple[str, int], TokenCounter]
    _summarizer: Summarizer | None

    def context(
        self,
        question: str | Message,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        max_tokens: int | None = None,
        **given: Unpack[Given],
    ) -> Context:
        """Messages ready for a model, filled to `max_tokens`, and the receipt for them.

        They hold the system prompt, the notes, the summary and the newest turns of the session,
        what is recalled for the question, and the question. `window` says how tokens are counted
        and shared out; `library` is where articles are quoted from. What cannot be read is left
        out, and the receipt says so.
        """
        from memorist.context.builder import ContextBuilder

        if unknown := given.keys() - Given.__annotations__.keys():
            raise TypeError(f"context takes no {', '.join(sorted(unknown))}")
        if not isinstance(question, str | Message):
            raise InvalidError(f"question must be text or a Message, got {type(question).__name__}")
        check_deadline(given.get("deadline_ms"))
        check_text(given.get("system") or "", "system", InvalidError)
        window = given.pop("window", None) or Window()
        if max_tokens is not None:
            window = replace(window, max_tokens=max_tokens)
        scope = self.scope(user=user, agent=agent, session=session)
        asked = question if isinstance(question, Message) else Message("user", question)
        request = ContextBuilder(
            store=self.store,
            search=self.search,
            summarizer=self._open_summarizer,
            scope=scope,
            window=window,
            counter=self._counter(window),
            given=given,
        )
        return request.answer(asked)

    def compress(
        self, *, user: str, session: str, window: Window | None = None
    ) -> Compression | None:
        """Have all but the last messages of a session stand as a summary now; None if they do.

        A model makes it where there is one, and is waited for; else the messages' own words do.
        The log keeps every message.
        """
        from memorist.context.compression.summarizer import style_of
        from memorist.context.turns import split

        window = window or Window()
        scope = self.scope(user=user, session=session)
        newest = self.store.summary(scope)
        entries = self.store.history(
            scope, last=window.keep_last + AT_THE_EDGE, after=newest.last_seq if newest else None
        )
        going = split(entries, window.keep_last)
        if not going:
            return None
        style = style_of(window, self._counter(window))
        return self._open_summarizer().extend(scope, entries[going - 1].seq, style, asked=True)

    def summaries(self, *, user: str, session: str) -> list[Summary]:
        """The summaries that a session has had, newest first."""
        return self.store.summaries(self.scope(user=user, session=session))

    def _open_summarizer(self) -> Summarizer:
        """Who makes summaries: by the model that thinks, within its budget, or without one."""
        if self._summarizer is None:
            self._summarizer = open_summarizer(self.store, self.extraction)
        return self._summarizer

    def _counter(self, window: Window) -> TokenCounter:
        """The counter of a window's tokenizer, with all that it has counted."""
        from memorist.context.tokens import TokenCounter

        tokenizer = window.counts_with()
        # Two that a caller brings may share a name; one that is counted with stays alive.
        key = tokenizer.name, id(tokenizer) if window.tokenizer is not None else 0
        while key not in self._counters and len(self._counters) >= MOST_COUNTERS:
            self._counters.pop(next(iter(self._counters)), None)
        return self._counters.setdefault(key, TokenCounter(tokenizer))


def open_summarizer(store: Store, extraction: Extraction | None) -> Summarizer:
    """Makes summaries by the model that thinks, within its budget, or without one."""
    from memorist.context.compression.compress import Compress
    from memorist.context.compression.summarizer import Summarizer, style_of
    from memorist.context.tokens import TokenCounter

    model = extraction.model if extraction is not None else None
    window = Window(model=model.name if model is not None else "")
    style = style_of(window, TokenCounter(window.counts_with()))
    if extraction is None or model is None:
        return Summarizer(store, style)
    settings = Compress(timeout_s=extraction.timeout_s)
    return Summarizer(store, style, Budgeted(model, store, extraction), settings)


class Budgeted:
    """A model that is not asked when what it may cost in an hour is spent."""

    def __init__(self, model: ChatModel, store: Store, extraction: Extraction) -> None:
        self.name = model.name
        self._model = model
        self._store = store
        self._limits = {
            "max_calls": extraction.calls_per_hour,
            "max_tokens": extraction.tokens_per_hour,
        }

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """What the model answers; a `ProviderError` if that would be too much."""
        asked = sum(estimate_tokens_of(message["content"]) for message in messages)
        expected = used = asked + max_tokens
        if not self._store.spend(calls=1, tokens=expected, **self._limits):
            raise ProviderError("the model's budget for this hour is spent")
        result = "failed"
        try:
            reply = self._model.complete(
                messages, max_tokens=max_tokens, timeout_s=timeout_s, schema=schema
            )
            used, result = reply.input_tokens + reply.output_tokens, "answered"
        except ProviderError as error:
            used = 0 if error.status else expected  # where nobody tells, it may have cost so much
            raise
        except Exception as error:  # it is foreign code: whatever it does, others go on
            raise ProviderError(f"the model raised {type(error).__name__}") from error
        finally:
            metrics.count("memorist.model.calls", task="summary", result=result)
            metrics.count("memorist.model.tokens", used, task="summary")
            self._store.spend(calls=0, tokens=used - expected)
        return reply
