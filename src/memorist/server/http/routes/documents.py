"""Documents: notes, and articles to quote from, a user's own or those of a shared shelf."""

from functools import partial
from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, Field

from memorist.agents.toolbox import MOST_ARTICLES
from memorist.context.documents.excerpts import Retrieved
from memorist.library import Library
from memorist.records.documents import Article, ArticleInfo, Note
from memorist.records.query import Forgotten
from memorist.records.values import now
from memorist.server.http import schemas
from memorist.server.http.openapi import ARTICLE_ID
from memorist.server.http.pagination import Page, keyset_page
from memorist.server.http.routing import Caller, Url, operation

Version = Annotated[int, Field(ge=1, le=schemas.MAX_INT)]
ArticleId = Annotated[str, Path(description="The article's id.", examples=[ARTICLE_ID])]


# Notes


class NotesQuery(schemas.AgentRequest):
    """A version of the notes."""

    version: Version | None = Field(None, description="Without, the newest.")


class WriteNotesBody(schemas.AgentRequest):
    """A new text of the notes, and the version that it replaces."""

    text: str = Field(examples=["## Plans\n- learn to sail"])
    base_version: schemas.Position = Field(
        description="The version it replaces, 0 for none.", examples=[0]
    )


class ManageNotesBody(schemas.AgentRequest):
    """One edit of the notes, as the tool `manage_long_term_memory` takes it."""

    operation: str = Field("read", examples=["append"])
    content: str | None = Field(None, examples=["- Learns to sail."])
    section_header: str | None = Field(None, examples=["Plans"])


class RestoreNotesBody(schemas.AgentRequest):
    """An old version of the notes to write again."""

    version: Version = Field(examples=[1])


class EditResult(BaseModel):
    """What an edit did, in words for a model, and the version that the notes have now."""

    result: str
    version: int


@operation("get_notes")
def get_notes(query: Url[NotesQuery], caller: Caller) -> Note:
    """The notes, as they are or as a version had them; version 0 says that there are none."""
    if query.version is not None:
        return caller.memory.notes(**caller.place(query)).at(query.version)
    scope = caller.scope(query)
    empty = Note(id="", scope=scope, version=0, text="", created_at=now())
    return caller.memory.note_versions.get(scope) or empty


@operation("write_notes")
def write_notes(body: WriteNotesBody, caller: Caller) -> Note:
    """Replace a version of the notes; 409 if there is a newer one."""
    notebook = caller.memory.notes(**caller.place(body))
    return notebook.write(body.text, base_version=body.base_version)


@operation("list_versions")
def list_versions(query: Url[schemas.AgentPageQuery], caller: Caller) -> Page[Note]:
    """Every version, newest first."""
    read = partial(caller.memory.note_versions.list, caller.scope(query))
    return keyset_page(
        lambda after, **page: read(before=after, **page), query, by=lambda note: note.version
    )


@operation("manage_notes", example=EditResult(result="Appended.", version=2))
def manage_notes(body: ManageNotesBody, caller: Caller) -> EditResult:
    """Read, overwrite, append, prepend, or edit a section, as a model's tool does."""
    notebook = caller.memory.notes(**caller.place(body))
    return EditResult(result=notebook.manage(**body.arguments()), version=notebook.version)


@operation("restore_notes")
def restore_notes(body: RestoreNotesBody, caller: Caller) -> Note:
    """Write the text of an old version as the newest."""
    return caller.memory.notes(**caller.place(body)).restore(body.version)


# Articles


class ArticlesQuery(schemas.AgentPageQuery, schemas.ShelfRequest):
    """A page of a library."""


class AddArticleBody(schemas.ShelfRequest):
    """An article to add; it replaces the one with the same uri."""

    title: str = Field(examples=["Returns"])
    text: str = Field(examples=["# Returns\n\nYou may return it within 30 days."])
    uri: str = Field("", description="Its name; nothing is read.", examples=["returns.md"])


class RetrieveBody(schemas.ShelfRequest):
    """A question to the articles, and the tokens for what is quoted."""

    query: schemas.Question = Field(examples=["How long may I return it?"])
    top_k: Annotated[int, Field(ge=1, le=MOST_ARTICLES)] = 5
    reserved_tokens: schemas.Reserved = Field(0, description="Tokens of the conversation.")
    window: schemas.Tokens = 262_144
    model: schemas.ModelName = ""
    deadline_ms: schemas.Wait = 1_000.0


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


@operation("list_articles")
def list_articles(query: Url[ArticlesQuery], caller: Caller) -> Page[ArticleInfo]:
    """The articles, oldest first, without their texts."""
    scope = library_of(caller, query).scope
    return keyset_page(partial(caller.memory.articles.list, scope), query)


@operation("add_article", status_code=201, example=AddedArticle(id=ARTICLE_ID, change="added"))
def add_article(body: AddArticleBody, caller: Caller) -> AddedArticle:
    """Store an article; it replaces the one with the same uri. A shared shelf needs an admin."""
    added = _writable(caller, body).add(**body.arguments())
    return AddedArticle(id=added.id, change=added.change)


@operation("retrieve_articles", example=Quotations(found=[], tokens=0))
def retrieve_articles(body: RetrieveBody, caller: Caller) -> Quotations:
    """The articles that bear on a question, whole or in passages, as far as they fit."""
    articles = library_of(caller, body).retrieve(**body.arguments())
    quotations = [Quotation(citation=article.citation, article=article) for article in articles]
    return Quotations(found=quotations, tokens=sum(article.tokens for article in articles))


@operation("get_article")
def get_article(article_id: ArticleId, query: Url[schemas.ShelfRequest], caller: Caller) -> Article:
    """One article with its text."""
    return library_of(caller, query).get(article_id)


@operation("remove_article")
def remove_article(
    article_id: ArticleId, query: Url[schemas.ShelfRequest], caller: Caller
) -> Forgotten:
    """Remove an article; its bytes go with the next scrub."""
    return _writable(caller, query).remove(article_id)


def library_of(caller: Caller, request: schemas.ShelfRequest) -> Library:
    """The user's own library, or a shelf that all users of the tenant may read."""
    if request.shelf is None:
        return caller.memory.library(user=caller.user(request.user), agent=request.agent)
    if request.user is not None:
        caller.user(request.user)
    return caller.memory.library(request.shelf)


def _writable(caller: Caller, request: schemas.ShelfRequest) -> Library:
    """The same to write to: a shared shelf is not any user's to change."""
    if request.shelf is not None:
        caller.require_operator()
    return library_of(caller, request)
