"""Dates as people write them, resolved against the moment of writing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from memorist.language.lexicon import codes_of, dates_of, lines_of, plain

MONTHS = (
    "January February March April May June July August September October November December"
).split()
_LOOK_AT_CHARS = 2_000
_ISO = r"(?P<year>(?:19|20)\d\d)-(?P<mon>\d{1,2})-(?P<day>\d{1,2})"
_PART = re.compile(r"\{([a-z_]+)\}")
_DAY = timedelta(days=1)


class DateSpan(NamedTuple):
    """A day, week, month or year from `start` to before `end`, and its name as `text`.

    `relative` if it depends on the moment of writing; `place` is its position in the text.
    """

    start: datetime
    end: datetime
    text: str
    relative: bool
    place: tuple[int, int]


def resolve(text: str, moment: datetime, lean: int = 0) -> DateSpan | None:
    """The first date that a text names, or None.

    `lean` says which May "in May" means: below 0 the last one, above 0 the next one; at 0 a date
    without its year is left out.
    """
    return next(iter(find_dates(text, moment, lean)), None)


def find_dates(text: str, moment: datetime, lean: int = 0) -> list[DateSpan]:
    """Every date that a text names, in order."""
    start = plain(text[:_LOOK_AT_CHARS])
    forms = (form for code in codes_of(start) for form in _forms(code))
    spans = [span for form in forms for span in _spans(form, start, moment, lean)]
    spans.sort(key=lambda span: (span.place[0], -span.place[1]))
    longest: list[DateSpan] = []
    for span in spans:  # the longest of those that overlap: "3 May 2020", not "May 2020"
        if not longest or span.place[0] >= longest[-1].place[1]:
            longest.append(span)
    return longest


def time_asked_about(question: str, now: datetime) -> tuple[datetime, datetime] | None:
    """From the first to the last past time that a question names: "last May", "a week ago"."""
    past = [span for span in find_dates(question, now, lean=-1) if span.start <= now]
    if not past:
        return None
    return min(span.start for span in past), max(span.end for span in past)


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    means: str
    words: Mapping[str, Mapping[str, int]]  # by the group of the pattern


def _spans(form: _Form, text: str, moment: datetime, lean: int) -> Iterator[DateSpan]:
    for match in form.pattern.finditer(text):
        groups = {name: value for name, value in match.groupdict().items() if value}
        numbers = {name: _number(value, form.words.get(name, {})) for name, value in groups.items()}
        try:
            if span := _MEANINGS[form.means.split()[0]](form.means, numbers, moment.date(), lean):
                yield DateSpan(*span, match.span())
        except (ValueError, OverflowError):  # 31 June; the year 12,000
            continue


def _number(word: str, words: Mapping[str, int]) -> int:
    return int(word) if word.isdecimal() else words[" ".join(word.lower().split())]


@cache
def _forms(code: str) -> tuple[_Form, ...]:
    """The ways in which a language writes dates."""
    iso = re.compile(rf"(?<![\w-]){_ISO}(?![\w-])")
    return (_Form(iso, "date", {}), *_own_forms(code))


def _own_forms(code: str) -> Iterator[_Form]:
    data: Mapping[str, Any] = dates_of(code)
    words = {
        "month": _numbered(data["months"], first=1),
        "weekday": _numbered(data["weekdays"], first=0),
        "count": _numbered(data["counts"], first=1),
        "unit": _numbered([data[unit] for unit in _UNITS], first=0),
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
    for means, patterns in data["forms"].items():
        for pattern in lines_of(patterns):
            filled = _PART.sub(lambda part: parts[part[1]], plain(pattern))
            edged = rf"(?<!\w)(?:{filled})(?!\w)" if data["spaced"] else filled
            yield _Form(re.compile(edged, re.IGNORECASE), means, words)


_UNITS = ("day", "week", "month", "year")


def _numbered(lines: list[str], first: int) -> dict[str, int]:
    """Each word with the number of its line; `_` stands for a space."""
    return {
        plain(word).replace("_", " "): number
        for number, line in enumerate(lines, start=first)
        for word in line.split()
    }


def _either(words: Mapping[str, int]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_Found = tuple[datetime, datetime, str, bool]


def _offset(means: str, _: Mapping[str, int], today: date, lean: int) -> _Found:
    """A fixed word: "offset day -1" is yesterday."""
    unit, count = means.split()[1:]
    return _moved(today, _UNITS.index(unit), int(count))


def _ago(_: str, parts: Mapping[str, int], today: date, lean: int) -> _Found:
    return _moved(today, parts["unit"], -parts["count"])


def _ahead(_: str, parts: Mapping[str, int], today: date, lean: int) -> _Found:
    return _moved(today, parts["unit"], parts["count"])


def _moved(today: date, unit: int, count: int) -> _Found:
    if unit == 0:
        return _one_day(today + count * _DAY)
    if unit == 1:
        return _one_week(today + 7 * count * _DAY)
    if unit == 2:
        months = today.year * 12 + today.month - 1 + count
        return _one_month(months // 12, months % 12 + 1)
    return _one_year(today.year + count)


def _weekday(means: str, parts: Mapping[str, int], today: date, lean: int) -> _Found | None:
    """ "Last Friday" is the latest one, "next Friday" next week's, "on Friday" by `lean`."""
    which = means.split()[1] if " " in means else ("", "coming", "last")[lean]
    monday = today - today.weekday() * _DAY
    if which in ("week-1", "week+0", "week+1", "next"):
        weeks = 1 if which == "next" else int(which[4:])
        return _one_day(monday + (7 * weeks + parts["weekday"]) * _DAY)
    if which == "last":
        return _one_day(today - ((today.weekday() - parts["weekday"] - 1) % 7 + 1) * _DAY)
    if which == "coming":
        return _one_day(today + ((parts["weekday"] - today.weekday() - 1) % 7 + 1) * _DAY)
    return None


def _weekend(means: str, _: Mapping[str, int], today: date, lean: int) -> _Found:
    saturday = today + (5 - today.weekday() + 7 * int(means.split()[1])) * _DAY
    return *_from_to(saturday, saturday + 2 * _DAY), f"weekend of {_day_text(saturday)}", True


def _month(means: str, parts: Mapping[str, int], today: date, lean: int) -> _Found | None:
    """ "In May", "last May", "in May 2020", "next year in May"."""
    month = parts.get("month") or parts["mon"]
    if "year" in parts:
        return _one_month(parts["year"], month, relative=False)
    words = means.split()
    if words[-1].lstrip("+-").isdigit():
        return _one_month(today.year + int(words[-1]), month)
    lean = {"last": -1, "next": 1}.get(words[-1], lean)
    if lean == 0:
        return None
    passed = month < today.month or (month == today.month and lean < 0 and len(words) == 1)
    return _one_month(today.year + _turn(passed, lean), month)


def _turn(passed: bool, lean: int) -> int:
    """How many years away a month without its year is."""
    if lean < 0:
        return 0 if passed else -1
    return 1 if passed else 0


def _date(_: str, parts: Mapping[str, int], today: date, lean: int) -> _Found | None:
    """ "5 May 2020", or "5 May" of the last or next year by `lean`."""
    month = parts.get("month") or parts["mon"]
    if "year" in parts:
        return _one_day(date(parts["year"], month, parts["day"]), relative=False)
    if lean == 0:
        return None
    this = date(today.year, month, parts["day"])
    if lean < 0:
        return _one_day(this if this <= today else this.replace(year=today.year - 1))
    return _one_day(this if this >= today else this.replace(year=today.year + 1))


def _year(_: str, parts: Mapping[str, int], today: date, lean: int) -> _Found:
    return _one_year(parts["year"], relative=False)


def _one_day(day: date, relative: bool = True) -> _Found:
    return *_from_to(day, day + _DAY), _day_text(day), relative


def _one_week(day: date) -> _Found:
    monday = day - day.weekday() * _DAY
    return *_from_to(monday, monday + 7 * _DAY), f"week of {_day_text(monday)}", True


def _one_month(year: int, month: int, relative: bool = True) -> _Found:
    start = date(year, month, 1)
    after = date(year + month // 12, month % 12 + 1, 1)
    return *_from_to(start, after), f"{MONTHS[month - 1]} {year}", relative


def _one_year(year: int, relative: bool = True) -> _Found:
    return *_from_to(date(year, 1, 1), date(year + 1, 1, 1)), str(year), relative


def _day_text(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _from_to(start: date, end: date) -> tuple[datetime, datetime]:
    midnight = datetime.min.time()
    return datetime.combine(start, midnight, UTC), datetime.combine(end, midnight, UTC)


_MEANINGS: Mapping[str, Callable[[str, Mapping[str, int], date, int], _Found | None]] = {
    "offset": _offset,
    "ago": _ago,
    "ahead": _ahead,
    "weekday": _weekday,
    "weekend": _weekend,
    "month": _month,
    "date": _date,
    "year": _year,
}
