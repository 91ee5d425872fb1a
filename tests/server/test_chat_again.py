"""POST /api/chat of what was said before: by its asked_id, with the message or alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from memorist import Memory
from memorist.records.message import Message
from memorist.server.auth import Guard
from memorist.server.chat import ChatRuntime
from memorist.server.http.app import build_app
from tests.server.test_chat import JSON, read_events
from tests.server.test_chat_model import answers, log, talking
from tests.support.http_server import serving
from tests.support.model_server import Dropped, ModelServer
from tests.support.waiting import until

COUNT = "one two three four five six"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(retry_after_s=0.05) as server:
        yield server


def ask(client: httpx.Client, text: str, key: str = "k1", **fields: Any) -> httpx.Response:
    body = {"message": text, "asked_id": key, **fields}
    return client.post("/api/chat", json=body, headers=JSON)


def listen(client: httpx.Client, text: str, key: str = "k1") -> tuple[bool, list[tuple[str, Any]]]:
    """Whether it is told again, and what is."""
    answer = client.post("/api/chat", json={"message": text, "asked_id": key})
    assert answer.status_code == 200, answer.text
    events = read_events(answer.text)
    return [name for name, _ in events] == ["session", "token", "done"], events


def ask_by_id(client: httpx.Client, asked_id: str, **fields: Any) -> httpx.Response:
    return client.post("/api/chat", json={"asked_id": asked_id, **fields}, headers=JSON)


def said(memory: Memory) -> list[tuple[str, bool]]:
    return [(message.text, message.unfinished) for message in log(memory)]


def test_a_question_under_the_same_id_is_answered_once_and_told_again(
    memory: Memory, server: ModelServer
) -> None:
    answers(server, "In the cellar.", "Somewhere else.")
    with talking(memory, server, tools=()) as client:
        first = ask(client, "Where is my bike?")
        again = ask(client, "Where is my bike?")
        replayed, told = listen(client, "Where is my bike?")
    ids = ("session_id", "asked_id", "message_id", "message")
    assert [again.json()[name] for name in ids] == [first.json()[name] for name in ids]
    assert replayed
    assert [name for name, _ in told] == ["session", "token", "done"]
    assert told[1][1] == {"text": "In the cellar."}
    assert told[2][1]["message_id"] == first.json()["message_id"]
    assert said(memory) == [("Where is my bike?", False), ("In the cellar.", False)]
    assert len(server.requests) == 1


def test_a_reply_that_broke_off_is_said_anew_in_its_place_on_any_server(
    memory: Memory, server: ModelServer
) -> None:
    answers(server, Dropped(COUNT), "I, II, III.")
    with talking(memory, server, tools=()) as client:
        assert listen(client, "Count")[1][-1][0] == "error"
        part = log(memory)[1]
        assert part.unfinished
    with talking(memory, server, tools=()) as another:
        replayed, told = listen(another, "Count")
        assert not replayed
        assert dict(told)["done"]["message_id"] == part.message_id
        assert said(memory) == [("Count", False), ("I, II, III.", False)]
        assert listen(another, "Count")[0]
    texts = [it.text for it in memory.store.revisions(memory.scope(user="ada"), part.message_id)]
    assert part.text in texts
    (asked,) = [one["content"] for one in server.requests[1].body["messages"]][1:]
    assert asked.endswith("The message to answer:\nCount")
    assert len(server.requests) == 2


def test_a_second_try_that_fails_takes_nothing_away(memory: Memory, server: ModelServer) -> None:
    answers(server, Dropped(COUNT))
    with talking(memory, server, tools=()) as client:
        listen(client, "Count")
        before = said(memory)
        server.mode = "500"
        assert ask(client, "Count").status_code == 502
        assert said(memory) == before


def test_a_client_that_left_comes_back_by_the_same_id(memory: Memory, server: ModelServer) -> None:
    answers(server, " ".join(f"word{number}" for number in range(500)), "Short.")
    server.mode, server.byte_every_s = "slow", 0.0005
    sent: dict[str, Any] = {"json": {"message": "Count", "asked_id": "k1"}}
    with talking(memory, server, tools=()) as client:
        heard = ""
        with client.stream("POST", "/api/chat", **sent) as answer:
            for piece in answer.iter_text():
                heard += piece
                if "word3" in heard:
                    break
        server.mode = "ok"
        assert ask(client, "Count").json()["message"] == "Short."
    assert said(memory) == [("Count", False), ("Short.", False)]


def test_what_tools_did_stays_and_the_answer_follows_it(
    memory: Memory, server: ModelServer
) -> None:
    call = [{"name": "recall", "args": {"query": "bike"}}]
    answers(server, call, Dropped(COUNT), call, "No idea.")
    with talking(memory, server) as client:
        assert listen(client, "Where is my bike?")[1][-1][0] == "error"
        called = log(memory)[1]
        first = ask(client, "Where is my bike?").json()
        again = ask(client, "Where is my bike?").json()
    assert (again["message"], again["message_id"]) == ("No idea.", first["message_id"])
    assert log(memory)[1] == called
    assert not any(message.unfinished for message in log(memory))
    assert [it.text for it in log(memory) if it.role == "assistant"].count("No idea.") == 1
    assert len(server.requests) == 4


def test_each_of_two_questions_at_the_same_time_has_its_own_answer(
    memory: Memory, server: ModelServer
) -> None:
    def reply(body: dict[str, Any]) -> str:
        time.sleep(0.2)  # so that both are asked before either is answered
        asked = body["messages"][-1]["content"]  # below what was recalled, maybe the other question
        return f"To {asked.splitlines()[-1]}"

    server._script = reply
    with talking(memory, server, tools=()) as client, ThreadPoolExecutor() as pool:
        memory.session(user="ada")

        def both() -> list[str]:
            told = pool.map(lambda key: ask(client, f"question {key}", key).json(), ("a", "b"))
            return [one["message"] for one in told]

        assert both() == both() == ["To question a", "To question b"]
    assert len(log(memory)) == 4


def test_the_same_question_at_the_same_moment_waits_for_its_answer(
    memory: Memory, server: ModelServer
) -> None:
    answers(server, COUNT, "Something else.")
    server.mode, server.byte_every_s = "slow", 0.0005
    with talking(memory, server, tools=()) as client, ThreadPoolExecutor() as pool:
        told = [one.json() for one in pool.map(lambda _: ask(client, "Count"), range(3))]
    assert {one.get("message", one.get("code")) for one in told} <= {COUNT, "conflict"}
    assert COUNT in [one.get("message") for one in told]
    assert said(memory) == [("Count", False), (COUNT, False)]
    assert len(server.requests) == 1


def test_who_waits_too_long_for_it_hears_that_it_is_being_answered(
    memory: Memory, server: ModelServer
) -> None:
    server.mode = "hang"
    with talking(memory, server, tools=(), patience_s=0.1) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(ask, client, "Count")
        until(lambda: len(server.requests) == 1)
        second = ask(client, "Count")
        assert (second.status_code, second.json()["code"]) == (409, "conflict")
        assert first.result().status_code == 502
    assert said(memory) == [("Count", False)]


def test_what_is_sent_again_stays_in_its_conversation(memory: Memory, server: ModelServer) -> None:
    server.mode = "500"
    with talking(memory, server, tools=()) as client:
        began = ask(client, "Count").json()["session_id"]
        other = memory.session(user="ada", new=True).id
        server.mode = "ok"
        answers(server, COUNT)
        assert ask(client, "Count").json()["session_id"] == began
        assert memory.history(user="ada", session=other) == []
        elsewhere = ask(client, "Count", agent_id="tutor")
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (409, "conflict")
    assert said(memory) == [("Count", False), (COUNT, False)]


def test_after_a_failure_the_question_is_answered_by_its_id(
    memory: Memory, server: ModelServer
) -> None:
    server.mode = "500"
    with talking(memory, server, tools=()) as client:
        alone = client.post("/api/chat", json={"message": "Count"}, headers=JSON)
        assert alone.status_code == 502
        assert alone.headers["content-type"] == "application/problem+json"
        problem = alone.json()
        assert "asked_id" in problem["detail"]
        assert problem["session_id"] == memory.session(user="ada").id
        stream = client.post("/api/chat", json={"asked_id": problem["asked_id"]})
        name, error = read_events(stream.text)[-1]
        assert (name, error["asked_id"]) == ("error", problem["asked_id"])
        server.mode = "ok"
        answers(server, COUNT)
        first, again = (ask_by_id(client, problem["asked_id"]) for _ in range(2))
    assert first.json()["message"] == again.json()["message"] == COUNT
    assert said(memory) == [("Count", False), (COUNT, False)]


def test_an_id_that_is_no_question_of_the_callers_is_refused(
    memory: Memory, server: ModelServer
) -> None:
    chat = memory.session(user="ada", agent="tutor")
    asked, answer = chat.add("user", "Count"), chat.add("assistant", "One.")
    picture = Message("user", "Look", images=["data:image/png;base64,AAAA"])
    chat.remember(picture)
    bobs = memory.session(user="bob").add("user", "Count")
    with talking(memory, server, tools=()) as client:

        def status(**body: Any) -> int:
            return client.post("/api/chat", json=body, headers=JSON).status_code

        assert status(asked_id="nothing") == status(asked_id=bobs) == 404
        assert status(asked_id=asked, session_id="another") == 404
        assert status(asked_id=asked, agent_id="another") == 404
        assert status(asked_id=answer) == status(asked_id=picture.message_id) == 422
        assert status() == 422
        assert status(asked_id=asked, message="Other", agent_id="tutor") == 409
        assert status(asked_id=answer, message="One.", agent_id="tutor") == 409
        assert status(asked_id="a\x00b") == 422
        assert status(asked_id="") == 404
        assert status(asked_id=asked, session_id="") == 422
        assert server.requests == []
        answers(server, "Two.")
        assert status(asked_id=asked, agent_id="tutor", session_id=chat.id) == 200
    assert len(chat.history()) == 4


def test_without_a_model_a_stored_question_is_looked_at_again(memory: Memory) -> None:
    asked = memory.session(user="ada").add("user", "Where is my bike?")
    app = build_app(memory, Guard.local("default", "ada"), chats=ChatRuntime())
    with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        told = ask_by_id(client, asked).json()
    assert told["asked_id"] == asked
    assert told["context"]["messages"][-1]["content"] == "Where is my bike?"
    assert said(memory) == [("Where is my bike?", False)]
