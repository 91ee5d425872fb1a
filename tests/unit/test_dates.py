"""Dates are resolved against the moment they were said, as precisely as they were said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memorist.language.dates import find_dates, resolve

SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("I saw it yesterday", "14 November 2026"),
        ("I moved to Berlin last month", "October 2026"),
        ("we met last Friday", "13 November 2026"),
        ("the exam is next Friday", "20 November 2026"),
        ("that was 3 days ago", "12 November 2026"),
        ("two weeks ago", "week of 26 October 2026"),
        ("on 5 May 2019", "5 May 2019"),
        ("since 2020", "2020"),
        ("released 2024-02-29", "29 February 2024"),
        ("this weekend", "weekend of 14 November 2026"),
        ("два дня назад", "13 November 2026"),
        ("в прошлом году мы переехали", "2025"),
        ("下个月去东京", "December 2026"),
        ("上周五开会", "6 November 2026"),
        ("vor drei Wochen war ich dort", "week of 19 October 2026"),
        ("die Prüfung ist morgen früh", "16 November 2026"),
        ("la semana pasada estuve allí", "week of 2 November 2026"),
        ("hace dos años", "2024"),
        ("I moved last year in June", "June 2025"),
        ("I will marry next year in May", "May 2027"),
        ("去年六月", "June 2025"),
        ("I've been here since October", "October 2026"),
        ("I'm vegetarian since November", "November 2026"),
        ("I've lived here since December", "December 2025"),
        ("it is moved to Friday", "20 November 2026"),
        ("je suis végétarienne depuis janvier", "January 2026"),
        ("I'm moving on the 27th of this month", "27 November 2026"),
        ("the 3rd of next month", "3 December 2026"),
        ("am 27. dieses Monats", "27 November 2026"),
        ("am 3. nächsten Monats", "3 December 2026"),
        ("el 27 de este mes", "27 November 2026"),
        ("el 3 del mes que viene", "3 December 2026"),
        ("le 27 de ce mois", "27 November 2026"),
        ("le 3 du mois prochain", "3 December 2026"),
        ("27-го числа этого месяца", "27 November 2026"),
        ("3-го следующего месяца", "3 December 2026"),
        ("本月27号搬家", "27 November 2026"),
        ("下个月3号搬家", "3 December 2026"),
    ],
)
def test_a_date_is_resolved(said: str, meant: str) -> None:
    found = resolve(said, SUNDAY)
    assert found is not None
    assert found.text == meant


@pytest.mark.parametrize(
    ("said", "past", "future"),
    [
        ("I started in March", "March 2026", "March 2027"),
        ("on 20 December", "20 December 2025", "20 December 2026"),
        ("on Friday", "13 November 2026", "20 November 2026"),
        ("im Juni", "June 2026", "June 2027"),
        ("en junio", "June 2026", "June 2027"),
        ("в июне", "June 2026", "June 2027"),
        ("6月", "June 2026", "June 2027"),
        ("it is on the 10th now", "10 November 2026", "10 December 2026"),
        ("jetzt am 20.", "20 October 2026", "20 November 2026"),
        ("me la han cambiado al 22", "22 October 2026", "22 November 2026"),
        ("décalé au 10", "10 November 2026", "10 December 2026"),
        ("перенесли на 15-е", "15 October 2026", "15 November 2026"),
        ("改到20号了", "20 October 2026", "20 November 2026"),
        ("on the 31st", "31 October 2026", "31 December 2026"),
        ("here until christmas", "25 December 2025", "25 December 2026"),
    ],
)
def test_a_date_without_a_year_leans_as_its_sentence_does(
    said: str, past: str, future: str
) -> None:
    assert [span.text for span in find_dates(said, SUNDAY, lean=-1)] == [past]
    assert [span.text for span in find_dates(said, SUNDAY, lean=1)] == [future]
    assert resolve(said, SUNDAY) is None


def test_a_span_ends_where_the_next_one_begins() -> None:
    found = resolve("in December 2026", SUNDAY)
    assert found is not None
    assert found.start == datetime(2026, 12, 1, tzinfo=UTC)
    assert found.end == datetime(2027, 1, 1, tzinfo=UTC)
    assert not found.relative


@pytest.mark.parametrize(
    "said",
    [
        "I may go",
        "version 2.0.2019",
        "every Monday",
        "she wants it a week earlier",
        "on the 3rd floor",
        "den 2. Platz",
        "坐3号线",
        "from Monday to Friday",
        "",
    ],
)
def test_what_names_no_date_is_left_alone(said: str) -> None:
    assert find_dates(said, SUNDAY, lean=1) == []


def test_a_day_that_does_not_exist_is_no_day() -> None:
    assert [span.text for span in find_dates("on 31 June 2026", SUNDAY)] == ["June 2026"]


@pytest.mark.parametrize(
    "said",
    [
        "on Thursday 9th April at 2",
        "Thursday, 9 April",
        "on Thursday the 9th of April",
        "am Donnerstag, den 9. April",
        "el jueves 9 de abril",
        "jeudi 9 avril",
        "в четверг, 9 апреля",
    ],
)
def test_a_day_of_the_week_before_its_date_is_no_other_day(said: str) -> None:
    [found] = find_dates(said, datetime(2026, 3, 25, 12, tzinfo=UTC), 1)
    assert found.text == "9 April 2026"
    assert [it.text for it in find_dates("on Thursday, not on 10 April", SUNDAY, 1)][1:]
