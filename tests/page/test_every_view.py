"""Every view: no serious problem of accessibility, in both themes; small; alone with its server.

`make pictures` writes the pictures of the docs with the same run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Request, expect

from tests.page.conftest import Open
from tests.support.examples import LONG
from tests.support.http_server import Served

PICTURES = Path(__file__).parents[2] / "docs" / "images" / "page"
FIRST_PAGE_BYTES = 300_000
# The address of each view, and what must be on it before it counts as shown.
VIEWS = {
    "chat": ("chat", "technology museum"),
    "memories": ("memories", "allergic to peanuts"),
    "recall": (
        f"recall?deadline=none&question={quote('where does Ada live now?')}",
        "moved to Berlin",
    ),
    "graph": ("graph", "lives in"),
    "timeline": ("timeline", "a cat called Miso"),
    "notes": ("notes?agent=assistant", "Diet: vegetarian"),
    "articles": ("articles?agent=assistant", "Night trains in Europe"),
    "health": ("health", "jobs done"),
    "context": (f"context?wait=true&question={quote('Plan my weekend')}", "Copy as OpenAI"),
}


SIZES = {1440: 900, 1024: 768, 390: 844}


def themes(width: int) -> tuple[str, ...]:
    """Those in which a view is looked at: both at the largest size, all at all in `make prove`."""
    if LONG or width == max(SIZES):
        return ("light", "dark")
    return ("light",) if width == min(SIZES) else ()


def axe_options(theme: str) -> dict[str, Any]:
    """All rules; those of colour alone where nothing else is new."""
    colour = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    return {"resultTypes": ["violations"]} | (colour if theme == "dark" and not LONG else {})


def show(page: Page, text: str) -> None:
    """Wait until a text is there and nothing is on its way."""
    expect(page.locator("main")).to_contain_text(text, ignore_case=True)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_serious(demo: Served, open_page: Open, name: str) -> None:
    address, text = VIEWS[name]
    kept = PICTURES if os.environ.get("MEMORIST_PICTURES") else None
    page = open_page(demo.url, address)
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for theme in themes(width):
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            show(page, text)
            if kept and width == max(SIZES):
                page.screenshot(path=kept / f"{name}-{width}-{theme}.png")
            violations = Axe().run(page, options=axe_options(theme)).response["violations"]
            serious = [
                (it["id"], [node["html"][:200] for node in it["nodes"]])
                for it in violations
                if it["impact"] in ("serious", "critical")
            ]
            assert serious == [], (name, width, theme)
        show(page, text)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_first_page_is_small_and_needs_nothing_but_its_server(
    demo: Served, open_page: Open
) -> None:
    sizes: dict[str, int] = {}  # as sent, which is compressed

    def add(request: Request) -> None:
        sizes[request.url] = request.sizes()["responseBodySize"]

    def count(page: Page) -> None:
        page.on("requestfinished", add)

    page = open_page(demo.url, before=count)
    show(page, "technology museum")
    assert all(url.startswith(demo.url) for url in sizes)
    assert sum(size for url, size in sizes.items() if "/api/" not in url) < FIRST_PAGE_BYTES


def test_letters_go_to_every_place(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "health")
    show(page, "sqlite")
    for name in ("chat", "memories", "recall", "graph", "timeline", "notes", "articles", "health"):
        page.keyboard.press("g")
        page.keyboard.press(name[0])
        place = page.get_by_role("navigation", name="Places").locator("[aria-current]")
        expect(place).to_have_text(name.capitalize())
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("where does Ada live?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox", name="Question")).to_have_value("where does Ada live?")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_reference_of_the_api_is_read_on_any_screen(
    demo: Served, open_page: Open, width: int
) -> None:
    page = open_page(demo.url, width=width)
    page.goto(f"{demo.url}/docs")

    expect(page.get_by_role("row", name="POST /api/recall")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
