"""The session story of document 003, over HTTP: one conversation per user and agent, anywhere."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.http_server import Served


class Browser:
    """What the document's web app does: hold an id in local storage, and let the server confirm."""

    def __init__(self, api: httpx.Client) -> None:
        self._api = api
        self.local_storage: dict[str, str] = {}

    def open(self, agent: str) -> str:
        """Open the page: resolve the session, and keep what the server says."""
        held = self.local_storage.get(agent)
        told = self._post("/api/sessions/resolve", {"agent": agent, "session_id": held})
        self.local_storage[agent] = str(told["session_id"])
        return self.local_storage[agent]

    def say(self, agent: str, text: str) -> None:
        session = self.local_storage[agent]
        said = {"role": "user", "content": text, "agent": agent, "session": session}
        self._post("/api/messages", said)

    def read(self, agent: str) -> list[str]:
        query = {"agent": agent, "session": self.local_storage[agent]}
        page = self._api.get("/api/messages", params=query).raise_for_status().json()
        return [one["message"]["content"] for one in page["items"]]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._api.post(path, json=body).raise_for_status().json()


@pytest.fixture
def browser(served: Served, request: pytest.FixtureRequest) -> Browser:
    return Browser(served.client(user=request.node.name))


def test_a_refresh_keeps_the_conversation(browser: Browser) -> None:
    first = browser.open("tutor")
    browser.say("tutor", "hello")
    assert browser.open("tutor") == first
    assert browser.read("tutor") == ["hello"]


def test_a_second_browser_of_the_same_user_finds_the_same_conversation(
    served: Served, browser: Browser, request: pytest.FixtureRequest
) -> None:
    first = browser.open("tutor")
    browser.say("tutor", "from the first")
    second = Browser(served.client(user=request.node.name))
    assert second.open("tutor") == first
    assert second.read("tutor") == ["from the first"]


def test_a_second_agent_has_a_conversation_of_its_own(browser: Browser) -> None:
    with_tutor, with_coach = browser.open("tutor"), browser.open("coach")
    browser.say("tutor", "about German")
    assert with_tutor != with_coach
    assert browser.read("coach") == []
    assert (browser.open("tutor"), browser.open("coach")) == (with_tutor, with_coach)


def test_an_id_of_another_user_is_as_good_as_none(served: Served, browser: Browser) -> None:
    browser.open("tutor")
    browser.say("tutor", "mine alone")
    thief = Browser(served.client(user="mallory"))
    thief.local_storage["tutor"] = browser.local_storage["tutor"]
    assert thief.open("tutor") != browser.local_storage["tutor"]
    thief.local_storage["tutor"] = browser.local_storage["tutor"]
    assert thief.read("tutor") == []
    thief.say("tutor", "an intrusion")
    assert browser.read("tutor") == ["mine alone"]


def test_an_id_with_another_agent_is_as_good_as_none(browser: Browser) -> None:
    with_tutor = browser.open("tutor")
    browser.local_storage["coach"] = with_tutor
    assert browser.open("coach") != with_tutor


def test_a_deleted_session_gives_way_to_a_new_one(
    served: Served, browser: Browser, request: pytest.FixtureRequest
) -> None:
    gone = browser.open("tutor")
    browser.say("tutor", "forget me")
    api = served.client(user=request.node.name)
    api.post("/api/forget", json={"session": gone}).raise_for_status()
    assert browser.open("tutor") != gone
    assert browser.read("tutor") == []


def test_made_up_ids_are_as_good_as_none(browser: Browser) -> None:
    known = browser.open("tutor")
    for made_up in ("", "nobody's", "' OR 1=1 --", "x" * 70_000, "\u202e", "../../etc"):
        browser.local_storage["tutor"] = made_up
        assert browser.open("tutor") == known


def test_two_browsers_that_open_at_once_begin_one_conversation(
    served: Served, request: pytest.FixtureRequest
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    browsers = [Browser(served.client(user=request.node.name)) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        opened = set(pool.map(lambda one: one.open("tutor"), browsers))
    assert len(opened) == 1
