"""What requests may hold: bodies and queries. Unknown names are refused everywhere.

Responses are the records themselves, or models beside the route that answers with them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from memorist.agents.toolbox import LONGEST_QUESTION
from memorist.context.window import SUMMARY_PREFIX, Window
from memorist.errors import InvalidError
from memorist.providers.images import refuse_image
from memorist.records.memories import Kind
from memorist.records.message import Message, Source
from memorist.server.http.media_guard import check_content, check_structured_data

Role = Literal["user", "assistant", "system", "tool"]
MAX_ITEMS = 1_000
MAX_HITS = 200
MAX_PAGE = 500
MAX_WAIT_MS = 10_000.0
MAX_TOKENS = 10_000_000
MAX_ARTICLES = 100
MAX_MEMORIES = 10_000
MAX_TOOLS = 1_000
MAX_INT = 2**31 - 1
MAX_FOLLOW_S = 300.0

Wait = Annotated[
    Annotated[float, Field(gt=0, le=MAX_WAIT_MS, allow_inf_nan=False)] | None,
    AfterValidator(lambda wait: MAX_WAIT_MS if wait is None else wait),
    Field(description="Milliseconds; null waits for everything, for ten seconds at most."),
]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Reserved = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seq = Annotated[int, Field(ge=0, le=2**63 - 1)]
Position = Annotated[int, Field(ge=0, le=MAX_INT)]
Ids = Annotated[list[str], Field(max_length=MAX_ITEMS)]
Names = str | list[str] | None
Images = Annotated[list[str], Field(description="Data URLs; paths and URLs are refused.")]


def _check_length(text: str) -> str:
    # Not pydantic's max_length: that fails on lone surrogates, before a record can say why.
    if len(text) > LONGEST_QUESTION:
        raise PydanticCustomError(
            "string_too_long",
            "String should have at most {max_length} characters",
            {"max_length": LONGEST_QUESTION},
        )
    return text


Question = Annotated[
    str,
    AfterValidator(_check_length),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_QUESTION}),
]


class RequestModel(BaseModel):
    """The base of every body and query: a misspelt name is an error."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *names: str) -> dict[str, Any]:
        """The fields of these names that are not null; lists as tuples."""
        values = {name: getattr(self, name) for name in names}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if value is not None
        }


# Queries


class UserQuery(RequestModel):
    """Whose memory a request is about."""

    user: str | None = Field(default=None, description="Whose memory; only an admin names a user.")


class AgentQuery(UserQuery):
    """Whose memory, and with which agent."""

    agent: str | None = Field(default=None, description="Only what was said with this agent.")


class MessageQuery(UserQuery):
    """Where a message is."""

    session: str | None = Field(default=None, description="Only this session.")


class CursorQuery(RequestModel):
    """A page of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = Field(
        default=100, description="How many items at most; fewer where they are long."
    )
    cursor: str | None = Field(
        default=None, max_length=8_192, description="`next` of the page before this one."
    )


class PageQuery(CursorQuery, UserQuery):
    """A page of a user's list."""


class AgentPageQuery(PageQuery):
    """A page of what belongs to an agent."""

    agent: str | None = Field(default=None, description="Only what was said with this agent.")


class RevisionsQuery(PageQuery, MessageQuery):
    """A page of a message's revisions."""


class MessagesQuery(AgentPageQuery, MessageQuery):
    """A page of messages, newest page first."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = Field(
        default=50, description="How many items at most; fewer where they are long."
    )
    role: Role | None = Field(default=None, description="Only messages of this role.")
    before: Seq | None = Field(default=None, description="Only those before this `seq`.")
    after: Seq | None = Field(default=None, description="Only those after this `seq`.")


class MemoriesQuery(AgentPageQuery, MessageQuery):
    """A page of memories."""

    current: bool = Field(default=True, description="Only those that have not ended.")


class FactsQuery(AgentPageQuery):
    """A page of facts; without a moment, those that hold now."""

    subject: str | None = None
    predicate: str | None = None
    valid: AwareDatetime | None = Field(default=None, description="True at this moment.")
    known: AwareDatetime | None = Field(default=None, description="As far as was known then.")
    as_of: AwareDatetime | None = Field(default=None, description="Both: `valid` and `known`.")
    always: bool = Field(default=False, description="Of all times, by what is known now.")


class NotesQuery(AgentQuery):
    """A version of the notes."""

    version: Annotated[int, Field(ge=1, le=MAX_INT)] | None = Field(
        default=None, description="Without, the newest."
    )


class ShelfQuery(AgentQuery):
    """A library: the user's own, or a shelf that the whole tenant shares."""

    shelf: str | None = Field(default=None, description="A shared shelf, not the user's own.")


class ArticlesQuery(AgentPageQuery, ShelfQuery):
    """A page of a library."""


class SummariesQuery(PageQuery):
    """A page of a session's summaries."""

    session: str = Field(
        description="Of which session.", examples=["019ca8b2-6c40-7000-8000-000000000001"]
    )


class JobsQuery(PageQuery, MessageQuery):
    """A page of jobs."""

    dead: bool | None = Field(
        default=None, description="Only jobs that were given up, or only those that wait."
    )


class ForgetQuery(UserQuery):
    """How a memory is forgotten."""

    scrub: bool = Field(default=True, description="Remove the bytes from the files too.")


class FollowQuery(MessageQuery):
    """From where on a message is followed, and for how long."""

    at: Position = Field(default=0, description="How many characters you have.")
    timeout_s: Annotated[float, Field(gt=0, le=MAX_FOLLOW_S, allow_inf_nan=False)] = Field(
        default=30.0, description="Ends after so many seconds without news."
    )


# Bodies


class ScopedBody(RequestModel):
    """Whose memory a request is about, and with which agent."""

    user: str | None = Field(default=None, description="Only an admin names a user.")
    agent: str | None = Field(default=None, description="With which agent.", examples=["tutor"])


class MessageBody(RequestModel):
    """One message."""

    role: Role = Field(examples=["user"])
    content: str | dict[str, Any] | list[Any] | None = Field(
        default=None, examples=["I moved to Berlin in March."]
    )
    message_id: str | None = Field(
        default=None, description="Your id; sent again with it, the message is not stored again."
    )
    name: str | None = None
    tool_calls: list[dict[str, Any]] = []
    agent_calls: list[dict[str, Any]] = []
    structured_data: dict[str, Any] | None = None
    images: Images = []
    tool_call_id: str | None = None
    created_at: datetime | None = Field(default=None, description="When it was said, if not now.")
    unfinished: bool = Field(default=False, description="More of it is to come.")

    def to_message(self, **known: Any) -> Message:
        """The message as a record, which raises what is wrong with it."""
        for image in self.images:
            refuse_image(image)
        check_content(self.content)
        check_structured_data(self.structured_data)
        values = {name: getattr(self, name) for name in MessageBody.model_fields}
        return Message(
            **known | {name: value for name, value in values.items() if value is not None}
        )


class _Placed(ScopedBody):
    session: str | None = Field(
        default=None, description="Without, the active one, or a new one if there is none."
    )
    source: Source | None = Field(default=None, description="Where the words came from.")


class AddMessageBody(_Placed, MessageBody):
    """A message to store."""


class AddMessagesBody(_Placed):
    """Messages to store in order, in one transaction."""

    messages: list[MessageBody] = Field(min_length=1, max_length=MAX_ITEMS)


class ReviseMessageBody(ScopedBody, MessageBody):
    """The new text of a message; the old one stays among its revisions."""

    message_id: Literal[None] = Field(default=None, description="The path names it.")
    session: str | None = Field(default=None, description="Where several hold this id.")


class AppendBody(ScopedBody):
    """More text of a message that was begun with `unfinished`."""

    text: str = Field(default="", examples=[" and I like it here."])
    at: Position = Field(
        description="How many characters come before it: a retry adds nothing, and 409 says "
        "that somebody else wrote there.",
        examples=[27],
    )
    finish: bool = Field(default=False, description="Nothing more is to come.")
    session: str | None = Field(default=None, description="Where several hold this id.")
    tool_calls: list[dict[str, Any]] | None = None
    agent_calls: list[dict[str, Any]] | None = None
    structured_data: dict[str, Any] | None = None

    def fields(self) -> dict[str, Any]:
        """The fields beside the text, which usually come with its end."""
        check_structured_data(self.structured_data)
        values = {
            name: getattr(self, name) for name in ("tool_calls", "agent_calls", "structured_data")
        }
        return {name: value for name, value in values.items() if value is not None}


class ResolveSessionBody(ScopedBody):
    """Which session to go on with."""

    session_id: str | None = Field(
        default=None, description="The id that the client keeps, for example in local storage."
    )
    id: str | None = Field(default=None, description="This session, begun if there is none.")
    new: bool = Field(default=False, description="Begin another one.")


class RecallBody(ScopedBody):
    """A question to the memory, and filters."""

    question: Question = Field(examples=["where does she live now?"])
    session: str | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    deadline_ms: Wait = 50.0
    kind: Names = Field(default=None, examples=["fact"])
    category: Names = None
    role: Names = None
    tags: Names = None
    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None

    def filters(self) -> dict[str, Any]:
        """What narrows the search."""
        names = ("kind", "category", "role", "tags", "after", "before", "as_of")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


class WindowBody(ScopedBody):
    """The size of a model's context window, and how it is shared out."""

    max_tokens: Tokens = Field(default=8_000, examples=[4_000])
    answer_tokens: Reserved = 0
    model: str = Field(default="", max_length=200, description="Whose tokens are counted.")
    notes: Share = Field(default=0.2, description="The largest share of the notes.")
    memories: Share = 0.4
    articles: Share = 0.3
    most_memories: Annotated[int, Field(ge=0, le=MAX_MEMORIES)] = 200
    compress_at: Share = Field(
        default=0.85, description="How full the window is when older messages are summarised."
    )
    keep_last: Annotated[int, Field(ge=0, le=MAX_MEMORIES)] = 4
    summary_tokens: Tokens = 1_000
    summary_prefix: str = SUMMARY_PREFIX

    def window(self) -> Window:
        """The window, which raises what is wrong with it."""
        names = WindowBody.model_fields.keys() - ScopedBody.model_fields.keys()
        return Window(**{name: getattr(self, name) for name in names})


class ContextBody(WindowBody):
    """A question, and what its context should hold."""

    question: Question = Field(examples=["Plan my weekend"])
    images: Images = []
    session: str | None = Field(default=None, description="The session that goes on.")
    system: Question | None = Field(default=None, examples=["You are a kind tutor."])
    tools: list[dict[str, Any]] = Field(default=[], max_length=MAX_TOOLS)
    deadline_ms: Wait = 50.0
    library: bool = Field(default=False, description="Whether articles are quoted.")
    shelf: str | None = Field(default=None, description="A shared shelf, not the user's own.")

    def message(self) -> Message:
        """The question as a message."""
        for image in self.images:
            refuse_image(image)
        return Message("user", self.question, images=self.images)


class CompressBody(WindowBody):
    """A session whose older messages a summary should replace."""

    session: str = Field(examples=["0197a1c0-0000-7000-8000-000000000000"])


class AddMemoryBody(ScopedBody):
    """A memory to add."""

    text: str = Field(examples=["Ada lives in Berlin."])
    session: str | None = None
    kind: Kind | None = Field(default=None, examples=["fact"])
    category: str | None = Field(default=None, examples=["personal"])
    importance: Share | None = Field(default=None, examples=[0.8])
    tags: Ids | None = Field(default=None, examples=[["home"]])
    source: Source | None = Field(default=None, description="Where it came from.")
    sources: Ids | None = Field(default=None, description="Ids of the messages that say so.")
    expires_at: AwareDatetime | None = Field(default=None, examples=["2030-01-01T00:00:00Z"])


class AddFactBody(ScopedBody):
    """A fact to add, reconciled with those of the same subject and predicate."""

    subject: str = Field(examples=["Ada"])
    predicate: str = Field(examples=["lives in"])
    object: str = Field(examples=["Berlin"])
    single: bool | None = Field(
        default=None,
        description="It replaces the fact that held before; without, the predicate decides.",
    )
    ends: bool = Field(default=False, description="It holds no longer.")
    corrects: bool = Field(default=False, description="What was stored before was wrong.")
    valid_from: AwareDatetime | None = Field(default=None, examples=["2026-03-01T00:00:00Z"])
    valid_to: AwareDatetime | None = None
    source: Source | None = None
    sources: Ids | None = Field(default=None, description="Ids of the messages that say so.")


class ChangeFactBody(ScopedBody):
    """The parts of a fact that change from now on."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = Field(default=None, examples=["Hamburg"])

    def changes(self) -> dict[str, Any]:
        """The parts that change."""
        parts = self.given("subject", "predicate", "object")
        if not parts:
            raise InvalidError("give a subject, a predicate or an object that changes")
        return parts


class RetractBody(ScopedBody):
    """Why a memory or a fact is retracted."""

    reason: str = Field(default="", examples=["she never said so"])


class WriteNotesBody(ScopedBody):
    """A new text of the notes, and the version that it replaces."""

    text: str = Field(examples=["## Plans\n- learn to sail"])
    base_version: Position | None = Field(
        default=None, description="The version it replaces, 0 for none; or send If-Match."
    )


class ManageNotesBody(ScopedBody):
    """One edit of the notes, as the tool `manage_long_term_memory` takes it."""

    operation: str = Field(default="read", examples=["append"])
    content: str | None = Field(default=None, examples=["- Learns to sail."])
    section_header: str | None = Field(default=None, examples=["Plans"])


class RestoreNotesBody(ScopedBody):
    """An old version of the notes to write again."""

    version: Annotated[int, Field(ge=1, le=MAX_INT, examples=[1])]


class ShelfBody(ScopedBody):
    """A library: the user's own, or a shelf that the whole tenant shares."""

    shelf: str | None = Field(default=None, description="A shared shelf, not the user's own.")


class AddArticleBody(ShelfBody):
    """An article to add; it replaces the one with the same uri."""

    title: str = Field(examples=["Returns"])
    text: str = Field(examples=["# Returns\n\nYou may return it within 30 days."])
    uri: str = Field(default="", description="Its name; nothing is read.", examples=["returns.md"])


class RetrieveBody(ShelfBody):
    """A question to the articles, and the tokens for what is quoted."""

    query: Question = Field(examples=["How long may I return it?"])
    top_k: Annotated[int, Field(ge=1, le=MAX_ARTICLES)] = 5
    reserved_tokens: Reserved = Field(default=0, description="Tokens of the conversation.")
    window: Tokens = 262_144
    model: str = Field(default="", max_length=200, description="Whose tokens are counted.")
    deadline_ms: Wait = 1_000.0


class MaintainBody(ScopedBody):
    """Whether to apply maintenance, or only to report what it would do."""

    dry_run: bool = Field(default=False, examples=[True])


class ForgetBody(ScopedBody):
    """What to delete for good: what is named, or everything."""

    session: str | None = Field(default=None, examples=["0197a1c0-0000-7000-8000-000000000000"])
    message: str | None = None
    memory: str | None = Field(default=None, description="A memory, a fact or an article.")
    source: Source | None = Field(default=None, description="Everything with this source.")
    everything: bool = Field(default=False, description="Everything of the user's.")
    scrub: bool = Field(default=True, description="Remove the bytes from the files too.")

    def named(self) -> dict[str, Any]:
        """What was named, nulls included: a null is a mistake and must not mean nothing."""
        names = ("agent", "session", "message", "memory", "source")
        return {name: getattr(self, name) for name in names if name in self.model_fields_set}


class AddKeyBody(RequestModel):
    """Whom a new API key is for."""

    user: str | None = Field(default=None, description="For one user.", examples=["ada"])
    admin: bool = Field(default=False, description="For an admin of the tenant, instead.")
    label: str = Field(default="", examples=["her phone"])
    lifetime_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        default=None, description="Without, it is valid until it is revoked."
    )


class RotateKeyBody(RequestModel):
    """How long the old key stays valid."""

    grace_s: Annotated[int, Field(ge=0, le=86_400 * 365)] | None = Field(
        default=None, description="Seconds; without, until it is revoked."
    )
