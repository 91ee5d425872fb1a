"""Our capability, history and tools in Pydantic AI's own agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_ai import Agent, BinaryContent, ImageUrl
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.support.stub_server import Answer, ErrorAnswer, ModelServer

from memorist import InvalidError, Memory, Notebook, StoreUnavailableError
from memorist.agents.toolbox import Toolbox
from memorist.records.message import Message
from memorist.store.sqlite.store import SqliteStore
from memorist_adapters.pydantic_ai import TOOLS, MemoristMemory, memory_toolset

CALLS: Answer = [
    {"name": "weather", "args": {"city": "Zürich"}, "id": "call_1"},
    {"name": "weather", "args": {"city": "Bern"}, "id": "call_2"},
]
TURN: list[ModelMessage] = [
    ModelRequest(
        [
            SystemPromptPart("Be kind."),
            UserPromptPart(
                [
                    "What is on this picture?",
                    ImageUrl("https://example.org/a.png"),
                    BinaryContent(b"\x89PNG\xff", media_type="image/png"),
                ]
            ),
        ],
        run_id="r1",
    ),
    ModelResponse(
        [
            ThinkingPart("Hm.", signature="s"),
            TextPart("Let me"),
            TextPart(" look."),
            ToolCallPart("look", {"at": "it"}, "c1"),
            ToolCallPart("look", '{"at":  "all"}', "c2"),
        ],
        model_name="m",
        provider_response_id="p1",
        provider_details={"finish_reason": "tool_calls"},
        run_id="r1",
    ),
    ModelRequest(
        [
            ToolReturnPart("look", {"seen": ["a boat"]}, "c1", metadata={"ms": 3}),
            ToolReturnPart("look", "a gull\x00", "c2"),
            ToolReturnPart("look", None, "c3"),
        ],
        run_id="r1",
    ),
    ModelResponse([TextPart("A boat and a gull.")], run_id="r1"),
]


def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def chat_of(memory: Memory, user: str = "ada", **more: Any) -> MemoristMemory:
    chat = MemoristMemory(memory, user=user, agent="tutor", **more)
    chat.deadline_ms = None  # on a busy machine, recall is not what these tests are about
    return chat


def asked(server: ModelServer, prompt: Any, chat: MemoristMemory, **more: Any) -> Any:
    """The result of a real run over a real client and HTTP."""
    provider = OpenAIProvider(base_url=server.url, api_key="k")
    agent = Agent(OpenAIChatModel("any", provider=provider), tools=[weather], **more)

    async def run() -> Any:
        history = await chat.load()
        return await agent.run(prompt, message_history=history, capabilities=[chat])

    return asyncio.run(run())


def system_of(server: ModelServer, request: int) -> str:
    sent = server.requests[request].body["messages"]
    return "\n".join(str(it["content"]) for it in sent if it["role"] in ("system", "developer"))


def plain(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Messages as Pydantic AI's own JSON has them, without instructions, which are not kept."""
    made = ModelMessagesTypeAdapter.validate_json(
        ModelMessagesTypeAdapter.dump_json(list(messages))
    )
    return [replace(it, instructions=None) if isinstance(it, ModelRequest) else it for it in made]


def test_a_run_is_remembered_and_the_next_process_goes_on_with_it(tmp_path: Path) -> None:
    with ModelServer([CALLS, "Take an umbrella.", "Zürich and Bern."]) as server:
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            done = asked(server, "Weather in Zürich and Bern?", chat_of(memory, session="s1"))
            assert done.output == "Take an umbrella."
        with Memory(tmp_path / "m.db", embedder=None) as memory:
            chat = chat_of(memory, session="s1")
            assert chat.messages() == plain(done.all_messages())
            assert asked(server, "Which cities?", chat).output == "Zürich and Bern."
            said = memory.history(user="ada", session="s1")
            found = memory.recall("umbrella", user="ada", deadline_ms=None)
            assert found.hits[0].text == "Take an umbrella."
    roles = ["user", "assistant", "tool", "tool", "assistant", "user", "assistant"]
    assert [message.role for message in said] == roles
    sent = [it for it in server.requests[2].body["messages"] if it["role"] != "system"]
    assert [message["role"] for message in sent] == roles[:-1]
    assert [it["tool_call_id"] for it in sent[2:4]] == ["call_1", "call_2"]


def test_messages_come_back_as_they_were(memory: Memory) -> None:
    chat = chat_of(memory)
    chat.add(TURN[:1])
    chat.add(TURN[1:])
    assert chat.messages() == plain(TURN)
    said = memory.history(user="ada")
    assert said[1].images == ("https://example.org/a.png",)
    assert [(it.role, it.tool_call_id) for it in said[3:6]] == [
        ("tool", "c1"),
        ("tool", "c2"),
        ("tool", "c3"),
    ]
    for question in ("picture", "boat", "gull", "look"):
        found = memory.recall(question, user="ada", deadline_ms=None)
        assert "words" in found.hits[0].why.ranks, question


def test_a_message_is_stored_once(memory: Memory) -> None:
    chat = chat_of(memory)
    chat.add(TURN[:2])
    chat.add(TURN)
    chat.add(chat.messages())
    assert chat.messages() == plain(TURN)
    twice: list[ModelMessage] = [ModelRequest([UserPromptPart("ok")]) for _ in range(2)]
    chat.add(twice)  # said twice, at two moments
    assert chat.messages() == plain(TURN + twice)


def test_notes_and_memories_are_told_but_not_kept(memory: Memory) -> None:
    Notebook(memory, user="ada", agent="tutor").write("Speaks German.")
    memory.session(user="ada", agent="tutor", id="old").add("user", "I moved to Berlin in March.")
    chat = chat_of(memory, session="new")
    with ModelServer(["In Berlin.", "Yes."]) as server:
        done = asked(server, "Which city did I move to?", chat, instructions="Be brief.")
        asked(server, "Did I move to Berlin?", chat, instructions="Be brief.")
    for request in range(2):
        told = system_of(server, request)
        assert told.startswith("Be brief.")
        assert "> Speaks German." in told
        assert told.count("> I moved to Berlin in March.") == 1
    assert "> In Berlin." not in system_of(server, 1)  # it is in the conversation
    assert done.output == "In Berlin."
    assert all(getattr(it, "instructions", None) is None for it in chat.messages())
    kept = [str(message.structured_data) for message in memory.history(user="ada", session="new")]
    assert not any("March" in text or "German" in text for text in kept)


def test_another_user_sees_nothing_of_it(memory: Memory) -> None:
    chat_of(memory, session="s1").add(TURN)
    bob = chat_of(memory, "bob", session="s1")
    assert bob.messages() == []
    with ModelServer(["Nothing."]) as server:
        asked(server, "What was on the picture?", bob)
    assert [it["role"] for it in server.requests[0].body["messages"]] == ["user"]


def test_the_model_may_use_the_tools_of_the_memory(memory: Memory) -> None:
    memory.session(user="ada", agent="tutor", id="old").add("user", "My cat is called Tom.")
    calls: Answer = [{"name": "recall", "args": {"query": "cat", "limit": 1}}]
    wrong: Answer = [{"name": "recall", "args": {"limit": "many"}}]
    with ModelServer([wrong, calls, "Tom."]) as server:
        done = asked(server, "Hi", chat_of(memory, session="new", tools=("recall",)))
    assert done.output == "Tom."
    offered = {it["function"]["name"]: it for it in server.requests[0].body["tools"]}
    assert set(offered) == {"weather", "recall"}
    assert offered["recall"]["function"]["parameters"]["required"] == ["query"]
    answers = [it["content"] for it in server.requests[2].body["messages"] if it["role"] == "tool"]
    assert "the arguments are wrong" in answers[0]
    assert "many" not in answers[0]
    assert "My cat is called Tom." in answers[1]


def test_each_tool_has_a_schema_and_a_name_that_is_none_is_refused(memory: Memory) -> None:
    toolset = memory_toolset(Toolbox(memory, user="ada"))
    assert tuple(sorted(toolset.tools)) == tuple(sorted(TOOLS))
    with pytest.raises(InvalidError, match="1 of the names are no tools"):
        memory_toolset(Toolbox(memory, user="ada"), only=["recal"])


def test_what_other_doors_said_is_part_of_the_conversation(memory: Memory) -> None:
    session = memory.session(user="ada", agent="tutor", id="s1")
    session.add("system", "Be kind.")
    session.add("user", "Look!", images=["https://example.org/a.png"])
    calls = [{"id": "c1", "name": "look", "args": {"at": "it"}}]
    session.remember(Message("assistant", "One moment.", tool_calls=cast(Any, calls)))
    session.add("tool", "a boat", name="look", tool_call_id="c1")
    chat = chat_of(memory, session="s1")
    with ModelServer(["A boat."]) as server:
        assert asked(server, "Well?", chat).output == "A boat."
    sent = server.requests[0].body["messages"]
    assert [it["role"] for it in sent] == ["system", "user", "assistant", "tool", "user"]
    assert sent[1]["content"][1]["image_url"]["url"] == "https://example.org/a.png"
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"at":"it"}'


def test_a_window_begins_with_no_result_whose_call_it_lacks(memory: Memory) -> None:
    chat = chat_of(memory, session="s1")
    chat.add(TURN)
    assert chat_of(memory, session="s1", k=2).messages() == plain(TURN[-1:])
    assert chat_of(memory, session="s1", k=5).messages() == plain(TURN[1:])


def test_a_cleared_conversation_is_forgotten(memory: Memory) -> None:
    chat = chat_of(memory)
    chat.add(TURN)
    chat.clear()
    assert chat.messages() == []
    assert not memory.recall("boat", user="ada", deadline_ms=None).hits
    chat.add(TURN)
    assert chat.messages() == plain(TURN)


def test_a_model_that_fails_leaves_what_the_user_said(memory: Memory) -> None:
    with (
        ModelServer([ErrorAnswer.refusal("no such key", 401)]) as server,
        pytest.raises(ModelHTTPError),
    ):
        asked(server, "I moved to Berlin.", chat_of(memory))
    assert [it.text for it in memory.history(user="ada")] == ["I moved to Berlin."]


class Away(SqliteStore):
    """A store that can be opened and nothing else."""

    def history(self, *args: Any, **named: Any) -> Any:
        raise StoreUnavailableError("the store is away")

    find = note = history


def test_a_store_that_is_away_leaves_the_agent_answering(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory(Away(tmp_path / "m.db"), embedder=None, extraction=None) as memory:
        chat = chat_of(memory, session="s1")
        with ModelServer(["Hello."]) as server:
            assert asked(server, "Hi", chat).output == "Hello."
    assert set(chat.failed) == {"history", "remember", "recall"}
    assert "the agent goes on without its memory (recall): the store is away" in caplog.text
