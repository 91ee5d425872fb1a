"""Records other than messages: scopes, facts, memories, articles, and how text is cut and read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorist import Article, Fact, InvalidError, Memory, MemoryItem, RecordError, Scope, ScopeError
from memorist.language.text import PASSAGE_CHARS, passages
from memorist.recall.channels import MAX_TERMS, terms_of
from memorist.records.entry import Put
from memorist.records.log import MAX_ATTEMPTS, retry_delay_seconds, source_of
from memorist.records.memories import topic_of
from memorist.records.message import Message
from memorist.records.values import fold
from tests.support.hostile import HOSTILE_IDS

ADA = Scope(user="ada")
NAIVE = datetime(2026, 3, 1)
HOSTILE_TEXTS = ("a\x00b", "a\ud83db")


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def fact(**fields: Any) -> Fact:
    said = {"subject": "Ada", "predicate": "lives in", "object": "Berlin", "known_from": day(1)}
    return Fact(**{"scope": ADA, **said, **fields})


def item(**fields: Any) -> MemoryItem:
    return MemoryItem(**{"scope": ADA, "text": "Ada likes tea", **fields})


def article(**fields: Any) -> Article:
    return Article(**{"scope": ADA, "title": "Tea", "text": "How to brew it", **fields})


# Scope


def test_ids_that_look_alike_are_different_owners() -> None:
    ids = ["", *HOSTILE_IDS]
    pairs = [(tenant, user) for tenant in ids for user in ids]
    owners = {Scope(tenant=tenant, user=user).owner for tenant, user in pairs}

    assert len(set(ids)) == len(ids)
    assert len(owners) == len(pairs)


ids = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4)


@given(one=st.tuples(ids, ids), other=st.tuples(ids, ids))
def test_pairs_of_tenant_and_user_never_collide(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    owners = {Scope(tenant=tenant, user=user).owner for tenant, user in (one, other)}

    assert len(owners) == len({one, other})


def test_the_owner_is_the_user_whatever_the_agent_and_session() -> None:
    narrow = Scope(user="ada", agent="tutor", session="s")

    assert narrow.owner == ADA.owner
    assert narrow.whole_user() == ADA
    assert ADA.within(agent="tutor", session="s") == narrow


def test_a_scope_can_be_narrowed_to_the_agent_without_a_name() -> None:
    assert ADA.within(agent="").agent == ""
    assert Scope(user="ada", agent="tutor").within(agent="").agent == ""


@pytest.mark.parametrize("field", ["user", "tenant", "agent", "session"])
def test_an_id_that_cannot_be_stored_is_refused_by_name(field: str) -> None:
    values: list[Any] = [*HOSTILE_TEXTS, 3, b"ada", "x" * 65_537]
    for value in values:
        with pytest.raises(ScopeError, match=field):
            Scope(**{"user": "ada", field: value})


def test_a_user_is_never_left_out() -> None:
    for user in (None, 0, False, ["ada"]):
        with pytest.raises(ScopeError, match="user"):
            Scope(user=user)  # type: ignore[arg-type]


# Facts


@pytest.mark.parametrize(
    ("valid_at", "known_at", "holds"),
    [
        (None, None, False),  # retracted on the 20th: no longer known
        (None, day(9), False),  # not learnt yet
        (None, day(10), True),
        (None, day(19), True),
        (None, day(20), False),
        (day(2), day(15), False),  # not true yet, as we knew
        (day(3), day(15), True),
        (day(5), day(15), True),
        (day(6), day(15), False),  # true no more
        (day(5), day(25), False),
        (day(5), None, False),
    ],
)
def test_a_fact_holds_when_it_was_true_and_known(
    valid_at: datetime | None, known_at: datetime | None, holds: bool
) -> None:
    dated = fact(valid_from=day(3), valid_to=day(6), known_from=day(10), known_to=day(20))

    assert dated.holds(valid_at, known_at) is holds


def test_open_ends_reach_as_far_as_time() -> None:
    ever = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

    assert fact().holds()
    assert all(fact().holds(valid_at) for valid_at in ever)
    assert not fact().holds(known_at=ever[0])
    assert fact().holds(known_at=ever[1])


def test_a_fact_reads_as_a_sentence() -> None:
    assert fact().text == "Ada lives in Berlin"


@pytest.mark.parametrize(
    ("subject", "predicate"),
    [("ada", "LIVES IN"), (" Ada ", "lives\u00a0 \n in"), ("ADA", "lives\tin")],
)
def test_facts_about_the_same_thing_share_a_topic(subject: str, predicate: str) -> None:
    assert fact(subject=subject, predicate=predicate).topic == fact(object="Munich").topic


def test_topics_fold_case_and_accents_however_they_are_encoded() -> None:
    assert topic_of("Straße", "is") == topic_of("STRASSE", "is")
    assert topic_of("Caf\u00e9", "is") == topic_of("Cafe\u0301", "is")


def test_words_do_not_wander_between_subject_and_predicate() -> None:
    assert topic_of("Ada lives", "in") != topic_of("Ada", "lives in")
    assert topic_of("Ada", "lives in") != topic_of("Ada", "works in")


def test_a_fact_of_the_wrong_shape_is_refused_by_field() -> None:
    wrong: list[tuple[str, Any]] = [
        *[(name, value) for name in ("subject", "predicate", "object") for value in ("", " \n", 3)],
        *[("confidence", value) for value in (-0.1, 1.1, float("nan"), "high", None)],
        *[(name, NAIVE) for name in ("valid_from", "valid_to", "known_from", "known_to")],
        ("sources", ("x" * 1_001,)),
        *[(name, "a\x00b") for name in ("subject", "predicate", "object", "id", "source")],
        *[(name, "a\ud83db") for name in ("subject", "id", "source", "reason", "superseded_by")],
    ]
    for field, value in wrong:
        with pytest.raises(RecordError, match=field):
            fact(**{field: value})


def test_a_fact_cannot_end_before_it_begins() -> None:
    with pytest.raises(RecordError, match="valid_to"):
        fact(valid_from=day(2), valid_to=day(1))


# Memories and articles


def test_a_memory_of_the_wrong_shape_is_refused_by_field() -> None:
    wrong: list[tuple[str, Any]] = [
        *[("text", value) for value in (None, 3, *HOSTILE_TEXTS)],
        *[("kind", value) for value in ("", "opinion", None)],
        *[("tier", value) for value in ("", "middle", None)],
        *[("importance", value) for value in (-0.1, 1.1, float("nan"), float("inf"), "0.5", None)],
        *[("tags", value) for value in ((3,), ("x" * 1_001,), ("a\x00b",), "work")],
        *[("sources", value) for value in ((3,), ("a\ud83db",), "01a1dd3b")],
        *[("category", value) for value in (None, "x" * 1_001, *HOSTILE_TEXTS)],
        *[("id", value) for value in (None, "x" * 1_001, *HOSTILE_TEXTS)],
        *[(name, text) for name in ("source", "reason") for text in HOSTILE_TEXTS],
        *[(name, NAIVE) for name in ("created_at", "used_at", "expires_at", "ended_at")],
    ]
    for field, value in wrong:
        with pytest.raises(RecordError, match=field):
            item(**{field: value})


def test_the_five_kinds_of_memory_are_taken() -> None:
    for kind in ("concept", "episode", "fact", "procedure", "working"):
        assert item(kind=kind).kind == kind


def test_a_memory_has_sensible_defaults_and_an_id_of_its_own() -> None:
    one, other = item(), item()

    assert (one.category, one.importance, one.tier) == ("knowledge", 0.5, "short")
    assert one.id < other.id


def test_an_article_of_the_wrong_shape_is_refused_by_field() -> None:
    wrong: list[tuple[str, Any]] = [
        *[(name, value) for name in ("title", "text", "uri") for value in (None, 3, "a\x00b")],
        *[("id", value) for value in (None, "x" * 1_001)],
        ("created_at", NAIVE),
    ]
    for field, value in wrong:
        with pytest.raises(RecordError, match=field):
            article(**{field: value})


def test_an_article_is_known_by_what_it_says() -> None:
    assert article().digest == article(title="Renamed", uri="file:///tea").digest
    assert article().digest != article(text="How to brew it.").digest


# The queue


def test_retries_wait_longer_each_time_and_then_end() -> None:
    waits = [retry_delay_seconds(attempts) for attempts in range(1, MAX_ATTEMPTS)]

    assert waits == [2.0, 4.0, 8.0, 16.0]
    assert retry_delay_seconds(MAX_ATTEMPTS) is None
    assert retry_delay_seconds(MAX_ATTEMPTS + 1) is None


def test_the_source_is_the_one_given_or_else_the_role() -> None:
    assert source_of(Message("tool", "x"), None) == "tool"
    assert source_of(Message("user", "x"), "web") == "web"
    with pytest.raises(RecordError, match="source"):
        source_of(Message("user", "x"), "gossip")  # type: ignore[arg-type]


# Text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't PANIC, it's_fine!", ["don", "t", "panic", "it", "s", "fine"]),
        ("Café Müller Straße", ["cafe", "muller", "strasse"]),
        ("Cafe\u0301 \ufb01ne ２０２６", ["cafe", "fine", "2026"]),
        ("東京tower", ["東", "京", "tower"]),
        ("がぎ", ["が", "ぎ"]),
        ("한국어 말", ["한국어", "말"]),
        ("Привет, МИР", ["привет", "мир"]),
        ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
        ("\x1b[31m–—…🧠", ["31m"]),
        ("", []),
    ],
)
def test_text_is_folded_into_plain_words(text: str, words: list[str]) -> None:
    assert fold(text).split() == words


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_ascii_is_folded_like_everything_else(text: str) -> None:
    assert fold(text).split() == fold(text + " é").split()[:-1]


@given(st.text())
def test_folding_what_is_folded_changes_nothing(text: str) -> None:
    once = fold(text).split()

    assert fold(" ".join(once)).split() == once


lengths = st.lists(st.integers(1, 2 * PASSAGE_CHARS), max_size=6)


@settings(deadline=None)
@given(lengths=lengths, gap=st.sampled_from([" ", "  ", "\n", ""]), tail=st.text(max_size=9))
def test_passages_cover_the_text_exactly_within_the_limit(
    lengths: list[int], gap: str, tail: str
) -> None:
    text = gap.join("字" * length for length in lengths) + tail
    spans = passages(text)

    assert "".join(text[start:stop] for start, stop in spans) == text
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert all(stop - start <= PASSAGE_CHARS for start, stop in spans)
    assert all(stop > start for start, stop in spans) or text == ""


def test_passages_do_not_cut_words_where_there_are_spaces() -> None:
    text = "remember " * 9_000

    assert all(text[start:stop].endswith(" ") for start, stop in passages(text))


# The words of a question


def test_stop_words_are_left_out_of_a_question() -> None:
    assert terms_of("Where does she live now?") == [("live",), ("now",)]


def test_stop_words_of_the_questions_own_language_are_left_out_of_it() -> None:
    assert terms_of("Wo wohne ich jetzt?") == [("wohne",)]
    assert terms_of("¿Dónde vive mi madre?") == [("vive",), ("madre",)]
    assert terms_of("¿Me gusta el té?") == [("gusta",), ("te",)]
    assert terms_of("Does Ole live in El Paso?") == [("ole",), ("live",), ("el",), ("paso",)]


def test_a_question_of_stop_words_alone_keeps_them() -> None:
    assert terms_of("who are you") == [("who",), ("are",), ("you",)]


def test_each_word_is_looked_for_once_and_not_without_end() -> None:
    assert terms_of("tea Tea TEA té") == [("tea",), ("te",)]
    assert len(terms_of(" ".join(f"word{number}" for number in range(1_000)))) == MAX_TERMS


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("東京都", [("東", "京"), ("京", "都")]),
        ("茶", [("茶",)]),
        ("茶 tea 茶", [("茶",), ("tea",)]),
        ("tea東京", [("tea",), ("東", "京")]),
    ],
)
def test_characters_of_unspaced_scripts_go_in_pairs(
    question: str, terms: list[tuple[str, ...]]
) -> None:
    assert terms_of(question) == terms


SYNTAX = ['"', '""', "*", "tea*", "^tea", "NEAR(tea berlin, 2)", "words:tea", "{owner}:x", "- tea"]
SYNTAX += ["tea' OR 1=1 --", "tea & !berlin | (x", "<-> :*", "a\x00b", "a\ud83db", "\\", "(", "%"]


def test_search_syntax_is_only_words() -> None:
    for question in SYNTAX:
        assert all(re.fullmatch(r"[^\W_]+", word) for term in terms_of(question) for word in term)


@given(st.text())
def test_any_question_is_only_words(question: str) -> None:
    for term in terms_of(question):
        assert 1 <= len(term) <= 2
        assert all(word == word.casefold() and word.isalnum() for word in term)


def test_every_record_error_is_an_invalid_error() -> None:
    assert issubclass(RecordError, InvalidError)
    assert issubclass(ScopeError, InvalidError)
    assert timedelta(0) == item().created_at.utcoffset()


def test_one_text_is_not_taken_for_a_list_of_its_characters(memory: Memory) -> None:
    for several in ("tags", "sources"):
        wrong: dict[str, Any] = {several: "tea"}
        with pytest.raises(RecordError, match=f"{several} must be a list, got str"):
            memory.memories.add("Likes tea.", user="ada", **wrong)
    with pytest.raises(RecordError, match="sources must be a list, got str"):
        memory.facts.add("Ada", "likes", "tea", user="ada", sources="an id")
    with pytest.raises(RecordError, match="a tuple of labels"):
        Put(namespace="tea", key="k", value={})  # type: ignore[arg-type]
    for archive in ("memory.gz", b"bytes", Path("memory.gz")):
        with pytest.raises(InvalidError, match="opened to read bytes"):
            memory.restore(archive)  # type: ignore[arg-type]
    assert memory.memories.list(user="ada") == []
