"""Search in a transaction: match words, vectors and links; read passages; store vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nlargest
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from memorist.errors import DimensionError, RecordError
from memorist.language.people import People
from memorist.language.text import term_stem
from memorist.records import query
from memorist.records.log import Job, Source, is_trusted
from memorist.records.query import NO_FILTERS, Filters, Found, Match, Passage, Synonym, Term, many
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE, check_key, fold, from_micros, to_micros
from memorist.store.engine import Db, VectorQuery
from memorist.store.jobs import LATER, advance
from memorist.store.rows import END, Row
from memorist.store.views import naming, naming_values

if TYPE_CHECKING:
    from memorist.store.bm25 import Ids
    from memorist.store.vectors import Vector

LISTS = ("kinds", "roles", "records", "categories", "tags")  # filters by listed values
READ_AT_ONCE = 16  # messages, to take passages from them
MAX_LINKED = 5_000
RARE = 300  # passages: a synonym in more of them says nothing
FIRST_LOOKS = (2, 8)  # times the limit is searched before all that a filter lets through
SHORT_CHARS = 200  # of a message that is one statement; longer ones tell several things
NEAREST = 24  # passages, among which are the statements that a new one may update
COMPARED = 6  # of those statements
APART = 3_600_000_000  # microseconds; sooner in a session, people go on with what they said


def match_text(
    db: Db,
    scope: Scope,
    terms: Sequence[Term],
    *,
    synonyms: Sequence[Synonym] = (),
    limit: int,
    filters: Filters = NO_FILTERS,
) -> list[Found]:
    """The records that hold any folded term or a synonym, best first, each by one passage."""
    from memorist.store import bm25  # here: `import memorist` stays light

    asked = {term_stem(term): term for term in terms if term}
    wanted, numbers = list(asked.values()), {stem: number for number, stem in enumerate(asked)}
    near = {
        it.stem: (numbers[stem], it.worth)
        for it in synonyms
        if (stem := term_stem(it.of)) in numbers and it.stem.isalnum()
    }
    if near:
        db.foresee_rare(list(near), RARE)
    postings = db.postings(wanted)
    # Synonyms of a word that occurs nearly everywhere say as little as the word.
    useful = {stem: of for stem, of in near.items() if wanted[of[0]] in postings}
    of_synonyms = db.rare_postings(list(useful), RARE) if useful else {}
    if not postings and not of_synonyms:
        return []
    total = db.count_records()

    def find(limit: int, allowed: Ids | None) -> list[Found]:
        complete = postings if allowed is None else db.postings(wanted, every=True)
        words = [_among(complete.get(term), allowed) for term in wanted]
        beside = [
            bm25.Near(_among(ids, allowed), *useful[stem]) for stem, ids in of_synonyms.items()
        ]
        unheld = [term for term, ids in zip(wanted, words, strict=True) if not len(ids)]
        absent = sum(term in complete for term in unheld)  # the others occur nearly everywhere
        return bm25.rank(words, total, db.lengths, limit, beside, absent)

    read = sum(map(len, [*postings.values(), *of_synonyms.values()]))
    complete = len(postings) == len(wanted) and read <= bm25.CANDIDATES
    # Once: how long the records are that were found moves their scores.
    return _within(db, scope, filters, find, limit, FIRST_LOOKS[-1:], complete=complete)


def _among(passages: Ids | None, allowed: Ids | None) -> Ids:
    """Those of the passages that are allowed; all, if none are named."""
    import numpy as np

    if passages is None:
        return np.empty(0, np.int64)
    return passages if allowed is None else passages[np.isin(passages, allowed)]


def match_vector(
    db: Db,
    scope: Scope,
    embedder: str,
    vector: Sequence[float],
    *,
    limit: int,
    filters: Filters = NO_FILTERS,
) -> list[Found]:
    """The passages nearest in meaning, best first; scores are cosines."""
    if limit <= 0:
        return []
    rows = db.later("dimensions", embedder=embedder)
    wanted = VectorQuery(embedder, vector)

    def fits() -> bool:
        dimensions = next((int(length) for (length,) in rows()), 0)
        if dimensions:
            _check_dimensions(dimensions, len(vector))
        return dimensions > 0

    def find(limit: int, allowed: Ids | None) -> list[Found]:
        near = db.nearest(wanted, limit, allowed, fits)
        return many(Found, ((*pair, 0.0, 0.0) for pair in near))

    return _within(db, scope, filters, find, limit)


def match_links(
    db: Db, scope: Scope, names: Sequence[str], *, limit: int, filters: Filters = NO_FILTERS
) -> list[Found]:
    """Facts about the things named, facts one step further, and the messages they came from."""
    if not names or limit <= 0:
        return []
    if not db.rows("any_entity"):
        return []
    asked = set(names)
    for group in People.of(naming(db, scope)).groups:  # "my wife" is Lena
        known = {" ".join(fold(name).split()) for name in group}
        asked |= set() if known.isdisjoint(names) else known
    rows = db.rows("linked", names=sorted(asked), limit=MAX_LINKED)
    hits = [Found(passage, float(score)) for passage, score in rows]
    passing = hits if _is_all(scope, filters) else _filtered(db, scope, filters, hits)
    return sorted(passing, key=lambda hit: (-hit.score, -hit.passage))[:limit]


def foresee(db: Db, scope: Scope, *, limit: int, filters: Filters = NO_FILTERS) -> None:
    """Ask together what every recall asks: `speakers`, `newest`, and who the question may name."""
    db.foresee("speakers")
    db.foresee("newest", **conditions(scope, filters), limit=limit)
    db.foresee("any_entity")
    db.foresee("facts_of_topics", **naming_values(scope))


def newest(db: Db, scope: Scope, *, limit: int, filters: Filters = NO_FILTERS) -> list[int]:
    """The first passages of the newest messages in the scope, newest first."""
    return db.column("newest", **conditions(scope, filters), limit=limit)


def _within(
    db: Db,
    scope: Scope,
    filters: Filters,
    find: Callable[[int, Ids | None], list[Found]],
    limit: int,
    looks: Sequence[int] = FIRST_LOOKS,
    *,
    complete: bool = True,
) -> list[Found]:
    """The best passages in the scope that pass the filters.

    A first search takes more than the limit and drops what does not pass. Where too few are left,
    or the scope is a session, a last one looks only at the passages that do.
    """
    if _is_all(scope, filters):
        return find(limit, None)
    for times in looks if scope.session is None else ():
        first = find(times * limit, None)
        passing = _filtered(db, scope, filters, first)
        if len(passing) >= limit or (complete and len(first) < times * limit):
            return passing[:limit]
    return find(limit, db.ids("allowed", **conditions(scope, filters)))


def _is_all(scope: Scope, filters: Filters) -> bool:
    """Whether nothing of the user's is filtered out."""
    return scope.agent is None and scope.session is None and filters == NO_FILTERS


def _filtered(db: Db, scope: Scope, filters: Filters, hits: list[Found]) -> list[Found]:
    ids = [hit.passage for hit in hits]
    passing = set(db.ids("passages_that_pass", **conditions(scope, filters), ids=ids).tolist())
    return [hit for hit in hits if hit.passage in passing]


def conditions(scope: Scope, filters: Filters) -> dict[str, Any]:
    """The values of the filter that all searches share."""
    listed = {name: list(getattr(filters, name)) for name in LISTS}
    return {
        **scope.columns(),
        **listed,
        **{f"any_{name}": int(not values) for name, values in listed.items()},
        "after": -END if filters.after is None else to_micros(filters.after),
        "before": END if filters.before is None else to_micros(filters.before),
    }


def passages(db: Db, scope: Scope, ids: Sequence[int]) -> list[Passage]:
    """What ranking needs of passages; those deleted, expired or empty are left out."""
    return db.passages(**scope.columns(), ids=list(ids))


def read(db: Db, scope: Scope, ids: Sequence[int]) -> list[Match]:
    """The texts of passages, in the order asked; those deleted, expired or blank are left out."""
    seqs = sorted({id_ // PASSAGES_PER_MESSAGE for id_ in ids if id_ > 0})
    early = db.later("messages_by_seq", seqs=seqs[:READ_AT_ONCE])
    rows = db.rows("passage_spans", **scope.columns(), ids=list(ids))
    by_id = {row[0]: row for row in rows}
    derived = [id_ for id_, kind, *_ in rows if kind in ("memory", "fact")]
    sources = db.later("source_messages", ids=derived) if derived else list
    there = [by_id[id_] for id_ in ids if id_ in by_id]
    matches = _matches(db, there, holds_at=db.now, early=early)
    matches = [match for match in matches if match.text.strip()]
    said = defaultdict[int, tuple[query.SourceMessage, ...]](tuple)
    for id_, message_id, session_id, at, _ in sources():
        said[id_] += (query.SourceMessage(message_id, session_id, from_micros(at)),)
    return [replace(it, sources=said[it.passage]) if it.passage in said else it for it in matches]


def speakers(db: Db, scope: Scope) -> list[str]:
    """The names of those who speak in the user's conversations."""
    return db.column("speakers")


def waiting(db: Db, job: Job, embedder: str, *, limit: int) -> dict[int, str]:
    """The passages of a job that have no vector of this embedder yet, with their texts."""
    first, last = job.first_seq, job.last_seq
    if last > 0:
        first, last = first * PASSAGES_PER_MESSAGE, (last + 1) * PASSAGES_PER_MESSAGE - 1
    named = {**job.scope.columns(), "session_hash": None, "first": first, "last": last}
    rows = db.rows("waiting", **named, embedder=embedder, limit=limit)
    return {match.passage: match.text for match in _matches(db, rows)}


def unembedded(db: Db, scope: Scope, embedder: str, *, limit: int) -> dict[int, str]:
    """Passages that have no vector of this embedder yet, with their texts."""
    rows = db.rows("unembedded", **scope.columns(), embedder=embedder, limit=limit)
    return {match.passage: match.text for match in _matches(db, rows)}


def unprepared(db: Db, embedder: str, *, limit: int = 100) -> list[Scope]:
    """Users whose passages are not queued for this embedder yet."""
    rows = db.rows("owners_without_embedder", embedder=embedder, limit=limit)
    return [Scope(tenant=tenant, user=user) for tenant, user in rows]


def prepare(db: Db, scope: Scope, embedder: str) -> None:
    """Queue all that the user has for a new embedder, unless that was done before."""
    check_key(embedder, "embedder")
    if db.run("add_embedder", embedder=embedder):
        kind = f"vectors:{embedder}"
        db.run("queue_vectors_of_messages", kind=kind)
        db.run("queue_vectors_of_views", kind=kind)


def earlier_statements(
    db: Db, scope: Scope, embedder: str, vectors: Mapping[int, Vector]
) -> dict[int, dict[int, Vector]]:
    """For each of these passages that is a statement of the user: earlier ones, with vectors.

    A statement is a short message to an assistant. The earlier ones are the nearest, among those
    stored and these; what was said just before goes on with the matter instead.
    """
    import numpy as np

    new = _statements(db, list(vectors))
    rows = np.asarray([vectors[id_] for id_ in new], np.float32)
    length = _dimensions(db, embedder) if new else 0
    if not new or length not in (0, rows.shape[1]):
        return {}  # of another length: they will be refused
    likeness: dict[int, dict[int, float]] = {}
    for id_, row, among in zip(new, rows, rows @ rows.T, strict=True):
        wanted = VectorQuery(embedder, row.tolist())
        near = db.nearest(wanted, NEAREST, None) if length else ()
        likeness[id_] = dict(zip(new, among.tolist(), strict=True)) | dict(near)
    stored = set().union(*likeness.values()) - new.keys()
    known = new | _statements(db, sorted(stored))
    before = {
        id_: nlargest(COMPARED, filter(partial(_updates, known, id_), likes), key=likes.__getitem__)
        for id_, likes in likeness.items()
    }
    needed = set().union(*before.values()) - new.keys()
    held = dict(vectors) | (db.vectors(embedder, sorted(needed)) if needed else {})
    return {id_: {it: held[it] for it in ids} for id_, ids in before.items() if ids}


class _Statement(NamedTuple):
    """When and in which session a short message of a user was said."""

    said_at: int
    session: Any


def _statements(db: Db, ids: list[int]) -> dict[int, _Statement]:
    """Those of the passages that are the whole of a short message, which the user said."""
    of_messages = [id_ for id_ in ids if id_ > 0]
    if not of_messages:
        return {}
    sources = [source for source in get_args(Source) if is_trusted(source)]
    rows = db.rows("statements", ids=of_messages, chars=SHORT_CHARS, sources=sources)
    return {id_: _Statement(*rest) for id_, *rest in rows}


def _updates(known: Mapping[int, _Statement], newer: int, older: int) -> bool:
    """Whether a statement may update an older one."""
    if older not in known:
        return False
    new, old = known[newer], known[older]
    later = new.said_at - old.said_at
    return later > (APART if new.session == old.session else 0)


def put_vectors(
    db: Db,
    scope: Scope,
    embedder: str,
    vectors: Mapping[int, Sequence[float]],
    *,
    done: Sequence[Job] = (),
    overtaken: Mapping[int, int] | None = None,
) -> None:
    """Store the vectors of passages, and pass on the jobs that asked for them.

    `overtaken` names passages that newer ones update; of several, the newest stays. Passages
    that were forgotten meanwhile are skipped.
    """
    check_key(embedder, "embedder")
    for job in done:
        advance(db, job)
    if any(job.kind.removesuffix(LATER) in ("index", "embed", "vectors") for job in done):
        db.later("unprepare_others", embedder=embedder)
    lengths = {len(vector) for vector in vectors.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise RecordError("vectors must all have the same length, of at least 1")
    if not lengths:
        return
    [length] = lengths
    db.later("set_dimensions", embedder=embedder, dimensions=length)
    _check_dimensions(_dimensions(db, embedder), length)
    db.put_vectors(embedder, vectors)
    for older, newer in sorted((overtaken or {}).items()):
        db.later("mark_overtaken", id=older, by=newer)


def _dimensions(db: Db, embedder: str) -> int:
    """How long this embedder's vectors of this user are; 0 if there are none."""
    row = db.row("dimensions", embedder=embedder)
    return 0 if row is None else int(row[0])


def _check_dimensions(stored: int, given: int) -> None:
    if stored != given:
        raise DimensionError(
            f"this embedder gave {stored}-d vectors before and {given}-d now; "
            "give the new model another embedder name"
        )


def _matches(
    db: Db,
    rows: Sequence[Row],
    *,
    holds_at: int | None = None,
    early: Callable[[], list[Row]] = list,
) -> list[Match]:
    """The passages of rows that say where each is; those of expired records are left out, and
    with `holds_at` facts that do not hold then.

    Of a derived record only the passage is read; of messages, a few at a time, as they may be long.
    Some may be read `early`.
    """
    views = [id_ for id_, _, view, *_ in rows if view is not None]
    parts = db.later("view_parts", ids=views, holds_at=holds_at) if views else list
    spans = defaultdict[int, list[Row]](list)
    for row in rows:
        if row[0] > 0:
            spans[row[0] // PASSAGES_PER_MESSAGE].append(row)
    texts: dict[int, str] = {}
    said: dict[int, dict[str, Any]] = {}  # what a message tells of itself
    first = [row for row in early() if row[0] in spans]
    seqs = sorted(spans.keys() - {row[0] for row in first})
    pages = (seqs[at : at + READ_AT_ONCE] for at in range(0, len(seqs), READ_AT_ONCE))
    others = (db.rows("messages_by_seq", seqs=page) for page in pages)
    for stored in chain(first, chain.from_iterable(others)):
        message = db.unpack(stored)
        text = message.text
        of = {"id": message.message_id, "role": message.role, "speaker": message.name}
        for id_, _, _, begin, end, *_ in spans[stored[0]]:
            texts[id_], said[id_] = text[begin:end], of
    texts |= dict(parts())
    return [
        Match(
            passage=id_,
            kind=kind,
            text=texts[id_],
            start=start,
            created_at=from_micros(created_at),
            session_id=session_id,
            over=_over(outdated, db.now),
            **said.get(id_, {"id": view}),
        )
        for id_, kind, view, start, _, created_at, session_id, outdated in rows
        if id_ in texts
    ]


def _over(outdated: int | None, now: int) -> str:
    """The mark of what is over by now."""
    if not outdated or outdated > now:
        return ""
    return query.past(from_micros(outdated) if outdated > 1 else None, from_micros(now))
