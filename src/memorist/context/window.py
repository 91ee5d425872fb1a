"""Windows: how much a model takes in, what was put there, and the receipt for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memorist.errors import InvalidError
from memorist.providers.tokenizer import Tokenizer, tokenizer_for
from memorist.records.query import Recall
from memorist.records.text import check_text

if TYPE_CHECKING:  # imported where it is used: `import memorist` stays light
    from memorist.context.chat_format import ChatMessage
    from memorist.context.compression.compress import Compression

SUMMARY_PREFIX = "## Предыдущее обсуждение / Previous conversation:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How many tokens a model takes in, and how they are shared out.

    Of `max_tokens`, `answer_tokens` stay free for the answer. Notes, memories and articles may
    have their shares of what the system prompt, the tools and the question leave, and none with
    a share of 0; what one does not use, the next may have, and the newest turns get the rest.
    Beyond `compress_at` of the window all but the last `keep_last` messages become a summary.
    `model` says how to count, or else a `tokenizer` does.
    """

    max_tokens: int = 8_000
    answer_tokens: int = 0
    model: str = ""
    tokenizer: Tokenizer | None = None
    notes: float = 0.2
    memories: float = 0.4
    articles: float = 0.3
    most_memories: int = 200
    compress_at: float = 0.85
    keep_last: int = 4
    summary_tokens: int = 1_000
    summary_prefix: str = SUMMARY_PREFIX

    def __post_init__(self) -> None:
        least = {
            "max_tokens": 1,
            "answer_tokens": 0,
            "keep_last": 0,
            "most_memories": 0,
            "summary_tokens": 1,
        }
        for name, lowest in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise InvalidError(f"{name} must be a whole number, and at least {lowest}")
        if self.answer_tokens >= self.max_tokens:
            raise InvalidError("answer_tokens must leave some of max_tokens for the question")
        if not isinstance(self.model, str):
            raise InvalidError(f"model must be a name, got {type(self.model).__name__}")
        check_text(self.summary_prefix, "summary_prefix", InvalidError)
        for name in ("notes", "memories", "articles", "compress_at"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InvalidError(f"{name} is a share, from 0 to 1")

    @property
    def budget(self) -> int:
        """What may be put into it."""
        return self.max_tokens - self.answer_tokens

    @property
    def threshold(self) -> int:
        """From how many tokens on older turns are summarised."""
        return min(int(self.max_tokens * self.compress_at), self.budget)

    def counts_with(self) -> Tokenizer:
        """The tokenizer of the model, or the one that was given."""
        return self.tokenizer or tokenizer_for(self.model)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a window: its tokens, the ids of what is in it, how many were cut and why."""

    name: str
    tokens: int = 0
    ids: tuple[str, ...] = ()
    cut: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What went into a window and what it cost, to the token.

    The tokens of the parts are all that the request takes, whoever counted them: `exact` says
    whether that is the model's own vocabulary. `late` and `failed` are recall's, or name a part
    of the memory that could not be read.
    """

    window: int
    answer: int
    counted_by: str
    exact: bool
    parts: tuple[Part, ...]
    compression: Compression | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def used(self) -> int:
        """The tokens of the request."""
        return sum(part.tokens for part in self.parts)

    @property
    def left(self) -> int:
        """What is free beside the room for the answer."""
        return self.window - self.answer - self.used

    def part(self, name: str) -> Part:
        """One part by its name: system, tools, notes, summary, history, memories, articles…"""
        return next((part for part in self.parts if part.name == name), Part(name))

    def __str__(self) -> str:
        shown = [f"window {self.window:,}"]
        shown += [f"{part.name} {part.tokens:,}" for part in self.parts]
        shown += [f"answer {self.answer:,}"] if self.answer else []
        return ", ".join([*shown, f"left {self.left:,} ({self.counted_by})"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Messages ready for a model, in chat-completions form, and the receipt for them.

    `recall` is what was found for the question, also what stayed out.
    """

    messages: list[ChatMessage]
    receipt: Receipt
    tools: Sequence[Mapping[str, Any]] = ()
    recall: Recall = field(default_factory=lambda: Recall(hits=()))

    def for_anthropic(self) -> dict[str, Any]:
        """`system` and `messages` as Anthropic's API takes them."""
        from memorist.context.chat_format import anthropic_form

        return anthropic_form(self.messages)
