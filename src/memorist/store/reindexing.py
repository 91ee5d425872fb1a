"""Making the index again, from the log and the views it is made of."""

from __future__ import annotations

from memorist.records.scope import Scope
from memorist.store.engine import Db
from memorist.store.indexing import index_messages, index_view, link_fact

BATCH = 500


def reindex(db: Db, now: int) -> None:
    """Index every message and every derived record that holds. There must be no passage yet."""
    last = 0
    while rows := db.rows("messages_after", last=last, limit=BATCH):
        for row in rows:
            owner, session, agent = row[-3:]
            placed = [(row[0], db.unpack(row), row[4])]
            index_messages(db, owner, placed, agent=agent, session=session)
        last = rows[-1][0]
    for tenant, user, agent, session, kind, id_, text, created_at in db.rows("views_that_hold"):
        scope = Scope(tenant=tenant, user=user, agent=agent or None, session=session)
        index_view(db, scope, kind, id_, text, created_at, now)
    for owner, fact, subject, object_ in db.rows("facts_that_hold"):
        link_fact(db, owner, fact, (subject, object_))
