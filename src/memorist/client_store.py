"""RemoteStore: as much of a store as conversations and notes need, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from memorist.errors import InvalidError, NotFoundError
from memorist.providers.http import PAGE, Connection, NotHereError, part
from memorist.records.decode import from_plain
from memorist.records.fact import Fact
from memorist.records.log import LogEntry
from memorist.records.memory_item import MemoryItem
from memorist.records.message import Message
from memorist.records.note import Note
from memorist.records.scope import Scope


class RemoteStore:
    """What a server hands out of its store. The rest stays there, and says so when asked for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._grown: dict[str, int] = {}  # characters of growing messages that the server has

    def __getattr__(self, name: str) -> Any:
        raise NotHereError(name)

    def history(
        self,
        scope: Scope,
        *,
        last: int | None = None,
        before: int | None = None,
        after: int | None = None,
        role: str | None = None,
    ) -> list[LogEntry]:
        """The newest `last` messages, or all of them, oldest first; page by page."""
        if before is not None or after is not None:
            raise NotHereError("history between two places")
        if last is not None and (not isinstance(last, int) or last < 0):
            raise InvalidError("last must be a number, and not negative")
        found: list[LogEntry] = []
        cursor = None
        while last is None or len(found) < last:
            page = self._connection.call(
                "GET",
                "/api/messages",
                query={
                    **where(scope),
                    "role": role,
                    "cursor": cursor,
                    "limit": PAGE if last is None else min(last - len(found), PAGE),
                },
            )
            found = [*map(_entry, page["items"]), *found]
            cursor = page["next"]
            if cursor is None:
                break
        return found

    def find(self, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]:
        """The messages with these ids that are in the scope."""
        found = [
            self._get(f"/api/messages/{part(id_)}", scope, session=scope.session)
            for id_ in message_ids
        ]
        return [_entry(data) for data in found if data is not None]

    def grow(self, scope: Scope, message: Message) -> None:
        """Store what was added to a message that is being written."""
        text, id_ = str(message.content or ""), message.message_id
        at = self._grown.get(id_, 0)
        named = ("tool_calls", "agent_calls", "structured_data")
        more = {name: value for name, value in plain(message).items() if name in named}
        body = {
            "user": scope.user,
            "session": scope.session,
            "text": text[at:],
            "at": at,
            "finish": not message.unfinished,
            **more,
        }
        self._connection.call("POST", f"/api/messages/{part(id_)}/append", body, idempotent=True)
        self._grown[id_] = len(text)
        if not message.unfinished:
            del self._grown[id_]

    def revise(self, scope: Scope, message: Message) -> None:
        """Store a message anew; what it said before is kept beside it."""
        told = plain(message)
        body = {**told, "message_id": None, "user": scope.user, "session": scope.session}
        self._connection.call("PUT", f"/api/messages/{part(message.message_id)}", body)

    def revisions(self, scope: Scope, message_id: str) -> list[Message]:
        """What a message said before."""
        path = f"/api/messages/{part(message_id)}/revisions"
        place = {"user": scope.user, "session": scope.session}
        return [from_plain(Message, one) for one in self._connection.pages(path, place)]

    def records(self, scope: Scope, ids: Sequence[str]) -> list[MemoryItem | Fact]:
        """The memories and facts with these ids."""
        found: list[MemoryItem | Fact] = []
        for id_ in ids:
            if (told := self._get(f"/api/memories/{part(id_)}", scope)) is not None:
                found.append(from_plain(MemoryItem, told))
            elif (told := self._get(f"/api/facts/{part(id_)}", scope)) is not None:
                found.append(from_plain(Fact, told))
        return found

    def note(self, scope: Scope, *, version: int | None = None) -> Note | None:
        """The note of this user and agent, as it is or as it was."""
        told = self._get("/api/notes", scope, agent=scope.agent, version=version)
        return from_plain(Note, told) if told and told["version"] else None

    def note_versions(self, scope: Scope) -> list[Note]:
        """Every version of the note, newest first."""
        place = {"user": scope.user, "agent": scope.agent}
        found = self._connection.pages("/api/notes/versions", place)
        return [from_plain(Note, one) for one in found]

    def write_note(self, scope: Scope, text: str, *, base_version: int) -> Note:
        """Write the version after `base_version`, unless someone else has."""
        body = {
            "user": scope.user,
            "agent": scope.agent,
            "text": text,
            "base_version": base_version,
        }
        return from_plain(Note, self._connection.call("PUT", "/api/notes", body))

    def _get(self, path: str, scope: Scope, **query: Any) -> Any:
        try:
            return self._connection.call("GET", path, query={"user": scope.user, **query})
        except NotFoundError:
            return None


def plain(message: Message) -> dict[str, Any]:
    """A message as a request has it: what was not said of it is left out."""
    told = {
        name: value for name, value in asdict(message).items() if value not in (None, (), False)
    }
    return {**told, "created_at": message.created_at.isoformat()}


def where(scope: Scope) -> dict[str, str | None]:
    """A scope as a request's query has it."""
    return {"user": scope.user, "agent": scope.agent, "session": scope.session}


def _entry(data: dict[str, Any]) -> LogEntry:
    message = from_plain(Message, data["message"])
    return LogEntry(data["seq"], data["session_id"], data["source"], message)
