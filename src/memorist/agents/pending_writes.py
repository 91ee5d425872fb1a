"""The ledger: which messages of a run are in the log, and those that are still to be put there."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from memorist.errors import MissingExtraError

try:
    from langchain_core.messages import BaseMessage
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.identity import Who
from memorist.agents.log_lines import is_said
from memorist.agents.messages import from_langchain
from memorist.errors import ConflictError, MessageError
from memorist.memory import Memory
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope

MOST_SESSIONS = 1_000
LEAST_ALIKE = 2  # one message may well be said again
LOOK_BACK = 8  # times what is told: of a turn, whoever tells it again may leave out the tools
_UNANSWERED = ("user", "user")  # a question, and whose words follow

log = logging.getLogger("memorist.agents")


@dataclass(slots=True)
class Page:
    """Of one conversation: under which ids messages are stored, and which wait to be.

    Of those that are `growing`, only the beginning is stored.
    """

    stored: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Message] = field(default_factory=dict)
    growing: set[str] = field(default_factory=set)


class Ledger:
    """Puts what was said into the log, each message once; what fails waits for the next time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages: OrderedDict[Who, Page] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, who: Who, messages: Sequence[BaseMessage]) -> bool:
        """Take down what is not known to be stored; whether anything waits to be written."""
        page = self._page(who)
        for message in filter(is_said, messages):
            whole = message.id in page.stored and message.id not in page.growing
            known = whole or message.id in page.waiting
            if message.id and not known and (made := _read(message)) is not None:
                page.waiting[message.id] = made
        return bool(page.waiting)

    def note_one(self, who: Who, message: Message) -> None:
        """Take down a message of ours."""
        page = self._page(who)
        if message.message_id not in page.stored:
            page.waiting[message.message_id] = message

    def ask(self, who: Who, message_id: str) -> None:
        """A run begins with this message: it may be stored, and say something else since."""
        page = self._page(who)
        if page.stored.get(message_id) == message_id:  # else it is one that was told again
            del page.stored[message_id]

    def begin(self, who: Who, message: Message) -> None:
        """Store the beginning of a message, behind all that was said before it.

        One that broke off is begun anew in its place; what it said is among its revisions.
        """
        self.write(who)
        if not self._begun(who, message):
            self._begin_anew(self._scope(who), message)
        page = self._page(who)
        page.stored[message.message_id] = message.message_id
        page.growing.add(message.message_id)

    def grow(self, who: Who, message: Message) -> None:
        """Store more of a message that was begun."""
        self._memory.store.grow(self._scope(who), message)

    def _begun(self, who: Who, message: Message) -> bool:
        """Whether it is stored as a new one."""
        try:
            done = self._memory.remember(
                [message], user=who.user, agent=who.agent, session=who.session
            )
        except ConflictError:  # it is there, with other words
            return False
        return bool(done.added)

    def _begin_anew(self, scope: Scope, message: Message) -> None:
        found = self._memory.store.find(scope, [message.message_id])
        for held in (entry.message for entry in found):
            if held.role != message.role or not held.unfinished:
                raise ConflictError("a message with this id is finished")
            self._memory.store.revise(scope, message.changed(created_at=held.created_at))

    def write(self, who: Who) -> int:
        """Put into the log what waits, in its order; how many were new there."""
        page = self._page(who)
        waiting = list(page.waiting.values())
        if not waiting:
            return 0
        same = self._same(who, waiting)
        fresh = [message for message in waiting if message.message_id not in same]
        if fresh:
            self._memory.remember(fresh, user=who.user, agent=who.agent, session=who.session)
        for message in waiting:
            id_ = message.message_id
            page.stored[id_] = same.get(id_, id_)
            page.waiting.pop(id_, None)
            page.growing.discard(id_)
        return len(fresh)

    def move(self, old: Who, new: Who) -> None:
        """What waits for a session to be found belongs to this one."""
        if old != new:
            waiting, page = self._page(old).waiting, self._page(new)
            for id_ in list(waiting):
                page.waiting[id_] = waiting.pop(id_)

    def stored_id(self, who: Who, id_: str) -> str:
        """The id that a message of the state has in the log."""
        return self._page(who).stored.get(id_, id_)

    def _same(self, who: Who, waiting: Sequence[Message]) -> dict[str, str]:
        """Those that are stored: by their ids, or told again under new ones.

        A caller without a checkpointer sends the whole conversation each time, and LangGraph
        gives each of its messages a new id: then it begins as the log ends.
        """
        store, scope = self._memory.store, self._scope(who)
        found = store.find(scope, [message.message_id for message in waiting])
        self._finish(scope, waiting, found)
        self._correct(scope, waiting[-1], found)
        same = {entry.message.message_id: entry.message.message_id for entry in found}
        told = []
        for message in waiting:
            if message.message_id in same:
                break
            told.append(message)
        if len(told) < LEAST_ALIKE or who.session is None:
            return same
        before = found[0].seq if found else None
        log = store.history(scope, last=LOOK_BACK * len(told), before=before)
        return same | _told_again(told, log)

    def _finish(self, scope: Scope, whole: Sequence[Message], found: Sequence[LogEntry]) -> None:
        """Put whole messages in the place of those that are stored in part."""
        parts = {it.message.message_id: it.message for it in found if it.message.unfinished}
        for message in whole:
            begun = parts.get(message.message_id)
            if begun is None or message.unfinished:
                continue
            message = message.changed(created_at=begun.created_at)
            try:
                self._memory.store.grow(scope, message)
            except ConflictError:  # somebody has changed its words, or it is more than text
                self._memory.store.revise(scope, message)
            self._memory.wake()

    def _correct(self, scope: Scope, asked: Message, found: Sequence[LogEntry]) -> None:
        """Put a question into its place that its writer has changed; what it said is kept.

        Older ones may have been changed by others, to hide something: the log has what was said.
        """
        held = [it.message for it in found if it.message.message_id == asked.message_id]
        for message in held:
            if message.role == asked.role == "user" and message.text != asked.text:
                self._memory.store.revise(scope, asked.changed(created_at=message.created_at))
                self._memory.wake()

    def _scope(self, who: Who) -> Scope:
        return self._memory.scope(user=who.user, agent=who.agent, session=who.session)

    def _page(self, who: Who) -> Page:
        with self._lock:
            page = self._pages.setdefault(who, Page())
            self._pages.move_to_end(who)
            done = [key for key, page in self._pages.items() if not page.waiting]
            for key in done[: max(len(self._pages) - MOST_SESSIONS, 0)]:
                del self._pages[key]
            return page


def _told_again(told: Sequence[Message], log: Sequence[LogEntry]) -> dict[str, str]:
    """By id, the log's newest messages that the first of these repeat word for word.

    Whoever tells them may have kept no tools, and no question that a run failed at.
    """
    said = [entry.message for entry in log]
    words = [it for it in said if it.role != "tool" and not it.tool_calls]
    after = [it.role for it in words[1:]] + ["user"]
    pairs = zip(words, after, strict=False)
    answered = [it for it, then in pairs if (it.role, then) != _UNANSWERED]
    return next(filter(None, (_alike(told, kept) for kept in (said, words, answered))), {})


def _alike(told: Sequence[Message], said: Sequence[Message]) -> dict[str, str]:
    """By id, the last of what was said, if what is told begins with just that."""
    for count in range(min(len(told), len(said)), LEAST_ALIKE - 1, -1):
        pairs = list(zip(told, said[-count:], strict=False))
        if all(_says(one) == _says(other) for one, other in pairs):
            return {one.message_id: other.message_id for one, other in pairs}
    return {}


def _says(message: Message) -> tuple[str, str]:
    return message.role, message.text


def _read(message: BaseMessage) -> Message | None:
    try:
        return from_langchain(message)
    except MessageError as error:
        log.warning("a message cannot be stored: %s", error)
        return None
