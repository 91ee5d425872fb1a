"""The Store: everything a database must do for Recollect, on one screen.

Every method that sees what users said takes a `Scope` and touches that user's rows only;
its agent and session, where named, narrow it further. Each write is one durable
transaction, and doing it twice with the same ids is doing it once. `claim` is the one
method that crosses users: it hands out jobs, which name messages and hold no words. After
`forget` nothing can be read any more; after `scrub` no byte of it is left in a file either,
or else the answer says where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from recollect.records.change import Change
from recollect.records.fact import Fact
from recollect.records.log import Appended, Job, LogEntry, Source
from recollect.records.memory_item import MemoryItem
from recollect.records.message import Message
from recollect.records.note import Note
from recollect.records.query import Forgotten, Match
from recollect.records.scope import Scope
from recollect.records.session import Session

Term = tuple[str, ...]
"""A word to look for, or several that must follow each other."""


class Store(Protocol):
    """What a database must do; see the module."""

    # The log
    def append(
        self, scope: Scope, messages: Sequence[Message], *, source: Source | None = None
    ) -> Appended: ...
    def history(
        self, scope: Scope, *, last: int | None = None, before: int | None = None,
        role: str | None = None,
    ) -> list[LogEntry]: ...  # fmt: skip
    def find(self, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]: ...
    def revise(self, scope: Scope, message: Message) -> None: ...
    def revisions(self, scope: Scope, message_id: str) -> list[Message]: ...

    # Sessions
    def open_session(self, scope: Scope, *, claimed: str | None = None) -> Session: ...
    def sessions(self, scope: Scope) -> list[Session]: ...

    # Views
    def apply(
        self, scope: Scope, changes: Sequence[Change], *, done: Job | None = None
    ) -> None: ...
    def items(self, scope: Scope, *, current: bool = True) -> list[MemoryItem]: ...
    def facts(
        self, scope: Scope, *, topic: str | None = None,
        valid_at: datetime | None = None, known_at: datetime | None = None,
    ) -> list[Fact]: ...  # fmt: skip
    def note(self, scope: Scope, *, version: int | None = None) -> Note | None: ...
    def note_versions(self, scope: Scope) -> list[Note]: ...
    def write_note(self, scope: Scope, text: str, *, base_version: int) -> Note: ...

    # Search
    def match_text(self, scope: Scope, terms: Sequence[Term], *, limit: int) -> list[Match]: ...
    def match_vector(
        self, scope: Scope, embedder: str, vector: Sequence[float], *, limit: int
    ) -> list[Match]: ...
    def unembedded(self, scope: Scope, embedder: str, *, limit: int) -> dict[int, str]: ...
    def put_vectors(
        self, scope: Scope, embedder: str, vectors: Mapping[int, Sequence[float]]
    ) -> None: ...

    # The queue
    def claim(self, *, limit: int = 1, lease_seconds: float = 60) -> list[Job]: ...
    def fail(self, job: Job, error: str) -> None: ...
    def jobs(self, scope: Scope, *, dead: bool | None = None) -> list[Job]: ...
    def retry(self, scope: Scope, job_id: int) -> None: ...

    # The end
    def forget(self, scope: Scope, *, message_id: str | None = None) -> Forgotten: ...
    def scrub(self) -> str: ...
    def check(self) -> dict[str, str]: ...
    def close(self) -> None: ...
