"""The recency channel: the last few messages, which may have no vector yet."""

from __future__ import annotations

from memorist.records.query import Found, Query
from memorist.store.base import Store

LAST = 10


def find_recent(store: Store, query: Query) -> list[Found]:
    """The newest messages in the scope, newest first."""
    newest = store.newest(query.scope, limit=LAST, filters=query.filters)
    return [Found(passage, 1 - rank / LAST) for rank, passage in enumerate(newest)]
