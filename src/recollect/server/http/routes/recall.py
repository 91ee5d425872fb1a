"""Recall: what is remembered that bears on a question."""

from __future__ import annotations

from recollect.errors import MissingExtraError
from recollect.records.query import Recall
from recollect.server.http.caller import Asking
from recollect.server.http.examples import RECALL, shown
from recollect.server.http.shapes import RecallAsk

try:
    from fastapi import APIRouter
except ImportError as error:
    raise MissingExtraError("server") from error

router = APIRouter(prefix="/api", tags=["recall"])


@router.post("/recall", responses=shown(RECALL))
def recall(ask: RecallAsk, caller: Asking) -> Recall:
    """What bears on the question, best first, each with its reason; late channels are named."""
    return caller.memory.recall(
        ask.question, user=caller.user(ask.user), agent=ask.agent, session=ask.session,
        limit=ask.limit, deadline_ms=ask.deadline_ms, **ask.only(),
    )  # fmt: skip
