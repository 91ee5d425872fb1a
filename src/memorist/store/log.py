"""The log in a transaction: sessions and their messages."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from memorist.errors import ConflictError, NotFoundError, ScopeError
from memorist.language.text import cut
from memorist.records.log import PART_CHARS, Job, LogEntry, Session, SessionSummary, TextPart
from memorist.records.message import Message
from memorist.records.scope import Scope, tenant_hash
from memorist.records.values import (
    PASSAGES_PER_MESSAGE,
    Count,
    Place,
    Tally,
    check_each,
    from_micros,
    new_id,
)
from memorist.store.activity import note
from memorist.store.engine import Db
from memorist.store.indexing import (
    PlacedMessage,
    Preparation,
    PreparedMessage,
    index_messages,
    traits_of,
)
from memorist.store.jobs import enqueue
from memorist.store.rows import ALL, END, Row, check_count, dated_page

MAX_COUNTED = 1_000
NOTED_FOR = 60_000_000  # microseconds, in which that a session is active is not written again
READ_TOGETHER = 20  # messages, at most, that are read with one before them
TITLE_CHARS, MAX_TITLE_CHARS = 80, 400


def add_owner(db: Db, scope: Scope) -> None:
    """Note that this user exists, unless that is known."""
    tenant = {"tenant_hash": tenant_hash(scope.tenant), "tenant": scope.tenant}
    db.later("add_owner", **tenant, user_id=scope.user)


class SessionRow(NamedTuple):
    """A session as the database has it."""

    key: Any
    agent: str
    created_at: int


def ensure_session(
    db: Db, scope: Scope, *, own: bool = False, adopt: bool = False, locked: list[Row] | None = None
) -> SessionRow:
    """Lock the session that `scope` names, unless it is `locked`, creating it if need be.

    Rows that LangChain writes under the session's id are part of it if the id is our own, made
    this moment, or if the caller may `adopt` them. Any other caller may have read the id somewhere.
    """
    assert scope.session is not None  # callers resolve it first
    columns = scope.columns()
    if adopt and not db.rows("adopt_session", **columns)[0][0]:
        raise ConflictError("only a session whose id is a UUID that no other user has is adopted")
    row = db.row("lock_session", **columns) if locked is None else next(iter(locked), None)
    if row is None:
        [row] = create_session(db, scope, adopt=own or adopt)()
    session = SessionRow(*row[:3])
    if scope.agent is not None and scope.agent != session.agent:
        raise ScopeError("this session belongs to another agent of the same user")
    return session


def create_session(db: Db, scope: Scope, *, adopt: bool = False) -> Callable[[], list[Row]]:
    """Create and lock the session that `scope` names; what is returned has its row."""
    add_owner(db, scope)
    named = {**scope.columns(), "agent": scope.agent or "", "adopt": adopt}
    db.later("create_session", **named)
    return db.later("lock_session", **scope.columns())


def open_session(
    db: Db, scope: Scope, *, claimed: str | None = None, new: bool = False, adopt: bool = False
) -> Session:
    """The named session, else the claimed one if it is this user's, the active one, a new one.

    `new` says that the name was made this moment; `adopt`: see `ensure_session`.
    """
    chosen = scope.session or _if_theirs(db, scope, claimed) or active_id(db, scope)
    if chosen is None:
        new, chosen = True, new_id()
    home = scope.within(session=chosen)
    _, agent, created_at = ensure_session(db, home, own=new, adopt=adopt)
    db.run("activate_session", user_id=scope.user, agent=agent, session_id=chosen)
    return Session(scope=home.within(agent=agent), created_at=from_micros(created_at))


def just_active(db: Db, scope: Scope, claimed: str | None) -> Session | None:
    """What `open_session` returns, if that was noted as active within the last minute."""
    row = db.row("active_session", agent=scope.agent or "")
    if row is None or not 0 <= db.now - row[1] < NOTED_FOR:
        return None
    return _named(db, scope, row[0]) if row[0] == (scope.session or claimed or row[0]) else None


def active(db: Db, scope: Scope) -> Session | None:
    """The active session with this agent, if there is one."""
    chosen = active_id(db, scope)
    return None if chosen is None else _named(db, scope, chosen)


def _named(db: Db, scope: Scope, session_id: str) -> Session | None:
    return next(iter(list_sessions(db, scope.within(session=session_id))), None)


def list_sessions(
    db: Db, scope: Scope, *, limit: Count = None, after: Place = None, newest_first: bool = False
) -> list[Session]:
    """The sessions in the scope by age, or with `newest_first` by when they were last active.

    `after` is the `created_at` of a session, or then its `last_active_at`, and its id.
    """
    rows = session_rows(db, scope, limit=limit, after=after, newest_first=newest_first)
    return [
        Session(
            scope=scope.within(agent=agent, session=id_),
            created_at=from_micros(created_at),
            last_active_at=from_micros(active_at),
        )
        for _, id_, agent, created_at, _, active_at in rows
    ]


def session_rows(
    db: Db, scope: Scope, *, limit: Count = None, after: Place = None, newest_first: bool = False
) -> list[Row]:
    """The same as rows of `key, session_id, agent_name, created_at, title, active_at`."""
    query = "sessions" if scope.agent is None else "sessions_of_agent"
    query = query if scope.session is None else "session_named"
    query = "newest_sessions" if newest_first else query
    return db.rows(query, **scope.columns(), **dated_page(limit, after, newest_first=newest_first))


def summarized(
    db: Db, scope: Scope, *, limit: Count = None, after: Place = None, newest_first: bool = False
) -> list[SessionSummary]:
    """The sessions in the scope as a list shows them."""
    rows = session_rows(db, scope, limit=limit, after=after, newest_first=newest_first)
    keys = [key for key, *_ in rows]
    details = {key: rest for key, *rest in db.rows("session_details", keys=keys)} if rows else {}
    untitled = [details[key][1] for key, *_, title, _ in rows if title is None and key in details]
    words = _first_words(db, [seq for seq in untitled if seq is not None])
    return [
        SessionSummary(
            scope=scope.within(agent=agent, session=id_),
            created_at=from_micros(created_at),
            last_active_at=from_micros(active_at),
            title=words.get(first or 0, "") if title is None else title,
            messages=Tally.of(count, MAX_COUNTED),
        )
        for key, id_, agent, created_at, title, active_at in rows
        for count, first in [details.get(key, (0, None))]
    ]


def _first_words(db: Db, seqs: list[int]) -> dict[int, str]:
    """The beginnings of messages, each on one line."""
    texts: dict[int, Any] = dict(db.rows("first_words", seqs=seqs)) if seqs else {}
    if others := [seq for seq, text in texts.items() if text is None]:  # not plain text
        for row in db.rows("messages_by_seq", seqs=others):
            texts[row[0]] = db.unpack(row).text[:MAX_TITLE_CHARS]
    return {seq: cut(" ".join(text.split()), TITLE_CHARS) for seq, text in texts.items()}


def rename_session(db: Db, scope: Scope, title: str | None) -> None:
    """Give a session a title of the user's own, or take it away."""
    if not db.run("rename_session", **scope.columns(), title=title):
        raise NotFoundError("no session with this id for this user")


def agents(db: Db, scope: Scope) -> list[str]:
    """The agents that the user has sessions with."""
    return db.column("agents")


def _if_theirs(db: Db, scope: Scope, claimed: str | None) -> str | None:
    wanted: Scope | None = None
    with suppress(ScopeError):  # it comes from a browser and may be anything
        wanted = None if claimed is None else scope.within(session=claimed)
    row = None if wanted is None else db.row("find_session", **wanted.columns())
    return claimed if row is not None and row[1] == (scope.agent or "") else None


def active_id(db: Db, scope: Scope) -> str | None:
    """The id of the active session with this agent, if there is one."""
    row = db.row("active_session", agent=scope.agent or "")
    return None if row is None else str(row[0])


def history(
    db: Db,
    scope: Scope,
    *,
    last: int | None = None,
    before: int | None = None,
    after: int | None = None,
    role: str | None = None,
    max_bytes: int | None = None,
) -> list[LogEntry]:
    """The `last` messages in the scope, oldest first; `before` and `after` are exclusive seqs.

    With `max_bytes`, the newest of them that take about so many bytes, one at least.
    """
    check_each("role", role)
    bounds = {
        "last": check_count(last, "last"),
        "before": check_count(before, "before", END),
        "after": check_count(after, "after", -1),
    }
    if scope.session is not None and role is None:
        rows = db.page("session_history", max_bytes, **scope.columns(), **bounds)
        return _entries(db, reversed(rows), scope.session)
    rows = db.page("history", max_bytes, **scope.columns(), role=role, **bounds)
    return _entries(db, reversed(rows))


def following(
    db: Db, scope: Scope, *, after: int, limit: int, max_bytes: int | None = None
) -> list[LogEntry]:
    """The messages of a session after a seq, oldest first."""
    page = {"after": check_count(after, "after"), "limit": check_count(limit, "limit")}
    rows = db.page("following", max_bytes, **scope.columns(), **page)
    return _entries(db, rows, scope.session or "")


def find(db: Db, scope: Scope, ids: Sequence[str], *, limit: int | None = None) -> list[LogEntry]:
    """The messages with these ids in the scope, in log order: all, or the first `limit`."""
    check_each("message_id", *ids)
    named = {"ids": list(ids), "limit": check_count(limit, "limit")}
    return _entries(db, db.rows("messages_by_id", **scope.columns(), **named))


def text_from(
    db: Db, scope: Scope, id: str, start: int, *, known: TextPart | None = None
) -> TextPart | None:
    """What a message says from a position on, up to `PART_CHARS`; None where there is no message.

    Nothing is read of a message that is as long as it is `known` to be.
    """
    check_each("message_id", id)
    places = message_places(db, scope, id, limit=2)
    if not places:
        return None
    if len(places) > 1:
        raise ConflictError("several sessions have a message with this id; name the session")
    seq, session_id, version = places[0]
    if known is not None and known.version == version and start >= known.chars:
        return replace(known, text="")
    row = db.row("message_part", seq=seq, start=min(start, ALL - 1), most=PART_CHARS)
    if row is None:
        return None
    chars, text, stored = row
    more: Any = None
    with suppress(ValueError):  # another program may have written anything
        more = json.loads(stored or "null")
    if chars is None or not isinstance(more, dict) or "content" in more:  # it is not plain text
        message = db.unpack(db.rows("messages_by_seq", seqs=[seq])[0])
        whole = message.content if isinstance(message.content, str) else ""
        chars, text, more = len(whole), whole[start : start + PART_CHARS], vars(message)
    unfinished = bool(more.get("unfinished"))
    return TextPart(session_id, text, chars, unfinished=unfinished, version=version)


def revise(db: Db, scope: Scope, prepared: PreparedMessage) -> None:
    """Replace the message with this id; what it said before stays among its revisions."""
    entry = _only(db, scope, prepared.id)
    session = ensure_session(db, scope.within(session=entry.session_id))
    db.run("keep_revision", seq=entry.seq)
    db.run("delete_summaries_of_messages", seqs=[entry.seq])
    _rewrite(db, scope, entry.seq, prepared, session)
    db.run("void_leases", seqs=[entry.seq], most=READ_TOGETHER)
    note(db, "messages", "revised", [entry.seq])
    enqueue(db, "embed", entry.seq, entry.seq, session=session.key)


class Growth(NamedTuple):
    """An unfinished message that is about to grow, and its passages."""

    entry: LogEntry
    last: int | None  # the id of its last passage, and where that begins
    start: int
    first: int | None


def growth(db: Db, scope: Scope, message: Message) -> Growth | None:
    """The stored message of which this is a longer version; None if it is stored already.

    Its text must begin with what is stored, so that a writer that is behind removes nothing.
    """
    entry = _only(db, scope, message.message_id)
    if entry.message == message:
        return None
    stored, before = entry.message, entry.message.content or ""
    if not stored.unfinished:
        raise ConflictError("the message is finished; use revise to change it")
    if stored.role != message.role:
        raise ConflictError("text cannot be appended under another role")
    if not isinstance(before, str) or not isinstance(message.content, str):
        raise ConflictError("only text can be appended to; use revise to change other content")
    if not message.content.startswith(before):
        raise ConflictError("the text does not begin with what is stored of it")
    row = db.row("last_passage", seq=entry.seq)
    return Growth(entry, *(row or (None, 0, None)))


def prepare_growth(
    preparation: Preparation, owner: str, message: Message, growth: Growth
) -> tuple[PreparedMessage, bool]:
    """The longer message with the passages to write, and whether those before the last stay."""
    stored = growth.entry.message
    old, new = stored.text, message.text
    goes_on = next_piece(growth.last) > 0 and new.startswith(old)
    if not goes_on or traits_of(stored, old) != traits_of(message, new):
        return preparation.message(owner, message), False
    is_first = growth.last == growth.first
    return preparation.message(owner, message, start=growth.start, is_first=is_first), True


def append_text(db: Db, scope: Scope, seen: Growth, new: PreparedMessage, goes_on: bool) -> bool:
    """Replace an unfinished message by a longer version, unless it is not as it was `seen`."""
    scope = scope.within(session=seen.entry.session_id)
    session = ensure_session(db, scope)
    if growth(db, scope, new.message) != seen:
        return False
    seq = seen.entry.seq
    db.run("delete_summaries_of_messages", seqs=[seq])
    # No lease is voided: a worker that lost its job at every flush would never finish.
    _rewrite(db, scope, seq, new, session, seen.last if goes_on else None)
    if not new.message.unfinished:
        enqueue(db, "embed", seq, seq, session=session.key)
    return True


def revisions(
    db: Db,
    scope: Scope,
    message_id: str,
    *,
    limit: int | None = None,
    after: int | None = None,
    max_bytes: int | None = None,
) -> list[Message]:
    """The earlier versions of a message, oldest first; `after` is how many came before the page."""
    check_each("message_id", message_id)
    named = {"limit": check_count(limit, "limit"), "after": check_count(after, "after", 0)}
    places = message_places(db, scope, message_id)
    if not places:
        raise NotFoundError("no message with this id in this scope")
    if len(places) > 1 and (limit, after, max_bytes) != (None, None, None):
        raise ConflictError("several sessions have a message with this id; name the session")
    seqs = [seq for seq, *_ in places]
    rows = db.page("revisions", max_bytes, seqs=seqs, **named)
    return [db.unpack(row) for row in rows]


def message_places(db: Db, scope: Scope, message_id: str, *, limit: int = ALL) -> list[Row]:
    """The seq, session and version of each message with this id in the scope."""
    return db.rows("message_places", **scope.columns(), message_id=message_id, limit=limit)


def _only(db: Db, scope: Scope, message_id: str) -> LogEntry:
    """The one message with this id in the scope."""
    entries = find(db, scope, [message_id])
    if not entries:
        raise NotFoundError("no message with this id in this scope")
    if len(entries) > 1:
        raise ConflictError("several sessions have a message with this id; name the session")
    return entries[0]


def _rewrite(
    db: Db, scope: Scope, seq: int, new: PreparedMessage, home: SessionRow, replaced: Count = None
) -> None:
    """Overwrite a message and its passages, from the one with the id `replaced` on, or all."""
    db.run("rewrite_message", seq=seq, **new.traits, **new.content)
    db.later("note_activity", session=home.key, at=None)
    row = db.row("last_passage", seq=seq)
    first = seq * PASSAGES_PER_MESSAGE if replaced is None else replaced
    db.run("delete_message_passages", seq=seq, first=first)
    number = next_piece(row[0] if row else None)
    placed = PlacedMessage(seq, scope.owner, home.agent, home.key, new)
    index_messages(db, [placed], first_piece=number)


def reindex(db: Db, job: Job, messages: Sequence[tuple[int, PreparedMessage]]) -> None:
    """Index a job's messages anew, without those that have changed since they were read."""
    seqs = [seq for seq, _ in messages]
    rows = db.rows("messages_by_seq", seqs=seqs)
    stored = {row[0]: db.unpack(row) for row in rows}
    for home in db.rows("find_session", **job.scope.columns()):
        for seq, prepared in messages:
            if stored.get(seq) == prepared.message:
                _rewrite(db, job.scope, seq, prepared, SessionRow(*home))
                db.run("mark_all_outdated", seq=seq)


def next_piece(last: int | None) -> int:
    """The number of a rewritten message's first passage, given the id of its last one so far.

    New words get new ids, so that a vector that is still being made of the old words matches
    none. The numbers start again at 0 before they could reach the ids of the next message.
    """
    first = 0 if last is None else last % PASSAGES_PER_MESSAGE + 1
    return 0 if first > PASSAGES_PER_MESSAGE // 2 else first


def _entries(db: Db, rows: Iterable[Row], session_id: str | None = None) -> list[LogEntry]:
    """Rows of `seq, source, …`, which end with the session's id unless it is given."""
    return [
        LogEntry(row[0], row[-1] if session_id is None else session_id, row[1], db.unpack(row))
        for row in rows
    ]
