"""The toolbox: what an agent may do with its memory, for every framework's tools.

Plain functions of plain values, with the words a model reads about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, get_args

from memorist.agents import tool_schema as schema
from memorist.context.window import Window
from memorist.errors import ConflictError, InvalidError, MessageError, ScopeError, StoreError
from memorist.memory import Memory
from memorist.records.memory_item import Kind, MemoryItem
from memorist.records.message import ROLES, Message, Source, least_trusted, readable
from memorist.records.query import Hit
from memorist.records.values import check_share, new_id
from memorist.views.library import WINDOW, Library
from memorist.views.notebook import Notebook

DEADLINE_MS = 1_000.0  # a model that asks outright can wait longer than a reply can
IMPORTANCE = 0.7
MOST_HITS, MOST_ARTICLES, MOST_TAGS = 200, 100, 1_000
LONGEST_QUESTION = 200_000  # characters: more of them take a second or more to count
LONGEST_SAID = 8 * 1024 * 1024  # characters, as many as a request may bring
WRITER: Source = "assistant"  # whose words they are that a model stores
READING = ("recall", "retrieve_context")
NAMES = (
    "recall",
    "remember",
    "store_session_message",
    "store_concept",
    "store_episode",
    "store_fact",
    "store_procedure",
    "store_working_memory",
    "summarize_session",
    "manage_long_term_memory",
    "retrieve_context",
)
_ROLES = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system"}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What an agent may do with the memory of its user.

        box = Toolbox(memory, user="ada", agent="tutor")
        box.store_fact("Ada speaks German.", subject="Ada", predicate="speaks", object="German")
        print(box.recall("which languages?")[0]["text"])

    Without a user it is for many: `for_user` gives each their own. With one, it refuses others.
    """

    memory: Memory
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    library: Library | None = None
    window: Window = field(default_factory=lambda: Window(max_tokens=WINDOW))

    def for_user(self, user_id: str | None) -> Toolbox:
        """The same for one user; a toolbox that has a user refuses any other."""
        if not user_id and self.user is None:
            raise ScopeError("no user is named; give user_id")
        if self.user is not None and user_id and user_id != self.user:
            raise ScopeError("this toolbox is for another user; leave user_id out")
        return self if self.user is not None else replace(self, user=user_id)

    def recall(self, query: schema.Question, limit: schema.Limit = 10) -> list[schema.RecalledItem]:
        """Search the memory of past conversations: messages, facts, memories and notes.

        Use it before you answer anything that was or may have been talked about before. Each
        result says when it was said and why it was found.
        """
        check_length(query, LONGEST_QUESTION, "query")
        _check_count(limit, MOST_HITS, "limit")
        found = self.memory.recall(
            query, user=self._user, agent=self.agent, limit=limit, deadline_ms=DEADLINE_MS
        )
        if not found.hits and (silent := [*found.late, *found.failed]):
            # An empty list would say that nothing is known.
            raise StoreError(f"the memory could not be searched in time: {', '.join(silent)}")
        return [_recalled(hit) for hit in found.hits]

    def remember(
        self, content: schema.Verbatim, role: schema.Role = "user"
    ) -> schema.RememberedMessage:
        """Store something that was said in this conversation, word for word, for good.

        What is worth keeping of it is found out in the background.
        """
        check_length(content, LONGEST_SAID, "content")
        message = Message(_role(role), content)
        done = self.memory.remember(
            message,
            user=self._user,
            agent=self.agent,
            session=self.session,
            source=_source(least_trusted((message.role, WRITER))),
        )
        return _stored(message, done.session_id, done.added)

    def store_session_message(
        self,
        session_id: schema.SessionId,
        user_id: schema.UserId,
        role: schema.Role,
        content: schema.Verbatim,
        importance_score: schema.Importance = IMPORTANCE,
        message_type: schema.MessageType = None,
        message_id: schema.MessageId = None,
    ) -> schema.RememberedMessage:
        """Store one message of a conversation, word for word.

        With a message_id it may be sent again: it is stored once.
        """
        check_share(importance_score, "importance_score")
        check_length(content, LONGEST_SAID, "content")
        data = {"importance_score": importance_score}
        message = Message(
            _role(role),
            content,
            message_id=message_id or new_id(),
            structured_data={**data, "message_type": message_type} if message_type else data,
        )
        user, session = self.for_user(user_id)._user, self._session(session_id)
        try:
            done = self.memory.remember(
                message,
                user=user,
                agent=self.agent,
                session=session,
                source=_source(least_trusted((message.role, "user"))),
            )
        except ConflictError:
            scope = self.memory.scope(user=user, session=session)
            if not _is_there(self.memory.messages.get(scope, [message.message_id]), message):
                raise
            return _stored(message, session, 0)
        return _stored(message, done.session_id, done.added)

    def store_concept(
        self,
        content: schema.Content,
        importance: schema.Importance = IMPORTANCE,
        tags: schema.Tags = None,
    ) -> schema.StoredMemory:
        """Keep a concept: what something is or means, a definition, how things hang together."""
        return self._keep("concept", content, importance, tags)

    def store_episode(
        self,
        content: schema.Content,
        importance: schema.Importance = IMPORTANCE,
        tags: schema.Tags = None,
    ) -> schema.StoredMemory:
        """Keep an episode: something that happened, with whom, where and when."""
        return self._keep("episode", content, importance, tags)

    def store_fact(
        self,
        content: schema.Content,
        importance: schema.Importance = IMPORTANCE,
        tags: schema.Tags = None,
        subject: schema.Subject = None,
        predicate: schema.Predicate = None,
        object: schema.Object = None,
    ) -> schema.StoredMemory:
        """Keep a fact: something that is so, as a statement.

        With subject, predicate and object it also becomes a link between the two; an older one
        that cannot hold beside it is kept as past.
        """
        parts = [part for part in (subject, predicate, object) if part]
        for part in parts:
            check_length(part, LONGEST_QUESTION, "a part of the fact")
        if len(parts) not in (0, 3):
            raise InvalidError("give subject, predicate and object, or none of them")
        kept = self._keep("fact", content, importance, tags)
        if len(parts) == 3:
            kept["fact_id"] = self.memory.facts.add(
                *parts, user=self._user, agent=self.agent, source=WRITER
            )
            if not kept["fact_id"]:
                kept["why"] = "someone more trusted says otherwise, so the link was not changed"
        return kept

    def store_procedure(
        self,
        content: schema.Content,
        importance: schema.Importance = IMPORTANCE,
        tags: schema.Tags = None,
    ) -> schema.StoredMemory:
        """Keep a procedure: how something is done, step by step."""
        return self._keep("procedure", content, importance, tags)

    def store_working_memory(
        self,
        content: schema.Content,
        importance: schema.Importance = IMPORTANCE,
        tags: schema.Tags = None,
    ) -> schema.StoredMemory:
        """Keep something for now: what matters to the task at hand, and expires after it."""
        return self._keep("working", content, importance, tags)

    def summarize_session(
        self,
        session_id: schema.SessionId,
        user_id: schema.UserId,
        force_update: schema.Force = False,
    ) -> schema.SessionSummary:
        """Summarise the older messages of a conversation, if there are new ones among them.

        The messages themselves stay. Without new ones, you get the summary as it is.
        """
        user, session = self.for_user(user_id)._user, self._session(session_id)
        window = replace(self.window, keep_last=0) if force_update else self.window
        made = self.memory.compress(user=user, session=session, window=window)
        newest = next(iter(self.memory.summaries(user=user, session=session)), None)
        if made is not None:
            why = made.fell_back
        else:
            why = "nothing new is to be summarised" if newest else "there are not enough messages"
        return schema.SessionSummary(
            session_id=session,
            updated=made is not None,
            messages=newest.messages if newest else 0,
            tokens=newest.tokens if newest else 0,
            tokens_saved=newest.saved if newest else 0,
            made_by=newest.made_by if newest else "",
            text=newest.text if newest else "",
            why=why,
        )

    def manage_long_term_memory(
        self,
        operation: schema.Operation = "read",
        content: schema.NoteText = None,
        section_header: schema.Header = None,
    ) -> str:
        """Read or edit your notes about the user: one Markdown text, kept over conversations.

        `overwrite`, `append` and `prepend` need content, `delete_section_by_header` needs
        section_header, `replace_section_by_header` needs both.
        """
        check_length(content, LONGEST_SAID, "content")
        notes = Notebook(self.memory, user=self._user, agent=self.agent)
        return notes.manage(operation, content, section_header)

    def retrieve_context(
        self, query: schema.Question, top_k: schema.Limit = 5, reserved_tokens: schema.Reserved = 0
    ) -> list[schema.CitedArticle]:
        """Look a question up in the articles on the shelf, as far as they fit the window.

        Cite what you use of them by its citation.
        """
        check_length(query, LONGEST_QUESTION, "query")
        _check_count(top_k, MOST_ARTICLES, "top_k")
        found = self.articles().retrieve(
            query, top_k, reserved_tokens, window=self.window.budget, model=self.window.model
        )
        return [
            schema.CitedArticle(
                id=it.id,
                title=it.title,
                citation=it.citation,
                text=it.text,
                whole=it.whole,
                tokens=it.tokens,
                why=str(it.why),
            )
            for it in found
        ]

    def articles(self) -> Library:
        """The library that `retrieve_context` reads."""
        return self.library or Library(self.memory)

    def _session(self, session_id: str | None) -> str:
        session = session_id or self.session
        if not session:
            raise ScopeError("no session is named; give session_id")
        return session

    @property
    def _user(self) -> str:
        if self.user is None:
            raise ScopeError("no user is named; give user_id")
        return self.user

    def _keep(
        self, kind: Kind, content: str, importance: float, tags: list[str] | None
    ) -> schema.StoredMemory:
        check_share(importance, "importance")
        check_length(content, LONGEST_QUESTION, "content")
        if not isinstance(tags, list | tuple | None):
            raise InvalidError(f"tags must be a list of words, got {type(tags).__name__}")
        if len(tags or ()) > MOST_TAGS:
            raise InvalidError(f"there are {len(tags or ())} tags; there may be {MOST_TAGS}")
        id_ = self.memory.memories.add(
            content,
            user=self._user,
            agent=self.agent,
            session=self.session,
            kind=kind,
            importance=importance,
            tags=tuple(tags or ()),
            source=WRITER,
        )
        return _stored_memory(kind, self.memory.memories.get(id_, user=self._user) if id_ else None)


def tool_schemas() -> list[schema.ToolSchema]:
    """The schemas of all tools of the toolbox."""
    return [schema.schema_of(getattr(Toolbox, name), reads=name in READING) for name in NAMES]


def check_length(text: str | None, most: int, name: str) -> None:
    """What is no text at all is told of where it is used."""
    if isinstance(text, str) and len(text) > most:
        raise InvalidError(f"{name} has {len(text)} characters; it may have {most} at most")


def _check_count(count: int, most: int, name: str) -> None:
    if not isinstance(count, int) or not 1 <= count <= most:
        raise InvalidError(f"{name} must be a number from 1 to {most}")


def _role(role: str) -> str:
    known = _ROLES.get(role, role) if isinstance(role, str) else role
    if known not in ROLES:
        raise MessageError(f"role must be one of {', '.join(ROLES)}")
    return known


def _source(name: str) -> Source:
    return next(one for one in get_args(Source) if one == name)


def _stored(message: Message, session_id: str, added: int) -> schema.RememberedMessage:
    return schema.RememberedMessage(
        message_id=message.message_id, session_id=session_id, stored=bool(added)
    )


def _is_there(found: Sequence[Any], message: Message) -> bool:
    """Whether another door stored the same words under the same id, and told more of them."""
    for entry in found:
        held = entry.message
        words = (held.content or "", str(held.content), readable(held.content), held.text)
        if held.role == message.role and message.content in words:
            return True
    return False


def _recalled(hit: Hit) -> schema.RecalledItem:
    return schema.RecalledItem(
        id=hit.id,
        kind=hit.kind,
        text=hit.text,
        when=_iso(hit.created_at),
        why=str(hit.why),
        role=hit.speaker or hit.role or "",
        session_id=hit.session_id or "",
    )


def _stored_memory(kind: Kind, item: MemoryItem | None) -> schema.StoredMemory:
    return schema.StoredMemory(
        id=item.id if item else "",
        kind=item.kind if item else kind,
        category=item.category if item else "",
        importance=item.importance if item else 0.0,
        tags=list(item.tags) if item else [],
        known_since=_iso(item.created_at if item else None),
        expires_at=_iso(item.expires_at if item else None),
        fact_id="",
        why="" if item else "it says nothing that is not known already",
    )


def _iso(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""
