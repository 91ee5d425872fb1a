"""Recall, contexts and summaries: what a model needs for the next answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memorist.context.compression.compress import Compression
from memorist.context.window import Context, Part, Receipt
from memorist.errors import InvalidError
from memorist.providers.images import refuse_image
from memorist.records.documents import Summary
from memorist.records.query import Recall
from memorist.records.values import check_json
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import AT, MESSAGE_ID, RECALL, SESSION, example, example_page
from memorist.server.http.pagination import Page, page_of
from memorist.server.http.routes.articles import library_of
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    CompressBody,
    ContextBody,
    RecallBody,
    ShelfBody,
    SummariesQuery,
)

router = APIRouter(route_class=ApiRoute)


class ReceiptAnswer(BaseModel):
    """What a context holds and what it costs, to the token."""

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
    """Messages ready for a model, in the form of chat completions, and the receipt for them."""

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


_CONTEXT = ContextAnswer(
    messages=[{"role": "user", "content": "Plan my weekend"}],
    receipt=ReceiptAnswer(
        window=4_000,
        answer=0,
        used=10,
        left=3_990,
        counted_by="o200k_base",
        exact=True,
        parts=(Part("question", 10),),
    ),
)
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


@operation(router, "recall", responses=example(RECALL))
def recall(body: RecallBody, caller: CurrentCaller) -> Recall:
    """What bears on the question, best first, each with its reason; late channels are named."""
    return caller.memory.recall(
        body.question,
        user=caller.user(body.user),
        agent=body.agent,
        session=body.session,
        limit=body.limit,
        deadline_ms=body.deadline_ms,
        **body.filters(),
    )


@operation(router, "context", responses=example(_CONTEXT))
def make_context(body: ContextBody, caller: CurrentCaller) -> ContextAnswer:
    """Notes, summary, newest messages and what is recalled, up to `max_tokens`, and a receipt."""
    user = caller.user(body.user)
    shelf = ShelfBody(user=user, agent=body.agent, shelf=body.shelf)
    context = caller.memory.context(
        body.message(),
        user=user,
        agent=body.agent,
        session=body.session,
        system=body.system,
        tools=check_json(body.tools, "tools", InvalidError),
        window=body.window(),
        deadline_ms=body.deadline_ms,
        read_image=refuse_image,
        library=library_of(caller, shelf) if body.library else None,
    )
    return ContextAnswer.of(context)


@operation(router, "compress", responses=example(_COMPRESSION))
def compress(body: CompressBody, caller: CurrentCaller) -> Compression | None:
    """Summarise all but the last messages of a session now; null if that is done already."""
    user = caller.user(body.user)
    return caller.memory.compress(user=user, session=body.session, window=body.window())


@operation(router, "list_summaries", responses=example_page(_SUMMARY))
def list_summaries(
    query: Annotated[SummariesQuery, Query()], caller: CurrentCaller
) -> Page[Summary]:
    """The summaries of a session, in the order of the messages that they reach to."""
    summaries = caller.memory.summaries(user=caller.user(query.user), session=query.session)
    return page_of(summaries, query, lambda summary: f"{summary.last_seq:020} {summary.id}")
