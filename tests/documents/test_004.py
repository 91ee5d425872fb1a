"""Document 004, memory and context: its names and its examples."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware

from memorist import Article, Extraction, Library, Memory, Message, Window
from memorist.agents.middleware import MemoristMiddleware
from memorist.agents.react import ReactAgent
from memorist.agents.toolbox import Toolbox
from memorist.agents.tools import memory_tools
from memorist.config import Settings
from memorist.context.tokens import TokenCounter
from memorist.errors import ConfigError
from memorist.providers.openai_chat import OpenAIChat
from memorist.providers.tokenizer import tokenizer_for
from memorist.records.message import UNSET
from memorist.runtime import deadline_of, window_of
from memorist.server.chat import ChatRuntime
from memorist.testing.scripted import ScriptedChatModel
from tests.documents.names import uses
from tests.support.model_server import ModelServer

WINDOW = 262_144
BILINGUAL = "## Предыдущее обсуждение / Previous conversation:"
COUNTER = TokenCounter(tokenizer_for("gpt-4"))  # cl100k_base, as in the document


def _asking(text: str) -> Any:
    return {"messages": [("user", text)]}


def words(tokens: int) -> str:
    """A text of so many tokens."""
    text = "word" + " word" * (tokens - 1)
    assert COUNTER.text(text) == tokens
    return text


@uses("memory_compression_threshold_pct", "max_tokens_before_summary", "context_window")
@uses("memory_compression_target_tokens", "messages_to_keep")
def test_the_defaults_of_compression_are_the_documents() -> None:
    window = Window(max_tokens=262_144)
    assert window.threshold == 222_822  # 85 %
    assert window.summary_tokens == 1_000
    assert window.keep_last == 4
    assert window.move_at == 0.85
    assert (window.summary_prompt, window.summary_prefix) == ("", "")


def test_every_default_is_a_setting_of_the_library_the_environment_and_chat() -> None:
    usual = Settings.from_environment({"MEMORIST_URL": ":memory:"})
    assert (usual.recall_deadline_ms, usual.messages_to_keep) == (50, 4)
    assert usual.memory_compression_threshold_pct == usual.larger_model_threshold_pct == 85
    assert usual.memory_compression_target_tokens == 1_000
    assert (usual.importance_score, usual.summarize_every, usual.force_update) == (0.7, 5, False)
    assert (usual.summary_prompt, usual.summary_prefix, usual.model_window) == ("", "", 16_000)
    given = {
        "RECALL_DEADLINE_MS": "80",
        "MEMORY_COMPRESSION_THRESHOLD_PCT": "70",
        "MEMORY_COMPRESSION_TARGET_TOKENS": "500",
        "MESSAGES_TO_KEEP": "6",
        "LARGER_MODEL_THRESHOLD_PCT": "60",
        "SUMMARY_PROMPT": "Summarize the conversation so far...",
        "SUMMARY_PREFIX": "Before:",
        "IMPORTANCE_SCORE": "0.9",
        "SUMMARIZE_EVERY": "7",
        "FORCE_UPDATE": "1",
    }
    environment = {f"MEMORIST_{name}": value for name, value in given.items()}
    set_ = Settings.from_environment({"MEMORIST_URL": ":memory:", **environment})
    assert (set_.importance_score, set_.summarize_every, set_.force_update) == (0.9, 7, True)
    with Memory(":memory:", embedder=None, extraction=None, settings=set_) as memory:
        chats = ChatRuntime.of(set_).settings
        assert deadline_of(UNSET, memory.settings) == chats.deadline_ms == 80
        for window in (
            window_of(None, memory.settings),
            window_of(Window(max_tokens=WINDOW), memory.settings),
            chats.window,
        ):
            assert (window.compress_at, window.summary_tokens, window.keep_last) == (0.7, 500, 6)
            assert (window.move_at, window.summary_prefix) == (0.6, "Before:")
            assert window.summary_prompt == "Summarize the conversation so far..."
        own = window_of(
            Window(compress_at=0.5, keep_last=2), memory.settings
        )  # an argument goes before
        assert (own.compress_at, own.keep_last, own.summary_tokens) == (0.5, 2, 500)
    for wrong in ({"MESSAGES_TO_KEEP": "few"}, {"IMPORTANCE_SCORE": "1.5"}, {"FORCE_UPDATE": "2"}):
        [(name, value)] = wrong.items()
        with pytest.raises(ConfigError, match=f"MEMORIST_{name} is a .*number from 0"):
            Settings.from_environment({f"MEMORIST_{name}": value})


@uses("SummarizationMiddleware", "create_agent", "token_counter", "tiktoken_counter", "cl100k_base")
def test_the_documents_agent_beside_ours(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """LangChain counts with our counter, and ours does the same without it."""
    caplog.set_level(logging.INFO, "memorist")
    MemoristMiddleware(memory, window=Window(max_tokens=262_144))
    assert "(threshold: 222822 tokens at 85%, window: 262144)" in caplog.text
    assert COUNTER.tokenizer.name == "cl100k_base"
    assert COUNTER.tokenizer.exact

    def tiktoken_counter(messages: Any) -> int:
        return sum(COUNTER.text(str(it.content)) for it in messages)

    said = [(role, words(60)) for _ in range(4) for role in ("user", "assistant")]
    theirs = SummarizationMiddleware(
        model=ScriptedChatModel(["They said a word."]),
        token_counter=tiktoken_counter,
        trigger=("tokens", 400),
        keep=("messages", 4),
        summary_prompt="Summarize the conversation so far... {messages}",
    )
    window = Window(max_tokens=600, model="gpt-4", memories=0)
    ours = MemoristMiddleware(memory, user="ada", window=window)
    asked: Any = {"messages": [*said, ("user", "And?")]}
    model = ScriptedChatModel(["Well.", "Well."], counter=COUNTER)
    create_agent(model, tools=[], middleware=[theirs]).invoke(asked)
    create_agent(model, tools=[], middleware=[ours]).invoke(asked)
    first, second = model.prompts
    assert len(first.messages) == 1 + 4
    assert len(second.messages) == 1 + 4 + 1  # the question is beside the four
    assert str(second.messages[0].content).startswith("## Previous conversation:")
    assert second.tokens <= 600
    assert len(memory.history(user="ada")) == 10  # all turns, verbatim, and the answer


@uses("_conversations.append", "stream_response")
def test_a_message_is_stored_before_the_agent_runs(memory: Memory) -> None:
    def answer(messages: Any) -> str:
        return f"{len(memory.history(user='ada'))} is stored."

    agent = ReactAgent(ScriptedChatModel(answer), memory, user="ada")
    *_, response = agent.stream("What was it?")
    assert response.message == "1 is stored."  # type: ignore[union-attr]


@uses("summary_prompt", "_compress_memory")
def test_a_model_is_asked_with_the_summary_prompt() -> None:
    good = "## Request and intent\n- Plan the move to Berlin.\n## Open tasks\n- Cancel the lease."
    prompt = "Summarize the conversation so far, and keep every number."
    with ModelServer(lambda body: good) as server:
        extraction = Extraction(model=OpenAIChat("any", url=server.url))
        with Memory(":memory:", embedder=None, extraction=extraction) as memory:
            chat = memory.session(user="ada")
            for text in ("Plan the move to Berlin.", "I must cancel the lease.", "Now?"):
                chat.add("user", text)
            made = chat.compress(Window(keep_last=1, summary_prompt=prompt))
            assert made is not None
            assert made.made_by != "extractive"
    systems = [it.body["messages"][0]["content"] for it in server.requests]
    [system] = [it for it in systems if it.startswith(f"{prompt}\n\n")]  # others are of memories
    assert "## Current work and next step" in system  # the eight parts stay


@uses("summary_prefix", "_build_messages_with_memory")
def test_the_prefix_is_bilingual_where_the_conversation_is(memory: Memory) -> None:
    english, russian = "We take the night train to the sea.", "Мы едем на поезде в Петербург."

    def prefix(*said: str, **options: Any) -> str:
        chat = memory.session(user="ada", new=True)
        for number in range(24):
            chat.add("user", f"{said[number % len(said)]} {number}")
        assert chat.compress(Window(keep_last=2)) is not None
        context = chat.context("And?", window=Window(memories=0, **options))
        return str(context.messages[0]["content"].splitlines()[0])

    assert prefix(english) == "## Previous conversation:"
    assert prefix(russian) == "## Предыдущее обсуждение:"
    assert prefix(english, russian) == BILINGUAL
    assert prefix(english, summary_prefix=BILINGUAL) == BILINGUAL


@uses("retriever.retrieve", "retriever._apply_context_budget", "system_prompt")
@uses("top_k", "reserved_tokens", "Article")
def test_retrieval_counts_as_the_document_does(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memorist")
    system = words(2_048)
    library = Library(memory, "handbook", system_prompt=system)
    library.add("Returns", "# Returns\n\nA lamp may be returned within thirty days.\n")
    question = words(500)

    def budget(reserved: int, query: str = question) -> int:
        library.retrieve(query, top_k=None, reserved_tokens=reserved, window=WINDOW, model="gpt-4")
        line = caplog.messages[-1]
        assert line.startswith("Context window: 262144 tokens, system prompt: 2048, reserved for c")
        assert f"reserved for conversation: {reserved}, using " in line
        return int(line.partition(", using ")[2].split()[0])

    assert budget(10_240, "") == 249_856  # the line of the document
    assert budget(0) == 262_144 - 2_048 - 500  # turn 1
    assert budget(10_000) == 262_144 - 2_048 - 10_000 - 500  # turn 5
    assert budget(150_000) == 262_144 - 2_048 - 150_000 - 500  # turn 50
    assert budget(5_000) == 262_144 - 2_048 - 5_000 - 500  # restored after turn 60
    assert budget(262_144) == 0
    [found] = library.retrieve("may I return a lamp?", 1, reserved_tokens=40_000)
    assert found.whole
    assert isinstance(library.get(found.id), Article)


def test_at_the_threshold_the_older_turns_become_a_summary(memory: Memory) -> None:
    window = Window(max_tokens=WINDOW, model="gpt-4", memories=0)
    chat = memory.session(user="ada")
    messages = [Message("user" if n % 2 else "assistant", words(3_800)) for n in range(60)]
    memory.remember(messages[:50], user="ada", session=chat.id)
    before = chat.context("Turn 50?", window=window).receipt
    assert before.compression is None  # 190,000 tokens
    memory.remember(messages[50:], user="ada", session=chat.id)
    after = chat.context("Turn 61?", window=window).receipt
    made = after.compression
    assert made is not None
    assert len(made.message_ids) == 56  # all but the last four
    assert made.tokens_before > 212_000
    assert 0 < made.tokens_after <= 1_000
    assert after.part("history").ids == tuple(it.message_id for it in messages[-4:])
    assert after.used < 17_000
    assert len(chat.history()) == 60


@uses("retrieve_context", "runtime.state", "estimate_conversation_tokens")
def test_the_tool_reads_the_conversation_from_the_state(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memorist")
    Library(memory).add("Lamps", "# Lamps\n\nA lamp hums.\n" * 400)
    window = Window(max_tokens=6_000, answer_tokens=0, model="gpt-4")
    tools = memory_tools(Toolbox(memory, user="ada", window=window), only=["retrieve_context"])
    call = {"name": "retrieve_context", "args": {"query": "which lamp hums?"}}
    model = ScriptedChatModel([call, "It hums."], counter=COUNTER, max_input_tokens=6_000)
    create_agent(model, tools).invoke(_asking(words(3_000)))
    first, second = model.prompts
    assert first.tokens + 300 < second.tokens <= 6_000
    reserved = int(caplog.messages[0].partition("conversation: ")[2].split(",")[0])
    assert first.tokens <= reserved < first.tokens + 60  # with the call itself


def test_near_the_limit_a_larger_model_is_asked(memory: Memory) -> None:
    def moved(tokens: int, **options: Any) -> bool:
        small, large = ScriptedChatModel(["Small."]), ScriptedChatModel(["Large."])
        window = Window(max_tokens=1_000, answer_tokens=0, **options)
        mate = MemoristMiddleware(memory, user="ada", window=window, larger_model=large)
        agent = create_agent(small, middleware=[mate])
        config: Any = {"configurable": {"thread_id": f"{tokens} {options}"}}
        agent.invoke(_asking(words(tokens)), config)
        return bool(large.prompts)

    assert not moved(800)
    assert moved(870)
    assert moved(600, move_at=0.5)
    assert not moved(960, move_at=1.0)


def test_one_message_saves_nothing_and_never_less(memory: Memory) -> None:
    chat = memory.session(user="ada")
    chat.add("user", "Hi, I am Ada.")
    digest = Toolbox(memory, user="ada").summarize_session(chat.id, "ada", force_update=True)
    assert digest["updated"]
    assert digest["tokens_saved"] == 0


def test_the_settings_are_the_table_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text("utf-8")
    for name in Settings.__dataclass_fields__:
        assert f"`{name.upper()}`" in page or name.startswith("jwt_"), name
