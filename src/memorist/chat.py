"""Chat: a conversation in hand, and Stream: a message stored while it is being written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from memorist.arguments import NamesArguments
from memorist.context.window import Context, Window
from memorist.errors import ConflictError, MemoristError, MessageError, NotFoundError
from memorist.providers.images import encode_image
from memorist.records.documents import Compression
from memorist.records.log import Session, TextPart
from memorist.records.message import UNSET, Content, Message
from memorist.records.query import MIN_SCORE, Names, Recall
from memorist.records.values import check_seconds, check_text, check_whole, new_id

if TYPE_CHECKING:
    from memorist.context.builder import ArticleSource
    from memorist.memory import Memory

FLUSH_REST = 10.0  # a flush that took t seconds is followed by at least 10 t without one
POLL_SECONDS = 0.05


class Chat(NamesArguments):
    """A session of one user with one agent; what `Memory.session` returns."""

    def __init__(self, memory: Memory, session: Session) -> None:
        self._memory = memory
        self.session = session

    def __repr__(self) -> str:
        names = ", ".join(f"{name}={value!r}" for name, value in self.session.scope.names.items())
        return f"Chat({names})"

    @property
    def id(self) -> str:
        return self.session.id

    def add(
        self,
        role: str,
        content: Content = None,
        *,
        message_id: str | None = None,
        name: str | None = None,
        tool_calls: Sequence[Any] = (),
        agent_calls: Sequence[Any] = (),
        structured_data: dict[str, Any] | None = None,
        images: Sequence[str] = (),
        tool_call_id: str | None = None,
        created_at: datetime | None = None,
        unfinished: bool = False,
    ) -> str:
        """Store what `role` said, durably, and return its id; see `Message`. Calls may be dicts.

        `role` is user, assistant, system or tool.
        """
        message = Message(
            role,
            content,
            message_id=new_id() if message_id is None else message_id,
            name=name,
            tool_calls=tool_calls,
            agent_calls=agent_calls,
            structured_data=structured_data,
            images=images,
            tool_call_id=tool_call_id,
            created_at=created_at or self._memory.clock(),
            unfinished=unfinished,
        )
        return self.remember(message)

    def remember(self, message: Message) -> str:
        """Store one message durably and return its id."""
        return self._memory.remember([message], **self.session.scope.names).message_ids[0]

    def stream(
        self,
        role: str = "assistant",
        *,
        name: str | None = None,
        flush_s: float = 0.1,
        flush_chars: int = 2_000,
    ) -> Stream:
        """Begin a message that is written bit by bit; readers see it grow. See `Stream`."""
        check_seconds("flush_s", flush_s)
        check_whole(flush_chars, "flush_chars")
        clock = self._memory.clock
        message = Message(role, "", name=name, created_at=clock(), unfinished=True)
        self.remember(message)
        append_text = partial(self._memory.messages.append_text, self.session.scope)
        return Stream(message, append_text, flush_s=flush_s, flush_chars=flush_chars)

    def follow(self, message_id: str, timeout_s: float = 30.0) -> Iterator[str]:
        """The text of a message as it comes, until it is finished or none came for `timeout_s`."""
        check_seconds("timeout_s", timeout_s)
        read = partial(self._memory.messages.text_from, self.session.scope, message_id)
        return follow(read, timeout_s)

    def history(self, last: int | None = None) -> list[Message]:
        """The newest `last` messages, or all of them, oldest first."""
        scope = self.session.scope
        return self._memory.history(user=scope.user, session=scope.session, last=last)

    def recall(
        self,
        question: str,
        *,
        limit: int = 10,
        min_score: float = MIN_SCORE,
        deadline_ms: float | None = UNSET,
        kind: Names = None,
        category: Names = None,
        role: Names = None,
        tags: Names = None,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
    ) -> Recall:
        """`Memory.recall` for this user with this agent, over all their sessions.

        Where the session has no agent, only what has none is found.
        """
        scope = self.session.scope
        return self._memory.recall(
            question,
            user=scope.user,
            agent=scope.agent,
            limit=limit,
            min_score=min_score,
            deadline_ms=deadline_ms,
            kind=kind,
            category=category,
            role=role,
            tags=tags,
            after=after,
            before=before,
            as_of=as_of,
        )

    def context(
        self,
        question: str | Message,
        *,
        max_tokens: int | None = None,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        window: Window | None = None,
        library: ArticleSource | None = None,
        deadline_ms: float | None = UNSET,
        read_image: Callable[[str], str] | None = encode_image,
    ) -> Context:
        """This conversation, and what is remembered for the question, filled to `max_tokens`."""
        return self._memory.context(
            question,
            **self.session.scope.names,
            max_tokens=max_tokens,
            system=system,
            tools=tools,
            window=window,
            library=library,
            deadline_ms=deadline_ms,
            read_image=read_image,
        )

    def compress(self, window: Window | None = None) -> Compression | None:
        """Summarise all but the last messages now; see `Memory.compress`."""
        user = self.session.scope.user
        return self._memory.compress(user=user, session=self.session.id, window=window)


class Stream(NamesArguments):
    """A message stored while it is being written; what `Chat.stream` returns.

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
        append_text: Callable[[Message], None],
        *,
        flush_s: float = 0.1,
        flush_chars: int = 2_000,
    ) -> None:
        self.message = message  # as it is stored
        self._append_text = append_text
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
        """Add text without storing it; return whether it is time to `flush`."""
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
        self._append_text(message)
        self.message = message
        self._waiting = sum(map(len, self._parts[parts:]))
        now = time.monotonic()
        self._due = now + (self._flush_s and max(self._flush_s, FLUSH_REST * (now - began)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            if self.message.unfinished:
                self.finish()
            return
        try:
            self.flush()
        except MemoristError as lost:  # the error that ended the block is the one to raise
            error.add_note(f"the end of the stream could not be stored: {lost}")


def follow(read: Callable[..., TextPart | None], timeout_s: float) -> Iterator[str]:
    """The text added to a message, until it is finished or nothing came for `timeout_s`."""
    seen, part, until = 0, None, time.monotonic() + timeout_s
    while True:
        part = read(seen, known=part)
        if part is None:
            raise NotFoundError("no message with this id in this conversation")
        if part.text:
            yield part.text
            seen, until = seen + len(part.text), time.monotonic() + timeout_s
        if part.text and seen < part.chars:
            continue
        if not part.unfinished or time.monotonic() >= until:
            return
        time.sleep(POLL_SECONDS)
