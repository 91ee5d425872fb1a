"""Contexts beside others: of another agent, another window, another process."""

from __future__ import annotations

import time
from typing import Any

import pytest

from memorist import Extraction, Memory, Message, Window
from memorist.config import Settings
from memorist.context.compression.compress import Summarizer
from memorist.providers.openai_chat import OpenAIChat
from memorist.providers.tokenizer import ByteEstimate
from memorist.records.log import Job
from memorist.runtime import MAX_COUNTERS, open_summarizer
from tests.support.model_server import ModelServer
from tests.unit.test_context import said, talk


def test_a_message_is_quoted_as_its_own_session_has_it(memory: Memory) -> None:
    told = Message("user", f"The boat lies in Kiel. {'It is a fine boat. ' * 40}")
    for agent, session in (("tutor", "a"), ("doctor", "b")):
        memory.remember(told, user="ada", agent=agent, session=session)
    theirs = memory.scope(user="ada", session="b")
    memory.store.revise(theirs, told.changed(content="A secret for the doctor"))
    [(_, asked)] = said(memory.context("Where does the boat lie?", user="ada", agent="tutor"))
    assert "lies in Kiel" in asked
    assert "secret" not in asked


def test_a_tokenizer_that_is_known_takes_no_place_from_another(memory: Memory) -> None:
    windows = [Window(tokenizer=ByteEstimate()) for _ in range(MAX_COUNTERS)]
    counters = [memory._runtime.counter(window) for window in windows]
    assert [memory._runtime.counter(window) for window in windows] == counters


def test_a_summary_that_takes_long_is_made_by_nobody_else(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Summarizer, "lease_seconds", 0.3)
    scope, taken = talk(memory, 30).session.scope, list[Job]()
    memory.store.queue_summary(scope, memory.store.history(scope)[-5].seq)

    def slowly(body: Any) -> str:
        time.sleep(0.7)
        taken.extend(memory.store.claim(kinds=("summarize",)))
        return "## Request and intent\n- sailing\n## Open tasks\n- harbours"

    with ModelServer(answers=slowly) as server:
        extraction = Extraction(model=OpenAIChat("any", url=server.url))
        assert open_summarizer(memory.store, extraction, memory.settings).step()
    assert taken == []
    assert memory.jobs.waiting()["summarize"] == 0


def test_background_summaries_follow_the_settings_of_their_memory() -> None:
    asked = list[str]()

    def answers(body: Any) -> str:
        asked.append(str(body["messages"]))
        return "## Request and intent\n- sailing"

    with ModelServer(answers=answers) as server:
        extraction = Extraction(model=OpenAIChat("any", url=server.url))
        settings = Settings(url=":memory:", summary_prompt="Name the harbours.")
        with Memory(":memory:", extraction=extraction, settings=settings) as memory:
            scope = talk(memory, 30).session.scope
            memory.store.queue_summary(scope, memory.store.history(scope)[-5].seq)
            assert memory._runtime.summarizer().step()
    assert any("Name the harbours." in it for it in asked)
