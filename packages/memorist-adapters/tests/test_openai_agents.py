"""Our session under the OpenAI Agents SDK's own runner."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    Session,
    SessionSettings,
    SQLiteSession,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message
from openai import AsyncOpenAI
from tests.support.stub_server import Answer, ErrorAnswer, ModelServer

from memorist import Memory, StoreUnavailableError
from memorist.records.message import Message
from memorist.store.sqlite.store import SqliteStore
from memorist_adapters.openai_agents import MemoristSession

QUIET = RunConfig(tracing_disabled=True)
CALL: Answer = [{"name": "weather", "args": {"city": "Zürich"}, "id": "call_1"}]
PIXEL = "data:image/png;base64,iVBORw0KGgo="
ITEMS: list[Any] = [
    {"role": "user", "content": "Weather in Zürich?"},
    {"role": "developer", "content": "Be kind."},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is on this picture?"},
            {"type": "input_image", "image_url": PIXEL, "detail": "low"},
            {"type": "input_file", "file_id": "file_1"},
        ],
    },
    {
        "type": "reasoning",
        "id": "rs_0123456789abcdef0123",
        "summary": [{"type": "summary_text", "text": "They ask for the weather."}],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
        "encrypted_content": "gAAAA",
    },
    {
        "type": "function_call",
        "id": "fc_0123456789abcdef0123",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city":  "Zürich"}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "12 degrees and rain\x00"},
    {
        "type": "function_call_output",
        "call_id": "call_2",
        "output": [
            {"type": "input_text", "text": "a map"},
            {"type": "input_image", "file_id": "f"},
        ],
    },
    {"type": "custom_tool_call", "call_id": "call_3", "name": "sql", "input": "SELECT 1"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "rain"}},
    {"type": "item_reference", "id": "msg_1"},
    {
        "type": "message",
        "id": "msg_0123456789abcdef0123",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Umbrella!", "annotations": [], "logprobs": []}
        ],
    },
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot say."}]},
    {"role": "user", "content": ""},
    {"role": "user", "content": []},
]


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"12 degrees and rain in {city}"


def kept(session: Session, limit: int | None = None) -> list[Any]:
    return cast("list[Any]", asyncio.run(session.get_items(limit)))


def add(session: Session, items: Sequence[Any]) -> None:
    asyncio.run(session.add_items(list(copy.deepcopy(items))))


def asked(server: ModelServer, question: str, session: Session, **more: Any) -> str:
    """What a real agent answers in the session, over a real client and HTTP."""

    async def run() -> str:
        async with AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
            model = OpenAIChatCompletionsModel("any", client)
            agent = Agent(name="tutor", model=model, tools=[weather], **more)
            done = await Runner.run(agent, question, session=session, run_config=QUIET)
            return str(done.final_output)

    return asyncio.run(run())


def test_a_run_is_remembered_and_the_next_process_goes_on_with_it(tmp_path: Path) -> None:
    with ModelServer([CALL, "Take an umbrella.", "It was Zürich."]) as server:
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            session = MemoristSession(memory, user="ada", agent="tutor", session="s1")
            assert asked(server, "Weather in Zürich?", session) == "Take an umbrella."
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            session = MemoristSession(memory, user="ada", agent="tutor", session="s1")
            assert asked(server, "Which city was it?", session) == "It was Zürich."
            found = memory.recall("umbrella", user="ada", deadline_ms=None)
            assert "Take an umbrella." in [hit.text for hit in found.hits]
            roles = [message.role for message in memory.history(user="ada", session="s1")]
    sent = server.requests[2].body["messages"]
    assert [message["role"] for message in sent] == roles[:-1]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_1"
    assert sent[2]["content"] == "12 degrees and rain in Zürich"


def test_a_run_leaves_in_it_what_it_leaves_in_the_sdk_s_own_session(memory: Memory) -> None:
    ours, theirs = MemoristSession(memory, user="ada"), SQLiteSession("s1")
    for session in (ours, theirs):
        with ModelServer([CALL, "Take an umbrella.", "Bye."]) as server:
            asked(server, "Weather in Zürich?", session)
            asked(server, "Bye", session)
    assert without_ids(kept(ours)) == without_ids(kept(theirs))
    assert without_ids(kept(ours, 3)) == without_ids(kept(theirs, 3))
    theirs.close()


def without_ids(items: list[Any]) -> list[Any]:
    """Items but for what tells of the response that each came with."""
    return [{**item, "provider_data": None} for item in items]


def test_a_streamed_run_is_remembered_too(memory: Memory) -> None:
    async def run(session: Session) -> str:
        agent = Agent(name="tutor", model=ScriptedModel([[assistant_message("Hello, Ada.")]]))
        done = Runner.run_streamed(agent, "Hi", session=session, run_config=QUIET)
        async for _ in done.stream_events():
            pass
        return str(done.final_output)

    session = MemoristSession(memory, user="ada")
    assert asyncio.run(run(session)) == "Hello, Ada."
    assert [message.text for message in memory.history(user="ada")] == ["Hi", "Hello, Ada."]


def test_items_come_back_as_they_were(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada")
    assert isinstance(session, Session)
    add(session, ITEMS[:3])
    add(session, ITEMS[3:])
    assert kept(session) == ITEMS
    assert kept(session, 4) == ITEMS[-4:]
    assert kept(session, 0) == []
    assert [list(item) for item in kept(session)] == [list(item) for item in ITEMS]


def test_the_settings_of_a_session_limit_what_is_read(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada", session_settings=SessionSettings(limit=2))
    add(session, ITEMS)
    assert kept(session) == ITEMS[-2:]
    assert kept(session, 100) == ITEMS


def test_words_are_found_whatever_item_holds_them(memory: Memory) -> None:
    add(MemoristSession(memory, user="ada"), ITEMS)
    for question in ("picture", "degrees and rain", "Umbrella", "SELECT", "cannot say"):
        found = memory.recall(question, user="ada", deadline_ms=None)
        assert "words" in found.hits[0].why.ranks, question


def test_other_doors_see_the_words_the_calls_and_the_image(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada", session="s1")
    add(session, ITEMS[:6])
    window = memory.context("And now?", user="ada", session="s1")
    shown = [message for message in window.messages if isinstance(message["content"], list)]
    assert shown[0]["content"][1] == {"type": "image_url", "image_url": {"url": PIXEL}}
    said = memory.history(user="ada", session="s1")
    assert said[4].tool_calls[0].arguments == '{"city":  "Zürich"}'
    assert (said[5].role, said[5].tool_call_id) == ("tool", "call_1")


def test_what_other_doors_said_is_part_of_the_conversation(memory: Memory) -> None:
    chat = memory.session(user="ada", id="s1")
    chat.add("user", "Look!", images=[PIXEL])
    calls = [{"id": "c1", "name": "weather", "args": {"city": "Bern"}}]
    chat.remember(Message("assistant", "One moment.", tool_calls=cast(Any, calls)))
    chat.add("tool", "rain", tool_call_id="c1")
    session = MemoristSession(memory, user="ada", session="s1")
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "weather",
        "arguments": '{"city":"Bern"}',
    }
    image = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    assert kept(session) == [
        {"role": "user", "content": [{"type": "input_text", "text": "Look!"}, image]},
        {"role": "assistant", "content": "One moment."},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    ]
    assert asyncio.run(session.pop_item()) == kept_output("rain")
    assert asyncio.run(session.pop_item()) == call
    assert kept(session)[-1] == {"role": "assistant", "content": "One moment."}


def kept_output(text: str) -> Any:
    return {"type": "function_call_output", "call_id": "c1", "output": text}


def test_an_item_that_its_provider_numbered_is_stored_once(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada")
    add(session, [ITEMS[10]])
    add(session, [ITEMS[0], ITEMS[10]])
    add(session, [ITEMS[0]])
    assert kept(session) == [ITEMS[10], ITEMS[0], ITEMS[0]]


def test_an_id_that_stands_for_two_things_loses_neither(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada")
    other = {**ITEMS[10], "status": "incomplete"}
    for _ in range(2):  # a script's or a fake id is the same on every item
        add(session, [{**ITEMS[10], "id": "__fake_id__"}, {"role": "user", "content": "ok"}])
    add(session, [ITEMS[10]])
    add(session, [other])
    assert len(kept(session)) == 6
    assert kept(session)[-2:] == [ITEMS[10], other]


def test_a_popped_item_is_forgotten(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada")
    assert asyncio.run(session.pop_item()) is None
    add(session, ITEMS[:2])
    assert asyncio.run(session.pop_item()) == ITEMS[1]
    assert asyncio.run(session.pop_item()) == ITEMS[0]
    assert asyncio.run(session.pop_item()) is None
    assert not memory.recall("weather", user="ada", deadline_ms=None).hits


def test_a_cleared_session_is_forgotten_and_can_go_on(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada", session="s1")
    asyncio.run(session.clear_session())
    other = MemoristSession(memory, user="ada", session="s2")
    add(session, ITEMS)
    add(other, [ITEMS[0]])
    asyncio.run(session.clear_session())
    assert kept(session) == []
    assert kept(other) == [ITEMS[0]]
    found = memory.recall("umbrella", user="ada", deadline_ms=None)
    assert {hit.session_id for hit in found.hits} == {"s2"}
    add(session, [ITEMS[10]])
    assert kept(session) == [ITEMS[10]]


def test_another_user_sees_nothing_of_it(memory: Memory) -> None:
    add(MemoristSession(memory, user="ada", session="s1"), ITEMS)
    bob = MemoristSession(memory, user="bob", session="s1")
    assert kept(bob) == []
    assert asyncio.run(bob.pop_item()) is None
    assert not memory.recall("umbrella", user="bob", deadline_ms=None).hits


def test_without_an_id_it_is_the_active_session(memory: Memory) -> None:
    first = MemoristSession(memory, user="ada", agent="tutor")
    add(first, [ITEMS[0]])
    assert kept(MemoristSession(memory, user="ada", agent="tutor")) == [ITEMS[0]]


class Sleepy(SqliteStore):
    """A store that cannot be reached now and then."""

    awake = True

    def history(self, *args: Any, **named: Any) -> Any:
        return super().history(*args, **named) if self.awake else self._refuse()

    def append(self, *args: Any, **named: Any) -> Any:
        return super().append(*args, **named) if self.awake else self._refuse()

    def _refuse(self) -> Any:
        raise StoreUnavailableError("the store is asleep")


def test_a_store_that_is_away_leaves_the_agent_answering_and_gets_all_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Sleepy(tmp_path / "m.db")
    with Memory(store, embedder=None, extraction=None) as memory, ModelServer(["A", "B"]) as server:
        session = MemoristSession(memory, user="ada", session="s1")
        store.awake = False
        assert asked(server, "one", session) == "A"
        assert session.failed == "the store is asleep"
        assert "items wait to be stored" in caplog.text
        store.awake = True
        assert asked(server, "two", session) == "B"
        assert session.failed == ""
        texts = [message.text for message in memory.history(user="ada", session="s1")]
        assert texts == ["one", "A", "two", "B"]
    assert [it["content"] for it in server.requests[1].body["messages"]] == ["one", "A", "two"]


def test_a_model_that_fails_leaves_what_the_user_said(memory: Memory) -> None:
    session = MemoristSession(memory, user="ada")
    with (
        ModelServer(lambda _: ErrorAnswer.refusal("broken", 500)) as server,
        pytest.raises(Exception, match="500"),
    ):
        asked(server, "I moved to Berlin.", session, model_settings=ModelSettings())
    assert kept(session) == [{"role": "user", "content": "I moved to Berlin."}]
