"""The numbers and words that the documents fix, as literals: a changed default is noticed here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memorist import (
    BaseMemory,
    ConversationMemory,
    KGMemory,
    Library,
    Memory,
    MemoryManager,
    Message,
    Notebook,
    Policy,
    Window,
)
from memorist.agents.revise import ReviseNode
from memorist.agents.toolbox import Toolbox
from memorist.config import Settings
from memorist.context.tokens import TokenCounter
from memorist.language.lexicon import category_of
from memorist.lifecycle.policy import classified, has_room, may_become_memory
from memorist.lifecycle.settings import should_promote
from memorist.lifecycle.tools import lessons
from memorist.records.log import LogEntry
from memorist.records.memories import Candidate, MemoryItem
from memorist.records.message import UNSET
from memorist.records.query import Query
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.runtime import deadline_of
from memorist.server.mcp.server import build_server
from tests.support.revising import run, talk


def default(function: Callable[..., Any], name: str) -> Any:
    return inspect.signature(function).parameters[name].default


SETTINGS = {
    "recall_deadline_ms": 50,
    "memory_compression_threshold_pct": 85,
    "memory_compression_target_tokens": 1_000,
    "messages_to_keep": 4,
    "larger_model_threshold_pct": 85,
    "importance_score": 0.7,
    "summarize_every": 5,
    "force_update": False,
    "summary_prompt": "",
    "summary_prefix": "",
}


def test_the_settings_of_the_environment_have_the_documents_defaults() -> None:
    for environment in ({}, {f"MEMORIST_{name.upper()}": "" for name in SETTINGS}):
        settings = Settings.from_environment(environment)
        assert {name: getattr(settings, name) for name in SETTINGS} == SETTINGS
    environment = {"MEMORIST_MESSAGES_TO_KEEP": "6", "MEMORIST_IMPORTANCE_SCORE": "0.5"}
    changed = Settings.from_environment(environment)
    assert (changed.messages_to_keep, changed.importance_score) == (6, 0.5)


# 000


def test_the_node_reads_roles_from_class_names_and_knows_nobody_as_anonymous(
    memory: Memory,
) -> None:
    class Gesture:
        content, id = "(waves)", "g1"

    state = {"messages": [*talk(2)["messages"], Gesture()], "session_id": "s1"}
    _, manager = run(build_server(memory, program=True), state)
    sent = manager.named("store_session_message")
    assert [one["role"] for one in sent] == ["user", "assistant", "system"]
    assert {one["user_id"] for one in sent} == {"anonymous"}
    assert {one["importance_score"] for one in sent} == {0.7}


def test_the_tools_of_the_revise_node_weigh_alike_and_force_nothing() -> None:
    kinds = ("concept", "episode", "fact", "procedure", "working_memory")
    for kind in kinds:
        assert default(getattr(Toolbox, f"store_{kind}"), "importance") == 0.7
    assert default(Toolbox.store_session_message, "importance_score") == 0.7
    assert default(Toolbox.summarize_session, "force_update") is False


def test_the_node_is_set_by_the_environment_where_it_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of(node: ReviseNode) -> tuple[Any, ...]:
        return node._every, node._importance, node._force_update

    assert of(ReviseNode()) == (5, 0.7, False)
    for name, value in (
        ("SUMMARIZE_EVERY", "7"),
        ("IMPORTANCE_SCORE", "0.9"),
        ("FORCE_UPDATE", "1"),
    ):
        monkeypatch.setenv(f"MEMORIST_{name}", value)
    assert of(ReviseNode()) == (7, 0.9, True)
    assert of(ReviseNode(every=3, importance_score=0.0, force_update=False)) == (3, 0.0, False)


# 001


def test_the_newest_one_is_retrieved_and_a_manager_keeps_a_conversation() -> None:
    for kind in (BaseMemory, ConversationMemory, KGMemory, MemoryManager):
        assert default(kind.retrieve_recent, "n") == 1
    assert default(MemoryManager, "memory_type") == "conversation_history"


# 002


@pytest.mark.parametrize(
    ("text", "has_tools", "category", "importance"),
    [
        ("The function failed with an error, and the fix solved it.", False, "error_patterns", 0.8),
        (
            "The function in the code was changed, and the solution works.",
            False,
            "code_context",
            0.7,
        ),
        ("The solution was to restart; I prefer that.", False, "solutions", 0.8),
        ("I prefer short answers.", False, "user_preferences", 0.6),
        ("The town has a harbour.", True, "task_history", 0.6),
        ("The town has a harbour.", False, "knowledge", 0.5),
    ],
)
def test_categories_have_this_precedence_and_this_weight(
    text: str, has_tools: bool, category: str, importance: float
) -> None:
    candidate = Candidate(text=text, kind="fact", said_at=now(), sources=("m1",), source="user")
    made = classified(candidate, has_tools=has_tools)
    assert made.category == category
    assert made.importance == pytest.approx(importance)
    assert category_of(text) in (category, None)


def test_a_recall_has_fifty_milliseconds_everywhere(memory: Memory) -> None:
    assert deadline_of(UNSET, memory.settings) == 50.0
    assert default(KGMemory.recall, "deadline_ms") in (50.0, UNSET)
    query = Query(scope=Scope(user="ada"), question="tea", now=now())
    assert query.deadline_ms == 50.0


def lessons_of(*outcomes: dict[str, Any]) -> list[Candidate]:
    """What is learnt from a turn in which tools had these outcomes."""
    told = [Message("tool", "-", name=it["name"], structured_data=it) for it in outcomes]
    turn = [Message("user", "Please."), *told, Message("assistant", "Done.")]
    entries = [LogEntry(seq, "s1", it.role, it) for seq, it in enumerate(turn, 1)]
    return lessons(entries, ended={len(entries)})


def test_tools_that_work_are_remembered_as_the_document_says() -> None:
    did = {"success": True, "duration_ms": 75}
    usage, chain = lessons_of({"name": "file_read", **did}, {"name": "todo_update", **did})
    assert usage.text == "Successfully used tools: file_read, todo_update (total time: 150ms)"
    assert (usage.category, usage.importance) == ("task_history", 0.7)
    assert usage.tags == ("tool_usage", "success", "file_read", "todo_update")
    assert "file_read → todo_update" in chain.text


def test_tools_that_fail_are_remembered_more() -> None:
    [failure] = lessons_of({"name": "invalid_tool", "success": False})
    assert failure.text == "Failed tools: invalid_tool"
    assert (failure.category, failure.importance) == ("error_patterns", 0.8)
    assert failure.tags == ("tool_failure", "error", "invalid_tool")


def test_the_controller_has_these_numbers() -> None:
    policy = Policy()
    assert not may_become_memory(Message("user", "tea"), place=1)
    assert may_become_memory(Message("user", "teas"), place=1)
    assert not may_become_memory(Message("user", "x" * 6_001), place=1)
    assert has_room(4)
    assert not has_room(5)
    assert policy.short_term == 200
    assert policy.working_for == timedelta(days=1)


@pytest.mark.parametrize(
    ("importance", "uses", "days", "promoted"),
    [
        (0.7, 0, 0, True),
        (0.69, 0, 0, False),
        (0.1, 2, 1, True),
        (0.1, 1, 1, False),
        (0.1, 2, 0.9, False),
    ],
)
def test_what_matters_or_is_used_again_is_promoted(
    importance: float, uses: int, days: float, promoted: bool
) -> None:
    item = MemoryItem(
        id="m",
        scope=Scope(user="ada"),
        text="Ada sails.",
        importance=importance,
        uses=uses,
        created_at=now() - timedelta(days=days),
    )
    assert should_promote(item, now()) is promoted


# 003


def test_notes_are_read_unless_something_else_is_asked_for() -> None:
    assert default(Notebook.manage, "operation") == "read"
    assert default(Toolbox.manage_long_term_memory, "operation") == "read"


def test_notes_stand_where_the_prompt_has_their_placeholder(memory: Memory) -> None:
    memory.notes(user="ada", agent="tutor").write("Likes tea.")
    chat = memory.session(user="ada", agent="tutor")
    window = chat.context("Hello", system="Before. {long_term_memory_notes} After.")
    assert "Likes tea." in str(window.messages[0]["content"])
    assert "long_term_memory_notes" not in str(window.messages)


# 004


def test_a_window_is_compressed_at_85_percent_to_1000_tokens_and_keeps_4() -> None:
    window = Window(max_tokens=262_144)
    assert (window.compress_at, window.threshold) == (0.85, 222_822)
    assert (window.summary_tokens, window.keep_last) == (1_000, 4)
    assert window.move_at == 0.85  # to the larger model


def test_articles_are_chosen_for_this_window() -> None:
    assert default(Library.retrieve, "window") == 262_144
    assert default(Library.retrieve, "reserved_tokens") == 0
    assert default(Toolbox.retrieve_context, "reserved_tokens") == 0
    assert default(Toolbox.retrieve_context, "top_k") == 5


def test_articles_leave_room_for_the_prompt_the_conversation_and_the_question(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    library = Library(memory, "handbook", system_prompt="Be kind. " * 50)
    for number in range(7):
        library.add(f"Lamp {number}", f"Lamp {number} may be returned within {number} days.")
    with caplog.at_level("INFO", "memorist"):
        found = library.retrieve("Lamp returned?", reserved_tokens=10_240, deadline_ms=None)
    assert len(found) == 5
    counter = TokenCounter(Window().counts_with())
    system, question = counter.text("Be kind. " * 50), counter.text("Lamp returned?")
    assert f"using {262_144 - system - 10_240 - question} for articles" in caplog.text


@pytest.mark.parametrize(("turns", "compressed"), [(16, False), (19, True)])
def test_turns_are_summarised_at_85_percent_and_not_only_when_the_window_is_full(
    memory: Memory, turns: int, compressed: bool
) -> None:
    chat = memory.session(user="ada", new=True)
    window = Window(max_tokens=2_000, answer_tokens=0, memories=0)
    for number in range(turns):
        chat.add("assistant" if number % 2 else "user", f"Number {number}: " + "tea and " * 46)
    receipt = chat.context("Go on.", window=window, deadline_ms=None).receipt
    assert (receipt.compression is not None) is compressed
    told = sum(TokenCounter(window.counts_with()).messages(chat.history()))
    assert 1_700 < told < 2_000 if compressed else told < 1_700
