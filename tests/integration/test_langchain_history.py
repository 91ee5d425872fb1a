"""Our chat history keeps LangChain's contract, on both stores, in LangChain's own machinery."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_classic.memory import ConversationBufferWindowMemory
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableFieldSpec, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_postgres import PostgresChatMessageHistory

from memorist import InvalidError, Memory, MessageError, ScopeError, StoreError
from memorist.agents.langchain import MemoristChatMessageHistory

pytestmark = pytest.mark.filterwarnings(
    r"ignore:(The class )?.?(InMemoryChatMessageHistory|RunnableWithMessageHistory|"
    r"ConversationBufferWindowMemory).? (is|was) deprecated"
)
TURN: list[BaseMessage] = [
    SystemMessage("Be kind.", id="s1"),
    HumanMessage("Weather in Zürich?", id="h1", name="Ada"),
    AIMessage(
        [{"type": "text", "text": "Let me look."}],
        id="a1",
        tool_calls=[{"name": "weather", "args": {"city": "Zürich"}, "id": "c1"}],
        usage_metadata={"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
        response_metadata={"model_name": "m", "finish_reason": "tool_calls"},
    ),
    ToolMessage("rain", id="t1", tool_call_id="c1", name="weather", artifact={"mm": 3}),
    AIMessage("Take an umbrella.", id="a2"),
]
Open = Callable[..., BaseChatMessageHistory]


def contents(history: BaseChatMessageHistory) -> list[Any]:
    return [message.content for message in history.messages]


class HistoryContract:
    """What any LangChain chat history does; `open(session)` gives one."""

    def test_a_new_session_is_empty(self, open: Open) -> None:
        assert open("new").messages == []

    def test_messages_come_back_as_they_were_and_in_order(self, open: Open) -> None:
        history = open("talk")
        history.add_messages(TURN[:2])
        history.add_messages(TURN[2:])
        assert history.messages == TURN

    def test_one_message_at_a_time_is_added_too(self, open: Open) -> None:
        history = open("talk")
        history.add_user_message("Hi")
        history.add_ai_message("Hello")
        history.add_message(HumanMessage("Bye"))
        assert [(it.type, it.content) for it in history.messages] == [
            ("human", "Hi"),
            ("ai", "Hello"),
            ("human", "Bye"),
        ]
        assert str(history) == "Human: Hi\nAI: Hello\nHuman: Bye"

    def test_adding_nothing_changes_nothing(self, open: Open) -> None:
        history = open("talk")
        history.add_messages([])
        assert history.messages == []

    def test_the_same_words_said_twice_are_two_messages(self, open: Open) -> None:
        history, again = open("talk"), HumanMessage("again")
        history.add_messages([again])
        history.add_messages([again])
        assert contents(history) == ["again", "again"]
        assert again.id is None

    def test_sessions_are_apart(self, open: Open) -> None:
        one, other = open("one"), open("other")
        one.add_user_message("mine")
        assert other.messages == []

    def test_clear_empties_the_session_which_goes_on(self, open: Open) -> None:
        history = open("talk")
        history.clear()
        history.add_messages(TURN)
        history.clear()
        assert history.messages == []
        history.add_messages(TURN)
        assert history.messages == TURN

    def test_the_async_forms_do_the_same(self, open: Open) -> None:
        async def talk(history: BaseChatMessageHistory) -> None:
            await history.aadd_messages(TURN)
            assert await history.aget_messages() == TURN
            await history.aclear()
            assert await history.aget_messages() == []

        asyncio.run(talk(open("talk")))


class TestInMemory(HistoryContract):
    """The contract is LangChain's own: its own history keeps it."""

    @pytest.fixture
    def open(self) -> Open:
        kept: dict[str, InMemoryChatMessageHistory] = {}
        return lambda session: kept.setdefault(session, InMemoryChatMessageHistory())


class OurContract(HistoryContract):
    """What ours does beyond the contract, on every store."""

    @pytest.fixture
    def open(self, memory: Memory) -> Open:
        def open(session: str, **named: Any) -> BaseChatMessageHistory:
            return MemoristChatMessageHistory(memory, session, **{"user": "ada", **named})

        return open

    @pytest.mark.parametrize(
        "session", [" ", "a b", "x" * 3_000, "é%_*/../", "0", str(uuid.UUID(int=7))]
    )
    def test_any_string_but_an_empty_one_names_a_session(self, open: Open, session: str) -> None:
        open(session).add_messages(TURN)
        assert open(session).messages == TURN

    def test_a_message_is_stored_once_however_often_it_is_added(self, open: Open) -> None:
        history = open("talk")
        for count in range(1, len(TURN) + 1):
            history.add_messages(TURN[:count])
        assert history.messages == TURN

    def test_a_message_that_says_something_else_takes_its_own_place(
        self, open: Open, memory: Memory
    ) -> None:
        history = open("talk")
        history.add_messages(TURN)
        history.add_messages([HumanMessage("Weather in Bern?", id="h1"), HumanMessage("new")])
        assert contents(history)[1] == "Weather in Bern?"
        assert len(history.messages) == len(TURN) + 1
        scope = memory.scope(user="ada", session="talk")
        assert memory.store.revisions(scope, "h1")[0].content == "Weather in Zürich?"

    def test_the_same_words_with_other_metadata_are_the_same_message(self, open: Open) -> None:
        history = open("talk")
        history.add_messages(TURN)
        history.add_messages([AIMessage("Take an umbrella.", id="a2", response_metadata={"n": 1})])
        assert history.messages == TURN

    def test_the_last_k_messages_come_back_and_all_are_kept(self, open: Open) -> None:
        open("talk", k=2).add_messages([HumanMessage(str(number)) for number in range(7)])
        assert contents(open("talk", k=2)) == ["5", "6"]
        assert contents(open("talk", k=99)) == contents(open("talk"))
        assert contents(open("talk", k=0)) == []

    def test_no_window_begins_with_the_result_of_a_call_before_it(self, open: Open) -> None:
        open("talk").add_messages(TURN)
        assert open("talk", k=3).messages == TURN[2:]
        assert open("talk", k=2).messages == TURN[4:]

    def test_users_and_agents_are_apart(self, open: Open) -> None:
        open("talk", agent="tutor").add_messages(TURN)
        assert open("talk", user="bob").messages == []
        with pytest.raises(ScopeError):
            open("talk", agent="cook").add_messages(TURN)

    def test_what_was_said_is_recalled_and_after_clear_it_is_not(
        self, open: Open, memory: Memory
    ) -> None:
        open("talk").add_messages(TURN)
        found = memory.recall("umbrella", user="ada", deadline_ms=None)
        assert found.hits[0].id == "a2"
        open("talk").clear()
        assert memory.recall("umbrella", user="ada", deadline_ms=None).hits == ()

    def test_a_session_of_memorists_own_is_read_as_langchain_messages(
        self, open: Open, memory: Memory
    ) -> None:
        chat = memory.session(user="ada", id="talk")
        chat.add("user", "Hi", name="Ada")
        chat.add("assistant", {"thought": "hm"})
        first, second = open("talk").messages
        assert first == HumanMessage("Hi", name="Ada", id=first.id)
        assert second.content == '{"thought":"hm"}'

    def test_tool_output_with_a_nul_is_stored_and_comes_back(self, open: Open) -> None:
        odd = ToolMessage("\x00\x01", id="t", tool_call_id="c", artifact={"n": float("inf")})
        open("talk").add_messages([odd])
        assert open("talk").messages == [odd]

    def test_a_message_nobody_can_store_stores_none_of_its_company(self, open: Open) -> None:
        with pytest.raises(MessageError):
            open("talk").add_messages([HumanMessage("first"), RemoveMessage(id="x")])
        assert open("talk").messages == []

    def test_in_a_runnable_the_history_is_under_chat_history(self, open: Open) -> None:
        prompt = ChatPromptTemplate([MessagesPlaceholder("chat_history"), ("human", "{question}")])
        seen: list[list[Any]] = []

        def note(value: Any) -> Any:
            seen.append([message.content for message in value.to_messages()])
            return value

        answers = [AIMessage("Hello Ada"), AIMessage("Ada"), AIMessage("Yes")]
        chain = RunnableWithMessageHistory(
            prompt | RunnableLambda(note) | FakeMessagesListChatModel(responses=list(answers)),
            lambda user_id, session_id: open(session_id, user=user_id, k=4),
            input_messages_key="question",
            history_messages_key="chat_history",
            history_factory_config=[
                ConfigurableFieldSpec(id=name, annotation=str) for name in ("user_id", "session_id")
            ],
        )
        config: Any = {"configurable": {"user_id": "ada", "session_id": "talk"}}
        chain.invoke({"question": "I am Ada"}, config)
        asyncio.run(chain.ainvoke({"question": "Who am I?"}, config))
        chain.invoke({"question": "Sure?"}, config)
        assert seen[1] == ["I am Ada", "Hello Ada", "Who am I?"]
        assert contents(open("talk")) == [
            "I am Ada",
            "Hello Ada",
            "Who am I?",
            "Ada",
            "Sure?",
            "Yes",
        ]

    def test_in_langchain_classic_it_is_under_chat_history_too(self, open: Open) -> None:
        window = ConversationBufferWindowMemory(
            chat_memory=open("talk"), memory_key="chat_history", return_messages=True, k=1
        )
        for number in range(3):
            window.save_context({"input": f"in {number}"}, {"output": f"out {number}"})
        loaded = window.load_memory_variables({})["chat_history"]
        assert [(type(it), it.content) for it in loaded] == [
            (HumanMessage, "in 2"),
            (AIMessage, "out 2"),
        ]
        assert len(open("talk").messages) == 6


class TestSqlite(OurContract):
    @pytest.fixture
    def memory(self, tmp_path: Path) -> Iterator[Memory]:
        with Memory(tmp_path / "talk.db", embedder=None) as memory:
            yield memory

    def test_every_message_is_in_the_file_when_add_returns(
        self, open: Open, tmp_path: Path
    ) -> None:
        history = open("talk")
        for count, message in enumerate(TURN, start=1):
            history.add_messages([message])
            with Memory(tmp_path / "talk.db", embedder=None, extraction=None) as other:
                read = MemoristChatMessageHistory(other, "talk", user="ada")
                assert read.messages == TURN[:count]


class TestPostgres(OurContract):
    @pytest.fixture
    def memory(self, postgres_with_tables: str) -> Iterator[Memory]:
        with Memory(postgres_with_tables, embedder=None) as memory:
            yield memory

    def test_langchains_own_history_on_the_table_reads_and_writes_the_same(
        self, open: Open, memory: Memory, postgres_with_tables: str
    ) -> None:
        session = str(uuid.uuid4())
        with psycopg.connect(postgres_with_tables) as connection:
            theirs = PostgresChatMessageHistory(
                "chat_message_history", session, sync_connection=connection
            )
            theirs.add_messages(TURN[:3])
            memory.session(user="ada", id=session, adopt=True)
            ours = open(session)
            assert ours.messages == TURN[:3]
            ours.add_messages(TURN)
            assert ours.messages == TURN
            for message in (read := theirs.messages):
                message.additional_kwargs.pop("memorist", None)
            assert read == TURN


def test_k_and_session_id_are_checked_at_once() -> None:
    with Memory(":memory:", embedder=None) as memory:
        for wrong in ({"k": -1}, {"k": "3"}, {"session_id": None}, {"session_id": 7}):
            named: dict[str, Any] = {"session_id": "s", **wrong}
            with pytest.raises(InvalidError):
                MemoristChatMessageHistory(memory, user="ada", **named)


def test_where_the_store_does_not_answer_reading_is_empty_aloud_and_writing_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory(":memory:", embedder=None)
    history = MemoristChatMessageHistory(memory, "talk", user="ada")
    history.add_user_message("Hi")
    memory.close()
    assert history.messages == []
    assert "goes on without its history: the store is closed" in caplog.text
    with pytest.raises(StoreError):
        history.add_user_message("lost?")


def test_what_the_user_says_while_the_history_cannot_be_read_is_stored_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(tmp_path / "talk.db", embedder=None) as memory:
        MemoristChatMessageHistory(memory, "talk", user="ada").add_messages(TURN)
        chain = RunnableWithMessageHistory(
            FakeMessagesListChatModel(responses=[AIMessage("Hm", id="x")]),
            lambda session_id: MemoristChatMessageHistory(memory, session_id, user="ada"),
        )
        read, failed = memory.store.history, list[bool]()

        def fail_once(*arguments: Any, **named: Any) -> Any:
            if not failed:
                failed.append(True)
                raise StoreError("gone for a moment")
            return read(*arguments, **named)

        monkeypatch.setattr(memory.store, "history", fail_once)
        answer = chain.invoke(
            [HumanMessage("Still there?")], {"configurable": {"session_id": "talk"}}
        )
        assert answer.content == "Hm"
        said = MemoristChatMessageHistory(memory, "talk", user="ada")
        assert contents(said)[-2:] == ["Still there?", "Hm"]
        assert len(said.messages) == len(TURN) + 2
