"""Dates as people write them, resolved against the moment of writing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple

from memorist.language.lexicon import codes_of, lines_of, plain, whole_words
from memorist.language.patterns import Pattern, PatternSet, escape
from memorist.language.text import data

MONTHS = (
    "January February March April May June July August September October November December"
).split()
_LOOK_AT_CHARS = 2_000
_ISO = r"(?P<year>(?:19|20)\d\d)-(?P<mon>\d{1,2})-(?P<day>\d{1,2})"
_PART = re.compile(r"\{([a-z_]+)\}")
_DAY = timedelta(days=1)
_BETWEEN = re.compile(r"[\s,(]|\b(?:the|den|der|dem|el|le)\b")
_LONGEST_MONTH = 31
_UNITS = ("day", "week", "month", "year")
_Found = tuple[datetime, datetime, str, bool]


class DateSpan(NamedTuple):
    """A day, week, month or year from `start` to before `end`, and its name as `text`."""

    start: datetime
    end: datetime
    text: str
    relative: bool  # whether it depends on the moment of writing
    place: tuple[int, int]  # in the text


def resolve(text: str, moment: datetime, lean: int = 0) -> DateSpan | None:
    """The first date that a text names, or None.

    `lean` says which May "in May" means: below 0 the last one, above 0 the next one; at 0 a date
    without its year is left out.
    """
    return next(iter(find_dates(text, moment, lean)), None)


def dated(text: str, spans: Sequence[DateSpan]) -> str:
    """A text, followed by the dates that its relative ones such as "yesterday" mean."""
    dates = dict.fromkeys(span.text for span in spans if span.relative)
    return f"{text} [{'; '.join(dates)}]" if dates else text


def find_dates(text: str, moment: datetime, lean: int = 0) -> list[DateSpan]:
    """Every date that a text names, in order."""
    start = plain(text[:_LOOK_AT_CHARS])
    spans: list[DateSpan] = []
    for code in codes_of(start):
        forms, form_set = _forms(code)
        for number in form_set.numbers(start):
            spans += _spans(forms[number], start, moment, lean)
    spans.sort(key=lambda span: (span.place[0], -span.place[1]))
    longest: list[DateSpan] = []
    for span in spans:  # the longest of those that overlap: "3 May 2020", not "May 2020"
        if not longest or span.place[0] >= longest[-1].place[1]:
            if longest and _is_weekday_of(longest[-1], span, start):
                span = span._replace(place=(longest.pop().place[0], span.place[1]))
            longest.append(span)
    return longest


def _is_weekday_of(one: DateSpan, other: DateSpan, text: str) -> bool:
    """Whether a day of the week stands before its date: "Thursday, 9 April"."""
    are_days = all(span.end - span.start == _DAY for span in (one, other))
    is_same = are_days and one.start.weekday() == other.start.weekday()
    return is_same and not _BETWEEN.sub("", text[one.place[1] : other.place[0]])


def time_asked_about(question: str, now: datetime) -> tuple[datetime, datetime] | None:
    """From the first to the last past time that a question names: "last May", "a week ago"."""
    past = [span for span in find_dates(question, now, lean=-1) if span.start <= now]
    if not past:
        return None
    return min(span.start for span in past), max(span.end for span in past)


class _Form(NamedTuple):
    pattern: Pattern
    means: str
    words: Mapping[str, Mapping[str, int]]  # by the group of the pattern


def _spans(form: _Form, text: str, moment: datetime, lean: int) -> Iterator[DateSpan]:
    for match in form.pattern.finditer(text):
        parts = match.groupdict().items()
        groups = {name: value for name, value in parts if value and name != "span"}
        numbers = {name: _number(value, form.words.get(name, {})) for name, value in groups.items()}
        try:
            if span := _meant(form.means, numbers, moment.date(), lean):
                yield DateSpan(*span, match.span())
        except (ValueError, OverflowError):  # 31 June; the year 12,000
            continue


def _number(word: str, words: Mapping[str, int]) -> int:
    return int(word) if word.isdecimal() else words[" ".join(word.lower().split())]


@cache
def _forms(code: str) -> tuple[list[_Form], PatternSet]:
    """The ways in which a language writes dates, and the set of their patterns."""
    rules = data(code, "rules")
    written = rules["dates"]
    forms = [_Form(Pattern(rf"(?<![\w-]){_ISO}(?![\w-])"), "date", {})]
    words = {
        "month": _numbered(written["months"], first=1),
        "weekday": _numbered(written["weekdays"], first=0),
        "count": _numbered(written["counts"], first=1),
        "unit": _numbered([written[unit] for unit in _UNITS], first=0),
    }
    parts = {
        "month": f"(?P<month>{_either(words['month'])})",
        "weekday": f"(?P<weekday>{_either(words['weekday'])})",
        "count": rf"(?P<count>\d{{1,3}}|{_either(words['count'])})",
        "unit": f"(?P<unit>{_either(words['unit'])})",
        "day": r"(?P<day>\d{1,2})",
        "mon": r"(?P<mon>\d{1,2})",
        "year": r"(?P<year>(?:19|20)\d\d)",
    }
    for means, patterns in written["forms"].items():
        for pattern in lines_of(patterns):
            filled = _PART.sub(lambda part: parts[part[1]], plain(pattern))
            edged = whole_words(f"(?P<span>{filled})") if rules.get("spaced", True) else filled
            forms.append(_Form(Pattern(edged, ignore_case=True), means, words))
    return forms, PatternSet(form.pattern for form in forms)


def _numbered(lines: list[str], first: int) -> dict[str, int]:
    """Each word with the number of its line; `_` stands for a space."""
    return {
        plain(word).replace("_", " "): number
        for number, line in enumerate(lines, start=first)
        for word in line.split()
    }


def _either(words: Mapping[str, int]) -> str:
    return "|".join(sorted(map(escape, words), key=len, reverse=True))


def _meant(means: str, parts: Mapping[str, int], today: date, lean: int) -> _Found | None:
    """The time that a form means: "offset day -1" is yesterday, whatever its words are."""
    match means.split():
        case ["offset", unit, count]:
            return _moved(today, _UNITS.index(unit), int(count))
        case ["ago"]:
            return _moved(today, parts["unit"], -parts["count"])
        case ["ahead"]:
            return _moved(today, parts["unit"], parts["count"])
        case ["weekend", weeks]:
            saturday = today + (5 - today.weekday() + 7 * int(weeks)) * _DAY
            return _span(saturday, saturday + 2 * _DAY, f"weekend of {_day_text(saturday)}")
        case ["weekday", *which]:
            return _weekday(which[0] if which else ("", "coming", "last")[lean], parts, today)
        case ["month", *which]:
            return _month(which, parts, today, lean)
        case ["year"]:
            return _one_year(parts["year"], relative=False)
        case ["day"]:
            return _day_of_month(parts["day"], today, lean)
        case ["day", count]:
            month = _moved(today, 2, int(count))[0]
            return _one_day(month.date().replace(day=parts["day"]))
        case ["feast", day, month]:
            return _date({"day": int(day), "month": int(month)}, today, lean)
        case _:
            pass
    return _date(parts, today, lean)


def _moved(today: date, unit: int, count: int) -> _Found:
    if unit == 0:
        return _one_day(today + count * _DAY)
    if unit == 1:
        monday = today + (7 * count - today.weekday()) * _DAY
        return _span(monday, monday + 7 * _DAY, f"week of {_day_text(monday)}")
    if unit == 2:
        months = today.year * 12 + today.month - 1 + count
        return _one_month(months // 12, months % 12 + 1)
    return _one_year(today.year + count)


def _weekday(which: str, parts: Mapping[str, int], today: date) -> _Found | None:
    """The latest ("last"), the coming one, or that of a week: "week-1", "next" is "week+1"."""
    ahead = parts["weekday"] - today.weekday()
    if which.startswith("week") or which == "next":
        weeks = 1 if which == "next" else int(which[4:])
        return _one_day(today + (7 * weeks + ahead) * _DAY)
    if which == "last":
        return _one_day(today - ((-ahead - 1) % 7 + 1) * _DAY)
    return _one_day(today + ((ahead - 1) % 7 + 1) * _DAY) if which == "coming" else None


def _month(which: list[str], parts: Mapping[str, int], today: date, lean: int) -> _Found | None:
    """ "In May", "last May", "since May", "in May 2020", "next year in May"."""
    month = parts.get("month") or parts["mon"]
    if "year" in parts:
        return _one_month(parts["year"], month, relative=False)
    if which and which[-1].lstrip("+-").isdigit():
        return _one_month(today.year + int(which[-1]), month)
    lean = {"last": -1, "since": -1, "next": 1}.get(which[-1], lean) if which else lean
    if lean == 0:
        return None
    counts_this = lean < 0 and which != ["last"]
    passed = month < today.month or (month == today.month and counts_this)
    return _one_month(today.year + passed - (lean < 0), month)


def _date(parts: Mapping[str, int], today: date, lean: int) -> _Found | None:
    """ "5 May 2020", or "5 May" of the last or next year by `lean`."""
    month = parts.get("month") or parts["mon"]
    if "year" in parts:
        return _one_day(date(parts["year"], month, parts["day"]), relative=False)
    if lean == 0:
        return None
    this = date(today.year, month, parts["day"])
    passed = this < today or (this == today and lean < 0)
    return _one_day(this.replace(year=today.year + passed - (lean < 0)))


def _day_of_month(day: int, today: date, lean: int) -> _Found | None:
    """ "The 21st": the last one or the next one by `lean`, in a month that has one."""
    if lean == 0 or not 1 <= day <= _LONGEST_MONTH:
        return None
    near = today if lean > 0 else today - _DAY
    while near.day != day:
        near += lean * _DAY
    return _one_day(near)


def _one_day(day: date, relative: bool = True) -> _Found:
    return _span(day, day + _DAY, _day_text(day), relative)


def _one_month(year: int, month: int, relative: bool = True) -> _Found:
    after = date(year + month // 12, month % 12 + 1, 1)
    return _span(date(year, month, 1), after, f"{MONTHS[month - 1]} {year}", relative)


def _one_year(year: int, relative: bool = True) -> _Found:
    return _span(date(year, 1, 1), date(year + 1, 1, 1), str(year), relative)


def _day_text(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _span(start: date, end: date, text: str, relative: bool = True) -> _Found:
    first, after = (datetime.combine(day, datetime.min.time(), UTC) for day in (start, end))
    return first, after, text, relative
