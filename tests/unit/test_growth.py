"""No text takes more than linear time: from 1 kB to 24 kB (`make prove`: 64) the work for
each kB at most doubles.

The texts are shapes that broke something once, and one derived from each pattern there is: what
it matches, again and again, so that it nearly matches everywhere.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import re._constants as sre  # type: ignore[import-untyped, import-not-found, unused-ignore]
import re._parser as parser  # type: ignore[import-untyped, import-not-found, unused-ignore]
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

import memorist
from memorist import Memory, Message
from memorist.context.chat_format import anthropic_form, to_chat_message
from memorist.context.compression.extractive import extract as extract_summary
from memorist.context.compression.parts import parse
from memorist.context.documents.markdown import chunks, sections
from memorist.context.documents.reading import html_to_text, title_of
from memorist.context.quote import label, quoted
from memorist.context.tokens import TokenCounter
from memorist.errors import MemoristError
from memorist.language import dates, lexicon, likeness, patterns, questions, signals, text, unsafe
from memorist.lifecycle import audit
from memorist.lifecycle.rules import MAX_MESSAGE_CHARS, extract
from memorist.providers.local_model import split
from memorist.providers.tokenizer import tokenizer_for
from memorist.records.log import LogEntry
from memorist.records.values import fold, normalize
from memorist.server.http.media_guard import check_content
from tests.support.hostile import HOSTILE_SHAPES

EVERY = 1 if os.environ.get("MEMORIST_PROVE") else 6  # shapes; `make prove` takes all of them
EVERY_RULE = 1 if EVERY == 1 else 72
KB = 1_000
LONG = 64 if EVERY == 1 else 24
TIMES = 8  # that a short text is read, to measure it, unless once takes
ENOUGH_S = 0.02
MOST = 2.0  # as much for each kB as in a short text
NOW = datetime(2026, 5, 1, tzinfo=UTC)
TOKENIZER = tokenizer_for("gpt-4o")
COUNTER = TokenCounter(TOKENIZER)


def _grounded(given: str) -> None:
    ground = likeness.Ground.of(given)
    likeness.is_grounded(given, ground, ground)


def _in_chat(given: str) -> None:
    message = Message("user", given, tool_call_id="a")
    if formatted := to_chat_message(message):
        anthropic_form([formatted])


def _guarded(given: str) -> None:
    with suppress(MemoristError):
        check_content([{"type": "input_audio", "data": given, "text": given}])


ENTRIES: dict[str, Callable[[str], Any]] = {
    "fold": fold,
    "normalize": lambda given: normalize("NFC", given),
    "stems": text.stems,
    "passages": text.passages,
    "sentences": lambda given: list(text.sentences(given)),
    "clauses": lambda given: list(text.clauses(given)),
    "without_pasted": text.without_pasted,
    "signals": signals.signals_of,
    "category": lexicon.category_of,
    "tags": lexicon.tags_of,
    "dates": lambda given: dates.find_dates(given, NOW),
    "secrets": unsafe.find_secrets,
    "injections": lambda given: unsafe.injections(given, trusted=False),
    "alike": lambda given: likeness.alike(given, given + "x"),
    "grounded": _grounded,
    "speakers": lambda given: questions.speakers_asked_about(given, ["Ann Lee", given]),
    "first person": lambda given: questions.in_first_person(given, ["Ann Lee", given]),
    "role asked about": questions.role_asked_about,
    "asks about past": questions.asks_about_past,
    "shortened": questions.shorten_middle,
    "junk": audit.junk_family,
    "summary": lambda given: extract_summary(
        [LogEntry(1, "s", "user", Message("user", given))], COUNTER, 200, ""
    ),
    "parsed summary": lambda given: parse(f"## Open tasks\n{given}"),
    "Markdown": lambda given: (sections(given), title_of(given)),
    "chunks": chunks,
    "HTML": html_to_text,
    "quoted": lambda given: (quoted(given), label(given)),
    "tokens": lambda given: TOKENIZER.count([given]),
    "word pieces": split,
    "message": lambda given: Message("user", [{"type": "text", "text": given}]).text,
    "chat": _in_chat,
    "media": _guarded,
}


def growth(call: Callable[[str], Any], short: str, long: str) -> float:
    """How much more each character of the long text takes than one of the short."""
    best = float("inf")
    for _ in range(4):  # a busy machine disturbs some, not all
        small = _cpu(call, short, TIMES) * len(long) / len(short)
        best = min(best, _cpu(call, long, 1) / max(small, 0.002))
        if best <= MOST:
            break
    return best


def _cpu(call: Callable[[str], Any], given: str, times: int) -> float:
    """How long a call takes, on average of so many or of those that took long enough."""
    began, done, spent = time.thread_time(), 0, 0.0
    while done < times and spent < ENOUGH_S:
        call(given)
        done, spent = done + 1, time.thread_time() - began
    return spent / done


def filled(shape: str, size: int) -> str:
    return (shape * (size // len(shape) + 1))[:size]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_text_entry_takes_linear_time(name: str) -> None:
    call = ENTRIES[name]
    call("I live in Berlin, since May 2020.")  # loads what it needs
    grown = {
        shape: growth(call, f"{filled(shape, KB)} x", f"{filled(shape, LONG * KB)} x")
        for shape in HOSTILE_SHAPES[list(ENTRIES).index(name) % EVERY :: EVERY]
    }
    assert not {shape: round(ratio, 1) for shape, ratio in grown.items() if ratio > MOST}


@cache
def own_patterns() -> dict[str, patterns.Pattern | re.Pattern[str]]:
    """Every pattern of the package, as it is written."""
    for module in pkgutil.walk_packages(memorist.__path__, "memorist."):
        if ".testing" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    extract(Message("user", "I live in Berlin, since May 2020."))
    audit.junk_family("I live in Berlin")
    unsafe.injections("I live in Berlin", trusted=False)
    every: dict[str, patterns.Pattern | re.Pattern[str]] = {}
    for name in [name for name in sys.modules if name.startswith("memorist.")]:
        for value in vars(sys.modules[name]).values():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                every[value.pattern] = value
    gc.unfreeze()  # or what was there when the tests began would not be among the objects
    every |= {one.written: one for one in gc.get_objects() if isinstance(one, patterns.Pattern)}
    gc.freeze()
    return every


def sample(nodes: Any) -> str:
    """A text that a parsed pattern matches, or nearly."""
    return "".join(_sample(kind, value) for kind, value in nodes)


def _sample(kind: Any, value: Any) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.IN:
        given = [_sample(each, inner) for each, inner in value if each is not sre.NEGATE]
        return "a" if value[0][0] is sre.NEGATE else str(given[0])
    if kind is sre.RANGE:
        return chr(value[0])
    if kind is sre.CATEGORY:
        return {sre.CATEGORY_SPACE: " ", sre.CATEGORY_DIGIT: "1"}.get(value, "a")
    if kind is sre.BRANCH:
        return sample(value[1][-1])
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return sample(value[2]) * max(int(value[0]), 1)
    if kind is sre.SUBPATTERN:
        return sample(value[3])
    return "a" if kind in (sre.ANY, sre.NOT_LITERAL) else ""


def pumped(written: str) -> str:
    """What a pattern matches, as Python reads it."""
    python = written.replace(r"\p{L}", "[a-z]").replace(r"\z", r"\Z").replace("(?<=^|", "(?:^|")
    python = python.replace(r"\pL", "a-z").replace(r"\pN", "0-9")  # these stand in sets
    python = re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), python)
    return sample(parser.parse(re.sub(r"\(\?[ims]+\)", "", python))) or "a"


def _matches(pattern: patterns.Pattern | re.Pattern[str]) -> Callable[[str], Any]:
    return lambda given: [match.span() for match in pattern.finditer(given)]


def test_every_pattern_of_the_code_takes_linear_time() -> None:
    """Those of rules and dates see a sentence or a beginning at most: see the next test."""
    seen_in_part = {id(pattern) for code in text.LANGUAGES for pattern in rule_patterns(code)}
    listed = {
        written: pattern
        for written, pattern in own_patterns().items()
        if id(pattern) not in seen_in_part and len(written) < KB
    }
    assert len(listed) > 80
    grown = {}
    for written, pattern in list(listed.items())[::EVERY]:
        shape = pumped(written)
        short, long = f"{filled(shape, KB)} x", f"{filled(shape, LONG * KB)} x"
        grown[written] = growth(_matches(pattern), short, long)
    assert not {one[:80]: round(ratio, 1) for one, ratio in grown.items() if ratio > MOST}


def rule_patterns(code: str) -> list[patterns.Pattern]:
    language = lexicon.language(code)
    forms, _ = dates._forms(code)
    rules = [rule.pattern for rule in language.rules]
    rules += [rule.unless for rule in language.rules if rule.unless]
    cut = [language.stops, language.places, language.joins, language.articles]
    if it := language.pronouns:
        cut += [it.begins, it.mention, it.others, *(short for _, short in it.shortened)]
    return [*rules, *language.cues.values(), *(form.pattern for form in forms), *cut]


@pytest.mark.parametrize("code", text.LANGUAGES)
def test_every_rule_takes_linear_time(code: str) -> None:
    grown = {}
    for pattern in rule_patterns(code)[::EVERY_RULE]:
        line = f"{filled(f'{pumped(pattern.written)} ', 380)}\n"
        call = lambda given: extract(Message("user", given, created_at=NOW))  # noqa: E731
        grown[line] = growth(call, filled(line, KB), filled(line, MAX_MESSAGE_CHARS))
    assert not {line[:60]: round(ratio, 1) for line, ratio in grown.items() if ratio > MOST}


def test_a_hostile_text_takes_linear_time_to_store_and_to_ask_about() -> None:
    with Memory(":memory:", extraction=None) as memory:
        memory.remember("I live in Berlin.", user="u")
        grown = {}
        for shape in HOSTILE_SHAPES[:: 2 * EVERY]:
            call = lambda given: memory.remember(given, user="u")  # noqa: E731
            grown[f"stored {shape!r}"] = growth(call, filled(shape, KB), filled(shape, LONG * KB))
            ask = lambda given: memory.recall(given, user="u", deadline_ms=None)  # noqa: E731
            grown[f"asked {shape!r}"] = growth(ask, filled(shape, KB), filled(shape, LONG * KB))
        assert not {name: round(ratio, 1) for name, ratio in grown.items() if ratio > MOST}
