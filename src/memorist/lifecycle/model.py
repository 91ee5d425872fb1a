"""Extraction by a model: one question for a batch of messages, one distrusted answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from memorist import metrics
from memorist.errors import BadAnswerError, ProviderError
from memorist.lifecycle.candidate import Candidate
from memorist.lifecycle.model_answer import MAX_MESSAGE_CHARS, UnusableError, read_answer
from memorist.lifecycle.settings import Extraction
from memorist.providers.chat_model import ChatModel, Reply, estimate_tokens_of
from memorist.records.log import LogEntry
from memorist.records.memory_item import Kind
from memorist.records.text import json_line, shorten
from memorist.store.base import Store

MAX_KNOWN = 20
MAX_KNOWN_CHARS = 300


class BudgetedModel:
    """A chat model with an hourly budget, which all processes that use a store share."""

    def __init__(
        self,
        model: ChatModel,
        store: Store,
        extraction: Extraction,
        task: Literal["memories", "summary"] = "summary",
    ) -> None:
        self.name = model.name
        self._model = model
        self._store = store
        self._task = task
        self._limits = {
            "max_calls": extraction.calls_per_hour,
            "max_tokens": extraction.tokens_per_hour,
        }

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The model's reply; `ProviderError` if the budget is spent, or for whatever it raises."""
        asked = sum(estimate_tokens_of(message["content"]) for message in messages)
        with self.charge(asked + max_tokens) as answered:
            try:
                reply = self._model.complete(
                    messages, max_tokens=max_tokens, timeout_s=timeout_s, schema=schema
                )
            except ProviderError:
                raise
            except Exception as error:
                raise ProviderError(f"the model raised {type(error).__name__}") from error
            answered(reply.input_tokens + reply.output_tokens)
        return reply

    @contextlib.contextmanager
    def charge(self, expected: int) -> Iterator[Callable[[int], None]]:
        """Reserve tokens for one call; afterwards correct that by what the call used."""
        if not self._store.spend(calls=1, tokens=expected, **self._limits):
            raise ProviderError("the model's budget for this hour is spent")
        used, result = expected, "failed"  # an unanswered call may have cost that much

        def answered(tokens: int) -> None:
            nonlocal used, result
            used, result = tokens, "answered"

        try:
            yield answered
        except BadAnswerError as error:
            used, result = error.tokens or expected, "unusable"
            raise
        except ProviderError as error:
            used = 0 if error.status else expected
            raise
        finally:
            metrics.count("memorist.model.calls", task=self._task, result=result)
            metrics.count("memorist.model.tokens", used, task=self._task)
            self._store.spend(calls=0, tokens=used - expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What a model made of some messages, and what that cost."""

    candidates: tuple[Candidate, ...] = ()
    dropped: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False


def ask(
    model: ChatModel,
    messages: Sequence[LogEntry],
    *,
    known: Sequence[str] = (),
    max_tokens: int,
    timeout_s: float,
) -> Extracted:
    """What the messages of one session say that is worth keeping, in one call of the model.

    Raises `BadAnswerError` for an answer that cannot be used and `ProviderError` for none at all.
    """
    if not messages:
        return Extracted()
    reply = model.complete(
        question(messages, known), max_tokens=max_tokens, timeout_s=timeout_s, schema=SCHEMA
    )
    try:
        candidates, dropped = read_answer(reply.text, messages, known)
    except UnusableError as error:
        tokens = reply.input_tokens + reply.output_tokens
        raise BadAnswerError(f"{model.name} answered badly: {error}", tokens=tokens) from None
    return Extracted(
        candidates=tuple(candidates),
        dropped=dropped,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        estimated=reply.estimated,
    )


def estimate_tokens(messages: Sequence[LogEntry], known: Sequence[str] = ()) -> int:
    """About how many tokens the question will have; the answer may add `max_tokens`."""
    return sum(estimate_tokens_of(part["content"]) for part in question(messages, known))


def question(messages: Sequence[LogEntry], known: Sequence[str] = ()) -> list[dict[str, str]]:
    """What the model is asked: each message is a line of JSON, which no text can leave."""
    lines = [
        "KNOWN",
        *(json_line(shorten(one, MAX_KNOWN_CHARS)) for one in known[:MAX_KNOWN]),
        "MESSAGES",
        *(json_line(_described(number, entry)) for number, entry in enumerate(messages, start=1)),
    ]
    return [
        {"role": "system", "content": _instructions()},
        {"role": "user", "content": "\n".join(lines)},
    ]


def _described(number: int, entry: LogEntry) -> dict[str, object]:
    said = entry.message
    line: dict[str, object] = {"n": number, "at": f"{said.created_at:%Y-%m-%d %H:%M %A}"}
    line["role"] = said.role
    if said.name:
        line["name"] = shorten(said.name, MAX_KNOWN_CHARS)
    if entry.source != said.role:
        line["source"] = entry.source
    return {**line, "text": shorten(said.text, MAX_MESSAGE_CHARS)}


@cache
def _instructions() -> str:
    return (files(__package__) / "prompts" / "extract.md").read_text("utf-8")


def _object(**fields: Any) -> dict[str, Any]:
    """A schema as strict servers want it: every field named, none besides."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_DATE = {"type": ["string", "null"]}
SCHEMA: Mapping[str, Any] = {
    "title": "memories",
    "description": "What the messages say that is worth remembering",
    **_object(
        memories=_list_of(
            _object(
                text=_TEXT,
                kind={"type": "string", "enum": list(get_args(Kind))},
                importance={"type": "number"},
                tags=_list_of(_TEXT),
                messages=_list_of({"type": "integer"}),
                corrects=_FLAG,
                claims=_list_of(
                    _object(
                        subject=_TEXT,
                        predicate=_TEXT,
                        object=_TEXT,
                        single=_FLAG,
                        ends=_FLAG,
                        valid_from=_DATE,
                        valid_to=_DATE,
                    )
                ),
            )
        )
    ),
}
