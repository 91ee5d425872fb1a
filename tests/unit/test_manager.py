"""MemoryManager: one interface, two memories; and the page that tells how to use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorist import BaseMemory, ConversationMemory, InvalidError, Memory, Message
from memorist.providers.openai_chat import OpenAIChat
from memorist.views.knowledge import KGMemory, MemoryManager
from tests.support.model_server import ModelServer

SYSTEM = {"role": "system", "content": "Be kind"}
PAGE = Path(__file__).parent.parent.parent / "docs" / "memories.md"


def test_a_conversation_is_what_agents_get_by_default() -> None:
    with MemoryManager(description="Be kind") as manager:
        assert isinstance(manager, BaseMemory)
        assert isinstance(manager.memory_module, ConversationMemory)
        message_id = manager.add(role="user", content="Hello")

        assert manager.retrieve_all() == [SYSTEM, {"role": "user", "content": "Hello"}]
        manager.update(message_id=message_id, content="Hello again")
        assert manager.retrieve_recent() == [{"role": "user", "content": "Hello again"}]
        assert manager.retrieve_by_id(message_id) == manager.retrieve_by_role("user")[0]
        assert manager.remove(message_id) is True
        assert manager.remove(message_id) is False


@pytest.mark.parametrize("memory_type", ["conversation_history", "kg"])
@pytest.mark.parametrize("name", ["reset", "reset_memory"])
def test_a_reset_keeps_the_system_message(memory_type: str, name: str) -> None:
    with MemoryManager(memory_type=memory_type, description="Be kind") as manager:
        manager.add(Message("user", "I moved to Berlin."))
        getattr(manager, name)()

        assert manager.retrieve_all() == [SYSTEM]


def test_a_knowledge_graph_works_without_a_model() -> None:
    with MemoryManager("kg", "Be kind") as manager:
        graph = manager.memory_module
        assert isinstance(graph, KGMemory)
        graph.extract_and_update_from_text("I moved to Berlin.")

        assert manager.retrieve_all()[0] == SYSTEM
        assert manager.retrieve_recent()[0]["object"] == "Berlin"
        assert manager.retrieve_by_role("user") == manager.retrieve_recent(5)


def test_a_knowledge_graph_asks_its_model() -> None:
    with (
        ModelServer() as server,
        MemoryManager("kg", model=OpenAIChat("any", url=server.url)) as manager,
    ):
        assert isinstance(manager.memory_module, KGMemory)
        manager.memory_module.extract_and_update_from_text("I moved to Berlin.")

        assert len(server.requests) == 1


@pytest.mark.parametrize("wrong", ["graph", "", None, ["kg"]])
def test_an_unknown_type_is_refused_with_the_choices(wrong: Any) -> None:
    with pytest.raises(InvalidError, match="conversation_history, kg"):
        MemoryManager(memory_type=wrong)


def test_what_nobody_knows_is_refused() -> None:
    for memory_type in ("conversation_history", "kg"):
        with pytest.raises(TypeError, match="mood"):
            MemoryManager(memory_type, mood="good")  # type: ignore[call-arg]


def test_agents_in_two_processes_share_one_memory(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Memory(path, embedder=None) as here, Memory(path, embedder=None) as there:
        managers = [
            MemoryManager("kg", memory=memory, user="ada", agent="tutor")
            for memory in (here, there)
        ]
        cook = MemoryManager("kg", memory=there, user="ada", agent="cook")
        managers[0].add(role="user", content="I moved to Berlin.")
        here.jobs.catch_up(300)

        assert managers[1].retrieve_recent()[0]["content"] == "user lives in Berlin"
        assert managers[0].retrieve_all() == managers[1].retrieve_all()
        assert cook.retrieve_all() == []


def test_a_conversation_is_shared_by_its_session(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Memory(path, embedder=None) as here, Memory(path, embedder=None) as there:
        one = MemoryManager(memory=here, user="ada", session="trip")
        other = MemoryManager(memory=there, user="ada", session="trip")
        one.add(role="user", content="Hello")

        assert other.retrieve_all() == [{"role": "user", "content": "Hello"}]
