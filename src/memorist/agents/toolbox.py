"""Toolbox: the memory tools of an agent as plain methods, with the texts that a model reads."""

import json
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypedDict, TypeVar

from memorist import defaults
from memorist.agents.tool_schema import ToolSchema, schema_of, tool
from memorist.arguments import CheckedSettings
from memorist.context.tokens import TokenCounter
from memorist.context.window import Window
from memorist.errors import ConflictError, InvalidError, MessageError, ScopeError, StoreError
from memorist.library import WINDOW, Library
from memorist.memory import Memory
from memorist.notebook import Notebook
from memorist.records.log import Source, least_trusted
from memorist.records.memories import Kind
from memorist.records.message import ROLES, Message, readable
from memorist.records.query import Recall
from memorist.records.values import MAX_SHORT_BYTES, check_key, check_share, check_type, new_id
from memorist.records.wire import OTHER_ROLES

DEADLINE_MS = 1_000.0  # a model that asks outright can wait longer than a reply can
MOST_HITS, MOST_ARTICLES, MOST_TAGS = 200, 100, 1_000
LONGEST_QUESTION = 200_000  # characters: more of them take a second or more to count
LONGEST_SAID = 8 * 1024 * 1024  # characters, as many as a request may bring
MOST_TRIES = 3  # to find as many articles as fit
WRITER: Source = "assistant"  # the source of what a model stores
READING = ("recall", "retrieve_context")
T = TypeVar("T")

Question = Annotated[str, "What you want to know: a question or keywords."]
Limit = Annotated[int, "How many results at most."]
Content = Annotated[str, "What to keep, as one statement that is clear by itself."]
Importance = Annotated[float, "How much it matters, from 0 to 1."]
Tags = Annotated[list[str] | None, "Words to find it by."]
SessionId = Annotated[str, "The id of the conversation."]
UserId = Annotated[str, "Whose memory it is."]
Role = Annotated[str, "Who said it: user, assistant, system or tool. Believed of programs only."]
Verbatim = Annotated[str, "What was said, word for word."]
MessageType = Annotated[str | None, "What the sender calls this kind of message."]
MessageId = Annotated[str | None, "Its own id: a message sent twice is stored once."]
Name = Annotated[str | None, "The name of who said it; of the tool, where it is a tool's result."]
CallId = Annotated[str | None, "The id of the call that a tool's result answers."]
ToolCalls = Annotated[
    list[dict[str, Any]] | None, "The tools that an assistant calls: name, args and id of each."
]
Status = Annotated[
    str | None, "Whether a tool succeeded: success or error. An error is its content."
]
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
    """Something remembered, why it was found, its origin, and whether it is over, as history."""

    id: str
    kind: str
    text: str
    when: str
    why: str
    role: str
    speaker: str
    session_id: str
    origin: str
    over: str


class RememberedMessage(TypedDict):
    """Where a message is, and as whose; `stored` is false if it was there already."""

    message_id: str
    session_id: str
    role: str
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


class SessionDigest(TypedDict):
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
class Toolbox(CheckedSettings):
    """The memory tools of an agent, for one user or for many.

        box = Toolbox(memory, user="ada", agent="tutor")
        box.store_fact("Ada speaks German.", subject="Ada", predicate="speaks", object="German")
        print(box.recall("which languages?")[0]["text"])

    A toolbox with a user refuses other users; without one, `for_user` makes each user's own.
    What it stores is the assistant's, whatever role is named: a model must not speak for its user.
    With `program` no model calls it, and the roles are believed.
    """

    memory: Memory
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    library: Library | None = None
    window: Window = field(default_factory=lambda: Window(max_tokens=WINDOW))
    program: bool = False

    def for_user(self, user_id: str | None) -> Self:
        """The toolbox of one user; one that has a user already refuses any other."""
        if self.user is None:
            if not user_id:
                raise ScopeError("no user is named; give user_id")
            return replace(self, user=user_id)
        if user_id and user_id != self.user:
            raise ScopeError("this toolbox is for another user; leave user_id out")
        return self

    @tool
    def recall(self, query: Question, limit: Limit = 10) -> list[RecalledItem]:
        """Search the memory of past conversations: messages, facts, memories and notes.

        Use it before you answer anything that was or may have been talked about before. Each
        result says when it was said and why it was found.
        """
        check_length(query, LONGEST_QUESTION, "query")
        check_count(limit, MOST_HITS, "limit")
        found = self.find(query, limit)
        if not found.hits and (silent := [*found.late, *found.failed]):
            # An empty list would say that nothing is known.
            raise StoreError(f"the memory could not be searched in time: {', '.join(silent)}")
        return [_fields_of(RecalledItem, hit, when=_iso(hit.created_at)) for hit in found.hits]

    @tool
    def remember(self, content: Verbatim, role: Role = "user") -> RememberedMessage:
        """Store something that was said in this conversation, word for word, for good.

        What is worth keeping of it is found out in the background.
        """
        check_length(content, LONGEST_SAID, "content")
        return self._remember(Message(_role(role), content), self.user_id, self.session)

    @tool
    def store_session_message(
        self,
        session_id: SessionId,
        user_id: UserId,
        role: Role,
        content: Verbatim,
        importance_score: Importance = defaults.IMPORTANCE_SCORE,
        message_type: MessageType = None,
        message_id: MessageId = None,
        name: Name = None,
        tool_call_id: CallId = None,
        status: Status = None,
        tool_calls: ToolCalls = None,
    ) -> RememberedMessage:
        """Store one message of a conversation, word for word.

        With a message_id it may be sent again: it is stored once.
        """
        check_share(importance_score, "importance_score")
        check_length(content, LONGEST_SAID, "content")
        data = {"message_type": message_type, "status": status}
        data = {key: value for key, value in data.items() if value}
        message = Message(
            _role(role),
            content,
            message_id=message_id or new_id(),
            name=name,
            tool_call_id=tool_call_id,
            tool_calls=tool_calls or (),  # type: ignore[arg-type]  # dicts become calls
            structured_data={"importance_score": importance_score, **data},
        )
        user, session = self.for_user(user_id).user_id, self._session(session_id)
        return self._remember(message, user, session)

    @tool
    def store_concept(
        self, content: Content, importance: Importance = 0.7, tags: Tags = None
    ) -> StoredMemory:
        """Keep a concept: what something is or means, a definition, how things hang together."""
        return self._keep("concept", content, importance, tags)

    @tool
    def store_episode(
        self, content: Content, importance: Importance = 0.7, tags: Tags = None
    ) -> StoredMemory:
        """Keep an episode: something that happened, with whom, where and when."""
        return self._keep("episode", content, importance, tags)

    @tool
    def store_fact(
        self,
        content: Content,
        importance: Importance = 0.7,
        tags: Tags = None,
        subject: Subject = None,
        predicate: Predicate = None,
        object: Object = None,
    ) -> StoredMemory:
        """Keep a fact: something that is so, as a statement.

        With subject, predicate and object it also becomes a link between the two; an older one
        that cannot hold beside it is kept as past.
        """
        parts = [part for part in (subject, predicate, object) if part]
        for part in parts:
            check_key(part, "a part of the fact", InvalidError, MAX_SHORT_BYTES)
        if len(parts) not in (0, 3):
            raise InvalidError("give subject, predicate and object, or none of them")
        kept = self._keep("fact", content, importance, tags)
        if len(parts) == 3:
            kept["fact_id"] = self.memory.facts.add(
                *parts, user=self.user_id, agent=self.agent, source=WRITER
            )
            if not kept["fact_id"]:
                kept["why"] = "someone more trusted says otherwise, so the link was not changed"
        return kept

    @tool
    def store_procedure(
        self, content: Content, importance: Importance = 0.7, tags: Tags = None
    ) -> StoredMemory:
        """Keep a procedure: how something is done, step by step."""
        return self._keep("procedure", content, importance, tags)

    @tool
    def store_working_memory(
        self, content: Content, importance: Importance = 0.7, tags: Tags = None
    ) -> StoredMemory:
        """Keep something for now: what matters to the task at hand, and expires after it."""
        return self._keep("working", content, importance, tags)

    @tool
    def summarize_session(
        self, session_id: SessionId, user_id: UserId, force_update: Force = defaults.FORCE_UPDATE
    ) -> SessionDigest:
        """Summarise the older messages of a conversation, if there are new ones among them.

        The messages themselves stay. Without new ones, you get the summary as it is.
        """
        user, session = self.for_user(user_id).user_id, self._session(session_id)
        window = replace(self.window, keep_last=0) if force_update else self.window
        made = self.memory.compress(user=user, session=session, window=window)
        newest = next(iter(self.memory.summaries(user=user, session=session, limit=1)), None)
        if made is not None:
            why = made.fell_back
        else:
            why = "nothing new is to be summarised" if newest else "there are not enough messages"
        return SessionDigest(
            session_id=session,
            updated=made is not None,
            messages=newest.messages if newest else 0,
            tokens=newest.tokens if newest else 0,
            tokens_saved=newest.saved if newest else 0,
            made_by=newest.made_by if newest else "",
            text=newest.text if newest else "",
            why=why,
        )

    @tool
    def manage_long_term_memory(
        self, operation: Operation = "read", content: NoteText = None, section_header: Header = None
    ) -> str:
        """Read or edit your notes about the user: one Markdown text, kept over conversations.

        `overwrite`, `append` and `prepend` need content, `delete_section_by_header` needs
        section_header, `replace_section_by_header` needs both.
        """
        check_length(content, LONGEST_SAID, "content")
        notes = Notebook(self.memory, user=self.user_id, agent=self.agent)
        return notes.manage(operation, content, section_header)

    @tool
    def retrieve_context(
        self, query: Question, top_k: Limit = 5, reserved_tokens: Reserved = 0
    ) -> list[CitedArticle]:
        """Look a question up in the articles on the shelf, as far as they fit the window.

        Cite what you use of them by its citation.
        """
        check_length(query, LONGEST_QUESTION, "query")
        check_count(top_k, MOST_ARTICLES, "top_k")
        check_type(reserved_tokens, int, "reserved_tokens")
        counter, library = TokenCounter(self.window.counts_with()), self.articles()
        budget, model, cited = self.window.budget, self.window.model, list[CitedArticle]()
        left = budget - reserved_tokens
        for _ in range(MOST_TRIES):
            found = library.retrieve(query, top_k, reserved_tokens, window=budget, model=model)
            cited = [_fields_of(CitedArticle, article) for article in found]
            over = counter.chat_message(tool_answer(cited)) - left
            if over <= 0 or not cited:
                break
            reserved_tokens += over  # of the names of fields, and of line ends that are escaped
        while cited and counter.chat_message(tool_answer(cited)) > left:
            cited.pop()
        return cited

    def find(self, query: str, limit: int) -> Recall:
        """What `recall` finds."""
        return self.memory.recall(
            query, user=self.user_id, agent=self.agent, limit=limit, deadline_ms=DEADLINE_MS
        )

    def articles(self) -> Library:
        """Where `retrieve_context` looks: the toolbox's library, or the one the tenant shares."""
        return self.library or Library(self.memory)

    def _session(self, session_id: str | None) -> str:
        session = session_id or self.session
        if not session:
            raise ScopeError("no session is named; give session_id")
        return session

    @property
    def user_id(self) -> str:
        """The user whose memory it is; an error where none is named."""
        if self.user is None:
            raise ScopeError("no user is named; give user_id")
        return self.user

    def _remember(self, told: Message, user: str, session: str | None) -> RememberedMessage:
        """Store a message, a model's as the assistant's; one that is there is left as it is."""
        source = least_trusted((told.role, "user" if self.program else WRITER))
        message, id_ = told, told.message_id
        if not self.program and told.role != WRITER:
            data = {**(told.structured_data or {}), "said_by": told.role}
            message = replace(told, role=WRITER, structured_data=data)
        try:
            done = self.memory.remember(
                message, user=user, agent=self.agent, session=session, source=source
            )
        except ConflictError:
            scope = self.memory.scope(user=user, session=session)
            roles = {message.role, told.role}
            for entry in self.memory.messages.get(scope, [id_]):
                if session is not None and _says_the_same(entry.message, message, roles):
                    role = entry.message.role
                    return RememberedMessage(
                        message_id=id_, session_id=session, role=role, stored=False
                    )
            raise
        return RememberedMessage(
            message_id=id_, session_id=done.session_id, role=message.role, stored=bool(done.added)
        )

    def _keep(self, kind: Kind, content: str, importance: float, tags: Tags) -> StoredMemory:
        check_share(importance, "importance")
        if not isinstance(tags, list | tuple | None):
            raise InvalidError(f"tags must be a list of words, got {type(tags).__name__}")
        if len(tags or ()) > MOST_TAGS:
            raise InvalidError(f"there are {len(tags or ())} tags; there may be {MOST_TAGS}")
        id_ = self.memory.memories.add(
            content,
            user=self.user_id,
            agent=self.agent,
            session=self.session,
            kind=kind,
            importance=importance,
            tags=tuple(tags or ()),
            source=WRITER,
        )
        item = self.memory.memories.get(id_, user=self.user_id) if id_ else None
        return StoredMemory(
            id=id_,
            kind=item.kind if item else kind,
            category=item.category if item else "",
            importance=item.importance if item else 0.0,
            tags=list(item.tags) if item else [],
            known_since=_iso(item.created_at if item else None),
            expires_at=_iso(item.expires_at if item else None),
            fact_id="",
            why="" if item else "it says nothing that is not known already",
        )


_PUBLIC = {name: it for name, it in vars(Toolbox).items() if not name.startswith("_")}
NAMES = tuple(name for name, it in _PUBLIC.items() if hasattr(it, "__wrapped__"))  # by `tool`


def tool_schemas() -> list[ToolSchema]:
    """The schemas of all tools of the toolbox."""
    return [schema_of(getattr(Toolbox, it), name=it, reads=it in READING) for it in NAMES]


def tool_answer(result: Any) -> dict[str, str]:
    """The message by which a model is told what `retrieve_context` found, at its longest."""
    content = json.dumps(result, ensure_ascii=False)
    return {"role": "tool", "name": "retrieve_context", "content": content}


def check_length(text: str | None, most: int, name: str) -> None:
    """Raise if a text is too long; what is no text at all is refused where it is used."""
    if isinstance(text, str) and len(text) > most:
        raise InvalidError(f"{name} has {len(text)} characters; it may have {most} at most")


def check_count(count: int, most: int, name: str) -> None:
    """Raise unless this is a number from 1 to `most`."""
    if not isinstance(count, int) or not 1 <= count <= most:
        raise InvalidError(f"{name} must be a number from 1 to {most}")


def _role(role: str) -> str:
    known = OTHER_ROLES.get(role, role) if isinstance(role, str) else role
    if known not in ROLES:
        raise MessageError(f"role must be one of {', '.join(ROLES)}")
    return known


def _says_the_same(stored: Message, message: Message, roles: Container[str]) -> bool:
    """Whether a stored message has one of the roles and this text, in whatever form."""
    texts = (stored.content or "", str(stored.content), readable(stored.content), stored.text)
    return stored.role in roles and message.content in texts


def _fields_of(kind: Callable[..., T], record: Any, **more: Any) -> T:
    """The fields of a record that its JSON has; what is not there is an empty text."""
    values = {name: getattr(record, name) for name in kind.__annotations__ if name not in more}
    values["why"] = str(record.why)
    return kind(**more, **{name: "" if it is None else it for name, it in values.items()})


def _iso(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""
