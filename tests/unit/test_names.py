"""Names in a question: whom it asks about, and the question as they would put it."""

from __future__ import annotations

import pytest

from memorist.language.questions import (
    in_first_person,
    in_own_words,
    role_asked_about,
    speakers_asked_about,
)

SPEAKERS = ["Ada", "Caroline", "James", "Mary Jane", "Jean-Luc", "Łukasz", "C++", "D.J. (the king)"]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Where does Caroline live?", {"Caroline"}),
        ("What is Caroline's dog called?", {"Caroline"}),
        ("What is Caroline’s dog called?", {"Caroline"}),
        ("What is James' dog called?", {"James"}),
        ("What is James’ dog called?", {"James"}),
        ("What did 'Ada' say?", {"Ada"}),
        ("“Ada”, where was she?", {"Ada"}),
        ("Did Ada and Caroline meet James?", {"Ada", "Caroline", "James"}),
        ("Is Mary Jane at home?", {"Mary Jane"}),
        ("Is Mary at home?", {"Mary Jane"}),
        ("Is Jane at home?", set()),
        ("Does Jean-Luc like tea?", {"Jean-Luc"}),
        ("Gdzie jest Łukasz?", {"Łukasz"}),
        ("what does ada like?", {"Ada"}),
        ("where is caroline's dog?", {"Caroline"}),
        ("Is the Adapter in Carolines?", set()),
        ("What does ada like, Sir?", set()),
        ("", set()),
        ("?!", set()),
    ],
)
def test_a_question_names_whom_it_asks_about(question: str, named: set[str]) -> None:
    assert speakers_asked_about(question, SPEAKERS) == named
    assert speakers_asked_about(question, iter(SPEAKERS)) == named


@pytest.mark.parametrize(
    ("question", "names", "asked"),
    [
        ("Where does Caroline live?", ["Caroline"], "Where does I live?"),
        ("What is Caroline's dog called?", ["Caroline"], "What is my dog called?"),
        ("What is Caroline’s dog called?", ["Caroline"], "What is my dog called?"),
        ("What is James' dog called?", ["James"], "What is my dog called?"),
        ("Did Ada meet James?", ["Ada", "James"], "Did I meet I?"),
        ("Is Mary Jane at home?", ["Mary Jane"], "Is I at home?"),
        ("Is Mary at home?", ["Mary Jane"], "Is I at home?"),
        ("is ada in the adapter?", ["Ada"], "is I in the adapter?"),
        ("Is it D.J. or DxJx?", ["D.J. (the king)"], "Is it I or DxJx?"),
        ("Where is Ada?", [], "Where is Ada?"),
        ("Ada", ["Ada"], "I"),
    ],
)
def test_a_question_is_put_as_they_would_put_it(
    question: str, names: list[str], asked: str
) -> None:
    assert in_first_person(question, names) == asked


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        ("What is the user allergic to?", "What am I allergic to?"),
        ("where does the user live", "where do I live"),
        ("Has the user's boss changed?", "Has my boss changed?"),
        ("user allergies", "my allergies"),
        ("wo arbeitet der Nutzer?", "wo arbeitet ich?"),
        ("el perro del usuario", "el perro mío"),
        ("où habite l'utilisateur ?", "où habite je ?"),
        ("у пользователя есть собака?", "у меня есть собака?"),
        ("which columns does the user table have?", "which columns does the user table have?"),
        ("which users are there?", "which users are there?"),
        ("Where do I live?", "Where do I live?"),
    ],
)
def test_what_an_agent_asks_of_the_user_is_put_as_users_put_it(asked: str, own: str) -> None:
    assert in_own_words(asked) == own


@pytest.mark.parametrize("name", ["(", "[a-z]*", "a|b", "\\", "C++", "?", "^$", "", " ", "\\1"])
def test_a_name_that_looks_like_a_pattern_is_only_a_name(name: str) -> None:
    question = f"Where does {name} ' live, and Ada?"
    named = speakers_asked_about(question, [name, "Ada"])
    assert "Ada" in named
    assert in_first_person(question, named).endswith("live, and I?")


def test_the_longer_of_two_names_goes_first() -> None:
    names = ["Mary", "Mary Jane"]
    assert speakers_asked_about("Is Mary Jane in?", names) == {"Mary", "Mary Jane"}
    assert in_first_person("Is Mary Jane in?", names) == "Is I in?"


@pytest.mark.parametrize(
    ("question", "role"),
    [
        ("Where do I live?", "user"),
        ("Which book have you recommended?", "assistant"),
        ("what you told me about tea", "assistant"),
        ("Why did you advise against it?", "assistant"),
        ("Which of the two did you prefer?", "assistant"),
        ("What was your main objection to it?", "assistant"),
        ("According to you, which comes first?", "assistant"),
        ("Do you know where I parked?", "user"),
        ("Did you know I moved?", "user"),
        ("What would be your recommendation for dinner?", "user"),
        ("To answer your question, where do I live?", "user"),
        ("", "user"),
    ],
)
def test_a_question_about_what_you_did_is_answered_by_the_assistant(
    question: str, role: str
) -> None:
    assert role_asked_about(question) == role


def test_a_line_that_begins_with_a_small_word_names_nobody() -> None:
    assert speakers_asked_about("When did Bob move?", ["When", "Bob"]) == {"Bob"}
    assert in_first_person("Where will Will be?", ["Will"]) == "Where will I be?"
