"""Forks: SQLite's connections and locks must not be carried into a child process."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Pausable(Protocol):
    """Something that holds connections."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


_watched: WeakSet[Pausable] = WeakSet()
_paused: list[Pausable] = []


def watch(holder: Pausable) -> None:
    """Have it let go before each fork and go on after it, on both sides."""
    _watched.add(holder)


def _before() -> None:
    for holder in list(_watched):
        holder.pause()
        _paused.append(holder)


def _after() -> None:
    while _paused:
        _paused.pop().resume()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
