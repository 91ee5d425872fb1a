"""Questions: whom and which time a question asks about, and how a long one is shortened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Literal, TypeVar

from memorist.language.lexicon import keyword_pattern, plain
from memorist.language.patterns import Pattern, escape
from memorist.language.text import ALL_LANGUAGES, data, ranking_stop_words

T = TypeVar("T")
# In bytes, since letters of most scripts cost an embedder more than those of English.
QUESTION_BYTES = 2_000  # in which words and names are looked for
EMBEDDED_BYTES = 320  # some 80 word pieces: they are embedded within the default deadline
_GAP = " ... "
_CUT_WORD_AT_END = re.compile(r"(?<=\s)\S{0,20}\Z")  # longer is no word: it is cut anywhere
_CUT_WORD_AT_START = re.compile(r"\A\S{0,20}(?=\s)")
_WORD = re.compile(r"[\w’'-]+")
_OWNS = re.compile(r"['’]s?$")
_MAX_NAME_CHARS = 100
_MOST_NAMES = 8  # that are looked for in one question


def role_asked_about(question: str) -> str:
    """The role whose messages answer the question: "assistant" if it asks what "you" did."""
    return "assistant" if _of_assistant().search(question) else "user"


@cache
def _of_assistant() -> Pattern:
    return Pattern(data("en", "words")["questions"]["of_assistant"], ignore_case=True)


def asks_about_past(question: str) -> bool:
    """Whether a question asks for what was once so, rather than for what is so now."""
    asked = plain(question)
    return bool(_time_words("past").search(asked)) and not _time_words("present").search(asked)


@cache
def _time_words(time: Literal["past", "present", "past_tense"]) -> Pattern:
    lists = {code: data(code, "words").get("questions", {}) for code in ALL_LANGUAGES}
    return keyword_pattern({code: words[time] for code, words in lists.items() if time in words})


def facts_asked_about(question: str) -> Sequence[str]:
    """The predicates of the user's facts that answer a question: "Where do I live?", "lives in".

    Only what has one object at a time is asked for so, and not in the past tense alone: "Where did
    I live in May?" may ask for anything.
    """
    asked = plain(question)
    if _time_words("past_tense").search(asked) and not asks_about_past(question):
        return ()
    fits = (facts for pattern, facts in _facts_asked_about() if pattern.search(asked))
    return next(fits, ())


@cache
def _facts_asked_about() -> list[tuple[Pattern, Sequence[str]]]:
    """The patterns of such questions in all languages, each with predicates."""
    lists = (data(code, "words").get("questions", {}).get("facts", []) for code in ALL_LANGUAGES)
    return [
        (Pattern(it["asks"], ignore_case=True), it["predicates"]) for each in lists for it in each
    ]


def speakers_asked_about(question: str, speakers: Iterable[str]) -> frozenset[str]:
    """The speakers that a question names, by their whole name or the first part of it."""
    words = _WORD.findall(re.sub(r"['’]s\b", "", question))
    named = {word.strip("'’-") for word in words} - {""}
    # A line such as "When: Tuesday" has no speaker. In a question all in lower case, names are too.
    stop_words = ranking_stop_words()
    people = [name for name in speakers if _first_name(name).lower() not in stop_words]
    if question.islower():
        return frozenset(name for name in people if _first_name(name).lower() in named)
    return frozenset(name for name in people if _first_name(name) in named)


def in_first_person(question: str, names: Iterable[str]) -> str:
    """The question with each name replaced by "I" and its possessive by "my".

    With a name in it, an embedder finds messages to that person; their own messages say "I".
    """
    for name in sorted(names, key=len, reverse=True)[:_MOST_NAMES]:
        pattern = _mention_of(name[:_MAX_NAME_CHARS], ignore_case=question.islower())
        question = pattern.sub(lambda match: "my" if _OWNS.search(match[0]) else "I", question)
    return question


@lru_cache(maxsize=256)  # those who ask often ask about the same people
def _mention_of(name: str, *, ignore_case: bool) -> Pattern:
    first, *rest = name.split() or [name]
    spelled = escape(first) + (f"(?: {escape(' '.join(rest))})?" if rest else "")
    mention = rf"(?:^|\W)(?P<span>{spelled}(?:['’]s?)?)(?:\W|$)"
    return Pattern(mention, ignore_case=ignore_case)


def _first_name(name: str) -> str:
    return name.split()[0] if name.split() else name


def in_own_words(question: str) -> str:
    """The question as users put it: "what is the user allergic to?", "what am I allergic to?".

    Agents ask so, but messages say "I". A table of users is nobody.
    """
    for pattern, own in _user_words():
        question = pattern.sub(own, question)
    return question


@cache
def _user_words() -> list[tuple[Pattern, str]]:
    """What agents call the user, in all languages, each with what users call themselves."""
    lists = (data(code, "words").get("questions", {}).get("user", {}) for code in ALL_LANGUAGES)
    return [(Pattern(it, ignore_case=True), own) for each in lists for own, it in each.items()]


def shorten_middle(text: str, max_bytes: int = EMBEDDED_BYTES) -> str:
    """A text of at most `max_bytes` unchanged; of a longer one the two ends, in whole words."""
    # People paste logs and code into a chat, and ask before or after them.
    if len(text) <= max_bytes // 4 or len(text.encode(errors="replace")) <= max_bytes:
        return text
    encoded = text.strip().encode(errors="replace")
    if len(encoded) <= max_bytes:
        return text.strip()
    half = (max_bytes - len(_GAP)) // 2
    head = _CUT_WORD_AT_END.sub("", encoded[:half].decode(errors="ignore"))
    tail = _CUT_WORD_AT_START.sub("", encoded[-half:].decode(errors="ignore"))
    return f"{head.rstrip()}{_GAP}{tail.lstrip()}"


def first_and_last(items: Sequence[T], limit: int) -> list[T]:
    """The first and the last items, `limit` in all; all of them if there are no more."""
    if len(items) <= limit:
        return list(items)
    first = limit // 2
    return [*items[:first], *items[len(items) - (limit - first) :]]
