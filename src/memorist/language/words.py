"""Words: their stems as the text index holds them, and the word lists of each language.

The lists stand in `data/<language>/words.toml`, every list once. A stop word stands in one of five
groups: `ranking` (recall leaves it out of a question), `grammar` (articles, pronouns and the
like), `subject` (what memories call their person), `reporting` ("says", "prefers") and `weak`
(says little about a topic). Each use names the groups it leaves out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from memorist.records.text import UNSPACED, fold

StopWordGroup = Literal["ranking", "grammar", "subject", "reporting", "weak"]
LANGUAGES = ("en", "de", "es", "ru", "zh")  # with rules; the others have words alone
ALL_LANGUAGES = (*LANGUAGES, "fr", "pt", "ja", "ko")
LONGEST_STEMMED = 40
MAX_STEMS = 65_536  # kept in memory
_lock = threading.Lock()  # a stemmer is not safe for use by two threads


@cache
def data(code: str, name: str) -> Mapping[str, Any]:
    """The contents of `data/<code>/<name>.toml`."""
    import tomllib  # here, so that `import memorist` stays light
    from importlib.resources import files

    return tomllib.loads((files(__package__) / "data" / code / f"{name}.toml").read_text("utf-8"))


@cache
def stop_words(*groups: StopWordGroup, codes: Sequence[str] = ALL_LANGUAGES) -> frozenset[str]:
    """The stop words of some groups in some languages, as they are written."""
    lists = [data(code, "words").get("stop_words", {}) for code in codes]
    return frozenset(
        word for each in lists for group in groups for word in each.get(group, "").split()
    )


@cache
def ranking_stop_words() -> frozenset[str]:
    """The words of a question that recall does not look for."""
    return stop_words("ranking", codes=("en",))


@cache
def negations() -> frozenset[str]:
    """Words that turn a statement into its opposite, folded, in all languages."""
    lists = (data(code, "words")["negations"] for code in LANGUAGES)
    return frozenset(folded for words in lists for folded in fold(words).split())


@cache
def single_valued_predicates() -> frozenset[str]:
    """Predicates of facts that hold one object at a time, folded."""
    lists = (data(code, "words")["single_valued"] for code in LANGUAGES)
    return frozenset(" ".join(fold(name).split()) for names in lists for name in names)


def is_single_valued(predicate: str, listed: frozenset[str] | None = None) -> bool:
    """Whether a subject has one object of this predicate at a time, however it is spelled."""
    plain = " ".join(fold(predicate).split())
    listed = single_valued_predicates() if listed is None else listed
    return plain in listed or plain.startswith(("favourite ", "favorite "))


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    from snowballstemmer import stemmer  # here, so that `import memorist` stays light

    stem_word: Callable[[str], str] = stemmer(language).stemWord
    return stem_word


class _Stems(dict[str, str]):
    """The stems computed so far: conversations repeat their words, so most are found here."""

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_STEMS:
            self.clear()
        self[word] = stemmed = _stem(word)
        return stemmed


_stems = _Stems()


def stem(word: str) -> str:
    """The stem of a folded word: English of Latin letters, Russian of Cyrillic ones."""
    return _stems[word]


def _stem(word: str) -> str:
    if len(word) > LONGEST_STEMMED or not word.isalpha():  # numbers and codes have no other forms
        return word
    cyrillic = "\u0400" <= word[0] <= "\u04ff"
    if not cyrillic and not word.isascii():
        return word
    with _lock:
        return _stemmer("russian" if cyrillic else "english")(word)


def stems(text: str) -> list[str]:
    """The terms that a text is indexed by: the stems of its words, and each pair of ideographs."""
    words = fold(text).split()
    if text.isascii():
        return list(map(_stems.__getitem__, words))
    terms = []
    for place, word in enumerate(words):
        if not UNSPACED.match(word):
            terms.append(stem(word))
            continue
        terms.append(word)
        if place + 1 < len(words) and UNSPACED.match(words[place + 1]):
            terms.append(word + words[place + 1])
    return terms


def term_stem(term: Sequence[str]) -> str:
    """The indexed form of a search term: a word, or several ideographs in a row."""
    return stem(term[0]) if len(term) == 1 else "".join(term)
