"""What a memory's own words tell against it: that it is junk, or an attempt to command."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from memorist.language.signals import manner_of
from memorist.records.text import fold

_LOOK_AT_CHARS = 2_000
_TELLS = re.compile(r"[.!。！\n]\s*\S|\b(?:i|me|ich|mir|yo|me|я|мне)\b", re.IGNORECASE)
_DANGLING = re.compile(r"[,:;(\-–—]\s*$|(?:\.\.\.|…)\s*$")


@dataclass(frozen=True, slots=True)
class Junk:
    """Why a memory is junk: the family of junk it belongs to, and what that means."""

    family: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Family:
    junk: Junk
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None

    def matches(self, text: str) -> bool:
        if not self.pattern.search(text):
            return False
        return self.unless is None or not self.unless.search(text)


def junk_of(text: str) -> Junk | None:
    """Why this text is not worth remembering, if its words alone tell."""
    said = text[:_LOOK_AT_CHARS].strip()
    if found := next((one.junk for one in _families() if one.matches(said)), None):
        return found
    if _only_asks(said):
        return next(one.junk for one in _families() if one.junk.family == "question")
    return Junk("fragment", "a fragment without content") if _is_fragment(said) else None


def injections(text: str) -> list[str]:
    """In which ways this text tries to command whoever reads it."""
    said = text[:_LOOK_AT_CHARS]
    return [name for name, pattern in _injections().items() if pattern.search(said)]


@cache
def listed(section: str, name: str) -> frozenset[str]:
    """A list of words in the data file, as `fold` leaves them."""
    parts = data()[section][name]
    separated = parts.split("|") if "|" in parts else parts.split()
    return frozenset(" ".join(fold(part).split()) for part in separated)


@cache
def data() -> Mapping[str, Any]:
    """The data file of the audit."""
    return tomllib.loads((files("memorist.language") / "words" / "audit.toml").read_text("utf-8"))


def _only_asks(text: str) -> bool:
    """Whether it is one question that tells nothing of the one who asks."""
    manner = manner_of(text)
    return manner.asks and text[-1:] in "?？" and not manner.own and not _TELLS.search(text)


def _is_fragment(text: str) -> bool:
    """Whether no word says anything, or the sentence breaks off among words that do not."""
    words = fold(text).split()
    empty = listed("words", "empty") | listed("words", "negation")
    telling = [word for word in words if word not in empty]
    if not telling:
        return True
    breaks_off = bool(_DANGLING.search(text)) or words[-1] in _openers()
    return len(telling) == 1 and len(words) > 1 and breaks_off


@cache
def _openers() -> frozenset[str]:
    """Words that no sentence ends on."""
    return frozenset("a an the and or but of with because der die das und oder el la y и".split())


@cache
def _families() -> tuple[_Family, ...]:
    return tuple(
        _Family(Junk(name, given["reason"]), _any(given["patterns"]), _any(given.get("unless")))
        for name, given in data()["junk"].items()
    )


@cache
def _injections() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(given, re.I) for name, given in data()["injection"].items()}


def _any(patterns: list[str] | None) -> Any:
    """One pattern for all of them, or None for none."""
    return re.compile("|".join(f"(?:{one})" for one in patterns), re.I) if patterns else None
