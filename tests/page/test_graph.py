"""The graph: from the user to a neighbour and back through the year, by the keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Open
from tests.support.http_server import Served


def node(page: Page, name: str) -> tuple[str | None, bool]:
    """Where an entity stands, and whether it is there."""
    found = page.locator(f'.node[data-key="{name}"]')
    return (found.get_attribute("transform"), True) if found.count() else (None, False)


def test_the_graph_goes_through_time_and_to_the_evidence(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "graph")
    graph = page.get_by_role("group", name=re.compile("^Ada and"))
    munich = graph.get_by_role("link", name="user lives in Munich, until 1 Jun 2026")
    expect(munich).to_have_class(re.compile("ended"))
    expect(graph.get_by_role("link", name="user lives in Berlin", exact=True)).to_be_visible()
    places = {name: node(page, name)[0] for name in ("munich", "peanuts")}

    # The slider goes back, and what was there stays where it was.
    slider = page.get_by_role("slider", name="As of")
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", "27 Feb 2026")
    expect(page).to_have_url(re.compile("as_of=2026-02-27"))
    expect(graph.get_by_role("link", name="user lives in Munich", exact=True)).to_be_visible()
    expect(graph.get_by_role("link", name=re.compile("lives in Berlin"))).to_have_count(0)
    assert places == {name: node(page, name)[0] for name in places}
    page.reload()
    expect(slider).to_have_attribute("aria-valuetext", "27 Feb 2026")
    page.get_by_role("button", name="The change after").focus()
    page.keyboard.press("]")
    expect(slider).to_have_attribute("aria-valuetext", "8 May 2026")
    slider.focus()
    page.keyboard.press("End")
    expect(page).not_to_have_url(re.compile("as_of"))

    # Lena is expanded by Enter, and the middle by c.
    lena = graph.get_by_role("button", name="Lena: expand it")
    while page.evaluate("document.activeElement.dataset?.key ?? ''") != "lena":
        slider.blur()
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(graph.get_by_role("button", name="Hamburg: expand it")).to_be_visible()
    expect(lena).to_have_count(0)
    assert places == {name: node(page, name)[0] for name in places}
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile("entity=Lena"))
    expect(page.get_by_role("button", name="Lena: in the middle")).to_be_visible()
    page.go_back()
    expect(graph.get_by_role("button", name="Hamburg: expand it")).to_be_visible()

    # Zoom by keys, and the evidence of an arrow.
    drawing = graph.locator("> g")
    before = drawing.get_attribute("transform")
    page.keyboard.press("+")
    expect(drawing).not_to_have_attribute("transform", before or "")
    page.keyboard.press("0")
    expect(drawing).to_have_attribute("transform", before or "")
    munich.dispatch_event("click")
    expect(page).to_have_url(re.compile("show=fact%3A"))
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Munich")
    page.keyboard.press("Escape")

    # By the keyboard: round the facts of an entity, the evidence of one, and along it.
    graph.get_by_role("button", name="Ada: in the middle").focus()
    berlin = graph.get_by_role("link", name="user lives in Berlin", exact=True)
    page.keyboard.press("ArrowLeft")
    while page.evaluate("document.activeElement.getAttribute('aria-label')") != (
        "user lives in Berlin"
    ):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Berlin")
    expect(berlin).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(graph.get_by_role("button", name="Berlin: expand it", exact=True)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(berlin).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(graph.get_by_role("button", name="Berlin: expand it", exact=True)).to_be_focused()


OVERLAPS = """() => {
  const shown = [...document.querySelectorAll(".canvas text")].filter((it) => it.checkVisibility());
  const boxes = shown.map((it) => [it.textContent, it.getBoundingClientRect()]);
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  return boxes.flatMap(([name, a], i) => boxes.slice(i + 1)
    .filter(([, b]) => meet(a, b)).map(([other]) => `${name} / ${other}`));
}"""


@pytest.mark.parametrize("width", [390, 1440])
def test_no_words_of_the_graph_lie_over_others(demo: Served, open_page: Open, width: int) -> None:
    page = open_page(demo.url, "graph", width=width)
    words = page.locator(".canvas text:visible")
    expect(page.locator(".node.middle text")).to_have_text("Ada")
    assert page.evaluate(OVERLAPS) == []

    # Where there is no room for a word, zooming in makes some, and coming near shows it.
    before = words.count()
    for _ in range(4):
        page.keyboard.press("+")
    assert page.evaluate(OVERLAPS) == []
    assert words.count() >= before
    page.locator(".node").nth(1).focus()
    expect(page.locator(".node").nth(1).locator("text")).to_be_visible()


def test_the_graph_as_a_list_and_of_nothing(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "graph?as=list")
    facts = page.get_by_role("listbox", name="Facts")
    expect(facts.get_by_role("option", name=re.compile("user lives in Munich"))).to_contain_text(
        "until 1 Jun 2026"
    )
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector")).to_be_visible()
    page.get_by_role("combobox", name="Find an entity").fill("ber")
    expect(page.locator("datalist option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("entity=berlin"))
    expect(facts.get_by_role("option")).to_have_count(1)
    page.goto(f"{demo.url}/#/graph?entity=nobody")
    expect(page.get_by_text("Nothing is known about nobody yet.")).to_be_visible()
