"""Examples for the OpenAPI document: real records, so that they are never out of date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from memorist.records.article import Article, Card
from memorist.records.fact import Fact
from memorist.records.inputs import Remembered
from memorist.records.memory_item import MemoryItem
from memorist.records.message import Message
from memorist.records.note import Note
from memorist.records.query import Forgotten, Hit, Recall, Why
from memorist.records.scope import Scope
from memorist.records.session import Session

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
SESSION_ID = "019ca8b2-6c40-7000-8000-000000000001"
MESSAGE_ID = "019ca8b2-6c40-7000-8000-000000000002"
MEMORY_ID = "019ca8b2-6c40-7000-8000-000000000003"
FACT_ID = "019ca8b2-6c40-7000-8000-000000000004"
ARTICLE_ID = "019ca8b2-6c40-7000-8000-000000000005"
SCOPE = Scope(user="ada", agent="tutor")
REMEMBERED = Remembered(session_id=SESSION_ID, message_ids=(MESSAGE_ID,), added=1)
SESSION = Session(scope=SCOPE.within(session=SESSION_ID), created_at=AT)
MESSAGE = Message("user", "I moved to Berlin in March.", message_id=MESSAGE_ID, created_at=AT)
MEMORY = MemoryItem(
    scope=SCOPE,
    text="Ada lives in Berlin.",
    category="personal",
    importance=0.8,
    tags=("home",),
    sources=(MESSAGE_ID,),
    id=MEMORY_ID,
    created_at=AT,
)
FACT = Fact(
    scope=SCOPE,
    subject="Ada",
    predicate="lives in",
    object="Berlin",
    valid_from=AT,
    known_from=AT,
    sources=(MESSAGE_ID,),
    id=FACT_ID,
)
NOTE = Note(id=MEMORY_ID, scope=SCOPE, version=1, text="## Plans\n- learn to sail", created_at=AT)
ARTICLE = Article(
    scope=Scope(user="ada"),
    title="Returns",
    text="You may return it within 30 days.",
    uri="returns.md",
    id=ARTICLE_ID,
    created_at=AT,
)
CARD = Card(
    id=ARTICLE_ID,
    title="Returns",
    uri="returns.md",
    digest=ARTICLE.digest,
    chars=len(ARTICLE.text),
    created_at=AT,
)
FORGOTTEN = Forgotten(counts={"messages": 2, "memories": 1, "passages": 3})

WHY = Why(
    ranks={"words": 1, "meaning": 2},
    scores={"words": 8.1, "meaning": 0.42},
    parts={"words": 0.55, "meaning": 0.31, "own": 0.05},
    age=timedelta(days=3),
    stop=27,
)
HIT = Hit(
    kind="message",
    id=MESSAGE_ID,
    text="I moved to Berlin in March.",
    score=0.91,
    why=WHY,
    created_at=AT,
    session_id=SESSION_ID,
    role="user",
)
RECALL = Recall(hits=(HIT,), timings_ms={"words": 1.2, "meaning": 8.4, "total": 11.0})


def shown(answer: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """An answer as the example of a route."""
    told = TypeAdapter(type(answer)).dump_python(answer, mode="json")
    return {status: {"content": {"application/json": {"example": told}}}}


def listed(*items: Any) -> dict[int | str, dict[str, Any]]:
    """A page of items as the example of a route."""
    told = [TypeAdapter(type(item)).dump_python(item, mode="json") for item in items]
    example = {"items": told, "next": None}
    return {200: {"content": {"application/json": {"example": example}}}}
