"""The OpenAI Agents SDK's door: `Runner.run(agent, "Hi", session=MemoristSession(…))`."""

from __future__ import annotations

import json
import logging
import re
import threading
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from memorist.errors import ConflictError, MessageError, StoreError, needs_extra
from memorist.forks import fork_safe
from memorist.memory import Memory
from memorist.records.message import Message, ToolCallMsg, readable
from memorist.records.values import new_id, replace_unstorable

with needs_extra("openai-agents", "memorist-adapters"):
    from agents import SessionSettings, TResponseInputItem

ITEM = "openai_agents"  # where a message keeps what its item holds besides the words
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_WORDS = ("text", "image_url")  # what a part says or shows
_UNIQUE = re.compile(r"[a-z]+_\w{16,}")  # as providers number items; "__fake_id__" is on many

Item = dict[str, Any]
log = logging.getLogger("memorist")


class MemoristSession:
    """A session of the Agents SDK that lasts, and whose words the memory finds.

        session = MemoristSession(memory, user="ada", agent="tutor", session="any id")
        result = await Runner.run(agent, "Where do I live?", session=session)

    Without a session id it is the user's active one with this agent, or a new one. Items come
    back as they were given; an item that its provider numbered is stored once. While the store
    does not answer, the agent goes on: `failed` says why, what was said waits in this object and
    is stored with the next items.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        if session is None:
            session = memory.session(user=user, agent=agent).id
        self.session_id = session
        self.session_settings: SessionSettings | None = session_settings
        self.failed = ""
        self._memory = memory
        self._scope = memory.scope(user=user, agent=agent, session=session)
        self._waiting: list[Message] = []
        self._lock = fork_safe(threading.Lock())

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, or all of them, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return cast("list[TResponseInputItem]", await to_thread(self._read, limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items durably, all of them or none."""
        said = [message_of(cast(Item, item)) for item in items]
        await to_thread(self._write, said)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item: it, and all that was derived from it, is forgotten."""
        return cast("TResponseInputItem | None", await to_thread(self._pop))

    async def clear_session(self) -> None:
        """Forget the session, and all that was derived from it; bytes go with `Memory.scrub`."""
        await to_thread(self._clear)

    def _read(self, limit: int | None) -> list[Item]:
        last = None if limit is None or limit < 0 else limit
        with self._lock:
            said = self._stored(last) + self._waiting
        items = [item for message in said for item in items_of(message)]
        return items if last is None else items[max(len(items) - last, 0) :]

    def _stored(self, last: int | None) -> list[Message]:
        try:
            found = self._memory.messages.list(self._scope, last=last)
        except StoreError as error:
            self.failed = str(error)
            log.warning("the conversation goes on without its history: %s", error)
            return []
        return [entry.message for entry in found]

    def _write(self, said: Sequence[Message]) -> None:
        with self._lock:
            self._waiting += said
            try:
                self._remember(self._waiting)
            except StoreError as error:
                self.failed = str(error)
                log.warning("%d items wait to be stored: %s", len(self._waiting), error)
            else:
                self._waiting, self.failed = [], ""

    def _remember(self, said: Sequence[Message]) -> None:
        scope = self._scope
        try:
            self._memory.remember(said, **scope.names)
        except ConflictError:  # an id that stands for something else already says nothing
            ids = [message.message_id for message in said]
            found = self._memory.messages.get(scope, ids)
            taken = {entry.message.message_id: entry.message for entry in found}
            self._memory.remember([_renamed(one, taken) for one in said], **scope.names)

    def _pop(self) -> Item | None:
        while (message := self._take_newest()) is not None:
            if items := items_of(message):
                # Another door's message may say and call at once; only the last goes.
                self._write([message_of(item) for item in items[:-1]])
                return items[-1]
        return None

    def _take_newest(self) -> Message | None:
        with self._lock:
            if self._waiting:
                return self._waiting.pop()
            newest = self._memory.messages.list(self._scope, last=1)
            for entry in newest:
                self._memory.forget(
                    user=self._scope.user,
                    session=self.session_id,
                    scrub=False,
                    message=entry.message.message_id,
                )
            return newest[0].message if newest else None

    def _clear(self) -> None:
        with self._lock:
            self._memory.forget(user=self._scope.user, session=self.session_id, scrub=False)
            self._waiting = []


def message_of(item: Mapping[str, Any]) -> Message:
    """The message that says what an item says, and keeps the rest of it."""
    id_ = item.get("id")
    known: Item = {"message_id": id_} if isinstance(id_, str) and _UNIQUE.fullmatch(id_) else {}
    try:
        fields, rest = _split(dict(item))
        is_plain = "content" in fields and rest == {"role": fields["role"], "content": None}
        data = None if is_plain else {ITEM: _dump(rest)}
        return Message(**fields, **known, structured_data=data)
    except MessageError:  # it is kept, though nobody can read it
        data = {ITEM: _dump(dict(item))}
        return Message(_role(item), None, **known, structured_data=data)


def items_of(message: Message) -> list[Item]:
    """The item that a message was made of, or those that say what another door's message says."""
    kept = (message.structured_data or {}).get(ITEM)
    if not isinstance(kept, str):
        return _usual(message)
    item: Item = json.loads(kept)
    field = _CALLS.get(str(item.get("type")))
    if field is not None and message.tool_calls:
        item[field] = _filled(item[field], message.tool_calls[0].arguments)
    elif message.content is not None:  # else the item was kept whole
        field = "output" if message.role == "tool" else "content"
        item[field] = _filled(item[field], message.content)
    return [item]


def _split(item: Item) -> tuple[dict[str, Any], Item]:
    """The fields of an item's message, and the item without what they hold."""
    kind, role, id_ = str(item.get("type")), _role(item), str(item.get("call_id") or "")
    field = _CALLS.get(kind) or ("output" if role == "tool" else "content")
    # Reasoning is not said to anybody, and what a provider did by itself has no common form.
    if kind == "reasoning" or not isinstance(item.get(field), str | list):
        return {"role": role}, item
    words, left = _lifted(item[field])
    rest = {**item, field: left}
    if kind in _CALLS:
        form = "function" if kind == "function_call" else "custom"
        call = ToolCallMsg(id_, id_, form, str(item.get("name")), words)
        return {"role": role, "tool_calls": [call]}, rest
    return {"role": role, "content": words, "tool_call_id": id_ or None}, rest


def _role(item: Mapping[str, Any]) -> str:
    if str(item.get("type")).endswith("_output"):
        return "tool"
    return _ROLES.get(str(item.get("role")), "assistant")


def _lifted(content: Any) -> tuple[Any, Any]:
    """What an item says in our own form, and what is left of it: None where a word was."""
    if isinstance(content, str):
        return replace_unstorable(content), None if replace_unstorable(
            content
        ) == content else content
    pairs = [_lifted_part(part) for part in content]
    said, rest = [part for part, _ in pairs], [part for _, part in pairs]
    is_text = len(said) == 1 and isinstance(said[0], dict) and said[0].get("type") == "text"
    return said[0]["text"] if is_text else said, rest


def _lifted_part(part: Any) -> tuple[Any, Any]:
    for name in _WORDS:
        if isinstance(part, dict) and isinstance(words := part.get(name), str):
            said = replace_unstorable(words)
            ours = {"url": said} if name == "image_url" else said
            rest = {**part, name: None if said == words else words}
            return {"type": name, name: ours}, rest
    return part, None


def _filled(rest: Any, content: Any) -> Any:
    """An item's content, of what was left of it and of what its message says."""
    if rest is None:
        return content
    if not isinstance(rest, list):
        return rest
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if len(parts) != len(rest):  # somebody has revised the message
        return readable(content)
    return [_filled_part(one, part) for one, part in zip(rest, parts, strict=True)]


def _filled_part(rest: Any, part: Any) -> Any:
    if rest is None:
        return part
    for name in _WORDS:
        if name in rest and rest[name] is None and part.get("type") == name:
            return {**rest, name: part[name]["url"] if name == "image_url" else part[name]}
    return rest


def _usual(message: Message) -> list[Item]:
    if message.role == "tool":
        words = {"call_id": message.answered_call_id() or "", "output": readable(message.content)}
        return [{"type": "function_call_output", **words}]
    said = readable(message.content)
    is_said = bool(said) or (isinstance(message.content, str) and not message.tool_calls)
    items: list[Item] = [{"role": message.role, "content": said}] if is_said else []
    if message.images and message.role == "user":
        shown = [
            {"type": "input_image", "image_url": url, "detail": "auto"} for url in message.images
        ]
        items = [{"role": "user", "content": [{"type": "input_text", "text": said}, *shown]}]
    calls = [
        {"type": "function_call", "call_id": it.call_id, "name": it.name, "arguments": it.arguments}
        for it in message.tool_calls
    ]
    return items + calls


def _renamed(message: Message, taken: dict[str, Message]) -> Message:
    held = taken.setdefault(message.message_id, message)
    same = replace(held, created_at=message.created_at) == message
    return message if same else replace(message, message_id=new_id())


def _dump(item: Item) -> str:
    try:
        return json.dumps(item)  # in ASCII: any text can be kept so
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageError(f"an item is not JSON: {type(error).__name__}") from None
