"""A real browser for the tests of the page: Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.support.postgres import ServerError, apt_install

SHELL = "chromium-headless-shell"  # the same without windows, which takes a fifth less time
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing leaves the machine, and nothing is kept from one start to the next.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)


def chromium() -> str:
    """Where Chromium is; `apt-get install` provides it if there is none."""
    if chosen := os.environ.get("MEMORIST_CHROMIUM"):
        return chosen
    if not any(map(shutil.which, NAMES)):
        try:
            apt_install(SHELL, "fonts-noto-core")
        except ServerError:  # not every system has it
            apt_install("chromium", "fonts-noto-core")
    return next(path for path in map(shutil.which, NAMES) if path)


@contextmanager
def browsing() -> Iterator[Browser]:
    """A headless Chromium, for as long as the block lasts."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()
