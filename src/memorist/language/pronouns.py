"""Pronouns: whom "she" means, where only one person who fits was spoken of shortly before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from memorist.language.lexicon import Language, Pronouns, language, plain, relations_of
from memorist.language.people import names_user
from memorist.language.text import LANGUAGES, data, stop_words
from memorist.records.memories import plain_text
from memorist.records.values import fold

NOBODY: Mapping[str, str] = {}
SAID_CHARS = 500  # of what was said before, its last, that tell whom a pronoun means
MOST_CHARS = 1_000  # of what was said before
_WORDS = re.compile(r"[.!?\n]|[^\W\d_][\w'-]*")
_BEGINS = re.compile(r"(?P<lead>(?:^|[.,;:!?—–\n] ?)(?:and |but |so )?)(?P<word>[^\W\d_]+)")
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


def named(
    sentence: str, before: Sequence[str], language: Language, known: Mapping[str, str] = NOBODY
) -> str:
    """The sentence with a person for each pronoun that begins a clause, where that is clear.

    `known` are the names of those around the speaker, each with the predicate that tells it.
    """
    pronouns, sentence = language.pronouns, _capitalized(sentence, known)
    seen = plain(sentence)
    matches = list(pronouns.begins.finditer(seen)) if pronouns else []
    if pronouns is None or not matches:
        return sentence
    kinds = {pronouns.kinds[match["pronoun"].lower()] for match in matches}
    said = "\n".join((*before, sentence[: matches[0].start("pronoun")]))[-MOST_CHARS:]
    said = _capitalized(said, known)
    person = _meant(said, min(kinds), language, known) if len(kinds) == 1 else None
    if person is None:
        return sentence
    parts, done = list[str](), 0
    for match in matches:
        start, end = match.span("pronoun")
        names = language.cues["names"].search(seen[start:])  # "he is called Leo, not Theo"
        if names and (person.name or match.start()):
            continue  # it is another's name, or another name
        lower = start and person.phrase != person.name
        first, rest_of_it = person.phrase[0], person.phrase[1:]
        parts += [sentence[done:start], first.lower() if lower else first, rest_of_it]
        parts += [pronouns.possessive] * (match["pronoun"].lower() in pronouns.owners)
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
    return {word: name for code in LANGUAGES for word, name in relations_of(code).items()}


def _capitalized(sentence: str, known: Mapping[str, str]) -> str:
    """The sentence with capitals for the names that begin a clause: "tom called"."""

    def written(begins: re.Match[str]) -> str:
        is_name = plain_text(begins["word"]) in known and begins["word"] not in _no_names()
        return begins["lead"] + begins["word"].title() if is_name else begins[0]

    return _BEGINS.sub(written, sentence) if known else sentence


def without_names(text: str, known: Mapping[str, str]) -> str:
    """The text without the names that are known, which tell nothing of its language."""
    return (
        _WORDS.sub(lambda it: "" if plain_text(it[0]) in known else it[0], text) if known else text
    )


def _meant(text: str, pronoun: str, language: Language, known: Mapping[str, str]) -> Person | None:
    """The only person in a text that a pronoun fits; None if there is none, or more than one."""
    pronouns = language.pronouns
    if pronouns is None or pronouns.others.search(plain(text)):
        return None
    people: dict[str, Person] = {}
    for match in pronouns.mention.finditer(plain(text)):
        relation = language.relations[match["relation"].lower()]
        end = match.end("person" if language.spaced else "relation")
        phrase = text[match.start("person") : end]
        name = text[slice(*match.span("object"))] if match["object"] else ""
        person = Person(phrase, relation, name)
        same = people.get(relation)
        if same and name and same.name not in ("", name):
            return None  # two sisters
        people[relation] = same if same and same.name else person
    names = {person.name for person in people.values()}
    for name in [*_told_of(text, language), *_known_in(text, known)]:
        told = known.get(plain_text(name), "")
        relation = told.removeprefix("has ")
        if names_user(told):
            names.add(name)
        elif relation in people and not people[relation].name:  # "Priya is my flatmate"
            people[relation] = Person(name, relation, name)
        elif name not in names:
            people[name] = Person(name, relation, name)
    fitting = [person for person in people.values() if person.fits(pronoun)]
    names |= {person.name for person in people.values()}
    is_clear = len(fitting) == 1 and _strangers(text, pronouns) <= names
    return fitting[0] if is_clear else None


def _told_of(text: str, language: Language) -> Iterator[str]:
    """The names of those of whom a text says something as of a person: "Lena works at Bosch"."""
    seen = plain(text)
    for rule in language.rules:
        if rule.group == "relation" and "(?P<thing>" in rule.pattern.written:
            for match in rule.pattern.finditer(seen):
                if match["thing"]:
                    yield text[slice(*match.span("thing"))]


def _known_in(text: str, known: Mapping[str, str]) -> list[str]:
    return [
        word for word in _WORDS.findall(text) if plain_text(word) in known and word[0].isupper()
    ]


def _strangers(text: str, pronouns: Pronouns) -> set[str]:
    """Words written as names, other than those of places; where nouns are, those that act."""
    places = pronouns.places
    words, before, found = _WORDS.findall(text), "", set[str]()
    for place, word in enumerate(words):
        begins = not before or not before[0].isalnum()
        after = words[place + 1] if place + 1 < len(words) else ""
        if word[0].isupper() and word.lower() not in _no_names():
            acts = after.islower() and after.endswith(pronouns.acts)
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
