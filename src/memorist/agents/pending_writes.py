"""PendingWrites: which messages of a conversation are in the log, and which wait to be written."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.config import get_config

from memorist.agents.messages import field_of, from_langchain, is_stored_kind
from memorist.errors import ConflictError, MessageError, NotFoundError
from memorist.forks import fork_safe
from memorist.memory import Memory
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope

FORGOTTEN = "the question or its answer was forgotten meanwhile; the answer is not stored"
MOST_CONVERSATIONS = 1_000
LEAST_REPEATED = 2  # messages: a single one may well be said again
LOOK_BACK = 8  # times the messages received: a caller who repeats a turn may leave out its tools

log = logging.getLogger("memorist.agents")


@dataclass(frozen=True, slots=True)
class Identity:
    """A user's conversation with an agent; without a session it is the active one."""

    user: str
    agent: str | None = None
    session: str | None = None

    @property
    def names(self) -> dict[str, Any]:
        """The keyword arguments for the methods of a memory."""
        return {"user": self.user, "agent": self.agent, "session": self.session}


def identity_of_run(runtime: Any, fixed: Identity | None = None) -> Identity:
    """Who a run is for, by `fixed`, its context or its configuration; nobody without a runtime."""
    fixed = fixed or Identity("")
    context, config = getattr(runtime, "context", None), getattr(runtime, "config", None)
    try:
        configured = (config or get_config()).get("configurable") if runtime is not None else None
    except RuntimeError:  # outside of a run
        configured = None

    def look(*names: str) -> str | None:
        values = [field_of(place, name) for name in names for place in (context, configured)]
        return next((str(value) for value in values if value), None)

    return Identity(
        fixed.user or look("user_id") or "",
        fixed.agent or look("agent_id"),
        fixed.session or look("session_id", "thread_id"),
    )


@dataclass(slots=True)
class _Conversation:
    """The ids of stored messages by their ids in the state, what waits, and what is unfinished.

    `asked` is the id in the log of the user's newest message.
    """

    stored: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Message] = field(default_factory=dict)
    partial: set[str] = field(default_factory=set)
    asked: str = ""

    def is_forgotten(self, entries: Sequence[LogEntry]) -> bool:
        """Whether the newest question, which was stored, is not among these messages of the log."""
        return bool(self.asked) and all(it.message.message_id != self.asked for it in entries)


class PendingWrites:
    """Writes messages to the log, each once; what fails waits for the next write."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._conversations: OrderedDict[Identity, _Conversation] = OrderedDict()
        self._lock = fork_safe(threading.Lock())

    def add(self, identity: Identity, messages: Sequence[BaseMessage]) -> bool:
        """Queue the messages that are not known to be stored; return whether anything waits."""
        conversation = self._conversation(identity)
        for message in filter(is_stored_kind, messages):
            whole = message.id in conversation.stored and message.id not in conversation.partial
            if not message.id or whole or message.id in conversation.waiting:
                continue
            try:
                conversation.waiting[message.id] = from_langchain(message)
            except MessageError as error:
                log.warning("a message cannot be stored: %s", error)
        return bool(conversation.waiting)

    def add_converted(self, identity: Identity, message: Message) -> None:
        """Queue a message that is one of ours already."""
        conversation = self._conversation(identity)
        if message.message_id not in conversation.stored:
            conversation.waiting[message.message_id] = message

    def recheck(self, identity: Identity, message_id: str) -> None:
        """Compare this message with the log once more: its text may have changed."""
        conversation = self._conversation(identity)
        if conversation.stored.get(message_id) == message_id:  # not under another message's id
            del conversation.stored[message_id]

    def begin(self, identity: Identity, message: Message) -> None:
        """Store the beginning of a reply, after what waits; it revises one that broke off."""
        conversation, scope = self._conversation(identity), self._memory.scope(**identity.names)
        id_ = message.message_id
        self.write(identity)
        if conversation.is_forgotten(self._memory.messages.get(scope, [conversation.asked])):
            raise NotFoundError(FORGOTTEN)
        try:
            is_new = bool(self._memory.remember(message, **identity.names).added)
        except ConflictError:  # it is there, with another text
            is_new = False
        for entry in [] if is_new else self._memory.messages.get(scope, [id_]):
            if entry.message.role != message.role or not entry.message.unfinished:
                raise ConflictError("a message with this id is finished")
            revised = message.changed(created_at=entry.message.created_at)
            self._memory.messages.revise(scope, revised)
        conversation.stored[id_] = id_
        conversation.partial.add(id_)

    def append(self, identity: Identity, message: Message) -> None:
        """Store more of a reply that was begun."""
        self._memory.messages.append_text(self._memory.scope(**identity.names), message)

    def write(self, identity: Identity) -> int:
        """Write what waits, in order; return how many messages were new.

        Answers that were forgotten meanwhile, or whose question was, are dropped.
        """
        conversation = self._conversation(identity)
        waiting = list(conversation.waiting.values())
        if not waiting:
            return 0
        ids, scope = [it.message_id for it in waiting], self._memory.scope(**identity.names)
        entries = self._memory.messages.get(scope, [*ids, *filter(None, [conversation.asked])])
        known = self._known(
            identity, waiting, [it for it in entries if it.message.message_id in ids]
        )
        new = [message for message in waiting if message.message_id not in known]
        is_forgotten = bool(new) and conversation.is_forgotten(entries)
        fresh = [it for it in new if it.message_id not in conversation.partial]
        fresh = list(dropwhile(lambda it: is_forgotten and it.role != "user", fresh))
        if fresh:
            self._memory.remember(fresh, **identity.names)
        for message in waiting:
            id_ = message.message_id
            conversation.stored[id_] = known.get(id_, id_)
            conversation.waiting.pop(id_, None)
            conversation.partial.discard(id_)
            if message.role == "user":
                conversation.asked = conversation.stored[id_]
        if len(fresh) < len(new):
            raise NotFoundError(FORGOTTEN)
        return len(fresh)

    def move(self, old: Identity, new: Identity) -> None:
        """Move what waits to the session that was found for it."""
        if old != new:
            waiting, conversation = self._conversation(old).waiting, self._conversation(new)
            for id_ in list(waiting):
                conversation.waiting[id_] = waiting.pop(id_)

    def stored_id(self, identity: Identity, id_: str) -> str:
        """The id that a message of the state has in the log."""
        return self._conversation(identity).stored.get(id_, id_)

    def _known(
        self, identity: Identity, waiting: Sequence[Message], entries: Sequence[LogEntry]
    ) -> dict[str, str]:
        """The ids in the log of those that are stored, under the same ids or under others.

        `entries` are those that are stored under the same. A caller without a checkpointer sends
        the whole conversation each time, and LangGraph gives each message a new id: then the
        messages begin as the log ends.
        """
        log, scope = self._memory.messages, self._memory.scope(**identity.names)
        stored = {entry.message.message_id: entry.message for entry in entries}
        self._update(scope, waiting, stored)
        known = {id_: id_ for id_ in stored}
        unknown = list(takewhile(lambda message: message.message_id not in stored, waiting))
        if len(unknown) < LEAST_REPEATED or identity.session is None:
            return known
        before = entries[0].seq if entries else None
        newest = log.list(scope, last=LOOK_BACK * len(unknown), before=before)
        return known | _repeated(unknown, [entry.message for entry in newest])

    def _update(self, scope: Scope, waiting: Sequence[Message], stored: dict[str, Message]) -> None:
        """Complete what is stored in part, and revise the newest question if its text changed.

        Only the newest: another middleware may have redacted older ones.
        """
        for message in waiting:
            if (old := stored.get(message.message_id)) is None:
                continue
            is_question = message is waiting[-1] and old.role == message.role == "user"
            message = message.changed(created_at=old.created_at)
            if old.unfinished and not message.unfinished:
                try:
                    self._memory.messages.append_text(scope, message)
                except ConflictError:  # its text was changed since, or it is more than text
                    self._memory.messages.revise(scope, message)
            elif is_question and old.text != message.text:
                self._memory.messages.revise(scope, message)

    def _conversation(self, identity: Identity) -> _Conversation:
        with self._lock:
            conversation = self._conversations.setdefault(identity, _Conversation())
            self._conversations.move_to_end(identity)
            if (surplus := len(self._conversations) - MOST_CONVERSATIONS) > 0:
                written = [key for key, it in self._conversations.items() if not it.waiting]
                for key in written[:surplus]:
                    del self._conversations[key]
            return conversation


def _repeated(received: Sequence[Message], stored: Sequence[Message]) -> dict[str, str]:
    """By id, the newest stored messages that the first of the received ones repeat.

    The caller may have left out tools, and questions at which a run failed.
    """
    talk = [it for it in stored if it.role != "tool" and not it.tool_calls]
    next_roles = [it.role for it in talk[1:]] + ["user"]
    pairs = zip(talk, next_roles, strict=False)
    answered = [it for it, next_role in pairs if (it.role, next_role) != ("user", "user")]
    return next(filter(None, (_overlap(received, it) for it in (stored, talk, answered))), {})


def _overlap(received: Sequence[Message], stored: Sequence[Message]) -> dict[str, str]:
    """By id, the end of the stored messages, if the received ones begin with exactly that."""
    for count in range(min(len(received), len(stored)), LEAST_REPEATED - 1, -1):
        pairs = list(zip(received, stored[-count:], strict=False))
        if all((new.role, new.text) == (old.role, old.text) for new, old in pairs):
            return {new.message_id: old.message_id for new, old in pairs}
    return {}
