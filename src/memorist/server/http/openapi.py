"""The OpenAPI document: problem responses, and examples made of real records."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field, TypeAdapter

from memorist.forks import fork_safe
from memorist.records.documents import Article, ArticleInfo, Note
from memorist.records.log import Remembered, Session, SessionSummary
from memorist.records.memories import Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.query import Forgotten, Hit, Recall, Why
from memorist.records.scope import Scope
from memorist.records.values import Tally
from memorist.server.http.pagination import Page
from memorist.server.http.problems import MEDIA_TYPE

Responses = dict[int | str, dict[str, Any]]
_MEANINGS = {
    400: "The request cannot be read.",
    401: "No valid key or token.",
    403: "The caller may not do this.",
    404: "The user has nothing with this id.",
    408: "The body came too slowly.",
    409: "Somebody else was first.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "This server does not answer to this Host.",
    422: "Wrong fields; the problem names them.",
    429: "Too many requests; wait for Retry-After.",
    502: "A model failed; the message is stored.",
    503: "The store is busy or away; wait for Retry-After.",
    507: "The disk is full; what was stored is safe.",
}
_document: dict[str, Any] = {}  # takes a second to make, and is the same for every app
_making = fork_safe(threading.Lock())
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: Responses = {
    status: {"description": meaning, "content": _CONTENT} for status, meaning in _MEANINGS.items()
}


class Problem(BaseModel):
    """An error, as a problem document (RFC 9457)."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no message with this id for this user"])
    code: str = Field(description="Stable, for programs.", examples=["not_found"])
    request_id: str = Field(description="Also in X-Request-Id.", examples=["01a1dfc4c1ff7000"])
    fields: list[dict[str, str]] = []


def describe(app: FastAPI) -> None:
    """Add to an app's document what FastAPI cannot know."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        with _making:
            if not _document:
                document = generate()
                document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
                _correct(document)
                _document.update(document)
        return _document

    app.openapi = openapi  # type: ignore[method-assign]


def _correct(node: Any) -> None:
    """Remove what is not OpenAPI 3.1, and a format that our durations do not keep to."""
    if isinstance(node, dict):
        for name in ("schema", "itemSchema"):  # FastAPI describes events as OpenAPI 3.2 does
            node.get("text/event-stream", {}).pop(name, None)
        if node.get("format") == "duration":  # has no fractions of a second, which ours have
            node.pop("format")
            node["examples"] = ["P12DT3H0.5S"]
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            _correct(child)


AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
SESSION_ID = "019ca8b2-6c40-7000-8000-000000000001"
MESSAGE_ID = "019ca8b2-6c40-7000-8000-000000000002"
MEMORY_ID = "019ca8b2-6c40-7000-8000-000000000003"
FACT_ID = "019ca8b2-6c40-7000-8000-000000000004"
ARTICLE_ID = "019ca8b2-6c40-7000-8000-000000000005"
SCOPE = Scope(user="ada", agent="tutor")
REMEMBERED = Remembered(session_id=SESSION_ID, message_ids=(MESSAGE_ID,), added=1)
SESSION = Session(scope=SCOPE.within(session=SESSION_ID), created_at=AT, last_active_at=AT)
SUMMARY = SessionSummary(
    scope=SESSION.scope,
    created_at=AT,
    title="Moving to Berlin",
    last_active_at=AT,
    messages=Tally(2),
)
MESSAGE = Message("user", "I moved to Berlin in March.", message_id=MESSAGE_ID, created_at=AT)
MEMORY = MemoryItem(
    scope=SCOPE, text="Ada lives in Berlin.", sources=(MESSAGE_ID,), id=MEMORY_ID, created_at=AT
)
FACT = Fact(
    scope=SCOPE, subject="Ada", predicate="lives in", object="Berlin", known_from=AT, id=FACT_ID
)
NOTE = Note(id=MEMORY_ID, scope=SCOPE, version=1, text="## Plans\n- learn to sail", created_at=AT)
ARTICLE = Article(scope=SCOPE, title="Returns", text="Within 30 days", id=ARTICLE_ID, created_at=AT)
CARD = ArticleInfo(
    id=ARTICLE_ID, title="Returns", uri="", digest=ARTICLE.digest, chars=14, created_at=AT
)
FORGOTTEN = Forgotten(counts={"messages": 2, "memories": 1, "passages": 3})
WHY = Why(
    ranks={"words": 1, "meaning": 2},
    scores={"words": 8.1, "meaning": 0.42},
    parts={"words": 0.55, "meaning": 0.31, "self_reference": 0.05},
    age=timedelta(days=3),
    stop=27,
)
HIT = Hit(kind="message", id=MESSAGE_ID, text=MESSAGE.text, score=0.91, why=WHY, created_at=AT)
RECALL = Recall(hits=(HIT,), timings_ms={"words": 1.2, "meaning": 8.4, "total": 11.0})
_RECORDS = (REMEMBERED, SESSION, MESSAGE, MEMORY, FACT, NOTE, ARTICLE, CARD, FORGOTTEN, RECALL)
EXAMPLES = {type(record): record for record in _RECORDS}


def example_response(kind: Any, example: Any = None) -> dict[str, Any]:
    """A response of this type with an example: the one given, or that of the record."""
    is_page = isinstance(kind, type) and issubclass(kind, Page)
    record = kind.__pydantic_generic_metadata__["args"][0] if is_page else kind
    if (example := EXAMPLES.get(record) if example is None else example) is None:
        return {}
    value = TypeAdapter(type(example)).dump_python(example, mode="json")
    value = {"items": [value], "next": None} if is_page else value
    return {"content": {"application/json": {"example": value}}}


def stream_response(description: str, example: Any, events: bytes) -> dict[str, Any]:
    """The response of a route that answers with events, or with one object like the example."""
    content = example_response(type(example), example)["content"]
    content["text/event-stream"] = {"example": events.decode()}
    return {"description": description, "content": content}
