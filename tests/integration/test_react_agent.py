"""ReactAgent over a real `create_agent`: document 002, told as stories."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from memorist import Memory, Notebook, Window
from memorist.agents.react import ReactAgent, Response, Token, ToolResult, ToolStarted
from memorist.agents.toolbox import Toolbox
from memorist.agents.tools import memory_tools
from memorist.errors import InvalidError, StoreUnavailableError
from memorist.lifecycle.settings import Extraction, Policy
from memorist.store.sqlite.store import SqliteStore
from memorist.testing.scripted import Cut, ScriptedChatModel
from tests.support.models import asked_in

SLOW = 5_000.0  # ms: on a busy machine, recall is not what these tests wait for


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory


@tool
def file_read(path: str) -> str:
    """Read a file."""
    return f"{path}: all is well"


@tool
def todo_update(item: str) -> str:
    """Update the list."""
    return "done"


@tool
def open_door(number: int) -> str:
    """Open a door."""
    raise RuntimeError(f"no door has the number {number}")


READ = {"name": "file_read", "args": {"path": "log.txt"}}
TODO = {"name": "todo_update", "args": {"item": "log"}}
OPEN = {"name": "open_door", "args": {"number": 7}}


def made(memory: Memory | None, model: Any, **options: Any) -> ReactAgent:
    model = model if isinstance(model, ScriptedChatModel) else ScriptedChatModel(model)
    tools = options.pop("tools", [file_read, todo_update, open_door])
    options = {"user": "ada", "deadline_ms": SLOW, **options}
    return ReactAgent(model, memory, tools=tools, system="You are a mate.", **options)


def texts(memory: Memory, session: str | None) -> list[str]:
    return [it.text for it in memory.history(user="ada", agent="assistant", session=session)]


def lessons(memory: Memory, category: str) -> list[Any]:
    memory.jobs.catch_up()
    kept = memory.memories.list(user="ada", agent="assistant")
    return [item for item in kept if item.category == category]


def test_what_was_told_in_one_session_is_recalled_in_another(memory: Memory) -> None:
    model = ScriptedChatModel(["Noted.", "In Kiel."])
    agent = made(memory, model)
    agent.process_message("My boat is moored in Kiel.", "monday")
    answer = agent.process_message("Where is my boat moored?", "tuesday")
    assert (answer.message, answer.session_id) == ("In Kiel.", "tuesday")
    assert "> My boat is moored in Kiel." in model.prompts[1].messages[-1].text
    told = memory.history(user="ada", session="monday")[0]
    assert told.message_id in answer.recalled
    assert answer.receipt is not None
    assert answer.receipt.used == sum(part.tokens for part in answer.receipt.parts) > 0
    assert answer.receipt.part("memories").ids == answer.recalled
    assert answer.warnings == ()


def test_without_a_session_it_is_the_users_active_one_with_this_agent(memory: Memory) -> None:
    model = ScriptedChatModel(["One.", "Two.", "Three."])
    agent = made(memory, model)
    first, second = agent.process_message("First"), agent.process_message("Second")
    assert first.session_id == second.session_id is not None
    assert texts(memory, first.session_id) == ["First", "One.", "Second", "Two."]
    assert [it.text for it in model.prompts[1].messages[1:]] == ["First", "One.", "Second"]
    other = made(memory, model, agent="other").process_message("Third")
    assert other.session_id not in (first.session_id, None)


def test_a_tool_that_works_becomes_task_history(memory: Memory) -> None:
    answer = made(memory, [READ, TODO, "Done."]).process_message("Look after the log", "s")
    names = [(it.name, it.arguments, it.result, it.success) for it in answer.tool_results]
    assert names == [
        ("file_read", {"path": "log.txt"}, "log.txt: all is well", True),
        ("todo_update", {"item": "log"}, "done", True),
    ]
    assert all(it.duration_ms > 0 for it in answer.tool_results)
    chain, usage = sorted(lessons(memory, "task_history"), key=lambda item: item.text)
    assert usage.importance == 0.7
    assert usage.tags == ("tool_usage", "success", "file_read", "todo_update")
    assert usage.text.startswith("Successfully used tools: file_read, todo_update (total time: ")
    assert chain.text == "A task was done with the tools file_read → todo_update"
    assert lessons(memory, "error_patterns") == []


def test_a_tool_that_fails_becomes_an_error_pattern_and_the_model_may_go_on(memory: Memory) -> None:
    model = ScriptedChatModel([OPEN, "It is locked."])
    answer = made(memory, model).process_message("Open door 7", "s")
    assert answer.message == "It is locked."
    (result,) = answer.tool_results
    assert (result.name, result.success) == ("open_door", False)
    assert result.result == "RuntimeError: no door has the number 7"
    seen = model.prompts[1].messages[-1]
    assert isinstance(seen, ToolMessage)
    assert (seen.text, seen.status) == (result.result, "error")
    (lesson,) = lessons(memory, "error_patterns")
    assert lesson.importance == 0.8
    assert lesson.tags == ("tool_failure", "error", "open_door")
    assert lesson.text.startswith("Failed tools: open_door")
    assert lessons(memory, "task_history") == []


def test_a_tool_that_is_not_there_and_wrong_arguments_are_failures_too(memory: Memory) -> None:
    calls = [{"name": "invalid_tool", "args": {}}, {"name": "open_door", "args": {"number": "x"}}]
    answer = made(memory, [calls, "Sorry."]).process_message("Try", "s")
    assert [(it.name, it.success) for it in answer.tool_results] == [
        ("invalid_tool", False),
        ("open_door", False),
    ]
    (lesson,) = lessons(memory, "error_patterns")
    assert set(lesson.tags[2:]) == {"invalid_tool", "open_door"}  # they ran at the same time


def test_a_failure_comes_back_when_it_bears(memory: Memory) -> None:
    model = ScriptedChatModel([OPEN, "It is locked.", "I will not try again."])
    agent = made(memory, model)
    agent.process_message("Open door 7", "s")
    memory.jobs.catch_up()
    agent.process_message("Did open_door fail before?", "t")
    assert "> RuntimeError: no door has the number 7" in model.prompts[2].messages[-1].text
    found = memory.recall(
        "failed tools", user="ada", agent="assistant", deadline_ms=SLOW, kind="memory"
    )
    assert found.hits[0].text.startswith("Failed tools: open_door")


def test_what_is_stored_says_how_each_tool_did(memory: Memory) -> None:
    made(memory, [[READ, OPEN], "Half done."]).process_message("Both, please", "s")
    log = memory.history(user="ada", session="s")
    assert [it.role for it in log] == ["user", "assistant", "tool", "tool", "assistant"]
    told = {it.name: it.structured_data for it in log if it.role == "tool"}
    assert told["file_read"]["success"] is True  # type: ignore[index]
    assert told["open_door"]["success"] is False  # type: ignore[index]
    assert told["open_door"]["arguments"] == {"number": 7}  # type: ignore[index]


def test_a_tool_that_changes_the_state_tells_its_result(memory: Memory) -> None:
    @tool
    def note(text: str) -> Any:
        """Note something."""
        return Command(update={"messages": [ToolMessage("noted", tool_call_id="call-1")]})

    model = [{"name": "note", "args": {"text": "x"}, "id": "call-1"}, "Good."]
    (result,) = made(memory, model, tools=[note]).process_message("Note x", "s").tool_results
    assert (result.result, result.success) == ("noted", True)


def test_memory_tools_are_those_of_the_session(memory: Memory) -> None:
    box = Toolbox(memory, user="ada", agent="assistant")
    model = [{"name": "remember", "args": {"content": "I am Ada."}}, "Noted."]
    agent = made(memory, model, tools=memory_tools(box, only=["remember"]))
    assert agent.process_message("Hello", "s").tool_results[0].success
    assert "I am Ada." in texts(memory, "s")


def test_a_stream_gives_tokens_tool_events_and_then_the_response(memory: Memory) -> None:
    agent = made(memory, [READ, "All is well."])
    *events, response = agent.stream("How is the log?", "s")
    started, result = events[:2]
    assert started == ToolStarted("file_read", {"path": "log.txt"})
    assert isinstance(result, ToolResult)
    assert result.success
    assert events[2:] == [Token("All "), Token("is "), Token("well.")]
    assert isinstance(response, Response)
    assert (response.message, response.tool_results) == ("All is well.", (result,))
    assert response.receipt is not None
    assert texts(memory, "s")[-1] == "All is well."


def test_a_stream_that_breaks_raises_after_what_was_said(memory: Memory) -> None:
    stream = made(memory, [Cut("All is")]).stream("How is the log?", "s")
    said: list[Any] = []
    with pytest.raises(ConnectionError):
        said.extend(stream)
    assert "".join(it.text for it in said if isinstance(it, Token)) == "All is"
    assert texts(memory, "s") == ["How is the log?"]


def test_what_a_model_says_inside_of_a_tool_is_not_the_agents(memory: Memory) -> None:
    inner = ScriptedChatModel(["hidden words"])

    @tool
    def ask() -> str:
        """Ask another model."""
        return str(inner.invoke("Hm?").text)

    agent = made(memory, [{"name": "ask", "args": {}}, "Seen."], tools=[ask])
    said = [event.text for event in agent.stream("Ask", "s") if isinstance(event, Token)]
    assert said == ["Seen."]


def test_an_agent_may_be_the_tool_of_another(memory: Memory) -> None:
    inner = made(memory, [READ, "The clerk is well."], agent="clerk")

    @tool
    def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        get_stream_writer()("extraction")
        return inner.process_message(question, "back office").message

    call = {"name": "ask_clerk", "args": {"question": "How are you?"}}
    outer = made(memory, [call, "All well."], tools=[ask_clerk])
    *events, response = outer.stream("How is the clerk?", "front office")
    assert [event.name for event in events[:2]] == ["ask_clerk"] * 2  # type: ignore[union-attr]
    assert events[2:] == [Token("All "), Token("well.")]
    assert isinstance(response, Response)
    assert [it.result for it in response.tool_results] == ["The clerk is well."]
    held = {it.id: it.scope.agent for it in memory.sessions(user="ada")}
    assert held == {"front office": "assistant", "back office": "clerk"}


def test_all_of_it_works_with_asyncio(memory: Memory) -> None:
    agent = made(memory, [OPEN, "Locked.", READ, "Well."])

    async def talk() -> tuple[Response, list[Any]]:
        answer = await agent.aprocess_message("Open door 7", "s")
        return answer, [event async for event in agent.astream("How is the log?", "s")]

    answer, events = asyncio.run(talk())
    assert answer.message == "Locked."
    assert [it.success for it in answer.tool_results] == [False]
    assert [type(event) for event in events] == [ToolStarted, ToolResult, Token, Response]
    assert texts(memory, "s")[-1] == "Well."
    assert len(lessons(memory, "error_patterns")) == len(lessons(memory, "task_history")) == 1


def test_a_models_error_is_raised_and_nothing_said_is_lost(memory: Memory) -> None:
    agent = made(memory, [ConnectionError("the model is away"), "Here."])
    with pytest.raises(ConnectionError, match="the model is away"):
        agent.process_message("Are you there?", "s")
    assert texts(memory, "s") == ["Are you there?"]
    assert agent.process_message("And now?", "s").message == "Here."


def test_many_at_once_have_each_their_own_answer(memory: Memory) -> None:
    model = ScriptedChatModel(lambda messages: f"You said {asked_in(messages)}")
    agent = made(memory, model)

    def ask(number: int) -> Response:
        return agent.process_message(f"word{number} " * (number + 1), f"session-{number}")

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(8)))
    for number, answer in enumerate(answers):
        assert answer.message == f"You said {f'word{number} ' * (number + 1)}"
        assert answer.session_id == f"session-{number}"
    sizes = [it.receipt.part("question").tokens for it in answers if it.receipt is not None]
    assert sizes == sorted(set(sizes))
    assert len(sizes) == 8


def test_a_long_talk_is_compressed_and_moves_to_the_larger_model(memory: Memory) -> None:
    small = ScriptedChatModel(lambda _: "Well, well. " * 10)
    large = ScriptedChatModel(["That was long."], max_input_tokens=9_000)
    window = Window(max_tokens=700, answer_tokens=0)
    agent = made(memory, small, tools=[], window=window, larger_model=large)
    for day in range(20):
        answer = agent.process_message(f"On day {day} I saw {day + 3} ships.", "s")
    assert answer.receipt is not None
    assert answer.receipt.part("summary").tokens > 0
    assert answer.receipt.used <= 700
    assert agent.process_message("tack " * 800, "s").message == "That was long."
    assert len(texts(memory, "s")) == 42


class Moody(SqliteStore):
    """A real store that can be told to fail, or whose search by words hangs."""

    dead = False
    gate: threading.Event | None = None

    def __getattribute__(self, name: str) -> Any:
        asked = name in ("append", "find", "history", "summary", "match_text", "open_session")
        if asked and super().__getattribute__("dead"):
            raise StoreUnavailableError("the server cannot be reached")
        return super().__getattribute__(name)

    def match_text(self, *args: Any, **named: Any) -> Any:
        if self.gate is not None:
            self.gate.wait(20)
        return super().match_text(*args, **named)


@pytest.fixture
def moody(tmp_path: Path) -> Iterator[tuple[Memory, Moody]]:
    store = Moody(str(tmp_path / "moody.db"))
    with Memory(store, embedder=None, extraction=None) as memory:
        yield memory, store


def test_a_recall_that_is_late_is_not_waited_for(moody: tuple[Memory, Moody]) -> None:
    memory, store = moody
    store.gate = threading.Event()
    answer = made(memory, ["Here."], deadline_ms=50.0).process_message("Are you there?", "s")
    store.gate.set()
    assert answer.message == "Here."
    assert "words: late, and not waited for" in answer.warnings


def test_a_dead_memory_leaves_the_agent_answering_and_says_so(moody: tuple[Memory, Moody]) -> None:
    memory, store = moody
    store.dead = True
    agent = made(memory, [READ, "All is well.", "Yes."])
    answer = agent.process_message("How is my secret log?")
    assert answer.message == "All is well."
    assert answer.tool_results[0].success
    assert answer.session_id is None
    assert any("the server cannot be reached" in warning for warning in answer.warnings)
    assert "secret" not in str(answer.warnings)
    store.dead = False
    healed = agent.process_message("Are you back?")
    assert healed.warnings == ()
    assert texts(memory, healed.session_id)[0] == "How is my secret log?"


def test_a_conversation_goes_on_while_the_memory_is_dead_and_is_stored_once(
    moody: tuple[Memory, Moody],
) -> None:
    memory, store = moody
    store.dead = True
    model = ScriptedChatModel([READ, "Well.", "The log.", "Here we are."])
    agent = made(memory, model)
    for text in ("How is the log?", "What did I ask?"):
        agent.process_message(text, "s")
    store.dead = False
    assert [it.type for it in model.prompts[2].messages[1:]] == [
        "human",
        "ai",
        "tool",
        "ai",
        "human",
    ]
    assert agent.process_message("And now?", "s").warnings == ()
    assert len(model.prompts[3].messages) == 8
    said = texts(memory, "s")
    assert [said[0], *said[3:]] == [
        "How is the log?",
        "Well.",
        "What did I ask?",
        "The log.",
        "And now?",
        "Here we are.",
    ]


def test_without_a_memory_a_conversation_is_kept_for_a_while() -> None:
    model = ScriptedChatModel(lambda _: "Well.")
    agent = made(None, model)
    for number in range(60):
        agent.process_message(f"message {number}", "s")
    assert len(model.prompts[-1].messages) == 1 + 50 + 1
    assert model.prompts[-1].messages[1].text == "message 34"
    agent.process_message("Hello", "t")
    assert len(model.prompts[-1].messages) == 2


def test_without_a_memory_it_answers_and_says_so() -> None:
    agent = made(None, [OPEN, "Locked."])
    answer = agent.process_message("Open door 7", "s")
    assert (answer.message, answer.session_id, answer.receipt) == ("Locked.", "s", None)
    assert answer.warnings == ("memory: there is none; the agent answers without",)
    assert not answer.tool_results[0].success


def test_memories_are_tidied_in_the_background(tmp_path: Path) -> None:
    policy = Policy(promote_importance=0.6, promote_uses=0, promote_age=timedelta(0))
    extraction = Extraction(policy=policy, maintain_every=1)
    with Memory(tmp_path / "memory.db", embedder=None, extraction=extraction) as memory:
        made(memory, [READ, "Done."]).process_message("Read the log", "s")
        assert [item.tier for item in lessons(memory, "task_history")] == ["long"]


def test_notes_are_before_the_model(memory: Memory) -> None:
    Notebook(memory, user="ada", agent="assistant").append("- likes short answers")
    model = ScriptedChatModel(["Hi."])
    made(memory, model).process_message("Hello", "s")
    assert "> - likes short answers" in model.prompts[0].messages[0].text


def test_middleware_of_ones_own_takes_part(memory: Memory) -> None:
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    answer = made(memory, [READ, "Never said."], middleware=[limit]).process_message("Hm", "s")
    assert "limit" in answer.message


class KeepsQuestions(AgentMiddleware[Any, Any, Any]):
    """Takes all but the user's messages out of the state, as one that summarises might."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        kept = [it for it in state["messages"] if isinstance(it, HumanMessage)]
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *kept]}


def test_results_of_tools_are_told_though_their_calls_were_taken_out(memory: Memory) -> None:
    agent = made(memory, [READ, TODO, "Done."], middleware=[KeepsQuestions()])
    answer = agent.process_message("Look after the log", "s")
    assert [it.name for it in answer.tool_results] == ["file_read", "todo_update"]


def test_the_graph_may_be_run_as_it_is(memory: Memory) -> None:
    agent = made(memory, [READ, "Well."])
    asked = {"messages": [HumanMessage("How is the log?")]}
    result = agent.graph.invoke(asked, {"configurable": {"thread_id": "s"}})
    assert result["messages"][-1].text == "Well."
    assert texts(memory, "s")[0] == "How is the log?"


def test_nothing_to_answer_and_unknown_options_are_refused(memory: Memory) -> None:
    agent = made(memory, ["Hi."])
    for nothing in ("", "  ", None):
        with pytest.raises(InvalidError, match="needs a text"):
            agent.process_message(nothing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="wndow"):
        made(None, ["Hi."], wndow=Window())


def test_importing_it_without_langchain_names_the_cure() -> None:
    code = "import sys; sys.modules['langchain'] = None; import memorist.agents.react"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "memorist[agents]"' in done.stderr
