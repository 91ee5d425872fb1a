"""Streams: a message that is stored while it is still being written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from memorist.errors import ConflictError, MemoristError, MessageError, NotFoundError
from memorist.records.message import Message
from memorist.records.text import check_text

REST = 10.0  # times as long as a flush took, none is due by the clock: text comes first
POLL_SECONDS = 0.05


class Stream:
    """A message that grows; what `Chat.stream` gives.

        with chat.stream("assistant") as reply:
            for token in model:
                reply.write(token)

    Text is gathered and stored together: `flush_s` after the last time (0: at every write), or
    when `flush_chars` wait and as many as are stored already. An error in the block leaves the
    message unfinished, with all that had arrived. For one writer at a time.
    """

    def __init__(
        self,
        message: Message,
        grow: Callable[[Message], None],
        *,
        flush_s: float = 0.1,
        flush_chars: int = 2_000,
    ) -> None:
        self.message = message  # as it is stored
        self._grow = grow
        self._flush_s = flush_s
        self._flush_chars = flush_chars
        # All of them, and never emptied: a flush that is cut short repeats nothing, drops nothing.
        self._parts = [str(message.content or "")]
        self._waiting = 0
        self._due = time.monotonic() + flush_s

    @property
    def id(self) -> str:
        return self.message.message_id

    def write(self, text: str) -> None:
        """Add text; it is stored now, or with what follows it."""
        if self.gather(text):
            self.flush()

    def gather(self, text: str) -> bool:
        """Add text without storing it; say whether it is time to `flush`."""
        if not self.message.unfinished:
            raise ConflictError("the stream is finished")
        self._parts.append(check_text(text, "text", MessageError))
        self._waiting += len(text)
        enough = max(self._flush_chars, len(str(self.message.content)))
        return self._waiting >= enough or time.monotonic() >= self._due

    def flush(self) -> None:
        """Store durably what has been written so far."""
        if self._waiting:
            self._store()

    def finish(self, **fields: Any) -> None:
        """Store the rest and mark the message finished; `fields` come last, as `tool_calls` do."""
        self._store(unfinished=False, **fields)

    def _store(self, **fields: Any) -> None:
        began, parts = time.monotonic(), len(self._parts)
        text = "".join(self._parts[:parts])
        message = self.message.changed(**{"content": text, **fields})
        self._grow(message)
        self.message = message
        self._waiting = sum(map(len, self._parts[parts:]))
        now = time.monotonic()
        self._due = now + (self._flush_s and max(self._flush_s, REST * (now - began)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            if self.message.unfinished:
                self.finish()
            return
        try:
            self.flush()
        except MemoristError as lost:  # the error that ended the block is the one to tell
            error.add_note(f"the end of the stream could not be stored: {lost}")


def follow(look: Callable[[], Message | None], timeout_s: float) -> Iterator[str]:
    """What is added to a message, until it is finished or nothing has come for so long."""
    seen, until = 0, time.monotonic() + timeout_s
    while True:
        message = look()
        if message is None:
            raise NotFoundError("no message with this id in this conversation")
        text = message.content if isinstance(message.content, str) else ""
        if len(text) > seen:
            yield text[seen:]
            seen, until = len(text), time.monotonic() + timeout_s
        if not message.unfinished or time.monotonic() >= until:
            return
        time.sleep(POLL_SECONDS)
