"""Messages, exactly as they were said."""

import contextlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import dropwhile
from typing import Any, Self

from memorist.errors import ImageError, InvalidError, MessageError
from memorist.records.json_values import check_json, dump_json
from memorist.records.values import (
    MAX_SHORT_BYTES,
    MadeAt,
    check_key,
    check_moment,
    check_text,
    new_id,
    shorten,
)
from memorist.records.wire import call_fields, response_fields

_DATA_URL = re.compile(r"data:[\w.+/-]+;base64,")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{200,}={0,2}")  # encoded bytes, which are not text to read
ROLES = ("user", "assistant", "system", "tool")
_ACTIONS = ("call_tool", "invoke_agent", "final_response")
_KEPT_AS_IS = ("name", "tool_call_id", "structured_data", "images", "unfinished")
_CALL_FIELDS = ("id", "call_id", "type", "name", "arguments")


class _Unset:
    """So that `help` shows a name for the default."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()  # the default of parameters for which None would be a mistake


def given(**arguments: Any) -> dict[str, Any]:
    """The arguments that are not UNSET."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


MAX_NAME_CHARS = 300  # of the path of an image that cannot be read
GENERAL_FACTS = "general_facts"  # in structured_data: what it states in general is kept as well
ORDINARY = 0.5  # the importance of a message that has no score
Content = str | dict[str, Any] | list[Any] | None


@dataclass(frozen=True, slots=True)
class ToolCallMsg:
    """A model's request to run a tool; `arguments` is the JSON text as the model wrote it."""

    id: str
    call_id: str
    type: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        for name in _CALL_FIELDS:
            check_text(getattr(self, name), f"tool_calls.{name}", MessageError)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read a call in our own form or in OpenAI's, LangChain's, Anthropic's or Gemini's."""
        fields = call_fields(dict(data), f"call_{new_id()}")
        return cls(**{name: fields[name] for name in _CALL_FIELDS})

    def to_dict(self) -> dict[str, Any]:
        """The call as a chat-completions API takes it."""
        if self.type == "custom":  # its input is free text, not JSON
            inner = {"name": self.name, "input": self.arguments}
            return {"id": self.call_id, "type": self.type, "custom": inner}
        inner = {"name": self.name, "arguments": self.arguments}
        return {"id": self.call_id, "type": self.type, "function": inner}


@dataclass(frozen=True, slots=True)
class AgentCallMsg:
    """A request to invoke another agent."""

    agent_name: str
    request: Any

    def __post_init__(self) -> None:
        check_text(self.agent_name, "agent_calls.agent_name", MessageError)
        request = check_json(self.request, "agent_calls.request", MessageError)
        object.__setattr__(self, "request", request)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        if "agent_name" not in data:
            raise MessageError("agent_calls holds a call without an agent_name")
        return cls(agent_name=data["agent_name"], request=data.get("request"))

    def to_dict(self) -> dict[str, Any]:
        return {"agent_name": self.agent_name, "request": self.request}


@dataclass(frozen=True)
class MessageContent:
    """Deprecated: put the dict itself into `Message.content`."""

    thought: str | None = None
    next_action: str | None = None
    action_input: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        cure = "MessageContent is deprecated; pass a dict as Message.content"
        warnings.warn(cure, DeprecationWarning, stacklevel=3)

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Message:
    """One message of a conversation, validated when it is made.

    `images` are paths, http(s) URLs or data URLs as given; see `to_wire`. `unfinished` says that
    the message is being streamed, or that its writer died before the end.
    """

    role: str
    content: Content = None
    message_id: str = field(default_factory=new_id)
    name: str | None = None
    tool_calls: Sequence[ToolCallMsg] = ()
    agent_calls: Sequence[AgentCallMsg] = ()
    structured_data: dict[str, Any] | None = None
    images: Sequence[str] = ()
    tool_call_id: str | None = None
    created_at: datetime = field(default_factory=partial(MadeAt.now, UTC))
    unfinished: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.role not in ROLES:
            raise MessageError(f"role must be one of {', '.join(ROLES)}")
        put(self, "role", ROLES[ROLES.index(self.role)])
        put(self, "content", _check_content(self.content))
        put(self, "message_id", check_key(self.message_id, "message_id", MessageError))
        if not self.message_id:
            raise MessageError("message_id is empty")
        if self.name is not None:
            put(self, "name", check_key(self.name, "name", MessageError))
        if (call_id := self.tool_call_id) is not None:
            checked = check_key(call_id, "tool_call_id", MessageError, MAX_SHORT_BYTES)
            put(self, "tool_call_id", checked)
        for name, make in _PARTS.items():
            if (values := getattr(self, name)) != ():
                put(self, name, _made_of(values, name, make))
        if self.structured_data is not None:
            if not isinstance(self.structured_data, Mapping):
                raise MessageError("structured_data must be a dict")
            data = check_json(self.structured_data, "structured_data", MessageError)
            put(self, "structured_data", data)
        put(self, "created_at", check_moment(self.created_at, "created_at", MessageError))
        if type(self.unfinished) is not bool:
            raise MessageError(f"unfinished must be a bool, got {type(self.unfinished).__name__}")

    @property
    def text(self) -> str:
        """What a person would read: the content, then the calls."""
        if type(self.content) is str and not self.tool_calls and not self.agent_calls:
            return self.content
        parts = [readable(self.content)] if self.content else []
        parts += [f"{call.name} {call.arguments}" for call in self.tool_calls]
        parts += [f"{call.agent_name} {readable(call.request)}" for call in self.agent_calls]
        return "\n".join(parts)

    @property
    def importance(self) -> float:
        """How much it matters, from 0 to 1, by the `importance_score` in its structured data."""
        if not self.structured_data:  # as mostly
            return ORDINARY
        score = self.structured_data.get("importance_score")
        return float(score) if isinstance(score, int | float) and 0 <= score <= 1 else ORDINARY

    @property
    def tells_general_facts(self) -> bool:
        """Whether all that it states is kept as facts, not only what concerns its author."""
        return bool((self.structured_data or {}).get(GENERAL_FACTS))

    @classmethod
    def from_response_dict(cls, response: Any, **overrides: Any) -> Self:
        """Make a message of a provider's reply: OpenAI, Anthropic, Gemini or LangChain."""
        return cls(**{**response_fields(response), **overrides})

    def to_wire(self, encode_image: Callable[[str], str] | None = None) -> dict[str, Any]:
        """The dict that a chat API takes. Images stay as given unless an encoder is passed.

        In the place of an image that cannot be read stands a text that says which and why.
        """
        wire: dict[str, Any] = {"role": self.role, "content": self._wire_content(encode_image)}
        if self.name is not None:
            wire["name"] = self.name
        if self.tool_calls:
            wire["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        if self.role == "tool" and (call_id := self.answered_call_id()) is not None:
            wire["tool_call_id"] = call_id
        return wire

    def answered_call_id(self) -> str | None:
        """The id of the tool call this answers, also where it came inside JSON content."""
        if self.tool_call_id is not None:
            return self.tool_call_id
        try:
            return check_text(self.json_content().get("tool_call_id"), "tool_call_id", MessageError)
        except MessageError:
            return None

    def json_content(self) -> dict[str, Any]:
        """The content where it is a JSON object, be it as text; an empty dict where it is not."""
        content: Any = self.content
        if isinstance(content, str) and content.lstrip().startswith("{"):
            with contextlib.suppress(ValueError, RecursionError):
                content = json.loads(content)
        return content if isinstance(content, dict) else {}

    def _wire_content(self, encode_image: Callable[[str], str] | None) -> Any:
        content = dump_json(self.content) if isinstance(self.content, dict) else self.content
        if isinstance(content, list):
            content = check_json(content, "content")  # a copy, which the caller may change
        if not self.images:
            # A model's API takes null only beside tool calls.
            return "" if content is None and not self.tool_calls else content
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else []
        if isinstance(content, list):
            parts.extend(content)
        for image in self.images:
            try:
                url = encode_image(image) if encode_image else image
                parts.append({"type": "image_url", "image_url": {"url": url}})
            except ImageError as error:  # the rest of a conversation stays readable without it
                reason = str(error).removeprefix("images: ")
                named = f"[image {shorten(image, MAX_NAME_CHARS)}: {reason}]"
                parts.append({"type": "text", "text": named})
        return parts

    def changed(self, **changes: Any) -> Self:
        """A copy with some fields replaced; unknown fields raise `MessageError`."""
        for name in changes:
            if name not in self.__dataclass_fields__ or name == "message_id":
                raise MessageError(f"{name} is not a field of a message that can be changed")
        return replace(self, **changes)


def _refuse_assignment(message: Message, name: str, _: object) -> None:
    raise FrozenInstanceError(
        f"a message stays as it is: message.changed({name}=…) makes another one, and update("
        f"message_id, {name}=…) of a memory changes the stored one"
    )


Message.__setattr__ = _refuse_assignment  # type: ignore[assignment,method-assign]

MessageLike = str | Message | Mapping[str, Any]
"""A message, the dict of one, or the text of one by the user."""


def to_messages(given: MessageLike | Iterable[MessageLike]) -> list[Message]:
    """Messages, from one or several in any form that is accepted."""
    is_one = isinstance(given, Message | str | Mapping) or _is_pair(given)
    several: Iterable[Any] = given if isinstance(given, Iterable) and not is_one else [given]
    return [one if isinstance(one, Message) else _to_message(one) for one in several]


def _to_message(given: Any) -> Message:
    if isinstance(given, str):
        return Message("user", given)
    if isinstance(given, Mapping) and "role" in given:
        ours = given["role"] in ROLES and not isinstance(given.get("content"), list)
        if ours and given.keys() <= Message.__dataclass_fields__.keys():
            return Message(**given)
        return Message.from_response_dict(dict(given))
    if _is_pair(given):
        raise InvalidError(f"give a pair as a dict: {{'role': {given[0]!r}, 'content': …}}")
    kind = type(given).__name__
    raise InvalidError(f"give messages, dicts with a role, or text, not {kind}")


def _is_pair(given: Any) -> bool:
    """Whether this is a role and a text, as other libraries take them, and not two messages."""
    return isinstance(given, tuple) and len(given) == 2 and given[0] in (*ROLES, "human", "ai")


def extract_action_from_message(message: Message) -> dict[str, Any] | None:
    """What the message asks for: call_tool, invoke_agent, final_response, or nothing."""
    if message.tool_calls:
        calls = [call.to_dict() for call in message.tool_calls]
        return {"next_action": "call_tool", "action_input": {"tool_calls": calls}}
    if message.agent_calls:
        agents = [call.to_dict() for call in message.agent_calls]
        return {"next_action": "invoke_agent", "action_input": {"agent_calls": agents}}
    content = message.content
    if isinstance(content, dict) and content.get("next_action") in _ACTIONS:
        action_input = content.get("action_input")
        return {"next_action": content["next_action"], "action_input": action_input or {}}
    if message.role == "assistant" and content:
        return {"next_action": "final_response", "action_input": {"response": content}}
    return None


def readable(value: Any) -> str:
    """The words in a JSON value, without its punctuation and without encoded images."""
    if isinstance(value, str):
        return "" if _DATA_URL.match(value) or _ENCODED.fullmatch(value) else value
    if isinstance(value, dict):
        words = [readable(item) for key, item in value.items() if key != "type" or len(value) == 1]
        return " ".join(filter(None, words))
    if isinstance(value, list):
        return " ".join(filter(None, (readable(item) for item in value)))
    return "" if value is None else str(value)


def _check_content(content: Any) -> Content:
    if isinstance(content, str):
        return check_text(content, "content", MessageError)
    if content is None:
        return None
    if isinstance(content, MessageContent):
        content = content.to_dict()
    parts = content if isinstance(content, list) else [None]
    if isinstance(content, Mapping) or all(isinstance(part, str | Mapping) for part in parts):
        checked: dict[str, Any] | list[Any] = check_json(content, "content", MessageError)
        return checked
    raise MessageError(
        f"content must be text, a dict or a list of content parts, got {type(content).__name__}"
    )


def _made_of(values: Any, name: str, make: Callable[[Any], Any]) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple | None):
        raise MessageError(f"{name} must be a list, got {type(values).__name__}")
    return tuple(map(make, values or ()))


def _call(call: Any, kind: type[ToolCallMsg | AgentCallMsg], name: str) -> Any:
    if isinstance(call, kind):
        return call
    if not isinstance(call, Mapping):
        raise MessageError(f"{name} holds a {type(call).__name__}; give dicts")
    return kind.from_dict(call)


_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "tool_calls": lambda call: _call(call, ToolCallMsg, "tool_calls"),
    "agent_calls": lambda call: _call(call, AgentCallMsg, "agent_calls"),
    "images": lambda image: check_text(image, "images", MessageError),
}


def extras(message: Message) -> dict[str, Any]:
    """The fields of a message besides role, id, moment and plain text, as JSON."""
    more: dict[str, Any] = {}
    if not isinstance(message.content, str):
        more["content"] = message.content
    for name in _KEPT_AS_IS:
        if (value := getattr(message, name)) not in (None, (), False):
            more[name] = list(value) if name == "images" else value
    if calls := message.tool_calls:
        more["tool_calls"] = [[getattr(it, name) for name in _CALL_FIELDS] for it in calls]
    if message.agent_calls:
        more["agent_calls"] = [[call.agent_name, call.request] for call in message.agent_calls]
    return more


def from_extras(role: str, text: Any, more: dict[str, Any], **known: Any) -> Message:
    """The message with this text and these extras, checked."""
    kept = {key: more[key] for key in _KEPT_AS_IS if key in more}
    kept["tool_calls"] = [ToolCallMsg(*call) for call in more.get("tool_calls", ())]
    kept["agent_calls"] = [AgentCallMsg(*call) for call in more.get("agent_calls", ())]
    return Message(role, more.get("content", text), **kept, **known)


def without_orphan_results(messages: Iterable[Message]) -> list[Message]:
    """The messages without tool results at their beginning: models refuse these without calls."""
    return list(dropwhile(lambda message: message.role == "tool", messages))
