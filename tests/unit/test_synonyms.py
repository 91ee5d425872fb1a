"""Words that mean about the same: which they are, and what recall makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorist import Memory, Ranking
from memorist.errors import ProviderError
from memorist.language import text as text_module
from memorist.language.text import ranking_stop_words, stem, synonyms_of
from memorist.recall.channels import MAX_SYNONYMS, synonyms_of_all, terms_of
from memorist.records.message import Message
from memorist.records.query import Synonym
from memorist.records.scope import Scope
from memorist.store.sqlite import db
from memorist.store.sqlite.store import SqliteStore
from tests.support.models import WordEmbedder


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("doctor", "dr"),
        ("bike", "bicycle"),
        ("went", "go"),
        ("mom", "mother"),
        ("kids", "children"),
    ],
)
def test_words_that_mean_the_same_are_kin(word: str, other: str) -> None:
    assert stem(other) in dict(synonyms_of(word))


@pytest.mark.parametrize("word", ["may", "monday", "two", "xyzzy", "", "2023", "Москва"])
def test_dates_numbers_and_unknown_words_have_none(word: str) -> None:
    assert synonyms_of(word) == []


@pytest.mark.parametrize("word", ["doctor", "week", "buy", "often"])
def test_kin_come_nearest_first_without_the_word_itself(word: str) -> None:
    found = synonyms_of(word)
    nearness = [near for _, near in found]
    assert nearness == sorted(nearness, reverse=True)
    assert all(0.55 <= near <= 1 for near in nearness)
    assert len({other for other, _ in found} - {stem(word)}) == len(found) <= 10


@pytest.mark.parametrize("word", ["juli", "juliet", "fourth", "weekend", "some", "alison"])
def test_no_kin_is_a_date_or_a_number_nor_has_its_stem(word: str) -> None:
    dated = {stem(it) for it in ("july", "august", "march", "monday", "saturday", "four", "one")}
    assert not dated & {other for other, _ in synonyms_of(word)}


def test_kin_of_a_question_are_no_words_that_it_has() -> None:
    found = synonyms_of_all([("doctor",), ("physicians",)], synonyms_of, 0.7)
    assert not {it.stem for it in found} & {"doctor", "physician"}
    assert len({it.stem for it in found}) == len(found)


def test_kin_of_two_words_belong_to_the_nearer_one() -> None:
    listed = {"one": [("shared", 0.6), ("the", 0.9)], "two": [("shared", 0.8)]}
    found = synonyms_of_all(
        [("one",), ("two",), ("海", "洋")], lambda word: listed.get(word, []), 0.5
    )
    assert found == [Synonym("shared", ("two",), 0.5 * 0.8)]
    assert "the" in ranking_stop_words()


def test_a_long_question_has_the_nearest_kin_and_no_more() -> None:
    words = "doctor bike week buy often school music kitchen garden travel money dog car big happy"
    found = synonyms_of_all(terms_of(words), synonyms_of, 0.7)
    assert len(found) == MAX_SYNONYMS
    nearest = max(near for word in words.split() for _, near in synonyms_of(word))
    assert found[0].worth == pytest.approx(0.7 * nearest)


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing() -> Path:
        raise ProviderError("not installed")

    monkeypatch.setattr(text_module, "minilm_folder", missing)
    text_module._synonym_lines.cache_clear()
    yield
    text_module._synonym_lines.cache_clear()


@pytest.mark.usefixtures("without_data")
def test_where_they_are_not_installed_there_are_none() -> None:
    assert synonyms_of("doctor") == []


@pytest.mark.parametrize(("embedder", "found"), [(WordEmbedder(), True), (None, False)])
def test_who_has_an_embedder_finds_a_word_by_its_kin(
    tmp_path: Path, embedder: WordEmbedder | None, found: bool
) -> None:
    with Memory(tmp_path / "memory.db", embedder=embedder, extraction=None) as memory:
        memory.remember("Dr. Lee looked at my knee", user="ada")
        [hit] = memory.recall("which doctor?", user="ada", deadline_ms=None, min_score=0).hits
    assert ("words" in hit.why.ranks) is found


def test_a_ranking_may_do_without_them(tmp_path: Path) -> None:
    ranking = Ranking(synonyms=0)
    with Memory(
        tmp_path / "memory.db", embedder=WordEmbedder(), ranking=ranking, extraction=None
    ) as memory:
        memory.remember("Dr. Lee looked at my knee", user="ada")
        [hit] = memory.recall("which doctor?", user="ada", deadline_ms=None).hits
    assert "words" not in hit.why.ranks


def test_kin_of_a_word_that_stands_nearly_everywhere_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope, synonyms = Scope(user="ada", session="s"), [Synonym("canin", ("dog",), 0.7)]
    with SqliteStore(tmp_path / "memory.db", durability="normal") as store:
        said = [*["a dog"] * 40, *["a zebra"] * 5, "a canine"]
        store.append(scope, [Message("user", text) for text in said])
        for most, found in ((1_000, 46), (20, 5)):
            monkeypatch.setattr(db, "MAX_POSTINGS", most)
            monkeypatch.setattr(db, "WORTH_KEEPING", 10)
            terms = [("dog",), ("zebra",)]
            assert (
                len(store.match_text(scope.whole_user(), terms, synonyms=synonyms, limit=99))
                == found
            )


@pytest.mark.parametrize("odd", ['x" OR "y', "", " ", "a\0b", "a*", "^a", "(a"])
def test_a_stem_that_is_no_word_finds_nothing(tmp_path: Path, odd: str) -> None:
    scope = Scope(user="ada", session="s")
    with SqliteStore(tmp_path / "memory.db", durability="normal") as store:
        store.append(scope, [Message("user", "x and y and a and b")])
        assert (
            store.match_text(scope, [("dog",)], synonyms=[Synonym(odd, ("dog",), 0.7)], limit=9)
            == []
        )


@pytest.mark.parametrize(("worth", "most"), [(float("nan"), 0), (-1.0, 0), (7.0, 1.0)])
def test_an_odd_worth_of_kin_is_none_or_that_of_the_word(worth: float, most: float) -> None:
    assert (
        max((it.worth for it in synonyms_of_all([("bike",)], synonyms_of, worth)), default=0)
        <= most
    )
