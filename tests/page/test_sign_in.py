"""What the page keeps of its user: a key in the tab, the conversation in the browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from memorist import Memory
from memorist.server.auth import Guard, Keys
from memorist.server.http.app import build_app
from tests.page.conftest import UNLIMITED, Open, local_server
from tests.support.http_server import serving

NOTHING_KEPT = """for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, name, { get() { throw new DOMException("", "SecurityError") } })"""


def without_storage(page: Page) -> None:
    page.add_init_script(NOTHING_KEPT)


def test_a_key_opens_the_page_and_one_that_can_be_none_is_not_sent(
    tmp_path: Path, open_page: Open
) -> None:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        key = Keys(memory.keys).create(tenant="default", user="ada").text
        with serving(build_app(memory, Guard(memory.keys), UNLIMITED)) as url:
            page = open_page(url, before=without_storage)
            field = page.get_by_label("API key")
            field.fill("mk_…")
            page.get_by_role("button", name="Open").click()
            assert field.evaluate("it => it.validity.patternMismatch")
            field.fill(f" {key} ")
            page.get_by_role("button", name="Open").click()
            expect(page.get_by_label("Message", exact=True)).to_be_visible()


def test_the_page_works_where_the_browser_keeps_nothing(tmp_path: Path, open_page: Open) -> None:
    with Memory(tmp_path / "memory.db", embedder=None) as memory, local_server(memory) as served:
        page = open_page(served.url, before=without_storage)
        page.get_by_label("Message", exact=True).fill("I live in Ulm.")
        page.keyboard.press("Enter")
        expect(page.get_by_role("log", name="Conversation")).to_contain_text("I live in Ulm.")
