"""Forgetting in a transaction: messages, their index entries, and what was derived from them.

The bytes that deleted rows leave in the files are removed afterwards, by the `Scrubber`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memorist.errors import NotFoundError
from memorist.language.pronouns import SAID_CHARS, borrows, has_pronoun, people_in
from memorist.records.log import check_source
from memorist.records.memories import CORRECTED, EDITED, Fact, MemoryItem
from memorist.records.query import Forgotten
from memorist.records.scope import Scope
from memorist.records.values import check_each, to_micros
from memorist.store.activity import note
from memorist.store.engine import Db, DryRunError
from memorist.store.indexing import PreparedMessage
from memorist.store.jobs import enqueue
from memorist.store.log import READ_TOGETHER, find, message_places, session_rows
from memorist.store.log import revise as revise_message
from memorist.store.views import (
    keep_by_hand,
    kept_by_hand,
    records,
    restore,
    stating,
    superseded_by,
)

AT_ONCE = 100


def load_language(
    *revised: PreparedMessage, message_id: str | None = None, source: str | None = None, **_: object
) -> None:
    """Load what tells whom messages name, where one is revised or some are forgotten."""
    if revised or message_id is not None or source is not None:
        people_in("")
    if revised:
        has_pronoun("")  # of all languages, which takes a second or two, once


def forget(
    db: Db,
    scope: Scope,
    *,
    message_id: str | None = None,
    record_id: str | None = None,
    source: str | None = None,
    scrub: bool = False,
    dry_run: bool = False,
) -> Forgotten:
    """Remove a message, a record, all from a source, or else everything in the scope.

    A record is a memory with its facts, a fact, an article or an entry; the messages it came from
    stay. With `scrub`, what is removed is noted for the `Scrubber`. A `dry_run` raises what would
    be removed, so that the transaction is rolled back.
    """
    check_each("what to forget", message_id, record_id, source)
    if source is not None:
        check_source(source)
    if message_id is not None:
        rows = message_places(db, scope, message_id)
        if not rows:
            raise NotFoundError("no message with this id in this scope")
        gone = _forget_some(db, scope, [(seq, message_id) for seq, *_ in rows])
    elif record_id is not None:
        if not db.rows("is_put", id=record_id) and not db.rows("view_exists", id=record_id):
            raise NotFoundError("no memory, fact, article or entry with this id for this user")
        going = _with_other_forms(db, scope, record_id)
        gone = _forget_derived(db, scope, going)
        keep_by_hand(db, scope, going)  # or a rebuild would bring them back
    elif source is not None:
        messages = db.rows("messages_of_source", **scope.columns(), source=source)
        views = db.column("views_of_source", **scope.columns(), source=source)
        gone = _forget_some(db, scope, messages, also=views)
    else:
        gone = _forget_all(db, scope)
    if +gone:  # what was decided before is decided again
        db.run("count_change", base=None)
    if dry_run:
        raise DryRunError(Forgotten(counts=dict(+gone)))
    return Forgotten(counts=dict(+gone), residue=db.note_forget() if scrub and +gone else "")


def revise(db: Db, scope: Scope, prepared: PreparedMessage) -> None:
    """Replace the message with this id; where others are named, later ones are derived anew."""
    places = [(seq, prepared.id) for seq, *_ in message_places(db, scope, prepared.id)]
    new, user = prepared.message.text, scope.whole_user()
    old = " ".join(entry.message.text for entry in find(db, scope, [prepared.id]))
    made = [*_borrowing(db, scope, places, new), *_corrected_with(db, scope, prepared.id)]
    revise_message(db, scope, prepared)
    # The later ones are queued after it and as it is, so that they are derived after it, too.
    if _forget_messages(db, scope, [], also=made, kind="embed"):
        db.run("count_change", base=None)
    if people_in(old[-SAID_CHARS:]) != people_in(new[-SAID_CHARS:]):
        seqs = [seq for seq, _ in places]
        later: dict[str, Any] = dict(db.rows("messages_read_after", seqs=seqs, most=READ_TOGETHER))
        for entry in find(db, user, list(later)):
            text = entry.message.text
            if len(text) > SAID_CHARS or has_pronoun(text):  # no long work in a transaction
                session = later[entry.message.message_id]
                enqueue(db, "embed", entry.seq, entry.seq, session=session)


def rebuild(db: Db, scope: Scope) -> None:
    """Begin a user's rebuild: throw away what was derived, queue the log; or end one that is done.

    What a person made, changed or ended is kept, and of the rest when it was learnt and its use.
    """
    if db.run("begin_rebuild"):
        for query in ("keep_items", "keep_facts", "delete_derivation_jobs"):
            db.run(query)
        _forget_derived(db, scope, db.column("derived_views"))
        db.run("delete_all_events")
        db.run("count_change", base=None)
        db.run("queue_derivation")
    elif db.run("end_rebuild"):
        for query in ("restore_kept_items", "restore_kept_facts", "forget_kept"):
            db.run(query)


def _forget_all(db: Db, scope: Scope) -> Counter[str]:
    sessions = session_rows(db, scope)
    keys = [key for key, *_ in sessions]
    ids = [id_ for _, id_, *_ in sessions]
    messages = db.rows("messages_in_sessions", sessions=keys) if keys else []
    gone = _forget_messages(db, scope, messages, also=_views_in(db, scope, ids))
    if keys:
        gone["jobs"] += db.run("delete_session_jobs", sessions=keys)
        db.run("delete_active_sessions", ids=ids)
        db.run("delete_session_receipts", ids=ids)
        gone["sessions"] += db.run("delete_sessions", sessions=keys)
    if scope.agent is None and scope.session is None:
        gone["jobs"] += db.run("delete_owner_jobs")
        for table in ("embedders", "speakers", "all_kept_views", "all_events", "all_receipts"):
            db.run(f"delete_{table}")
        gone["users"] += db.run("delete_owner")
    return gone


def _forget_some(
    db: Db, scope: Scope, messages: Sequence[tuple[Any, ...]], also: Sequence[str] = ()
) -> Counter[str]:
    seqs = [seq for seq, _ in messages]
    # A worker that has read them already must not bring them back: it has to read again.
    db.run("void_leases", seqs=seqs, most=READ_TOGETHER)
    gone = _forget_messages(db, scope, messages, also=[*also, *_borrowing(db, scope, messages)])
    gone["jobs"] += db.run("delete_message_jobs", seqs=seqs)
    return gone


def _with_other_forms(db: Db, scope: Scope, id_: str) -> list[str]:
    """A record, what states it, the words that it had before an edit or correction, and its facts.

    What was corrected was never so: it does not hold again without what is right.
    """
    new, going = [id_], dict[str, None]()
    for fact in records(db, scope, [id_]):
        forms = list[MemoryItem | Fact](stating(db, scope, fact) if isinstance(fact, Fact) else ())
        while forms:
            new += [form.id for form in forms]
            heirs = [form.superseded_by for form in forms if form.reason == EDITED]
            forms = records(db, scope, [heir for heir in heirs if heir and heir not in new])
    while new:
        going |= dict.fromkeys(new)
        older = records(db, scope, db.column("superseded_by_views", ids=new))
        older = [old for old in older if old.reason in (EDITED, CORRECTED)]
        near = [old.id for old in older]
        near += [old.memory for old in older if isinstance(old, Fact) and old.memory]
        near += [fact for each in new for fact in db.column("facts_of_memory", id=each)]
        new = [each for each in dict.fromkeys(near) if each not in going]
    return list(going)


def _borrowing(
    db: Db, scope: Scope, messages: Sequence[tuple[Any, ...]], now: str = ""
) -> Iterator[str]:
    """What was derived from later messages with a person whom only these name, meant by "she".

    `now` is what one of them says now, which may still name them.
    """
    user = scope.whole_user()
    for first in range(0, len(messages), AT_ONCE):
        some = messages[first : first + AT_ONCE]
        said = " ".join(entry.message.text for entry in find(db, user, [id_ for _, id_ in some]))
        seqs = [seq for seq, _ in some]
        read_after = db.rows("messages_read_after", seqs=seqs, most=READ_TOGETHER)
        later = [id_ for id_, _ in read_after]
        views = db.column("views_from_messages", ids=later)
        kept = kept_by_hand(db, scope, views)
        derived = records(db, scope, [view for view in views if view not in kept])
        cited = list({id_ for record in derived for id_ in record.sources})
        texts = {it.message.message_id: it.message.text for it in find(db, user, cited)}
        for record in derived:
            own = " ".join((now, *(texts.get(id_, "") for id_ in record.sources)))
            if borrows(record.text, own, said):
                yield record.id


def _corrected_with(db: Db, scope: Scope, message_id: str) -> Iterator[str]:
    """The ids of corrected records, and of their memories, that cite this message and others."""
    views = db.column("views_from_messages", ids=[message_id])
    shared = [it for it in records(db, scope, views) if len(it.sources) > 1]
    kept = kept_by_hand(db, scope, [it.id for it in shared]) if shared else set()
    for record in shared:
        replaced = () if record.id in kept else superseded_by(db, scope, record.id)
        if any(old.reason == CORRECTED for old in replaced):
            yield record.id
            if isinstance(record, Fact) and record.memory:
                yield record.memory


def _forget_messages(
    db: Db,
    scope: Scope,
    messages: Sequence[tuple[Any, ...]],
    also: Sequence[str] = (),
    kind: str = "derive",
) -> Counter[str]:
    """Remove messages and what was derived from them; the other messages it cites are queued."""
    seqs = [seq for seq, _ in messages]
    cited = db.column("views_from_messages", ids=[id_ for _, id_ in messages])
    views = list(dict.fromkeys([*cited, *also]))
    others = db.rows("messages_cited_by", ids=views) if views else []
    gone = _forget_derived(db, scope, views)
    db.run("delete_kept_views", ids=views)
    if seqs:
        _forget_mentions(db, [id_ for _, id_ in messages])
        passages, vectors = db.rows("count_passages_of_messages", seqs=seqs)[0]
        spoke = db.column("speakers_of_messages", seqs=seqs)
        gone["summaries"] += db.run("delete_summaries_of_messages", seqs=seqs)
        gone["revisions"] += db.run("delete_revisions", seqs=seqs)
        gone["messages"] += db.run("delete_messages", seqs=seqs)
        if spoke:
            db.run("delete_silent_speakers", names=spoke)
        gone += Counter(passages=passages, vectors=vectors)
    forgotten = set(seqs)
    for seq, session in others:
        if seq not in forgotten:
            enqueue(db, kind, seq, seq, session=session)
    return gone


def _forget_derived(db: Db, scope: Scope, views: list[str]) -> Counter[str]:
    """Remove derived records; what they superseded holds again."""
    if not views:
        return Counter()
    going = {record.id: record for record in records(db, scope, views)}
    replaced = db.column("superseded_by_views", ids=views)
    [(passages, vectors)] = db.rows("count_passages_of_views", ids=views)
    agents = db.column("note_agents", ids=views)
    _forget_mentions(db, views)
    note(db, "views", "forget", views)
    for query in ("delete_view_passages", "delete_view_sources", "delete_entities"):
        db.run(query, ids=views)
    if agents:
        db.run("delete_note_versions", agents=agents)
    gone = Counter(
        memories=db.run("delete_items", ids=views),
        facts=db.run("delete_facts", ids=views),
        notes=db.run("delete_notes", ids=views),
        articles=db.run("delete_articles", ids=views),
        entries=db.run("delete_entries", ids=views),
        passages=passages,
        vectors=vectors,
    )
    for old in records(db, scope, replaced):
        _restore_superseded(db, scope, old, going)
    return gone


def _forget_mentions(db: Db, ids: Sequence[str]) -> None:
    """Remove the events of records and messages, and the receipts that name them."""
    for query in ("delete_events", "delete_receipts_citing"):
        db.run(query, ids=list(ids))


def _restore_superseded(
    db: Db, scope: Scope, old: MemoryItem | Fact, gone: Mapping[str, MemoryItem | Fact]
) -> None:
    """Restore what a forgotten record superseded, until its own end where it was superseded too."""
    end = old.valid_to if isinstance(old, Fact) else old.ended_at
    heir, left = old.superseded_by, dict(gone)
    while heir is not None and heir in left:
        between = left.pop(heir)
        if isinstance(between, MemoryItem):
            end = between.ended_at
        elif between.known_to is None:  # else it was taken back, and its successor began as it did
            end = between.valid_to
        heir = between.superseded_by
    if heir is None or end is None:
        restore(db, scope, old.id, "what took its place was forgotten")
    else:
        query = "bridge_fact" if isinstance(old, Fact) else "bridge_item"
        db.run(query, id=old.id, heir=heir, at=to_micros(end))


def _views_in(db: Db, scope: Scope, session_ids: list[str]) -> list[str]:
    """Derived records of the scope itself, whichever messages they cite."""
    if scope.session is not None and scope.session not in session_ids:
        return []  # another agent's session
    agent = scope.agent if scope.session is None else None  # what all may see is the session's, too
    return db.column("views_in", agent=agent, session_id=scope.session)
