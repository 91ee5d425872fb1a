"""What a model reads about the tools' arguments, and what they give back."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

Question = Annotated[str, "What you want to know: a question or keywords."]
Limit = Annotated[int, "How many results at most."]
Content = Annotated[str, "What to keep, as one statement that is clear by itself."]
Importance = Annotated[float, "How much it matters, from 0 to 1."]
Tags = Annotated[list[str] | None, "Words to find it by."]
SessionId = Annotated[str, "The id of the conversation."]
UserId = Annotated[str, "Whose memory it is."]
Role = Annotated[str, "Who said it: user, assistant, system or tool."]
Said = Annotated[str, "What was said, word for word."]
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


class Stamp(TypedDict, total=False):
    """What else may be told of a message."""

    message_type: Annotated[str | None, "What the sender calls this kind of message."]
    message_id: Annotated[str | None, "Its own id: a message sent twice is stored once."]


class Recalled(TypedDict):
    """Something remembered, and why it was found."""

    id: str
    kind: str
    text: str
    when: str
    why: str
    role: str
    session_id: str


class Stored(TypedDict):
    """Where a message is; `stored` is false if it was there already."""

    message_id: str
    session_id: str
    stored: bool


class Kept(TypedDict):
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


class Summed(TypedDict):
    """The summary of a session; `updated` says whether it is new."""

    session_id: str
    updated: bool
    messages: int
    tokens: int
    tokens_saved: int
    made_by: str
    text: str
    why: str


class Cited(TypedDict):
    """An article or a part of one, and where it stands."""

    id: str
    title: str
    citation: str
    text: str
    whole: bool
    tokens: int
    why: str
