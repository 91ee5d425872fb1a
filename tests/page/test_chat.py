"""Chat: a conversation goes on after a refresh, in another browser, with another agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from memorist import Memory
from tests.page.conftest import Open, local_server
from tests.page.talking import talking
from tests.support.demo import DemoClock
from tests.support.http_server import Served


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.prove), "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    on_postgres = request.param == "postgres"
    where = (
        request.getfixturevalue("postgres_with_tables") if on_postgres else tmp_path / "memory.db"
    )
    with Memory(where, embedder=None, clock=DemoClock()) as opened:
        yield opened


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def thread(page: Page) -> Locator:
    return page.get_by_role("log", name="Conversation")


def turn(page: Page, who: str, text: str) -> Locator:
    return thread(page).get_by_role("article", name=who).filter(has_text=text)


def kept(page: Page, agent: str, user: str = "ada") -> str | None:
    found: str | None = page.evaluate("key => localStorage[key]", f"chatSession_{user}_{agent}")
    return found


def test_a_conversation_goes_on_wherever_its_user_is(memory: Memory, open_page: Open) -> None:
    call = [{"name": "recall", "args": {"query": "saffron"}}]
    answers = ("Noted, **Ada**.", call, "Saffron rice.", "Hello, I teach.", "Good night.")
    with talking(memory, *answers) as (server, _):
        page = open_page(server.url, "chat?agent=cook")
        page.get_by_label("Message", exact=True).focus()
        page.keyboard.type("I like saffron.")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("My brother is called Tim.")
        page.keyboard.press("Enter")
        asked = turn(page, "You", "My brother is called Tim.")
        expect(asked).to_contain_text("I like saffron.")
        expect(turn(page, "cook", "Noted").locator("strong")).to_have_text("Ada")
        _undo_and_restore(page, asked)
        _look_into_the_window(page)

        say(page, "What shall I cook?")
        expect(turn(page, "cook", "Saffron rice.")).to_be_visible()
        tool = thread(page).locator("details", has_text="recall").last
        tool.locator("summary").click()
        expect(tool).to_contain_text("saffron")

        page.reload()
        expect(turn(page, "cook", "Saffron rice.")).to_be_visible()
        expect(turn(page, "cook", "Noted")).to_contain_text("tokens")
        expect(asked.get_by_role("list", name="Remembered")).to_contain_text("brother")
        session = kept(page, "cook")

        other = open_page(server.url, "chat?agent=cook")
        expect(turn(other, "cook", "Saffron rice.")).to_be_visible()
        assert kept(other, "cook") == session

        page.get_by_label("Talk to").select_option("another agent…")
        page.get_by_label("Name").fill("tutor")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Message", exact=True)).to_have_attribute(
            "placeholder", "Message tutor"
        )
        say(page, "Who are you?")
        expect(turn(page, "tutor", "Hello, I teach.")).to_be_visible()
        expect(thread(page)).not_to_contain_text("Saffron")
        assert kept(page, "tutor") not in (None, session)
        assert kept(page, "cook") == session

        # A message of one browser is shown in the other, without a refresh.
        page.goto(f"{server.url}/#/chat?agent=cook")
        expect(turn(page, "cook", "Saffron rice.")).to_be_visible()
        say(page, "Sleep well")
        expect(turn(page, "cook", "Good night.")).to_be_visible()
        expect(turn(other, "cook", "Good night.")).to_be_visible()

        # The id of another user's conversation is as good as none.
        foreign = memory.session(user="bob", agent="cook", new=True)
        foreign.add("user", "The secret of bob")
        page.evaluate("id => localStorage.setItem('chatSession_ada_cook', id)", foreign.id)
        page.reload()
        expect(turn(page, "cook", "Good night.")).to_be_visible()
        expect(page.locator("body")).not_to_contain_text("bob")
        assert kept(page, "cook") == session


def test_junk_that_a_browser_keeps_is_dropped(tmp_path: Path, open_page: Open) -> None:
    junk = """for (const key of ["chatAgent_ada", "chatSession_ada_"])
        localStorage.setItem(key, "x".repeat(2_000))"""
    with Memory(tmp_path / "memory.db", embedder=None) as memory, local_server(memory) as server:
        page = open_page(server.url, "chat", before=lambda page: page.add_init_script(junk))
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
        assert page.evaluate("localStorage.chatAgent_ada") == ""


def _undo_and_restore(page: Page, asked: Locator) -> None:
    """The memories made of a message stand beside it; one is undone, and then that is."""
    made = asked.get_by_role("list", name="Remembered")
    line = made.get_by_role("listitem").filter(has_text="I like saffron.")
    expect(made.get_by_role("listitem").filter(has_text="brother")).to_be_visible()
    line.get_by_role("button", name="Undo").click()
    expect(line.get_by_role("button", name="Undo")).to_have_count(0)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(line.get_by_role("button", name="Undo")).to_be_visible()


def _look_into_the_window(page: Page) -> None:
    answer = turn(page, "cook", "Noted")
    answer.locator("summary", has_text="tokens").click()
    expect(answer.get_by_role("group", name="The window")).to_be_visible()
    expect(answer.get_by_role("button", name="Question: ")).to_be_visible()
    answer.locator("summary", has_text="tokens").click()


def test_what_fails_stands_where_the_answer_would_be_and_is_asked_again(
    tmp_path: Path, open_page: Open
) -> None:
    with (
        Memory(tmp_path / "memory.db", embedder=None, extraction=None, clock=DemoClock()) as memory,
        talking(memory, "In the cellar.", "Red.") as (server, model),
    ):
        model.mode = "500"
        page = open_page(server.url, "chat")
        say(page, "Where is my bike?")
        failed = thread(page).get_by_role("alert")
        expect(failed).to_contain_text("model")
        model.mode = "ok"
        failed.get_by_role("button", name="Ask again").press("Enter")
        expect(turn(page, "the agent", "In the cellar.")).to_be_visible()
        expect(turn(page, "You", "Where is my bike?")).to_have_count(1)

        model.mode = "500"
        say(page, "Which colour?")
        expect(failed).to_be_visible()
        page.reload()  # the question is stored, and waits
        model.mode = "ok"
        turn(page, "the agent", "Not answered.").get_by_role("button").click()
        expect(turn(page, "the agent", "Red.")).to_be_visible()
        expect(turn(page, "You", "Which colour?")).to_have_count(1)
        said = [message.text for message in memory.history(user="ada")]
        assert said == ["Where is my bike?", "In the cellar.", "Which colour?", "Red."]


def test_without_a_model_one_sees_what_it_would_get(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "chat?agent=assistant")
    expect(page.get_by_label("No model")).to_contain_text("MEMORIST_MODEL=")
    say(page, "What can I cook for Lena?")
    asked = turn(page, "You", "What can I cook for Lena?")
    seen = asked.get_by_role("region", name="What the model sees")
    expect(seen).to_contain_text("vegetarian")
    expect(asked.get_by_role("region", name="What was recalled")).to_contain_text("quoted")
    page.reload()
    line = asked.locator("summary", has_text="tokens")
    expect(line).to_contain_text("No answer")
    line.click()
    item = asked.get_by_role("region", name="What was recalled").get_by_role("link").first
    item.click()
    expect(page.get_by_role("complementary", name="Inspector")).to_be_visible()
    asked.get_by_role("link", name="Open in the context viewer").click()
    question = page.get_by_role("textbox", name="Question", exact=True)
    expect(question).to_have_value("What can I cook for Lena?")
    expect(page.get_by_role("region", name="What the model sees")).to_contain_text("Lena")


def test_past_conversations_are_opened_renamed_and_deleted_by_keyboard(
    fresh: Served, open_page: Open
) -> None:
    page = open_page(fresh.url, "chat")
    past = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(past).to_have_count(6)
    expect(past.first).to_contain_text("Lena visits me")
    expect(past.first).to_contain_text("5 messages")
    expect(past.nth(2)).to_contain_text("travel")
    expect(thread(page)).to_contain_text("technology museum")

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(turn(page, "travel", "Here is a route")).to_be_visible()
    expect(page.get_by_label("Talk to")).to_have_value("travel")

    page.keyboard.press("e")
    title = page.get_by_role("dialog").get_by_label("Title")
    title.press("Control+a")
    page.keyboard.type("Norway by train")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Norway by train")).to_be_visible()
    expect(past).to_have_text([re.compile("Norway by train")])

    page.keyboard.press("f")
    going = page.get_by_role("dialog").get_by_role("list", name="What will go")
    expect(going).to_contain_text("7 messages")
    page.get_by_role("button", name="Delete for good").press("Enter")
    expect(thread(page)).to_contain_text("Say something to travel")
    assert "Norway" not in str(fresh.memory.history(user="ada"))

    first = kept(page, "travel")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("session="))
    assert kept(page, "travel") != first


def test_earlier_messages_come_in_when_one_scrolls_up(tmp_path: Path, open_page: Open) -> None:
    with Memory(
        tmp_path / "memory.db", embedder=None, extraction=None, clock=DemoClock()
    ) as memory:
        chat = memory.session(user="ada", agent="cook")
        for number in range(160):
            chat.add("user" if number % 2 == 0 else "assistant", f"Message number {number}.")
        with talking(memory) as (server, _):
            page = open_page(server.url, "chat")
            expect(turn(page, "cook", "number 159.")).to_be_in_viewport()
            expect(turn(page, "You", "number 100.")).to_have_count(0)
            oldest = turn(page, "You", "number 110.")
            oldest.scroll_into_view_if_needed()
            expect(turn(page, "You", "number 100.")).to_have_count(1)
            expect(oldest).to_be_in_viewport()
            [first] = memory.messages.list(memory.scope(user="ada"), last=160)[:1]
            page.goto(f"{server.url}/#/chat?message={first.message.message_id}")
            page.reload()
            expect(turn(page, "You", "number 0.")).to_be_in_viewport()


def test_looking_at_conversations_begins_none(tmp_path: Path, open_page: Open) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory, local_server(memory) as served:
        for day in (1, 2):
            said = {"role": "user", "content": f"Day {day}", "created_at": f"2026-05-0{day}T09:00Z"}
            memory.remember(said, user="ada", agent="tutor", session=f"day-{day}")
        page = open_page(served.url, "chat")

        expect(page.get_by_role("log")).to_contain_text("Day 2")
        assert [it.id for it in memory.sessions(user="ada")] == ["day-1", "day-2"]


def test_what_is_said_in_a_conversation_that_is_gone_is_shown_where_it_went(
    tmp_path: Path, open_page: Open
) -> None:
    with Memory(tmp_path / "memory.db", embedder=None) as memory, local_server(memory) as served:
        memory.remember("I like tea.", user="ada", session="tea")
        page = open_page(served.url, "chat?session=tea")
        expect(turn(page, "You", "I like tea.")).to_be_visible()
        memory.forget(user="ada", session="tea")
        say(page, "And coffee.")
        expect(turn(page, "You", "And coffee.")).to_be_visible()
        expect(turn(page, "You", "I like tea.")).to_have_count(0)
        [session] = memory.sessions(user="ada")
        expect(page).to_have_url(re.compile(f"session={session.id}"))
        assert kept(page, "") == session.id


def test_what_could_not_be_sent_stays_in_sight_where_no_message_could_be_read(
    tmp_path: Path, open_page: Open
) -> None:
    def cut(page: Page) -> None:
        page.route(re.compile("/api/(messages|chat)"), lambda route: route.abort())

    with Memory(tmp_path / "memory.db", embedder=None) as memory, local_server(memory) as served:
        page = open_page(served.url, "chat", before=cut)
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
        say(page, "I like tea.")
        expect(turn(page, "You", "I like tea.")).to_be_visible()
        page.unroute_all()
        page.get_by_role("button", name="Ask again").click()
        page.get_by_role("button", name="Try again").click()
        expect(turn(page, "You", "I like tea.")).to_have_count(1)
        assert [it.text for it in memory.history(user="ada")] == ["I like tea."]
