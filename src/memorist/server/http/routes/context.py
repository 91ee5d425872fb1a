"""Contexts: messages ready for a model, and the summaries in them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from memorist.context.compression.compress import Compression
from memorist.context.window import Part
from memorist.errors import InvalidError
from memorist.providers.images import refuse_image
from memorist.records.summary import Summary
from memorist.records.text import check_json
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import AT, MESSAGE_ID, SESSION, SESSION_ID, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.routes.articles import library_of
from memorist.server.http.schemas import User
from memorist.server.http.schemas_context import (
    CompressAsk,
    ContextAnswer,
    ContextAsk,
    ReceiptAnswer,
)

router = APIRouter(prefix="/api", tags=["context"], route_class=Parts)
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


@router.post("/context", responses=shown(_CONTEXT))
def make_context(ask: ContextAsk, caller: CurrentCaller) -> ContextAnswer:
    """Notes, summary, newest turns and what is recalled, filled to `max_tokens`, and a receipt."""
    user = caller.user(ask.user)
    given: dict[str, Any] = {
        "system": ask.system,
        "tools": check_json(ask.tools, "tools", InvalidError),
        "window": ask.window(),
        "deadline_ms": ask.deadline_ms,
        "read_image": refuse_image,
    }
    if ask.library:
        given["library"] = library_of(caller, user, ask.agent, ask.shelf)
    return ContextAnswer.of(
        caller.memory.context(ask.asked(), user=user, agent=ask.agent, session=ask.session, **given)
    )


@router.post("/compress", responses=shown(_COMPRESSION))
def compress(ask: CompressAsk, caller: CurrentCaller) -> Compression | None:
    """Have all but the last messages of a session stand as a summary now; null if they do."""
    user = caller.user(ask.user)
    return caller.memory.compress(user=user, session=ask.session, window=ask.window())


@router.get("/summaries", responses=listed(_SUMMARY))
def list_summaries(
    caller: CurrentCaller,
    session: Annotated[str, Query(description="Of which conversation.", examples=[SESSION_ID])],
    user: User = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Summary]:
    """The summaries that a session has had, in the order of what they reach to."""
    found = caller.memory.summaries(user=caller.user(user), session=session)
    return page_of(sorted(found, key=_place), limit, cursor, _place)


def _place(summary: Summary) -> str:
    return f"{summary.last_seq:020} {summary.id}"
