"""The context viewer: what a model would get, section by section."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.page.conftest import Open
from tests.support.http_server import Served


def copied(page: Page, form: str) -> Any:
    page.get_by_role("button", name=f"Copy as {form} JSON").click()
    expect(page.get_by_role("status")).to_contain_text("Copied")
    return json.loads(page.evaluate("navigator.clipboard.readText()"))


def test_a_window_is_looked_into_section_by_section(demo: Served, open_page: Open) -> None:
    page = open_page(demo.url, "context?agent=assistant&wait=true")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_label("Question").fill("What can I cook for Lena?")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("question=What"))
    seen = page.get_by_role("region", name="What the model sees")
    expect(seen).to_contain_text("Memories, quoted as data")

    bar = page.get_by_role("group", name="The window")
    bar.get_by_role("button", name="Notes: ").hover()
    lit = seen.locator(".picked")
    expect(lit).to_have_count(1)
    expect(lit).to_contain_text("Diet: **vegetarian**")
    bar.get_by_role("button", name="Question: ").focus()
    expect(lit).to_contain_text("What can I cook for Lena?")
    expect(lit).not_to_contain_text("peanuts")

    sent = copied(page, "OpenAI")["messages"]
    assert [message["role"] for message in sent] == ["system", "user"]
    body = copied(page, "Anthropic")
    assert body["system"] == sent[0]["content"]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": sent[1]["content"]}]}
    ]

    page.get_by_label("Conversation").select_option(
        label="Lena visits me this weekend with the kids."
    )
    expect(bar.get_by_role("button", name="Conversation: ")).to_be_visible()
    page.reload()
    expect(bar.get_by_role("button", name="Conversation: ")).to_be_visible()


def test_what_was_cut_is_listed_with_its_reason(demo: Served, open_page: Open) -> None:
    page = open_page(
        demo.url,
        "context?agent=assistant&max_tokens=220&wait=true&question=Where do I live and work?",
    )
    cut = page.get_by_role("region", name="What was cut")
    expect(cut).to_contain_text("no room in the window")
    recalled = page.get_by_role("region", name="What was recalled")
    expect(recalled).to_contain_text("not quoted")
    page.get_by_label("System prompt", exact=True).evaluate(
        "it => it.closest('details').open = true"
    )
    page.get_by_label("System prompt", exact=True).fill("You are kind. " * 200)
    page.keyboard.press("Tab")
    expect(page.get_by_role("alert")).to_contain_text("raise max_tokens")
