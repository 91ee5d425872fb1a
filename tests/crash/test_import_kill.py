"""Imports are killed; the last one goes on, and all is there once, in order."""

from __future__ import annotations

import json
import random
from pathlib import Path

from memorist import Memory
from tests.crash.evidence import open_store
from tests.crash.processes import finish, kill, read_line, start

CONVERSATIONS, MESSAGES, KILLS = 300, 30, 2


def said(conversation: int) -> list[str]:
    return [f"{conversation} says {number}" for number in range(MESSAGES)]


def test_an_import_that_is_killed_goes_on(target: str, tmp_path: Path) -> None:
    export = tmp_path / "log.jsonl"
    with export.open("w") as file:
        for number in range(CONVERSATIONS):
            messages = [{"role": "user", "content": text} for text in said(number)]
            file.write(json.dumps({"id": f"c{number}", "messages": messages}) + "\n")
    chance = random.Random(1)
    cut_short = 0
    for _ in range(KILLS):
        child = start("importer", target, export)
        assert read_line(child) == "writing"
        kill(child, chance.uniform(0, 0.3))
        with open_store(target) as store, Memory(store, embedder=None, extraction=None) as memory:
            counts = [one.messages.count for one in memory.session_summaries(user="ada")]
            assert set(counts) <= {MESSAGES}
            cut_short += len(counts) < CONVERSATIONS
    assert cut_short, "no process was killed in time"
    assert finish(start("importer", target, export)) == ["writing", "done"]
    with open_store(target) as store, Memory(store, embedder=None, extraction=None) as memory:
        assert len(memory.sessions(user="ada")) == CONVERSATIONS
        for number in range(CONVERSATIONS):
            stored = memory.history(user="ada", session=f"c{number}")
            assert [message.text for message in stored] == said(number)
