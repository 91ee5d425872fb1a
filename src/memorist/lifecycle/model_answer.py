"""A model's answer read with distrust: its shape strictly, each memory on its own merits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar, get_args

from memorist.errors import RecordError
from memorist.language.grounding import Ground, is_grounded
from memorist.language.injection import injections
from memorist.language.secrets import find_secrets
from memorist.lifecycle.candidate import Candidate, Claim
from memorist.records.log import LogEntry, is_trusted, least_trusted
from memorist.records.memory_item import Kind
from memorist.records.text import UNSEEN, check_text, fold, shorten

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
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:T.*)?")

T = TypeVar("T")


class UnusableError(ValueError):
    """The answer is not what was asked for; the text tells why and quotes nothing."""


def read_answer(
    text: str, messages: Sequence[LogEntry], known: Sequence[str] = ()
) -> tuple[list[Candidate], int]:
    """The candidates worth a look, and how many memories were refused.

    Raises `UnusableError` for an answer of the wrong shape, and for one of which nothing is left
    because it says what no message said.
    """
    ground = _Grounds(messages, known)
    kept: list[Candidate] = []
    lies = refused = 0
    for memory in _memories(text)[:MOST_LOOKED_AT]:
        made = _candidate(memory, messages)
        if made is None or not ground.bears(made):
            lies += 1
        elif find_secrets(made.text) or _is_too_much(made, kept):
            refused += 1
        else:
            kept.append(ground.with_sound_claims(made))
    if lies and not kept:
        raise UnusableError(f"all of {lies} memories say what no message said")
    return kept, lies + refused


class _Grounds:
    """What a memory may be made of: the messages it cites, and the names around them."""

    def __init__(self, messages: Sequence[LogEntry], known: Sequence[str]) -> None:
        self._said = {entry.message.message_id: Ground.of(_spoken(entry)) for entry in messages}
        self._around = Ground.joined([*map(Ground.of, known), *self._said.values()])

    def bears(self, made: Candidate) -> bool:
        """Whether the memory says what its messages said, and orders nobody about."""
        if injections(made.text, trusted=is_trusted(made.source)):
            return False
        return is_grounded(made.text, self._cited(made), self._around)

    def with_sound_claims(self, made: Candidate) -> Candidate:
        cited = self._cited(made)
        return replace(made, claims=tuple(c for c in made.claims if self._is_sound(c, cited)))

    def _is_sound(self, claim: Claim, cited: Ground) -> bool:
        """Whether the messages name what the claim is about, and what it says of it."""
        return (
            (claim.subject == "user" or self._names(claim.subject, self._around))
            and self._names(claim.object, cited)
            and not injections(f"{claim.predicate} {claim.object}")
            and not find_secrets(claim.object)
        )

    def _names(self, name: str, ground: Ground) -> bool:
        """Whether a name is there as it is, be it as short as "Go", or in other forms."""
        there = re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", ground.text)
        return bool(there) or is_grounded(name, ground, self._around)

    def _cited(self, made: Candidate) -> Ground:
        return Ground.joined(self._said[one] for one in made.sources)


def _memories(text: str) -> list[Mapping[str, Any]]:
    """The list under "memories", wherever in the answer its object stands."""
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
    """What can be read as JSON: all of it, in fences, or after chatter; the last word first."""
    for part in [text, *reversed(_FENCED.findall(text))]:
        try:
            yield json.loads(part, parse_constant=_no_number)
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder(parse_constant=_no_number)
    for start in [match.start() for match in _START.finditer(text)][: -_MOST_STARTS - 1 : -1]:
        try:
            yield decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue


def _no_number(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


def _candidate(memory: Mapping[str, Any], messages: Sequence[LogEntry]) -> Candidate | None:
    """The memory as a candidate; None if it cites no message or is no short text."""
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
    """The claim with its subject and predicate spelled as the rules spell theirs."""
    subject, predicate, object_ = (
        " ".join(_field(claim, name, str, "").split())
        for name in ("subject", "predicate", "object")
    )
    single, ends = (_field(claim, name, bool, False) for name in ("single", "ends"))
    start, stop = (_moment(_field(claim, name, str, "")) for name in ("valid_from", "valid_to"))
    predicate = re.sub(r"[\W_]+", " ", predicate.casefold()).strip()
    if not all(_is_name(part, MAX_NAME_CHARS) for part in (subject, predicate, object_)):
        return None
    if told := _SELF.fullmatch(subject):
        subject = speaker + (told["of"] or "").replace("’", "'")
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


def _is_too_much(made: Candidate, kept: Sequence[Candidate]) -> bool:
    same = sum(made.sources[0] == other.sources[0] for other in kept)
    return (
        len(kept) >= MOST_MEMORIES
        or same >= MOST_PER_MESSAGE
        or any(fold(made.text).split() == fold(other.text).split() for other in kept)
    )


def _spoken(entry: LogEntry) -> str:
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
        raise UnusableError("importance is no number")
    return float(min(1, max(0, value)))


def _numbers(memory: Mapping[str, Any]) -> list[int]:
    given = memory.get("messages")
    return _list({"messages": [given] if isinstance(given, int) else given}, "messages", int)


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
    if not (match := _DATE.fullmatch(text.strip())):
        return None
    try:
        return datetime(*(int(part or 1) for part in match.groups()), tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
