"""Health: what was given up, how long things take, and upkeep."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from playwright.sync_api import expect

from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.runtime import open_store
from tests.page.conftest import Open, demo_server
from tests.support.demo import DemoClock


def give_up_a_job(file: Path) -> None:
    """Store a message and give up the job of reading it."""
    scope = Scope(user="ada", agent="assistant", session="talk")
    with open_store(str(file), clock=DemoClock()) as store:
        store.append(scope, [Message("user", "I collect stamps.")])
        [job] = store.claim(limit=1)
        store.fail(job, "the model did not answer", final=True)


def test_health_shows_the_server_and_mends_the_memory(
    demo_file: Path, tmp_path: Path, open_page: Open
) -> None:
    file = Path(shutil.copy(demo_file, tmp_path / "memory.db"))
    give_up_a_job(file)
    with demo_server(file) as served:
        memory = served.memory
        memory.recall("where does she live?", user="ada", deadline_ms=None)
        page = open_page(served.url, "health")
        server = page.get_by_role("region", name="Server")
        expect(server).to_contain_text("SQLite")
        expect(server).to_contain_text("ready")
        expect(page.get_by_role("region", name="Counts")).to_contain_text("messages")
        speed = page.get_by_role("region", name="Speed")
        expect(speed.get_by_role("img", name=re.compile("^Recall: .* in all"))).to_be_visible()

        # A job that was given up says why, and is tried again.
        queue = page.get_by_role("region", name="Queue")
        expect(queue).to_contain_text("1 job given up")
        expect(queue.get_by_role("cell", name="the model did not answer")).to_be_visible()
        queue.get_by_role("button", name=re.compile("Retry job")).press("Enter")
        expect(queue).not_to_contain_text("given up")
        assert memory.jobs.catch_up(300) == memory.jobs.dead() == 0

        audit = page.get_by_role("region", name="Audit")
        audit.get_by_role("button", name="Look for problems").press("Enter")
        expect(audit.get_by_role("cell", name="stale")).to_be_visible()
        audit.get_by_role("button", name=re.compile("^[0-9a-f]{8}$")).first.press("Enter")
        inspector = page.get_by_role("complementary", name="Inspector")
        expect(inspector).to_contain_text("job interview")
        page.keyboard.press("Escape")

        upkeep = page.get_by_role("region", name="Maintenance")
        upkeep.get_by_role("button", name="Dry run").press("Enter")
        expect(upkeep.get_by_role("status")).to_be_visible()

        rebuild = page.get_by_role("region", name="Rebuild")
        rebuild.get_by_role("button", name="Rebuild…").press("Enter")
        dialog = page.get_by_role("dialog", name="Rebuild this memory?")
        dialog.get_by_role("button", name="Rebuild", exact=True).press("Enter")
        expect(page.get_by_text("Rebuilt.")).to_be_visible()
        texts = {item.text for item in memory.memories.list(user="ada")}
        assert "I collect stamps." in texts
