"""A process that gives birth to processes that think: `python -m tests.crash.thinker TARGET`.

For each line "POINT AFTER LATER" there is one, which says "born PID" and, at its end, is told of
as "ended STATUS". It is a real worker, whose store and model tell how far it is: "claimed",
"answered" by the model, "committing" and "committed". When it reaches POINT for the AFTER-th time
it stops there until it is killed; at other points it goes on. Its clock is LATER seconds ahead.
It ends when nothing is left to think about.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from memorist.language.lexicon import category_of
from memorist.lifecycle.settings import Extraction, Policy
from memorist.lifecycle.worker import Worker
from memorist.providers.chat_model import Reply
from memorist.records.values import now
from memorist.store.base import Store
from tests.crash.evidence import open_store
from tests.support.model_server import quote_messages

KINDS = ("embed", "derive")
POLICY = Policy(share=1.0, alike=1.01)  # a memory for each message, however alike they are


class Way:
    """How far the process is; it goes no further than it was told."""

    def __init__(self, point: str, after: int) -> None:
        self._end = (point, after)
        self._passed: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        self._passed[point] += 1
        os.write(1, f"{point}\n".encode())
        if (point, self._passed[point]) == self._end:
            time.sleep(600)


class Told:
    """A store that tells of its claims and commits."""

    def __init__(self, store: Any, way: Way) -> None:
        self._store, self._way = store, way

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, **how: Any) -> Any:
        jobs = self._store.claim(**how)
        if jobs:
            self._way.reach("claimed")
        return jobs

    def change(self, *arguments: Any, **how: Any) -> Any:
        return Store.change(cast(Store, self), *arguments, **how)  # which applies as told below

    def apply(self, *arguments: Any, **how: Any) -> None:
        self._way.reach("committing")
        self._store.apply(*arguments, **how)
        self._way.reach("committed")


class Model:
    """Quotes what it reads, and tells when it has."""

    name = "quoting"

    def __init__(self, way: Way) -> None:
        self._way = way

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        text = json.dumps(quote_messages({"messages": messages}))
        self._way.reach("answered")
        return Reply(text, 100, 50)


def think(target: str, way: Way, later_seconds: float) -> None:
    """Work until nothing is left."""

    def clock() -> datetime:
        return now() + timedelta(seconds=later_seconds)

    with open_store(target) as store:
        store._clock = clock
        extraction = Extraction(
            model=Model(way), policy=POLICY, calls_per_hour=None, tokens_per_hour=None
        )
        worker = Worker(cast(Store, Told(store, way)), extraction, kinds=KINDS, clock=clock)
        while store.backlog(KINDS):
            if not worker.step():
                time.sleep(0.02)


def give_birth(target: str, point: str, after: str, later: str) -> int:
    """A child that thinks, and dies after a while if nobody kills it."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        signal.alarm(120)
        os.write(1, f"born {os.getpid()}\n".encode())
        think(target, Way(point, int(after)), float(later))
        status = 0
    except Exception:  # noqa: BLE001 - a fork must not go on in its parent's frames
        traceback.print_exc()
    finally:
        os._exit(status)


def main(target: str) -> None:
    category_of("so that the children need not read the words again")
    os.write(1, b"ready\n")
    while words := sys.stdin.readline().split():
        child = give_birth(target, *words)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(1, f"ended {status}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
