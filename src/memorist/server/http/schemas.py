"""Shapes: what requests may hold. Answers are the records themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from memorist.agents.toolbox import LONGEST_QUESTION
from memorist.providers.images import refuse_image
from memorist.records.log import Source
from memorist.records.message import Message
from memorist.server.http.media_guard import refuse_addresses, refuse_kept

Role = Literal["user", "assistant", "system", "tool"]
MOST_AT_ONCE = 1_000
MOST_HITS = 200
LONGEST_WAIT_MS = 10_000.0


Wait = Annotated[
    Annotated[float, Field(gt=0, le=LONGEST_WAIT_MS, allow_inf_nan=False)] | None,
    AfterValidator(lambda given: LONGEST_WAIT_MS if given is None else given),
    Field(description="Milliseconds; null waits for all, for ten seconds at most."),
]


def _not_too_long(text: str) -> str:
    # By hand: pydantic's own check refuses half a character before a record can say so.
    if len(text) > LONGEST_QUESTION:
        raise PydanticCustomError("string_too_long", "too long", {"max_length": LONGEST_QUESTION})
    return text


Question = Annotated[
    str,
    AfterValidator(_not_too_long),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_QUESTION}),
]


User = Annotated[str | None, Query(description="Whose memory; only an admin says so.")]
Agent = Annotated[str | None, Query(description="Only what was said with this agent.")]
SessionId = Annotated[str | None, Query(description="Only this conversation.")]


class Ask(BaseModel):
    """What every request's body has in common: nothing is taken that is not known."""

    model_config = ConfigDict(extra="forbid")


class Scoped(Ask):
    """Whose memory it is about, where that is not plain from the key."""

    user: str | None = Field(default=None, description="Only an admin says whose.")
    agent: str | None = Field(default=None, description="With which agent.", examples=["tutor"])


class Said(Ask):
    """One message, as it was said."""

    role: Role = Field(examples=["user"])
    content: str | dict[str, Any] | list[Any] | None = Field(
        default=None, examples=["I moved to Berlin in March."]
    )
    message_id: str | None = Field(default=None, description="Yours, or one is made.")
    name: str | None = None
    tool_calls: list[dict[str, Any]] = Field(default=[])
    agent_calls: list[dict[str, Any]] = Field(default=[])
    structured_data: dict[str, Any] | None = None
    images: list[str] = Field(default=[], description="Data URLs; paths and addresses are refused.")
    tool_call_id: str | None = None
    created_at: datetime | None = Field(default=None, description="When it was said, if not now.")
    unfinished: bool = Field(default=False, description="More of it is to come.")

    def message(self, **given: Any) -> Message:
        """The message as a record, which says what is wrong with it."""
        for image in self.images:
            refuse_image(image)
        refuse_addresses(self.content)
        refuse_kept(self.structured_data)
        said = {name: getattr(self, name) for name in Said.model_fields}
        return Message(**given | {name: value for name, value in said.items() if value is not None})


class Add(Scoped):
    """Messages to be stored in order, in one transaction."""

    messages: list[Said] = Field(min_length=1, max_length=MOST_AT_ONCE)
    session: str | None = Field(default=None, description="Else the active one, or a new one.")
    source: Source | None = Field(default=None, description="Where the words came from.")


class AddOne(Scoped, Said):
    """One message to be stored."""

    session: str | None = Field(default=None, description="Else the active one, or a new one.")
    source: Source | None = Field(default=None, description="Where the words came from.")


class Revise(Scoped, Said):
    """What a message says now; what it said stays among its revisions."""

    message_id: Literal[None] = Field(default=None, description="The path names it.")
    session: str | None = Field(default=None, description="Where several hold this id.")


class Grow(Scoped):
    """More of a message that was begun with `unfinished`."""

    text: str = Field(default="", examples=[" and I like it here."])
    at: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        description="How many characters come before it: a retry adds nothing, and where another "
        "has written meanwhile, 409 says so.",
        examples=[27],
    )
    finish: bool = Field(default=False, description="Nothing more is to come.")
    session: str | None = Field(default=None, description="Where several hold this id.")
    tool_calls: list[dict[str, Any]] | None = None
    agent_calls: list[dict[str, Any]] | None = None
    structured_data: dict[str, Any] | None = None

    def fields(self) -> dict[str, Any]:
        """What comes beside the text, most often with its end."""
        refuse_kept(self.structured_data)
        names = ("tool_calls", "agent_calls", "structured_data")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Resolve(Scoped):
    """Which conversation goes on here."""

    session_id: str | None = Field(
        default=None, description="What the client holds, as from its local storage."
    )
    id: str | None = Field(default=None, description="This one outright, begun if need be.")
    new: bool = Field(default=False, description="Begin another one.")


Names = str | list[str] | None


class RecallAsk(Scoped):
    """A question to the memory, and what narrows it."""

    question: Question = Field(examples=["where does she live now?"])
    session: str | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_HITS)] = 10
    deadline_ms: Wait = 50.0
    kind: Names = Field(default=None, examples=["fact"])
    category: Names = None
    role: Names = None
    tags: Names = None
    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None

    def only(self) -> dict[str, Any]:
        """What narrows the search."""
        names = ("kind", "category", "role", "tags", "after", "before", "as_of")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}
