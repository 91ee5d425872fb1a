"""The timeline: from the whole year to an hour, and to a memory, by the keyboard."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date

from playwright.sync_api import expect

from tests.page.conftest import Open
from tests.support.http_server import Served


def test_the_timeline_zooms_from_a_year_to_an_hour(demo: Served, open_page: Open) -> None:
    made = Counter(
        item.created_at.date() for item in demo.memory.memories.list(user="ada", current=False)
    )
    page = open_page(demo.url, "timeline")
    drawing = page.get_by_role("group", name="Sessions and memories")
    moved = drawing.get_by_role("button", name=re.compile("^fact: I moved to Berlin in June"))
    expect(moved).to_be_visible()
    expect(drawing.get_by_text("I adopted a cat called Miso.", exact=True)).to_be_visible()
    expect(page.get_by_text(f"14 Feb 2026 to 27 Nov 2026: {made.total()} memories")).to_be_visible()
    # What was over is said, and an arc leads from it to what took its place.
    expect(
        drawing.get_by_role("button", name=re.compile("Munich.*over since 1 June 2026"))
    ).to_be_visible()
    said = re.compile("Munich.* was updated: I moved to Berlin")
    expect(drawing.locator(".arc title", has_text=said)).to_have_count(1)

    page.keyboard.press("j")
    while "Oren" not in page.evaluate("document.activeElement.ariaLabel ?? ''"):
        page.keyboard.press("j")
    page.get_by_role("button", name="Hour").press("Enter")
    expect(page.get_by_text("8 May 2026 at 08:38:00 to 8 May 2026 at 09:38:00")).to_be_visible()
    expect(drawing.get_by_role("button")).to_have_count(made[date(2026, 5, 8)])
    expect(moved).to_have_count(0)
    expect(page).to_have_url(re.compile("from=2026-05-08T08%3A38"))
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    inspector = page.get_by_role("complementary", name="Inspector")
    expect(inspector).to_contain_text("Lumen")
    page.keyboard.press("Escape")
    expect(inspector).to_have_count(0)

    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("from=2026-05-08T08%3A50"))
    page.reload()
    expect(page.get_by_text("8 May 2026 at 08:50:00 to")).to_be_visible()
    page.keyboard.press("0")
    expect(moved).to_be_visible()
    drawing.get_by_text("I adopted a cat called Miso.", exact=True).click()
    expect(drawing.get_by_role("button")).to_have_count(made[date(2026, 10, 15)])
