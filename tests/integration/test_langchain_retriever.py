"""Our retriever passes LangChain's own suite, and never breaks the chain it is in."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

from memorist import Library, Memory
from memorist.agents.langchain import MemoristRetriever

SAID = [
    "I moved to Berlin in March.",
    "In Berlin I have a garden.",
    "Berlin is cold in winter.",
    "My sister lives in Berlin too.",
    "I play the oboe.",
]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None) as memory:
        chat = memory.session(user="ada", agent="tutor", id="talk")
        for text in SAID:
            chat.add("user", text, name="Ada")
        memory.session(user="ada", agent="cook").add("user", "Berlin rolls with jam, please.")
        memory.facts.add("Ada", "lives in", "Berlin", user="ada")
        memory.session(user="bob").add("user", "Berlin? Never been.")
        memory.jobs.catch_up()
        yield memory


@pytest.mark.asyncio  # for the one test that is; the others are marked with it
@pytest.mark.filterwarnings("ignore:.*but it is not an async function:pytest.PytestWarning")
class TestStandard(RetrieversIntegrationTests):
    """The suite that LangChain gives to all who make retrievers."""

    @pytest.fixture(autouse=True)
    def _memory(self, memory: Memory) -> None:
        self.memory = memory

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MemoristRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "user": "ada", "deadline_ms": None}

    @property
    def retriever_query_example(self) -> str:
        return "Where in Berlin?"


def retriever_of(memory: Memory, **named: Any) -> MemoristRetriever:
    return MemoristRetriever(**{"memory": memory, "user": "ada", "deadline_ms": None, **named})


def test_a_document_says_what_it_is_from_when_and_why(memory: Memory) -> None:
    best = retriever_of(memory, kinds=("message",), agent="tutor").invoke("oboe")[0]
    assert best.page_content == "I play the oboe."
    told = best.metadata
    assert told["id"] == best.id == memory.history(user="ada", session="talk")[-1].message_id
    assert (told["kind"], told["session"], told["role"]) == ("message", "talk", "user")
    assert told["speaker"] == "Ada"
    assert "words #1" in told["why"]
    assert datetime.fromisoformat(told["when"]) <= datetime.now(UTC)
    assert json.loads(json.dumps(told)) == told


def test_the_best_documents_come_first(memory: Memory) -> None:
    scores = [it.metadata["score"] for it in retriever_of(memory, k=9).invoke("Berlin garden")]
    assert scores == sorted(scores, reverse=True)


def test_async_finds_the_same(memory: Memory) -> None:
    retriever = retriever_of(memory)
    found = asyncio.run(retriever.ainvoke("Berlin", k=3))
    assert [it.id for it in found] == [it.id for it in retriever.invoke("Berlin", k=3)]
    assert len(found) == 3


def test_it_is_narrowed_to_user_agent_session_kind_and_more(memory: Memory) -> None:
    def texts(**named: Any) -> set[str]:
        return {it.page_content for it in retriever_of(memory, k=20, **named).invoke("Berlin")}

    assert "Berlin? Never been." not in texts()
    assert texts(user="bob", kinds=("message",)) == {"Berlin? Never been."}
    assert texts(agent="cook", kinds=("message",)) == {"Berlin rolls with jam, please."}
    assert texts(session="talk", kinds=("message",)) == set(SAID)
    assert texts(only={"role": "assistant"}, kinds=("message",)) == set()
    kinds = {it.metadata["kind"] for it in retriever_of(memory, kinds=("fact",)).invoke("Berlin")}
    assert kinds == {"fact"}


@pytest.mark.parametrize(
    "wrong",
    [{"kinds": ("dream",)}, {"only": {"role": "cat"}}, {"k": 0}, {"user": 7}, {"deadline_ms": 0}],
    ids=str,
)
def test_what_cannot_be_asked_for_is_refused_when_it_is_made(
    memory: Memory, wrong: dict[str, Any]
) -> None:
    field = next(iter(wrong)).replace("kinds", "kind").replace("only", "role")
    with pytest.raises(ValueError, match=rf"\b{field}\b"):
        retriever_of(memory, **wrong)


def test_the_user_may_come_with_each_call(memory: Memory) -> None:
    chosen = retriever_of(memory, kinds=("message",)).configurable_fields(
        user=ConfigurableField(id="user_id")
    )
    found = chosen.invoke("Berlin", {"configurable": {"user_id": "bob"}})
    assert [it.page_content for it in found] == ["Berlin? Never been."]


def test_articles_of_a_library_stand_among_the_documents_with_their_citation() -> None:
    with Memory(":memory:", embedder=None) as memory:
        library = Library(memory, "handbook")
        library.add("Returns", "# Returns\n\nParcels go back within 30 days.", "docs/returns.md")
        memory.session(user="ada").add("user", "My parcel is broken.")
        retriever = retriever_of(memory, library=library, k=2)
        found = {it.metadata["kind"]: it for it in retriever.invoke("send a parcel back")}
        assert found.keys() == {"article", "message"}
        assert found["article"].metadata["citation"] == "Returns (docs/returns.md)"
        assert "30 days" in found["article"].page_content
        assert len(retriever.invoke("send a parcel back", k=1)) == 1


def test_a_store_that_is_gone_leaves_the_chain_answering_aloud(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory(":memory:", embedder=None)
    library = Library(memory)
    retrievers = [retriever_of(memory), retriever_of(memory, library=library)]
    memory.close()

    def answer(found: list[Document]) -> str:
        return f"I answer with {len(found)} documents"

    for retriever in retrievers:
        caplog.clear()
        chain = retriever | RunnableLambda(answer)
        assert chain.invoke("my secret question") == "I answer with 0 documents"
        assert asyncio.run(chain.ainvoke("my secret question")) == "I answer with 0 documents"
        assert "the store is closed" in caplog.text
        assert "secret" not in caplog.text


def test_its_picture_shows_nothing_of_the_memory(memory: Memory) -> None:
    assert repr(retriever_of(memory)) == "MemoristRetriever(user='ada', only={}, deadline_ms=None)"


def test_memorist_itself_imports_no_framework() -> None:
    code = "import memorist.memory, sys; print([it for it in sys.modules if it.startswith('lang')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
