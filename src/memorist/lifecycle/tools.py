"""Lessons from tool use: which tools succeeded, which failed, and in which order."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from memorist.language.unsafe import LOOK_AT_CHARS, find_secrets, injections, visible
from memorist.records.log import LogEntry, least_trusted
from memorist.records.memories import Candidate

SUCCESS_IMPORTANCE = 0.7
FAILURE_IMPORTANCE = 0.8
ERROR_CHARS = 200
MOST_MESSAGES = 20  # of a turn, its last ones
UNNAMED = "an unnamed tool"
_OUTCOMES = ("success", "status", "error")  # by which a result says how it ended
_TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(rf"(?:\w*(?:Error|Exception)|error|fatal)(?: \d+)?: |{re.escape(_TRACEBACK)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One run of a tool, by its result message."""

    name: str
    success: bool
    duration_ms: float | None
    error: str
    entry: LogEntry


def lessons(entries: Sequence[LogEntry], ended: Container[int]) -> list[Candidate]:
    """The lessons of the turns that ended, by an answer or a new question, at these places."""
    learnt: list[Candidate] = []
    turn: list[LogEntry] = []
    for entry in entries:
        turn.append(entry)
        message = entry.message
        if message.role == "user" or (message.role == "assistant" and not message.tool_calls):
            if entry.seq in ended:
                learnt += _lessons_of(turn[-MOST_MESSAGES:])
            turn = []
    return learnt


def _lessons_of(turn: Sequence[LogEntry]) -> Iterator[Candidate]:
    names = {call.call_id: call.name for entry in turn for call in entry.message.tool_calls}
    uses = [_use(entry, names) for entry in turn if entry.message.role == "tool"]
    done = [use for use in uses if use.success]
    failed = [use for use in uses if not use.success]
    if done:
        spent = [use.duration_ms for use in done if use.duration_ms is not None]
        took = f" (total time: {sum(spent):.0f}ms)" if spent else ""
        text = f"Successfully used tools: {', '.join(_names(done))}{took}"
        yield _lesson(text, done, ("tool_usage", "success"))
    if failed:
        errors = dict.fromkeys(use.error for use in failed if use.error)
        why = f" ({'; '.join(errors)})"[:ERROR_CHARS] if errors else ""
        text = f"Failed tools: {', '.join(_names(failed))}{why}"
        yield _lesson(text, failed, ("tool_failure", "error"))
    if len(done) > 1 and not failed:
        order = " → ".join(use.name for use in done)
        yield _lesson(f"A task was done with the tools {order}", done, ("task_execution", "chain"))


def _lesson(text: str, uses: Sequence[Use], tags: tuple[str, ...]) -> Candidate:
    failure = "error" in tags
    return Candidate(
        text=text,
        kind="procedure" if "chain" in tags else "episode",
        category="error_patterns" if failure else "task_history",
        importance=FAILURE_IMPORTANCE if failure else SUCCESS_IMPORTANCE,
        tags=(*tags, *(name[:100] for name in _names(uses))),
        sources=tuple(use.entry.message.message_id for use in uses),
        said_at=uses[-1].entry.message.created_at,
        source=least_trusted(use.entry.source for use in uses),
    )


def _names(uses: Sequence[Use]) -> list[str]:
    return list(dict.fromkeys(use.name for use in uses))


def _use(entry: LogEntry, names: dict[str, str]) -> Use:
    message = entry.message
    told = message.json_content()
    result = {**told, **(message.structured_data or {})}
    error, took, failed = (result.get(key) for key in ("error", "duration_ms", "status"))
    is_error = failed == "error" or (
        result.keys().isdisjoint(_OUTCOMES) and _ERROR.match(message.text)
    )
    if is_error and not error and not told:
        error = message.text
    return Use(
        name=_told(message.name or names.get(message.answered_call_id() or "")) or UNNAMED,
        success=bool(result.get("success", failed != "error" and not error)),
        duration_ms=float(took) if isinstance(took, int | float) else None,
        error=_told(error if isinstance(error, str) else "an error" * bool(error)),
        entry=entry,
    )


def _told(text: str | None) -> str:
    """The line that tells what a tool says, unless it holds a secret or a prompt injection."""
    lines = (text or "").strip().splitlines() or [""]
    line = lines[-1 if lines[0].startswith(_TRACEBACK) else 0][:LOOK_AT_CHARS]
    unsafe = find_secrets(line) or injections(line, trusted=False)
    return "" if unsafe else " ".join(visible(line).split())[:ERROR_CHARS]


def is_lesson(candidate: Candidate) -> bool:
    """Whether a candidate is a lesson from tool use."""
    return bool({"tool_usage", "tool_failure", "task_execution"} & set(candidate.tags))
