"""Recall: what is remembered that bears on a question."""

from __future__ import annotations

from fastapi import APIRouter

from memorist.records.query import Recall
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import RECALL, shown
from memorist.server.http.schemas import RecallAsk

router = APIRouter(prefix="/api", tags=["recall"])


@router.post("/recall", responses=shown(RECALL))
def recall(ask: RecallAsk, caller: CurrentCaller) -> Recall:
    """What bears on the question, best first, each with its reason; late channels are named."""
    return caller.memory.recall(
        ask.question,
        user=caller.user(ask.user),
        agent=ask.agent,
        session=ask.session,
        limit=ask.limit,
        deadline_ms=ask.deadline_ms,
        **ask.only(),
    )
