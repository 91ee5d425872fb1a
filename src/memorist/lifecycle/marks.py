"""What the reader marks in a message, as if a rule had matched it there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from memorist.language.lexicon import (
    Language,
    Rule,
    function_words,
    instead_of,
    languages_of,
    plain,
)
from memorist.language.patterns import Pattern, PatternMatch
from memorist.language.people import names_someone, names_user
from memorist.language.text import is_single_valued
from memorist.providers.reader import Mark
from memorist.records.memories import COUPLES, PLANS

NOTHING = 0.3  # how likely a message is worth keeping, for marks to count and all rules to be tried
ALWAYS = frozenset(
    ("figure", "done", "correction", "relation", "general", "preference")
)  # tried anyway
SURE = 0.5  # how sure the reader is of a mark that counts,
SURE_OF_ONE = 0.65  # of one that could take the place of another fact,
SURE_OF_A_NAME = 0.8  # of whose it is, where no word such as "sister" tells,
SURER_THAN_RULES = 0.9  # of one that is believed rather than rules, and
CERTAIN = 0.97  # of one that counts in texts to work on, too: "soy procurador, resume este auto"
# Of what the reader is too often wrong when it is not surer: half of what it finds less sure is.
_SURE_OF: Mapping[str, float] = {
    "owns": 0.6,
    "plans": 0.58,
    "uses": 0.65,
    **dict.fromkeys(("allergic to", "phone", "email"), 0.8),
}
# The groups of what is marked; all else is who the speaker is.
_GROUPS: Mapping[str, str] = {
    **dict.fromkeys(("plans", "has appointment"), "plan"),
    "event": "event",
    **dict.fromkeys(("likes", "dislikes", "prefers", "uses"), "preference"),
}
_GROUPS_BY_WORD: Mapping[str, str] = {
    "favourite": "preference",
    "has": "relation",
    "married": "relation",
}
_ANYTHING = Pattern("")
_MORE_OF_NAME = re.compile(r" (?P<name>[A-Z][a-z]+)\b")  # where nouns are written small
_WORDS = Pattern(r"[\w-]+")
# What the predicate of a relative's name is, where it is not "has …".
RELATED: Mapping[str, str] = {
    **dict.fromkeys(("wife", "husband", "spouse"), "married to"),
    **dict.fromkeys(("partner", "girlfriend", "boyfriend", "fiancé"), "has partner"),
    **dict.fromkeys(("son", "daughter", "child"), "has child"),
    **dict.fromkeys(("dog", "cat", "pet"), "has pet"),
}


class MarkedPart(PatternMatch):
    """A stretch of a sentence that the reader marked."""

    __slots__ = ("_place", "chance")

    def __init__(self, text: str, start: int, end: int, chance: float) -> None:
        self._text, self._place, self.chance = text, (start, end), chance

    def span(self, group: int | str = 0) -> tuple[int, int]:
        return self._place

    def groupdict(self) -> dict[str, str]:
        return {"object": self[0]}


def without_rivals(marks: Sequence[Mark]) -> list[Mark]:
    """The marks; of what can only be one thing, the surest: "We moved to Berlin. It's in Mitte"."""
    surest: dict[tuple[str, bool], Mark] = {}
    for mark in sorted(marks, key=lambda it: it.chance):
        surest[mark.predicate, mark.ends] = mark
    return [
        mark
        for mark in marks
        if not is_single_valued(mark.predicate) or mark is surest[mark.predicate, mark.ends]
    ]


def sure_marks(
    sentence: str, marks: Sequence[tuple[int, str, Mark]], language: Language
) -> Iterator[tuple[Rule, MarkedPart]]:
    """The marks of a sentence that count, each with the rule that it stands for.

    Each is given with its place and its text; where "she" has become a name, it lies elsewhere.
    """
    if not marks:  # mostly
        return
    own = bool(language.cues["own"].search(plain(sentence)))
    # "Actually it's Bergen": what that corrects is for others to find out.
    corrects = bool(language.cues["corrections"].search(plain(sentence)))
    _, wrong = instead_of(sentence) or ("", "")
    single = [(text, mark.chance) for _, text, mark in marks if is_single_valued(mark.predicate)]
    values = [text for text, chance in single if chance >= SURE_OF_ONE]
    for place, text, mark in marks:
        start = place if sentence.startswith(text, place) else sentence.find(text)
        predicate, text = _without_deed(mark.predicate, text, language)
        start = sentence.find(text, start) if start >= 0 and text else -1
        if names_someone(predicate) and language.pronouns and language.pronouns.places:
            after = _MORE_OF_NAME.match(sentence[start + len(text) :])
            text += after[0] if after and after["name"].lower() not in function_words() else ""
        if start < 0 or _is_of_caller(sentence, start, predicate, mark.ends):
            continue
        least = SURE_OF_ONE if is_single_valued(mark.predicate) else SURE
        if names_someone(predicate) and not _tells_of(sentence, predicate, language):
            least = SURE_OF_A_NAME
        if mark.chance < _SURE_OF.get(predicate, least) or (corrects and not own):
            continue
        if text == wrong and not mark.ends:
            continue  # "it's kiwi, not strawberries"
        may_be_cut = predicate in PLANS or predicate == "age"
        if may_be_cut and _is_cut(text, sentence[start + len(text) :], language):
            continue
        if mark.predicate == "event" and any(one in text for one in values if one != text):
            continue  # "I moved to Graz yesterday" says where they live
        if _is_plausible(text, predicate, language) and not _is_of_other(
            plain(sentence), start, predicate, language
        ):
            by_word = _GROUPS_BY_WORD.get(predicate.split()[0], "identity")
            group = _GROUPS.get(predicate, by_word)
            rule = Rule(group, _ANYTHING, predicate, text, mark.ends)
            yield rule, MarkedPart(sentence, start, start + len(text), mark.chance)


def _tells_of(sentence: str, predicate: str, language: Language) -> bool:
    """Whether a sentence has a word for those whom a predicate names; the user needs none."""
    told = plain(sentence).lower()
    words = _WORDS.findall(told) if language.spaced else told
    relations = {name for word, name in language.relations.items() if word in words}
    alike = COUPLES if predicate in COUPLES else (predicate,)
    return names_user(predicate) or any(
        RELATED.get(one, f"has {one}") in alike for one in relations
    )


def _without_deed(predicate: str, thing: str, language: Language) -> tuple[str, str]:
    """What somebody does for a living: "works as" a nurse, but "runs" a "small bakery"."""
    verb, _, rest = thing.partition(" ")
    deed = language.deeds.get(plain(verb).lower()) if predicate == "works as" else None
    return (deed, next(iter(language.objects_of(rest)), "")) if deed else (predicate, thing)


def _is_cut(thing: str, after: str, language: Language) -> bool:
    """Whether a mark ends before its thing or figure: "got an" offer, "standup moved from" 9:30.

    Or before the street whose number it is, no age: "14" Catherine Close.
    """
    last, following = plain(thing).lower().split()[-1], after.lstrip()[:1]
    if thing.isdigit() and language.pronouns and language.pronouns.places:
        return _MORE_OF_NAME.match(after) is not None
    ends_early = following.isalpha() and language.articles.match(f"{last} ")
    return bool(ends_early) or (following.isdigit() and last in function_words())


def _is_of_caller(sentence: str, start: int, predicate: str, ends: bool) -> bool:
    """Whether a mark reads more into a call than that there was one: "Tom called me yesterday"."""
    if predicate != "event" and not (names_user(predicate) or (ends and names_someone(predicate))):
        return False
    seen = plain(sentence)  # a short one may be in several languages
    called = (it for one in languages_of(seen) for it in one.cues["contacts"].finditer(seen))
    return any(it.start() <= start + 1 <= it.end() for it in called)


def _is_plausible(thing: str, predicate: str, language: Language) -> bool:
    """Whether a mark can be what it should be: more than a common word, a number, an address."""
    words = plain(thing).lower().split()
    if language.common.issuperset(words) or (len(thing) == 1 and not thing.isdigit()):
        return False
    if predicate == "age":
        return thing.isdigit() == any(map(str.isdigit, thing)) and len(thing) < 20
    if predicate in ("birthday", "phone"):
        return any(map(str.isdigit, thing))
    if predicate in PLANS:
        said = language.cues["moves"].sub(" ", plain(thing)).lower().split()
        return not function_words().issuperset(said)
    return predicate != "email" or "@" in thing


def _is_of_other(told: str, start: int, predicate: str, language: Language) -> bool:
    """Whether a name is that of another's relative or pet: "…, her dog is called Bruno"."""
    if not names_someone(predicate):
        return False
    clause = told[:start].rpartition(",")[2].strip()
    begins = language.pronouns.begins.match(clause) if language.pronouns else None
    is_told = any(language.cues[cue].search(clause) for cue in ("names", "own"))
    if begins and not is_told:  # "she has a cat named …"
        return True
    if language.cues["whose"].search(told[:start]) or _has_them(told, start, predicate, language):
        return True  # "Sheila's son Martin", "his wife Anna"
    words = clause.lower().split()
    relations = [language.relations[word] for word in words if word in language.relations]
    if not relations:
        return False
    of = RELATED.get(relations[-1], f"has {relations[-1]}")
    return of != predicate and not {of, predicate} <= {*COUPLES}


def _has_them(told: str, start: int, predicate: str, language: Language) -> bool:
    """Whether somebody named is who has those that a predicate names: "Pete got me a dog"."""
    having = (it for it in language.cues["theirs"].finditer(told) if not it["relation"])
    had = next((it for it in having if it.start() <= start < it.end()), None)
    return had is not None and _tells_of(told[had.end() :], predicate, language)


def read_as(predicate: str) -> tuple[str, ...]:
    """What the reader may take a claim for: "no bullet points" is a preference, or a dislike.

    "I like tea better than coffee" is a preference, or a liking.
    """
    if predicate in PLANS:
        return ("",)
    if predicate in COUPLES:
        return COUPLES
    also = {"dislikes": ("prefers",), "prefers": ("likes",)}
    return (predicate, *also.get(predicate, ()))
