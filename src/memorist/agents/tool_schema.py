"""What a model reads about the toolbox's tools: their arguments, results and descriptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, get_args, get_origin, get_type_hints

Question = Annotated[str, "What you want to know: a question or keywords."]
Limit = Annotated[int, "How many results at most."]
Content = Annotated[str, "What to keep, as one statement that is clear by itself."]
Importance = Annotated[float, "How much it matters, from 0 to 1."]
Tags = Annotated[list[str] | None, "Words to find it by."]
SessionId = Annotated[str, "The id of the conversation."]
UserId = Annotated[str, "Whose memory it is."]
Role = Annotated[str, "Who said it: user, assistant, system or tool."]
Verbatim = Annotated[str, "What was said, word for word."]
MessageType = Annotated[str | None, "What the sender calls this kind of message."]
MessageId = Annotated[str | None, "Its own id: a message sent twice is stored once."]
Force = Annotated[bool, "Summarise the newest messages too, which else stay as they are."]
Operation = Annotated[
    Literal[
        "read",
        "overwrite",
        "append",
        "prepend",
        "delete_section_by_header",
        "replace_section_by_header",
        "delete_all_notes",
    ],
    "What to do with the notes.",
]
NoteText = Annotated[str | None, "The Markdown to write; not for read and the deletions."]
Header = Annotated[str | None, "The header of the section to replace or delete, as in `## Plans`."]
Reserved = Annotated[int, "Tokens that the conversation takes of the window already."]
Subject = Annotated[str | None, "Whom or what the fact is about; with predicate and object."]
Predicate = Annotated[str | None, "What is said of the subject, as in `lives in`."]
Object = Annotated[str | None, "What completes it, as in `Berlin`."]


class RecalledItem(TypedDict):
    """Something remembered, and why it was found."""

    id: str
    kind: str
    text: str
    when: str
    why: str
    role: str
    session_id: str


class RememberedMessage(TypedDict):
    """Where a message is; `stored` is false if it was there already."""

    message_id: str
    session_id: str
    stored: bool


class StoredMemory(TypedDict):
    """A memory as it is kept; without an id it was not, and `why` tells the reason."""

    id: str
    kind: str
    category: str
    importance: float
    tags: list[str]
    known_since: str
    expires_at: str
    fact_id: str
    why: str


class SessionSummary(TypedDict):
    """The summary of a session; `updated` says whether it is new."""

    session_id: str
    updated: bool
    messages: int
    tokens: int
    tokens_saved: int
    made_by: str
    text: str
    why: str


class CitedArticle(TypedDict):
    """An article or a part of one, and where it stands."""

    id: str
    title: str
    citation: str
    text: str
    whole: bool
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool; `default` is `...` where it is required."""

    name: str
    type: Any
    description: str
    default: Any = ...


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool: its name, description, arguments and result type, and whether it only reads."""

    name: str
    description: str
    arguments: tuple[Argument, ...]
    returns: Any
    reads: bool

    def without_empty(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call without optional ones that were left empty."""
        optional = {argument.name for argument in self.arguments if argument.default in ("", [])}
        return {key: value for key, value in arguments.items() if value or key not in optional}


def schema_of(method: Callable[..., Any], *, reads: bool) -> ToolSchema:
    """The schema of a method, by its signature and docstring."""
    hints = get_type_hints(method, include_extras=True)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    arguments = tuple(_argument(it, hints[it.name]) for it in parameters)
    description = inspect.cleandoc(method.__doc__ or "")
    return ToolSchema(method.__name__, description, arguments, hints["return"], reads)


def _argument(parameter: inspect.Parameter, hint: Any) -> Argument:
    """What may be None is empty instead: that keeps the schemas that models read simple."""
    kind, description = get_args(hint)
    default = ... if parameter.default is parameter.empty else parameter.default
    if get_origin(kind) is UnionType:
        kind = next(part for part in get_args(kind) if part is not NoneType)
        default = "" if kind is str else []
    return Argument(parameter.name, kind, description, default)
