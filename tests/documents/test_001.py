"""Document 001, the memory module: its names and its examples."""

from __future__ import annotations

import pytest

from memorist import ConversationMemory, Memory, MessageError
from tests.documents.names import uses


@uses("ConversationMemory", "ConversationMemory.description", "ConversationMemory.add")
@uses("ConversationMemory.update", "ConversationMemory.retrieve_recent", "MessageError")
@uses("ConversationMemory.reset_memory", "ConversationMemory.retrieve_all")
def test_a_message_is_updated_by_the_id_that_add_returned(memory: Memory) -> None:
    conversation = ConversationMemory(description="You are a helpful assistant", memory=memory)
    msg_id = conversation.add(role="user", content="Original content")
    conversation.update(message_id=msg_id, content="Updated content")
    assert [it["content"] for it in conversation.retrieve_recent(1)] == ["Updated content"]
    with pytest.raises(MessageError):
        conversation.update(message_id="unknown_id", content="New")
    conversation.reset_memory()
    assert [it["role"] for it in conversation.retrieve_all()] == ["system"]
