"""Document 003, sessions and notes: its names and its examples."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from langchain_classic.memory import ConversationBufferWindowMemory
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_postgres import PGEngine, PostgresChatMessageHistory
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import text

from memorist import Memory, Notebook
from memorist.agents.langchain import MemoristChatMessageHistory
from memorist.agents.toolbox import Toolbox
from memorist.agents.tools import memory_tools
from memorist.config import Settings
from memorist.server.auth import Guard
from memorist.server.chat import ChatRuntime, ChatSettings
from memorist.server.http.app import build_app
from tests.documents.names import uses
from tests.support.http_server import serving
from tests.support.pages import ROOT

TABLE = "chat_message_history"
UPSERT = """
INSERT INTO user_agent_active_sessions (user_id, agent_name, active_session_id)
VALUES (%s, %s, %s) ON CONFLICT (user_id, agent_name)
DO UPDATE SET active_session_id = excluded.active_session_id, last_active_at = now()
"""
FETCH = """
SELECT active_session_id FROM user_agent_active_sessions
WHERE user_id = %s AND agent_name = %s AND last_active_at > now() - interval '30 days'
"""
Connection = psycopg.Connection[Any]


@pytest.fixture
def server_memory(postgres_with_tables: str) -> Iterator[Memory]:
    with Memory(postgres_with_tables, embedder=None, extraction=None) as memory:
        yield memory


@pytest.fixture
def dsn(server_memory: Memory, postgres_with_tables: str) -> Iterator[str]:
    """That of a login of the application's own."""
    with psycopg.connect(postgres_with_tables, autocommit=True) as admin:
        admin.execute("CREATE ROLE chat_server LOGIN PASSWORD 'x' IN ROLE memorist_client")
    yield make_conninfo(postgres_with_tables, user="chat_server", password="x")
    with psycopg.connect(postgres_with_tables, autocommit=True) as admin:
        admin.execute("DROP ROLE chat_server")


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@uses("user_agent_active_sessions", "user_agent_active_sessions.user_id")
@uses("user_agent_active_sessions.agent_name", "user_agent_active_sessions.active_session_id")
@uses("user_agent_active_sessions.last_active_at", "user_agent_active_sessions.created_at")
@uses("chat_message_history", "chat_message_history.id", "chat_message_history.session_id")
@uses("chat_message_history.message", "chat_message_history.created_at")
@uses("PostgresChatMessageHistory")
def test_sessions_and_history_answer_the_documents_sql(
    server_memory: Memory, connection: Connection
) -> None:
    session, other = str(uuid.uuid4()), str(uuid.uuid4())
    assert connection.execute(FETCH, ("ada", "test_agent")).fetchall() == []
    connection.execute(UPSERT, ("ada", "test_agent", other))
    connection.execute(UPSERT, ("ada", "test_agent", session))
    assert connection.execute(FETCH, ("ada", "test_agent")).fetchall() == [(session,)]
    assert connection.execute(FETCH, ("ada", "another_agent")).fetchall() == []
    history = PostgresChatMessageHistory(TABLE, session, sync_connection=connection)
    history.add_messages([HumanMessage("I sail on the Elbe."), AIMessage("With whom?")])
    chat = server_memory.session(user="ada", agent="test_agent")
    assert chat.id == session
    chat.add("user", "With Tim.")
    said = ["I sail on the Elbe.", "With whom?", "With Tim."]
    assert [message.content for message in history.messages] == said
    assert [message.content for message in chat.history()] == said
    found = server_memory.recall("sailing", user="ada", deadline_ms=None).hits
    assert found[0].text == said[0]
    rows = connection.execute(
        f"SELECT id, session_id, message, created_at FROM {TABLE} ORDER BY id"
    ).fetchall()
    assert [str(row[1]) for row in rows] == [session] * 3
    assert rows[0][2]["data"]["content"] == said[0]
    times = connection.execute(
        "SELECT last_active_at, created_at FROM user_agent_active_sessions"
    ).fetchall()
    for at in (*times[0], *(row[3] for row in rows)):
        assert at.tzinfo
        assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)
    history.clear()
    assert chat.history() == []
    assert server_memory.recall("sailing", user="ada", deadline_ms=None).hits == ()


@uses("agent_long_term_memory", "agent_long_term_memory.id", "agent_long_term_memory.user_id")
@uses("agent_long_term_memory.agent_name", "agent_long_term_memory.notes")
@uses("agent_long_term_memory.created_at", "agent_long_term_memory.updated_at")
def test_notes_answer_the_documents_sql(server_memory: Memory, connection: Connection) -> None:
    upsert = """
    INSERT INTO agent_long_term_memory (user_id, agent_name, notes) VALUES ('ada', 'tutor', %s)
    ON CONFLICT (user_id, agent_name) DO UPDATE SET notes = excluded.notes, updated_at = now()
    """
    connection.execute(upsert, ("Likes zebras.",))
    notes = Notebook(server_memory, user="ada", agent="tutor")
    notes.append("Paints giraffes.")
    read = "SELECT notes, id, created_at, updated_at FROM agent_long_term_memory"
    [(notes_text, id_, created_at, updated_at)] = connection.execute(read).fetchall()
    assert notes_text == "Likes zebras.\n\nPaints giraffes."
    assert uuid.UUID(id_)
    assert created_at < updated_at
    connection.execute(upsert, ("Keeps otters.",))
    assert notes.read() == "Keeps otters."
    assert [it.text for it in notes.versions()] == ["Keeps otters.", notes_text, "Likes zebras."]

    def found(word: str) -> list[str]:
        hits = server_memory.recall(word, user="ada", deadline_ms=None).hits
        return [hit.text for hit in hits if "words" in hit.why.ranks]

    assert (found("otter"), found("zebra")) == (["Keeps otters."], [])
    connection.execute("DELETE FROM agent_long_term_memory WHERE user_id = 'ada'")
    assert (notes.read(), found("otter"), notes.versions()) == ("", [], [])


def test_a_connection_that_names_a_user_sees_theirs_alone(
    server_memory: Memory, connection: Connection, dsn: str
) -> None:
    ada = server_memory.session(user="ada", agent="tutor")
    foreign = server_memory.tenant("acme").session(user="ada", agent="tutor")
    for chat in (ada, foreign):
        chat.add("user", "A secret.")
    server_memory.tenant("acme").notes(user="ada", agent="tutor").write("A secret.")

    def seen(connection: Connection, table: str) -> int:
        [(count,)] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)

    tables = ("user_agent_active_sessions", TABLE, "agent_long_term_memory")
    assert [seen(connection, table) for table in tables] == [1, 1, 0]  # other tenants' are hidden
    assert [seen(connection, table) for table in ("passages", "sessions", "facts")] == [0, 0, 0]
    with psycopg.connect(dsn, options="-c memorist.user_id=bob", autocommit=True) as bobs:
        assert [seen(bobs, table) for table in tables] == [0, 0, 0]
        bobs.execute(UPSERT, ("bob", "tutor", str(uuid.uuid4())))
        refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
        with refused:
            bobs.execute(UPSERT, ("ada", "tutor", str(uuid.uuid4())))
        with refused:  # as good as none
            bobs.execute(UPSERT, ("bob", "tutor", ada.id))
        with refused:
            history = PostgresChatMessageHistory(TABLE, ada.id, sync_connection=bobs)
            history.add_messages([HumanMessage("planted")])
        assert bobs.execute(f"DELETE FROM {TABLE}").rowcount == 0
    assert server_memory.active_session(user="ada", agent="tutor").scope.session == ada.id  # type: ignore[union-attr]
    assert [message.content for message in ada.history()] == ["A secret."]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(UPSERT, ("ada", "coach", ada.id))  # another agent's


@uses("PGEngine")
def test_the_database_is_named_by_the_environment(dsn: str) -> None:
    parts = conninfo_to_dict(dsn)
    place = f"chat_server:x@{parts['host']}:{parts['port']}/{parts['dbname']}"
    settings = Settings.from_environment({"MEMORIST_URL": f"postgresql://{place}"})
    with Memory(settings.url, embedder=None, extraction=None) as memory:
        assert "PostgreSQL" in memory.check()["engine"]
        chat = memory.session(user="ada", agent="tutor")
        chat.add("user", "Hello")

    async def texts() -> list[Any]:
        engine = PGEngine.from_connection_string(f"postgresql+psycopg://{place}")
        async with engine._pool.connect() as connection:
            read = text(f"SELECT message -> 'data' ->> 'content' FROM {TABLE}")
            rows = [row[0] for row in await connection.execute(read)]
        await engine.close()
        return rows

    assert asyncio.run(texts()) == ["Hello"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@uses("ConversationBufferWindowMemory", "k", "return_messages", "memory_key", "input_key")
def test_the_last_messages_come_back_under_chat_history(memory: Memory) -> None:
    history = MemoristChatMessageHistory(memory, "s", user="ada", agent="tutor")
    window = ConversationBufferWindowMemory(
        chat_memory=history,
        k=1,
        return_messages=True,
        memory_key="chat_history",
        input_key="input",
        output_key="output",
    )
    for number in range(3):
        window.save_context({"input": f"Question {number}"}, {"output": f"Answer {number}"})
    [question, answer] = window.load_memory_variables({})["chat_history"]
    assert (question, answer.content) == (HumanMessage("Question 2", id=question.id), "Answer 2")
    history.add_messages([ToolMessage("rain", tool_call_id="c1")])
    short = MemoristChatMessageHistory(memory, "s", user="ada", agent="tutor", k=2)
    assert [message.type for message in short.messages] == ["ai", "tool"]
    assert len(memory.history(user="ada")) == 7


@uses("localStorageKey", "initializeSessionAsync", "persistedSessionId")
@uses("useFetchActiveChatSession", "useUpsertActiveChatSession", "generateNewSessionId")
@uses("POST /api/chat", "ChatRequest", "ChatRequest.message", "ChatRequest.session_id")
@uses("ChatRequest.agent_id")
def test_a_client_resolves_its_session_in_three_steps_and_chats(memory: Memory) -> None:
    chats = ChatRuntime(settings=ChatSettings(deadline_ms=None))
    app = build_app(memory, Guard.local("default", "ada"), chats=chats)
    with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:

        def resolve(persisted: str | None) -> dict[str, Any]:
            body = {"agent": "test_agent", "session_id": persisted}
            answer: dict[str, Any] = client.post("/api/sessions/resolve", json=body).json()
            return answer

        first = resolve(None)  # attempt 3: a new id, registered
        assert uuid.UUID(first["session_id"])
        active = client.get("/api/sessions/active", params={"agent": "test_agent"}).json()
        assert first["session_id"] in str(active)
        again = resolve(first["session_id"])  # attempt 1: the id of localStorage is confirmed
        assert (again["session_id"], again["confirmed"]) == (first["session_id"], True)
        stale = resolve("gone")  # attempt 2: the active one
        assert (stale["session_id"], stale["confirmed"]) == (first["session_id"], False)
        said = {"message": "User's new input", "session_id": first["session_id"]}
        for agent in ({"agent_id": "test_agent"}, {"agent": "test_agent"}):
            answer = client.post(
                "/api/chat", json={**said, **agent}, headers={"Accept": "application/json"}
            )
            assert answer.json()["session_id"] == first["session_id"]
            assert answer.json()["confirmed"] is True
    [one, two] = memory.history(user="ada", agent="test_agent", session=first["session_id"])
    assert one.content == two.content == "User's new input"
    page = (ROOT / "src/memorist/server/web/conversation.js").read_text("utf-8")
    assert "`chatSession_${user}_${agent}`" in page  # tests/page looks at it in a browser


@uses("manage_long_term_memory", "ManageLTMInput.operation", "ManageLTMInput.content")
@uses("ManageLTMInput.section_header")
def test_the_tool_has_the_documents_input(memory: Memory) -> None:
    toolbox = Toolbox(memory, user="ada", agent="tutor")
    [tool] = memory_tools(toolbox, only=["manage_long_term_memory"])
    assert tool.name == "manage_long_term_memory"
    assert set(tool.args) == {"operation", "content", "section_header"}
    assert tool.args["operation"]["default"] == "read"
    assert tool.args["operation"]["enum"] == [
        "read",
        "overwrite",
        "append",
        "prepend",
        "delete_section_by_header",
        "replace_section_by_header",
        "delete_all_notes",
    ]
    tool.invoke({"operation": "append", "content": "Likes tea."})
    assert tool.invoke({}) == "Likes tea."


@uses("read", "overwrite", "append", "prepend", "delete_section_by_header")
@uses("replace_section_by_header", "delete_all_notes", "long_term_memory_notes")
def test_notes_are_managed_by_seven_operations(memory: Memory) -> None:
    notes = Notebook(memory, user="ada", agent="tutor")
    notes.manage("overwrite", "# Ada\n\nLikes tea.")
    notes.manage("append", "# Work\n\nPaints lighthouses.")
    notes.manage("prepend", "# First\n\nBe kind.")
    notes.manage("replace_section_by_header", "Likes coffee.", "Ada")
    notes.manage("delete_section_by_header", section_header="First")
    written = "# Ada\n\nLikes coffee.\n\n# Work\n\nPaints lighthouses."
    assert notes.manage("read") == written
    chat = memory.session(user="ada", agent="tutor")
    window = chat.context("Hello", system="Notes: {long_term_memory_notes}.", max_tokens=4000)
    system = str(window.messages[0]["content"])
    assert system.startswith("Notes: ")
    assert "> # Ada" in system
    assert "{" not in system
    notes.manage("delete_all_notes")
    assert notes.manage() == "The notes are empty."
