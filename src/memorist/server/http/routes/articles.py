"""Articles: texts to quote from, the user's own or those of a shelf that a tenant shares."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.context.documents.excerpts import Retrieved
from memorist.records.article import Article, Card
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import ARTICLE, ARTICLE_ID, CARD, FORGOTTEN, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.schemas import Agent, User
from memorist.server.http.schemas_views import AddArticle, Retrieve
from memorist.views.library import Library

router = APIRouter(prefix="/api/articles", tags=["articles"], route_class=Parts)
ArticleId = Annotated[str, Path(description="The article's id.", examples=[ARTICLE_ID])]
ShelfName = Annotated[str | None, Query(description="A shared shelf; else the user's own.")]


class Stored(BaseModel):
    """What came of an article, and the id of the one that holds its text."""

    id: str
    change: Literal["added", "changed", "unchanged", "duplicate"]


class Quoted(BaseModel):
    """An article that bears on a question, or the spans of it that fit, with its citation."""

    citation: str
    article: Retrieved


class Quotations(BaseModel):
    """What bears on a question, best first, and the tokens it takes."""

    found: list[Quoted]
    tokens: int


@router.get("", responses=listed(CARD))
def list_articles(
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    shelf: ShelfName = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Card]:
    """What is on the shelf, oldest first, without the texts."""
    found = library_of(caller, user, agent, shelf).articles()
    return page_of(sorted(found, key=_place), limit, cursor, _place)


@router.post("", status_code=201, responses=shown(Stored(id=ARTICLE_ID, change="added"), 201))
def add_article(ask: AddArticle, caller: CurrentCaller) -> Stored:
    """Store a text, in the place of the one with the same uri; a shared shelf is an admin's."""
    library = _writable(caller, ask.user, ask.agent, ask.shelf)
    shelved = library.add(ask.title, ask.text, ask.uri)
    return Stored(id=shelved.id, change=shelved.change)


@router.post("/retrieve", responses=shown(Quotations(found=[], tokens=0)))
def retrieve_articles(ask: Retrieve, caller: CurrentCaller) -> Quotations:
    """The articles that bear on a question, whole or in passages, as far as they fit."""
    found = library_of(caller, ask.user, ask.agent, ask.shelf).retrieve(
        ask.query,
        ask.top_k,
        ask.reserved_tokens,
        window=ask.window,
        model=ask.model,
        deadline_ms=ask.deadline_ms,
    )
    quoted = [Quoted(citation=one.citation, article=one) for one in found]
    return Quotations(found=quoted, tokens=sum(one.tokens for one in found))


@router.get("/{article_id}", responses=shown(ARTICLE))
def get_article(
    article_id: ArticleId,
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    shelf: ShelfName = None,
) -> Article:
    """One article with its text."""
    return library_of(caller, user, agent, shelf).get(article_id)


@router.delete("/{article_id}", responses=shown(FORGOTTEN))
def remove_article(
    article_id: ArticleId,
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    shelf: ShelfName = None,
) -> Forgotten:
    """Take an article off the shelf; its bytes go with the next scrub."""
    return _writable(caller, user, agent, shelf).remove(article_id)


def library_of(
    caller: CurrentCaller, user: str | None, agent: str | None, shelf: str | None
) -> Library:
    """The user's own library, or a shelf that all users of the tenant may read."""
    if shelf is None:
        return Library(caller.memory, user=caller.user(user), agent=agent)
    if user is not None:
        caller.user(user)
    return Library(caller.memory, shelf)


def _writable(
    caller: CurrentCaller, user: str | None, agent: str | None, shelf: str | None
) -> Library:
    """The same, to be changed: what all read is not any user's to change."""
    if shelf is not None:
        caller.require_operator()
    return library_of(caller, user, agent, shelf)


def _place(card: Card) -> str:
    return f"{card.created_at.isoformat()} {card.id}"
