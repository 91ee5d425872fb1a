"""OpenAI's chat format, one JSON object a line: conversations, or single messages.

A conversation is `{"messages": [{"role": …, "content": …}, …]}`, as in logs and for fine-tuning;
its id, user, title and date are read where it has them. Single messages belong to the conversation
that they name, or else to one of their file.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memorist.errors import InvalidError, MessageError
from memorist.records.message import ROLES, Message
from memorist.records.values import MadeAt
from memorist.transfer.items import Item, Skipped, Turn, moment, stable_id
from memorist.transfer.source import Source

name = "openai_jsonl"
title = "OpenAI chat JSONL"

_SESSIONS = ("conversation_id", "session_id", "thread_id")
_DATES = ("created_at", "timestamp", "create_time", "created")
_SUFFIXES = (".jsonl", ".ndjson", ".json")


def recognises(source: Source) -> bool:
    """Whether the first line is a conversation or a message."""
    names = [each for each in source.names() if each.endswith(_SUFFIXES)] or source.names()
    first = source.first(names[0]) if names else None
    return isinstance(first, dict) and (_is_message(first) or _messages(first) is not None)


def read(source: Source) -> Iterator[Item]:
    """The messages of all files."""
    for file in source.names():
        whole_file = ""
        for entry in source.values(file):
            if isinstance(entry, Skipped):
                yield entry
                continue
            place, value = entry
            messages = _messages(value)
            if messages is not None:
                session = _text(value, "id", *_SESSIONS) or _id_of(messages)
                title = _text(value, "title")
                for number, said in enumerate(messages, start=1):
                    yield _turn(f"{place}, message {number}", said, value, session, title)
            else:
                whole_file = whole_file or _id_of(value, file)
                yield _turn(place, value, value, _text(value, *_SESSIONS) or whole_file)


def _turn(
    place: str, said: Any, around: Mapping[str, Any], session: str, title: str | None = None
) -> Item:
    """A message; without a date of its own it has that of what is around it."""
    user = _text(around, "user_id", "user")
    try:
        if not _is_message(said):
            raise MessageError("not a message with a role and content")
        message = _message(said, place, session, _date(said) or _date(around))
    except InvalidError as error:
        return Skipped(place, str(error))
    return Turn(session=session, message=message, user=user, title=title)


def _date(value: Mapping[str, Any]) -> datetime | None:
    for key in _DATES:
        if key in value and (at := moment(value[key], key)) is not None:
            return at
    return None


def _message(
    said: dict[str, Any], place: str, session: str, created_at: datetime | None
) -> Message:
    id_ = _text(said, "id", "message_id") or stable_id(session, place, str(said["content"]))
    role, content, calls = said["role"], said["content"], said.get("tool_calls")
    at = created_at or MadeAt.now(UTC)
    if role in ROLES and isinstance(content, str) and not calls:
        answers = said.get("tool_call_id")
        return Message(role, content, id_, said.get("name"), tool_call_id=answers, created_at=at)
    if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
        # One without an id gets the same one each time.
        named = [{"id": f"{id_}-{number}", **call} for number, call in enumerate(calls)]
        said = {**said, "tool_calls": named}
    return Message.from_response_dict({**said, "id": id_}, message_id=id_, created_at=at)


def _messages(value: Mapping[str, Any]) -> list[Any] | None:
    messages = value.get("messages")
    return messages if isinstance(messages, list) and any(map(_is_message, messages)) else None


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "content" in value


def _id_of(value: Any, *file: str) -> str:
    """The same id for the same content, also where that is no strict JSON, as NaN."""
    return stable_id(name, *file, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _text(value: Mapping[str, Any], *keys: str) -> str | None:
    """The first of these fields that is a text, or a number."""
    for key in keys:
        if isinstance(found := value.get(key), str | int) and found != "":
            return str(found)
    return None
