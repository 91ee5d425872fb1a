"""Texts are alike by what they say; negations, numbers and names count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memorist.language.likeness import alike, contains, is_inflected, is_put_off, is_same_task

SAID_AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
DUPLICATE = 0.8


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("I like tea", "I like tea!"),
        ("I really love hiking", "i love hiking"),
        ("My sister lives in Berlin", "My sister is living in Berlin"),
        ("Ich wohne in Köln", "ich wohne in Koln."),
        ("Я люблю джаз", "Люблю джаз"),
        ("我喜欢喝茶", "我喜欢喝茶。"),
    ],
)
def test_the_same_in_other_words_is_a_duplicate(one: str, two: str) -> None:
    assert alike(one, two) >= DUPLICATE
    assert alike(one, two) == alike(two, one)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("I like tea", "I don't like tea"),
        ("The meeting is at 5", "The meeting is at 6"),
        ("I moved to Berlin last year", "I moved to Munich last year"),
        ("I like tea", "I hate tea"),
        ("Ich mag Kaffee", "Ich mag keinen Kaffee"),
        ("Я люблю джаз", "Я не люблю джаз"),
        ("我喜欢喝茶", "我不喜欢喝茶"),
        ("Me gusta el café", "No me gusta el café"),
        ("My brother lives in Rome", "My sister lives in Rome"),
    ],
)
def test_a_denial_another_number_or_another_name_is_no_duplicate(one: str, two: str) -> None:
    assert alike(one, two) < DUPLICATE


def test_texts_without_words_are_alike_only_if_equal() -> None:
    assert alike("it is", "it is") == 1
    assert alike("it is", "I am") == 0
    assert alike("", "") == 0


def test_an_echo_is_contained_in_what_was_known() -> None:
    known = "You live in Berlin and you like strong coffee."
    assert contains("So you like coffee, in Berlin?", known) == 1
    assert contains("I bought a violin", known) == 0
    assert contains("", known) == 0


@pytest.mark.parametrize(
    ("planned", "done", "same"),
    [
        ("flying to Lisbon in July", "Lisbon trip", True),
        ("my flight to Oslo is on 20 March", "moved Oslo", False),
        ("looking at flats in Oslo", "moved Oslo", True),
        ("в августе едем в Грузию", "поездка в Грузию", True),
    ],
)
def test_a_journey_is_told_by_its_place_and_a_flight_there_is_no_move(
    planned: str, done: str, same: bool
) -> None:
    assert is_same_task(planned, done) is same


@pytest.mark.parametrize(
    ("planned", "told", "same"),
    [
        ("Dentist on 3 December", "the dentist is now on the 10th", True),
        ("knee surgery is on 12 October", "they've brought the surgery forward to 28 June", True),
        ("B1 exam is 28 june", "B1 exam pushed to 5 july", True),
        ("driving exam is 4 july", "B1 exam pushed to 5 july", False),
        ("die Prüfung ist am 14. Juni", "die Prüfung ist auf den 28. verschoben worden", True),
        ("牙医在3月12日", "牙医改到3月15日了", True),
        ("Ida and I are getting married on 26 September", "wedding is 10 October now", True),
        ("heiraten am 22. August", "Hochzeit ist jetzt am 5. September", True),
        ("nos casamos el 17 de octubre", "la boda la pasamos al 24 de octubre", True),
        ("on se marie le 12 juin", "le mariage est repoussé au 3 juillet", True),
        ("Мы женимся 12 июня", "Свадьба перенесена на 3 июля", True),
        ("我们6月12日结婚", "婚礼改到7月3日了", True),
        ("dad's hip op is on 12 May", "they've pushed dad's hip surgery to 3 June", True),
        ("dad's hip op is on 12 May", "they've pushed mum's eye surgery to 3 June", False),
        ("getting married on 26 September", "the party is 10 October now", False),
        ("taking the kids to Efteling on 12 June", "push Efteling to 10 July", True),
    ],
)
def test_what_has_another_day_is_known_by_what_it_is(planned: str, told: str, same: bool) -> None:
    assert is_put_off(planned, told, SAID_AT) is same


def test_a_thing_is_named_in_other_forms_or_in_part() -> None:
    assert is_inflected("Алина", "Алиной")
    assert not is_inflected("Алина", "Алисой")
    assert not is_inflected("Southmead hospital", "Southmead")
    assert is_inflected("Southmead hospital", "Southmead", partly=True)
    assert is_inflected("answers in bullet points", "bullet points", at_end=True)
