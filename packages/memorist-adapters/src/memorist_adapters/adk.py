"""Google ADK's doors: a memory service that recalls, and a session service that lasts.

from google.adk.runners import Runner
from memorist import Memory
from memorist_adapters.adk import MemoristMemoryService, MemoristSessionService

memory = Memory()
runner = Runner(
    app_name="tutor",
    agent=agent,
    session_service=MemoristSessionService(memory),
    memory_service=MemoristMemoryService(memory),
)

ADK's app is Memorist's agent, its users are users, and its sessions are sessions.
"""

from __future__ import annotations

import json
import logging
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memorist.errors import ProviderError, StoreError, needs_extra
from memorist.memory import Memory
from memorist.records.entry import Entry, Put, Search, findable
from memorist.records.log import Session as StoredSession
from memorist.records.message import Message, ToolCallMsg
from memorist.records.query import Hit
from memorist.records.scope import Scope, shared_scope
from memorist.records.values import new_id

with needs_extra("adk", "memorist-adapters"):
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events import Event, EventActions
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import BaseSessionService, Session
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
    from google.adk.sessions.state import State
    from google.genai.types import Content, FunctionResponse, Part
    from pydantic import ValidationError

EVENT = "adk"  # in a message's structured data: what of its event the message does not say
PART = "adk_part"  # … that the event is told by the message before
STATE = "adk_state"  # … what a session began with
SHARED = ("adk", "state")

log = logging.getLogger("memorist")


class MemoristMemoryService(BaseMemoryService):
    """What was said in all sessions of a user with an app, found by words and meaning.

    Events that `MemoristSessionService` stored in the same memory are there already. Where
    memory fails, nothing is found and a warning is logged: the agent goes on.
    """

    def __init__(
        self, memory: Memory, *, limit: int = 10, deadline_ms: float | None = 50.0
    ) -> None:
        self._memory = memory
        self._limit = limit
        self._deadline_ms = deadline_ms

    async def add_session_to_memory(self, session: Session) -> None:
        """Store what of a session is not stored yet."""
        scope = _scope(self._memory, session.app_name, session.user_id, session.id)
        await to_thread(self._add, scope, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store those events that are not stored yet."""
        await to_thread(self._add, _scope(self._memory, app_name, user_id, session_id), events)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """What bears on the query, best first; the query itself, just said, is no answer."""
        try:
            found = await to_thread(
                self._memory.recall,
                query,
                user=user_id,
                agent=app_name,
                limit=self._limit + 1,
                deadline_ms=self._deadline_ms,
            )
        except (StoreError, ProviderError) as error:
            log.warning("nothing was recalled for the agent: %s", error)
            return SearchMemoryResponse()
        hits = [hit for hit in found.hits if hit.text.strip() != query.strip()]
        return SearchMemoryResponse(memories=[_remembered(hit) for hit in hits[: self._limit]])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Forget what `search_memory` found under this id, and what was derived of it."""
        if memory_id:
            await to_thread(self._forget, app_name, user_id, memory_id)

    def _add(self, scope: Scope, events: Sequence[Event]) -> None:
        said = [event for event in events if event.content and event.content.parts]
        ids = [event.id for event in said if not event.partial]
        held = self._memory.messages.get(scope.whole_user(), ids)
        new = set(ids) - {entry.message.message_id for entry in held}
        _remember(self._memory, scope, [event for event in said if event.id in new])

    def _forget(self, app: str, user: str, id_: str) -> None:
        if self._memory.messages.get(_scope(self._memory, app, user), [id_]):
            self._memory.forget(user=user, agent=app, message=id_, scrub=False)
        else:
            self._memory.forget(user=user, agent=app, memory=id_, scrub=False)


class MemoristSessionService(BaseSessionService):
    """ADK's sessions as conversations in Memorist: every event durable, and to be recalled.

    A session's state is what its events made of it, and is forgotten with it; `user:` state is
    the user's, `app:` state all users' of the app. Sessions are listed for one user at a time.
    While the store does not answer, the agent goes on without its history: `failed` says why,
    and what is said waits in this object and is stored with the session's next event.
    """

    def __init__(self, memory: Memory) -> None:
        self.failed = ""
        self._memory = memory
        self._waiting: dict[Scope, list[Event]] = {}

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        scope = _scope(self._memory, app_name, user_id, session_id or new_id())
        return await to_thread(self._create, scope, state or {})

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        scope = _scope(self._memory, app_name, user_id, session_id)
        try:
            session = await to_thread(self._read, scope)
        except StoreError as error:
            self._fail("the conversation goes on without its history: %s", error)
            session = _session(scope, 0.0, events=list(self._waiting.get(scope, ())))
        if session is not None and config is not None:
            session.events = _wanted(session.events, config)
        return session

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        if user_id is None:
            raise NotImplementedError("Memorist lists the sessions of one user; give user_id")
        listed = await to_thread(self._list, _scope(self._memory, app_name, user_id))
        return ListSessionsResponse(sessions=listed)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Forget a session and what was derived of it; its bytes go with `Memory.scrub`."""
        forget = self._memory.forget
        await to_thread(forget, user=user_id, agent=app_name, session=session_id, scrub=False)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        shared = await to_thread(self._shared, _scope(self._memory, app_name, user_id))
        prefix = State.USER_PREFIX
        return {key[len(prefix) :]: shared[key] for key in shared if key.startswith(prefix)}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store the event durably, in the session given and in the log."""
        if event.partial:
            return event
        event = await super().append_event(session, event)
        scope = _scope(self._memory, session.app_name, session.user_id, session.id)
        waiting = [*self._waiting.pop(scope, ()), event]
        try:
            await to_thread(self._append, scope, waiting)
            self.failed = ""
        except StoreError as error:
            self._waiting[scope] = waiting
            self._fail("what was said waits to be stored: %s", error)
        session.last_update_time = event.timestamp
        return event

    def _create(self, scope: Scope, state: dict[str, Any]) -> Session:
        if self._sessions(scope):
            raise AlreadyExistsError("there is a session with this id already")
        self._memory.session(user=scope.user, agent=scope.agent, id=scope.session)
        if kept := _json_of(state):
            began = Message("system", structured_data={STATE: json.dumps(kept)})
            self._memory.remember(began, **scope.names)
            self._share(scope, kept)
        session = self._read(scope)
        assert session is not None  # just made
        return session

    def _read(self, scope: Scope) -> Session | None:
        state, events = dict[str, Any](), list[Event]()
        opened = self._sessions(scope)
        if not opened:
            return None
        for entry in self._memory.messages.list(scope):
            kept = entry.message.structured_data or {}
            if STATE in kept:
                state |= json.loads(kept[STATE])
            elif PART not in kept:
                events.append(event_of(entry.message))
        for event in events:
            state |= event.actions.state_delta
        updated = events[-1].timestamp if events else opened[0].created_at.timestamp()
        state |= self._shared(scope)
        return _session(scope, updated, state=state, events=events)

    def _sessions(self, scope: Scope) -> list[StoredSession]:
        return self._memory.sessions(**scope.names)

    def _append(self, scope: Scope, events: Sequence[Event]) -> None:
        if not self._sessions(scope):
            raise SessionNotFoundError
        _remember(self._memory, scope, events)
        for event in events:
            self._share(scope, _json_of(event.actions.state_delta))

    def _fail(self, what: str, error: StoreError) -> None:
        self.failed = str(error)
        log.warning(what, error)

    def _list(self, scope: Scope) -> list[Session]:
        listed = []
        for opened in self._sessions(scope):
            last = self._memory.messages.list(opened.scope, last=1)
            updated = last[0].message.created_at if last else opened.created_at
            listed.append(_session(opened.scope, updated.timestamp()))
        return sorted(listed, key=lambda session: session.last_update_time)

    def _share(self, scope: Scope, state: dict[str, Any]) -> None:
        """Keep what other sessions see of a state; each key by itself, so that none is undone."""
        for prefix, owner in self._owners(scope).items():
            puts = [
                Put(
                    namespace=SHARED,
                    key=json.dumps([scope.agent, key]),
                    value={"app": scope.agent, "key": key, "value": value},
                )
                for key, value in state.items()
                if key.startswith(prefix)
            ]
            if puts:
                self._memory.entries.batch(owner, [], puts)

    def _shared(self, scope: Scope) -> dict[str, Any]:
        asked = Search(prefix=SHARED, where={"app": scope.agent}, limit=None)
        found = [
            entry.value
            for owner in self._owners(scope).values()
            for entry in self._memory.entries.batch(owner, [asked])[0]
            if isinstance(entry, Entry)
        ]
        return {value["key"]: value["value"] for value in found}

    def _owners(self, scope: Scope) -> dict[str, Scope]:
        """Whose the shared states are: the user's own, and one that is no user's."""
        everybody = shared_scope(scope.tenant, "store", "adk")
        return {State.USER_PREFIX: scope.whole_user(), State.APP_PREFIX: everybody}


def messages_of(event: Event) -> list[Message]:
    """An event as messages: one, or one for each tool that answers in it."""
    parts = (event.content.parts if event.content else None) or []
    role = "user" if event.author == "user" else "assistant"
    text = findable("".join(part.text for part in parts if part.text and not part.thought))
    usual = bool(text) and event.content == _content(role, text)
    form = event.model_dump(mode="json", exclude_none=True, exclude={"content"} if usual else None)
    kept = findable(json.dumps(form, ensure_ascii=False))
    when = datetime.fromtimestamp(event.timestamp, UTC)
    if answers := event.get_function_responses():
        return [
            _answer(event.id, number, answer, kept, when) for number, answer in enumerate(answers)
        ]
    calls = [
        ToolCallMsg.from_dict({"id": call.id, "name": call.name or "", "args": _text(call.args)})
        for call in event.get_function_calls()
    ]
    return [
        Message(
            role,
            text or None,
            message_id=event.id,
            tool_calls=calls,
            created_at=when,
            name=None if role == "user" else event.author,
            structured_data={EVENT: kept},
        )
    ]


def event_of(message: Message) -> Event:
    """The event that a message was made of, or else one that says the same."""
    said = _content(message.role, message.text)
    author = "user" if message.role == "user" else message.name or "model"
    try:
        event = Event.model_validate_json((message.structured_data or {})[EVENT])
    except (KeyError, ValidationError):  # another door's, or only made to look like ours
        when = message.created_at.timestamp()
        return Event(id=message.message_id, author=author, content=said, timestamp=when)
    if event.content is None and message.content and message.role != "tool":
        event.content = said
    return event


def _answer(
    event_id: str, number: int, answer: FunctionResponse, event: str, when: datetime
) -> Message:
    return Message(
        "tool",
        _text(answer.response),
        message_id=f"{event_id}/{number}" if number else event_id,
        name=answer.name,
        tool_call_id=answer.id,
        created_at=when,
        structured_data={PART: number} if number else {EVENT: event},
    )


def _remember(memory: Memory, scope: Scope, events: Sequence[Event]) -> None:
    said = [message for event in events for message in messages_of(event)]
    memory.remember(said, **scope.names)


def _remembered(hit: Hit) -> MemoryEntry:
    told = {"kind": hit.kind, "score": hit.score, "why": str(hit.why), "session": hit.session_id}
    return MemoryEntry(
        id=hit.id,
        content=_content(hit.role or "", hit.text),
        author=hit.speaker or hit.role,
        timestamp=hit.created_at.isoformat(),
        custom_metadata=told,
    )


def _scope(memory: Memory, app: str, user: str, session: str | None = None) -> Scope:
    return memory.scope(user=user, agent=app, session=session)


def _session(scope: Scope, updated: float, **told: Any) -> Session:
    return Session(
        id=scope.session or "",
        app_name=scope.agent or "",
        user_id=scope.user,
        last_update_time=updated,
        **told,
    )


def _wanted(events: list[Event], config: GetSessionConfig) -> list[Event]:
    if config.num_recent_events is not None:
        events = events[max(len(events) - config.num_recent_events, 0) :]
    since = config.after_timestamp
    return events if since is None else [event for event in events if event.timestamp >= since]


def _content(role: str, text: str) -> Content:
    return Content(role="user" if role == "user" else "model", parts=[Part(text=text)])


def _json_of(state: dict[str, Any]) -> dict[str, Any]:
    """A state as ADK writes it, without what is for one run only."""
    kept = {key: state[key] for key in state if not key.startswith(State.TEMP_PREFIX)}
    dumped: dict[str, Any] = EventActions(state_delta=kept).model_dump(mode="json")["state_delta"]
    return dumped


def _text(value: Any) -> str:
    return findable(json.dumps(value or {}, ensure_ascii=False, default=str))
