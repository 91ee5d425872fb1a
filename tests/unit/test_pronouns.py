"""Whom a pronoun means, and where nobody can tell."""

from __future__ import annotations

import pytest

from memorist.language.lexicon import language
from memorist.language.pronouns import named

LENA = "My sister Lena lives in Hamburg."


@pytest.mark.parametrize(
    ("before", "sentence", "read"),
    [
        ([LENA], "She moved to Graz.", "My sister Lena moved to Graz."),
        ([LENA], "oh and she's moved to Graz", "oh and my sister Lena has moved to Graz"),
        ([LENA], "she's in Rome, she'll go", "My sister Lena is in Rome, my sister Lena will go"),
        ([LENA, "My brother Tom is ill."], "She moved.", "My sister Lena moved."),
        ([LENA, "We spoke on Monday."], "she left.", "My sister Lena left."),
        (["my friend Kim is a nurse"], "He works nights.", "my friend Kim works nights."),
    ],
)
def test_the_only_one_who_fits_is_meant(before: list[str], sentence: str, read: str) -> None:
    assert named(sentence, before, language("en")) == read


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ([], "She moved to Graz."),
        ([LENA], "He moved to Graz."),
        ([LENA], "They moved to Graz."),
        ([LENA, "My wife is a nurse."], "She moved to Graz."),
        ([LENA, "My sister Anna too."], "She moved to Graz."),
        ([LENA, "Then Anna visited."], "She moved to Graz."),
        ([LENA, "Anna called."], "She moved to Graz."),
        ([LENA, "my neighbour is loud"], "She moved to Graz."),
        ([LENA, "I have two sisters"], "She moved to Graz."),
        ([LENA], "She likes him, he likes her"),
        ([LENA], "I think she moved to Graz."),
    ],
)
def test_it_stays_open_where_another_may_be_meant(before: list[str], sentence: str) -> None:
    assert named(sentence, before, language("en")) == sentence


def test_german_pronouns_are_read_with_the_verb_of_one_person() -> None:
    before, german = ["Meine Schwester Lena wohnt in Hamburg."], language("de")
    moved = named("Sie ist nach Graz gezogen.", before, german)
    assert moved == "Meine Schwester Lena ist nach Graz gezogen."
    assert named("Sie sind nach Graz gezogen.", before, german) == "Sie sind nach Graz gezogen."
    assert named("Er wohnt in Graz.", before, german) == "Er wohnt in Graz."
