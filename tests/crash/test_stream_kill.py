"""A process is killed with `kill -9` while a message streams in; what was stored is there."""

from __future__ import annotations

import random
from pathlib import Path

from tests.crash.evidence import SCOPE, check_file, open_store
from tests.crash.processes import Forked, kill, read_line, start, tell
from tests.crash.streamer import word
from tests.support.examples import LONG

SEED = 20_261_115
KILLS = 6 if LONG else 3
ALL = "".join(map(word, range(10_000)))


def test_a_killed_stream_leaves_what_had_arrived_marked_unfinished(target: str) -> None:
    chance = random.Random(SEED)
    children = [start("streamer", target) for _ in range(KILLS)]  # all at once: it is slow
    left = dict(stream_until_killed(child, chance.uniform(0, 0.3)) for child in children)
    with open_store(target) as store:
        entries = store.history(SCOPE)
        assert [entry.message.message_id for entry in entries] == list(left)
        for entry in entries:
            text, stored = entry.message.text, left[entry.message.message_id]
            assert entry.message.unfinished
            assert ALL.startswith(text)
            assert len(text) >= stored > 0, f"seed {SEED}"
        assert store.jobs(SCOPE) == []
        last = entries[-1].message
        store.append_text(SCOPE, last.changed(content=f"{last.text}finally", unfinished=False))
        assert store.history(SCOPE)[-1].message.text == f"{last.text}finally"
        [found] = store.match_text(SCOPE, [("finally",)], limit=5)
        assert store.read(SCOPE, [found.passage])[0].id == last.message_id
    if Path(target).exists():
        check_file(target, f"seed {SEED}")


def stream_until_killed(streamer: Forked, pause: float) -> tuple[str, int]:
    """Let a stream run for a while after it was first stored: its id, the length acknowledged."""
    assert read_line(streamer) == "ready"
    tell(streamer)
    message_id = read_line(streamer)
    lengths = [read_line(streamer), *kill(streamer, pause)]
    return message_id, int(lengths[-1])
