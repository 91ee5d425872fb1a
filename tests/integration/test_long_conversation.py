"""Sixty turns in a small window: compressed, moved once, nothing lost, and turn 3 is remembered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from memorist import Extraction, Memory, ProviderError, Window
from memorist.agents.langchain import NOTHING, MemoristSummarizer
from memorist.agents.middleware import OVERFLOW, MemoristMiddleware
from memorist.context.tokens import TokenCounter
from memorist.providers.tokenizer import tokenizer_for
from memorist.testing.scripted import ScriptedChatModel, ScriptedOverflowError
from tests.support.models import asked_in

TURNS = 60
MOVES_AT = 30
SMALL = 1_500
PLACES = ("Kiel", "Bergen", "Riga", "Gdansk", "Visby", "Turku", "Malmo")
QUESTION = "What is the code of my locker at the harbour sauna?"


def said(turn: int) -> str:
    """What the user says in a turn: something new each time, and in turn 3 a secret."""
    if turn == 3:
        return "By the way, the code of my locker at the harbour sauna is 4711."
    place = PLACES[turn % len(PLACES)]
    return f"Turn {turn}: we sail to {place} with {turn + 2} guests; what do we need for {place}?"


def answer(messages: list[BaseMessage]) -> Any:
    """A model that knows what is in its prompt, calls a tool now and then, and chats."""
    asked = asked_in(messages)
    if QUESTION in asked:
        code = re.search(r"harbour sauna is (\d+)", "\n".join(str(it.text) for it in messages))
        return f"It is {code[1]}." if code else "I do not know."
    if asked.startswith("Turn") and messages[-1].type == "human" and "8 guests" in asked:
        return {"name": "weather", "args": {"place": "Baltic"}}
    return f"Take ropes, tea and {len(asked)} biscuits. " + "Fair winds to you all! " * 3


@tool
def weather(place: str) -> str:
    """The weather at a place."""
    return f"{place}: wind 4, " + "a few clouds, " * 10


class Boat:
    """An agent with a small window, and what is sent to its two models."""

    def __init__(self, memory: Memory, saver: Any = None) -> None:
        counter = TokenCounter(tokenizer_for("gpt-4o"))
        self.small = ScriptedChatModel(self.reply, max_input_tokens=SMALL, counter=counter)
        self.large = ScriptedChatModel(answer, max_input_tokens=8_000, counter=counter)
        self.middleware = MemoristMiddleware(
            memory,
            user="ada",
            agent="mate",
            larger_model=self.large,
            deadline_ms=None,
            window=Window(max_tokens=SMALL, answer_tokens=100, model="gpt-4o"),
        )
        self.agent: Any = create_agent(
            self.small,
            [weather],
            system_prompt="You are the mate of a boat.",
            middleware=[self.middleware],
            checkpointer=saver,
        )

    def reply(self, messages: list[BaseMessage]) -> Any:
        if messages[-1].type == "human" and asked_in(messages) == said(MOVES_AT):
            raise ScriptedOverflowError(SMALL + 1, SMALL)  # it counts otherwise than we do
        return answer(messages)

    def ask(self, text: str) -> dict[str, Any]:
        config = {"configurable": {"thread_id": "voyage"}}
        result: dict[str, Any] = self.agent.invoke({"messages": [HumanMessage(text)]}, config)
        return result


def check_log(memory: Memory, turns: int) -> None:
    """Every word of every turn is there once, in order, each followed by its answer."""
    log = memory.history(user="ada", agent="mate", session="voyage")
    users = [message.text for message in log if message.role == "user"]
    assert users == [*map(said, range(1, turns + 1)), QUESTION][: len(users)]
    assert len(users) >= turns
    finals = [it for it in log if it.role == "assistant" and not it.tool_calls]
    assert len(finals) == len(users)
    assert len({message.message_id for message in log}) == len(log)


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_with_tables")
    return url


@pytest.mark.parametrize(
    ("target", "saver"),
    [("sqlite", InMemorySaver), ("postgres", lambda: None)],
    ids=["sqlite, checkpointed", "postgres, log alone"],
    indirect=["target"],
)
def test_sixty_turns_in_a_small_window(target: str, saver: Any) -> None:
    with Memory(target, embedder=None) as memory:
        boat = Boat(memory, saver())
        results = [boat.ask(said(turn)) for turn in range(1, TURNS + 1)]
        last = boat.ask(QUESTION)
        assert last["messages"][-1].text == "It is 4711."
        check_log(memory, TURNS)
        log = memory.history(user="ada", agent="mate", session="voyage")
        assert sum(message.role == "tool" for message in log) == 6
        summaries = memory.summaries(user="ada", session="voyage")

    moved = [at for at, it in enumerate(results, start=1) if it["memorist"]["moved"]]
    assert moved == [MOVES_AT]
    assert results[MOVES_AT - 1]["memorist"]["moved"] == OVERFLOW
    assert len(boat.large.prompts) == 1
    assert len(summaries) > 1
    assert sum(it["memorist"]["saved"] > 0 for it in results) > 1
    assert max(prompt.tokens for prompt in boat.small.prompts) <= SMALL - 100
    assert all(not it["memorist"]["failed"] for it in results)

    _, opening, *turns, asked = boat.small.prompts[-1].messages
    assert "harbour sauna is 4711" in asked.text  # recalled, not merely still there
    assert opening.text.startswith("## Previous conversation:")
    assert not any("4711" in message.text for message in turns)


def test_our_summariser_serves_langchains_own_middleware(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        model = ScriptedChatModel(answer)
        summarization = SummarizationMiddleware(
            model,
            trigger=("messages", 12),
            keep=("messages", 4),
            trim_tokens_to_summarize=None,
            summarizer=MemoristSummarizer(memory),
        )
        ours = MemoristMiddleware(memory, user="ada", session="voyage", agent="mate")
        both: list[Any] = [ours, summarization]
        agent: Any = create_agent(model, [weather], middleware=both, checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "voyage"}}
        for turn in range(1, 21):
            result = agent.invoke({"messages": [HumanMessage(said(turn))]}, config)
        first = result["messages"][0]
        assert first.additional_kwargs["lc_source"] == "summarization"
        assert "## Request and intent" in first.text
        assert "4711" in first.text  # from summary to summary
        assert len(result["messages"]) < 14
        check_log(memory, 20)  # and what others summarised is not taken for something said
        shown = model.prompts[-1].messages
        assert not any(message.text == said(2) for message in shown)


class Sulking:
    """A model that does not answer."""

    name = "sulking"

    def complete(self, messages: Any, **options: Any) -> Any:
        raise ProviderError("sulking cannot be reached")


def test_the_summariser_never_raises(tmp_path: Path) -> None:
    talk = [HumanMessage(said(3)), AIMessage("I will not tell anybody."), HumanMessage(said(4))]
    assert MemoristSummarizer()([]) == NOTHING
    assert "4711" in MemoristSummarizer()(talk)
    with Memory(
        tmp_path / "memory.db", embedder=None, extraction=Extraction(model=Sulking())
    ) as memory:
        summarizer = MemoristSummarizer(memory)
        assert "4711" in summarizer(talk)
    assert "4711" in summarizer(talk)  # and neither does a store that is closed
