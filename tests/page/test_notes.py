"""Notes: written, overtaken, compared and restored."""

from __future__ import annotations

import re
import shlex

from playwright.sync_api import expect
from typer.testing import CliRunner

from memorist.cli.main import app
from tests.page.conftest import Open
from tests.support.http_server import Served


def test_notes_are_edited_compared_and_restored(fresh: Served, open_page: Open) -> None:
    notebook = fresh.memory.notes(user="ada", agent="assistant")
    page = open_page(fresh.url, "notes")
    notes = page.get_by_role("article", name="Notes")
    expect(notes.get_by_role("heading", name="About Ada")).to_be_visible()
    expect(notes.locator("strong")).to_have_text("vegetarian")

    # Somebody else writes while the editor is open: both texts are shown, and mine may follow.
    page.keyboard.press("e")
    editor = page.get_by_role("textbox", name="Notes in Markdown")
    expect(editor).to_be_focused()
    editor.fill(
        "# About Ada\n\n- Tea, **green**\n- <img src=x onerror=alert(1)> [x](javascript:1)\n"
    )
    preview = page.get_by_role("article", name="Preview")
    expect(preview.locator("strong")).to_have_text("green")
    expect(preview.locator("img, a")).to_have_count(0)
    notebook.write("# About Ada\n\n- Coffee\n")
    page.keyboard.press("Control+Enter")
    conflict = page.get_by_role("alert", name="Conflict")
    expect(conflict).to_contain_text("Somebody wrote version 3 meanwhile")
    expect(conflict.locator("li.removed")).to_contain_text("Coffee")
    expect(conflict.locator("li.added").first).to_contain_text("green")
    assert notebook.version == 3
    conflict.get_by_role("button", name="Write mine over it").press("Enter")
    expect(page.get_by_role("status").get_by_text("Saved as version 4.")).to_be_visible()
    expect(notes.locator("strong")).to_have_text("green")

    # What changed, and back to an old version; which can be undone.
    page.get_by_role("link", name="What changed in version 3").press("Enter")
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("from version 2 to version 3")
    expect(changes).to_contain_text("1 line added, 8 lines removed")
    page.get_by_role("button", name="Restore version 2").press("Enter")
    expect(notes.locator("strong")).to_have_text("vegetarian")
    assert notebook.at(5).text == notebook.at(2).text
    page.keyboard.press("u")
    expect(notes.locator("strong")).to_have_text("green")
    assert notebook.at(6).text == notebook.at(4).text


def test_the_command_of_an_empty_page_fits_on_a_phone_and_reaches_this_memory(
    fresh: Served, open_page: Open
) -> None:
    page = open_page(fresh.url, "notes?of=travel", width=390)
    empty = page.locator(".empty")
    expect(empty).to_contain_text("This agent has no notes yet.")
    notes = page.locator(".notes")
    assert notes.evaluate("it => it.scrollWidth <= it.clientWidth")

    command = shlex.split(empty.locator("code").inner_text())
    assert command[0] == "memorist"
    assert CliRunner().invoke(app, command[1:]).exit_code == 0
    assert fresh.memory.notes(user="ada", agent="travel").at(1).text == "- likes tea"


def test_an_agent_without_notes_gets_its_first(fresh: Served, open_page: Open) -> None:
    page = open_page(fresh.url, "notes")
    page.get_by_label("Notes of the agent").select_option("travel")
    expect(page.get_by_text("This agent has no notes yet.")).to_be_visible()
    expect(page).to_have_url(re.compile("of=travel"))
    page.keyboard.press("e")
    page.get_by_role("textbox", name="Notes in Markdown").fill("- trains\n")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_role("article", name="Notes")).to_contain_text("trains")
    assert fresh.memory.notes(user="ada", agent="travel").version == 1
