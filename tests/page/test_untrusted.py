"""Content is text, whoever wrote it: no script of it runs, on any page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from memorist import Memory, Message
from tests.page.conftest import Open, local_server
from tests.support.http_server import Served
from tests.support.payloads import payloads

VIEWS = [
    "chat",
    "memories",
    "memories?what=facts",
    "recall?deadline=none&question=executed%20script",
    "graph",
    "timeline",
    "notes",
    "articles",
    "health",
    "context?question=executed%20script",
]


def test_there_are_a_hundred() -> None:
    assert len(set(payloads())) == 100


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A memory whose every field holds the payloads."""
    path: Path = tmp_path_factory.mktemp("attacked") / "memory.db"
    user, texts = "<img src=x onerror=window.executed=1>", payloads()
    with Memory(path, embedder=None) as memory:
        chat = memory.session(user=user, agent=texts[0])
        memory.remember(
            [Message("user", text, name=text[:60]) for text in texts]
            + [Message("assistant", text) for text in texts],
            user=user,
            agent=texts[0],
            session=chat.id,
        )
        for text in texts:
            memory.memories.add(
                text, user=user, agent=texts[0], category=text[:60], tags=[text[:60]]
            )
            memory.facts.add(subject=text, predicate=text, object=text, user=user, agent=texts[0])
            memory.facts.add(subject="user", predicate=text, object=text, user=user)
        memory.notes(user=user, agent=texts[0]).write("\n\n".join(texts))
        library = memory.library(user=user, agent=texts[0])
        for number, text in enumerate(texts[:20]):
            library.add(text, f"{number}\n\n{text}", uri=text)
        memory.jobs.catch_up(300)
        with local_server(memory, user) as served:
            yield served


def _watch(page: Page) -> None:
    page.add_init_script(
        "window.reports = [];"
        "addEventListener('securitypolicyviolation', (e) => reports.push(e.violatedDirective))"
    )


@pytest.mark.parametrize("address", VIEWS)
def test_nothing_stored_is_executed(attacked: Served, open_page: Open, address: str) -> None:
    shown = "Queue" if address == "health" else "executed"
    page = open_page(attacked.url, address, before=_watch)
    expect(page.get_by_role("main")).to_contain_text(shown)
    rows = page.locator(".list .row").all() if address.startswith("memories") else []
    for row in rows[:5]:
        row.click()
        expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("executed")
    assert page.evaluate("window.executed") is None
    assert page.evaluate("window.reports") == []
