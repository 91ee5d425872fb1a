"""Shapes of what was derived: memories, facts, notes, articles, and what is to go or stay."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field

from memorist.errors import InvalidError
from memorist.records.log import Source
from memorist.records.memory_item import Kind
from memorist.server.http.schemas import MOST_AT_ONCE, Ask, Question, Scoped, Wait

MOST_TOKENS = 10_000_000
MOST_ARTICLES = 100
LARGEST = 2**31 - 1

Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Reserved = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Version = Annotated[int, Field(ge=0, le=LARGEST)]
Ids = Annotated[list[str], Field(max_length=MOST_AT_ONCE)]


class Kept(BaseModel):
    """The id of what now says so; null where nothing had to be kept."""

    id: str | None


def given(ask: Ask, *names: str) -> dict[str, Any]:
    """The fields of these names that say something."""
    return {name: value for name in names if (value := getattr(ask, name)) is not None}


class AddMemory(Scoped):
    """A memory to be kept outright."""

    text: str = Field(examples=["Ada lives in Berlin."])
    session: str | None = None
    kind: Kind | None = Field(default=None, examples=["fact"])
    category: str | None = Field(default=None, examples=["personal"])
    importance: Share | None = Field(default=None, examples=[0.8])
    tags: Ids | None = Field(default=None, examples=[["home"]])
    source: Source | None = Field(default=None, description="Where it came from.")
    sources: Ids | None = Field(default=None, description="Ids of the messages that say so.")
    expires_at: AwareDatetime | None = Field(default=None, examples=["2030-01-01T00:00:00Z"])

    def about(self) -> dict[str, Any]:
        """What is said of the memory."""
        names = ("kind", "category", "importance", "source", "expires_at")
        lists = {name: tuple(value) for name, value in given(self, "tags", "sources").items()}
        return {**given(self, *names), **lists}


class AddFact(Scoped):
    """A fact to be settled with those of its subject and predicate."""

    subject: str = Field(examples=["Ada"])
    predicate: str = Field(examples=["lives in"])
    object: str = Field(examples=["Berlin"])
    single: bool | None = Field(
        default=None,
        description="It takes the place of the one that held; by default as its predicate does.",
    )
    ends: bool = Field(default=False, description="It holds no longer.")
    corrects: bool = Field(default=False, description="What was said before was wrong.")
    valid_from: AwareDatetime | None = Field(default=None, examples=["2026-03-01T00:00:00Z"])
    valid_to: AwareDatetime | None = None
    source: Source | None = None
    sources: Ids | None = Field(default=None, description="Ids of the messages that say so.")

    def told(self) -> dict[str, Any]:
        """What is said of the fact."""
        names = ("single", "ends", "corrects", "valid_from", "valid_to", "source")
        lists = {name: tuple(value) for name, value in given(self, "sources").items()}
        return {**given(self, *names), **lists}


class ChangeFact(Scoped):
    """What a fact says from now on."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = Field(default=None, examples=["Hamburg"])

    def triple(self) -> dict[str, Any]:
        """The parts that change."""
        parts = given(self, "subject", "predicate", "object")
        if not parts:
            raise InvalidError("name a subject, a predicate or an object that changes")
        return parts


class Why(Scoped):
    """Why something is taken back."""

    reason: str = Field(default="", examples=["she never said so"])


class WriteNotes(Scoped):
    """A text for the notes, made of the version that it takes the place of."""

    text: str = Field(examples=["## Plans\n- learn to sail"])
    base_version: Version | None = Field(
        default=None, description="The version it was made of, 0 for none; or send If-Match."
    )


class ManageNotes(Scoped):
    """One edit of the notes, as the tool `manage_long_term_memory` takes it."""

    operation: str = Field(default="read", examples=["append"])
    content: str | None = Field(default=None, examples=["- Learns to sail."])
    section_header: str | None = Field(default=None, examples=["Plans"])


class RestoreNotes(Scoped):
    """An old version that is to be the newest again."""

    version: Annotated[int, Field(ge=1, le=LARGEST, examples=[1])]


class Shelf(Scoped):
    """Whose articles: the user's own, or those of a shelf that a whole tenant shares."""

    shelf: str | None = Field(default=None, description="A shared shelf; else the user's own.")


class AddArticle(Shelf):
    """A text to be quoted from; it takes the place of the one with the same uri."""

    title: str = Field(examples=["Returns"])
    text: str = Field(examples=["# Returns\n\nYou may return it within 30 days."])
    uri: str = Field(default="", description="A name for it, not read.", examples=["returns.md"])


class Retrieve(Shelf):
    """A question to the articles, and the room for what is quoted."""

    query: Question = Field(examples=["How long may I return it?"])
    top_k: Annotated[int, Field(ge=1, le=MOST_ARTICLES)] = 5
    reserved_tokens: Reserved = Field(default=0, description="What the conversation takes.")
    window: Tokens = 262_144
    model: str = Field(default="", max_length=200, description="Whose tokens are counted.")
    deadline_ms: Wait = 1_000.0


class Maintain(Scoped):
    """Whether to tidy, or only to say what would be done."""

    dry_run: bool = Field(default=False, examples=[True])


class Forget(Scoped):
    """What is to go for good: what is named, or everything where that is said outright."""

    session: str | None = Field(default=None, examples=["0197a1c0-0000-7000-8000-000000000000"])
    message: str | None = None
    memory: str | None = Field(default=None, description="A memory, a fact or an article.")
    source: Source | None = Field(default=None, description="All that was stamped so.")
    everything: bool = Field(default=False, description="All of the user's.")
    scrub: bool = Field(default=True, description="Remove the bytes from the files too.")

    def what(self) -> dict[str, Any]:
        """What was named, a null included: that is a mistake, which must not pass for nothing."""
        names = ("agent", "session", "message", "memory", "source")
        return {name: getattr(self, name) for name in names if name in self.model_fields_set}


class MakeKey(Ask):
    """Whom a new key is for."""

    user: str | None = Field(default=None, description="For one user.", examples=["ada"])
    admin: bool = Field(default=False, description="For an admin of the tenant, instead.")
    label: str = Field(default="", examples=["her phone"])
    lifetime_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        default=None, description="Without, it is good until it is revoked."
    )


class RotateKey(Ask):
    """How long the old key goes on."""

    grace_s: Annotated[int, Field(ge=0, le=86_400 * 365)] | None = Field(
        default=None, description="Seconds for which the old key is still good; else until revoked."
    )


Operation = Literal["add", "reinforce", "supersede", "promote", "expire", "retract", "restore"]
