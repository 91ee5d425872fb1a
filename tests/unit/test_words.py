"""Words as the index holds them: what is written and what is asked meet at the same stem."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from snowballstemmer import stemmer

from memorist.language import text
from memorist.language.text import _stem, stem, stems, term_stem
from memorist.recall.channels import MAX_NAMES, MAX_TERMS, names_in, terms_of
from memorist.records.values import fold


@pytest.mark.parametrize(
    "forms",
    [
        "move moved moves moving",
        "city cities",
        "run running runs",
        "happy happiness",
        "переехал переехала переехали",
        "книга книги книгу",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_english_stems_are_those_of_snowball() -> None:
    texts = [file.read_text() for file in Path(text.__file__).parents[1].rglob("*.py")]
    said = {word for one in texts for word in re.findall("[a-z]+", one.lower())}
    starts = "a y by ayy succ proc exc inn out earr past gener inter li os cab rel add".split()
    ends = "s es ies ied ed eed edly ing ingly ly y e l ll ation ational ative fulness ism".split()
    ends += "iveness ousli entli ogi logi logist izer biliti ness able ement ion sion tion".split()
    made = {a + b + c for a in starts for b in ["", *ends] for c in ["", *ends]}
    words = [word for word in said | made | {"skies", "dying", "news", "only"} if len(word) < 40]
    theirs = stemmer("english").stemWord
    assert len(words) > 10_000
    assert [word for word in words if _stem(word) != theirs(word)] == []


@pytest.mark.parametrize(
    "word", ["straße", "émigré", "ελλάδα", "שלום", "日", "2026", "x", "word12s", "a1b2ing"]
)
def test_words_of_other_scripts_and_numbers_stay_as_they_are(word: str) -> None:
    assert stem(word) == word


def test_a_word_too_long_to_be_one_is_kept_whole() -> None:
    long = "running" * 10_000
    assert stem(long) == long
    assert stems(long) == [long]


def test_ideographs_are_found_alone_and_in_pairs() -> None:
    assert stems("搬到了") == ["搬", "搬到", "到", "到了", "了"]
    assert stems("I moved 搬到 Berlin") == ["i", "move", "搬", "搬到", "到", "berlin"]
    assert stems("日 a 本") == ["日", "a", "本"]


def test_a_text_and_a_question_about_it_meet() -> None:
    text = "Я переехала в Zürich-West, Straße 5; 我三月搬到了柏林. Running!"
    held = set(stems(text))
    for question in ("переехал", "zurich", "ZÜRICH", "strasse", "柏林", "月", "runs", "west"):
        wanted = [term_stem(tuple(fold(" ".join(term)).split())) for term in terms_of(question)]
        assert wanted
        assert set(wanted) <= held, question


def test_every_word_is_stemmed_alike_from_any_thread() -> None:
    words = [f"{root}{end}" for root in ("walk", "talk", "work", "играл", "стран") * 40
             for end in ("", "ing", "ed", "s", "а", "и", "ых")]  # fmt: skip
    expected = [stem(word) for word in words]
    results: list[list[str]] = []
    begin = threading.Barrier(8)

    def run() -> None:
        begin.wait(20)
        results.append([_stem(word) for word in words])

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == [expected] * 8


def test_a_question_becomes_the_words_worth_looking_for() -> None:
    assert terms_of("Where did she move to, and when did SHE move?") == [("move",)]
    assert terms_of("what is it") == [("what",), ("is",), ("it",)]
    assert terms_of("我三月 in 柏林") == [("我", "三"), ("三", "月"), ("月", "柏"), ("柏", "林")]
    assert terms_of("日") == [("日",)]
    assert terms_of(" ?! ") == terms_of("") == []
    assert len(terms_of(" ".join(f"word{number}" for number in range(500)))) == MAX_TERMS


def test_a_question_may_name_a_thing_by_up_to_four_words() -> None:
    names = names_in("Where is the New York City Marathon?")
    assert {"new york city", "new york city marathon", "york", "the new york"} <= set(names)
    assert not {"where", "is", "where is", "is the"} & set(names)
    assert names_in("") == []
    assert len(names_in(" ".join(f"word{number}" for number in range(500)))) == MAX_NAMES
