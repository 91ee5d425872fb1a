"""Asked: a question of a conversation, and what was replied to it so far."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from memorist.agents.replies import reply_id
from memorist.chat import Chat
from memorist.errors import ConflictError, InvalidError, MemoristError, NotFoundError
from memorist.memory import Memory
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope

AT_ONCE = 32  # replies that are looked for: a call of tools is one too


class Asked(NamedTuple):
    """A message to be answered, and the conversation that it goes to.

    `again` says that it may be stored already, and even be answered.
    """

    chat: Chat
    message: Message
    again: bool = False

    @property
    def id(self) -> str:
        """The message's."""
        return self.message.message_id

    @property
    def place(self) -> tuple[str, str, str]:
        """What no other question has."""
        return self.chat.session.scope.owner, self.chat.id, self.id


class Replied(NamedTuple):
    """The number of the reply to come, or else the answer, if that is whole."""

    number: int = 0
    answer: Message | None = None


def asked_before(memory: Memory, scope: Scope, asked_id: str) -> Asked:
    """A question that is stored in the scope; NotFoundError and InvalidError where it is none."""
    found = memory.store.find(scope, [asked_id])
    if not found:
        raise NotFoundError("asked_id names no message of this user, agent and session")
    if len(found) > 1:
        raise ConflictError("several sessions hold a message with this id; name the session_id")
    message = found[0].message
    if message.role != "user" or not isinstance(message.content, str) or message.images:
        raise InvalidError("asked_id names a message that is no text of the user's")
    return Asked(chat_of(memory, scope, found[0]), message, again=True)


def chat_of(memory: Memory, scope: Scope, entry: LogEntry) -> Chat:
    """The conversation that a message is in, whichever agent it is with."""
    [session] = memory.store.sessions(scope.within(session=entry.session_id))
    return Chat(memory, session)


def replied(memory: Memory, asked: Asked) -> Replied:
    """What was replied so far: one that broke off is to be said again under its number."""
    last, said = -1, Message("assistant", "", unfinished=False)
    for first in count(0, AT_ONCE):
        numbers = {reply_id(asked.id, first + n): first + n for n in range(AT_ONCE)}
        found = memory.store.find(asked.chat.session.scope, list(numbers))
        for message in (entry.message for entry in found):
            if (number := numbers[message.message_id]) > last:
                last, said = number, message
        if not found:
            break
    if last < 0 or said.unfinished:
        return Replied(max(last, 0))
    return Replied(last + 1, None if said.tool_calls else said)


def is_stored(memory: Memory, asked: Asked) -> bool:
    """Whether the question can be asked again by its id."""
    try:
        return bool(memory.store.find(asked.chat.session.scope, [asked.id]))
    except MemoristError:
        return False
