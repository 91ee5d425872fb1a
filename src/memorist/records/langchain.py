"""Messages in the form LangChain keeps them, `{"type": …, "data": …}`, and back.

Neither side loses anything. What LangChain has no field for is JSON text under
`additional_kwargs["memorist"]`. What we have no field for (its metadata, the blocks of a text) is
JSON text under `structured_data["langchain"]`: the fields in which LangChain's form differs from
the one that we would make. It is used as long as it matches the message.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from memorist.errors import MessageError
from memorist.records.json_values import check_json, dump_json, storable
from memorist.records.message import Message, ToolCallMsg, extras, from_extras
from memorist.records.values import UNSTORABLE
from memorist.records.wire import OTHER_ROLES, response_fields

Stored = dict[str, Any]
"""What LangChain's `message_to_dict` gives."""

_TYPES = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
_ROLES = OTHER_ROLES | {role: role for role in _TYPES}
_OURS = "memorist"
_THEIRS = "langchain"
_GAP = "\ufffc"
_SILENT = {"response_metadata", "usage_metadata"}  # fields that say nothing of what was said
_DICTS = ("additional_kwargs", "response_metadata")
_FIELDS = {"id", "name", "role", "content", "tool_call_id", "status", "artifact"}


def to_stored(message: Message) -> Stored:
    """The form that is stored: LangChain's, with our own beside it so that nothing is lost."""
    stored = _plain(message, None)
    if _theirs(message):
        try:
            check_json(stored, "message", MessageError)
        except MessageError:  # not every database takes LangChain's own fields
            stored = _form(message, _TYPES[message.role], None)
    return _with_ours(stored, message)


def dump_stored(message: Message) -> str:
    """The form that is stored, as JSON; made from a pattern where the message is plain text."""
    if message.role == "tool" or extras(message):
        return dump_json(to_stored(message))
    before, between, after = _pattern(message.role)
    said, id_ = dump_json(message.content), dump_json(message.message_id)
    return f"{before}{said}{between}{id_}{after}"


@cache
def _pattern(role: str) -> list[str]:
    """The JSON of plain messages of a role: what stands before, between and after text and id."""
    return dump_json(to_stored(Message(role, _GAP, message_id=_GAP))).split(dump_json(_GAP))


def to_dict(
    message: Message, encode_image: Callable[[str], str] | None = None, *, usual: bool = False
) -> Stored:
    """What `message_to_dict` would return, with our own form beside it only where it is needed.

    The `usual` form leaves out what LangChain had in another form.
    """
    kind = _TYPES[message.role]
    stored = _form(message, kind, encode_image) if usual else _plain(message, encode_image)
    if not usual and _is_bare(message):
        return stored
    return stored if _matches(stored, message) else _with_ours(stored, message)


def from_stored(stored: Mapping[str, Any], **known: Any) -> Message:
    """The message of a stored form, whoever wrote it; `known` fields are taken as given."""
    try:
        return _ours(stored, known)
    except (KeyError, TypeError, ValueError):  # not ours, or changed
        return _foreign(stored, known)


def _ours(stored: Mapping[str, Any], known: dict[str, Any]) -> Message:
    data = stored["data"]
    more = json.loads(data["additional_kwargs"][_OURS])
    found = {"message_id": data["id"], "role": known.get("role") or _role(stored), **known}
    if not more and isinstance(data["content"], str):  # mostly: text, and nothing else to compare
        return Message(content=data["content"], **found)
    message = from_extras(text=data["content"], more=more, **found)
    said = _texts(data["content"])
    if said == _texts(_form(message, _TYPES[message.role], None)["data"]["content"]):
        return message
    if said == _texts(_plain(message, None)["data"]["content"]):
        return message
    raise ValueError("it was edited")


def _foreign(stored: Mapping[str, Any], known: dict[str, Any]) -> Message:
    clean = storable(stored)
    data = stored.get("data") if isinstance(stored, Mapping) else None
    if not isinstance(data, Mapping) or "type" not in stored:  # another serialised form
        return Message(**{**response_fields(clean), **known})
    message = _read(clean, known)
    usual = _form(message, str(stored["type"]), None)
    theirs = {
        key: value
        for key, value in data.items()
        if key not in ("id", "type") and not _same(value, usual["data"].get(key, False))
    }
    if stored["type"] != _TYPES[message.role]:
        theirs["type"] = stored["type"]
    if not theirs:
        return message
    kept = {**(message.structured_data or {}), _THEIRS: _dumped(theirs)}
    return message.changed(structured_data=kept)


def _dumped(theirs: dict[str, Any]) -> str:
    return json.dumps(dict(sorted(theirs.items())))


def _read(stored: Stored, known: dict[str, Any]) -> Message:
    data = stored["data"]
    if stored.get("type") == "chat":
        data = {**data, "role": _role(stored)}
    try:
        more = data.get("additional_kwargs") or {}
        more = {key: value for key, value in more.items() if key not in _FIELDS}
        return Message(**{**_fields(stored, data, more), **known})
    except (AttributeError, MessageError):  # additional_kwargs may have any shape: kept, not read
        return Message(**{**_fields(stored, data, {}), **known})


def _fields(stored: Stored, data: Any, more: dict[str, Any]) -> dict[str, Any]:
    return response_fields({**stored, "data": {**data, "additional_kwargs": more}})


def _plain(message: Message, encode_image: Callable[[str], str] | None) -> Stored:
    """LangChain's form of a message: the original one, if it came from there unchanged."""
    usual = _form(message, _TYPES[message.role], encode_image)
    theirs = _theirs(message)
    if not theirs:
        return usual
    kind = str(theirs.get("type", usual["type"]))
    stored = {"type": kind, "data": _form(message, kind, encode_image)["data"] | theirs}
    if theirs.keys() <= _SILENT or _matches(stored, message):
        return stored
    return usual  # the message was changed since


def _with_ours(stored: Stored, message: Message) -> Stored:
    ours, data = extras(message), stored["data"]
    if message.content != data["content"]:
        ours["content"] = message.content
    more = {**data["additional_kwargs"], _OURS: dump_json(ours)}
    return {**stored, "data": {**data, "additional_kwargs": more}}


def _theirs(message: Message) -> dict[str, Any]:
    """The fields that LangChain had in another form than the usual one."""
    kept = (message.structured_data or {}).get(_THEIRS)
    try:
        theirs = json.loads(kept) if isinstance(kept, str) else {}
    except ValueError:
        return {}
    shaped = isinstance(theirs, dict)
    shaped = shaped and all(isinstance(theirs.get(name, {}), dict) for name in _DICTS)
    return theirs if shaped else {}


def _is_bare(message: Message) -> bool:
    """Whether it is text alone, as most messages are: a fast path, taken at every turn."""
    more, theirs = extras(message), _theirs(message)
    said_of_it = more.get("structured_data") == {_THEIRS: _dumped(theirs)}
    if theirs and said_of_it and theirs.keys() <= _SILENT and all(theirs.values()):
        del more["structured_data"]
    return not more and message.role != "tool" and not UNSTORABLE.search(str(message.content))


def _matches(stored: Stored, message: Message) -> bool:
    """Whether a stored form is read as this message."""
    try:
        read = _foreign(stored, {"message_id": message.message_id})
    except (KeyError, TypeError, ValueError):
        return False
    return replace(read, created_at=message.created_at) == message


def _form(message: Message, kind: str, encode_image: Callable[[str], str] | None) -> Stored:
    """The usual form of a message of this kind."""
    content = message.to_wire(encode_image)["content"]
    data: dict[str, Any] = {
        "content": "" if content is None else content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": message.name,
        "id": message.message_id,
    }
    more = message.structured_data or {}
    if kind == "ai":
        data |= _calls(message.tool_calls)
    elif kind == "tool":
        data |= {
            "tool_call_id": message.answered_call_id() or "",
            "artifact": more.get("artifact"),
            "status": "error" if more.get("status") == "error" else "success",
        }
    elif kind == "chat":
        data["role"] = message.role
    return {"type": kind, "data": data}


def _calls(calls: Any) -> dict[str, Any]:
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for call in calls:
        form = {"name": call.name, "args": call.arguments, "id": call.call_id}
        if (arguments := _arguments(call)) is None:
            bad.append({**form, "error": None, "type": "invalid_tool_call"})
        else:
            good.append({**form, "args": arguments, "type": "tool_call"})
    return {"tool_calls": good, "invalid_tool_calls": bad, "usage_metadata": None}


def _arguments(call: ToolCallMsg) -> dict[str, Any] | None:
    try:
        arguments = json.loads(call.arguments or "{}")
        dump_json(arguments).encode()
    except (ValueError, RecursionError):  # ValueError: also NaN and lone surrogates
        return None
    if not isinstance(arguments, dict) or "\\u0000" in call.arguments:
        return None  # PostgreSQL's jsonb refuses NUL
    return arguments


def _role(stored: Mapping[str, Any]) -> str:
    """The role of a stored message; a chat message names its own, which may be any word."""
    kind = str(stored["type"])
    named = str(stored["data"].get("role")) if kind == "chat" else kind
    return _ROLES.get(re.sub(r"(Message)?(Chunk)?$", "", named).lower(), "user")


def _texts(content: Any) -> Any:
    """The texts of LangChain's content, without numbers, which jsonb may change in form."""
    if isinstance(content, str):
        return storable(content)
    return [storable(part.get("text") if isinstance(part, dict) else part) for part in content]


def _same(value: Any, usual: Any) -> bool:
    """Whether two values are equal as JSON: 1, 1.0 and True differ."""
    if usual is False and value in (None, False):
        return True
    return value == usual and json.dumps(value, sort_keys=True) == json.dumps(usual, sort_keys=True)
