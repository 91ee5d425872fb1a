"""The recall console: hits with their reasons, what was left out, and why not."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from playwright.sync_api import Page, expect

import memorist
from memorist.recall.fusion import Ranking
from tests.page.conftest import Open
from tests.support.http_server import Served

ASKED = "recall?question=where+does+Ada+live&deadline=none"


def verdict(page: Page, text: str) -> None:
    """What the page says of an item that was expected."""
    expect(page.locator(".verdict")).to_contain_text(text)


def expected(page: Page, words: str, item: str) -> None:
    """Ask why not, of what is found by words."""
    page.get_by_role("searchbox", name="What was expected").fill(words)
    page.get_by_role("button", name=item).first.click()


def test_a_question_from_the_top_and_its_reasons(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "memories")
    page.get_by_label("Search anything").fill("where does Ada live")
    page.get_by_label("Search anything").press("Enter")
    hits = page.get_by_role("table", name="Hits")
    expect(hits).to_be_visible()
    page.get_by_label("Deadline").select_option("none")
    expect(page).to_have_url(re.compile("deadline=none"))
    for channel in ("words", "meaning", "links", "recency"):
        expect(hits.get_by_role("columnheader", name=channel)).to_contain_text("ms")
    munich = hits.get_by_role("row").filter(has_text="I live in Munich")
    expect(munich).to_contain_text("#1")

    munich.get_by_role("button", name=re.compile("^words:")).click()
    expect(munich.locator(".explanation")).to_contain_text("shares words")
    expect(munich.locator(".explanation mark")).to_have_text(["Ada", "live"])
    munich.get_by_role("button", name=re.compile("^meaning:")).click()
    expect(munich.locator(".explanation mark")).to_contain_text("I live in Munich")

    munich.get_by_role("link").click()
    shown = page.get_by_role("complementary", name="Inspector")
    expect(shown.locator("[aria-current=true]")).to_contain_text("I live in Munich")
    page.reload()
    expect(page.get_by_label("Question")).to_have_value("where does Ada live")
    expect(shown.locator("[aria-current=true]")).to_contain_text("I live in Munich")


def test_what_is_below_the_floor_lies_below_a_line(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, f"{ASKED}&floor=0.1")
    rows = page.get_by_role("table", name="Hits").get_by_role("row")
    floor = rows.filter(has_text="The floor: 10")
    expect(floor).to_be_visible()
    expect(rows.filter(has_text="I adopted a cat")).to_have_count(0)
    floor.get_by_role("button").click()
    expect(rows.filter(has_text="I adopted a cat")).to_be_visible()
    page.get_by_label("Any role").select_option("assistant")
    expect(rows.filter(has_text="I live in Munich")).to_have_count(0)
    expect(rows.filter(has_text="Nice to meet you")).to_be_visible()
    page.go_back()
    expect(rows.filter(has_text="I live in Munich")).to_be_visible()


def test_why_not(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, f"{ASKED}&limit=2&floor=0")
    expected(page, "cat", "I adopted a cat")
    verdict(page, "The limit of 2 cut it")
    verdict(page, "The message it came from stands for it")
    page.reload()
    verdict(page, "The limit of 2 cut it")

    page.get_by_label("floor").fill("0.9")
    page.get_by_label("floor").press("Enter")
    verdict(page, "It is below the floor of 90")

    page = open_page(demo.url, f"{ASKED}&limit=50&role=assistant")
    expected(page, "cat", "I adopted a cat")
    verdict(page, "The filters cut it (role)")

    ended = demo.memory.memories.list(user="ada", state="over")
    [over] = [item for item in ended if "Munich" in item.text]
    page.get_by_role("searchbox", name="What was expected").fill(over.id)
    page.get_by_role("button", name="I live in Munich").click()
    verdict(page, "It is superseded.")
    page.get_by_role("link", name="What holds instead").click()
    shown = page.get_by_role("complementary", name="Inspector")
    expect(shown.locator(".statement")).to_contain_text("I moved to Berlin")


def test_search_shows_what_it_finds_as_one_types(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "memories")
    search = page.get_by_role("combobox", name="Search anything")
    expect(search).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("pean")
    found = page.get_by_role("listbox", name="Found").get_by_role("option")
    expect(found.first).to_contain_text("peanuts")
    expect(page.get_by_text("asks the memory, which also looks")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(found.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("peanuts")
    expect(found).to_have_count(0)

    # Esc closes what was found and leaves the rest; a question is asked by Enter.
    search.fill("where does Ada live")
    expect(page.get_by_text("asks the memory, which also looks")).to_be_visible()
    search.press("Escape")
    expect(page.get_by_text("asks the memory, which also looks")).to_have_count(0)
    expect(page.get_by_role("complementary", name="Inspector")).to_be_visible()
    search.press("Enter")
    expect(page.get_by_label("Question")).to_have_value("where does Ada live")


def test_by_keyboard_alone(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "recall?deadline=none")
    expect(page.get_by_label("Question")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("where does Ada live")
    page.keyboard.press("Enter")
    hits = page.get_by_role("table", name="Hits")
    expect(hits.get_by_role("row").nth(1)).to_be_visible()
    page.keyboard.press("Tab")  # off the field, where letters are words
    page.keyboard.press("j")
    first = hits.get_by_role("link").first
    expect(first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(hits.locator(".explanation")).to_be_visible()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector")).to_be_visible()


def test_every_signal_of_the_ranking_is_explained() -> None:
    script = Path(memorist.__file__).with_name("server") / "web" / "signals.js"
    explained = set(re.findall(r'\["([a-z_]+)", \d, |^    "([a-z_]+)",$', script.read_text(), re.M))
    shapes = {"half_life_days", "reranker", "short_chars", "synonyms"}  # of other parts
    assert {part.name for part in fields(Ranking)} - shapes <= {a or b for a, b in explained}
