"""Notes, summaries and articles: texts that are kept whole."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from memorist.errors import RecordError
from memorist.records.scope import Scope
from memorist.records.values import Checked, Key, ShortText, new_id, now


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One version of the Markdown note of a user and an agent; the first version is 1."""

    id: str
    scope: Scope
    version: int
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Checked):
    """A text in place of the first `messages` of a session, the last of which has `last_seq`.

    It extends the summary with the id `previous`, if there is one. `tokens_before` is what those
    messages take, `tokens` what the text takes; `made_by` names the model, or is "extractive". A
    summary that a user `asked` for is used even where there is room for the messages.
    """

    scope: Scope
    text: str
    last_seq: int
    messages: int
    made_by: Key
    tokens_before: int
    tokens: int
    previous: str | None = None
    asked: bool = False
    id: Key = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        if self.scope.session is None:
            raise RecordError("a summary is of a session; name it in the scope")
        Checked.__post_init__(self)

    @property
    def saved(self) -> int:
        """How many tokens it saves in a window."""
        return max(self.tokens_before - self.tokens, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """A new summary, and the tokens that it saves.

    `tokens_before` counts what it replaces in a window: the previous summary and the messages.
    `fell_back` says why the model did not make it, and quotes no message.
    """

    summary: Summary
    message_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    fell_back: str = ""

    @property
    def saved(self) -> int:
        """How many tokens the window needs less."""
        return max(self.tokens_before - self.tokens_after, 0)

    @property
    def made_by(self) -> str:
        """The model's name, or "extractive"."""
        return self.summary.made_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Article(Checked):
    """A document that an agent may quote from; its uri says where it came from."""

    scope: Scope
    title: ShortText
    text: str
    uri: str = ""
    id: Key = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        if self.scope.session is not None:
            raise RecordError("an article belongs to a user or an agent, not to a session")
        Checked.__post_init__(self)

    @property
    def owner(self) -> str:
        """The key of its user's rows."""
        return self.scope.owner

    @property
    def digest(self) -> str:
        """The SHA-256 of its text, so that an unchanged file is not stored again."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class Chunk(NamedTuple):
    """A span of an article that search finds by itself, and the headings above it."""

    start: int
    stop: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleInfo:
    """An article in a list: without its text."""

    id: str
    title: str
    uri: str
    digest: str
    chars: int
    created_at: datetime


class PutResult(NamedTuple):
    """What storing an article changed, and the id of the article that has its text.

    A `duplicate` has the text of another article, and was not stored beside it.
    """

    id: str
    change: Literal["added", "changed", "unchanged", "duplicate"]
