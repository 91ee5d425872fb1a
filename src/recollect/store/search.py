"""Search in a transaction: index passages, match words and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.errors import DimensionError, RecordError
from recollect.records.ids import from_micros
from recollect.records.query import Match
from recollect.records.scope import Scope
from recollect.records.text import check_key, fold, passages
from recollect.store.base import Term
from recollect.store.engine import Db, Row, one
from recollect.store.sessions import find_by, narrowed

PIECES = 1_048_576  # a message's passages have the ids from PIECES * seq upward


def index_messages(
    db: Db,
    owner: str,
    texts: Sequence[tuple[int, str, int]],
    *,
    agent: str,
    session: Any,
    first_piece: int = 0,
) -> None:
    """Make messages, given as `(place, text, created_at)`, findable by their words."""
    shared = {
        "owner": owner, "kind": "message", "agent": agent, "session": session, "view_id": None,
    }  # fmt: skip
    db.add_passages([
        {
            **shared, "id": seq * PIECES + piece, "start_at": start, "stop_at": stop,
            "created_at": created_at, "words": text[start:stop],
        }
        for seq, text, created_at in texts
        for piece, (start, stop) in enumerate(passages(text), start=first_piece)
    ])  # fmt: skip


def index_view(db: Db, scope: Scope, kind: str, view_id: str, text: str, created_at: int) -> None:
    """Make something derived findable by its words."""
    spans = passages(text)
    home = scope.session and one(db.rows("find_session", **find_by(scope)))
    shared = {
        "owner": scope.owner, "kind": kind, "agent": scope.agent or "",
        "session": home[0] if home else None,
        "view_id": view_id, "created_at": created_at,
    }  # fmt: skip
    db.add_passages([
        {**shared, "id": id_, "start_at": start, "stop_at": stop, "words": text[start:stop]}
        for id_, (start, stop) in zip(db.next_view_passages(len(spans)), spans, strict=True)
    ])  # fmt: skip


def match_text(db: Db, scope: Scope, terms: Sequence[Term], limit: int, now: int) -> list[Match]:
    """The passages that hold any of the terms, best first."""
    folded = [tuple(fold(" ".join(term)).split()) for term in terms]
    wanted = [term for term in folded if term]
    if not wanted or limit <= 0:
        return []
    query = db.text_query(scope.owner, wanted)
    rows = db.rows("match_text", **narrowed(scope), terms=query, limit=limit)
    return _matches(db, scope, rows, now)


def match_vector(
    db: Db, scope: Scope, embedder: str, vector: Sequence[float], limit: int, now: int
) -> list[Match]:
    """The passages nearest in meaning, best first; scores are cosines."""
    if limit <= 0:
        return []
    held = one(db.rows("dimensions", owner=scope.owner, embedder=embedder))
    if held is None:
        return []
    _check_dimensions(held[0], len(vector))
    near = dict(db.nearest(narrowed(scope), embedder, vector, limit))
    rows = db.rows("passages_by_id", **narrowed(scope), ids=list(near))
    scored = sorted(((*row[:7], near[row[0]]) for row in rows), key=lambda row: (-row[7], -row[0]))
    return _matches(db, scope, scored, now)


def unembedded(db: Db, scope: Scope, embedder: str, limit: int, now: int) -> dict[int, str]:
    """Passages that have no vector of this embedder yet, with their texts."""
    rows = db.rows("unembedded", **narrowed(scope), embedder=embedder, limit=limit)
    return {match.passage: match.text for match in _matches(db, scope, rows, now)}


def put_vectors(
    db: Db, scope: Scope, embedder: str, vectors: Mapping[int, Sequence[float]]
) -> None:
    """Give passages their vectors. Passages forgotten meanwhile are passed over."""
    check_key(embedder, "embedder")
    lengths = {len(vector) for vector in vectors.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise RecordError("vectors must all have the same length, of at least 1")
    if not lengths:
        return
    [length] = lengths
    named = {"owner": scope.owner, "embedder": embedder}
    db.run("set_dimensions", **named, dimensions=length)
    held = one(db.rows("dimensions", **named))
    assert held is not None  # set the line before
    _check_dimensions(held[0], length)
    rows = (
        {**named, "passage": passage, "embedding": db.vector(vector)}
        for passage, vector in vectors.items()
    )
    db.many("put_vector", rows)


def _check_dimensions(held: int, got: int) -> None:
    if held != got:
        raise DimensionError(
            f"this embedder gave {held}-d vectors before and {got}-d now; "
            "give the new model another embedder name"
        )


def _matches(db: Db, scope: Scope, rows: Sequence[Row], now: int) -> list[Match]:
    """Turn `id, kind, view, start, stop, created_at, session, score` into matches."""
    seqs = sorted({row[0] // PIECES for row in rows if row[0] > 0})
    found = db.rows("messages_by_seq", owner=scope.owner, seqs=seqs) if seqs else []
    messages = {row[0]: db.unpack(row) for row in found}
    views = [row[2] for row in rows if row[2] is not None]
    derived: dict[str, str] = (
        dict(db.rows("view_texts", owner=scope.owner, ids=views, now=now)) if views else {}
    )
    matches = []
    for id_, kind, view, start, stop, created_at, session_id, score in rows:
        message = messages.get(id_ // PIECES)
        text = message.text if message else derived.get(view)
        if text is None:
            continue  # its time is over
        matches.append(
            Match(
                passage=id_,
                kind=kind,
                id=message.message_id if message else view,
                text=text[start:stop],
                score=float(score or 0),
                created_at=from_micros(created_at),
                session_id=session_id,
                role=message.role if message else None,
            )
        )
    return matches
