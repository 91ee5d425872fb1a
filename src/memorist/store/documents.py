"""Notes, summaries and articles in a transaction: texts that are kept whole."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from memorist.errors import ConflictError
from memorist.records.documents import Article, ArticleInfo, Chunk, Note, PutResult, Summary
from memorist.records.log import Job, LogEntry
from memorist.records.scope import Scope
from memorist.records.values import Count, Place, check_each, check_text, from_micros, new_id
from memorist.store.engine import Db, Piece
from memorist.store.indexing import check_size, index_pieces, index_view
from memorist.store.jobs import enqueue, finish
from memorist.store.log import add_owner, ensure_session, following
from memorist.store.rows import ALL, ARTICLE, END, SUMMARY, Columns, check_count, dated_page

NOTE, WHOLE_ARTICLE = Columns(Note, omit=("scope",)), Columns(Article, omit=("scope",))
MAX_TITLE = 1_000  # characters of a title that each chunk of its article is found by


def note(db: Db, scope: Scope, *, version: int | None = None) -> Note | None:
    """The note of this user and agent, in its newest version or an earlier one."""
    if version is None:
        notes = _notes(db, scope, "note", {})
    else:
        page = {"least": version, "before": min(version, END) + 1, "limit": 1}
        notes = _notes(db, scope, "note_versions", page)
    return notes[0] if notes else None


def note_versions(
    db: Db, scope: Scope, *, limit: Count = None, before: Count = None, max_bytes: Count = None
) -> list[Note]:
    """The versions of the note, newest first, those before a version if one is given."""
    newest = min(check_count(before, "before"), ALL)
    page = {"least": 0, "before": newest, "limit": check_count(limit, "limit")}
    return _notes(db, scope, "note_versions", page, max_bytes)


def texts_of_note(text: str, **_: object) -> tuple[str, ...]:
    """The text that writing a note adds to the index, if it is not too long."""
    check_size(check_text(text, "note"), "note")
    return (text,)


def write_note(db: Db, scope: Scope, text: str, *, base_version: int) -> Note:
    """Write the version after `base_version`, unless someone else has."""
    agent = scope.agent or ""
    check_count(base_version, "base_version")
    current = note(db, scope)
    add_owner(db, scope)
    id_ = current.id if current else new_id()
    if base_version == 0:
        written = db.run("create_note", agent=agent, user_id=scope.user, id=id_, text=text)
    else:
        written = db.run("update_note", agent=agent, text=text, base_version=base_version)
    if not written:
        raise ConflictError(
            f"the note is at version {current.version if current else 0}, not {base_version}; "
            "read it again and redo the edit"
        )
    version = base_version + 1
    db.run("add_note_version", agent=agent, version=version, text=text)
    db.run("delete_view_passages", ids=[id_])
    created_at = from_micros(db.now)
    if text.strip():  # there is nothing to find in an empty note
        index_view(db, scope, "note", id_, text, created_at)
    return Note(id=id_, scope=scope, version=version, text=text, created_at=created_at)


def _notes(
    db: Db, scope: Scope, query: str, page: dict[str, int], max_bytes: int | None = None
) -> list[Note]:
    rows = db.page(query, max_bytes, agent=scope.agent or "", **page)
    return [NOTE.record(row, scope=scope) for row in rows]


def summary(db: Db, scope: Scope, *, least: int | None = None) -> Summary | None:
    """The summary of the most messages; with `least`, of the fewest that take so many tokens."""
    query = "summaries" if least is None else "oldest_summaries"
    row = db.row(query, **scope.columns(), limit=1, least=least, before=END, after=-1)
    return None if row is None else SUMMARY.record(row, scope=scope)


def summaries(
    db: Db,
    scope: Scope,
    *,
    limit: int | None = None,
    after: int | None = None,
    oldest_first: bool = False,
    max_bytes: int | None = None,
) -> list[Summary]:
    """The summaries of the session, newest first; `after` is a summary's `last_seq`."""
    named = {**scope.columns(), "limit": check_count(limit, "limit")}
    if oldest_first:
        place = check_count(after, "after", -1)
        rows = db.page("oldest_summaries", max_bytes, **named, after=place, least=0)
    else:
        rows = db.page("summaries", max_bytes, **named, before=check_count(after, "after", END))
    return [SUMMARY.record(row, scope=scope) for row in rows]


def queue_summary(db: Db, scope: Scope, last_seq: int) -> None:
    """Queue a summary of the session up to a message, unless one is queued."""
    for key, _, _ in db.rows("find_session", **scope.columns()):
        if not db.rows("summary_is_queued", session=key, last=last_seq):
            enqueue(db, "summarize", last_seq, last_seq, session=key)


def write_summary(
    db: Db, scope: Scope, summary: Summary, *, of: Sequence[LogEntry], done: Sequence[Job] = ()
) -> None:
    """Store a summary of messages, if they are unchanged, and finish the jobs that asked for it."""
    for job in done:
        finish(db, job)
    key, _, _ = ensure_session(db, scope)
    after = 0
    if summary.previous is not None:
        row = db.row("last_seq_of_summary", **scope.columns(), id=summary.previous)
        if row is None:
            raise ConflictError("the summary that this one extends is gone; read the newest again")
        after = row[0]
    stored = following(db, scope, after=after, limit=len(of) + 1)
    if [entry for entry in stored if entry.seq <= summary.last_seq] != list(of):
        raise ConflictError("the messages to be summarised have changed meanwhile; read them again")
    db.run("put_summary", session=key, **SUMMARY.row(summary))


def articles(
    db: Db, scope: Scope, *, limit: Count = None, after: Place = None, max_bytes: Count = None
) -> list[ArticleInfo]:
    """The articles without their texts, oldest first; `after` is one's `created_at` and id."""
    rows = db.page("articles", max_bytes, agent=scope.agent, **dated_page(limit, after))
    return [ARTICLE.record(row) for row in rows]


def read_articles(
    db: Db, scope: Scope, ids: Sequence[str], *, max_chars: int | None = None
) -> list[Article]:
    """Articles with their texts, in the order asked; missing ones are left out.

    With `max_chars`, the first that have so many characters together, one at least.
    """
    check_each("id", *ids)
    if max_chars is not None:
        chars: dict[str, int] = dict(db.rows("article_sizes", ids=list(ids)))
        totals = accumulate(chars.get(id_, 0) for id_ in ids)
        few = [id_ for id_, total in zip(ids, totals, strict=True) if total <= max_chars]
        ids = few or list(ids[:1])
    rows = db.rows("articles_by_id", agent=scope.agent, ids=list(ids))
    home = scope.whole_user()
    articles = [
        WHOLE_ARTICLE.record(row, scope=home.within(agent=agent or None)) for agent, *row in rows
    ]
    by_id = {article.id: article for article in articles}
    return [by_id[id_] for id_ in dict.fromkeys(ids) if id_ in by_id]


def pieces_of(article: Article, chunks: Sequence[Chunk]) -> list[Piece]:
    """The chunks of an article, each found by the title and its headings, too."""
    title, text = article.title[:MAX_TITLE], article.text
    return [
        Piece(start, stop, " ".join([title, *headings, text[start:stop]]))
        for start, stop, headings in chunks
    ]


def put_article(db: Db, article: Article, digest: str, pieces: Sequence[Piece]) -> PutResult:
    """Store an article in place of the one of its uri; a text that is there is a duplicate."""
    old = _same_uri(db, article)
    if old and (old.digest, old.title) == (digest, article.title):
        return PutResult(old.id, "unchanged")
    row = db.row("article_by_digest", agent=article.scope.agent or "", digest=digest)
    twin = None if row is None else ARTICLE.record(row)
    if twin and (old is None or twin.id != old.id):
        if old is not None:  # its text is not in use any more
            for query in ("delete_view_passages", "delete_articles"):
                db.run(query, ids=[old.id])
        return PutResult(twin.id, "duplicate")
    id_ = article.id if old is None else old.id
    _write_article(db, replace(article, id=id_), digest, pieces)
    return PutResult(id_, "added" if old is None else "changed")


def insert_article(db: Db, article: Article, pieces: Sequence[Piece]) -> int:
    """Store an article, unless there is one of its uri; return 1 or 0."""
    if _same_uri(db, article) is not None:
        return 0
    _write_article(db, article, article.digest, pieces)
    return 1


def _uri_hash(article: Article) -> str:
    return hashlib.sha256(article.uri.encode()).hexdigest() if article.uri else article.id


def _same_uri(db: Db, article: Article) -> ArticleInfo | None:
    agent = article.scope.agent or ""
    row = db.row("article_by_uri", agent=agent, uri_hash=_uri_hash(article))
    return None if row is None else ARTICLE.record(row)


def _write_article(db: Db, article: Article, digest: str, pieces: Sequence[Piece]) -> None:
    scope = article.scope
    add_owner(db, scope)
    info = ArticleInfo(
        id=article.id,
        title=article.title,
        uri=article.uri,
        digest=digest,
        chars=len(article.text),
        created_at=article.created_at,
    )
    more = {"uri_hash": _uri_hash(article), "pieces": len(pieces), "text": article.text}
    db.run("put_article", agent=scope.agent or "", **ARTICLE.row(info), **more)
    db.run("delete_view_passages", ids=[article.id])
    index_pieces(db, scope, "article", article.id, pieces, article.created_at)
