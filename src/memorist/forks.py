"""Forks and exits: the one place where they are handled.

A forked child has one thread, and copies of what the other threads had in hand: locks that nobody
will release, connections that the parent goes on using. So every lock is `fork_safe`, and what has
threads or connections is a `ProcessPart`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

EXIT_SECONDS = 5.0  # that the end of the process waits for work that has begun

T = TypeVar("T")
_locks: dict[int, weakref.ref[Any]] = {}
_parts: dict[int, weakref.ref[ProcessPart]] = {}
_before: list[ProcessPart] = []
_alone = False


class ProcessPart:
    """Something that has to act when its process forks or ends, from `watch_process` on."""

    def watch_process(self) -> None:
        """Be called from now on, while the object lives."""
        _remember(self, _parts)

    def before_fork(self) -> None:
        """In the parent, before it forks."""

    def after_fork(self, *, in_child: bool) -> None:
        """In the parent and in the child, where all locks are free and no other thread runs."""

    def before_exit(self) -> None:
        """Begin nothing new; called for all parts before any is waited for."""

    def await_exit(self, seconds: float) -> None:
        """Wait for what was begun, at most so long."""


def forked_alone() -> bool:
    """Whether no other thread ran at the last fork, so that nobody had anything in hand."""
    return _alone


def fork_safe(lock: T) -> T:
    """A lock, condition or event that is free in a forked child, whoever held it at the fork."""
    _remember(lock, _locks)
    return lock


class lazy_property(functools.cached_property[T]):
    """A `cached_property` whose lock, which Python 3.11 still has, is fork-safe."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        if hasattr(self, "lock"):
            fork_safe(self.lock)


def _remember(thing: Any, registry: dict[int, weakref.ref[Any]]) -> None:
    # A dict, since a WeakSet cannot be read while another thread adds to it.
    key = id(thing)
    registry[key] = weakref.ref(thing, lambda _: registry.pop(key, None))


def _alive(registry: dict[int, weakref.ref[T]]) -> list[T]:
    return [thing for ref in list(registry.values()) if (thing := ref()) is not None]


_forking = fork_safe(threading.RLock())  # held by the thread that forks: `_before` is its list


def _before_fork() -> None:
    global _alone
    for name, module in list(sys.modules.items()):
        # A child would wait for ever for a module that another thread is importing at the fork.
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    _forking.acquire()  # after the imports, since a module may fork while it is imported
    _alone = len(sys._current_frames()) == 1
    _before.extend(_alive(_parts))
    with contextlib.ExitStack() as steps:  # in which all are called, even if one fails
        for part in reversed(_before):
            steps.callback(part.before_fork)


def _after_fork(*, in_child: bool) -> None:
    for lock in _alive(_locks) if in_child else ():
        lock._at_fork_reinit()
    with contextlib.ExitStack() as steps:
        if not in_child:
            steps.callback(_forking.release)  # after the others: the last comes first
        while _before:
            steps.callback(_before.pop(0).after_fork, in_child=in_child)


@atexit.register
def _before_exit() -> None:
    """Stop threads before Python does: one that it stops inside native code aborts the process."""
    deadline = time.monotonic() + EXIT_SECONDS
    parts = _alive(_parts)
    for part in parts:
        part.before_exit()
    for part in parts:
        part.await_exit(max(deadline - time.monotonic(), 0))


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=functools.partial(_after_fork, in_child=False),
        after_in_child=functools.partial(_after_fork, in_child=True),
    )
