"""Articles in a transaction: list them, read some, put one on its shelf."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memorist.records.article import Article, Card, Chunk, Shelved
from memorist.records.ids import from_micros, to_micros
from memorist.records.scope import Scope
from memorist.store.engine import Db, Row, one
from memorist.store.indexing import Piece, index_pieces

MAX_TITLE = 1_000  # of it, what each chunk is found by


def articles(db: Db, scope: Scope) -> list[Card]:
    """What there is, by uri and title, without the texts."""
    return [_card(row) for row in db.rows("articles", owner=scope.owner, agent=scope.agent)]


def read_articles(db: Db, scope: Scope, ids: Sequence[str]) -> list[Article]:
    """Articles with their texts, in the order asked; those gone are left out."""
    rows = db.rows("articles_by_id", owner=scope.owner, agent=scope.agent, ids=list(ids))
    found = {row[0]: _article(scope, row) for row in rows}
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]


def put_article(db: Db, article: Article, chunks: Sequence[Chunk], now: int) -> Shelved:
    """Store an article in the place of the one of its uri, unless all of it is there already.

    The same text is kept once: what comes again under another uri is a duplicate.
    """
    scope = article.scope
    place = {"owner": scope.owner, "agent": scope.agent or ""}
    uri_hash, digest = _uri_hash(article), article.digest
    before = one(db.rows("article_by_uri", **place, uri_hash=uri_hash))
    old = None if before is None else _card(before)
    if old is not None and (old.digest, old.title) == (digest, article.title):
        return Shelved(old.id, "unchanged")
    twin = one(db.rows("article_by_digest", **place, digest=digest))
    if twin is not None and (old is None or twin[0] != old.id):
        if old is not None:  # what it said before, it says no more
            for query in ("delete_view_passages", "delete_articles"):
                db.run(query, owner=scope.owner, ids=[old.id])
        return Shelved(twin[0], "duplicate")
    id_ = article.id if old is None else old.id
    db.run("add_owner", owner=scope.owner, tenant=scope.tenant, user_id=scope.user, now=now)
    created_at = to_micros(article.created_at)
    db.run(
        "put_article",
        **place,
        id=id_,
        uri_hash=uri_hash,
        uri=article.uri,
        title=article.title,
        digest=digest,
        chars=len(article.text),
        pieces=len(chunks),
        created_at=created_at,
        text=article.text,
    )
    db.run("delete_view_passages", owner=scope.owner, ids=[id_])
    pieces = [Piece(it.start, it.stop, _words(article, it)) for it in chunks]
    index_pieces(db, scope, "article", id_, pieces, created_at, now)
    return Shelved(id_, "added" if old is None else "changed")


def _words(article: Article, chunk: Chunk) -> str:
    """What finds a chunk: its words, and those of the title and the headings above it."""
    return " ".join(
        [article.title[:MAX_TITLE], *chunk.headings, article.text[chunk.start : chunk.stop]]
    )


def _uri_hash(article: Article) -> str:
    """The key of an article's place: short whatever its uri is; without one, its own."""
    return hashlib.sha256(article.uri.encode()).hexdigest() if article.uri else article.id


def _card(row: Row) -> Card:
    id_, title, uri, digest, chars, created_at = row
    return Card(
        id=id_, title=title, uri=uri, digest=digest, chars=chars, created_at=from_micros(created_at)
    )


def _article(scope: Scope, row: Row) -> Article:
    id_, agent, title, uri, created_at, text = row
    home = Scope(user=scope.user, tenant=scope.tenant, agent=agent or None)
    return Article(
        id=id_, scope=home, title=title, uri=uri, created_at=from_micros(created_at), text=text
    )
