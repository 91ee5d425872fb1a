"""PostgresStore: one database, many servers and workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memorist.records.ids import now
from memorist.store.base import Store
from memorist.store.postgres.engine import PostgresEngine


class PostgresStore(Store):
    """A Store in a PostgreSQL database, with pgvector where that is there and works.

    Its messages lie in `chat_message_history`, where langchain-postgres reads and writes them
    too. A server that goes away is waited for as long as the patience lasts.
    """

    def __init__(
        self,
        url: str,
        *,
        max_connections: int = 10,
        patience_seconds: float = 30,
        pgvector: bool = True,
        clock: Callable[[], datetime] = now,
    ) -> None:
        engine = PostgresEngine(url, max_connections, patience_seconds, pgvector)
        super().__init__(engine, clock)
