"""The toolbox as LangChain tools: LangChain's own suites, and real agents that call them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from memorist import InvalidError, Library, Memory, Window
from memorist.agents.toolbox import NAMES, Toolbox
from memorist.agents.tools import NOTHING, memory_tools
from memorist.testing.scripted import ScriptedChatModel

KEPT = {"content": "The build needs Python 3.11.", "importance": 0.8, "tags": ["build"]}
EXAMPLES: dict[str, dict[str, Any]] = {
    "recall": {"query": "Berlin", "limit": 3},
    "remember": {"content": "I moved to Berlin in March."},
    "store_session_message": {"session_id": "s1", "role": "user", "content": "Hello."},
    "store_concept": KEPT,
    "store_episode": KEPT,
    "store_fact": {**KEPT, "subject": "build", "predicate": "needs", "object": "Python 3.11"},
    "store_procedure": KEPT,
    "store_working_memory": KEPT,
    "summarize_session": {"session_id": "s1"},
    "manage_long_term_memory": {"operation": "append", "content": "Speaks German."},
    "retrieve_context": {"query": "How long may I return it?"},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        Library(memory).add("Returns", "You may return it within 30 days. " * 40, "returns.md")
        yield memory


@pytest.fixture
def box(memory: Memory) -> Toolbox:
    return Toolbox(memory, user="ada", agent="tutor", session="s1")


class Mine:
    """What LangChain's suites are told of one tool."""

    name = ""
    memory: Memory

    @pytest.fixture(autouse=True)
    def _open(self, memory: Memory) -> None:
        self.memory = memory

    @property
    def tool_constructor(self) -> BaseTool:
        [tool] = memory_tools(Toolbox(self.memory, user="ada"), only=[self.name])
        return tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return EXAMPLES[self.name]


def suite(base: type, name: str) -> type:
    """One of the suites for one tool; its asynchronous tests are run too."""
    return pytest.mark.anyio(type(f"Test_{name}", (Mine, base), {"name": name}))


for tool_name in NAMES:
    globals()[f"TestUnit_{tool_name}"] = suite(ToolsUnitTests, tool_name)
    globals()[f"TestIntegration_{tool_name}"] = suite(ToolsIntegrationTests, tool_name)


def answers(result: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


def ask(box: Toolbox, *calls: tuple[str, dict[str, Any]], **run: Any) -> list[ToolMessage]:
    """What the tools said to an agent that called them one by one."""
    model = ScriptedChatModel([*({"name": name, "args": args} for name, args in calls), "Done."])
    agent = create_agent(model, tools=memory_tools(box), **run.pop("made", {}))
    result = agent.invoke({"messages": "Hello"}, **run)
    assert result["messages"][-1].content == "Done."
    return answers(result)


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_calls_each_tool(box: Toolbox, name: str) -> None:
    box.remember("I moved to Berlin in March.")
    [answer] = ask(box, (name, EXAMPLES[name]))
    assert answer.status == "success"
    assert answer.artifact
    if name != "manage_long_term_memory":
        assert json.loads(answer.text) == answer.artifact


def test_an_agent_calls_every_tool_asynchronously(memory: Memory, box: Toolbox) -> None:
    async def run() -> dict[str, Any]:
        calls = [{"name": name, "args": args} for name, args in EXAMPLES.items()]
        agent = create_agent(ScriptedChatModel([calls, "Done."]), tools=memory_tools(box))
        return await agent.ainvoke({"messages": [HumanMessage("Hello")]})

    found = answers(asyncio.run(run()))
    assert [answer.name for answer in found] == list(NAMES)
    assert {answer.status for answer in found} == {"success"}
    assert len(memory.history(user="ada")) == 2


def test_a_failing_memory_is_a_text_for_the_model_and_the_agent_answers(
    memory: Memory, box: Toolbox
) -> None:
    tools = memory_tools(box)
    memory.close()
    calls = [{"name": name, "args": EXAMPLES[name]} for name in NAMES]
    agent = create_agent(ScriptedChatModel([calls, "Done."]), tools=tools)
    result = agent.invoke({"messages": [HumanMessage("Hello")]})
    found = answers(result)
    assert result["messages"][-1].content == "Done."
    assert {answer.status for answer in found} == {"error"}
    assert all(answer.content for answer in found)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("recall", {"query": "x", "limit": "SECRET"}, "limit"),
        ("recall", {}, "query"),
        ("remember", {"content": "SECRET", "role": "SECRET"}, "role must be one of"),
        ("store_fact", {"content": "SECRET", "subject": "SECRET"}, "or none of them"),
        ("manage_long_term_memory", {"operation": "SECRET"}, "operation"),
        ("store_session_message", {"user_id": "SECRET", "role": "user", "content": "x"}, "another"),
    ],
)
def test_a_wrong_call_is_told_without_what_it_said(
    box: Toolbox, name: str, arguments: dict[str, Any], said: str
) -> None:
    [answer] = ask(box, (name, arguments))
    assert answer.status == "error"
    assert said in answer.text
    assert "SECRET" not in answer.text


def test_nothing_found_is_said_in_words(memory: Memory) -> None:
    nobody = Toolbox(memory, user="nobody")
    [answer] = ask(nobody, ("recall", {"query": "anything"}))
    assert answer.content == NOTHING
    assert answer.artifact == []


def test_retrieval_leaves_room_for_the_running_conversation_to_the_token(memory: Memory) -> None:
    window = Window(max_tokens=3_000, answer_tokens=0)
    box, system = Toolbox(memory, user="ada", window=window), "You are a clerk. " * 20
    tools = memory_tools(box, only=["retrieve_context"], system=system)
    call: dict[str, Any] = {"name": "retrieve_context", "args": EXAMPLES["retrieve_context"]}

    def found(words: int, calls: int = 1) -> tuple[list[Any], int]:
        model = ScriptedChatModel([[call] * calls, "Done."])
        agent = create_agent(model, tools=tools, system_prompt=system)
        said: list[Any] = [HumanMessage("word " * words), AIMessage("I see."), HumanMessage("Now?")]
        result = agent.invoke({"messages": said})
        return answers(result)[0].artifact, model.prompts[1].tokens

    assert found(words=10)[0][0]["whole"]
    sizes = []
    for words in range(1_000, 2_600, 100):
        articles, prompt = found(words)
        assert prompt <= window.max_tokens  # the JSON around the articles is counted, too
        sizes += [prompt] if articles and not articles[0]["whole"] else []
    assert max(sizes) > window.max_tokens * 0.9
    assert found(words=1_800, calls=3)[1] <= window.max_tokens  # each call has its share
    assert found(words=3_000)[0] == []


def test_without_a_run_retrieval_has_the_whole_window(box: Toolbox) -> None:
    [tool] = memory_tools(box, only=["retrieve_context"])
    assert "reserved_tokens" not in tool.args
    assert json.loads(tool.invoke(EXAMPLES["retrieve_context"]))[0]["whole"]


def test_a_name_that_is_no_tool_is_refused(box: Toolbox) -> None:
    with pytest.raises(InvalidError, match="1 of the names"):
        memory_tools(box, only=["recall", "recal"])


@dataclass
class Who:
    user_id: str
    session_id: str


def test_the_run_says_whose_memory_and_which_session_it_is(memory: Memory) -> None:
    many = Toolbox(memory)
    said = ("remember", {"content": "I moved to Berlin in March."})
    ask(many, said, config={"configurable": {"user_id": "ada", "thread_id": "t1"}})
    ask(many, said, made={"context_schema": Who}, context=Who("bob", "s7"))
    assert [session.id for session in memory.sessions(user="ada")] == ["t1"]
    assert [session.id for session in memory.sessions(user="bob")] == ["s7"]
    [nobody] = ask(many, said)
    assert nobody.status == "error"
    assert "no user is named" in nobody.text


def test_a_run_for_another_user_is_refused(memory: Memory, box: Toolbox) -> None:
    config = {"configurable": {"user_id": "bob"}}
    [answer] = ask(box, ("recall", {"query": "Berlin"}), config=config)
    assert answer.status == "error"
    assert memory.sessions(user="bob") == []


def test_a_model_sees_a_description_of_every_tool_and_argument(box: Toolbox) -> None:
    for tool in memory_tools(box):
        function = convert_to_openai_tool(tool)["function"]
        assert function["description"]
        properties = function["parameters"]["properties"]
        assert "runtime" not in properties
        assert all(one["description"] for one in properties.values()), tool.name


def test_without_langchain_the_cure_is_named() -> None:
    code = (
        "import sys; sys.modules['langchain'] = None\n"
        "try: import memorist.agents.tools\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        'MissingExtraError this needs an optional part: pip install "memorist[agents]"'
    )


@pytest.mark.parametrize("page", ["tools.md", "mcp.md"])
def test_the_pages_name_every_tool(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    assert all(f"`{name}`" in text for name in NAMES)
