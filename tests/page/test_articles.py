"""Articles: added, found, read, removed, and back again."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.page.conftest import Open
from tests.support.http_server import Served

TEXT = """# Tea

## Green

Green tea is steeped at 70 degrees.

## Black

Black tea takes boiling water. <script>alert(1)</script>
"""


def test_an_article_is_added_asked_read_and_removed(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "articles")
    listed = page.get_by_role("listbox", name="Articles")
    expect(listed.get_by_role("option")).to_have_count(2)

    page.keyboard.press("a")
    form = page.get_by_role("dialog", name="Add an article")
    form.get_by_label("File").set_input_files(
        {"name": "tea.md", "mimeType": "text/markdown", "buffer": TEXT.encode()}
    )
    expect(form.get_by_label("Title")).to_have_value("tea")
    form.get_by_label("Title").fill("How to make tea")
    form.get_by_role("button", name="Add").press("Enter")
    expect(page.get_by_role("status").get_by_text("Added: How to make tea")).to_be_visible()
    expect(page.get_by_text("Ready: found by words and by meaning")).to_be_visible()
    expect(listed.get_by_role("option")).to_have_count(3)

    question = page.get_by_role("searchbox", name="Ask the articles")
    question.fill("how hot should the water for green tea be?")
    question.press("Enter")
    expect(page.get_by_text("Green tea is steeped at 70 degrees.")).to_be_visible()
    page.get_by_role("link", name=re.compile("How to make tea")).first.press("Enter")
    article = page.get_by_role("article", name="How to make tea")
    expect(article.get_by_role("heading", name="Black")).to_be_visible()
    expect(article).to_contain_text("<script>alert(1)</script>")
    outline = page.get_by_role("navigation", name="Outline")
    expect(outline.get_by_role("button")).to_have_text(["Tea", "Green", "Black"])
    outline.get_by_role("button", name="Black").press("Enter")
    page.reload()
    expect(article).to_be_visible()

    # Removing says what goes, and can be undone.
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Remove this article?")
    expect(dialog).to_contain_text("How to make tea")
    dialog.get_by_role("button", name="Remove", exact=True).press("Enter")
    expect(listed.get_by_role("option")).to_have_count(2)
    page.keyboard.press("u")
    expect(listed.get_by_role("option")).to_have_count(3)
    titles = [info.title for info in fresh.memory.library(user="ada").articles()]
    assert "How to make tea" in titles
