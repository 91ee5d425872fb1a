"""Text: its passages, sentences and words, their stems and synonyms, each language's word lists.

The lists stand in `data/<language>/words.toml`, every list once. A stop word stands in one of five
groups: `ranking` (recall leaves it out of a question), `grammar` (articles, pronouns and the
like), `subject` (what memories call their person), `reporting` ("says", "prefers") and `weak`
(says little about a topic). Each use names the groups it leaves out.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any, Literal

from memorist.errors import ProviderError
from memorist.forks import fork_safe
from memorist.language.english import english_stem
from memorist.language.patterns import Pattern, PatternMatch
from memorist.records.values import UNSPACED, fold

StopWordGroup = Literal["ranking", "grammar", "subject", "reporting", "weak"]
LANGUAGES = ("en", "de", "es", "ru", "zh", "fr")  # with rules; the others have words alone
ALL_LANGUAGES = (*LANGUAGES, "pt", "ja", "ko")
LONGEST_STEMMED = 40
MAX_TYPED = 16  # words that a list is searched by
LONGEST_START = 12  # letters of a word that it is found by while it is typed
ENDINGS = ("", "e", "s", "es", "y", "ly", "d", "ed", "g", "ng", "ing", "n", "on", "ion", "r", "er")
MAX_STEMS = 65_536  # kept in memory
MAX_SENTENCE_CHARS = 400
MAX_CLAUSE_CHARS = 320
PASSAGE_CHARS = 1_000
HIDDEN = "\ufffc"  # stands for a quoted letter

_FENCED = Pattern(r"(?s)(?:```|~~~).*?(?:```|~~~|\z)")
_CAPTION = Pattern(r"\[image:[^\]\n]*\]|!\[[^\]\n]*\]\([^)\n]*\)")
_BULLET = re.compile(r"\s*(?:[-*•–·]\s+|\(?\d{1,2}[.)、]\s*(?=\D)|[a-z]\)\s+)")
# Quotes, tables, headings, prompts, logs and code are pasted, not said.
_PASTED = Pattern(
    r"\s*(?:>|\||#+\s|\$ |>>> |\d{4}-\d\d-\d\d[T ]\d\d:|\[\d|at \w+[.(]|File \"|Traceback"
    r"|(?:def|class|import|from|const|let|var|return|function|public|SELECT|INSERT|UPDATE)\s\S+"
    r"\s*(?:[=({:;*,]|import|FROM|SET)|//|/\*|</?\w+[ >]|(?:From|To|Subject|Sent|Date|Von|An"
    r"|Betreff|De|Para|Asunto|À|Objet|От|Кому|Тема|发件人|收件人|主题)\s?[:：]\s)"
)
_INTRODUCED = Pattern(r"(?P<span>[:：][ \t]*\n\s*)\S")
_CODE_END = Pattern(r"[{};]\s*$|=>|\)\s*:\s*$|^\s{4,}\S+\s*=")
_SPEAKER = Pattern(r"(?P<span>\s*\[?\p{L}[\w .]{0,20}\]?\s?[:：])\s*\S")
# Each run of marks is looked at once, so that these take linear time, and far less than RE2.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)]*+(?=\s|$)|[。！？…]++[”」』）]*+|\n")
_CLAUSE_END = re.compile(
    r"(?<![.!?…;])[.!?…;]++[\"'”’»)\]]*+(?=\s)|[。！？；।॥؟۔]++[”」』）]*+|\n++"
)
_LAST_WORD = re.compile(r"(\S{1,20})$")
_INITIAL_OR_ORDINAL = re.compile(r"(?:^|\W)(?:[^\W\d_]|\d{1,2})$")
_QUOTED = Pattern(r"\"[^\"\n]+\"|“[^“”\n]+”|«[^«»\n]+»|„[^„“”\n]+[“”]|「[^「」\n]+」")
_PAUSES = ("\n\n", "\n", ". ", "? ", "! ", "。", " ")
_lock = fork_safe(threading.Lock())  # a stemmer is not safe for use by two threads


def without_pasted(text: str) -> str:
    """What a person writes themselves: without code, quotes, tables, logs and captions."""
    text = _CAPTION.sub(" ", _FENCED.sub("\n", text))
    if (pasted := _INTRODUCED.search(text)) and not _BULLET.match(text[pasted.end() :]):
        text = text[: pasted.start()]
    lines = text.split("\n")
    written = [line for line in lines if not _PASTED.match(line) and not _CODE_END.search(line)]
    if len({label[0] for line in written if (label := _SPEAKER.match(line))}) > 1:
        written = [line for line in written if not _SPEAKER.match(line)]  # a pasted chat or form
    return "\n".join(written)


def hide_quotes(text: str, own: Pattern) -> str:
    """Blank what others are quoted with, letter for letter; a title in quotes stays."""

    def hidden(quote: PatternMatch) -> str:
        is_title = len(quote[0]) < 60 and not own.search(quote[0])
        return quote[0] if is_title else HIDDEN * len(quote[0])

    return _QUOTED.sub(hidden, text)


def sentences(text: str, abbreviations: Set[str] = frozenset()) -> Iterator[str]:
    """The sentences of a text, trimmed; those longer than anyone speaks are left out."""

    def goes_on(stop: int) -> bool:
        """Whether a full stop ends no sentence, but an abbreviation or an initial."""
        if not (last := _LAST_WORD.search(text, max(0, stop - 20), stop)):
            return False
        word = last[1].lower().lstrip("(\"'“„«")
        return word + "." in abbreviations or (len(word) == 1 and word.isalpha() and word != "i")

    ends = (
        end.end()
        for end in _SENTENCE_END.finditer(text)
        if not (end[0].startswith(".") and goes_on(end.start()))
    )
    for piece in _cut_at(text, ends):
        if bullet := _BULLET.match(piece):
            piece = piece[bullet.end() :]
        piece = piece.strip(" \t\r\n*_")
        if len(piece) <= MAX_SENTENCE_CHARS and any(map(str.isalpha, piece)):
            yield piece


def clauses(text: str) -> Iterator[str]:
    """The sentences and longer clauses of a text in any script, without code; long ones cut."""
    if "```" in text or "~~~" in text:
        text = _FENCED.sub("\n", text)
    ends = (
        end.end()
        for end in _CLAUSE_END.finditer(text)
        if end[0] != "."
        or not _INITIAL_OR_ORDINAL.search(text, max(0, end.start() - 3), end.start())
    )
    for piece in _cut_at(text, ends):
        if any(map(str.isalnum, piece := cut(piece, MAX_CLAUSE_CHARS))):
            yield piece


def _cut_at(text: str, ends: Iterator[int]) -> Iterator[str]:
    start = 0
    for end in ends:
        yield text[start:end]
        start = end
    yield text[start:]


def cut(text: str, max_chars: int) -> str:
    """The beginning of a text, up to a word's end where there are words, with an ellipsis."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    space = head.rfind(" ", max_chars // 2)
    return f"{head[:space] if space > 0 else head}…"


def passages(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Start and end of each passage of a text: as long as an embedder takes, cut at pauses.

    All but the last stay as they are when the text grows: from a passage's `start` on, it is cut
    as it would be as a whole.
    """
    spans = []
    while len(text) - start > PASSAGE_CHARS:
        # Cut after the last paragraph, line, sentence or word in the second half.
        half, stop = start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS
        pauses = ((text.rfind(mark, half, stop), len(mark)) for mark in _PAUSES)
        stop = next((place + length for place, length in pauses if place > 0), stop)
        spans.append((start, stop))
        start = stop
    spans.append((start, len(text)))
    return spans


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
    names: list[str] = data("shared", "predicates")["single_valued"]
    return frozenset(" ".join(fold(name).split()) for name in names)


def is_single_valued(predicate: str) -> bool:
    """Whether a subject has one object of this predicate at a time, however it is spelled."""
    plain = " ".join(fold(predicate).split())
    return plain in single_valued_predicates() or plain.startswith(("favourite ", "favorite "))


@cache
def _russian_stemmer() -> Callable[[str], str]:
    from snowballstemmer import stemmer  # here, so that `import memorist` stays light

    stem_word: Callable[[str], str] = stemmer("russian").stemWord
    return stem_word


class _Stems(dict[str, str]):
    """The stems computed so far: faster than `lru_cache`, and most words are found here."""

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
    if word.isascii():
        return english_stem(word)
    if not "\u0400" <= word[0] <= "\u04ff":
        return word
    with _lock:
        return _russian_stemmer()(word)


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


def search_terms(text: str) -> tuple[list[str], list[str]]:
    """The stems of what is typed, and the forms of its last word, which may go on.

    The first form is the beginning of the word; the others are stems that it may come to: "runni"
    may become "running", whose stem is "run". One letter alone begins too many words to count.
    """
    words = fold(text).split()[:MAX_TYPED]
    if not words or UNSPACED.match(words[-1]):
        return stems(" ".join(words)), []
    last = words.pop()
    grown = {stem(last + ending) for ending in ENDINGS}
    others = sorted(it for it in grown if not it.startswith(last))
    return stems(" ".join(words)), [last, *others] if len(last) > 1 else []


def beginnings(words: Iterable[str]) -> set[str]:
    """The beginnings that some stems are found by while they are typed."""
    lengths = range(2, LONGEST_START + 1)
    return {word[:size] for word in words for size in lengths if size <= len(word)}


def term_stem(term: Sequence[str]) -> str:
    """The indexed form of a search term: a word, or several ideographs in a row."""
    return stem(term[0]) if len(term) == 1 else "".join(term)


def synonyms_of(word: str) -> list[tuple[str, float]]:
    """Stems of similar words, each with its cosine up to 1; none for a word that is not known."""
    pairs = (pair.split(":") for pair in _synonym_lines().get(word, "").split())
    return [(stem, float(cosine)) for stem, cosine in pairs]


@cache
def _synonym_lines() -> dict[str, str]:
    """The synonyms of each word as text; none if memorist-minilm is not installed."""
    try:
        text = (minilm_folder() / "kin.txt").read_text(encoding="utf-8")
    except (ProviderError, OSError, UnicodeError):
        return {}
    return {word: pairs for word, _, pairs in (line.partition(" ") for line in text.splitlines())}


def minilm_folder() -> Path:
    """The folder with the files of memorist-minilm; `ProviderError` if it is not installed."""
    try:
        import memorist_minilm
    except ImportError:
        cure = "pip install memorist-minilm"
        raise ProviderError(f"the weights of the local embedder are missing: {cure}") from None
    folder = memorist_minilm.data_folder()
    if not (folder / "weights.bin").is_file():
        cure = "pip install --force-reinstall memorist-minilm"
        raise ProviderError(f"memorist-minilm is installed without its weights: {cure}")
    return folder
