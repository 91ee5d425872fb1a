"""History written with langchain-postgres is read by Memorist, and the reverse."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_postgres import PostgresChatMessageHistory
from psycopg.types.json import Jsonb

from memorist import (
    ConflictError,
    ForbiddenError,
    Hit,
    InvalidError,
    Memory,
    Message,
    Scope,
    connect,
)
from memorist.records.values import now
from memorist.server.auth import Guard
from memorist.server.http.app import build_app
from memorist.store.postgres.store import PostgresStore
from tests.support.hostile import HOSTILE_IDS
from tests.support.http_server import Served, serving

TABLE = "chat_message_history"
TURN: list[BaseMessage] = [
    SystemMessage("Be kind."),
    HumanMessage("Weather in Zürich?", id="h1", name="Ada"),
    AIMessage(
        "",
        id="a1",
        tool_calls=[
            {"name": "weather", "args": {"city": "Zürich", "days": 2}, "id": "c1"},
            {"name": "clock", "args": {}, "id": "c2"},
        ],
    ),
    ToolMessage("rain", tool_call_id="c1", name="weather"),
    ToolMessage("noon", tool_call_id="c2", name="clock"),
    HumanMessage([{"type": "text", "text": "Umbrella then?"}]),
]


@pytest.fixture
def connection(postgres_with_tables: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_with_tables) as connection:
        yield connection


@pytest.fixture
def memory(postgres_with_tables: str) -> Iterator[Memory]:
    with Memory(postgres_with_tables, embedder=None, extraction=None) as memory:  # its jobs wait
        yield memory


def worded(memory: Memory, question: str, user: str) -> list[Hit]:
    """What recall finds by its words; it finds what was said last too."""
    hits = memory.recall(question, user=user, deadline_ms=None).hits
    return [hit for hit in hits if "words" in hit.why.ranks]


def langchain(connection: psycopg.Connection[Any], session: str) -> PostgresChatMessageHistory:
    return PostgresChatMessageHistory(TABLE, session, sync_connection=connection)


def test_what_langchain_writes_memorist_reads_with_its_tool_calls(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada", agent="tutor")
    langchain(connection, chat.id).add_messages(TURN)
    read = chat.history()
    assert [message.role for message in read] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert read[1].content == "Weather in Zürich?"
    assert (read[1].message_id, read[1].name) == ("h1", "Ada")
    assert [(call.name, call.call_id) for call in read[2].tool_calls] == [
        ("weather", "c1"),
        ("clock", "c2"),
    ]
    assert read[3].to_wire() == {
        "role": "tool",
        "content": "rain",
        "name": "weather",
        "tool_call_id": "c1",
    }
    assert read[5].text == "Umbrella then?"


def test_what_langchain_writes_is_searchable_queued_and_forgettable(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada", agent="tutor")
    langchain(connection, chat.id).add_messages(TURN)
    assert [hit.text for hit in worded(memory, "umbrellas", "ada")] == ["Umbrella then?"]
    [hit] = worded(memory, "ZURICH", "ada")
    assert (hit.role, hit.speaker) == ("user", "Ada")
    assert memory.recall("umbrella", user="bob").hits == ()
    jobs = memory.store.jobs(memory.scope(user="ada"))
    assert [job.kind for job in jobs] == ["embed"] * len(TURN)
    assert memory.forget(user="ada", session=chat.id).counts["passages"] == len(TURN)
    assert langchain(connection, chat.id).messages == []


def test_what_langchain_writes_is_found_by_stem_speaker_date_and_how_often_it_says_so(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada")
    said = [
        "added to the international university",
        "Новая столица",
        "我三月搬到了柏林",
        "ship, ship, ship",
        "one ship among other things here",
    ]
    langchain(connection, chat.id).add_messages([HumanMessage(it, name="Zoë") for it in said])
    connection.execute(
        f"INSERT INTO {TABLE} (created_at, session_id, message) VALUES (%s, %s, %s)",
        ("2023-05-08 12:00Z", chat.id, '{"type": "human", "data": {"content": "hello"}}'),
    )
    connection.commit()
    scope, store = memory.scope(user="ada"), memory.store

    def texts(*term: str) -> list[str]:
        found = store.match_text(scope, [term], limit=9)
        return [match.text for match in store.read(scope, [it.passage for it in found])]

    for word in ("adding", "international", "universities"):
        assert texts(word) == said[:1]
    assert texts("столицы") == said[1:2]
    assert texts("柏", "林") == said[2:3]
    assert texts("ships") == said[3:]
    assert texts("may") == ["hello"]
    assert sorted(texts("zoe")) == sorted(said)
    assert store.speakers(scope) == ["Zoë"]


def test_a_long_message_from_langchain_is_cut_where_its_text_is_and_lost_nowhere(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada")
    long = "".join(f"word{number} 𝔸 " for number in range(400))
    langchain(connection, chat.id).add_messages([HumanMessage(long), TURN[2], HumanMessage("")])
    scope, store = memory.scope(user="ada"), memory.store
    pieces = store.read(scope, list(store.unembedded(scope, "e", limit=99)))
    assert "".join(it.text for it in pieces[:-1]) == long  # and an empty one says nothing
    assert [len(it.text) <= 1_000 for it in pieces] == [True] * len(pieces)
    assert pieces[-1].text == chat.history()[1].text
    assert [it.stop for it in store.passages(scope, [pieces[-2].passage])] == [len(long)]


def test_what_memorist_writes_langchain_reads_with_its_tool_calls(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada", agent="tutor")
    chat.add("system", "Be kind.")
    chat.add("user", "Weather?", name="Ada")
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"n": 2}'},
    }
    broken = {"id": "c2", "type": "function", "function": {"name": "bad", "arguments": '{"n": '}}
    chat.add("assistant", None, tool_calls=[call, broken])
    chat.add("tool", '{"tool_call_id": "c1", "output": "rain"}', name="weather")
    chat.add("assistant", {"thought": "hm"})
    chat.add("user", "Look", images=["https://example.org/a.png"])
    read = langchain(connection, chat.id).messages
    assert [message.type for message in read] == ["system", "human", "ai", "tool", "ai", "human"]
    assert isinstance(read[2], AIMessage)
    assert read[2].tool_calls == [
        {"name": "weather", "args": {"n": 2}, "id": "c1", "type": "tool_call"}
    ]
    assert [call["name"] for call in read[2].invalid_tool_calls] == ["bad"]
    assert isinstance(read[3], ToolMessage)
    assert read[3].tool_call_id == "c1"
    assert read[4].content == '{"thought":"hm"}'
    assert read[5].content[1]["image_url"]["url"] == "https://example.org/a.png"  # type: ignore[index]


def test_both_write_one_conversation_in_one_order(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada", agent="tutor")
    history = langchain(connection, chat.id)
    for number in range(6):
        if number % 2:
            history.add_messages([HumanMessage(str(number))])
        else:
            chat.add("user", str(number))
    expected = [str(number) for number in range(6)]
    assert [message.content for message in chat.history()] == expected
    assert [message.content for message in history.messages] == expected


def test_the_same_langchain_message_twice_is_one_message(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada", agent="tutor")
    for _ in range(2):
        langchain(connection, chat.id).add_messages([HumanMessage("once", id="x")])
    chat.remember(Message("user", "once", message_id="x"))
    assert [message.content for message in chat.history()] == ["once"]


def test_a_session_langchain_began_belongs_to_whom_it_is_adopted_for(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    session = str(uuid.uuid4())
    langchain(connection, session).add_messages(TURN)
    assert memory.history(user="ada") == []
    bob = memory.session(user="bob", agent="tutor", id=session)  # the first to name it
    assert bob.history() == []
    ada = memory.session(user="ada", agent="tutor", id=session, adopt=True)
    assert len(ada.history()) == len(TURN)
    assert len(worded(memory, "umbrella", "ada")) == 1
    bob.add("user", "planted")
    with pytest.raises(ConflictError):
        memory.session(user="bob", agent="tutor", id=session, adopt=True)
    assert [message.content for message in bob.history()] == ["planted"]
    langchain(connection, session).add_messages([HumanMessage("and on")])
    assert len(langchain(connection, session).messages) == len(TURN) + 1
    assert len(ada.history()) == len(TURN) + 1
    assert memory.session(user="ada", agent="tutor", id=session, adopt=True).id == session


def test_a_session_that_somebody_named_before_langchain_began_it_gets_nothing(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    session = str(uuid.uuid4())
    bob = memory.session(user="bob", id=session)
    memory.remember("hello", user="carl", session=session)
    langchain(connection, session).add_messages(TURN)
    assert bob.history() == []
    assert len(memory.history(user="carl")) == 1
    assert len(memory.session(user="ada", id=session, adopt=True).history()) == len(TURN)


def test_a_session_with_messages_of_its_own_adopts_those_of_langchain(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    session = str(uuid.uuid4())
    langchain(connection, session).add_messages([HumanMessage("then", id="1")])
    ada = memory.session(user="ada", id=session)
    ada.add("user", "umbrella")
    assert langchain(connection, session).messages[1:] == []
    memory.session(user="ada", id=session, adopt=True)
    said = ["then", "umbrella"]
    assert [message.content for message in ada.history()] == said
    assert [message.content for message in langchain(connection, session).messages] == said
    assert len(worded(memory, "umbrella", "ada")) == len(worded(memory, "then", "ada")) == 1
    left = memory.store.jobs(memory.scope(user="ada"))
    assert {job.scope.session for job in left} == {session}
    counts = memory.forget(user="ada", everything=True).counts
    assert counts["messages"] == counts["passages"] == 2
    row = connection.execute("SELECT count(*) FROM session_uuids").fetchone()
    assert row == (0,)


def test_only_a_uuid_is_adopted(memory: Memory) -> None:
    for id_ in ("talk", str(uuid.uuid4()).upper(), f"{uuid.uuid4()}\n", *HOSTILE_IDS):
        with pytest.raises(ConflictError):
            memory.session(user="ada", id=id_, adopt=True)
    with pytest.raises(InvalidError):
        memory.session(user="ada", adopt=True)


def test_over_http_an_admin_adopts_and_a_user_does_not(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    session = str(uuid.uuid4())
    langchain(connection, session).add_messages(TURN)
    with serving(build_app(memory, Guard(memory.keys))) as url:
        served = Served(url, memory)
        boss, bob = (connect(url, key=served.key(user)) for user in (None, "bob"))
        with boss, bob:
            assert bob.session(user="bob", id=session).history() == []
            with pytest.raises(ForbiddenError):
                bob.session(user="bob", id=session, adopt=True)
            assert boss.session(user="ada", id=session).history() == []
            adopted = boss.session(user="ada", id=session, adopt=True)
            assert len(adopted.history()) == len(TURN)
            assert bob.session(user="bob", id=session).history() == []


def test_a_table_that_langchain_made_is_taken_over_with_its_messages(postgres_url: str) -> None:
    session = str(uuid.uuid4())
    with psycopg.connect(postgres_url) as connection:
        PostgresChatMessageHistory.create_tables(connection, TABLE)
        history = langchain(connection, session)
        history.add_messages(TURN)
        history.add_messages([HumanMessage("again", id="h1")])
        connection.commit()
        with Memory(postgres_url) as memory:
            chat = memory.session(user="ada", id=session, adopt=True)
            assert len(chat.history()) == len(TURN) + 1
            chat.add("user", "and on")
            history.add_messages([HumanMessage("it goes")])
            assert [message.content for message in chat.history(last=2)] == ["and on", "it goes"]
        PostgresChatMessageHistory.create_tables(connection, TABLE)
        indexes = "SELECT indexdef FROM pg_indexes WHERE tablename = %s"
        columns = [row[0].rpartition("(")[2] for row in connection.execute(indexes, (TABLE,))]
        # Each is written with every message: ours is the one that the library looks for.
        assert [it for it in columns if "session_id" in it and "message_id" not in it] == [
            "session_id, owner, id)"
        ]


def test_what_langchain_writes_and_clears_moves_a_session_among_the_newest(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    newest = partial(memory.sessions, user="ada", newest_first=True)
    chats = [memory.session(user="ada", new=True) for _ in range(3)]
    later = [now() + timedelta(hours=hours) for hours in (1, 2, 3)]
    for chat, at in zip(chats, later, strict=True):
        memory.remember(Message("user", "hi", created_at=at), user="ada", session=chat.id)
    insert = f"INSERT INTO {TABLE} (session_id, message, created_at) VALUES (%s, %s, %s)"
    said = Jsonb({"type": "human", "data": {"content": "hello"}})
    connection.execute(insert, (chats[1].id, said, later[2] + timedelta(hours=1)))
    connection.commit()
    assert [it.id for it in newest(limit=1)] == [chats[1].id]
    adopted = str(uuid.uuid4())
    connection.execute(insert, (adopted, said, later[2] + timedelta(hours=2)))
    connection.commit()
    memory.session(user="ada", id=adopted, adopt=True)
    assert [it.id for it in newest(limit=1)] == [adopted]
    for session in (adopted, chats[1].id):
        langchain(connection, session).clear()
    connection.commit()
    assert [it.id for it in newest(limit=1)] == [chats[2].id]
    assert {it.id for it in newest()[2:]} == {adopted, chats[1].id}


def test_clearing_in_langchain_clears_the_index(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    chat = memory.session(user="ada")
    chat.add("user", "umbrella")
    langchain(connection, chat.id).clear()
    connection.commit()
    assert chat.history() == []
    assert memory.recall("umbrella", user="ada").hits == ()


def test_a_bound_role_writes_through_langchain_for_one_owner_only(
    memory: Memory, connection: psycopg.Connection[Any]
) -> None:
    ada, bob = memory.session(user="ada"), memory.session(user="bob")
    connection.execute("SET ROLE memorist_app")
    connection.execute(f"SET memorist.owner = '{Scope(user='ada').owner}'")
    langchain(connection, ada.id).add_messages([HumanMessage("mine")])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        langchain(connection, bob.id).add_messages([HumanMessage("planted")])
    connection.rollback()
    assert [message.content for message in ada.history()] == ["mine"]
    assert bob.history() == []


def test_a_row_made_to_look_like_ours_is_still_read(
    postgres_with_tables: str, connection: psycopg.Connection[Any]
) -> None:
    with PostgresStore(postgres_with_tables) as store:
        scope = store.open_session(Scope(user="ada")).scope
        odd = [
            HumanMessage("a", additional_kwargs={"memorist": "not json"}),
            HumanMessage("b", additional_kwargs={"memorist": '{"tool_calls": [["too few"]]}'}),
            HumanMessage("c", additional_kwargs={"memorist": 5}),
            HumanMessage("d", additional_kwargs={"memorist": '{"role": "system", "name": 7}'}),
            HumanMessage("e", additional_kwargs={"memorist": '{"content": "planted"}'}),
        ]
        langchain(connection, str(scope.session)).add_messages(odd)
        connection.execute(
            f"INSERT INTO {TABLE} (session_id, message) VALUES (%s, '[1]'), (%s, '{{}}')",
            (scope.session, scope.session),
        )
        connection.commit()
        read = store.history(scope)
        assert [entry.message.text for entry in read[:5]] == ["a", "b", "c", "d", "e"]
        assert {entry.message.role for entry in read} == {"user"}
        assert len(read) == 7
