"""Words as the text index holds them: folded, stemmed, ideographs in pairs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache

from memorist.records.text import UNSPACED, fold

_LONGEST = 40
_MOST = 65_536  # stems kept
_lock = threading.Lock()  # the stemmers keep the word at hand in themselves


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    from snowballstemmer import stemmer  # here, so that `import memorist` stays light

    stem: Callable[[str], str] = stemmer(language).stemWord
    return stem


class _Stems(dict[str, str]):
    """The stems found so far: a chat repeats its words, and looking one up must cost nothing."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST:
            self.clear()
        self[word] = found = _stem(word)
        return found


_stems = _Stems()


def stem(word: str) -> str:
    """The stem of a folded word: English of Latin letters, Russian of Cyrillic ones."""
    return _stems[word]


def _stem(word: str) -> str:
    if len(word) > _LONGEST or not word.isalpha():  # numbers and codes have no other forms
        return word
    cyrillic = "\u0400" <= word[0] <= "\u04ff"
    if not cyrillic and not word.isascii():
        return word
    with _lock:
        return _stemmer("russian" if cyrillic else "english")(word)


def stems(text: str) -> list[str]:
    """What a text is found by: the stems of its words, and each pair of ideographs."""
    words = fold(text).split()
    if text.isascii():
        return list(map(_stems.__getitem__, words))
    found = []
    for place, word in enumerate(words):
        if not UNSPACED.match(word):
            found.append(stem(word))
            continue
        found.append(word)
        if place + 1 < len(words) and UNSPACED.match(words[place + 1]):
            found.append(word + words[place + 1])
    return found


def term_stem(term: Sequence[str]) -> str:
    """What to look for to find a term: a word, or ideographs that follow each other."""
    return stem(term[0]) if len(term) == 1 else "".join(term)
