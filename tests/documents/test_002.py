"""Document 002, the memory flow of the ReactAgent: its names and its examples."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from langchain_core.tools import tool

from memorist import (
    Compression,
    ContextCompressor,
    Extraction,
    LongTermMemory,
    Memory,
    MemoryController,
    MemoryItem,
    Message,
    Policy,
    Query,
    Recall,
    Scope,
    ShortTermMemory,
    Summary,
    Window,
)
from memorist.agents.react import ReactAgent, Response, ToolResult, ToolStarted
from memorist.context.compression.parts import Topic
from memorist.records.message import UNSET, ToolCallMsg
from memorist.records.query import Filters
from memorist.records.values import now
from memorist.runtime import deadline_of
from memorist.store.sqlite.store import SqliteStore
from memorist.testing.scripted import ScriptedChatModel
from tests.documents.names import uses

SOLUTION = "The solution was to raise the limit: that solved it."


@tool
def file_read(path: str) -> str:
    """Read a file."""
    return "all is well"


@tool
def todo_update(item: str) -> str:
    """Update the list."""
    return "done"


@tool
def invalid_tool(path: str) -> str:
    """Fail."""
    raise RuntimeError("no such file")


def agent_of(memory: Memory, script: Any, tools: list[Any] | None = None) -> ReactAgent:
    model = ScriptedChatModel(script)
    return ReactAgent(model, memory, user="ada", tools=tools or [], deadline_ms=None)


@uses("ReactAgent", "ReactAgent.ProcessMessage", "ReactCore.SolveTask", "ReactTaskResult")
@uses("Response.message", "Response.toolResults", "Response.sessionID", "enhanceContextWithMemory")
@uses("Session.AddMessage", "Session.GetMessages", "addMessageToSession", "parseToolCalls")
@uses("executeSerialToolsStream", "addToolMessagesToSession", "formatMemoryAsMessage")
def test_a_message_is_processed_with_memory_and_tools(memory: Memory) -> None:
    memory.session(user="ada", agent="assistant", id="before").add("user", "The log is in /var.")
    call = {"name": "file_read", "args": {"path": "/var/log"}}
    agent = agent_of(memory, [call, "It is fine.", call, "Still fine."], [file_read])
    response = agent.process_message("Read the log, please.", "s1")
    assert isinstance(response, Response)
    assert (response.message, response.session_id) == ("It is fine.", "s1")
    assert [it.name for it in response.tool_results] == ["file_read"]
    assert response.receipt is not None
    assert response.receipt.part("memories").ids  # what was said before stands above the question
    log = memory.session(user="ada", agent="assistant", id="s1").history()
    assert [it.role for it in log] == ["user", "assistant", "tool", "assistant"]
    assert log[1].tool_calls[0].name == "file_read"
    told = log[2].structured_data or {}
    assert (log[2].name, told["success"], told["arguments"]) == (
        "file_read",
        True,
        {"path": "/var/log"},
    )
    assert told["duration_ms"] >= 0
    events = [type(event) for event in agent.stream("Again, please.", "s1")]
    assert events.index(ToolStarted) < events.index(ToolResult)


@uses("createToolUsageMemory", "createTaskExecutionMemory", "createMemoryAsync")
@uses("tool_usage", "success", "tool_failure", "error")
def test_tools_leave_memories_with_the_documents_words() -> None:
    with Memory(":memory:", embedder=None) as memory:
        read = {"name": "file_read", "args": {"path": "a"}}
        update = {"name": "todo_update", "args": {"item": "b"}}
        agent = agent_of(memory, [read, update, "Done."], [file_read, todo_update])
        agent.process_message("Read it and note it.", "s1")
        failing = {"name": "invalid_tool", "args": {"path": "a"}}
        agent_of(memory, [failing, "No."], [invalid_tool]).process_message("Read it.", "s2")
        memory.jobs.catch_up()
        by_tag = {it.tags[0]: it for it in memory.memories.list(user="ada") if it.tags}
    used, failed = by_tag["tool_usage"], by_tag["tool_failure"]
    assert used.text.startswith("Successfully used tools: file_read, todo_update (total time: ")
    assert used.text.endswith("ms)")
    assert (used.category, used.importance) == ("task_history", 0.7)
    assert used.tags == ("tool_usage", "success", "file_read", "todo_update")
    assert failed.text.startswith("Failed tools: invalid_tool")
    assert (failed.category, failed.importance) == ("error_patterns", 0.8)
    assert failed.tags == ("tool_failure", "error", "invalid_tool")
    assert by_tag["task_execution"].text.endswith("file_read → todo_update")


@uses("MemoryManager.Recall", "MemoryQuery", "RecallResult", "RecallResult.Items")
@uses("RecallResult.totalFound", "calculateRelevanceScore", "EmptyRecallResult")
def test_a_recall_gives_items_and_how_many_were_found(memory: Memory) -> None:
    for number in range(12):
        memory.remember(f"Boat {number} is moored in Kiel.", user="ada")
    found = memory.recall("Which boat is moored in Kiel?", user="ada", limit=5, deadline_ms=None)
    assert isinstance(found, Recall)
    assert (len(found.hits), found.total_found) == (5, 12)
    assert all(0 < hit.score <= 1 and hit.why.ranks for hit in found.hits)
    query = Query(
        scope=Scope(user="ada"),
        question="Kiel",
        now=now(),
        filters=Filters.of(category="solutions"),
    )
    assert (query.limit, query.deadline_ms, query.filters.categories) == (10, 50.0, ("solutions",))
    nothing = memory.recall("Kiel", user="bob", deadline_ms=None)
    assert (nothing.hits, nothing.total_found) == ((), 0)


@uses("safeMemoryRecall")
def test_a_recall_has_50_ms_and_then_answers_without(tmp_path: Any) -> None:
    hung, store = threading.Event(), SqliteStore(str(tmp_path / "memory.db"))

    def hang(*_: Any, **__: Any) -> Any:
        hung.wait(30)
        return []

    store.newest = store.match_text = hang  # type: ignore[method-assign]
    with Memory(store, embedder=None, extraction=None) as memory:
        assert deadline_of(UNSET, memory.settings) == 50.0
        late = memory.recall("Where is my boat?", user="ada")
        assert late.hits == ()
        assert "recency" in late.late
        hung.set()


@uses("ShortTermMemory", "ShortTermMemory.Search", "ShortTermMemory.Store")
@uses("ShortTermMemory.Remove", "ShortTermMemory.Cleanup", "ShortTermMemory.addToLRUCache")
@uses("LongTermMemory", "LongTermMemory.Search", "LongTermMemory.Store", "MemoryManager.Store")
@uses("MemoryManager.AutomaticMemoryMaintenance")
def test_two_tiers_are_searched_stored_to_and_cleaned_up() -> None:
    extraction = Extraction(policy=Policy(short_term=2))
    with Memory(":memory:", embedder=None, extraction=extraction) as memory:
        short = ShortTermMemory(memory, user="ada")
        long = LongTermMemory(memory, user="ada")
        _, cake, _ = (short.store(f"Ada likes {it}.") for it in ("tea", "cake", "rain"))
        kept = long.store("Ada is allergic to peanuts.")
        assert [it.id for it in long.items()] == [kept]
        assert short.cleanup().expired == 1  # the least recently used, beyond `short_term`
        assert [it.text for it in short.items()] == ["Ada likes cake.", "Ada likes rain."]
        assert [hit.id for hit in short.search("What cake?", deadline_ms=None)][:1] == [cake]
        assert [hit.id for hit in long.search("Peanuts?", deadline_ms=None)] == [kept]
        moved = long.store("Ada likes cake.")  # promoted: it leaves the other tier
        assert moved in {it.id for it in long.items()}
        assert [it.text for it in short.items()] == ["Ada likes rain."]
        short.remove(short.items()[0].id)
        assert short.items() == []
        important = memory.memories.add(SOLUTION, user="ada")  # promoted right after its creation
        assert memory.memories.get(important, user="ada").tier == "long"
        assert memory.memories.maintain(user="ada").promoted == 0
    assert Policy().short_term == 200
    assert Extraction().maintain_every == 50


@uses("MemoryController", "MemoryController.ShouldCreateMemory")
@uses("MemoryController.checkMessageCount", "MemoryController.checkRateLimit")
@uses("MemoryController.checkContentLength")
def test_the_controller_decides_what_becomes_a_memory() -> None:
    controller = MemoryController()
    policy = controller.policy
    assert (policy.min_messages, policy.min_chars, policy.max_chars) == (1, 4, 6_000)
    assert (policy.window, policy.share) == (20, 0.25)
    said = Message("user", "I moved to Berlin.")
    assert controller.should_create(said)
    assert not controller.should_create(said, place=0)
    assert not controller.should_create(Message("user", "Hm."))
    assert controller.should_create(Message("user", "Yes."))
    assert not controller.should_create(Message("user", "x" * 6_001))
    assert controller.should_create(said, made=4)
    assert not controller.should_create(said, made=5)
    strict = MemoryController(Policy(min_messages=3))
    assert not strict.should_create(said, place=2)


@uses("MemoryController.ClassifyMemory", "MemoryController.determineCategory")
@uses("MemoryController.calculateImportance", "MemoryController.generateTags")
@uses("ErrorPatterns", "CodeContext", "Solutions", "UserPreferences", "TaskHistory", "Knowledge")
def test_the_controller_classifies_by_the_documents_order() -> None:
    controller = MemoryController()

    def classified(text: str, **fields: Any) -> tuple[str, float]:
        category, importance, _ = controller.classify(Message("assistant", text, **fields))
        return category, importance

    error = "The build failed with an exception in the Python code."
    assert classified(error) == ("error_patterns", 0.8)  # errors come before code
    assert classified("The function parse() is in the class Reader.") == ("code_context", 0.7)
    assert classified(SOLUTION) == ("solutions", 0.8)
    assert classified("I prefer short answers.") == ("user_preferences", 0.6)
    call = ToolCallMsg(id="1", type="function", name="weather", arguments="{}", call_id="1")
    assert classified("Let me look at the sky.", tool_calls=[call]) == ("task_history", 0.6)
    assert classified("Berlin lies on the Spree.") == ("knowledge", 0.5)
    assert controller.classify(Message("user", "We cache it in Redis.")).tags == ("nosql",)
    assert controller.classify(Message("user", "We keep it in MySQL.")).tags == ("sql",)
    policy = Policy()
    assert policy.base_importance == pytest.approx(0.5)
    assert dict(policy.boosts) == {
        "error_patterns": 0.3,
        "code_context": 0.2,
        "solutions": 0.3,
        "user_preferences": 0.1,
        "task_history": 0.1,
    }


@uses("MemoryController.FilterMemoriesForRecall", "MemoryController.ShouldPromoteToLongTerm")
@uses("createMemoryItem")
def test_the_controller_filters_and_promotes(memory: Memory) -> None:
    memory.remember("My boat is moored in Kiel, in the old harbour.", user="ada")
    memory.remember("Boats are nice.", user="ada")
    controller = MemoryController()
    found = memory.recall("Where is my boat moored?", user="ada", min_score=0, deadline_ms=None)
    kept = controller.filter_memories_for_recall(found, limit=1)
    assert [hit.text for hit in kept] == ["My boat is moored in Kiel, in the old harbour."]
    assert controller.filter_memories_for_recall(found.hits, min_score=1.0) == []
    item = MemoryItem(scope=Scope(user="ada"), text="Ada lives in Berlin.")
    assert (item.importance, item.tier, item.category) == (0.5, "short", "knowledge")
    assert not controller.should_promote(item)
    important = MemoryItem(scope=item.scope, text=item.text, importance=0.7)
    assert controller.should_promote(important)
    used = MemoryItem(scope=item.scope, text=item.text, uses=2)
    assert not controller.should_promote(used)
    assert controller.should_promote(used, used.created_at + timedelta(days=1))


@uses("MemoryManager.CreateMemoryFromMessage")
def test_messages_become_memories_in_the_background() -> None:
    with Memory(":memory:", embedder=None) as memory:
        chat = memory.session(user="ada", agent="tutor")
        chat.add("user", "I moved to Berlin in March.")
        memory.jobs.catch_up()
        assert any("Berlin" in it.text for it in memory.memories.list(user="ada"))


@uses("ContextCompressor", "ContextCompressor.Compress", "CompressionResult", "CompressedSummary")
@uses("ContextCompressor.identifyImportantMessages", "ContextCompressor.calculateTokensSaved")
@uses("Session.ReplaceMessages", "buildMessagesWithMemoryContext")
def test_the_compressor_summarises_a_session(memory: Memory) -> None:
    told = [Message("user", f"Turn {it}: " + "we talked about the harbour. " * 20) for it in "abcd"]
    told.insert(1, Message("assistant", "We decided to sail to Kiel because of the wind."))
    told += [Message("user", f"Later {it}.") for it in "efgh"]
    done = ContextCompressor(memory, user="ada").compress("s1", told)
    assert isinstance(done, Compression)
    assert isinstance(done.summary, Summary)
    assert done.saved == done.tokens_before - done.tokens_after > 0
    assert "sail to Kiel" in done.summary.text  # what matters stays
    chat = memory.session(user="ada", id="s1")
    window = chat.context("And now?", window=Window(max_tokens=4_000, memories=0))
    assert window.receipt.part("summary").ids == (done.summary.id,)
    shown = [it["content"] for it in window.messages[1:]]
    assert shown == ["Later e.", "Later f.", "Later g.", "Later h.", "And now?"]
    assert len(chat.history()) == 9  # the log keeps them
    assert list(Topic) == [
        "Request and intent",
        "Key concepts",
        "Artefacts touched",
        "Errors and fixes",
        "Decisions and reasoning",
        "User messages in brief",
        "Open tasks",
        "Current work and next step",
    ]


@uses("MemoryManager.ProcessContextCompression", "estimateTokenUsage", "manageContextWithMemory")
def test_a_window_is_compressed_past_its_threshold(memory: Memory) -> None:
    assert Window().compress_at == pytest.approx(0.85)
    eighty = Window(max_tokens=1_000, answer_tokens=0, compress_at=0.8, memories=0)
    assert eighty.threshold == 800
    chat = memory.session(user="ada")
    used = 0
    while used <= 800:
        chat.add("user", "We sailed along the coast, and the sea was calm. " * 4)
        window = chat.context("And now?", window=eighty, deadline_ms=None)
        if window.receipt.compression is not None:
            break
        used = window.receipt.used
    assert window.receipt.compression is not None
    assert 600 < used <= 800
    assert window.receipt.used < used
