"""Google ADK's own Runner, agents and memory tools work on Memorist's services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.genai.types import Blob, Content, FunctionCall, FunctionResponse, Part
from pydantic import Field

from memorist import Memory, ScopeError, StoreError
from memorist_adapters.adk import (
    MemoristMemoryService,
    MemoristSessionService,
    event_of,
    messages_of,
)

ADA: dict[str, Any] = {"app_name": "tutor", "user_id": "ada"}
BOB: dict[str, Any] = {"app_name": "tutor", "user_id": "bob"}


class Scripted(BaseLlm):
    """A model that answers as a function of the request, and keeps what it was asked."""

    model: str = "scripted"
    answer: Callable[[LlmRequest], Part]
    asked: list[LlmRequest] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append(llm_request)
        yield LlmResponse(content=Content(role="model", parts=[self.answer(llm_request)]))


def words(request: LlmRequest) -> str:
    """All that a model is told."""
    return request.model_dump_json(include={"contents", "config"}, exclude_none=True)


def runner(memory: Memory, model: BaseLlm, tool: Any, sessions: Any = None) -> Runner:
    return Runner(
        app_name="tutor",
        agent=LlmAgent(name="tutor", model=model, tools=[tool]),
        session_service=sessions or MemoristSessionService(memory),
        memory_service=MemoristMemoryService(memory, deadline_ms=None),
        auto_create_session=True,
    )


async def say(run: Runner, text: str, session_id: str, user_id: str = "ada") -> str:
    said = Content(role="user", parts=[Part(text=text)])
    events = run.run_async(user_id=user_id, session_id=session_id, new_message=said)
    async for event in events:
        if event.is_final_response() and event.content and event.content.parts:
            return event.content.parts[0].text or ""
    return ""


def answer_from_memory(request: LlmRequest) -> Part:
    """Look in the memory once for what is asked, then tell whether it was found."""
    last = request.contents[-1]
    parts = last.parts or []
    if parts[0].function_response:
        found = "Berlin" in str(parts[0].function_response.response)
        return Part(text="You live in Berlin." if found else "I do not know.")
    if "Where" in (parts[0].text or ""):
        call = FunctionCall(name="load_memory", args={"query": "moved to which city?"})
        return Part(function_call=call)
    return Part(text="Noted.")


def test_a_second_session_recalls_with_load_memory_what_the_first_one_said(memory: Memory) -> None:
    run = runner(memory, Scripted(answer=answer_from_memory), load_memory_tool)
    asyncio.run(say(run, "I moved to Berlin in March.", "monday"))
    assert asyncio.run(say(run, "Where do I live?", "tuesday")) == "You live in Berlin."
    assert asyncio.run(say(run, "Where do I live?", "x", user_id="bob")) == "I do not know."
    roles = [message.role for message in memory.history(user="ada", session="tuesday")]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_preload_memory_puts_what_was_said_before_the_model_and_not_the_question(
    memory: Memory,
) -> None:
    model = Scripted(answer=lambda request: Part(text="Noted."))
    run = runner(memory, model, preload_memory_tool)
    asyncio.run(say(run, "My bike is a red Colnago.", "monday"))
    asyncio.run(say(run, "Which bike is mine?", "tuesday"))
    first, second = map(words, model.asked)
    assert "PAST_CONVERSATIONS" not in first
    assert "user: My bike is a red Colnago." in second
    assert second.count("Which bike is mine?") == 1


def test_another_process_continues_the_conversation(memory: Memory, tmp_path: Path) -> None:
    model = Scripted(answer=lambda request: Part(text="Noted."))
    asyncio.run(say(runner(memory, model, load_memory_tool), "I am Ada.", "talk"))
    with Memory(tmp_path / "memory.db", embedder=None) as other:
        asyncio.run(say(runner(other, model, load_memory_tool), "Who am I?", "talk"))
    assert [part.parts[0].text for part in model.asked[-1].contents if part.parts] == [
        "I am Ada.",
        "Noted.",
        "Who am I?",
    ]


def test_sessions_kept_elsewhere_are_added_once_however_often(memory: Memory) -> None:
    sessions, service = InMemorySessionService(), MemoristMemoryService(memory, deadline_ms=None)
    run = runner(memory, Scripted(answer=answer_from_memory), load_memory_tool, sessions)

    async def talk() -> str:
        for text in ("I moved to Berlin.", "Thank you."):
            await say(run, text, "monday")
            session = await sessions.get_session(**ADA, session_id="monday")
            assert session is not None
            await service.add_session_to_memory(session)
        found = await service.search_memory(**ADA, query="which city: Berlin?")
        assert (await service.search_memory(**BOB, query="Berlin")).memories == []
        other = await service.search_memory(app_name="cook", user_id="ada", query="Berlin")
        assert other.memories == []
        best = found.memories[0]
        assert best.content.parts
        assert (best.author, best.content.parts[0].text) == ("user", "I moved to Berlin.")
        assert best.custom_metadata["session"] == "monday"
        await service.delete_memory(**ADA, memory_id=best.id)
        return (await service.search_memory(**ADA, query="Berlin")).model_dump_json()

    assert "Berlin" not in asyncio.run(talk())
    said = [message.text for message in memory.history(user="ada")]
    assert said == ["Noted.", "Thank you.", "Noted."]


RICH = [
    Event(author="user", content=Content(role="user", parts=[Part(text="Zürich\x00?")])),
    Event(
        author="tutor",
        invocation_id="i1",
        branch="a.b",
        content=Content(
            role="model",
            parts=[
                Part(text="Hm", thought=True),
                Part(text="Let me look."),
                Part(function_call=FunctionCall(id="c1", name="weather", args={"city": "Zürich"})),
                Part(function_call=FunctionCall(id="c2", name="time", args={})),
            ],
        ),
        long_running_tool_ids={"c2"},
    ),
    Event(
        author="tutor",
        content=Content(
            role="user",
            parts=[
                Part(
                    function_response=FunctionResponse(
                        id="c1", name="weather", response={"result": "rain"}
                    )
                ),
                Part(
                    function_response=FunctionResponse(
                        id="c2", name="time", response={"error": "no clock"}
                    )
                ),
            ],
        ),
    ),
    Event(author="tutor", actions=EventActions(state_delta={"seen": [1, None]})),
    Event(
        author="user",
        content=Content(
            role="user", parts=[Part(inline_data=Blob(mime_type="image/png", data=b"\x89PNG\x00"))]
        ),
    ),
    Event(author="tutor", content=Content(role="model", parts=[Part(text="Take an umbrella.")])),
]


def test_every_event_comes_back_as_it_was_and_is_a_message_like_any_other(memory: Memory) -> None:
    service = MemoristSessionService(memory)

    async def keep() -> Session | None:
        session = await service.create_session(**ADA, session_id="talk")
        for event in RICH:
            await service.append_event(session, event.model_copy(deep=True))
        return await service.get_session(**ADA, session_id="talk")

    read = asyncio.run(keep())
    assert read is not None
    assert read.events == RICH
    said = memory.history(user="ada", session="talk")
    assert [(it.role, it.name) for it in said[:4]] == [
        ("user", None),
        ("assistant", "tutor"),
        ("tool", "weather"),
        ("tool", "time"),
    ]
    assert [call.call_id for call in said[1].tool_calls] == ["c1", "c2"]
    assert [it.tool_call_id for it in said[2:4]] == ["c1", "c2"]
    assert memory.recall("umbrella", user="ada", deadline_ms=None).hits[0].id == RICH[-1].id
    memory.jobs.catch_up()
    lessons = [item.text for item in memory.memories.list(user="ada")]
    assert any(text.startswith("Failed tools: time") for text in lessons)


def test_what_an_event_says_is_not_kept_twice() -> None:
    [message] = messages_of(RICH[-1])
    assert "umbrella" not in str(message.structured_data)
    assert event_of(message) == RICH[-1]


def test_a_conversation_of_another_door_is_read_as_events(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor", id="talk")
    chat.add("user", "Hi")
    chat.add("assistant", "Hello", structured_data={"adk": "{}}"})
    service = MemoristSessionService(memory)
    session = asyncio.run(service.get_session(**ADA, session_id="talk"))
    assert session is not None
    assert [(it.author, it.content and it.content.role) for it in session.events] == [
        ("user", "user"),
        ("model", "model"),
    ]


Do = Callable[[BaseSessionService], Awaitable[Any]]


@pytest.fixture(params=["ours", "theirs"])
def do(request: pytest.FixtureRequest, memory: Memory) -> Callable[[Do], Any]:
    """ADK's own service and ours do the same."""
    ours = request.param == "ours"
    service: Any = MemoristSessionService(memory) if ours else InMemorySessionService()

    async def run(work: Do) -> Any:
        return await work(service)

    return lambda work: asyncio.run(run(work))


def told(number: int, **state: Any) -> Event:
    text = Content(role="user", parts=[Part(text=f"{number}")])
    actions = EventActions(state_delta=state)
    return Event(author="user", content=text, timestamp=1_000.0 + number, actions=actions)


def test_states_are_kept_for_a_session_a_user_and_an_app(do: Callable[[Do], Any]) -> None:
    async def work(service: BaseSessionService) -> None:
        begun = {"step": 1, "user:name": "Ada", "app:open": True, "temp:x": 1}
        one = await service.create_session(**ADA, state=begun, session_id="one")
        await service.append_event(one, told(1, **{"step": 2, "user:age": 36, "temp:y": 2}))
        assert one.state["temp:y"] == 2
        read = await service.get_session(**ADA, session_id="one")
        assert read is not None
        shared = {"user:name": "Ada", "user:age": 36, "app:open": True}
        assert read.state == {"step": 2, **shared}
        assert (await service.create_session(**ADA)).state == shared
        assert (await service.create_session(**BOB)).state == {"app:open": True}
        assert await service.get_user_state(**ADA) == {"name": "Ada", "age": 36}
        assert await service.get_user_state(app_name="cook", user_id="ada") == {}

    do(work)


def test_sessions_are_got_listed_and_deleted(do: Callable[[Do], Any]) -> None:
    async def work(service: BaseSessionService) -> None:
        for id_, moments in (("late", (7, 8, 9)), ("early", (1, 2))):
            session = await service.create_session(**ADA, session_id=id_)
            for moment in moments:
                await service.append_event(session, told(moment))
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**ADA, session_id="late")
        listed = (await service.list_sessions(**ADA)).sessions
        assert [(it.id, it.last_update_time, it.events) for it in listed] == [
            ("early", 1_002.0, []),
            ("late", 1_009.0, []),
        ]
        assert [await seen(service, "late", **limits) async for limits in limits_()] == [
            ["7", "8", "9"],
            ["8", "9"],
            [],
            ["9"],
        ]
        assert await service.get_session(**BOB, session_id="late") is None
        assert (await service.list_sessions(**BOB)).sessions == []
        await service.delete_session(**ADA, session_id="late")
        await service.delete_session(**ADA, session_id="never")
        assert await service.get_session(**ADA, session_id="late") is None
        with pytest.raises(ValueError, match="not found"):
            await service.append_event(session.model_copy(update={"id": "late"}), told(1))

    do(work)


async def limits_() -> AsyncIterator[dict[str, Any]]:
    for limits in ({}, {"num_recent_events": 2}, {"num_recent_events": 0}):
        yield dict(limits)
    yield {"after_timestamp": 1_009.0}


async def seen(service: BaseSessionService, session_id: str, **limits: Any) -> list[str | None]:
    config = GetSessionConfig(**limits)
    session = await service.get_session(**ADA, session_id=session_id, config=config)
    assert session is not None
    return [it.content.parts[0].text for it in session.events if it.content and it.content.parts]


def test_the_id_of_another_apps_session_is_refused(memory: Memory) -> None:
    service = MemoristSessionService(memory)
    asyncio.run(service.create_session(**ADA, session_id="one"))
    with pytest.raises(ScopeError):
        asyncio.run(service.create_session(app_name="cook", user_id="ada", session_id="one"))


def test_while_the_store_fails_the_agent_answers_and_what_was_said_is_stored_later(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = MemoristSessionService(memory)
    model = Scripted(answer=lambda request: Part(text="Noted."))
    run = runner(memory, model, preload_memory_tool, sessions)
    asyncio.run(say(run, "One.", "talk"))

    def fail(*arguments: Any, **named: Any) -> Any:
        raise StoreError("gone for a moment")

    with monkeypatch.context() as broken:
        for name in ("append", "history", "sessions", "match_text", "newest"):
            broken.setattr(memory.store, name, fail)
        assert asyncio.run(say(run, "Two.", "talk")) == "Noted."
        assert sessions.failed == "gone for a moment"
    assert "goes on without its history" in caplog.text
    asyncio.run(say(run, "Three.", "talk"))
    assert sessions.failed == ""
    said = [message.text for message in memory.history(user="ada", session="talk")]
    assert said == ["One.", "Noted.", "Two.", "Noted.", "Three.", "Noted."]
