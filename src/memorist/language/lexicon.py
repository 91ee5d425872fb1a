"""The lexicon: the rules by which statements are found, one `data/<language>/rules.toml` each.

In these files a keyword ends in `*` where any ending will do, and holds `_` for a space. Patterns
(see `patterns.py`) stand one on a line and match whole words; `{part}` in them is a part named in
the file, `{start}` the beginning of a clause, and `<object>`, `<list>`, `<name>`, `<names>`,
`<former>`, `<topic>`, `<thing>`, `<relation>` and `<food>` are what a claim is made of.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

from memorist.language.patterns import Pattern, PatternSet, escape
from memorist.language.text import ALL_LANGUAGES, LANGUAGES, data, stop_words

CATEGORIES = ("error_patterns", "code_context", "solutions", "user_preferences")

_LOOK_AT_CHARS = 4_000
_MOST_TAGS = 5
_MOST_WORDS = 8  # in an object
_MOST_BYTES = 60  # in one without spaces: 20 ideographs
_OBJECT_EDGES = " \t\"'“”„«»「」《》*_`.,;:!?-–—~。，！？；：、"
_IN_NUMBER = re.compile(r"\d,\d")
# Languages by their letters, in order: Japanese has ideographs too.
_SCRIPTS = {
    "ja": re.compile(r"[\u3041-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
    "ru": re.compile(r"[а-яё]", re.IGNORECASE),
}
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[a-zß-ɏ]")
# Letters people leave the marks out of, and the marks their keyboards choose; one for one, so
# that what is found in the plain text can be cut out of the text as it was written.
_PLAIN = str.maketrans(
    "’‘ʼ`\u00a0\u202fёЁáàâéèêëíìîïóòôúùûñçÁÀÉÈÊÍÎÓÔÚÑÇ", "''''  еЕaaaeeeeiiiiooouuuncAAEEEIIOOUNC"
)
_NO_END = r",;:.!?…()\[\]{}<>\"«»„“”\n。，！？；：、（）“”「」《》—–\ufffc"
# The edge of a word. A Latin word may stand between ideographs, which have no spaces.
_EDGE = r"\W|[\u3400-\u9fff]"
_STEPS = ")]}*+?.$"  # what the end of a pattern may be, other than a letter or a mark
_PART = re.compile(r"\{([a-z_]+)\}")
_SLOT = re.compile(r"(?<!\?P)<([a-z]+)>")
# A full stop inside a word is part of it: "Node.js", "3.5".
_DOT = rf"\b(?:St|Dr)\.|[.:][^\s{_NO_END}]"
_PHRASE = rf"(?:(?:{_DOT}|[^\s{_NO_END}])(?:{_DOT}|[^{_NO_END}])*)"
_LISTED = rf"(?:(?:{_DOT}|[^\s{_NO_END}])(?:{_DOT}|[^{_NO_END}]|[,、，])*)"
_CAPITAL = "[A-ZÀ-ÖØ-ÞĀĆČĐĘĞİŁŃŚŞŠŻŽА-ЯЁ]"
_PARTICLE = "(?:van|von|der|den|de|del|della|da|di|do|dos|du|la|le|el|al|bin|of|the|am|upon|zu)"
_WITHIN = rf"(?:[\w.-]|'{_CAPITAL})*"
_NAME = (
    rf"(?-i:{_CAPITAL}{_WITHIN}(?: (?:{_PARTICLE} ){{0,2}}{_CAPITAL}{_WITHIN}){{0,2}}"
    r"|[\u3400-\u9fff]{1,8})"
)
# Where a clause begins: the subject may be left out there.
_START = r"(?:^|[,;:.!?—–\ufffc] ?)"


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of statements worth keeping, and the claim they make, if any."""

    group: str
    pattern: Pattern
    predicate: str | None = None
    object: str | None = None
    ends: bool = False
    off: bool = False  # says that a plan will come to nothing
    gone: bool = False  # says that a thing is gone, whatever it was
    beside: bool = False  # a figure that may be one of several: "a meeting on Monday"
    dated: bool = False  # worth nothing without its date
    today: bool = False  # worth keeping for the rest of the day
    standing: bool = False  # an instruction that holds for ever, though it is put as a request
    alone: bool = False  # says nothing where another rule reads the same clause
    unless: Pattern | None = None  # what is no object of it


@dataclass(frozen=True, slots=True)
class Pronouns:
    """How a language speaks of people that were named before; see `pronouns.py`."""

    begins: Pattern
    mention: Pattern
    others: Pattern  # people of whom nothing is known: they may be meant, too
    kinds: Mapping[str, str]  # "sie" is "she"
    shortened: Sequence[tuple[str, Pattern]]  # verbs, and what is left of them
    places: frozenset[str]  # words before names that are no people's; none where nouns are capital
    acts: tuple[str, ...]  # endings of what one person does
    owners: frozenset[str]  # pronouns of what is somebody's: "his name is …", and
    possessive: str  # what stands at the end of a word for that: "my son's name is …"


@dataclass(frozen=True, slots=True)
class Language:
    """The rules and patterns of one language."""

    code: str
    spaced: bool
    abbreviations: frozenset[str]
    articles: Pattern
    leads: Pattern  # what a plan is told without: "so my", "I have a"
    stops: Pattern
    places: Pattern
    joins: Pattern
    nothing: frozenset[str]
    common: frozenset[str]  # words that no thing is called
    relations: Mapping[str, str]
    favourites: Mapping[str, str]
    deeds: Mapping[str, str]  # verbs of what people do for a living, and their predicates
    foods: Mapping[str, str]  # how the diets of those who eat none begin
    cues: Mapping[str, Pattern]
    tasks: Mapping[str, Pattern]  # plans that go by several words, by the one that stands for these
    rules: tuple[Rule, ...]
    rule_set: PatternSet
    pronouns: Pronouns | None = None
    names: Mapping[str, str] = field(default_factory=dict[str, str])  # by their other cases
    endings: Mapping[str, str] = field(default_factory=dict[str, str])  # of any name, likewise

    def called(self, name: str) -> str:
        """A name as it is called, where a list or its ending tells: "Казани" is "Казань"."""
        if known := self.names.get(plain(name).lower()):
            return known
        ends = (it for it in self.endings if name.endswith(it) and name[0].isupper())
        end = next(ends, "")
        return name.removesuffix(end) + self.endings[end] if end else name

    def objects_of(self, phrase: str, *, several: bool = False, place: bool = False) -> list[str]:
        """The things that a phrase names, cut short and clean: one or, with `several`, each.

        Where it names a `place`, an employer or the like, it ends at the next preposition too.
        """
        objects: list[str] = []
        phrase = phrase.split(" - ")[0]
        joins = list(self.joins.finditer(plain(phrase))) if several else []
        joins = [it for it in joins if not _IN_NUMBER.search(phrase, it.start() - 1, it.end() + 1)]
        # A comma is one of a list if an "and" follows; else another clause begins there.
        last = max((n for n, join in enumerate(joins, 1) if join[0].strip(" ,，")), default=0)
        phrase = phrase[: joins[last].start()] if last < len(joins) else phrase
        edges = [0, *chain.from_iterable(join.span() for join in joins[:last]), len(phrase)]
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            piece = phrase[start:stop]
            lead = self.places.search(plain(f" {piece}")) if objects else None
            if lead and lead.start() == 0:
                break  # "cucumber, not even in soup": no thing, but where
            end = (self.places if place else self.stops).search(plain(piece))
            thing = piece[: end.start() if end else None].strip(_OBJECT_EDGES)
            if article := self.articles.match(plain(thing)):
                thing = thing[article.end() :].strip(_OBJECT_EDGES)
            if not self._is_object(thing, first=not objects):
                return objects[:1]  # no list after all, but another clause
            objects.append(thing)
            if end:
                break
        return objects

    def _is_object(self, piece: str, *, first: bool) -> bool:
        words = piece.lower().split()
        if not words or words[0].replace("’", "'").split("'")[0] in self.nothing:
            return False
        if not self.spaced:
            return len(piece.encode()) <= _MOST_BYTES
        # What follows a comma is one more thing only if it is as short as things in a list are.
        return len(words) <= (_MOST_WORDS if first else 3)


def plain(text: str) -> str:
    """The text as patterns expect it: without accents and curly quotes, the same length."""
    return text.replace("`", "'") if text.isascii() else text.translate(_PLAIN)


@cache
def language(code: str) -> Language:
    """The rules of one language; reading and compiling them takes a while, once."""
    written = data(code, "rules")
    spaced: bool = written.get("spaced", True)
    shared: Mapping[str, str] = data("shared", "technologies")["parts"]
    parts = {name: plain(part) for name, part in {**shared, **written["parts"]}.items()}
    relations = relations_of(code)
    foods = _names(written["foods"])
    parts["relation"] = _any(sorted(relations, key=len, reverse=True))
    parts["food"] = _any(foods)
    parts["joins"] = written["joins"]
    parts["start"] = _START + parts.get("start", "")

    def pattern(*entries: str, whole: bool = spaced) -> Pattern:
        filled = (_filled(line, parts) for lines in entries for line in lines_of(lines))
        return _compiled(_any(map(whole_words, filled) if whole else filled))

    space = r"\s+" if spaced else ""
    join = f"(?:{written['joins']}){space}"
    cues = {name: pattern(lines) for name, lines in written["cues"].items()}
    cues["pauses"] = pattern(written["cues"]["pauses"], whole=False)
    plain_negations = data(code, "words")["negations"].replace(" ", "\n")
    cues["negations"] = pattern(plain_negations, written["cues"]["negations"])
    corrections = {"group": "correction", "says": written["instead"]["right"]}
    rules = tuple(_rules([*written["rules"], corrections], parts, spaced))
    return Language(
        code=code,
        spaced=spaced,
        abbreviations=frozenset(written["abbreviations"].split()),
        articles=Pattern(written["articles"], ignore_case=True),
        leads=Pattern(plain(written["leads"]), ignore_case=True),
        stops=pattern(written["stops"]),
        places=pattern(written["stops"], written["places"]),
        joins=Pattern(rf"\s*[,，、]\s*(?:{join})?|{space}{join}", ignore_case=True),
        nothing=frozenset(written["nothing"].split()),
        common=frozenset(map(plain, stop_words("grammar", codes=(code,)))),
        relations=relations,
        favourites=_names(written["favourites"]),
        deeds=_names(written.get("deeds", {})),
        foods=foods,
        cues=cues,
        tasks={name: pattern(lines) for name, lines in written["tasks"].items()},
        rules=rules,
        rule_set=PatternSet(rule.pattern for rule in rules),
        pronouns=_pronouns(written["pronouns"], parts, spaced) if "pronouns" in written else None,
        names=_by_cases(written["names"]["listed"], written["cases"]) if "cases" in written else {},
        endings=written["names"]["ending"] if "names" in written else {},
    )


def _by_cases(names: str, cases: Mapping[str, str]) -> dict[str, str]:
    """The names by the forms that they have in other cases."""
    forms = dict[str, str]()
    for name in names.split():
        end = max((it for it in cases if name.endswith(it)), key=len)
        forms |= {plain(name.removesuffix(end) + it).lower(): name for it in cases[end].split()}
    return forms


def _pronouns(written: Mapping[str, Any], parts: Mapping[str, str], spaced: bool) -> Pronouns:
    def pattern(line: str) -> Pattern:
        return _compiled(_filled(line, parts))

    mention = f"(?P<person>{written['mention']})"

    return Pronouns(
        begins=pattern(written["begins"]),
        mention=pattern(rf"(?:^|\W){mention}(?:\W|$)" if spaced else mention),
        others=pattern(whole_words(written["others"]) if spaced else written["others"]),
        kinds=written["kinds"],
        shortened=[(verb, pattern(short)) for verb, short in written["shortened"].items()],
        places=frozenset(written["places"].split()),
        acts=tuple(written["acts"].split()),
        owners=frozenset(written.get("owners", "").split()),
        possessive=written.get("possessive", ""),
    )


def languages_of(text: str) -> list[Language]:
    """The languages a text may be in."""
    return [language(code) for code in codes_of(text)]


def codes_of(text: str) -> list[str]:
    """The languages with rules that a text may be in; else English, for dates in digits."""
    return [code for code in _codes(text) if code in LANGUAGES] or ["en"]


def without_rules(text: str) -> str | None:
    """The code of a text's language if there are no rules for it; None if there are."""
    codes = _codes(text)
    return None if any(code in LANGUAGES for code in codes) else codes[0]


def _codes(text: str) -> list[str]:
    """The languages a text may be in: by its script, then by its commonest words."""
    if script := _script(text):
        return [script]
    words = _WORD.findall(plain(text).lower())
    if words and not any(map(_LATIN.search, words)):
        return ["other"]
    common, none = _common_words()
    counts = dict(none)
    for word in words:
        for code in common.get(word, ()):
            counts[code] += 1
    most = max(counts.values())
    return [code for code, count in counts.items() if count == most]


def _script(text: str) -> str:
    """The language that a text is in by its letters; empty where they do not tell."""
    scripts = {} if text.isascii() else _SCRIPTS
    return next((code for code, letters in scripts.items() if letters.search(text)), "")


def summary_title(lines: Iterable[str]) -> str:
    """What to call a summary, in each language that at least a fifth of its lines' text is in.

    Of the languages in Latin letters it is one: they cannot be told line by line.
    """
    by_script = defaultdict[str, list[str]](list)
    for line in lines:
        by_script[_script(line)].append(line)
    texts = {script: " ".join(said) for script, said in by_script.items()}
    least = sum(map(len, texts.values())) / 5
    codes = [script or _codes(text)[0] for script, text in texts.items() if len(text) >= least]
    titles = {code: data(code, "words")["previous"] for code in codes if code in ALL_LANGUAGES}
    english = data("en", "words")["previous"]
    return " / ".join(sorted(titles.values(), key=english.__eq__)) or english


@cache
def _common_words() -> tuple[dict[str, list[str]], dict[str, int]]:
    """The languages in Latin letters of which a word, without accents, is common; and no counts."""
    common = defaultdict[str, list[str]](list)
    codes = [code for code in ALL_LANGUAGES if code not in _SCRIPTS]
    for code in codes:
        for word in set(map(plain, stop_words("ranking", "grammar", codes=(code,)))):
            common[word].append(code)
    return dict(common), dict.fromkeys(codes, 0)


def category_of(text: str) -> str | None:
    """The first category, in order of precedence, that a text has a keyword of."""
    start = plain(text[:_LOOK_AT_CHARS])
    return next((CATEGORIES[number] for number in _keywords().numbers(start)), None)


def tags_of(text: str) -> tuple[str, ...]:
    """The technologies and topics that a text names, in order.

    Words of the other languages in Latin letters do not count: without accents, the tea of French
    is "the", and its cat is a "chat".
    """
    start = plain(text[:_LOOK_AT_CHARS])
    topics, pattern_set = _topics()
    others = {*LANGUAGES} - {"en", *_SCRIPTS, *codes_of(start)}
    tags: dict[tuple[int, int], str] = {}  # by their place: a word stands for one topic
    for number, match in pattern_set.search(start):
        code, tag = topics[number]
        if code not in others:
            tags.setdefault(match.span(), tag)
    return tuple(dict.fromkeys(tags[place] for place in sorted(tags)))[:_MOST_TAGS]


def whole_words(pattern: str) -> str:
    """The pattern between the edges of words, unless it begins or ends with a space or a mark."""
    first, last = pattern[0], pattern[-1]
    is_mark = not last.isalnum() and (last not in _STEPS or pattern[-2:-1] == "\\")
    start = "" if first in " ,/¿" or pattern.startswith("(?:^|") else f"(?:^|{_EDGE})"
    return f"{start}(?:{pattern}){'' if is_mark else f'(?:{_EDGE}|$)'}"


def _compiled(pattern: str) -> Pattern:
    time.sleep(0.0001)  # there are hundreds: other threads get a turn in between
    return Pattern(pattern, ignore_case=True)


@cache
def _keywords() -> PatternSet:
    return PatternSet(
        keyword_pattern({code: data(code, "rules")["keywords"][category] for code in LANGUAGES})
        for category in CATEGORIES
    )


@cache
def _topics() -> tuple[list[tuple[str, str]], PatternSet]:
    """The language and the name of each topic, and their patterns in the same order."""
    sources = {"shared": data("shared", "technologies")}
    sources |= {code: data(code, "rules") for code in LANGUAGES}
    topics = [
        (code, tag, keyword_pattern({code: words}))
        for code, source in sources.items()
        for tag, words in source["topics"].items()
    ]
    return [topic[:2] for topic in topics], PatternSet(pattern for *_, pattern in topics)


def keyword_pattern(keywords: Mapping[str, str]) -> Pattern:
    """A pattern of the keywords of many languages: whole words, except in Chinese."""
    patterns = {code: _words(words) for code, words in keywords.items()}
    spaced = [pattern for code, pattern in patterns.items() if code != "zh"]
    whole = [whole_words(_any(spaced))] if spaced else []
    return _compiled(_any([*whole, *(patterns[code] for code in patterns if code == "zh")]))


def _words(words: str) -> str:
    """A pattern for keywords; `*` stands for any ending, `_` for a space inside of one."""
    phrases = [word.replace("_", " ") for word in plain(words).split()]
    each = (escape(phrase).replace(r"\*", r"\w*") for phrase in phrases)
    return _any(sorted(each, key=len, reverse=True))


def _rules(
    written: Iterable[Mapping[str, Any]], parts: Mapping[str, str], spaced: bool
) -> Iterable[Rule]:
    for rule in written:
        fields = {key: rule[key] for key in rule if key not in ("says", "unless")}
        lines = [_filled(line, parts) for line in lines_of(rule.get("unless", ""))]
        unless = _compiled(_any(map(whole_words, lines) if spaced else lines)) if lines else None
        for given in lines_of(rule["says"]):
            filled = _filled(given, parts)
            pattern = _compiled(whole_words(filled) if spaced else filled)
            yield Rule(pattern=pattern, unless=unless, **fields)


def _filled(pattern: str, parts: Mapping[str, str]) -> str:
    filled = _PART.sub(lambda part: _filled(parts[part[1]], parts), plain(pattern))
    return _SLOT.sub(lambda slot: _slot(slot[1], parts), filled)


def _slot(name: str, parts: Mapping[str, str]) -> str:
    names = rf"{_NAME}(?:(?:\s*[,，、]\s*|\s*(?:{parts['joins']})\s*){{1,2}}{_NAME}){{0,4}}"
    shapes = {"list": _LISTED, "name": _NAME, "names": names, "former": _PHRASE + "?"}
    shapes |= dict.fromkeys(("thing", "topic"), r"(?:[\w'-]+ ){0,2}?[\w'-]+?")
    shape = (shapes | {each: parts[each] for each in ("relation", "food")}).get(name, _PHRASE)
    return f"(?P<{'object' if name in ('list', 'name', 'names') else name}>{shape})"


@cache
def relations_of(code: str) -> Mapping[str, str]:
    """The words of a language for relations, each with the relation."""
    return _names(data(code, "rules")["relations"])


def _names(listed: Mapping[str, str]) -> dict[str, str]:
    """The canonical name of each word."""
    return {
        plain(word).lower().replace("_", " "): name
        for name, words in listed.items()
        for word in words.split()
    }


def lines_of(text: str) -> list[str]:
    """The patterns of an entry: one on each line."""
    return [line for line in text.splitlines() if line]


def _any(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def instead_of(text: str) -> tuple[str, str] | None:
    """What is right and what is wrong, in a sentence such as "it's Hamburg, not Berlin".

    Where no thing stands before the "not", nothing is put right: "I'm not moving to Berlin".
    """
    patterns, leads = _corrections()
    match = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    right = leads.sub("", match["right"]).strip() if match else ""
    if not function_words().isdisjoint(plain(right).lower().split()[-1:]):
        return None
    wrong = match.groupdict().get("wrong") if match else None
    return (right, (wrong or "").strip()) if right else None


@cache
def function_words() -> frozenset[str]:
    """The words of all languages that say nothing by themselves, as in plain text."""
    return frozenset(map(plain, stop_words("ranking", "grammar")))


@cache
def _corrections() -> tuple[list[Pattern], Pattern]:
    """Patterns of "Hamburg, not Berlin", and of what leads to it, such as "it's"."""
    written = [data(code, "rules")["instead"] for code in LANGUAGES]
    words = [language for language in written if "not" in language]
    keys = ("pattern", "right")
    patterns = [line for each in written for key in keys for line in lines_of(each.get(key, ""))]
    negations, leads, after = (
        "|".join(it[key] for it in words) for key in ("not", "lead", "after")
    )
    spaced = (
        rf"(?P<right>[\w' -]{{1,60}}?),? (?:{negations}) (?P<wrong>[\w' -]{{1,40}}?)"
        rf"(?:[,.!]* (?:{after}))*[.!]*$"
    )
    # "Sorry, not Friday but Thursday" does not put "sorry" right.
    ordered = sorted((spaced, *patterns), key=lambda it: ("<wrong>" not in it, it is spaced))
    compiled = [Pattern(pattern, ignore_case=True) for pattern in ordered]
    return compiled, Pattern(rf"^(?:.*\W)?(?:{leads})\s+", ignore_case=True)
