"""The operations of the HTTP API and the cursors of its lists, for the routes and the client."""

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memorist.errors import InvalidError


class Operation(NamedTuple):
    """An HTTP method and path. A repeatable write changes nothing when it is sent twice."""

    method: str
    path: str
    repeatable: bool = False


OPERATIONS = {
    "add_message": Operation("POST", "/api/messages"),
    "add_messages": Operation("POST", "/api/messages/batch", True),  # messages carry their ids
    "list_messages": Operation("GET", "/api/messages"),
    "get_message": Operation("GET", "/api/messages/{message_id}"),
    "revise_message": Operation("PUT", "/api/messages/{message_id}"),
    "list_revisions": Operation("GET", "/api/messages/{message_id}/revisions"),
    "append_text": Operation("POST", "/api/messages/{message_id}/append", True),  # at an offset
    "follow_message": Operation("GET", "/api/messages/{message_id}/updates"),
    "resolve_session": Operation("POST", "/api/sessions/resolve", True),
    "active_session": Operation("GET", "/api/sessions/active"),
    "list_sessions": Operation("GET", "/api/sessions"),
    "recall": Operation("POST", "/api/recall", True),
    "context": Operation("POST", "/api/context", True),
    "compress": Operation("POST", "/api/compress"),
    "list_summaries": Operation("GET", "/api/summaries"),
    "list_facts": Operation("GET", "/api/facts"),
    "add_fact": Operation("POST", "/api/facts"),
    "get_fact": Operation("GET", "/api/facts/{fact_id}"),
    "change_fact": Operation("PATCH", "/api/facts/{fact_id}"),
    "retract_fact": Operation("POST", "/api/facts/{fact_id}/retract"),
    "undo_fact": Operation("POST", "/api/facts/{fact_id}/undo"),
    "list_memories": Operation("GET", "/api/memories"),
    "add_memory": Operation("POST", "/api/memories"),
    "get_memory": Operation("GET", "/api/memories/{memory_id}"),
    "forget_memory": Operation("DELETE", "/api/memories/{memory_id}", True),
    "retract_memory": Operation("POST", "/api/memories/{memory_id}/retract"),
    "undo_memory": Operation("POST", "/api/memories/{memory_id}/undo"),
    "audit": Operation("GET", "/api/audit"),
    "maintain": Operation("POST", "/api/maintain"),
    "forget": Operation("POST", "/api/forget"),
    "count_waiting": Operation("GET", "/api/waiting"),
    "list_jobs": Operation("GET", "/api/jobs"),
    "retry_job": Operation("POST", "/api/jobs/{job_id}/retry"),
    "get_notes": Operation("GET", "/api/notes"),
    "write_notes": Operation("PUT", "/api/notes"),  # not repeatable: it is refused the second time
    "list_versions": Operation("GET", "/api/notes/versions"),
    "manage_notes": Operation("POST", "/api/notes/manage"),
    "restore_notes": Operation("POST", "/api/notes/restore"),
    "list_articles": Operation("GET", "/api/articles"),
    "add_article": Operation("POST", "/api/articles", True),  # in the place of the same uri
    "get_article": Operation("GET", "/api/articles/{article_id}"),
    "remove_article": Operation("DELETE", "/api/articles/{article_id}", True),
    "retrieve_articles": Operation("POST", "/api/articles/retrieve", True),
    "batch_entries": Operation("POST", "/api/entries/batch"),
    "list_keys": Operation("GET", "/api/keys"),
    "add_key": Operation("POST", "/api/keys"),
    "revoke_key": Operation("DELETE", "/api/keys/{key_id}", True),
    "rotate_key": Operation("POST", "/api/keys/{key_id}/rotate"),
    "chat": Operation("POST", "/api/chat"),
    "health": Operation("GET", "/health"),
    "ready": Operation("GET", "/ready"),
    "metrics": Operation("GET", "/metrics"),
}


def make_cursor(key: Sequence[Any]) -> str:
    """An opaque cursor: the sort key of the last item of a page."""
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in key]
    text = json.dumps(parts, ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, *kinds: type[Any]) -> tuple[Any, ...] | None:
    """The sort key in a cursor, whose parts have these types."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        if not isinstance(parts, list):
            raise ValueError("not a key")
        key = tuple(_read_part(part, kind) for part, kind in zip(parts, kinds, strict=True))
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
        raise InvalidError("cursor is not the `next` of a page") from None
    return key


def _read_part(part: Any, kind: type[Any]) -> Any:
    value: Any = datetime.fromisoformat(part) if kind is datetime else part
    if isinstance(value, str):
        value.encode()  # half a character, which no list is sorted by, is a ValueError
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError("another type than the list is sorted by")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("a moment without a time zone")
    if isinstance(value, int) and not 0 <= value < 2**63:
        raise ValueError("not the number of an item")
    return value
