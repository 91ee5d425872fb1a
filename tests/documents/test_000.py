"""Document 000, the revise node: its names and its examples."""

from __future__ import annotations

from memorist import Memory
from memorist.server.mcp.server import build_server
from tests.documents.names import uses
from tests.support.revising import run, talk


@uses("ReviseNode", "ReviseNode.execute", "messages", "session_id", "user_id")
@uses("store_session_message", "message_type", "role", "content", "importance_score")
def test_a_turn_is_stored_with_what_the_document_lists(memory: Memory) -> None:
    _, manager = run(build_server(memory, program=True), talk(1))
    [sent] = manager.named("store_session_message")
    del sent["message_id"]
    assert sent == {
        "session_id": "s1",
        "user_id": "ada",
        "message_type": "humanmessage",
        "role": "user",
        "content": "Message 0.",
        "importance_score": 0.7,
    }


@uses("should_update", "summarize_session", "force_update")
def test_every_five_messages_the_session_is_summarised(memory: Memory) -> None:
    for count, times in [(4, 0), (5, 1), (7, 0), (10, 1), (15, 1)]:
        _, manager = run(build_server(memory, program=True), talk(count))
        expected = {"session_id": "s1", "user_id": "ada", "force_update": False}
        assert manager.named("summarize_session") == [expected] * times
