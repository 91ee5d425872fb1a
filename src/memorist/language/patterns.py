r"""Regular expressions of which each search takes time linear in the text, by RE2.

`finditer` does too unless what fails reaches past the next match; `test_growth.py` looks for that.
They are written in RE2's syntax, with these differences:

- `\w` and `\s`, and outside of brackets `\W` and `\S`, know all scripts, by ranges that are few, so
  that patterns stay small; `\d` and `\b` know ASCII alone.
- A lookaround is a check after the match: where it fails, the search goes on one character later.
  It does not make the engine look for a shorter or a longer match.
- A group named `span` says where the match starts and ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import re2

from memorist.forks import ProcessPart, forked_alone, lazy_property

_SETS = {
    "w": r"0-9A-Z_a-z\x{aa}\x{b5}\x{ba}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1fff}\x{2c00}-\x{2dff}"
    r"\x{3005}-\x{3007}\x{3021}-\x{fdff}\x{fe70}-\x{fefc}\x{ff10}-\x{ff19}\x{ff21}-\x{ff3a}"
    r"\x{ff41}-\x{ff5a}\x{ff66}-\x{ffdc}\x{10000}-\x{1efff}\x{20000}-\x{3ffff}",
    "s": r"\s\x{b}\x{85}\x{a0}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{3000}",
}
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
# What a pattern is made of; a bracket that a class begins with is one of its characters.
_OUTSIDE = re.compile(r"\\u.{4}|\\.?|\(\?<?[=!]|\[\^?\]?|[()]|[^\\()[]+", re.DOTALL)
_IN_CLASS = re.compile(r"\\u.{4}|\\.?|\]|[^]\\]+", re.DOTALL)
_ESCAPES = re.compile(r"\\u.{4}|\\.", re.DOTALL)
_ESCAPES_AND_CLASSES = re.compile(rf"{_ESCAPES.pattern}|\[\^?\]?(?:\\.|[^]\\])*\]", re.DOTALL)
_BEHIND_BYTES = 80  # that a lookbehind sees
_MAX_MEMORY = 64 << 20  # of one compiled pattern; what is not needed is not taken


class _Check(NamedTuple):
    """A lookaround: the number of the empty group at its place, and what is expected there."""

    group: int
    pattern: Pattern
    behind: bool
    negative: bool

    def passes(self, data: bytes, place: int) -> bool:
        if place < 0:  # in an alternative that was not taken
            return True
        if self.behind:
            found = self.pattern.find(data[max(0, place - _BEHIND_BYTES) : place])
        else:
            found = self.pattern.find(data, place, anchored=True)
        return bool(found) != self.negative


class PatternMatch:
    """Where a pattern matches a text; groups are named or numbered, "" if they took no part."""

    __slots__ = ("_data", "_found", "_groups", "_origin", "_text")

    def __init__(
        self, text: str, data: bytes, found: Any, groups: dict[str, int], origin: tuple[int, int]
    ) -> None:
        self._text, self._data, self._found, self._groups = text, data, found, groups
        self._origin = origin  # a place before the match, in bytes and in characters

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Start and end of a group; (-1, -1) if it took no part."""
        number = self._groups[group] if isinstance(group, str) else group
        first, last = self._found.span(number) if number else _whole_span(self._found, self._groups)
        if first < 0 or len(self._data) == len(self._text):
            return first, last
        place, chars = self._origin
        start = chars + len(self._data[place:first].decode())
        return start, start + len(self._data[first:last].decode())

    def start(self, group: int | str = 0) -> int:
        """Where a group starts."""
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        """Where a group ends."""
        return self.span(group)[1]

    def __getitem__(self, group: int | str) -> str:
        start, end = self.span(group)
        return self._text[start:end] if start >= 0 else ""

    def groupdict(self) -> dict[str, str]:
        """What each named group matches."""
        return {name: self[name] for name in self._groups}


class _Compiled(ProcessPart):
    """What RE2 compiled, as `_regex`; a forked child compiles it anew if its parent had threads.

    RE2 lets other threads run while it matches, and has locks of its own.
    """

    _lost: ClassVar[list[Any]] = []  # kept: deleting what was in use at the fork might crash

    def after_fork(self, *, in_child: bool) -> None:
        if in_child and not forked_alone() and "_regex" in self.__dict__:
            self._lost.append(self.__dict__.pop("_regex"))
            re2.purge()  # its cache of patterns


class Pattern(_Compiled):
    """A regular expression, compiled when it is first needed."""

    def __init__(self, written: str, *, ignore_case: bool = False) -> None:
        pattern, self._looks = _without_looks(written)
        self.written = written
        self.translated = _ESCAPES_AND_CLASSES.sub(_translated, pattern)  # in RE2's own syntax
        self.options = re2.Options()
        self.options.case_sensitive = not ignore_case
        self.options.log_errors = False
        self.options.max_mem = _MAX_MEMORY
        self.watch_process()

    @lazy_property
    def _regex(self) -> Any:
        return re2.compile(self.translated, self.options)

    @lazy_property
    def _groups(self) -> dict[str, int]:
        return {name: n for name, n in self._regex.groupindex.items() if name not in self._looks}

    @lazy_property
    def _checks(self) -> list[_Check]:
        ignore_case = not self.options.case_sensitive
        return [
            _Check(
                self._regex.groupindex[name],
                Pattern(rf"(?:{inner})\z" if "<" in look else inner, ignore_case=ignore_case),
                behind="<" in look,
                negative="!" in look,
            )
            for name, (look, inner) in self._looks.items()
        ]

    def search(self, text: str) -> PatternMatch | None:
        """The first match."""
        return self._first(text, anchored=False)

    def match(self, text: str) -> PatternMatch | None:
        """The match that the text begins with."""
        return self._first(text, anchored=True)

    def _first(self, text: str, *, anchored: bool) -> PatternMatch | None:
        data = text.encode(errors="replace")
        found = self.find(data, anchored=anchored)
        return PatternMatch(text, data, found, self._groups, (0, 0)) if found else None

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Every match, in order; none overlap."""
        data = text.encode(errors="replace")
        origin, place = (0, 0), 0
        while found := self.find(data, place):
            match = PatternMatch(text, data, found, self._groups, origin)
            yield match
            first, last = _whole_span(found, self._groups)
            origin = last, match.end()
            place = last if last > first else _next(data, last)

    def findall(self, text: str) -> list[str]:
        """What every match matches."""
        return [match[0] for match in self.finditer(text)]

    def sub(self, replacement: str | Callable[[PatternMatch], str], text: str) -> str:
        """The text with every match replaced."""
        pieces, end = [], 0
        for match in self.finditer(text):
            start, stop = match.span()
            new = replacement if isinstance(replacement, str) else replacement(match)
            pieces += [text[end:start], new]
            end = stop
        return "".join([*pieces, text[end:]])

    def find(self, data: bytes, place: int = 0, *, anchored: bool = False) -> Any:
        """RE2's first match in UTF-8, from a place on or, if `anchored`, at it."""
        find = self._regex.match if anchored else self._regex.search
        while place <= len(data) and (found := find(data, place)):
            if all(check.passes(data, found.start(check.group)) for check in self._checks):
                return found
            if anchored:
                return None
            place = _next(data, found.start())
        return None


class PatternSet(_Compiled):
    """Many patterns that are looked for in one pass."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = list(patterns)
        self.watch_process()

    @lazy_property
    def _regex(self) -> Any:
        together = re2.Filter()
        for pattern in self._patterns:
            together.Add(pattern.translated, pattern.options)
        together.Compile()
        return together

    def numbers(self, text: str) -> list[int]:
        """The numbers of the patterns that match a text but for their lookarounds, in order."""
        return sorted(self._regex.Match(text.encode(errors="replace")) or ())

    def search(self, text: str) -> Iterator[tuple[int, PatternMatch]]:
        """The first match of each pattern that matches, with the pattern's number, in order."""
        for number in self.numbers(text):
            if match := self._patterns[number].search(text):
                yield number, match


def _whole_span(found: Any, groups: dict[str, int]) -> tuple[int, int]:
    first, last = found.span(groups.get("span", 0))
    return (first, last) if first >= 0 else found.span()


def _next(data: bytes, place: int) -> int:
    """Where the next character begins."""
    place += 1
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def escape(text: str) -> str:
    """A pattern that matches just this text."""
    return str(re2.escape(text))


def _without_looks(pattern: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """The pattern with an empty group in the place of each lookaround, and those."""
    if not any(look in pattern for look in _LOOKS):
        return pattern, {}
    pieces: list[str] = []
    looks: dict[str, tuple[str, str]] = {}
    start = 0
    tokens = list(_tokens(pattern))
    for place, token, depth in tokens:
        if place < start or token not in _LOOKS:
            continue
        closing = (at for at, *other in tokens if at > place and other == [")", depth])
        end = next(closing)
        name = f"look{len(looks)}"
        looks[name] = (token, pattern[place + len(token) : end])
        pieces += [pattern[start:place], f"(?P<{name}>)"]
        start = end + 1
    return "".join([*pieces, pattern[start:]]), looks


def _translated(found: re.Match[str]) -> str:
    """An escape in RE2's own syntax, or a class in brackets with all that it holds."""
    token = found[0]
    if token[0] == "[":
        return _ESCAPES.sub(_translated_in_class, token)
    if token[1] in "WS":
        return f"[^{_SETS[token[1].lower()]}]"
    return f"[{_SETS[token[1]]}]" if token[1] in "ws" else _translated_in_class(found)


def _translated_in_class(found: re.Match[str]) -> str:
    token = found[0]
    if token[1] in "WS":
        raise ValueError(rf"{token} inside of brackets: write out what is meant")
    if token[1] == "u":
        return rf"\x{{{token[2:]}}}"
    return _SETS.get(token[1], token)


def _tokens(pattern: str) -> Iterator[tuple[int, str, int]]:
    """The escapes, brackets, groups and other text of a pattern, with their place and depth."""
    depth, in_class = 0, False
    place = 0
    while found := (_IN_CLASS if in_class else _OUTSIDE).match(pattern, place):
        token = found[0]
        in_class = token[0] == "[" or (in_class and token != "]")
        depth += token[0] == "(" and not in_class
        yield place, token, -1 if in_class else depth
        depth -= token == ")" and not in_class
        place = found.end()
