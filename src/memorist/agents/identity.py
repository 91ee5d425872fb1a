"""Who speaks: the user and session of a run, as the middleware was made or as the run says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memorist.errors import MissingExtraError

try:
    from langgraph.config import get_config
except ImportError as error:
    raise MissingExtraError("agents") from error

NOBODY = (
    "no user is named: give MemoristMiddleware a user=, or the run a user_id in its context or "
    "in config['configurable']"
)


@dataclass(frozen=True, slots=True)
class Who:
    """A user's conversation with an agent; without a session it is the active one."""

    user: str
    agent: str | None = None
    session: str | None = None


def who_runs(fixed: Mapping[str, str | None], runtime: Any) -> Who | None:
    """What the middleware was made with goes first, then the run's context, then its config."""
    context, configured = getattr(runtime, "context", None), _configurable()

    def look(*names: str) -> str | None:
        found = [_of(source, name) for name in names for source in (context, configured)]
        return next((str(value) for value in found if value), None)

    user = fixed.get("user") or look("user_id")
    session = fixed.get("session") or look("session_id", "thread_id")
    return Who(user, fixed.get("agent"), session) if user else None


def _of(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable") or {}
    except RuntimeError:  # outside of a run
        return {}
