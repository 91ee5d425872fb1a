"""Cutting text: into sentences, clauses, or passages of a length that an embedder takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

MAX_SENTENCE_CHARS = 400
MAX_CLAUSE_CHARS = 320
PASSAGE_CHARS = 1_000
HIDDEN = "\ufffc"  # stands for a quoted letter

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
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)]*(?=\s|$)|[。！？…]+[”」』）]*|\n")
_CLAUSE_END = re.compile(r"(?<![.!?…;])[.!?…;]+[\"'”’»)\]]*(?=\s)|[。！？；।॥؟۔]+[”」』）]*|\n+")
_LAST_WORD = re.compile(r"(\S{1,20})$")
_INITIAL_OR_ORDINAL = re.compile(r"(?:^|\W)(?:[^\W\d_]|\d{1,2})$")
_QUOTED = re.compile(
    r"\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|„[^“”\n]{1,600}[“”]|「[^」\n]{1,600}」"
)
_PAUSES = ("\n\n", "\n", ". ", "? ", "! ", "。", " ")


def without_pasted(text: str) -> str:
    """What a person writes themselves: without code, quotes, tables, logs and captions."""
    text = _CAPTION.sub(" ", _FENCED.sub("\n", text))
    if (pasted := _INTRODUCED.search(text)) and not _BULLET.match(text, pasted.end()):
        text = text[: pasted.start()]
    lines = text.split("\n")
    written = [line for line in lines if not _PASTED.match(line) and not _CODE_END.search(line)]
    if len({label[0] for line in written if (label := _SPEAKER.match(line))}) > 1:
        written = [line for line in written if not _SPEAKER.match(line)]  # a pasted chat or form
    return "\n".join(written)


def hide_quotes(text: str, own: re.Pattern[str]) -> str:
    """Blank what others are quoted with, letter for letter; a title in quotes stays."""

    def hidden(quote: re.Match[str]) -> str:
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
    """The sentences and longer clauses of a text in any script, without its code.

    One that is too long is cut.
    """
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


def passages(text: str) -> list[tuple[int, int]]:
    """Start and end of each passage of a text: as long as an embedder takes, cut at pauses."""
    spans = []
    start = 0
    while len(text) - start > PASSAGE_CHARS:
        stop = start + _last_pause(text[start : start + PASSAGE_CHARS])
        spans.append((start, stop))
        start = stop
    spans.append((start, len(text)))
    return spans


def _last_pause(window: str) -> int:
    """Where to cut: after the last paragraph, line, sentence or word in the second half."""
    half = len(window) // 2
    for mark in _PAUSES:
        if (place := window.rfind(mark, half)) > 0:
            return place + len(mark)
    return len(window)
