"""Extraction by a model: one question for a batch of messages, and an answer that is checked."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NoReturn, TypeVar, get_args

from memorist import metrics
from memorist.errors import BadAnswerError, ProviderError, RecordError
from memorist.language.grounding import Ground, is_grounded
from memorist.language.injection import injections
from memorist.language.secrets import find_secrets
from memorist.lifecycle.candidate import Candidate, Claim
from memorist.lifecycle.settings import Extraction
from memorist.providers.chat_model import ChatModel, Reply, estimate_tokens_of
from memorist.records.memories import Kind
from memorist.records.message import LogEntry, is_trusted, least_trusted
from memorist.records.values import UNSEEN, check_text, fold, json_line, shorten
from memorist.store.base import Store

MAX_KNOWN = 20
MAX_KNOWN_CHARS = 300
MOST_PER_MESSAGE = 2
MOST_MEMORIES = 20
MOST_CLAIMS = 5
MOST_TAGS = 5
MAX_TEXT_CHARS = 500
MAX_NAME_CHARS = 100
MAX_ANSWER_CHARS = 100_000
MAX_MESSAGE_CHARS = 8_000
MOST_LOOKED_AT = 100

_FENCED = re.compile(r"```\w*[^\S\n]*\n(.*?)```", re.DOTALL)
_START = re.compile(r'\{\s*"memories"\s*:')
_MOST_STARTS = 20
_SELF = re.compile(r"(?:the )?(?:user|speaker)(?P<of>['’]s .+)?|i|me|myself", re.IGNORECASE)
_ISO_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:T.*)?")

T = TypeVar("T")


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
    """The candidates that a model extracted, how many were refused, and the tokens used."""

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
    """Extract what is worth keeping from messages of one session, in one call of the model.

    Raises `BadAnswerError` for an answer that cannot be used and `ProviderError` for none at all.
    """
    if not messages:
        return Extracted()
    reply = model.complete(
        question(messages, known),
        max_tokens=max_tokens,
        timeout_s=timeout_s,
        schema=answer_schema(),
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
    """About how many tokens the question has; the answer may add `max_tokens`."""
    return sum(estimate_tokens_of(part["content"]) for part in question(messages, known))


def question(messages: Sequence[LogEntry], known: Sequence[str] = ()) -> list[dict[str, str]]:
    """The chat messages for the model: each entry is one line of JSON, which no text can leave."""
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
    message = entry.message
    line: dict[str, object] = {"n": number, "at": f"{message.created_at:%Y-%m-%d %H:%M %A}"}
    line["role"] = message.role
    if message.name:
        line["name"] = shorten(message.name, MAX_KNOWN_CHARS)
    if entry.source != message.role:
        line["source"] = entry.source
    return {**line, "text": shorten(message.text, MAX_MESSAGE_CHARS)}


@cache
def _instructions() -> str:
    return (files(__package__) / "prompts" / "extract.md").read_text("utf-8")


@cache
def answer_schema() -> dict[str, Any]:
    """The JSON schema of an answer."""
    schema = (files(__package__) / "prompts" / "extract.schema.json").read_text("utf-8")
    return dict(json.loads(schema))


class UnusableError(ValueError):
    """The answer does not have the required form; the text says why and quotes nothing."""


def read_answer(
    text: str, messages: Sequence[LogEntry], known: Sequence[str] = ()
) -> tuple[list[Candidate], int]:
    """The candidates of an answer, and how many of its memories were refused.

    Raises `UnusableError` for an answer of the wrong form, and for one whose memories are all
    ungrounded.
    """
    check = _GroundingCheck(messages, known)
    accepted: list[Candidate] = []
    ungrounded = refused = 0
    for memory in _memories(text)[:MOST_LOOKED_AT]:
        candidate = _candidate(memory, messages)
        if candidate is None or not check.accepts(candidate):
            ungrounded += 1
        elif find_secrets(candidate.text) or _is_too_much(candidate, accepted):
            refused += 1
        else:
            accepted.append(check.with_grounded_claims(candidate))
    if ungrounded and not accepted:
        raise UnusableError(f"all of {ungrounded} memories say what no message said")
    return accepted, ungrounded + refused


class _GroundingCheck:
    """Checks memories against the messages they cite, and names against all messages."""

    def __init__(self, messages: Sequence[LogEntry], known: Sequence[str]) -> None:
        self._messages = {
            entry.message.message_id: Ground.of(_named_text(entry)) for entry in messages
        }
        self._around = Ground.joined([*map(Ground.of, known), *self._messages.values()])

    def accepts(self, candidate: Candidate) -> bool:
        """Whether a memory says only what its messages say, and is no prompt injection."""
        if injections(candidate.text, trusted=is_trusted(candidate.source)):
            return False
        return is_grounded(candidate.text, self._cited(candidate), self._around)

    def with_grounded_claims(self, candidate: Candidate) -> Candidate:
        """The candidate without claims that its messages do not make."""
        cited = self._cited(candidate)
        claims = tuple(claim for claim in candidate.claims if self._is_sound(claim, cited))
        return replace(candidate, claims=claims)

    def _is_sound(self, claim: Claim, cited: Ground) -> bool:
        """Whether the messages name the claim's subject and its object."""
        return (
            (claim.subject == "user" or self._names(claim.subject, self._around))
            and self._names(claim.object, cited)
            and not injections(f"{claim.predicate} {claim.object}")
            and not find_secrets(claim.object)
        )

    def _names(self, name: str, ground: Ground) -> bool:
        """Whether a name is there as it is, be it as short as "Go", or in other forms."""
        verbatim = re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", ground.text)
        return bool(verbatim) or is_grounded(name, ground, self._around)

    def _cited(self, candidate: Candidate) -> Ground:
        return Ground.joined(self._messages[id_] for id_ in candidate.sources)


def _memories(text: str) -> list[Mapping[str, Any]]:
    """The list under "memories", wherever in the answer it stands."""
    if not text.strip():
        raise UnusableError("it is empty")
    if len(text) > MAX_ANSWER_CHARS:
        raise UnusableError(f"it has {len(text):,} characters")
    for answer in _objects(text):
        memories = answer.get("memories") if isinstance(answer, dict) else None
        if isinstance(memories, list) and all(isinstance(one, dict) for one in memories):
            return memories
    raise UnusableError('it holds no JSON object with a list of "memories"')


def _objects(text: str) -> Iterator[Any]:
    """The JSON in an answer: all of it, in code fences, or after other text; the last one first."""
    for part in [text, *reversed(_FENCED.findall(text))]:
        try:
            yield json.loads(part, parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder(parse_constant=_reject_constant)
    for start in [match.start() for match in _START.finditer(text)][: -_MOST_STARTS - 1 : -1]:
        try:
            yield decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue


def _reject_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _candidate(memory: Mapping[str, Any], messages: Sequence[LogEntry]) -> Candidate | None:
    """The memory as a candidate; None if it cites no message or its text is too long."""
    text = " ".join(_field(memory, "text", str, "").split())
    cited = [messages[number - 1] for number in _numbers(memory) if 1 <= number <= len(messages)]
    kind = _field(memory, "kind", str, "fact")
    importance = _importance(memory)
    tags = _tags(memory)
    speaker = next((one.message.name for one in cited if one.message.role == "user"), None)
    claims = [_claim(claim, speaker or "user") for claim in _list(memory, "claims", dict)]
    corrects = _field(memory, "corrects", bool, False)
    if not cited or not _is_name(text, MAX_TEXT_CHARS):
        return None
    return Candidate(
        text=text,
        sources=tuple(dict.fromkeys(entry.message.message_id for entry in cited)),
        said_at=max(entry.message.created_at for entry in cited),
        kind=kind if kind in get_args(Kind) else "fact",  # type: ignore[arg-type]
        importance=importance,
        tags=tags,
        source=least_trusted(entry.source for entry in cited),
        claims=tuple(filter(None, claims))[:MOST_CLAIMS],
        corrects=corrects,
    )


def _claim(claim: Mapping[str, Any], speaker: str) -> Claim | None:
    """The claim with its subject and predicate spelled as those of the rules are."""
    subject, predicate, object_ = (
        " ".join(_field(claim, name, str, "").split())
        for name in ("subject", "predicate", "object")
    )
    single, ends = (_field(claim, name, bool, False) for name in ("single", "ends"))
    start, stop = (_moment(_field(claim, name, str, "")) for name in ("valid_from", "valid_to"))
    predicate = re.sub(r"[\W_]+", " ", predicate.casefold()).strip()
    if not all(_is_name(part, MAX_NAME_CHARS) for part in (subject, predicate, object_)):
        return None
    if self_named := _SELF.fullmatch(subject):
        subject = speaker + (self_named["of"] or "").replace("’", "'")
    if start and stop and stop < start:
        start = stop = None
    return Claim(
        subject=subject,
        predicate=predicate,
        object=object_,
        valid_from=start,
        valid_to=stop,
        single=single or None,  # where the model does not say so, the predicate may
        ends=ends,
    )


def _is_too_much(candidate: Candidate, accepted: Sequence[Candidate]) -> bool:
    of_same_message = sum(candidate.sources[0] == other.sources[0] for other in accepted)
    return (
        len(accepted) >= MOST_MEMORIES
        or of_same_message >= MOST_PER_MESSAGE
        or any(fold(candidate.text).split() == fold(other.text).split() for other in accepted)
    )


def _named_text(entry: LogEntry) -> str:
    return f"{entry.message.name or ''} {shorten(entry.message.text, MAX_MESSAGE_CHARS)}"


def _is_name(text: str, longest: int) -> bool:
    try:
        return 0 < len(check_text(text, "text")) <= longest and not UNSEEN.search(text)
    except RecordError:
        return False


def _importance(memory: Mapping[str, Any]) -> float:
    value = memory.get("importance")
    if value is None:
        return 0.5
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise UnusableError("importance is not a number")
    return float(min(1, max(0, value)))


def _numbers(memory: Mapping[str, Any]) -> list[int]:
    cited = memory.get("messages")
    return _list({"messages": [cited] if isinstance(cited, int) else cited}, "messages", int)


def _tags(memory: Mapping[str, Any]) -> tuple[str, ...]:
    tags = (" ".join(tag.lower().split()) for tag in _list(memory, "tags", str))
    return tuple(dict.fromkeys(tag for tag in tags if _is_name(tag, 40)))[:MOST_TAGS]


def _field(item: Mapping[str, Any], name: str, kind: type[T], default: T) -> T:
    value = item.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise UnusableError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value


def _list(item: Mapping[str, Any], name: str, kind: type[T]) -> list[T]:
    values: list[Any] = _field(item, name, list, [])
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UnusableError(f"{name} holds {type(value).__name__}, not {kind.__name__}")
    return values


def _moment(text: str) -> datetime | None:
    """The first moment of a date, month or year."""
    if not (match := _ISO_DATE.fullmatch(text.strip())):
        return None
    try:
        return datetime(*(int(part or 1) for part in match.groups()), tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
