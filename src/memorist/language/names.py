"""Names of people in a question: whom it asks about, and the question as they would put it.

With a name in it, an embedder finds where that person is talked to. What they say of themselves
says "I": so the name goes out of the question, and becomes a boost for what they said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memorist.language.stop_words import STOP_WORDS

_WORD = re.compile(r"[\w’'-]+")


# What "you" did, what we talked about, or what to be reminded of.
_YOU_DID = re.compile(
    r"\byou(?:['’]ve)?(?: \w+)? (?:\w+ed|told|said|gave|wrote|made|sent|found|chose|came)\b"
    r"|\b(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|session)s?\b"
    r"|\bremind me\b",
    re.IGNORECASE,
)


def role_asked_about(question: str) -> str:
    """Whose words answer the question: the user's own, unless it asks what "you" did."""
    return "assistant" if _YOU_DID.search(question) else "user"


def asked_about(question: str, speakers: Iterable[str]) -> frozenset[str]:
    """The speakers a question names, by their whole name or the first part of it."""
    words = _WORD.findall(re.sub(r"['’]s\b", "", question))
    said = {word.strip("'’-") for word in words} - {""}
    # What begins a line may be no name: "When: Tuesday". Typed in haste, any spelling counts.
    named = [name for name in speakers if _first(name).lower() not in STOP_WORDS]
    if question.islower():
        return frozenset(name for name in named if _first(name).lower() in said)
    return frozenset(name for name in named if _first(name) in said)


def in_first_person(question: str, names: Iterable[str]) -> str:
    """The question with each name turned into "I", and what is theirs into "my"."""
    haste = re.IGNORECASE if question.islower() else re.NOFLAG
    for name in sorted(names, key=len, reverse=True):
        first, rest = _first(name), name.split()[1:]
        spelled = re.escape(first) + (f"(?: {re.escape(' '.join(rest))})?" if rest else "")
        question = re.sub(rf"\b{spelled}['’]s?(?!\w)", "my", question, flags=haste)
        question = re.sub(rf"\b{spelled}\b", "I", question, flags=haste)
    return question


def _first(name: str) -> str:
    return name.split()[0] if name.split() else name
