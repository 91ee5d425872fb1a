"""Memories: find, filter, open, read the evidence, edit, undo, forget; with mouse and keyboard."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import Open
from tests.support.http_server import Served

BERLIN = "I moved to Berlin in June."
MUNICH = "I live in Munich and work at Siemens"


def listed(page: Page, name: str = "Memories") -> Locator:
    return page.get_by_role("listbox", name=name)


def inspector(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Inspector")


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("listbox").get_by_role("option").filter(has_text=text)


def test_find_by_words_and_facets_and_come_back(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "memories")
    expect(row(page, "I adopted a cat")).to_be_visible()

    page.get_by_label("Search memories").press_sequentially("ber")
    expect(row(page, "I adopted a cat")).to_have_count(0)
    expect(row(page, BERLIN)).to_be_visible()
    expect(page).to_have_url(re.compile("text=ber"))
    page.reload()
    expect(page.get_by_label("Search memories")).to_have_value("ber")
    expect(row(page, BERLIN)).to_be_visible()
    page.get_by_label("Search memories").fill("zeppelin")
    page.get_by_role("button", name="Clear them").click()
    expect(page.get_by_label("Search memories")).to_have_value("")

    page.get_by_label("kind", exact=True).select_option("concept")
    expect(row(page, BERLIN)).to_have_count(0)
    expect(row(page, "I prefer short answers")).to_be_visible()
    page.reload()
    expect(page.get_by_label("kind", exact=True)).to_have_value("concept")
    expect(row(page, "I prefer short answers")).to_be_visible()
    page.go_back()
    expect(row(page, BERLIN)).to_be_visible()

    page.get_by_label("state", exact=True).select_option("over")
    expect(row(page, MUNICH)).to_contain_text("superseded")
    page.get_by_role("link", name="Facts").click()
    expect(row(page, "user lives in Berlin")).to_be_visible()


def test_a_list_begins_at_what_the_address_shows(demo: Served, open_page: Open) -> None:
    [shown] = [it for it in demo.memory.memories.list(user="ada") if BERLIN in it.text]
    page = open_page(demo.url, f"memories?show=memory:{shown.id}")
    expect(listed(page)).to_have_attribute("aria-activedescendant", f"row-{shown.id}")


def test_the_evidence_of_a_memory_and_what_updated_it(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "memories")
    row(page, BERLIN).click()
    shown = inspector(page)
    evidence = shown.get_by_role("region", name="Evidence")
    source = evidence.locator("[aria-current=true]")
    expect(source.locator("mark")).to_have_text(BERLIN)
    expect(evidence.get_by_role("listitem")).to_have_count(4)  # one before, two after, and itself
    link = evidence.get_by_role("link", name="Open the conversation")
    expect(link).to_have_attribute("href", re.compile(r"#/chat\?session=.+&message=.+"))

    updates = shown.get_by_role("region", name="Updates")
    expect(updates.get_by_role("listitem")).to_contain_text([MUNICH, BERLIN])
    updates.get_by_role("link", name=MUNICH).click()
    expect(shown.locator(".statement")).to_contain_text(MUNICH)
    page.reload()
    expect(shown.locator(".statement")).to_contain_text(MUNICH)
    page.go_back()
    expect(shown.locator(".statement")).to_contain_text(BERLIN)

    shown.get_by_role("link", name="home").click()
    expect(page).to_have_url(re.compile("tag=home"))
    expect(row(page, "I adopted a cat")).to_have_count(0)
    page.get_by_role("button", name="Remove tag: home").click()
    expect(row(page, "I adopted a cat")).to_be_visible()


def test_edit_in_place_and_undo(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "memories")
    row(page, "I adopted a cat called Miso.").click()
    shown = inspector(page)
    shown.get_by_role("button", name="Edit").click()
    shown.get_by_label("statement").fill("I adopted two cats.")
    shown.get_by_label("tags").fill("pets, home")
    shown.get_by_role("button", name="Save").click()
    expect(shown.locator(".statement")).to_have_text("I adopted two cats.")
    expect(row(page, "I adopted two cats.")).to_be_visible()  # in the place of the old one
    expect(row(page, "called Miso")).to_have_count(0)
    page.get_by_role("button", name="Undo", exact=True).last.click()
    expect(shown.locator(".statement")).to_have_text("I adopted a cat called Miso.")
    expect(row(page, "I adopted a cat called Miso.")).to_contain_text("current")


def test_the_keyboard_edits_what_a_link_has_opened(fresh: Served, open_page: Open) -> None:
    cat = next(it for it in fresh.memory.memories.list(user="ada") if "Miso" in it.text)
    page = open_page(fresh.url, f"memories?show=memory:{cat.id}")
    expect(row(page, "I adopted a cat")).to_be_visible()
    page.keyboard.press("e")
    expect(inspector(page).get_by_label("statement")).to_be_focused()
    page.keyboard.press("Escape")
    expect(inspector(page).locator(".statement")).to_be_visible()
    page.keyboard.press("f")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(inspector(page).locator(".statement")).to_be_visible()


def test_forget_after_a_preview_and_news_that_wait(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "memories")
    row(page, "I adopted a cat").click()
    inspector(page).get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog", name="Forget this memory?")
    going = dialog.get_by_role("list", name="What will go")
    expect(going).to_contain_text("1 memory")
    expect(going).to_contain_text("1 fact")
    texts = [item.text for item in fresh.memory.memories.list(user="ada")]
    assert any("Miso" in text for text in texts)  # a preview removes nothing
    dialog.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_role("status").filter(has_text="Forgotten: 1 memory")).to_be_visible()
    expect(row(page, "I adopted a cat")).to_contain_text("forgotten")
    texts = [item.text for item in fresh.memory.memories.list(user="ada")]
    assert not any("Miso" in text for text in texts)

    first = listed(page).get_by_role("option").first
    before = first.text_content() or ""
    fresh.memory.memories.add("Ada collects stamps.", user="ada")
    fresh_button = page.get_by_role("button", name="1 new: show")
    expect(fresh_button).to_be_visible()
    expect(first).to_have_text(before)  # nothing moved
    fresh_button.click()
    expect(first).to_contain_text("Ada collects stamps.")


def test_a_change_within_a_month_is_told_in_days(fresh: Served, open_page: Open) -> None:
    for place, at in (("Rome", 3), ("Oslo", 21)):
        since = datetime(2026, 5, at, 12, tzinfo=UTC)
        fresh.memory.facts.add("Lena", "lives in", place, user="ada", valid_from=since)
    page = open_page(fresh.url, "memories?what=facts")
    row(page, "Lena lives in Oslo").click()
    updates = inspector(page).get_by_role("region", name="Updates")
    expect(updates.get_by_role("listitem")).to_contain_text(
        ["Rome3 May 2026 until 21 May 2026", "Oslosince May 2026"]
    )


def test_undo_an_update_of_a_fact(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "memories?what=facts")
    row(page, "user lives in Berlin").click()
    updates = inspector(page).get_by_role("region", name="Updates")
    expect(updates.get_by_role("listitem")).to_contain_text(["Munich", "Berlin"])
    updates.get_by_role("button", name="Undo the update to Berlin").click()
    expect(inspector(page).get_by_text(re.compile("^undone")).first).to_be_visible()
    homes = fresh.memory.facts.list(user="ada", subject="user", predicate="lives in")
    assert [fact.object for fact in homes] == ["Munich"]
    inspector(page).get_by_role("link", name="user", exact=True).click()
    expect(page.get_by_role("button", name="Remove subject: user")).to_be_visible()
    expect(row(page, "user's sister")).to_have_count(0)


def test_by_keyboard_alone(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "recall")
    expect(page.get_by_label("Question")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("m")
    second = listed(page).get_by_role("option").nth(1)
    stated = second.locator(".grow").text_content() or ""
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    statement = inspector(page).locator(".statement")
    expect(statement).to_have_text(stated)

    page.keyboard.press("e")
    expect(page.get_by_label("statement")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("I climb twice a week.")
    page.keyboard.press("Control+Enter")
    expect(statement).to_have_text("I climb twice a week.")
    page.keyboard.press("u")
    expect(statement).to_have_text(stated)
    expect(second).to_contain_text(stated)
    expect(second).to_contain_text("current")

    page.keyboard.press("f")
    retract = page.get_by_role("dialog").get_by_role("button", name="Retract instead")
    expect(retract).to_be_visible()
    page.keyboard.press("Tab")
    expect(retract).to_be_focused()
    page.keyboard.press("Enter")
    expect(inspector(page).get_by_text(re.compile("^retracted"))).to_be_visible()
    page.keyboard.press("u")
    expect(inspector(page).get_by_text("current", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(inspector(page)).to_have_count(0)
