"""The Scrubber: removes the bytes of what was forgotten, in the background."""

import time

from memorist.store.base import Store
from memorist.store.runner import ForegroundGate, JobRunner

GATHER_SECONDS = 10.0  # what is forgotten together is scrubbed together
REST = 10.0  # a scrub that took t seconds is followed by at least 10 t without one
LONG_SECONDS, LONG_REST = 10.0, 3_600.0  # writers give up during one that takes longer: rest long
RETRY_SECONDS = 60.0


class Scrubber(JobRunner):
    """Scrubs the files in the background, once for all that was forgotten meanwhile.

    It also merges what appends leave of the text index, in which a search is slower.
    """

    name = "scrubbing"
    longest_pause = 5.0

    def __init__(self, store: Store, gate: ForegroundGate | None = None) -> None:
        super().__init__(store, (), gate)
        self.stopped = not store.scrubs

    def await_exit(self, seconds: float) -> None:
        super().await_exit(seconds)
        if self.is_running():  # Python would stop it inside SQLite
            self._store.close()  # which interrupts a scrub

    def step(self) -> bool:
        """Scrub if something waits for it, though not before others could be added; or merge."""
        waited_s = self._store.unscrubbed_s()
        if waited_s is None or 0 <= waited_s < GATHER_SECONDS or self.paused:
            self.gate.wait()
            return self._store.merge()
        began, is_clean = time.monotonic(), False
        try:
            is_clean = not self._store.scrub()
        finally:
            took_s = time.monotonic() - began
            least = GATHER_SECONDS if is_clean else RETRY_SECONDS
            self.pause(max(REST * took_s, LONG_REST if took_s > LONG_SECONDS else least))
        return True
