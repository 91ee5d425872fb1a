"""Lessons from tool use: which tools succeeded, which failed, and in which order."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memorist.language.unsafe import find_secrets, injections
from memorist.lifecycle.candidate import Candidate
from memorist.records.message import LogEntry, least_trusted

SUCCESS_IMPORTANCE = 0.7
FAILURE_IMPORTANCE = 0.8
ERROR_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One run of a tool, by its result message."""

    name: str
    success: bool
    duration_ms: float | None
    error: str | None
    entry: LogEntry


def lessons(entries: Sequence[LogEntry], ended: Container[int]) -> list[Candidate]:
    """The lessons of the turns that ended at one of these places.

    A turn ends with the assistant's answer, or where the user speaks again.
    """
    learnt: list[Candidate] = []
    turn: list[LogEntry] = []
    for entry in entries:
        turn.append(entry)
        message = entry.message
        if message.role == "user" or (message.role == "assistant" and not message.tool_calls):
            if entry.seq in ended:
                learnt += _lessons_of(turn)
            turn = []
    return learnt


def uses_in(turn: Sequence[LogEntry]) -> list[Use]:
    """The tools that ran in a turn, in their order."""
    names = {call.call_id: call.name for entry in turn for call in entry.message.tool_calls}
    return [_use(entry, names) for entry in turn if entry.message.role == "tool"]


def _lessons_of(turn: Sequence[LogEntry]) -> Iterator[Candidate]:
    uses = uses_in(turn)
    done = [use for use in uses if use.success]
    failed = [use for use in uses if not use.success]
    if done:
        spent = [use.duration_ms for use in done if use.duration_ms is not None]
        took = f" (total time: {sum(spent):.0f}ms)" if spent else ""
        yield _lesson(
            f"Successfully used tools: {_names(done)}{took}", done, ("tool_usage", "success")
        )
    if failed:
        errors = dict.fromkeys(use.error for use in failed if use.error)
        why = f" ({'; '.join(map(str, errors))})" if errors else ""
        yield _lesson(
            f"Failed tools: {_names(failed)}{why[:ERROR_CHARS]}", failed, ("tool_failure", "error")
        )
    if len(done) > 1 and not failed:
        order = " → ".join(use.name for use in done)
        yield _lesson(f"A task was done with the tools {order}", done, ("task_execution", "chain"))


def _lesson(text: str, uses: Sequence[Use], tags: tuple[str, ...]) -> Candidate:
    names = tuple(dict.fromkeys(use.name for use in uses))
    failure = "error" in tags
    return Candidate(
        text=text,
        kind="procedure" if "chain" in tags else "episode",
        category="error_patterns" if failure else "task_history",
        importance=FAILURE_IMPORTANCE if failure else SUCCESS_IMPORTANCE,
        tags=(*tags, *(name[:100] for name in names if name)),
        sources=tuple(use.entry.message.message_id for use in uses),
        said_at=uses[-1].entry.message.created_at,
        source=least_trusted(use.entry.source for use in uses),
    )


def _use(entry: LogEntry, names: dict[str, str]) -> Use:
    message = entry.message
    result = {**message.json_content(), **(message.structured_data or {})}
    error = result.get("error")
    success = result.get("success", result.get("status") != "error" and not error)
    took = result.get("duration_ms")
    call_id = message.answered_call_id() or ""
    return Use(
        name=message.name or names.get(call_id) or "an unnamed tool",
        success=bool(success),
        duration_ms=float(took) if isinstance(took, int | float) else None,
        error=_first_line(error),
        entry=entry,
    )


def _first_line(error: Any) -> str | None:
    """The first line of an error, unless it holds a secret or a prompt injection."""
    if not error:
        return None
    lines = str(error).strip().splitlines() if isinstance(error, str) else ["an error"]
    line = lines[0][:ERROR_CHARS] if lines else ""
    return None if find_secrets(line) or injections(line) else line or None


def _names(uses: Sequence[Use]) -> str:
    return ", ".join(dict.fromkeys(use.name for use in uses))


def is_lesson(candidate: Candidate) -> bool:
    """Whether a candidate is a lesson from tool use."""
    return bool({"tool_usage", "tool_failure", "task_execution"} & set(candidate.tags))
