"""Import and export: an export comes in and is recalled; an archive goes out and comes back."""

from __future__ import annotations

import json
import re
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FilePayload, Locator, Page, expect

from memorist import Memory
from tests.page.conftest import Open, local_server
from tests.support.payloads import payloads

EXPORT = Path(__file__).parent.parent / "data/exports/chatgpt/conversations.json"
EXECUTED = "<img src=x onerror=window.executed=1>"


def place(page: Page) -> Locator:
    return page.get_by_role("region", name="Import and export")


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [it["id"] for it in found if it["impact"] in ("serious", "critical")]


def test_an_export_comes_in_and_an_archive_goes_out_and_back(
    open_page: Open, tmp_path: Path
) -> None:
    with Memory(tmp_path / "memory.db") as memory, local_server(memory) as served:
        page = open_page(served.url, "health")
        chooser = place(page).get_by_label(re.compile("^Drop a file here"))
        chooser.set_input_files(EXPORT)
        report = place(page).get_by_role("status")
        expect(report).to_contain_text("ChatGPT data export")
        expect(report.get_by_role("row", name=re.compile("^messages"))).to_be_visible()
        assert memory.sessions(user="ada") == []
        assert serious(page) == []

        # The next step has the focus.
        expect(place(page).get_by_role("button", name="Bring it in")).to_be_focused()
        page.keyboard.press("Enter")
        expect(report).to_contain_text("brought in")
        expect(report.get_by_role("columnheader", name="there already")).to_be_visible()
        left = report.locator("details")
        left.locator("summary").press("Enter")
        expect(left.get_by_role("listitem").first).to_be_visible()
        assert serious(page) == []
        said = next(it for it in memory.history(user="ada", role="user", last=50) if it.text)
        page.goto(f"{served.url}/#/recall?deadline=none&question={said.text[:60]}")
        expect(page.get_by_role("table")).to_contain_text(said.text[:20])

        assert memory.jobs.catch_up(300) == 0
        page.goto(f"{served.url}/#/health")
        with page.expect_download() as download:
            place(page).get_by_role("button", name="Export everything").press("Enter")
        assert re.fullmatch(r"memorist-ada-[\d-]+\.memorist\.gz", download.value.suggested_filename)
        archive = tmp_path / download.value.suggested_filename
        download.value.save_as(archive)
        expect(page.get_by_text(re.compile(f"Saved {archive.name}"))).to_be_visible()

    with (
        Memory(tmp_path / "memory.db") as memory,
        Memory(tmp_path / "empty.db") as other,
        local_server(other) as served,
    ):
        page = open_page(served.url, "health")
        place(page).get_by_label(re.compile("^Drop a file here")).set_input_files(archive)
        expect(place(page)).to_contain_text("What is here already stays")
        place(page).get_by_role("button", name="Bring it in").press("Enter")
        expect(place(page).get_by_role("status")).to_contain_text("restored")
        lists = [
            [(it.id, it.text) for it in each.memories.list(user="ada", state="all")]
            + [(it.id, it.title or "") for it in each.session_summaries(user="ada")]
            for each in (memory, other)
        ]
        assert lists[0] == lists[1] != []


def test_what_a_file_is_called_and_holds_is_text(open_page: Open, tmp_path: Path) -> None:
    lines = [json.dumps({"messages": [{"role": "user", "content": it}]}) for it in payloads()]
    whole, half = "\n".join(lines).encode(), b'{"a": ' + EXECUTED.encode()
    file = FilePayload(name=f"{EXECUTED}.jsonl", mimeType="", buffer=whole)
    broken = FilePayload(name=f"{EXECUTED}.json", mimeType="", buffer=half)
    with Memory(tmp_path / "memory.db", embedder=None) as memory, local_server(memory) as served:
        page = open_page(served.url, "health")
        choose = place(page).get_by_label(re.compile("^Drop"))
        choose.set_input_files(broken)
        expect(place(page).get_by_role("alert")).to_contain_text(EXECUTED)
        choose.set_input_files(file)
        place(page).get_by_role("button", name="Bring it in").click()
        expect(place(page).get_by_role("status")).to_contain_text("brought in")
        assert page.evaluate("window.executed") is None
        assert len(memory.sessions(user="ada")) > 0
