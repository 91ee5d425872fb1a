"""Sentences: what a person says in a message, without what they paste into it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

MAX_SENTENCE_CHARS = 400

_FENCED = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_CAPTION = re.compile(r"\[image:[^\]\n]*\]|!\[[^\]\n]*\]\([^)\n]*\)")
_BULLET = re.compile(r"\s*(?:[-*•–·]\s+|\(?\d{1,2}[.)、]\s*(?=\D)|[a-z]\)\s+)")
# Quotes, tables, headings, prompts, logs and code are pasted, not said.
_PASTED = re.compile(
    r"\s*(?:>|\||#+\s|\$ |>>> |\d{4}-\d\d-\d\d[T ]\d\d:|\[\d|at \w+[.(]|File \"|Traceback"
    r"|(?:def|class|import|from|const|let|var|return|function|public|SELECT|INSERT|UPDATE)\s\S+"
    r"\s*(?:[=({:;*,]|import|FROM|SET)|//|/\*|</?\w+[ >]|(?:From|To|Subject|Sent|Date|Von|An"
    r"|Betreff|De|Para|Asunto|От|Кому|Тема|发件人|收件人|主题)\s?[:：]\s)"
)
_INTRODUCED = re.compile(r"[:：][ \t]*\n\s*(?=\S)")
_CODE_END = re.compile(r"[{};]\s*$|=>|\)\s*:\s*$|^\s{4,}\S+\s*=")
_SPEAKER = re.compile(r"\s*\[?[^\W\d_][\w .]{0,20}\]?\s?[:：](?=\s*\S)")
_END = re.compile(r"[.!?…]+[\"'”’»)]*(?=\s|$)|[。！？…]+[”」』）]*|\n")
_LAST_WORD = re.compile(r"(\S{1,20})$")
_QUOTED = re.compile(
    r"\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|„[^“”\n]{1,600}[“”]|「[^」\n]{1,600}」"
)
HIDDEN = "\ufffc"


def said(text: str) -> str:
    """The text without code, quotes, tables, logs and captions."""
    text = _CAPTION.sub(" ", _FENCED.sub("\n", text))
    if (pasted := _INTRODUCED.search(text)) and not _BULLET.match(text, pasted.end()):
        text = text[: pasted.start()]
    lines = text.split("\n")
    spoken = [line for line in lines if not _PASTED.match(line) and not _CODE_END.search(line)]
    if len({found[0] for line in spoken if (found := _SPEAKER.match(line))}) > 1:
        spoken = [line for line in spoken if not _SPEAKER.match(line)]  # a pasted talk or form
    return "\n".join(spoken)


def split(text: str, abbreviations: Set[str] = frozenset()) -> Iterator[str]:
    """The sentences of a text, trimmed; those longer than anyone speaks are left out."""
    start = 0
    for end in _END.finditer(text):
        if end[0].startswith(".") and _goes_on(text, end.start(), abbreviations):
            continue
        yield from _trimmed(text[start : end.end()])
        start = end.end()
    yield from _trimmed(text[start:])


def hide_quotes(text: str, own: re.Pattern[str]) -> str:
    """Blank what others are quoted with, letter for letter; a title in quotes stays."""

    def hidden(quote: re.Match[str]) -> str:
        titled = len(quote[0]) < 60 and not own.search(quote[0])
        return quote[0] if titled else HIDDEN * len(quote[0])

    return _QUOTED.sub(hidden, text)


def _goes_on(text: str, stop: int, abbreviations: Set[str]) -> bool:
    """Whether a full stop ends no sentence, but an abbreviation, an initial or an ordinal."""
    if not (found := _LAST_WORD.search(text, max(0, stop - 20), stop)):
        return False
    word = found[1].lower().lstrip("(\"'“„«")
    return word + "." in abbreviations or (len(word) == 1 and word.isalpha() and word != "i")


def _trimmed(piece: str) -> Iterator[str]:
    if bullet := _BULLET.match(piece):
        piece = piece[bullet.end() :]
    piece = piece.strip(" \t\r\n*_")
    if len(piece) <= MAX_SENTENCE_CHARS and any(map(str.isalpha, piece)):
        yield piece
