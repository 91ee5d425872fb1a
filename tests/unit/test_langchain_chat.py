"""Chat models by LangChain, its own fakes among them, and models by name."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableLambda

from memorist.errors import (
    BadAnswerError,
    ConfigError,
    InvalidError,
    MissingExtraError,
    ProviderError,
)
from memorist.providers.chat_model import MAX_ABANDONED, ChatModel, Reply
from memorist.providers.langchain import LangChainChat
from memorist.providers.openai_chat import OpenAIChat
from memorist.providers.opening import as_chat_model, open_model
from tests.support.chats import KEY, SCHEMA, SECRET, complete, failure
from tests.support.model_server import ModelServer
from tests.support.waiting import until


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def test_our_own_protocol_is_taken_as_it_is() -> None:
    chat = OpenAIChat("test")
    assert as_chat_model(chat) is chat


@pytest.mark.parametrize("wrong", [None, "gpt-5", object(), {"model": SECRET}])
def test_what_is_no_model_is_refused_with_the_cure(wrong: object) -> None:
    with pytest.raises(InvalidError, match=r"OpenAIChat\(model, url=…\)") as caught:
        as_chat_model(wrong)
    assert SECRET not in str(caught.value)


def test_a_langchain_model_answers() -> None:
    model = as_chat_model(FakeListChatModel(responses=["one", "two"]))

    assert [complete(model).text, complete(model).text] == ["one", "two"]
    assert model.name == "langchain/FakeListChatModel"
    assert complete(model).estimated


def test_a_langchain_model_without_tools_is_asked_in_words() -> None:
    model = as_chat_model(FakeListChatModel(responses=['{"answer": "yes"}']))

    assert complete(model, schema=SCHEMA).text == '{"answer": "yes"}'


def test_a_langchain_model_tells_its_tokens() -> None:
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    message = AIMessage([{"type": "text", "text": "hi"}], usage_metadata=usage)
    model = as_chat_model(GenericFakeChatModel(messages=iter([message])))

    assert complete(model) == Reply("hi", 7, 3)


class WithTools(FakeMessagesListChatModel):
    """A model with tools, as most are, that remembers how it was limited."""

    max_tokens: int | None = 40
    limits: list[int | None] = []  # noqa: RUF012 - pydantic copies it

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=tools)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.limits.append(self.max_tokens)
        return super()._generate(messages, *args, **kwargs)


def test_a_langchain_model_with_tools_fills_the_schema() -> None:
    call = {"name": "answer", "args": {"answer": "yes"}, "id": "1"}
    made = WithTools(responses=[AIMessage("", tool_calls=[call])])

    assert json.loads(complete(as_chat_model(made), schema=SCHEMA).text) == {"answer": "yes"}


def test_a_langchain_model_that_ignores_the_schema_is_read_as_it_is() -> None:
    made = WithTools(responses=[AIMessage("no tools today")])

    assert complete(as_chat_model(made), schema=SCHEMA).text == "no tools today"


@pytest.mark.parametrize(("own", "used"), [(None, 50), (40, 40), (4_000, 50)])
def test_a_langchain_model_answers_in_no_more_tokens_than_asked(own: int | None, used: int) -> None:
    limits: list[int | None] = []
    made = WithTools(responses=[AIMessage("a")], max_tokens=own)
    made.limits = limits
    complete(as_chat_model(made))

    assert limits == [used]
    assert made.max_tokens == own


class Broken(FakeListChatModel):
    """Fails as its provider does, quoting all it knows."""

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        raise RuntimeError(f"{messages} {KEY}")


def test_a_failing_langchain_model_is_an_error_of_ours() -> None:
    said = str(failure(as_chat_model(Broken(responses=[]))))

    assert said == "langchain/Broken failed with RuntimeError: try Broken alone"


class Refused(Exception):
    """An error as the libraries of providers raise theirs."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"{SECRET} {KEY}")
        self.status_code = status
        self.response = Response()
        self.response.headers = headers


class Response:
    """What such an error holds of the answer."""

    headers: Mapping[str, str]


def raising(error: Exception) -> ChatModel:
    def fail(_: object) -> str:
        raise error

    chain: Runnable[Any, str] = RunnableLambda(fail)
    return LangChainChat(chain, name="chain")


def test_a_refusal_behind_langchain_tells_its_status_and_when_to_come_back() -> None:
    error = failure(raising(Refused(429, **{"Retry-After": "12"})))
    assert (error.status, error.retry_after_s) == (429, 12)

    error = failure(raising(Refused(401)))
    assert (error.status, error.retry_after_s) == (401, None)
    assert failure(raising(ConnectionError())).status is None


def test_what_langchain_could_not_read_is_a_bad_answer() -> None:
    assert isinstance(failure(raising(OutputParserException(SECRET))), BadAnswerError)
    assert not isinstance(failure(raising(ConnectionError(SECRET))), BadAnswerError)


def test_a_langchain_model_that_says_nothing_answers_badly() -> None:
    assert isinstance(failure(as_chat_model(FakeListChatModel(responses=[""]))), BadAnswerError)


def test_a_langchain_model_is_not_waited_for_longer_than_told() -> None:
    slow = FakeListChatModel(responses=["late"], sleep=1.0)

    assert "no answer in 0.1 s" in str(failure(as_chat_model(slow), timeout_s=0.1))


def test_a_chain_that_ends_in_text_answers_too() -> None:
    chain: Runnable[Any, str] = RunnableLambda(lambda messages: f"{len(messages)} messages")

    assert complete(as_chat_model(chain)).text == "2 messages"


def test_settings_name_a_model_of_openai() -> None:
    model = open_model("openai:gpt-5-mini", key=KEY)

    assert model.name == "openai/gpt-5-mini"
    assert repr(model) == "OpenAIChat('openai/gpt-5-mini', https://api.openai.com)"


@pytest.mark.parametrize(
    ("name", "sent"), [("llama3.1:8b", "llama3.1:8b"), ("openai:org/m:1", "org/m:1"), ("m", "m")]
)
def test_settings_name_any_model_at_a_url(server: ModelServer, name: str, sent: str) -> None:
    complete(open_model(name, server.url))

    assert server.requests[0].body["model"] == sent


@pytest.mark.parametrize("name", ["", "gpt-5", "openai:", ":x"])
def test_a_name_that_says_no_provider_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="provider:model"):
        open_model(name)


def test_other_providers_need_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.delitem(sys.modules, "langchain.chat_models", raising=False)

    with pytest.raises(MissingExtraError, match=r"memorist\[agents\]"):
        open_model("anthropic:claude-sonnet", key=KEY)


LANGCHAIN = """
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models.fake_chat_models import FakeListChatModel

def init_chat_model(name, **given):
    if name.startswith("strange:"):
        raise ValueError(name)
    if name.startswith("absent:"):
        raise ImportError("pip install -U langchain-absent")
    return FakeListChatModel(responses=[f"{name} {sorted(given)}"])
"""


def test_other_providers_are_opened_by_langchain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "langchain").mkdir()
    (tmp_path / "langchain" / "chat_models.py").write_text(LANGCHAIN)
    (tmp_path / "langchain" / "__init__.py").touch()
    for module in [name for name in sys.modules if name.split(".")[0] == "langchain"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(tmp_path)

    model = open_model("anthropic:claude-sonnet", key=KEY)
    assert complete(model).text == "anthropic:claude-sonnet ['api_key']"
    assert model.name == "anthropic:claude-sonnet"
    assert complete(open_model("groq:x")).text == "groq:x []"
    with pytest.raises(ConfigError, match="knows no provider 'strange'"):
        open_model("strange:x")
    with pytest.raises(ConfigError, match="pip install -U langchain-absent"):
        open_model("absent:x")
    for module in ("langchain.chat_models", "langchain"):
        del sys.modules[module]  # by hand: monkeypatch would put the fake back at the end


def test_calls_that_never_end_do_not_pile_up() -> None:
    gate, stuck = threading.Event(), list[object]()

    def hang(asked: object) -> str:
        stuck.append(asked)
        gate.wait()
        return "late"

    model = LangChainChat(RunnableLambda(hang), name="stuck")
    # On a busy machine the time can be over before a call begins: that one is then never made.
    until(lambda: "no answer" not in str(failure(model, timeout_s=0.01)))
    until(lambda: len(stuck) == MAX_ABANDONED)
    before = set(threading.enumerate())

    assert "still busy with 8 calls" in str(failure(model, timeout_s=0.01))
    assert set(threading.enumerate()) <= before
    assert len(stuck) == MAX_ABANDONED
    gate.set()
    assert answer_at_last(model) == "late"


def answer_at_last(model: ChatModel) -> str:
    answers: list[str] = []

    def answered() -> bool:
        with suppress(ProviderError):  # those left behind need a moment to leave
            answers.append(complete(model).text)
        return bool(answers)

    until(answered)
    return answers[0]
