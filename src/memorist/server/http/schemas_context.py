"""Shapes of windows: what a context is made with, and the receipt for it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from memorist.context.compression.compress import Compression
from memorist.context.window import SUMMARY_PREFIX, Context, Part, Receipt, Window
from memorist.providers.images import refuse_image
from memorist.records.message import Message
from memorist.server.http.schemas import Question, Scoped, Wait
from memorist.server.http.schemas_views import MOST_TOKENS, Share, Tokens

MOST_KEPT = 10_000
MOST_TOOLS = 1_000


class Windowed(Scoped):
    """How many tokens a model takes in, and how they are shared out."""

    max_tokens: Tokens = Field(default=8_000, examples=[4_000])
    answer_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] = 0
    model: str = Field(default="", max_length=200, description="Whose tokens are counted.")
    notes: Share = Field(default=0.2, description="The share that notes may have.")
    memories: Share = 0.4
    articles: Share = 0.3
    most_memories: Annotated[int, Field(ge=0, le=MOST_KEPT)] = 200
    compress_at: Share = Field(default=0.85, description="How full it is when turns are summed up.")
    keep_last: Annotated[int, Field(ge=0, le=MOST_KEPT)] = 4
    summary_tokens: Tokens = 1_000
    summary_prefix: str = SUMMARY_PREFIX

    def window(self) -> Window:
        """The window that the fields describe, which says what is wrong with them."""
        names = Windowed.model_fields.keys() - Scoped.model_fields.keys()
        return Window(**{name: getattr(self, name) for name in names})


class ContextAsk(Windowed):
    """A question, and what the window for it is to hold."""

    question: Question = Field(examples=["Plan my weekend"])
    images: list[str] = Field(default=[], description="Data URLs; paths and addresses are refused.")
    session: str | None = Field(default=None, description="The conversation that goes on.")
    system: Question = Field(default="", examples=["You are a kind tutor."])
    tools: list[dict[str, Any]] = Field(default=[], max_length=MOST_TOOLS)
    deadline_ms: Wait = 50.0
    library: bool = Field(default=False, description="Whether articles are quoted.")
    shelf: str | None = Field(default=None, description="A shared shelf; else the user's own.")

    def asked(self) -> Message:
        """The question as a message."""
        for image in self.images:
            refuse_image(image)
        return Message("user", self.question, images=self.images)


class CompressAsk(Windowed):
    """A session whose older messages are to stand as a summary."""

    session: str = Field(examples=["0197a1c0-0000-7000-8000-000000000000"])


class ReceiptAnswer(BaseModel):
    """What went into a window and what it cost, to the token."""

    window: int
    answer: int
    used: int
    left: int
    counted_by: str
    exact: bool
    parts: tuple[Part, ...]
    compression: Compression | None = None
    timings_ms: dict[str, float] = {}
    late: tuple[str, ...] = ()
    failed: dict[str, str] = {}

    @classmethod
    def of(cls, receipt: Receipt) -> ReceiptAnswer:
        """A receipt as it is answered."""
        return cls(**{name: getattr(receipt, name) for name in cls.model_fields})


class ContextAnswer(BaseModel):
    """Messages ready for a model, in chat-completions form, and the receipt for them."""

    messages: list[dict[str, Any]]
    receipt: ReceiptAnswer
    tools: list[dict[str, Any]] = []

    @classmethod
    def of(cls, context: Context) -> ContextAnswer:
        """A context as it is answered."""
        return cls(
            messages=context.messages,
            receipt=ReceiptAnswer.of(context.receipt),
            tools=[dict(tool) for tool in context.tools],
        )
