"""Whether a memory says what its messages said, and speaks to nobody."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from memorist.language.stems import stems
from memorist.records.text import UNSPACED, fold

ENOUGH_WORDS = 0.4  # a model may put it in words of its own, but not all of them
ENOUGH_NAMES = 0.6  # not all: German writes every noun as if it were a name

_EDGES = ".,;:!?()[]<>\"'"
_LINK = re.compile(r"\S*(?:://|www\.|@\w)\S*")
_YEAR = r"(?:19|20)\d\d"
_DATE = (
    rf"\b{_YEAR}(?:-\d\d?){{1,2}}\b"
    rf"|\b(?:in|since|until|till|from|by|of|seit|jahr|ab|bis|en|desde|hasta|с|в|до)\s+{_YEAR}\b(?!-\d)"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:(?:of|de)\s+)?[^\W\d]{{3,}},?\s+(?:de\s+)?{_YEAR}\b"
    rf"|\b[^\W\d]{{3,}}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+{_YEAR}\b"
    rf"|{_YEAR}年(?:\d{{1,2}}月)?(?:\d{{1,2}}日)?"
)
_THOUSANDS = re.compile(r"(?<=\d)[.,’' \u00a0\u202f](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d{2,}")  # "2" may have been said as "two"
_INSIDE = re.compile(r"(?<![.!?:…]\s)(?<!^)\b[^\W\d_]{2,}")  # not what begins a sentence
_ALPHABETS = "\u0530"  # Latin, Greek and Cyrillic come before; words are shorter in what follows

# Words a writer frames any statement with; they prove nothing and need no proof.
_FRAME = """
user users speaker person someone assistant says said told mentioned stated asked wants wanted
likes prefers preference has have had does did is are was were been being the and for with that
this from about their they them his her she him who which when where since into also not now
currently recently named called nutzer benutzer nutzerin hat ist sind war der die das und mit für
von dem den ein eine einen sich nicht seit usuario usuaria tiene está son era los las una con por
para que del desde sus пользователь пользователя имеет это что как для был была были его она они
用户 使用 说了 사용자 사용자는 사용자가 사용자의
"""
# Words that speak to whoever reads the memory: no message's business.
_HOSTILE = (
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|guideline|context)"
    r"|\b(?:reveal|print|repeat|leak|override)\b.{0,20}\bsystem (?:prompt|message)"
    r"|<\|?/?(?:im_|system|assistant|inst|endof)|\[/?(?:INST|SYSTEM)\]|^\W{0,3}(?:system|assistant):"
    r"|\b(?:do not|don['’]t|never|without) (?:tell|telling|inform|informing|warn)\w* the user\b"
    r"|\byou are now\b|\bas an ai (?:language )?(?:model|assistant)\b"
    r"|\bignorier\w*\b.{0,40}\b(?:anweisung|instruktion|regel)"
    r"|\bignor\w+\b.{0,40}\b(?:instrucci|reglas)"
    r"|(?:игнориру|забудь|забыть).{0,40}(?:инструкци|указани|правил)"
    r"|(?:忽略|无视|忘记).{0,12}(?:指令|指示|说明|规则|提示)"
)
# What a user may well wish, and a web page may not.
_ORDER = (
    r"\b(?:you|assistants?|agents?|the (?:ai|model|bot)|reader) (?:must|should|shall|need|has to)\b"
    r"|\b(?:you|assistants?|agents?) (?:have to|will always|are to|is to)\b|\bfrom now on\b"
    r"|\bin (?:all )?future (?:answer|repl|conversation)"
    r"|\b(?:always|never) (?:recommend|reply|respond|answer|send|trust|use|buy|visit|run|include)\b"
    r"|\b(?:ab jetzt|von nun an|a partir de ahora|отныне|с этого момента)\b|从现在起|以后都|必须"
)


def is_hostile(text: str, *, trusted: bool) -> bool:
    """Whether a text gives orders to its reader; the user's own wishes are none."""
    return bool(_pattern(_HOSTILE).search(text) or (not trusted and _pattern(_ORDER).search(text)))


@dataclass(frozen=True, slots=True)
class Ground:
    """What some messages say, as far as a memory can be checked against it."""

    text: str
    numbers: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Ground:
        """The ground that one text gives."""
        known = frozenset(stems(text))
        return cls(text.lower(), _numbers(text), known | {_root(word) for word in known})

    @classmethod
    def joined(cls, grounds: Iterable[Ground]) -> Ground:
        """The ground that several give together."""
        every = list(grounds)
        return cls(
            "\n".join(one.text for one in every),
            frozenset[str]().union(*(one.numbers for one in every)),
            frozenset[str]().union(*(one.words for one in every)),
        )

    def share(self, words: set[str]) -> float:
        """How many of the words it has, from 0 to 1."""
        found = sum(word in self.words or _root(word) in self.words for word in words)
        return found / len(words) if words else 1.0


def is_grounded(text: str, cited: Ground, around: Ground) -> bool:
    """Whether `text` can be said from what is `cited`; names may also come from `around` it."""
    dateless = _pattern(_DATE).sub(" ", text)
    words = _content(dateless)
    return (
        bool(words)
        and all(link.strip(_EDGES) in cited.text for link in _LINK.findall(text.lower()))
        and _numbers(dateless) <= cited.numbers
        and around.share(_content(_names(dateless))) >= ENOUGH_NAMES
        and cited.share(words) >= ENOUGH_WORDS
    )


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(_THOUSANDS.sub("", text)))


def _names(text: str) -> str:
    """Words written as names, but not for beginning a sentence."""
    return " ".join(word for word in _INSIDE.findall(text) if word[0].isupper())


def _content(text: str) -> set[str]:
    """The stems that carry what a text says; of scripts without spaces, the pairs."""
    return {word for word in stems(text) if _carries(word)} - _frame()


def _carries(word: str) -> bool:
    if UNSPACED.match(word):
        return len(word) > 1
    return len(word) > (2 if word < _ALPHABETS else 1) and not word.isdecimal()


def _root(word: str) -> str:
    """The beginning that inflected forms share; a stemmer is not at hand for every language."""
    if UNSPACED.match(word):
        return word
    return word[: 5 if word < _ALPHABETS else 2]


@cache
def _pattern(written: str) -> re.Pattern[str]:
    """The long patterns, compiled when first needed: that takes a tenth of a second."""
    return re.compile(written, re.IGNORECASE | re.MULTILINE)


@cache
def _frame() -> frozenset[str]:
    return frozenset(stems(_FRAME)) | frozenset(fold(_FRAME).split())
