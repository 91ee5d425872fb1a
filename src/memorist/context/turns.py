"""A session's turns: its newest messages, with tool calls always beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memorist.context.chat_format import ChatMessage, ReadImage, to_chat_message
from memorist.context.quote import quoted
from memorist.context.tokens import TokenCounter
from memorist.records.documents import Note, Summary
from memorist.records.message import LogEntry, Message
from memorist.records.scope import Scope

FIRST_PAGE = 32
MANY = 400  # messages
NO_RESULT = "(no result was recorded)"
LATE_RESULT = "A tool's result, quoted:"


class ContextSource(Protocol):
    """What contexts are made from: a store here, or that of a remote memory."""

    def history(
        self,
        scope: Scope,
        *,
        last: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[LogEntry]: ...
    def following(self, scope: Scope, *, after: int, limit: int) -> list[LogEntry]: ...
    def find(self, scope: Scope, message_ids: Sequence[str]) -> list[LogEntry]: ...
    def summary(self, scope: Scope, *, least: int | None = None) -> Summary | None: ...
    def note(self, scope: Scope) -> Note | None: ...


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest messages in order, their tokens, and whether older ones were left unread."""

    entries: Sequence[LogEntry] = ()
    tokens: int = 0
    more: bool = False


def read_tail(
    store: ContextSource, scope: Scope, counter: TokenCounter, room: int, after: int | None = None
) -> Tail:
    """The newest messages after a place in the log, until they take more than `room` tokens.

    Up to `MANY` are read in any case, so that they can be summarised at once. Each page is twice
    as long as the last, so a long session costs no more than a short one.
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
    """How many of the first messages may be summarised.

    The last `keep_last` stay, and so does a tool call whose result stays.
    """
    answered = {it.message.answered_call_id() for it in entries if it.message.role == "tool"}
    open_calls: set[str] = set()
    count = 0
    for place, entry in enumerate(entries[: max(len(entries) - keep_last, 0)], start=1):
        message = entry.message
        if message.role == "tool":
            open_calls.discard(message.answered_call_id() or "")
        open_calls.update(call.call_id for call in message.tool_calls if call.call_id in answered)
        if not open_calls:
            count = place
    return count


@dataclass(slots=True)
class Block:
    """Messages that stay together: one message, or tool calls and their results."""

    messages: list[ChatMessage]
    ids: list[str]
    tokens: int = -1  # not counted yet

    @property
    def role(self) -> str:
        return str(self.messages[0]["role"])


def blocks_of(
    entries: Sequence[LogEntry], counter: TokenCounter, read_image: ReadImage | None = None
) -> list[Block]:
    """Messages as blocks, oldest first, without empty ones, which cannot be sent.

    A result whose call is missing is sent as a quotation; a call without a result gets one that
    says so.
    """
    blocks: list[Block] = []
    waiting: dict[str, tuple[Block, int]] = {}  # by the id of the call: where its result goes
    counts = counter.messages([entry.message for entry in entries])  # in one go
    for message, tokens in zip((entry.message for entry in entries), counts, strict=True):
        id_, is_result = message.message_id, message.role == "tool"
        if _is_plain(message):  # as most are: thousands may go into a large window
            same = {"role": message.role, "content": message.content}
            blocks.append(Block([same], [id_], tokens))
        elif (sent := to_chat_message(message, read_image)) is None:
            continue
        elif is_result and (answers := message.answered_call_id() or "") in waiting:
            block, place = waiting.pop(answers)
            block.messages[place], block.ids[place] = sent, id_
        elif is_result and message.text.strip():  # late, or its call is in a summary
            quotation = f"{LATE_RESULT}\n{quoted(message.text)}"
            blocks.append(Block([{"role": "user", "content": quotation}], [id_]))
        elif not is_result:
            block = Block([sent], [id_])
            blocks.append(block)
            for call in sent.get("tool_calls", ()):
                waiting[call["id"]] = block, len(block.messages)
                missing = {"role": "tool", "tool_call_id": call["id"], "content": NO_RESULT}
                block.messages.append(missing)
                block.ids.append("")
    for block in blocks:
        block.ids = list(filter(None, block.ids))
        if block.tokens < 0:
            block.tokens = sum(map(counter.chat_message, block.messages))
    return blocks


def _is_plain(message: Message) -> bool:
    content = message.content
    return (
        type(content) is str
        and not (message.tool_calls or message.images or message.agent_calls or message.name)
        and message.role != "tool"
        and bool(content)
        and not content.isspace()
    )
