"""The page in a real browser, on real servers."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, expect

from memorist import Memory
from memorist.records.scope import Principal
from memorist.server.auth import LocalGuard
from memorist.server.chat import ChatRuntime, ChatSettings
from memorist.server.http.app import Limits, build_app
from tests.support.browser import browsing
from tests.support.demo import TODAY, DemoClock, fill
from tests.support.http_server import Served, serving

PATIENCE_MS = 60_000  # with a machine that does much else
UNLIMITED = Limits(requests_per_s=0, failures_per_s=0)
Open = Callable[..., Page]


@pytest.fixture(scope="package")  # while Playwright runs, no other test could use asyncio.run
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="session")
def demo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a year's conversations, made once for all processes that run tests."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (file := folder / "demo.db").exists():
            with Memory(folder / "filling.db", clock=DemoClock()) as memory:
                fill(memory)
                memory.backup(file)
    return file


@contextmanager
def local_server(memory: Memory, user: str = "ada", **options: Any) -> Iterator[Served]:
    """A server for one local user."""
    guard = LocalGuard(Principal(tenant="default", user=user, local=True), memory.keys)
    options.setdefault("chats", ChatRuntime(settings=ChatSettings(deadline_ms=None)))
    with serving(build_app(memory, guard, UNLIMITED, **options)) as url:
        yield Served(url, memory)


@contextmanager
def demo_server(file: Path, **options: Any) -> Iterator[Served]:
    """A server for the local user ada on a copy of the demo."""
    with Memory(file, clock=DemoClock()) as memory, local_server(memory, **options) as served:
        yield served


@pytest.fixture(scope="session")
def demo(demo_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo, for tests that only read it."""
    copy = tmp_path_factory.mktemp("demo") / "memory.db"
    shutil.copy(demo_file, copy)
    with demo_server(copy) as served:
        yield served


@pytest.fixture
def fresh(demo_file: Path, tmp_path: Path) -> Iterator[Served]:
    """A copy of the demo that a test may change."""
    copy = tmp_path / "memory.db"
    shutil.copy(demo_file, copy)
    with demo_server(copy) as served:
        yield served


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """`open_page(url, "memories?kind=fact")`: a page in a browser context of its own.

    When the test ends, no script may have failed and the content security policy have refused
    nothing.
    """
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def open_at(
        url: str,
        address: str = "",
        *,
        width: int = 1440,
        dark: bool = False,
        before: Callable[[Page], None] = lambda _: None,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900 if width > 500 else 844},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.clock.set_fixed_time(TODAY)
        _watch(page, problems)
        before(page)
        page.goto(f"{url}/#/{address}")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert problems == []


def _watch(page: Page, problems: list[str]) -> None:
    def on_dialog(dialog: Dialog) -> None:
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def on_console(line: ConsoleMessage) -> None:
        if "Content Security" in line.text:
            problems.append(line.text)

    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", on_dialog)
    page.on("console", on_console)
