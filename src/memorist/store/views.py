"""Memories and facts in a transaction, and the changes made to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from math import log1p
from typing import Any, TypeVar, get_args

from memorist.errors import ConflictError, InvalidError, NotFoundError, RecordError
from memorist.language.people import People, naming_topics
from memorist.language.text import search_terms
from memorist.records.log import Job
from memorist.records.memories import (
    CORRECTED,
    FIRST,
    Add,
    Change,
    Entity,
    Expire,
    Fact,
    MemoryItem,
    Promote,
    Reinforce,
    Restore,
    Retract,
    State,
    Supersede,
    topic_of,
)
from memorist.records.query import Update
from memorist.records.scope import Scope
from memorist.records.values import (
    Count,
    Place,
    Tally,
    check_each,
    check_moment,
    fold,
    from_micros,
    to_micros,
)
from memorist.store.activity import note
from memorist.store.engine import Db, ViewWords
from memorist.store.indexing import index_view
from memorist.store.jobs import finish
from memorist.store.log import add_owner
from memorist.store.rows import END, FACT, ITEM, Columns, Row, check_count, dated_page

MOST_WITH_STEM = 200  # memories, the newest, that share one
MAX_NAME = 1_000  # characters of a subject or object that links are found by
PORTION = 64  # passages that a search of a list reads at first at most; then four times as many
MAX_CHAIN = 1_000
MAX_COUNTED = 100
RECENT = 60_000_000  # microseconds
R = TypeVar("R")


def texts_of(changes: Sequence[Change], **_: object) -> list[str]:
    """The texts that changes add to the index."""
    return [change.record.text for change in changes if isinstance(change, Add | Supersede)]


def apply(
    db: Db,
    scope: Scope,
    changes: Sequence[Change],
    *,
    done: Job | Sequence[Job] = (),
    base_version: int | None = None,
    by_hand: bool = False,
) -> None:
    """Make all the changes, or none, and finish the jobs they came of in the same transaction.

    Changes `by_hand` are a person's: what they made, changed or ended stays so in a rebuild.
    """
    for job in [done] if isinstance(done, Job) else done:
        finish(db, job)
    if not changes:
        return
    add_owner(db, scope)
    if not db.run("count_change", base=base_version):
        raise ConflictError("this user's memories have changed meanwhile; read them again")
    for change in changes:
        _apply_one(db, scope, change)
        if isinstance(change, Reinforce | Promote):
            note(db, "views", type(change).__name__.lower(), [change.id])
    made = [one.record.id for one in changes if isinstance(one, Add | Supersede)]
    note(db, "views", "add", made)
    if by_hand:
        named = [getattr(one, key, "") for one in changes for key in ("id", "old_id")]
        keep_by_hand(db, scope, [*made, *filter(None, named)])


def keep_by_hand(db: Db, scope: Scope, ids: Sequence[str]) -> None:
    """Note that a person decided on these records, and so on those that end with them."""
    kept = dict.fromkeys(ids)
    for record in records(db, scope, ids):
        for fact in [record] if isinstance(record, Fact) else _stated(db, scope, record):
            kept |= dict.fromkeys([fact.id, *(item.id for item in stating(db, scope, fact))])
    db.many("keep_by_hand", [{"id": id_} for id_ in kept])


def kept_by_hand(db: Db, scope: Scope, ids: Sequence[str]) -> set[str]:
    """Those of the records that a person decided on, also by forgetting them."""
    return set(db.column("kept_by_hand", ids=list(ids)))


def version(db: Db, scope: Scope) -> int:
    """How often this user's views have changed."""
    row = db.row("views_version")
    return int(row[0]) if row else 0


def items(
    db: Db,
    scope: Scope,
    *,
    current: bool = True,
    state: State | None = None,
    text: str | None = None,
    kind: str | None = None,
    category: str | None = None,
    tag: str | None = None,
    tier: str | None = None,
    source: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    after: tuple[datetime, str] | None = None,
    max_bytes: int | None = None,
) -> list[MemoryItem]:
    """The memories in the scope that pass all filters, by age; those that are neither ended nor
    expired are `current`, and `state` says it otherwise.

    `after` is the `created_at` and id of the last memory of the page before. With a `text` they
    are in the order in which they were learnt.
    """
    filters = {"tag": tag, "session": scope.session, "category": category, "source": source}
    filters |= {"kind": kind, "tier": tier}
    for name, value in {**filters, "text": text}.items():
        check_each(name, value)
    state = state or ("current" if current else "all")
    if state not in get_args(State):
        raise InvalidError(f"state must be one of {', '.join(get_args(State))}")
    places: dict[str, Any] = {
        "newest_first": newest_first,
        "since": created_after,
        "until": created_before,
    }
    named = {**scope.columns(), **filters, **dated_page(limit, after, **places), "state": state}
    lists = [f"items_by_{name}" for name, value in filters.items() if value is not None]
    query = f"{[*lists, 'items'][0]}_{state}"
    if (terms := _terms(text)) is not None:
        named |= dated_page(limit, None, **places)
        wanted = ViewWords("memory", *terms, newest_first)
        rows = _found(db, wanted, after, max_bytes, **named)
    else:
        rows = db.page(f"newest_{query}" if newest_first else query, max_bytes, **named)
    return _records(db, scope, ITEM, [row for _, *row in rows])


def _terms(text: str | None) -> tuple[list[str], list[str]] | None:
    """The words of a text and the forms of its last one; None where there is nothing to search."""
    words, last = search_terms(text or "")
    return (words, last) if words or last else None


def _found(db: Db, wanted: ViewWords, after: Place, max_bytes: Count, **named: Any) -> list[Row]:
    """A page of the records that hold all words of a text, of which the last may go on.

    They come in the order of their passages, so that each page is read where the last one ended.
    """
    newest_first, limit, named["limit"] = wanted.newest_first, named["limit"], END
    place = -END if newest_first else 0
    if after is not None:
        ids = [id_ for _, id_ in db.rows("passages_of_view", id=after[1])]
        if not ids:
            raise InvalidError("what the search was to go on after is gone; begin it again")
        place = max(ids) if newest_first else min(ids)
    rows: dict[str, Row] = {}
    portion = min(limit, PORTION)
    query = "items_found" if wanted.kind == "memory" else "facts_found"
    query = f"newest_{query}" if newest_first else query
    while len(rows) < limit:
        ids = list(db.matches(wanted, portion, place))
        for row in db.page(query, max_bytes, **named, found=ids) if ids else ():
            rows.setdefault(row[1], row)  # a record may have several passages
        if len(ids) < portion or (rows and max_bytes is not None):
            break
        place, portion = ids[-1], 4 * portion
    return list(rows.values())[:limit]


def derived(db: Db, scope: Scope, message_ids: Sequence[str], *, facts: bool = False) -> list[str]:
    """The ids of the memories, or also `facts`, that were derived from some messages."""
    query = "views_from_messages" if facts else "memories_from_messages"
    return db.column(query, ids=list(message_ids))


def updates(db: Db, scope: Scope, message_ids: Sequence[str]) -> list[Update]:
    """What messages state, and which messages say what holds instead."""
    rows = db.rows("updates_of", ids=list(message_ids))
    return [
        Update(id_, said, of, bool(holds), by, from_micros(until) if until else None, ended_by)
        for id_, said, of, holds, by, until, ended_by in rows
    ]


def facts_of(db: Db, scope: Scope, predicates: Sequence[str]) -> list[Fact]:
    """What was, is and will be so of the user, by these predicates."""
    topics = [topic_of("user", predicate) for predicate in predicates]
    rows = db.rows("facts_of_topics", **scope.columns(), topics=topics)
    return _records(db, scope, FACT, rows)


def superseded_by(db: Db, scope: Scope, id_: str) -> list[MemoryItem | Fact]:
    """The records that this one superseded."""
    check_each("id", id_)
    return records(db, scope, db.column("superseded_by_views", ids=[id_]))


def chain(db: Db, scope: Scope, id_: str) -> list[MemoryItem | Fact]:
    """The records that superseded one another, up to this one and from it on, oldest first."""
    chained = {(first := _record(db, scope, id_)).id: first}
    new = [first]
    while new and len(chained) < MAX_CHAIN:
        older = db.column("superseded_by_views", ids=[one.id for one in new])
        near = [*older, *(one.superseded_by for one in new)]
        ids = [each for each in dict.fromkeys(near) if each and each not in chained]
        new = [one for one in records(db, scope, ids[:MAX_CHAIN]) if type(one) is type(first)]
        chained |= {one.id: one for one in new}
    return sorted(chained.values(), key=age)


def age(record: MemoryItem | Fact) -> tuple[datetime, str]:
    """Where a record stands in a list by age."""
    return record.known_from if isinstance(record, Fact) else record.created_at, record.id


def records(db: Db, scope: Scope, ids: Sequence[str]) -> list[MemoryItem | Fact]:
    """The memories and facts with these ids, ended or not."""
    check_each("id", *ids)
    named = {"ids": list(ids)}
    return [
        *_records(db, scope, ITEM, db.rows("items_by_id", **named)),
        *_records(db, scope, FACT, db.rows("facts_by_id", **named)),
    ]


def facts(
    db: Db,
    scope: Scope,
    *,
    subject: str | None = None,
    predicate: str | None = None,
    object: str | None = None,
    source: str | None = None,
    text: str | None = None,
    valid_at: datetime | None = None,
    known_at: datetime | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    after: tuple[datetime, str] | None = None,
    max_bytes: int | None = None,
) -> list[Fact]:
    """The facts in the scope that were true at one moment, as known at another, as learnt.

    A subject is meant by its other names, too; with both a subject and a predicate, however these
    are written. `after` is the `known_from` and id of the last fact of the page before. With a
    `text` they are in the order in which they were learnt.
    """
    filters = {"object": object, "predicate": predicate, "source": source}
    for name, value in {**filters, "subject": subject, "text": text}.items():
        check_each(name, value)
    page = dated_page(limit, after, newest_first=newest_first)
    named = {**scope.columns(), **page, **_moments(valid_at, known_at), **filters, "subject": None}
    subjects = [] if subject is None else list(People.of(naming(db, scope)).same(subject))
    topics = [topic_of(name, predicate) for name in subjects] if predicate is not None else []
    if topics:  # in which the predicate is, however it is written
        named["predicate"] = None
    if (terms := _terms(text)) is not None:
        named |= dated_page(limit, None, newest_first=newest_first)
        named |= {"any_subject": int(not subjects or bool(topics)), "subjects": subjects}
        named |= {"any_topic": int(not topics), "topics": topics}
        wanted = ViewWords("fact", *terms, newest_first)
        found = _found(db, wanted, after, max_bytes, **named)
        return _records(db, scope, FACT, [row for _, *row in found])
    is_now = known_at is None and valid_at is not None and to_micros(valid_at) > db.now - RECENT
    state = "current" if is_now else "all"
    lists = [f"facts_by_{name}" for name, value in filters.items() if value is not None]
    query, each = f"{[*lists, 'facts'][0]}_{state}", [dict[str, str]()]
    if topics:
        query, each = "facts_by_topic", [{"topic": topic} for topic in topics]
    elif subjects:
        query, each = f"facts_by_subject_{state}", [{"subject": name} for name in subjects]
    query = f"newest_{query}" if newest_first else query
    max_bytes = max_bytes if len(each) == 1 else None  # or one name's would end before another's
    pages = [db.page(query, max_bytes, **{**named, **about}) for about in each]
    listed = _records(db, scope, FACT, [row for rows in pages for _, *row in rows])
    return sorted(listed, key=age, reverse=newest_first)[: page["limit"]]


def _moments(valid_at: datetime | None, known_at: datetime | None) -> dict[str, int | None]:
    asked = {"valid_at": valid_at, "known_at": known_at}
    return {
        name: None if at is None else to_micros(check_moment(at, name, InvalidError))
        for name, at in asked.items()
    }


def naming_values(scope: Scope) -> dict[str, Any]:
    """What `facts_of_topics` is asked with for `naming`."""
    return {**scope.columns(), "topics": list(naming_topics())}


def naming(db: Db, scope: Scope) -> list[Fact]:
    """The facts that tell the names of the user and of those around them, without sources."""
    rows = db.rows("facts_of_topics", **naming_values(scope))
    now, named = from_micros(db.now), _records(db, scope, FACT, rows, cited=False)
    current = (fact for fact in named if (fact.valid_from or now) <= now)
    return [
        replace(fact, valid_to=None) if fact.valid_to and fact.valid_to > now else fact
        for fact in current
    ]


def entities(
    db: Db, scope: Scope, *, text: str = "", limit: int | None = None, after: str | None = None
) -> list[Entity]:
    """What facts name, by name, as far as it begins with a text; `after` is the name before."""
    check_each("text", text, after)
    named = {"start": name_of(text), "after": after or "", "limit": check_count(limit, "limit")}
    rows = db.rows("entities", **named)
    return [Entity(name, Tally.of(count, MAX_COUNTED)) for name, count in rows]


def neighbourhood(
    db: Db,
    scope: Scope,
    name: str,
    *,
    valid_at: datetime | None = None,
    known_at: datetime | None = None,
    limit: int = MAX_CHAIN,
) -> list[Fact]:
    """The facts that name someone or something, by any of their names, newest first."""
    check_each("name", name)
    named = {
        **scope.columns(),
        **_moments(valid_at, known_at),
        "limit": check_count(limit, "limit"),
    }
    names = dict.fromkeys(map(name_of, People.of(naming(db, scope)).same(name)))
    rows = {row[0]: row for each in names for row in db.rows("facts_naming", **named, name=each)}
    listed = _records(db, scope, FACT, list(rows.values()))
    return sorted(listed, key=age, reverse=True)[:limit]


def name_of(text: str) -> str:
    """What a subject or object is found by."""
    return " ".join(fold(text[:MAX_NAME]).split())[:200]


def stated_by(db: Db, scope: Scope, memory: str) -> list[Fact]:
    """Every fact there ever was that a memory states, in the order learnt."""
    rows = db.rows("facts_by_id", ids=db.column("facts_of_memory", id=memory))
    return _records(db, scope, FACT, rows)


def similar(
    db: Db, scope: Scope, stems: Sequence[str], *, limit: int, at: datetime
) -> list[MemoryItem]:
    """The memories with most of some stems, rare ones before all, that are unexpired then."""
    scores = defaultdict[int, float](float)
    for ids in db.memories_with(scope, stems, MOST_WITH_STEM):
        for id_ in ids:
            scores[id_] += log1p(MOST_WITH_STEM / len(ids))
    best = sorted(scores, key=lambda id_: (-scores[id_], id_))[:limit]
    named = {"ids": best, "now": to_micros(at)}
    return _records(db, scope, ITEM, db.rows("items_of_passages", **named))


def touch(db: Db, scope: Scope, ids: Sequence[str]) -> None:
    """Count a use of memories."""
    db.run("touch_items", ids=list(ids))


def _apply_one(db: Db, scope: Scope, change: Change) -> None:
    match change:
        case Add(record):
            _add(db, scope, record)
        case Reinforce(id=id_, sources=sources, importance=importance, at=at):
            is_memory = isinstance(_record(db, scope, id_), MemoryItem)
            query = "reinforce_item" if is_memory else "reinforce_fact"
            db.run(query, id=id_, importance=importance, at=to_micros(at))
            _cite(db, id_, sources)
        case Supersede(old_id=old_id, record=record):
            _add(db, scope, record)
            _end(db, scope, old_id, change, record)
        case Promote(id=id_):
            if not db.run("promote_item", id=id_):
                raise NotFoundError("no such memory in this scope")
        case Expire(id=id_) | Retract(id=id_):
            _end(db, scope, id_, change)
        case Restore(id=id_, reason=reason):
            restore(db, scope, id_, reason)


def _add(db: Db, scope: Scope, record: MemoryItem | Fact) -> None:
    if record.scope.owner != scope.owner:
        raise RecordError("a change may only add records of its own user")
    added = insert(db, record, _search_date(record, db.now))
    if added and isinstance(record, Fact) and record.superseded_by is not None:
        _mark(db, record.id, since=record.valid_to)


def insert(db: Db, record: MemoryItem | Fact, indexed_at: datetime | None) -> int:
    """Store a record, unless it is stored, and let search find it under a moment; return 1 or 0."""
    home = {**record.scope.columns(), "agent": record.scope.agent or ""}
    if isinstance(record, Fact):
        added = db.run("add_fact", **home, topic=record.topic, **FACT.row(record))
        link = {"fact": record.id, "known_from": to_micros(record.known_from)}
        db.many("add_fact_name", [{**link, "name": name} for name in _names(record)])
    else:
        added = db.run("add_item", **home, **ITEM.row(record))
    if added:
        _cite(db, record.id, record.sources)
        _index(db, record, indexed_at)
    return added


def _search_date(record: MemoryItem | Fact, now: int) -> datetime | None:
    """Under which moment search finds a record; None if it has ended."""
    if isinstance(record, MemoryItem):
        return record.created_at if record.ended_at is None else None
    over = record.valid_to is not None and to_micros(record.valid_to) <= now
    holds = record.known_to is None and not over
    return (record.said_at or record.known_from) if holds else None


def _index(db: Db, record: MemoryItem | Fact, at: datetime | None) -> None:
    if at is None:
        return
    is_fact = isinstance(record, Fact)
    index_view(db, record.scope, "fact" if is_fact else "memory", record.id, record.text, at)
    if isinstance(record, Fact):
        db.many("add_entity", [{"fact": record.id, "name": name} for name in _names(record)])


def _names(fact: Fact) -> list[str]:
    return sorted({name_of(fact.subject), name_of(fact.object)} - {""})


def restore(db: Db, scope: Scope, id_: str, reason: str) -> None:
    """Undo the end of a record, and of the memories or facts that ended with it."""
    record = _record(db, scope, id_)
    if isinstance(record, Fact):
        others = [item.id for item in stating(db, scope, record) if item.ended_with(record)]
    else:
        others = [fact.id for fact in _stated(db, scope, record) if record.ended_with(fact)]
    db.run("delete_view_passages", ids=[id_, *others])
    for each in (id_, *others):
        for query in ("restore_item", "restore_fact"):
            db.run(query, id=each, reason=reason)
        _index(db, restored := _record(db, scope, each), _search_date(restored, db.now))
        if isinstance(restored, Fact) or record.reason == CORRECTED:
            _mark(db, each, since=None)
    note(db, "views", "restore", [id_, *others])


def stating(db: Db, scope: Scope, fact: Fact) -> list[MemoryItem]:
    """The memory that a fact came of, and those that say only the same in other words."""
    ids = [*([fact.memory] if fact.memory else []), *derived(db, scope, fact.sources)]
    return [
        item
        for item in records(db, scope, ids)
        if isinstance(item, MemoryItem)
        and (
            item.id == fact.memory
            or (item.names(fact.object) and not stated_by(db, scope, item.id))
        )
    ]


def _stated(db: Db, scope: Scope, item: MemoryItem) -> list[Fact]:
    """The facts that came of a memory; or, where others said them first, those it states again."""
    if own := stated_by(db, scope, item.id):
        return own
    views = records(db, scope, db.column("views_from_messages", ids=list(item.sources)))
    return [fact for fact in views if isinstance(fact, Fact) and item.names(fact.object)]


def _end(
    db: Db,
    scope: Scope,
    id_: str,
    change: Supersede | Expire | Retract,
    successor: MemoryItem | Fact | None = None,
) -> None:
    """End a record, and what ends with it; what is planned to end goes on until then.

    A memory that states what follows, too, stays.
    """
    by = None if isinstance(change, Supersede) else change.by
    record = _record(db, scope, id_)
    heir = _heir(successor)
    goes_on = isinstance(record, Fact) and heir is not None and heir == record.memory
    heirs = _ending_with(db, scope, record, change, successor)
    heirs[id_] = by if successor is None else successor.id
    end_item, end_fact, since = "end_item", "end_fact_validity", change.at
    planned = not isinstance(change, Retract) and change.planned
    if planned:
        end_item = "plan_item_end"
    elif isinstance(change, Retract):
        end_fact, since = "end_fact_belief", FIRST
    named = {"at": to_micros(change.at), "reason": change.reason}
    for each, heir in heirs.items():
        ending: dict[str, Any] = {**named, "id": each, "superseded_by": heir}
        if db.run(end_item, **ending):
            untrue = change.reason == CORRECTED
        else:
            untrue = bool(db.run(end_fact, **ending))
        if untrue and not goes_on:
            _mark(db, each, since=since)
    if not planned:  # search finds what holds
        for query in ("delete_view_passages", "delete_entities"):
            db.run(query, ids=list(heirs))
    note(db, "views", type(change).__name__.lower(), list(heirs))


def _ending_with(
    db: Db,
    scope: Scope,
    record: MemoryItem | Fact,
    change: Supersede | Expire | Retract,
    successor: MemoryItem | Fact | None,
) -> dict[str, str | None]:
    """What ends with a record, by its heir: the memories of a fact, or the facts of a memory."""
    if isinstance(record, Fact):
        heir = _heir(successor)
        return {item.id: heir for item in stating(db, scope, record) if item.id != heir}
    ending: dict[str, str | None] = {}
    if not change.alone:
        for fact in _stated(db, scope, record):
            others = [item.id for item in stating(db, scope, fact) if item.ended_at is None]
            if others == [record.id] or not isinstance(change, Expire):
                ending |= dict.fromkeys([fact.id, *others])  # else another still states it
    return ending


def _heir(successor: MemoryItem | Fact | None) -> str | None:
    """The memory that states the fact which follows."""
    return successor.memory if isinstance(successor, Fact) else None


def _mark(db: Db, id_: str, *, since: datetime | None) -> None:
    """Let search know since when what a record's messages say is not true; None if it is."""
    outdated = 0 if since is None else max(to_micros(since), 1)
    for seq, _ in db.rows("messages_cited_by", ids=[id_]):
        db.run("mark_outdated", seq=seq, outdated=outdated)


def _record(db: Db, scope: Scope, id_: str) -> MemoryItem | Fact:
    for record in records(db, scope, [id_]):
        return record
    raise NotFoundError("no such memory or fact in this scope")


def _cite(db: Db, view: str, sources: Sequence[str]) -> None:
    db.many("add_source", [{"view": view, "message_id": id_} for id_ in sources])


def _records(
    db: Db, scope: Scope, columns: Columns[R], rows: Sequence[Sequence[Any]], *, cited: bool = True
) -> list[R]:
    """The records of rows of `id, agent, session_id, …`; if `cited`, with where they came from."""
    ids, sources = [id_ for id_, *_ in rows if cited], defaultdict(list)
    for view, message_id in db.rows("sources_of", ids=ids) if ids else ():
        sources[view].append(message_id)
    user, tenant = scope.user, scope.tenant
    return [
        columns.record(
            row,
            scope=Scope(user=user, tenant=tenant, agent=agent or None, session=session),
            sources=tuple(sources[id_]),
        )
        for id_, agent, session, *row in rows
    ]
