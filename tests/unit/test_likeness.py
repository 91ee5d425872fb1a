"""Texts are alike by what they say; negations, numbers and names count."""

from __future__ import annotations

import pytest

from memorist.language.likeness import alike, contains

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
