"""The tail: a session's newest messages, read back as far as a window could hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorist.context.tokens import Counter
from memorist.records.log import LogEntry
from memorist.records.scope import Scope
from memorist.store.base import Store

FIRST_PAGE = 32
MANY = 400  # messages


@dataclass(frozen=True, slots=True)
class Tail:
    """Messages in order, what they take, and whether older ones are left unread."""

    entries: Sequence[LogEntry] = ()
    tokens: int = 0
    more: bool = False


def read_tail(
    store: Store, scope: Scope, counter: Counter, room: int, *, after: int | None = None
) -> Tail:
    """The newest messages after a place, until they take more than `room`, and are many.

    It costs the same in a long session as in a short one: each page is twice the last. Few are
    read to their beginning, so that they can be summarised at once.
    """
    entries: list[LogEntry] = []
    tokens, page, before = 0, FIRST_PAGE, None
    while tokens <= room or len(entries) <= MANY:
        older = store.history(scope, last=page, before=before, after=after)
        tokens += sum(counter.messages([entry.message for entry in older]))
        entries[:0] = older
        if len(older) < page:
            return Tail(entries, tokens)
        before, page = older[0].seq, page * 2
    return Tail(entries, tokens, more=True)


def split(entries: Sequence[LogEntry], keep_last: int) -> int:
    """How many of the messages may go, such that the last stay and no call loses its result."""
    latest = max(len(entries) - keep_last, 0)
    open_calls: set[str] = set()
    going = 0
    answered = {
        entry.message.answered_call_id() for entry in entries if entry.message.role == "tool"
    }
    for place, entry in enumerate(entries[:latest], start=1):
        message = entry.message
        if message.role == "tool":
            open_calls.discard(message.answered_call_id() or "")
        open_calls.update(call.call_id for call in message.tool_calls if call.call_id in answered)
        if not open_calls:
            going = place
    return going
