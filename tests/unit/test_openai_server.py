"""The stub server, driven by the clients that people really use."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelConnectionError,
    ModelInvalidRequestError,
)
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretStr

from memorist.context.tokens import TokenCounter
from memorist.errors import InvalidError, ProviderError
from memorist.providers.openai_chat import OpenAIChat
from memorist.providers.remote import OpenAIEmbedder
from memorist.providers.tokenizer import tokenizer_for
from tests.support.model_server import Dropped, Limit, ModelServer, Script
from tests.support.openai_errors import Like, overflow, rate_limit, server_error, wrong_key
from tests.support.stub_server import ErrorAnswer

CALL: dict[str, Any] = {"name": "recall", "args": {"query": "where?"}}
QUESTION: Any = {"messages": [("user", "Where?")]}
SCHEMA: Any = {
    "type": "function",
    "function": {"name": "recall", "parameters": {"type": "object", "properties": {}}},
}
ASKED: Any = [{"role": "user", "content": "hi"}]
MAKERS: tuple[Like, ...] = ("openai", "vllm", "vllm-0.9", "llama.cpp")


@tool
def recall(query: str) -> str:
    """Find what was said."""
    return f"Berlin, for {query}"


class City(BaseModel):
    """A city."""

    name: str


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts servers that end with the test."""
    servers: list[ModelServer] = []

    def start(answers: Script = (), **settings: Any) -> ModelServer:
        servers.append(ModelServer(answers, **settings).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def chat_of(server: ModelServer, **more: Any) -> ChatOpenAI:
    key = SecretStr("k")
    return ChatOpenAI(model="any", base_url=server.url, api_key=key, max_retries=0, **more)


def client_of(server: ModelServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)


# langchain-openai


def test_chat_openai_gets_an_answer_with_its_cost(serve: Any) -> None:
    server = serve(["Hello, Ada."])
    answer = chat_of(server).invoke("hi there, who are you?")
    assert answer.content == "Hello, Ada."
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["total_tokens"] > 0
    assert answer.response_metadata["finish_reason"] == "stop"
    [request] = server.requests
    assert (request.path, request.authorization) == ("/v1/chat/completions", "Bearer k")
    assert request.body["messages"] == [{"content": "hi there, who are you?", "role": "user"}]


def test_chat_openai_streams_words_and_the_cost(serve: Any) -> None:
    chat = chat_of(serve(["Hello there, Ada."]), stream_usage=True)
    chunks = list(chat.stream("hi"))
    assert [chunk.content for chunk in chunks if chunk.content] == ["Hello ", "there, ", "Ada."]
    total = sum(chunks[1:], chunks[0])
    assert isinstance(total, AIMessageChunk)
    assert total.usage_metadata is not None
    assert total.usage_metadata["output_tokens"] > 0


def test_chat_openai_streams_parallel_tool_calls(serve: Any) -> None:
    server = serve([[{**CALL, "id": "1"}, {"name": "forget", "args": {"all": True}, "id": "2"}]])
    chunks = list(chat_of(server).bind_tools([recall]).stream("hi"))
    total = sum(chunks[1:], chunks[0])
    assert isinstance(total, AIMessageChunk)
    assert [(call["id"], call["name"], call["args"]) for call in total.tool_calls] == [
        ("1", "recall", {"query": "where?"}),
        ("2", "forget", {"all": True}),
    ]
    assert server.requests[0].body["tools"][0]["function"]["name"] == "recall"


@pytest.mark.parametrize("is_streaming", [False, True])
def test_an_agent_on_chat_openai_calls_tools_and_answers(serve: Any, is_streaming: bool) -> None:
    server = serve([[CALL, CALL], "In Berlin."])
    agent = create_agent(chat_of(server, streaming=is_streaming), tools=[recall])
    done = agent.invoke(QUESTION)
    assert done["messages"][-1].content == "In Berlin."
    sent = server.requests[1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool"]
    calls = [call["id"] for call in sent[1]["tool_calls"]]
    assert len(set(calls)) == 2
    assert [message["tool_call_id"] for message in sent[2:]] == calls


def test_chat_openai_answers_asynchronously(serve: Any) -> None:
    async def ask() -> tuple[Any, list[Any]]:
        chat = chat_of(serve(["one", "two parts"]))
        return await chat.ainvoke("hi"), [chunk async for chunk in chat.astream("hi")]

    answer, chunks = asyncio.run(ask())
    assert answer.content == "one"
    assert "".join(chunk.content for chunk in chunks) == "two parts"


def test_chat_openai_reads_structured_output(serve: Any) -> None:
    chat = chat_of(serve([{"name": "Berlin"}, [{"name": "City", "args": {"name": "Paris"}}]]))
    assert chat.with_structured_output(City).invoke("where?") == City(name="Berlin")
    by_tool = chat.with_structured_output(City, method="function_calling")
    assert by_tool.invoke("where?") == City(name="Paris")


def test_langchain_embeddings_are_the_same_for_the_same_text(serve: Any) -> None:
    server = serve()
    model = OpenAIEmbeddings(
        model="any", base_url=server.url, api_key=SecretStr("k"), check_embedding_ctx_length=False
    )
    one, same, near, far = model.embed_documents(
        ["the red boat", "the red boat", "the red car", "quantum mechanics"]
    )
    assert one == same == model.embed_query("the red boat")
    assert len(one) == 64
    assert dot(one, one) == pytest.approx(1, abs=1e-3)
    assert dot(one, near) > 0.5 > dot(one, far)
    assert server.requests[0].path == "/v1/embeddings"


def dot(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True))


# the openai package itself


def test_the_openai_package_gets_text_and_tool_calls_together(serve: Any) -> None:
    function = {"name": "recall", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    both = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    client = client_of(serve([both]))
    answer = client.chat.completions.create(model="any", messages=ASKED, tools=[SCHEMA])
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("Let me look.", "tool_calls")
    assert choice.message.tool_calls is not None
    assert choice.message.tool_calls[0].id == "c1"
    assert answer.id.startswith("chatcmpl-")


def test_the_openai_package_gets_the_cost_of_a_stream_only_if_it_asks(serve: Any) -> None:
    client = client_of(serve(["one two", "one two"]))
    plain = client.chat.completions.create(model="any", messages=ASKED, stream=True)
    assert [chunk.usage for chunk in plain] == [None] * 4
    *others, last = client.chat.completions.create(
        model="any", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    assert all(chunk.usage is None for chunk in others)
    assert (last.choices, last.usage is None) == ([], False)
    assert others[0].choices[0].delta.role == "assistant"
    assert others[-1].choices[0].finish_reason == "stop"


def test_the_openai_package_lists_models_and_embeds(serve: Any) -> None:
    client = client_of(serve())
    assert [model.id for model in client.models.list()] == ["scripted"]
    assert client.models.retrieve("gpt-any").id == "gpt-any"
    packed = client.embeddings.create(model="any", input="a text", dimensions=8)
    plain = client.embeddings.create(
        model="any", input=[[1, 2], [3]], dimensions=8, encoding_format="float"
    )
    assert len(packed.data[0].embedding) == 8
    assert [row.index for row in plain.data] == [0, 1]


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (wrong_key(), openai.AuthenticationError, "invalid_api_key"),
        (rate_limit(7), openai.RateLimitError, "rate_limit_exceeded"),
        (server_error(), openai.InternalServerError, None),
        (overflow(9, 5), openai.BadRequestError, "context_length_exceeded"),
    ],
)
@pytest.mark.parametrize("is_streaming", [False, True])
def test_the_openai_package_raises_its_own_errors(
    serve: Any, error: ErrorAnswer, kind: type[openai.APIStatusError], code: Any, is_streaming: bool
) -> None:
    client = client_of(serve([error]))
    with pytest.raises(kind) as caught:
        client.chat.completions.create(model="any", messages=ASKED, stream=is_streaming)
    assert caught.value.code == code
    told = caught.value.response.headers.get("Retry-After")
    assert told == ("7" if error.status == 429 else None)


def test_the_openai_package_tries_again_when_told_to(serve: Any) -> None:
    server = serve([rate_limit(0.01), server_error(), "at last"])
    client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=2)
    answer = client.chat.completions.create(model="any", messages=ASKED)
    assert answer.choices[0].message.content == "at last"
    assert len(server.requests) == 3


def test_a_stream_that_is_dropped_breaks_after_some_words(serve: Any) -> None:
    client = client_of(serve([Dropped("one two three four five six")]))
    stream = client.chat.completions.create(model="any", messages=ASKED, stream=True)
    heard = [next(stream).choices[0].delta.content for _ in range(3)]
    assert heard == ["", "one ", "two "]
    with pytest.raises(openai.APIConnectionError):
        list(stream)


def test_chat_openai_hears_some_words_before_a_stream_is_dropped(serve: Any) -> None:
    stream = chat_of(serve([Dropped("one two three four")])).stream("hi")
    assert (next(stream).content, next(stream).content) == ("", "one ")
    with pytest.raises(ModelConnectionError):
        list(stream)


def test_an_answer_that_is_dropped_is_a_lost_connection(serve: Any) -> None:
    with pytest.raises(openai.APIConnectionError):
        client_of(serve([Dropped("whole")])).chat.completions.create(model="any", messages=ASKED)


# overflows, as each maker tells them


@pytest.mark.parametrize("like", MAKERS)
def test_a_prompt_over_the_limit_is_refused_in_its_makers_words(serve: Any, like: Like) -> None:
    server = serve(["fits"], limit=Limit(30, like))
    with pytest.raises(openai.BadRequestError) as caught:
        client_of(server).chat.completions.create(
            model="any", messages=[{"role": "user", "content": "secret " * 99}]
        )
    error = caught.value
    assert "secret" not in str(error)
    assert "context" in str(error)
    assert error.code == ("context_length_exceeded" if like == "openai" else "400")
    answer = client_of(server).chat.completions.create(model="any", messages=ASKED)
    assert answer.choices[0].message.content == "fits"


@pytest.mark.parametrize("like", MAKERS)
def test_langchain_takes_an_overflow_for_any_bad_request(serve: Any, like: Like) -> None:
    with pytest.raises(ModelInvalidRequestError) as caught:
        chat_of(serve([overflow(9, 5, like)])).invoke("hi")
    assert not isinstance(caught.value, ContextOverflowError)  # so whoever falls back must look
    assert "context" in str(caught.value)


def test_what_memorist_counts_as_fitting_is_not_refused(serve: Any) -> None:
    counter = TokenCounter(tokenizer_for())
    wires: Any = [{"role": "user", "content": "words of many kinds 我三月 " * 20}]
    most = counter.request(wires) + counter.tools([SCHEMA])
    server = serve(["fits"], limit=Limit(most))
    answer = client_of(server).chat.completions.create(model="any", messages=wires, tools=[SCHEMA])
    assert answer.choices[0].message.content == "fits"


@pytest.mark.parametrize("like", MAKERS)
def test_every_maker_refuses_a_wrong_key_and_breaks_in_its_own_way(serve: Any, like: Like) -> None:
    client = client_of(serve([wrong_key(like), server_error(like)]))
    with pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model="any", messages=ASKED)
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="any", messages=ASKED)


# Memorist's own clients


def test_memorists_chat_gets_answers_and_errors(serve: Any) -> None:
    chat = OpenAIChat("any", url=serve(["hello", rate_limit(12), overflow(9, 5)]).url)
    assert chat.complete(ASKED, max_tokens=9, timeout_s=5).text == "hello"
    for status, wait_s in ((429, 12), (400, None)):
        with pytest.raises(ProviderError) as caught:
            chat.complete(ASKED, max_tokens=9, timeout_s=5)
        assert (caught.value.status, caught.value.retry_after_s) == (status, wait_s)


def test_memorists_embedder_gets_vectors_of_the_width_it_asks_for(serve: Any) -> None:
    embedder = OpenAIEmbedder("any", base_url=serve().url, dimensions=16)
    rows = embedder.embed(["the red boat", "", "the red boat"])
    assert rows.shape == (3, 16)
    assert (rows[0] == rows[2]).all()


# the wire itself


def test_what_is_not_there_or_not_json_is_refused_as_openai_does(serve: Any) -> None:
    server = serve()
    for path, data, status in (
        ("/v1/strange", b"{}", 404),
        ("/v2/models", None, 404),
        ("/v1/chat/completions", b"{not json", 400),
        ("/v1/chat/completions", b"[]", 400),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(server.url.removesuffix("/v1") + path, data, timeout=2)
        with caught.value as error:
            assert error.code == status
            assert json.loads(error.read())["error"]["type"] == "invalid_request_error"


def test_embeddings_fail_with_the_servers_mode(serve: Any) -> None:
    client = client_of(serve(mode="500"))
    with pytest.raises(openai.InternalServerError):
        client.embeddings.create(model="any", input="a text")


def test_bad_answers_are_streamed_too(serve: Any) -> None:
    client = client_of(serve(["one two three four"], mode="truncated"))
    chunks = list(client.chat.completions.create(model="any", messages=ASKED, stream=True))
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert said == "one two t"
    assert chunks[-1].choices[0].finish_reason == "length"


@pytest.mark.parametrize("answer", [7, [7], [{"nome": "recall"}]])
def test_what_is_no_answer_is_refused_when_the_server_is_made(answer: Any) -> None:
    with pytest.raises(InvalidError):
        ModelServer([answer])
