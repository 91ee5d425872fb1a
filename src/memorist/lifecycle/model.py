"""Extraction by a model: one question for a batch of messages, and an answer that is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from memorist import metrics
from memorist.errors import BadAnswerError, ProviderError, RecordError
from memorist.language.likeness import Ground, content_stems, is_grounded
from memorist.language.patterns import Pattern, escape
from memorist.language.unsafe import find_secrets, injections
from memorist.lifecycle.settings import Extraction
from memorist.providers.chat_model import ChatMessages, ChatModel, Reply, Schema, estimate_tokens_of
from memorist.records.json_values import UNSEEN, json_line, refuse_constant
from memorist.records.log import LogEntry, is_trusted, least_trusted
from memorist.records.memories import Candidate, Claim, Kind
from memorist.records.values import check_text, fold, shorten
from memorist.store.base import Store

MAX_KNOWN = 20
MAX_KNOWN_CHARS = 300
MOST_PER_MESSAGE = 2
MOST_MEMORIES = 20
MOST_CLAIMS = 5
MOST_TAGS = 5
MAX_TEXT_CHARS = 500
MAX_NAME_CHARS = 100
MAX_TAG_CHARS = 40
MAX_ANSWER_CHARS = 100_000
MAX_MESSAGE_CHARS = 8_000
MOST_LOOKED_AT = 100

_FENCED = Pattern(r"(?s)```\w*[ \t\r]*\n(?P<span>.*?)```")
_START = re.compile(r'\{\s*"memories"\s*:')
_MOST_STARTS = 20
_SELF = re.compile(r"(?:the )?(?:user|speaker)(?P<of>['’]s .+)?|i|me|myself", re.IGNORECASE)
_ISO_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:T.*)?")

_MEMORY = {
    "text": str,
    "kind": str,
    "importance": float,
    "tags": list[str],
    "messages": list[int],
    "claims": list[dict],  # type: ignore[type-arg]
    "corrects": bool,
}
_CLAIM_TEXTS = ("subject", "predicate", "object", "valid_from", "valid_to")
_CLAIM = {**dict.fromkeys(_CLAIM_TEXTS, str), "single": bool, "ends": bool}


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
        calls, tokens = extraction.calls_per_hour, extraction.tokens_per_hour
        self._limits = {"max_calls": calls, "max_tokens": tokens}

    def complete(
        self, messages: ChatMessages, *, max_tokens: int, timeout_s: float, schema: Schema = None
    ) -> Reply:
        """The model's reply; `ProviderError` if the budget is spent, or for whatever it raises.

        What the call may cost is taken from the budget first, and corrected afterwards.
        """
        expected = max_tokens + sum(estimate_tokens_of(message["content"]) for message in messages)
        if not self._store.spend(calls=1, tokens=expected, **self._limits):
            raise ProviderError("the model's budget for this hour is spent")
        used, result = expected, "failed"  # an unanswered call may have cost that much
        try:
            reply = self._model.complete(
                messages, max_tokens=max_tokens, timeout_s=timeout_s, schema=schema
            )
            used, result = reply.tokens, "answered"
            return reply
        except BadAnswerError as error:
            used, result = error.tokens or expected, "unusable"
            raise
        except ProviderError as error:
            used = 0 if error.status else expected
            raise
        except Exception as error:
            raise BadAnswerError(f"the model raised {type(error).__name__}") from error
        finally:
            metrics.count("memorist.model.calls", task=self._task, result=result)
            metrics.count("memorist.model.tokens", used, task=self._task)
            self._store.spend(calls=0, tokens=used - expected)


def ask(
    model: ChatModel,
    messages: Sequence[LogEntry],
    *,
    known: Sequence[str] = (),
    max_tokens: int,
    timeout_s: float,
) -> list[Candidate]:
    """Extract from messages in one call; `BadAnswerError` for an answer that cannot be used."""
    asked, schema = question(messages, known), answer_schema()
    reply = model.complete(asked, max_tokens=max_tokens, timeout_s=timeout_s, schema=schema)
    try:
        return read_answer(reply.text, messages, known)[0]
    except UnusableError as error:
        text = f"{model.name} answered badly: {error}"
        raise BadAnswerError(text, tokens=reply.tokens) from None


def question(messages: Sequence[LogEntry], known: Sequence[str] = ()) -> list[dict[str, str]]:
    """The chat messages for the model: each entry is one line of JSON, which no text can leave."""
    lines = [
        "KNOWN",
        *(json_line(shorten(one, MAX_KNOWN_CHARS)) for one in known[:MAX_KNOWN]),
        "MESSAGES",
        *(json_line(_described(number, entry)) for number, entry in enumerate(messages, start=1)),
    ]
    system = {"role": "system", "content": _prompt("extract.md")}
    return [system, {"role": "user", "content": "\n".join(lines)}]


def _described(number: int, entry: LogEntry) -> dict[str, object]:
    message = entry.message
    line: dict[str, object] = {"n": number, "at": f"{message.created_at:%Y-%m-%d %H:%M %A}"}
    line["role"] = message.role
    if message.name:
        line["name"] = shorten(message.name, MAX_KNOWN_CHARS)
    if entry.source != message.role:
        line["source"] = entry.source
    if message.tells_general_facts:
        line["general"] = True
    return {**line, "text": shorten(message.text, MAX_MESSAGE_CHARS)}


@cache
def _prompt(name: str) -> str:
    return (files(__package__) / "prompts" / name).read_text("utf-8")


def answer_schema() -> dict[str, Any]:
    """The JSON schema of an answer."""
    return dict(json.loads(_prompt("extract.schema.json")))


class UnusableError(ValueError):
    """The answer does not have the required form; the text says why and quotes nothing."""


def read_answer(
    text: str, messages: Sequence[LogEntry], known: Sequence[str] = ()
) -> tuple[list[Candidate], int]:
    """The candidates of an answer, and how many were refused; `UnusableError` if all were."""
    check = _GroundingCheck(messages, known)
    limited = {one.message.message_id for one in messages if not one.message.tells_general_facts}
    accepted: list[Candidate] = []
    ungrounded = refused = 0
    for memory in _memories(text)[:MOST_LOOKED_AT]:
        if "subject" in memory:
            memory = _memory_of_triple(memory, messages)
        candidate = _candidate(memory, messages)
        if candidate is None or not check.accepts(candidate):
            ungrounded += 1
        elif find_secrets(candidate.text) or _is_too_much(candidate, accepted, limited):
            refused += 1
        else:
            accepted.append(check.with_grounded_claims(candidate))
    if ungrounded and not accepted:
        raise UnusableError(f"all of {ungrounded} memories say what no message said")
    return accepted, ungrounded + refused


class _GroundingCheck:
    """Checks memories against the messages they cite, and names against all messages."""

    def __init__(self, messages: Sequence[LogEntry], known: Sequence[str]) -> None:
        texts = {
            message.message_id: f"{message.name or ''} {shorten(message.text, MAX_MESSAGE_CHARS)}"
            for _, _, _, message in messages
        }
        self._messages = {id_: Ground.of(text) for id_, text in texts.items()}
        self._around = Ground.joined([*map(Ground.of, known), *self._messages.values()])

    def accepts(self, candidate: Candidate) -> bool:
        """Whether a memory says only what its messages say, and is no prompt injection."""
        if injections(candidate.text, trusted=is_trusted(candidate.source)):
            return False
        return is_grounded(candidate.text, self._cited(candidate), self._around)

    def with_grounded_claims(self, candidate: Candidate) -> Candidate:
        """The candidate without claims whose subject or object its messages do not name."""
        cited = self._cited(candidate)
        claims = [
            claim
            for claim in candidate.claims
            if (claim.subject == "user" or self._names(claim.subject, self._around))
            and self._names(claim.object, cited)
            and not injections(f"{claim.predicate} {claim.object}")
            and not find_secrets(claim.object)
        ]
        return replace(candidate, claims=tuple(claims))

    def _names(self, name: str, ground: Ground) -> bool:
        """Whether a name is there as it is, be it as short as "Go", or in other forms."""
        verbatim = Pattern(rf"(?:^|\W){escape(name.lower())}(?:\W|$)").search(ground.text)
        return bool(verbatim) or is_grounded(name, ground, self._around)

    def _cited(self, candidate: Candidate) -> Ground:
        return Ground.joined(self._messages[id_] for id_ in candidate.sources)


def _memories(text: str) -> list[Mapping[str, Any]]:
    """The list under "memories" or of triples, wherever in the answer it stands."""
    if len(text) > MAX_ANSWER_CHARS:
        raise UnusableError(f"it has {len(text):,} characters")
    for answer in _objects(text):
        memories = answer.get("memories") if isinstance(answer, dict) else answer
        if isinstance(memories, list) and all(isinstance(one, dict) for one in memories):
            return memories
    raise UnusableError('it holds no JSON object with a list of "memories"')


def _memory_of_triple(triple: Mapping[str, Any], messages: Sequence[LogEntry]) -> Mapping[str, Any]:
    """A memory that states one fact, of the messages that name its object."""
    text = " ".join(str(triple.get(name, "")) for name in _CLAIM_TEXTS[:3])
    named = str(triple.get("object"))
    cited = [
        number
        for number, entry in enumerate(messages, start=1)
        if fold(named) in fold(entry.message.text)
        or content_stems(named) & content_stems(entry.message.text)
    ]
    return {"text": text, "messages": cited, "claims": [triple]}


def _objects(text: str) -> Iterator[Any]:
    """The JSON in an answer: all of it, in code fences, or after other text; the last one first."""
    for part in [text, *reversed(_FENCED.findall(text))]:
        try:
            yield json.loads(part, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    for start in [match.start() for match in _START.finditer(text)][: -_MOST_STARTS - 1 : -1]:
        try:
            yield decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue


def _candidate(memory: Mapping[str, Any], messages: Sequence[LogEntry]) -> Candidate | None:
    """The memory as a candidate; None if it cites no message or its text is too long."""
    cited = memory.get("messages")
    fields = _read({**memory, "messages": [cited] if isinstance(cited, int) else cited}, _MEMORY)
    importance = 0.5 if memory.get("importance") is None else fields["importance"]
    text = " ".join(fields["text"].split())
    places = [number - 1 for number in fields["messages"] if 1 <= number <= len(messages)]
    entries = [messages[place] for place in places]
    speaker = next((one.message.name for one in entries if one.message.role == "user"), None)
    claims = [_claim(claim, speaker or "user") for claim in fields["claims"]]
    tags = (" ".join(tag.lower().split()) for tag in fields["tags"])
    if not entries or not _is_name(text, MAX_TEXT_CHARS):
        return None
    return Candidate(
        text=text,
        sources=tuple(dict.fromkeys(entry.message.message_id for entry in entries)),
        said_at=max(entry.message.created_at for entry in entries),
        kind=fields["kind"] if fields["kind"] in get_args(Kind) else "fact",
        importance=float(min(1, max(0, importance))),
        tags=tuple(dict.fromkeys(tag for tag in tags if _is_name(tag, MAX_TAG_CHARS)))[:MOST_TAGS],
        source=least_trusted(entry.source for entry in entries),
        claims=tuple(filter(None, claims))[:MOST_CLAIMS],
        corrects=fields["corrects"],
    )


def _claim(claim: Mapping[str, Any], speaker: str) -> Claim | None:
    """The claim with its subject and predicate spelled as those of the rules are."""
    fields = _read(claim, _CLAIM)
    subject, object_ = (" ".join(fields[name].split()) for name in ("subject", "object"))
    predicate = re.sub(r"[\W_]+", " ", fields["predicate"].casefold()).strip()
    start, stop = _moment(fields["valid_from"]), _moment(fields["valid_to"])
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
        single=fields["single"] or None,  # where the model does not say so, the predicate may
        ends=fields["ends"],
    )


def _is_too_much(
    candidate: Candidate, accepted: Sequence[Candidate], limited: Collection[str]
) -> bool:
    """Whether there are enough without it, of `limited` messages, or it was said already."""
    of_same_message = sum(candidate.sources[0] == other.sources[0] for other in accepted)
    enough = len(accepted) >= MOST_MEMORIES or of_same_message >= MOST_PER_MESSAGE
    return (enough and candidate.sources[0] in limited) or (
        any(fold(candidate.text).split() == fold(other.text).split() for other in accepted)
    )


def _is_name(text: str, longest: int) -> bool:
    try:
        return 0 < len(check_text(text, "text")) <= longest and not UNSEEN.search(text)
    except RecordError:
        return False


def _read(item: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an item, each of its kind; empty where the answer leaves it out."""
    fields: dict[str, Any] = {}
    for name, kind in kinds.items():
        fields[name] = value = item.get(name) if item.get(name) is not None else kind()
        [inner] = get_args(kind) or [kind]
        values = [value] if inner is kind else value
        allowed = (int, float) if inner is float else (inner,)
        if not isinstance(values, list) or any(type(each) not in allowed for each in values):
            raise UnusableError(f"{name} is not of type {kind.__name__}")
    return fields


def _moment(text: str) -> datetime | None:
    """The first moment of a date, month or year."""
    if not (match := _ISO_DATE.fullmatch(text.strip())):
        return None
    try:
        return datetime(*(int(part or 1) for part in match.groups()), tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
