"""Articles: texts to quote from, the user's own or those of a shelf that a tenant shares."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from memorist.context.documents.excerpts import Retrieved
from memorist.records.documents import Article, ArticleInfo
from memorist.records.query import Forgotten
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import ARTICLE, ARTICLE_ID, CARD, FORGOTTEN, example, example_page
from memorist.server.http.pagination import Page, by_time, page_of
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    AddArticleBody,
    ArticlesQuery,
    RetrieveBody,
    ShelfBody,
    ShelfQuery,
)
from memorist.views.library import Library

router = APIRouter(route_class=ApiRoute)
ArticleId = Annotated[str, Path(description="The article's id.", examples=[ARTICLE_ID])]


class AddedArticle(BaseModel):
    """What adding an article did, and the id of the one that holds the text."""

    id: str
    change: Literal["added", "changed", "unchanged", "duplicate"]


class Quotation(BaseModel):
    """An article that bears on a question, or the spans of it that fit, with its citation."""

    citation: str
    article: Retrieved


class Quotations(BaseModel):
    """What bears on a question, best first, and how many tokens it takes."""

    found: list[Quotation]
    tokens: int


@operation(router, "list_articles", responses=example_page(CARD))
def list_articles(
    query: Annotated[ArticlesQuery, Query()], caller: CurrentCaller
) -> Page[ArticleInfo]:
    """The articles, oldest first, without their texts."""
    return page_of(library_of(caller, query).articles(), query, by_time)


@operation(
    router,
    "add_article",
    status_code=201,
    responses=example(AddedArticle(id=ARTICLE_ID, change="added"), 201),
)
def add_article(body: AddArticleBody, caller: CurrentCaller) -> AddedArticle:
    """Store an article; it replaces the one with the same uri. A shared shelf needs an admin."""
    added = _writable(caller, body).add(body.title, body.text, body.uri)
    return AddedArticle(id=added.id, change=added.change)


@operation(router, "retrieve_articles", responses=example(Quotations(found=[], tokens=0)))
def retrieve_articles(body: RetrieveBody, caller: CurrentCaller) -> Quotations:
    """The articles that bear on a question, whole or in passages, as far as they fit."""
    articles = library_of(caller, body).retrieve(
        body.query,
        body.top_k,
        body.reserved_tokens,
        window=body.window,
        model=body.model,
        deadline_ms=body.deadline_ms,
    )
    quotations = [Quotation(citation=article.citation, article=article) for article in articles]
    return Quotations(found=quotations, tokens=sum(article.tokens for article in articles))


@operation(router, "get_article", responses=example(ARTICLE))
def get_article(
    article_id: ArticleId, query: Annotated[ShelfQuery, Query()], caller: CurrentCaller
) -> Article:
    """One article with its text."""
    return library_of(caller, query).get(article_id)


@operation(router, "remove_article", responses=example(FORGOTTEN))
def remove_article(
    article_id: ArticleId, query: Annotated[ShelfQuery, Query()], caller: CurrentCaller
) -> Forgotten:
    """Remove an article; its bytes go with the next scrub."""
    return _writable(caller, query).remove(article_id)


def library_of(caller: CurrentCaller, request: ShelfQuery | ShelfBody) -> Library:
    """The user's own library, or a shelf that all users of the tenant may read."""
    if request.shelf is None:
        return caller.memory.library(user=caller.user(request.user), agent=request.agent)
    if request.user is not None:
        caller.user(request.user)
    return caller.memory.library(request.shelf)


def _writable(caller: CurrentCaller, request: ShelfQuery | ShelfBody) -> Library:
    """The same to write to: a shared shelf is not any user's to change."""
    if request.shelf is not None:
        caller.require_operator()
    return library_of(caller, request)
