"""Pronouns: whom "she" means, where only one person who fits was spoken of shortly before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from memorist.language.lexicon import Language, language, plain
from memorist.language.text import LANGUAGES, data, stop_words
from memorist.records.values import fold

MOST_CHARS = 1_000  # of what was said before
_WORDS = re.compile(r"[.!?\n]|[^\W\d_][\w'-]*")
_NAME = re.compile(r"\b[A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ]\w+")


class Person(NamedTuple):
    """A person as spoken of: "my sister Lena"."""

    phrase: str
    relation: str
    name: str

    def fits(self, pronoun: str) -> bool:
        """Whether a pronoun may mean this one; of a friend, nobody knows."""
        others = _genders()["he" if pronoun == "she" else "she"]
        return self.relation not in others


def named(sentence: str, before: Sequence[str], language: Language) -> str:
    """The sentence with a person for each pronoun that begins a clause, where that is clear."""
    pronouns, seen = language.pronouns, plain(sentence)
    matches = list(pronouns.begins.finditer(seen)) if pronouns else []
    if pronouns is None or not matches:
        return sentence
    kinds = {pronouns.kinds[match["pronoun"].lower()] for match in matches}
    said = "\n".join((*before, sentence[: matches[0].start("pronoun")]))[-MOST_CHARS:]
    person = _meant(said, min(kinds), language) if len(kinds) == 1 else None
    if person is None:
        return sentence
    parts, done = list[str](), 0
    for match in matches:
        start, end = match.span("pronoun")
        first, rest_of_it = person.phrase[0], person.phrase[1:]
        parts += [sentence[done:start], first.lower() if start else first, rest_of_it]
        done = end
        for verb, short in pronouns.shortened:  # "she's moved"
            if rest := short.match(seen[end:]):
                parts.append(f" {verb}")
                done = end + rest.end("short")
                break
    return "".join((*parts, sentence[done:]))


def borrows(text: str, cited: str, other: str) -> bool:
    """Whether a text speaks of someone as another text does, and as what it cites does not."""
    own = people_in(cited).union(fold(cited).split())
    return not people_in(text) & people_in(other) <= own


def has_pronoun(text: str) -> bool:
    """Whether a clause of a text begins with a pronoun that may mean a person, in any language."""
    spoken = filter(None, (language(code).pronouns for code in LANGUAGES))
    seen = plain(text)
    return any(pronouns.begins.search(seen) for pronouns in spoken)


def people_in(text: str) -> frozenset[str]:
    """The words written as names, and the relations, whatever they are called in a language."""
    relations = filter(None, map(_relations().get, fold(text).split()))
    return frozenset(map(fold, _NAME.findall(text))).difference(_no_names()).union(relations)


@cache
def _relations() -> dict[str, str]:
    return {word: name for code in LANGUAGES for word, name in language(code).relations.items()}


def _meant(text: str, pronoun: str, language: Language) -> Person | None:
    """The only person in a text that a pronoun fits; None if there is none, or more than one."""
    pronouns = language.pronouns
    if pronouns is None or pronouns.others.search(plain(text)):
        return None
    people: dict[str, Person] = {}
    for match in pronouns.mention.finditer(plain(text)):
        relation = language.relations[match["relation"].lower()]
        phrase = text[slice(*match.span("person"))]
        name = text[slice(*match.span("object"))] if match["object"] else ""
        person = Person(phrase, relation, name)
        known = people.get(relation)
        if known and name and known.name not in ("", name):
            return None  # two sisters
        people[relation] = known if known and known.name else person
    fitting = [person for person in people.values() if person.fits(pronoun)]
    known_names = {person.name for person in people.values()}
    is_clear = len(fitting) == 1 and _strangers(text, pronouns.places) <= known_names
    return fitting[0] if is_clear else None


def _strangers(text: str, places: frozenset[str]) -> set[str]:
    """Words written as names, other than those of places; where nouns are, those that act."""
    words, before, found = _WORDS.findall(text), "", set[str]()
    for place, word in enumerate(words):
        begins = not before or not before[0].isalnum()
        after = words[place + 1] if place + 1 < len(words) else ""
        if word[0].isupper() and word.lower() not in _no_names():
            acts = after.islower() and after.endswith(("s", "ed") if places else ("t", "te"))
            if acts if begins or not places else before.lower() not in places:
                found.add(word)
        before = word
    return found


@cache
def _no_names() -> frozenset[str]:
    return frozenset(stop_words("ranking", "grammar", "subject"))


@cache
def _genders() -> dict[str, frozenset[str]]:
    """The relations of women and of men."""
    listed: dict[str, str] = data("shared", "predicates")["genders"]
    return {pronoun: frozenset(relations.split()) for pronoun, relations in listed.items()}
