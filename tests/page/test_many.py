"""A hundred thousand memories in the page: it scrolls and searches without standing still."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from memorist import Memory
from memorist.records.memories import Add, MemoryItem
from memorist.records.scope import Scope
from tests.page.conftest import Open, local_server
from tests.support.demo import TODAY, DemoClock
from tests.support.http_server import Served

pytestmark = pytest.mark.prove
MANY = 100_000
BATCH = 2_000
SCREENS = 60
LONGEST_TASK_MS = 200
TRACED = ["__metadata", "toplevel", "disabled-by-default-devtools.timeline"]


def _item(scope: Scope, number: int) -> Add:
    text = f"Ada keeps thing{number:06} in box{number % 20:02} of shelf{number % 977}"
    kind: Any = ("fact", "concept", "episode", "procedure")[number % 4]
    moment = TODAY - timedelta(minutes=number)
    return Add(MemoryItem(scope=scope, text=text, kind=kind, created_at=moment))


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Served]:
    scope = Scope(user="ada")
    options: Any = {"embedder": None, "extraction": None, "clock": DemoClock()}
    with Memory(tmp_path / "memory.db", **options) as memory:
        for start in range(MANY, 0, -BATCH):  # the oldest were learnt first
            numbers = range(start - 1, start - BATCH - 1, -1)
            memory.store.apply(scope, [_item(scope, number) for number in numbers])
        with local_server(memory) as served:
            yield served


def test_a_hundred_thousand_memories(many: Served, open_page: Open, browser: Browser) -> None:
    page = open_page(
        many.url, "memories", before=lambda it: browser.start_tracing(page=it, categories=TRACED)
    )
    rows = page.get_by_role("listbox", name="Memories").get_by_role("option")
    expect(rows.first).to_contain_text("thing000000")
    expect(page.get_by_role("link", name="Memories").last).to_contain_text("10\u2009000+")
    _scroll(page)
    above = rows.first.evaluate("row => new DOMMatrix(row.style.transform).f / row.offsetHeight")
    assert above > 500
    expect(rows.first).to_contain_text(f"thing{above:06.0f}")  # none is listed twice, or left out
    assert rows.count() < 60  # only those in sight exist

    search = page.get_by_label("Search memories")
    search.press_sequentially("thing09999", delay=30)
    expect(rows.first).to_contain_text("thing099990")
    search.fill("box07")
    expect(rows.first).to_contain_text("box07")
    page.get_by_label("kind", exact=True).select_option("procedure")
    expect(rows.first).to_contain_text(re.compile("box07.*procedure"))
    search.fill("")
    expect(rows.first).to_contain_text("thing000003")
    rows.nth(2).click()
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Importance")

    tasks = _tasks(json.loads(browser.stop_tracing())["traceEvents"])
    assert 0 < tasks[0] < LONGEST_TASK_MS, tasks[:20]


def _tasks(events: list[dict[str, Any]]) -> list[float]:
    """How long the page's thread ran for each task, the longest first, in milliseconds.

    It is the processor's time: what else the machine does is not counted.
    """
    pages = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    ran = [
        event.get("tdur", 0) / 1_000
        for event in events
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in pages
    ]
    return sorted(ran, reverse=True)


def _scroll(page: Page) -> None:
    """Scroll down far; the next pages come by themselves."""
    page.wait_for_function(
        """(screens) => {
          const list = document.querySelector("[role=listbox]");
          list.scrollBy(0, list.clientHeight);
          return list.scrollTop >= screens * list.clientHeight;
        }""",
        arg=SCREENS,
    )
