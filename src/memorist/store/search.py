"""Search in a transaction: match words, vectors and links, and read what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorist.errors import DimensionError, RecordError
from memorist.language.words import term_stem
from memorist.records.ids import from_micros, to_micros
from memorist.records.log import Job
from memorist.records.query import NO_FILTERS, Filters, Found, Match, Passage
from memorist.records.scope import Scope
from memorist.records.text import check_key, fold
from memorist.store import bm25
from memorist.store.base import Synonym, Term
from memorist.store.bm25 import PIECES, Near
from memorist.store.engine import Db, Row, one
from memorist.store.queue import advance
from memorist.store.sessions import narrowed

if TYPE_CHECKING:
    from memorist.store.bm25 import Ids

ALL_TIME = 2**62
MAX_LINKED = 5_000
FEW_PLACES = 300  # a word near to one asked for that stands in more tells nothing
FIRST_LOOK = 8  # times as many as wanted are looked at before all that a filter lets through


def match_text(
    db: Db,
    scope: Scope,
    terms: Sequence[Term],
    synonyms: Sequence[Synonym],
    filters: Filters,
    limit: int,
) -> list[Found]:
    """The records that hold any of the terms or their synonyms, best first, each by one passage."""
    asked = {term_stem(term): term for term in map(_folded, terms) if term}
    wanted, numbers = list(asked.values()), {stem: number for number, stem in enumerate(asked)}
    places = db.places(scope.owner, wanted)
    # Synonyms of a word that stands nearly everywhere tell as little as the word.
    close = {
        it.stem: (numbers[stem], it.worth)
        for it in synonyms
        if (stem := term_stem(_folded(it.of))) in numbers
        and asked[stem] in places
        and it.stem.isalnum()
    }
    near = db.few_places(scope.owner, list(close), FEW_PLACES) if close else {}
    if not places and not near:
        return []
    total = db.count_records(scope.owner)

    def lengths_of(records: list[int]) -> dict[int, int]:
        return db.lengths(scope.owner, records)

    def find(limit: int, allowed: Ids | None) -> list[Found]:
        held = places if allowed is None else db.places(scope.owner, wanted, every=True)
        words = [_among(held.get(term), allowed) for term in wanted]
        beside = [Near(_among(those, allowed), *close[stem]) for stem, those in near.items()]
        return bm25.rank(words, total, lengths_of, limit, beside)

    read = sum(map(len, [*places.values(), *near.values()]))
    complete = len(places) == len(wanted) and read <= bm25.CANDIDATES
    return _within(db, scope, filters, find, limit, complete=complete)


def _folded(term: Term) -> Term:
    return tuple(fold(" ".join(term)).split())


def _among(places: Ids | None, allowed: Ids | None) -> Ids:
    """Those of the places that are allowed: all, where nothing says which."""
    import numpy as np

    if places is None:
        return np.empty(0, np.int64)
    return places if allowed is None else places[np.isin(places, allowed)]


def match_vector(
    db: Db, scope: Scope, embedder: str, vector: Sequence[float], filters: Filters, limit: int
) -> list[Found]:
    """The passages nearest in meaning, best first; scores are cosines."""
    held = one(db.rows("dimensions", owner=scope.owner, embedder=embedder))
    if held is None or not held[0] or limit <= 0:
        return []
    _check_dimensions(held[0], len(vector))

    def find(limit: int, allowed: Ids | None) -> list[Found]:
        near = db.nearest(scope.owner, embedder, vector, limit, allowed)
        return [Found(passage, score) for passage, score in near]

    return _within(db, scope, filters, find, limit)


def match_links(
    db: Db, scope: Scope, names: Sequence[str], filters: Filters, limit: int
) -> list[Found]:
    """Facts about the things named, those one step on, and the messages they came from."""
    if not names or limit <= 0 or not db.rows("any_entity", owner=scope.owner):
        return []
    rows = db.rows("linked", owner=scope.owner, names=list(names), limit=MAX_LINKED)
    finds = [Found(passage, float(score)) for passage, score in rows]
    kept = finds if _is_all(scope, filters) else _filtered(db, scope, filters, finds)
    return sorted(kept, key=lambda find: (-find.score, -find.passage))[:limit]


def newest(db: Db, scope: Scope, filters: Filters, limit: int) -> list[int]:
    """The last messages of the scope, newest first, by their passages."""
    return [id_ for (id_,) in db.rows("newest", **conditions(scope, filters), limit=limit)]


def _within(
    db: Db,
    scope: Scope,
    filters: Filters,
    find: Callable[[int, Ids | None], list[Found]],
    limit: int,
    *,
    complete: bool = True,
) -> list[Found]:
    """The best that lie in the scope and pass the filters; none is lost to either.

    A first look takes the best of all and leaves out what does not belong: that is enough
    unless most of it does not, or the scope is a session, or it could not look at all.
    """
    if _is_all(scope, filters):
        return find(limit, None)
    if scope.session is None:
        first = find(FIRST_LOOK * limit, None)
        kept = _filtered(db, scope, filters, first)
        if len(kept) >= limit or (complete and len(first) < FIRST_LOOK * limit):
            return kept[:limit]
    return find(limit, db.allowed(conditions(scope, filters)))


def _is_all(scope: Scope, filters: Filters) -> bool:
    """Whether they let through all that the user has."""
    return scope.agent is None and scope.session is None and filters == NO_FILTERS


def _filtered(db: Db, scope: Scope, filters: Filters, finds: list[Found]) -> list[Found]:
    ids = [find.passage for find in finds]
    kept = {id_ for (id_,) in db.rows("passages_that_pass", **conditions(scope, filters), ids=ids)}
    return [find for find in finds if find.passage in kept]


def conditions(scope: Scope, filters: Filters) -> dict[str, Any]:
    """The values of the filter that every narrowed search shares."""
    return {
        **narrowed(scope),
        "any_kind": int(not filters.kinds),
        "kinds": list(filters.kinds),
        "any_role": int(not filters.roles),
        "roles": list(filters.roles),
        "any_record": int(not filters.records),
        "records": list(filters.records),
        "any_category": int(not filters.categories),
        "categories": list(filters.categories),
        "any_tag": int(not filters.tags),
        "tags": list(filters.tags),
        "after": -ALL_TIME if filters.after is None else to_micros(filters.after),
        "before": ALL_TIME if filters.before is None else to_micros(filters.before),
    }


def passages(db: Db, scope: Scope, ids: Sequence[int], now: int) -> list[Passage]:
    """What ranking must know of passages; those gone, over, or empty are left out."""
    rows = db.rows("passages_by_id", **narrowed(scope), ids=list(ids), now=now)
    found = []
    for row in rows:
        id_, kind, view, start, stop, said_at, session, role, speaker, own, asks = row[:11]
        importance, previous, source, outdated = row[11:]
        record = _record(id_, kind, view)
        found.append(
            Passage(
                id_,
                kind,
                record,
                start,
                stop,
                said_at,
                session,
                previous,
                role,
                speaker,
                importance,
                own,
                asks,
                source,
                outdated,
            )
        )
    return found


def _record(passage: int, kind: str, view: str | None) -> int | str:
    """What a passage is ranked as: its message or view, or, of a long article, itself."""
    if view is None:
        return passage // PIECES
    return passage if kind == "article" else view


def read(db: Db, scope: Scope, ids: Sequence[int], now: int) -> list[Match]:
    """The words of passages, in the order asked; those gone, over, or blank are left out."""
    rows = {row[0]: row for row in db.rows("passage_spans", **narrowed(scope), ids=list(ids))}
    matches = _matches(db, scope, [rows[id_] for id_ in ids if id_ in rows], now)
    return [match for match in matches if match.text.strip()]


def speakers(db: Db, scope: Scope) -> list[str]:
    """The names of those who speak in the user's conversations."""
    return [name for (name,) in db.rows("speakers", owner=scope.owner)]


def waiting(db: Db, embedder: str, job: Job, limit: int, now: int) -> dict[int, str]:
    """The passages of a job that have no vector of this embedder yet, with their texts."""
    first, last = job.first_seq, job.last_seq
    if last > 0:
        first, last = first * PIECES, last * PIECES + PIECES - 1
    span = {"owner": job.scope.owner, "session_hash": None, "first": first, "last": last}
    named = {**narrowed(job.scope), **span, "embedder": embedder}
    rows = db.rows("waiting", **named, limit=limit, now=now)
    return {match.passage: match.text for match in _matches(db, job.scope, rows, now)}


def unembedded(db: Db, scope: Scope, embedder: str, limit: int, now: int) -> dict[int, str]:
    """Passages that have no vector of this embedder yet, with their texts."""
    rows = db.rows("unembedded", **narrowed(scope), embedder=embedder, limit=limit)
    return {match.passage: match.text for match in _matches(db, scope, rows, now)}


def prepare(db: Db, scope: Scope, embedder: str, now: int) -> None:
    """Queue all that the user has for a new embedder, unless that was done before."""
    check_key(embedder, "embedder")
    named = {"owner": scope.owner, "embedder": embedder}
    if db.run("add_embedder", **named):
        kind = f"vectors:{embedder}"
        db.run("queue_vectors_of_messages", owner=scope.owner, kind=kind, now=now)
        db.run("queue_vectors_of_views", owner=scope.owner, kind=kind, now=now)


def put_vectors(
    db: Db,
    scope: Scope,
    embedder: str,
    vectors: Mapping[int, Sequence[float]],
    done: Sequence[Job],
    now: int,
) -> None:
    """Give passages their vectors, and pass on the jobs that asked for them.

    Passages forgotten meanwhile are passed over.
    """
    check_key(embedder, "embedder")
    for job in done:
        advance(db, job, now)
    if any(job.kind in ("embed", "vectors") for job in done):
        db.run("unprepare_others", owner=scope.owner, embedder=embedder)
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
    db.many(
        "put_vector",
        ({**named, "passage": id_, **db.vector(vector)} for id_, vector in sorted(vectors.items())),
    )


def _check_dimensions(held: int, got: int) -> None:
    if held != got:
        raise DimensionError(
            f"this embedder gave {held}-d vectors before and {got}-d now; "
            "give the new model another embedder name"
        )


def _matches(db: Db, scope: Scope, rows: Sequence[Row], now: int) -> list[Match]:
    """Turn `id, kind, view, start, stop, created_at, session, speaker` into matches."""
    seqs = sorted({row[0] // PIECES for row in rows if row[0] > 0})
    found = db.rows("messages_by_seq", owner=scope.owner, seqs=seqs) if seqs else []
    messages = {row[0]: db.unpack(row) for row in found}
    views = [row[2] for row in rows if row[2] is not None]
    derived: dict[str, str] = (
        dict(db.rows("view_texts", owner=scope.owner, ids=views, now=now)) if views else {}
    )
    matches = []
    for id_, kind, view, start, stop, created_at, session_id, speaker in rows:
        message = messages.get(id_ // PIECES)
        text = message.text if message else derived.get(view)
        if text is None:
            continue  # its time is over
        match = Match(
            passage=id_,
            kind=kind,
            id=message.message_id if message else view,
            text=text[start:stop],
            start=start,
            created_at=from_micros(created_at),
            session_id=session_id,
            role=message.role if message else None,
            speaker=speaker,
        )
        matches.append(match)
    return matches
