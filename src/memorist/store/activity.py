"""What happens in a memory, in a transaction: events, counts, and receipts of turns."""

import json
import re
from collections.abc import Sequence
from typing import Any

from memorist.errors import InvalidError
from memorist.records.activity import Counts, Event, Events, RecalledId, TurnReceipt
from memorist.records.json_values import dump_json
from memorist.records.scope import Scope
from memorist.records.values import Count, Place, Tally, check_each, from_micros, to_micros
from memorist.store.engine import Db
from memorist.store.rows import Row, dated_page

MOST_EVENTS = MOST_RECEIPTS = 1_000  # that are kept of a user
MOST_COUNTED = 10_000
PLACE = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


def note(db: Db, query: str, change: str, ids: Sequence[Any]) -> None:
    """Note a change of `views`, `jobs` or `messages`; of a user's, the newest 1,000 are kept."""
    if not ids:
        return
    db.run(f"note_{query}", change=change, ids=list(ids)[-MOST_EVENTS:])
    db.run("trim_events", most=MOST_EVENTS)


def events(
    db: Db, scope: Scope, *, after: str | None = None, limit: int, settled: bool = True
) -> Events | None:
    """The events after a place; without one, none, and the place of now.

    None where writes are under way, so that events may still come before the newest, unless
    it need not be `settled`.
    """
    place = None if after is None else PLACE.fullmatch(after)
    if after is not None and place is None:
        raise InvalidError("after is not the place of an event")
    is_settled = db.later("is_settled")
    [(last_seq, last_id)] = db.rows("event_ends")  # sent together
    if settled and not is_settled()[0][0]:
        return None
    if place is None:
        return Events(items=(), place=f"{last_seq}.{last_id}")
    seq, id_ = min(int(place[1]), last_seq), min(int(place[2]), last_id)
    stored = db.rows("messages_since", limit=limit, after=seq, top=last_seq)
    items = [_event(row, f"{row[0]}.{id_}") for row in stored]
    if len(items) == limit:
        return Events(items=tuple(items), place=items[-1].place)
    changed = db.rows("events", limit=limit - len(items), after=id_, top=last_id)
    items += [_event(row, f"{last_seq}.{row[0]}") for row in changed]
    end = items[-1].place if len(items) == limit else f"{last_seq}.{last_id}"
    return Events(items=tuple(items), place=end)


def _event(row: Row, place: str) -> Event:
    _, kind, id_, change, at, agent, session = row
    named = {"session": session, "agent": agent, "place": place}
    return Event(kind=kind, id=id_, change=change, at=from_micros(at), **named)


def counts(db: Db, scope: Scope) -> Counts:
    """How much the user has of each kind, counted up to 10,000."""
    rows = db.rows("counts", most=MOST_COUNTED + 1)
    return Counts(
        **{name: Tally(min(count, MOST_COUNTED), seen > MOST_COUNTED) for name, count, seen in rows}
    )


def add_receipt(db: Db, scope: Scope, receipt: TurnReceipt) -> int:
    """Keep the receipt of a turn; of older ones, the newest 1,000 of the user are kept."""
    check_each("session_id", receipt.session_id)
    added = db.run(
        "add_receipt",
        **{**scope.within(session=receipt.session_id).columns(), "id": receipt.id},
        asked_id=receipt.asked_id,
        message_id=receipt.message_id,
        created_at=to_micros(receipt.created_at),
        receipt=dump_json(receipt.receipt),
        recalled=dump_json([(it.kind, it.id, it.score) for it in receipt.recalled]),
        cites=dump_json(receipt.cites),
    )
    db.run("trim_receipts", most=MOST_RECEIPTS)
    return added


def receipts(
    db: Db, scope: Scope, *, limit: Count = None, after: Place = None, id: str | None = None
) -> list[TurnReceipt]:
    """The receipts of the user, or of one session, newest first; or the one with this id.

    `after` is the `created_at` and id of the last one of the page before.
    """
    check_each("id", id)
    page = dated_page(limit, after, newest_first=True)
    query = "receipts" if scope.session is None else "receipts_of_session"
    rows = db.rows("receipt" if id else query, **scope.columns(), **page, id=id)
    return [
        TurnReceipt(
            id=id_,
            session_id=session,
            asked_id=asked,
            message_id=answer,
            created_at=from_micros(at),
            receipt=json.loads(receipt),
            recalled=tuple(RecalledId(*it) for it in json.loads(recalled)),
        )
        for id_, session, asked, answer, at, receipt, recalled in rows
    ]
