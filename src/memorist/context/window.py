"""Windows: how many tokens a model takes, what a context holds, and the receipt for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memorist import defaults
from memorist.arguments import CheckedSettings
from memorist.context.chat_format import ChatMessage, anthropic_form
from memorist.errors import InvalidError
from memorist.providers.tokenizer import Tokenizer, tokenizer_for
from memorist.records.documents import Compression
from memorist.records.query import Recall
from memorist.records.values import check_text

QUOTED_SCORE = 0.0002  # below recall's: a window has room for what is less likely
MOST_RESERVED = 1_000  # tokens for the answer, where it is not said how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(CheckedSettings):
    """How many tokens a model takes, and how they are shared out.

    Of `max_tokens`, `answer_tokens` stay free for the answer, or else an eighth of them, up to
    1,000. `notes`, `memories` and `articles`
    are shares of what the system prompt, the tools and the question leave; 0 is none. What one
    part does not use goes to the next, and the rest to the newest turns. What is recalled is quoted
    if its score is at least `min_score`. When `compress_at` of
    the window is full, all but the last `keep_last` messages become a summary, by a model as
    `summary_prompt` asks for it, below the line `summary_prefix`: one in the summary's language,
    if it is not set. When all but memories and articles takes `move_at` of the window, an agent
    moves to its larger model. Tokens are counted as `model` counts them, or by a `tokenizer`.
    """

    max_tokens: int = 8_000
    answer_tokens: int | None = None
    model: str = ""
    tokenizer: Tokenizer | None = None
    notes: float = 0.2
    memories: float = 0.4
    articles: float = 0.3
    most_memories: int = 200
    min_score: float = QUOTED_SCORE
    compress_at: float = defaults.COMPRESSION_THRESHOLD_PCT / 100
    keep_last: int = defaults.MESSAGES_TO_KEEP
    summary_tokens: int = defaults.COMPRESSION_TARGET_TOKENS
    summary_prompt: str = ""
    summary_prefix: str = ""
    move_at: float = defaults.LARGER_MODEL_THRESHOLD_PCT / 100

    def __post_init__(self) -> None:
        CheckedSettings.__post_init__(self)
        for name in ("max_tokens", "summary_tokens"):
            if getattr(self, name) < 1:
                raise InvalidError(f"{name} must be at least 1")
        if self.reserved >= self.max_tokens:
            raise InvalidError("answer_tokens must leave some of max_tokens for the question")
        for name in ("summary_prompt", "summary_prefix"):
            check_text(getattr(self, name), name, InvalidError)
        for name in ("notes", "memories", "articles", "min_score", "compress_at", "move_at"):
            if getattr(self, name) > 1:
                raise InvalidError(f"{name} is a share, from 0 to 1")

    @property
    def budget(self) -> int:
        """The tokens of a request: all but those of the answer."""
        return self.max_tokens - self.reserved

    @property
    def reserved(self) -> int:
        """The tokens of the answer."""
        given = self.answer_tokens
        return min(self.max_tokens // 8, MOST_RESERVED) if given is None else given

    @property
    def threshold(self) -> int:
        """The number of tokens beyond which older turns are summarised."""
        return min(int(self.max_tokens * self.compress_at), self.budget)

    def counts_with(self) -> Tokenizer:
        """The `tokenizer`, or else that of the `model`."""
        return self.tokenizer or tokenizer_for(self.model)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a window: its tokens, the ids of its contents, how many were cut and why.

    A part that shares a message with others begins with the line `intro`.
    """

    name: str
    tokens: int = 0
    ids: tuple[str, ...] = ()
    cut: int = 0
    why: str = ""
    intro: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What went into a window, to the token.

    The tokens of the parts add up to those of the request. `exact` tells whether they were
    counted with the model's own vocabulary. `late` and `failed` are those of the recall; `failed`
    also names parts of the memory that could not be read.
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
        """The free tokens, besides those for the answer."""
        return self.window - self.answer - self.used

    def part(self, name: str) -> Part:
        """A part by name: system, tools, notes, summary, history, memories, articles, question."""
        return next((part for part in self.parts if part.name == name), Part(name))

    def __str__(self) -> str:
        shown = [f"window {self.window:,}"]
        shown += [f"{part.name} {part.tokens:,}" for part in self.parts]
        shown += [f"answer {self.answer:,}"] if self.answer else []
        return ", ".join([*shown, f"left {self.left:,} ({self.counted_by})"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Messages ready for a model, in chat-completions form, and the receipt for them.

    `recall` is all that was found for the question, also what had no room.
    """

    messages: list[ChatMessage]
    receipt: Receipt
    tools: Sequence[Mapping[str, Any]] = ()
    recall: Recall = field(default_factory=lambda: Recall(hits=()))

    def for_anthropic(self) -> dict[str, Any]:
        """`system` and `messages` as Anthropic's API takes them."""
        return anthropic_form(self.messages)
