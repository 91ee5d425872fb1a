"""Recall, contexts and summaries: what a model needs for the next answer."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memorist.agents.toolbox import MOST_HITS
from memorist.context.window import QUOTED_SCORE, Context, Part, Receipt, Window
from memorist.errors import InvalidError
from memorist.providers.images import refuse_image
from memorist.records.documents import Compression, Summary
from memorist.records.json_values import check_json
from memorist.records.message import UNSET, Message
from memorist.records.query import MIN_SCORE, Recall
from memorist.server.http import schemas
from memorist.server.http.openapi import AT, MESSAGE_ID, SESSION
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routes.documents import library_of
from memorist.server.http.routing import Caller, Url, operation

Names = str | list[str] | None
MAX_TOOLS = 1_000
MAX_MEMORIES = 10_000


class RecallBody(schemas.SessionRequest):
    """A question to the memory, and filters."""

    question: schemas.Question = Field(examples=["where does she live now?"])
    limit: Annotated[int, Field(ge=1, le=MOST_HITS)] = 10
    min_score: schemas.Share = Field(MIN_SCORE, description="Hits with a lower score are left out.")
    deadline_ms: schemas.Wait = 50.0
    kind: Names = Field(None, examples=["fact"])
    category: Names = None
    role: Names = None
    tags: Names = None
    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None


class WindowBody(schemas.SessionRequest):
    """The size of a model's context window, and how it is shared out."""

    max_tokens: schemas.Tokens = Field(8_000, examples=[4_000])
    answer_tokens: schemas.Reserved | None = Field(None, description="An eighth, up to 1,000.")
    model: schemas.ModelName = ""
    notes: schemas.Share = Field(0.2, description="The largest share of the notes.")
    memories: schemas.Share = 0.4
    articles: schemas.Share = 0.3
    most_memories: Annotated[int, Field(ge=0, le=MAX_MEMORIES)] = 200
    min_score: schemas.Share = QUOTED_SCORE
    compress_at: schemas.Share = Field(
        0.85, description="How full it is when older messages are summarised."
    )
    keep_last: Annotated[int, Field(ge=0, le=MAX_MEMORIES)] = 4
    summary_tokens: schemas.Tokens = 1_000
    summary_prompt: str = Field("", description="What a model is asked; else our own words.")
    summary_prefix: str = Field("", description="The line above it; else one in its language.")
    move_at: schemas.Share = Field(0.85, description="How full it is when a larger one is used.")

    def window(self) -> Window:
        """The window, which raises what is wrong with it; what is not given, the server's."""
        names = WindowBody.model_fields.keys() - schemas.SessionRequest.model_fields.keys()
        return Window(**{name: getattr(self, name) for name in names & self.model_fields_set})


class ContextBody(WindowBody, schemas.ShelfRequest):
    """A question, and what its context should hold."""

    question: schemas.Question = Field(examples=["Plan my weekend"])
    images: schemas.Images = Field([])
    system: schemas.Question | None = Field(None, examples=["You are a kind tutor."])
    tools: list[dict[str, Any]] = Field([], max_length=MAX_TOOLS)
    deadline_ms: schemas.Wait = 50.0
    library: bool = Field(False, description="Whether articles are quoted.")


class CompressBody(WindowBody):
    """A session whose older messages a summary should replace."""

    session: str = Field(examples=[SESSION.id])


class SummariesQuery(schemas.AgentPageQuery):
    """A page of a session's summaries."""

    session: str = Field(description="Of which session.", examples=[SESSION.id])
    oldest_first: bool = Field(True, description="In the order of the messages they reach to.")


class ReceiptAnswer(BaseModel):
    """What a context holds and what it costs, to the token."""

    model_config = ConfigDict(from_attributes=True)
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


class ContextAnswer(BaseModel):
    """Messages ready for a model, in the form of chat completions, and the receipt for them."""

    model_config = ConfigDict(from_attributes=True)
    messages: list[dict[str, Any]]
    receipt: ReceiptAnswer
    tools: list[dict[str, Any]] = []


_RECEIPT = Receipt(
    window=4_000, answer=0, counted_by="o200k_base", exact=True, parts=(Part("question", 10),)
)
_CONTEXT = Context(messages=[{"role": "user", "content": "Plan my weekend"}], receipt=_RECEIPT)
_SUMMARY = Summary(
    scope=SESSION.scope,
    text="Ada moved to Berlin.",
    last_seq=12,
    messages=8,
    id=MESSAGE_ID,
    made_by="extractive",
    tokens_before=240,
    tokens=20,
    created_at=AT,
)
_COMPRESSION = Compression(
    summary=_SUMMARY, message_ids=(MESSAGE_ID,), tokens_before=240, tokens_after=20
)


def _deadline(body: RecallBody | ContextBody) -> float | None:
    """The deadline of the request, or else the server's."""
    return body.deadline_ms if "deadline_ms" in body.model_fields_set else UNSET


@operation("recall")
def recall(body: RecallBody, caller: Caller) -> Recall:
    """What bears on the question, best first, each with its reason; late channels are named."""
    arguments = {**body.arguments("deadline_ms"), "deadline_ms": _deadline(body)}
    return caller.memory.recall(**caller.place(body), **arguments)


@operation("context", response_model=ContextAnswer, example=ContextAnswer.model_validate(_CONTEXT))
def make_context(body: ContextBody, caller: Caller) -> Context:
    """Notes, summary, newest messages and what is recalled, up to `max_tokens`, and a receipt."""
    for image in body.images:
        refuse_image(image)
    return caller.memory.context(
        Message("user", body.question, images=body.images),
        **caller.place(body),
        system=body.system,
        tools=check_json(body.tools, "tools", InvalidError),
        window=body.window(),
        deadline_ms=_deadline(body),
        read_image=refuse_image,
        library=library_of(caller, body) if body.library else None,
    )


@operation("compress", example=_COMPRESSION)
def compress(body: CompressBody, caller: Caller) -> Compression | None:
    """Summarise all but the last messages of a session now; null if that is done already."""
    user = caller.user(body.user)
    return caller.memory.compress(user=user, session=body.session, window=body.window())


@operation("list_summaries", example=_SUMMARY)
def list_summaries(query: Url[SummariesQuery], caller: Caller) -> Page[Summary]:
    """The summaries of a session, in the order of the messages that they reach to."""
    read = partial(
        caller.memory.summaries,
        user=caller.user(query.user),
        session=query.session,
        oldest_first=query.oldest_first,
    )
    return keyset_page(read, query, by=lambda summary: summary.last_seq)
