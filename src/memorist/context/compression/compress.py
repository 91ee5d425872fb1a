"""Compression: older turns become a summary in eight parts; the log keeps every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memorist.context.compression.extractive import extract
from memorist.context.compression.model_summary import summarise
from memorist.context.tokens import Counter
from memorist.errors import InvalidError, ProviderError
from memorist.providers.chat_model import ChatModel
from memorist.records.ids import now
from memorist.records.log import LogEntry
from memorist.records.scope import Scope
from memorist.records.summary import Summary

EXTRACTIVE = "extractive"
SHORT_TOKENS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Compress:
    """The numbers of compression; `input_tokens` is the most a model is given in one call."""

    max_tokens: int = 1_000
    input_tokens: int = 12_000
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.input_tokens < 1_000 or self.timeout_s <= 0:
            raise InvalidError(
                "compression needs max_tokens of at least 1, input_tokens of at least 1,000 and a "
                f"timeout_s above 0, not {self.max_tokens}, {self.input_tokens} and "
                f"{self.timeout_s:g}"
            )


DEFAULT = Compress()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """A summary to be written, and what it spares the window.

    `tokens_before` counts what it replaces there: the previous summary and the new messages.
    `fell_back` says why no model made it although there is one; it quotes nothing.
    """

    summary: Summary
    message_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    fell_back: str = ""

    @property
    def saved(self) -> int:
        """How many tokens the window is spared by this step."""
        return self.tokens_before - self.tokens_after

    @property
    def made_by(self) -> str:
        """The model's name, or "extractive"."""
        return self.summary.made_by


def compress(
    entries: Sequence[LogEntry],
    *,
    scope: Scope,
    counter: Counter,
    previous: Summary | None = None,
    model: ChatModel | None = None,
    settings: Compress = DEFAULT,
) -> Compression:
    """The summary that stands for these messages and for all that the previous one stood for.

    A model writes it where there is one; if it fails, the messages' own words do, and the result
    says so. Only what the caller gets wrong raises.
    """
    began = now()
    if not entries:
        raise InvalidError("there is nothing to compress; give at least one message")
    before = sum(counter.messages([entry.message for entry in entries]))
    known = previous.text if previous else ""
    total = before + (previous.tokens_before if previous else 0)
    settings = replace(settings, max_tokens=min(settings.max_tokens, _most(total)))
    text, made_by, fell_back = _written(entries, counter, known, model, settings)
    tokens = counter.text(text)
    summary = Summary(
        scope=scope,
        text=text,
        last_seq=entries[-1].seq,
        messages=len(entries) + (previous.messages if previous else 0),
        made_by=made_by,
        tokens_before=total,
        tokens=tokens,
        previous=previous.id if previous else None,
        created_at=began,
    )
    return Compression(
        summary=summary,
        message_ids=tuple(entry.message.message_id for entry in entries),
        tokens_before=before + (previous.tokens if previous else 0),
        tokens_after=tokens,
        fell_back=fell_back,
    )


def _most(tokens: int) -> int:
    """How long a summary may be beside all that it stands for, if that is little."""
    return max(SHORT_TOKENS, tokens // 2)


def _written(
    entries: Sequence[LogEntry],
    counter: Counter,
    previous: str,
    model: ChatModel | None,
    settings: Compress,
) -> tuple[str, str, str]:
    """The text, who made it, and why no model did."""
    fell_back = ""
    if model is not None:
        sizes = (settings.max_tokens, settings.input_tokens)
        try:
            text = summarise(
                model,
                entries,
                counter,
                previous=previous,
                sizes=sizes,
                timeout_s=settings.timeout_s,
            )
            return text, model.name, ""
        except ProviderError as error:
            fell_back = str(error)
    return extract(entries, counter, settings.max_tokens, previous), EXTRACTIVE, fell_back
