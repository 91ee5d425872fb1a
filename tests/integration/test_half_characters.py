"""Half a character, as a stream that is cut leaves it, and NUL: no door fails at them."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.messages import TextMessage
from google.adk.events import Event
from google.genai.types import Content, FunctionCall, Part
from langchain_core.messages import HumanMessage
from llama_index.core.base.llms.types import ChatMessage
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from memorist import Memory
from memorist.server.mcp.server import build_server
from memorist_adapters.adk import MemoristSessionService
from memorist_adapters.autogen import MemoristMemory as AutogenMemory
from memorist_adapters.llama_index import MemoristMemory as LlamaMemory
from memorist_adapters.pydantic_ai import MemoristMemory as PydanticMemory
from tests.support.revising import NOTHING, run

HALF = "gulls \ud83d and \x00 boats"
NAMED: Any = {"user": "ada", "session": "s1"}


def check_log(memory: Memory) -> None:
    [message] = [it for it in memory.history(**NAMED) if it.text]
    assert message.text.startswith("gulls ")
    assert " boats" in message.text


def test_in_google_adk(memory: Memory) -> None:
    async def say() -> list[Event]:
        service = MemoristSessionService(memory)
        named: Any = {"app_name": "tutor", "user_id": "ada", "session_id": "s1"}
        session = await service.create_session(**named)
        call = Part(function_call=FunctionCall(id="c1", name="look", args={"at": HALF}))
        parts = [Part(text=HALF), call]
        await service.append_event(
            session, Event(author="tutor", content=Content(role="model", parts=parts))
        )
        again = await service.get_session(**named)
        assert again is not None
        return again.events

    [event] = asyncio.run(say())
    assert event.get_function_calls()[0].name == "look"
    check_log(memory)


def test_in_llama_index(memory: Memory) -> None:
    talk = LlamaMemory(memory=memory, **NAMED)
    talk.put(ChatMessage(role="user", content=HALF))
    [message] = talk.get_all()
    assert (message.content or "").startswith("gulls ")
    check_log(memory)


def test_in_pydantic_ai(memory: Memory) -> None:
    chat = PydanticMemory(memory, **NAMED)
    chat.add([ModelResponse([TextPart(HALF), ToolCallPart("look", {"at": HALF}, "c1")])])
    [response] = chat.messages()
    assert isinstance(response, ModelResponse)
    check_log(memory)


def test_in_the_revise_node(memory: Memory) -> None:
    state = {"messages": [HumanMessage(HALF)], "session_id": "s1", "user_id": "ada"}
    [update], _ = run(build_server(memory, program=True), state)
    assert update == NOTHING
    check_log(memory)


def test_in_autogen(memory: Memory) -> None:
    mine = AutogenMemory(memory, **NAMED)
    assert asyncio.run(mine.remember([TextMessage(content=HALF, source="user")])) == 1
    check_log(memory)
