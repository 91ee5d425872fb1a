"""The reader: real weights that mark what a message says of its speaker."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist import Memory, Message, ProviderError
from memorist.language.text import minilm_folder
from memorist.lifecycle.rules import extract
from memorist.providers import reader
from memorist.providers.local_model import WINDOW, WordPiece, places, split
from memorist.providers.reader import Mark, MarkedMessage, read, shape_of, words_of

SAID_AT = datetime(2026, 3, 11, 9, tzinfo=UTC)
# What is said in words that no rule reads, and what is claimed; "no longer" where that ends.
SAID = [
    (
        "Haven't touched PHP since 2016 so assume i forgot everything, these days it's all Kotlin",
        {("no longer uses", "PHP"), ("uses", "Kotlin")},
    ),
    (
        "Game of my life is Disco Elysium. Played it 5 times. what scratches that itch",
        {("favourite game", "Disco Elysium")},
    ),
    ("back in Pune, masters in the bag, Marathi all day again", {("lives in", "Pune")}),
    (
        "colleague of mine, Bao, got promoted over me. polite but honest congrats?",
        {("has colleague", "Bao")},
    ),
    ("Bei mir gibt es nur halal.", {("diet", "halal")}),
    ("Motorrad abgemeldet, verkauft, fertig, ende einer ära", {("no longer owns", "Motorrad")}),
]


def claimed(text: str, **about: object) -> set[tuple[str, str]]:
    message = Message("user", text, created_at=SAID_AT, **about)  # type: ignore[arg-type]
    return {
        (("no longer " if claim.ends else "") + claim.predicate, claim.object)
        for candidate in extract(message, read=read)
        for claim in candidate.claims
    }


@pytest.mark.parametrize(("text", "claims"), SAID)
def test_what_no_rule_reads_is_marked(text: str, claims: set[tuple[str, str]]) -> None:
    assert extract(Message("user", text, created_at=SAID_AT)) == []
    assert claims <= claimed(text)


def test_a_plan_of_others_is_told_with_them_and_each_plan_once() -> None:
    assert claimed("Jana and Karel are moving to Prague in August") == {
        ("plans", "Jana and Karel are moving to Prague in August")
    }
    assert claimed("Dentist on 3 December") == {("has appointment", "Dentist on 3 December")}
    assert claimed("my phone number is 0171 5550182") == {("phone", "0171 5550182")}


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("I can't do dairy", ("diet", "can't do dairy")),
        ("I can't do mornings", ("dislikes", "mornings")),
        ("no sugar this month", ("diet", "no sugar")),
    ],
)
def test_what_is_refused_is_a_claim_and_no_plan_that_is_called_off(
    text: str, claim: tuple[str, str]
) -> None:
    assert claim in claimed(text)


def test_what_almost_was_and_what_is_only_offered_is_no_fact() -> None:
    assert claimed("I almost bought a motorbike yesterday") == set()
    assert ("works at", "Meta") not in claimed("I've been offered a job at Meta, not decided yet")


def test_a_sentence_about_somebody_goes_on_about_them() -> None:
    assert ("works at", "Apple") not in claimed("Declan's back at work, at Apple in Hollyhill")


def test_the_dog_of_a_sister_is_no_sister() -> None:
    told = "meine Schwester wohnt in Leipzig, ihr Hund heißt Bruno"
    assert claimed(told) == {("lives in", "Leipzig")}


@pytest.mark.parametrize(
    "text",
    [
        "my nan always said 'I was born in Cork and I'll die in Cork'. where's that phrase from",
        "Genre tu crois que je bosse à la NASA",
        "no era broma lo de mi alergia a trabajar eh",
        "no trabajo en Amazon ni nada de eso eh, solo pregunto",
    ],
)
def test_rules_are_not_tried_where_the_reader_finds_nothing_worth_keeping(text: str) -> None:
    assert extract(Message("user", text, created_at=SAID_AT)) != []
    assert claimed(text) == set()


@pytest.mark.parametrize(
    ("text", "claim", "not_so"),
    [
        ("Ya no estoy en Indra, actualiza el cv", ("no longer works at", "Indra"), "works at"),
        ("got myself a floor sander off marketplace", ("owns", "floor sander"), "off marketplace"),
        ("joined Halden & Pike in May", ("works at", "Halden & Pike"), "'Halden')"),
        ("Je code en Rust le soir pour le plaisir", ("uses", "Rust"), "le soir"),
    ],
)
def test_a_reader_that_is_sure_knows_better_where_a_thing_ends_and_whether_it_is_over(
    text: str, claim: tuple[str, str], not_so: str
) -> None:
    told = claimed(text)
    assert claim in told
    assert not_so not in str(told - {claim})


def test_a_mark_counts_only_in_a_message_that_is_worth_keeping() -> None:
    text = "Ich hätte gern ein Boot, ein Haus am See und einen Butler"
    assert "Haus" in {text[mark.start : mark.end] for mark in read(text).marks}
    assert claimed(text) == set()


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Note: I live in Graz", ("lives in", "Graz")),
        ("Hi! Keep in mind that I work at Siemens", ("works at", "Siemens")),
        ("Merke dir, dass ich in Graz wohne", ("lives in", "Graz")),
        ("ten en cuenta que trabajo en Seat", ("works at", "Seat")),
        ("note que j'habite à Lyon", ("lives in", "Lyon")),
        ("запомни что я живу в Казани", ("lives in", "Казань")),
        ("请记住，我吃素", ("diet", "素食")),
    ],
)
def test_what_one_is_told_to_remember_is_read_as_if_it_stood_alone(
    text: str, claim: tuple[str, str]
) -> None:
    assert claim in claimed(text)


@pytest.mark.parametrize(
    ("text", "diet"),
    [("vertrage keine Milch, was nehm ich statt Sahne?", "laktosefrei"), ("麸质不能碰", "无麸质")],
)
def test_what_rules_have_a_name_for_is_called_so_where_the_reader_marks_it(
    text: str, diet: str
) -> None:
    assert ("diet", diet) in claimed(text)


@pytest.mark.parametrize("text", ["I live in Berlin.", "Ich arbeite bei Siemens.", "我住在杭州。"])
def test_a_plain_statement_is_worth_keeping(text: str) -> None:
    assert read(text).worth > 0.9


def test_talk_between_people_with_names_is_left_to_the_rules() -> None:
    text, claims = SAID[1]
    assert claims <= claimed(text)
    assert claimed(text, name="Bo") == set()


def test_a_correction_without_a_subject_is_no_new_fact() -> None:
    assert read("Actually it's Bergen, not Tromsø.").marks
    assert claimed("Actually it's Bergen, not Tromsø.") == set()


def test_a_mark_belongs_to_the_sentence_it_stands_in() -> None:
    text = "The barn was built in 1934. As for me, 34 candles this week."
    marks = (Mark(39, 41, "age", False, 0.99),)
    assert text[39:41] == "34"
    message = Message("user", text, created_at=SAID_AT)
    [candidate] = extract(message, read=lambda _: MarkedMessage(marks, 1.0, {}))
    assert candidate.text.startswith("34 candles this week.")
    [claim] = candidate.claims
    assert (claim.predicate, claim.object) == ("age", "34")
    assert claim.valid_from is not None
    assert claim.valid_from.year == 2026


@pytest.mark.parametrize(
    ("text", "no_claim"),
    [
        ("We're looking at flats in Berlin because the office is there.", ("lives in", "Berlin")),
        ("I have a job interview at Lumen next week", ("works at", "Lumen")),
        ("Lena visits me this weekend with the kids.", ("has child", "Lena")),
        ("I'm eating sushi right now", ("diet", "sushi")),
        ("my colleague's dog Rex bit me", ("has pet", "Rex")),
    ],
)
def test_what_is_nearly_a_claim_is_none(text: str, no_claim: tuple[str, str]) -> None:
    assert no_claim not in claimed(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm in Oslo this week",
        "I'm in Oslo until Friday",
        "staying in Oslo until Friday",
        "We're in Oslo for ten days.",
        "Ich bin diese Woche in Oslo.",
        "Wir sind für zwei Wochen in Oslo.",
        "Estoy en Oslo esta semana.",
        "Estoy en Oslo hasta el viernes.",
        "Je suis à Oslo cette semaine.",
        "On est à Oslo pour dix jours.",
        "Я в Осло до пятницы.",
        "Мы в Осло на десять дней.",
        "我这周在奥斯陆。",
        "我在奥斯陆待到星期五。",
    ],
)
def test_a_stay_of_days_or_weeks_is_no_home(text: str) -> None:
    assert [claim for claim in claimed(text) if claim[0] == "lives in"] == []


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Oslo this week",
        "I live in Oslo until Friday",
        "I'm in Oslo now",
        "Ich bin diese Woche nach Oslo gezogen.",
        "Vivo en Oslo desde esta semana.",
        "J'habite à Oslo depuis cette semaine.",
        "Я на этой неделе переехал в Осло.",
        "我这周搬到了奥斯陆。",
    ],
)
def test_who_lives_or_moves_there_does_so_whatever_the_week(text: str) -> None:
    assert {claim[0] for claim in claimed(text)} & {"lives in"}


def test_an_answer_about_somebody_else_is_none_about_the_speaker() -> None:
    for asked in ("Remind me what Joris's surname is?", "Quel est le nom de Joris ?"):
        said = "It's" if asked.startswith("R") else "C'est"
        assert claimed(f"{asked} {said} Vandamme btw") == set()
    assert claimed("What's my surname again? It's Vandamme btw") == {("name", "Vandamme")}


def test_what_a_rule_reads_of_somebody_else_the_reader_does_not_mark_for_the_speaker() -> None:
    assert claimed("so Noor started violin lessons on Tuesday") == set()
    assert ("learns", "violin") in claimed("so I started violin lessons on Tuesday")


def test_of_a_list_only_what_the_reader_doubts_is_dropped() -> None:
    text = "I'm allergic to nuts and the exam is on 5 December"
    rules_alone = extract(Message("user", text, created_at=SAID_AT))
    things = {claim.object for it in rules_alone for claim in it.claims}
    assert {"nuts", "the exam is"} <= things
    assert ("allergic to", "nuts") in claimed(text)
    assert ("allergic to", "the exam is") not in claimed(text)


def test_of_the_last_things_of_a_list_the_reader_need_not_be_sure() -> None:
    liked = {thing for predicate, thing in claimed("I like tea, coffee and cake")}
    assert liked == {"tea", "coffee", "cake"}


def test_a_comma_in_a_number_begins_no_other_thing() -> None:
    assert claimed("Rent went up to £1,450") == {("rent", "£1,450")}


def test_where_rule_and_reader_differ_on_an_end_the_rule_is_believed() -> None:
    message = Message("user", "I went vegan in January.")
    marks = (Mark(7, 12, "diet", True, 0.8),)
    [candidate] = extract(message, read=lambda _: MarkedMessage(marks, 1.0, {}))
    assert [(it.predicate, it.ends) for it in candidate.claims] == [("diet", False)]


@pytest.mark.parametrize("text", ["!!!", "🙂", "42", "> quoted", "x" * 5_000])
def test_a_message_without_a_sentence_says_nothing(text: str) -> None:
    assert claimed(text) == set()


def test_what_a_rule_reads_is_doubted_by_its_own_predicate() -> None:
    chances = {"works at": 0.01, "likes": 0.9, "plans": 0.0, "": 0.9}
    said = MarkedMessage((), 1.0, {"bosch": chances, "graz": {**chances, "plans": 0.9}})
    assert said.doubts("Bosch", "works at")
    assert not said.doubts("Graz", "works at")  # what is planned may become so
    assert not said.doubts("Bosch", "likes")
    assert not said.doubts("Bosch", "avoids")  # a predicate that the reader does not know
    assert not said.doubts("Siemens", "works at")  # not a word of the message
    assert not said.doubts("", "works at")


def told(*texts: str) -> set[str]:
    """The facts that hold once somebody has said this, one message after the other."""
    with Memory(":memory:", embedder=None) as memory:
        for text in texts:
            memory.remember(text, user="ada")
            assert memory.jobs.catch_up(300) == 0
        return {f"{fact.predicate} {fact.object}" for fact in memory.facts.list(user="ada")}


def test_all_that_a_user_says_of_themselves_is_learnt_however_much_at_once() -> None:
    owns = "a boat,a kayak,a tandem,a telescope,a sewing machine,a harp,a greenhouse".split(",")
    assert len(told(*(f"I own {thing}." for thing in owns))) == len(owns)


def test_who_has_moved_looks_at_no_more_flats_there() -> None:
    looking = "I'm looking at flats in Berlin."
    assert told(looking) == {"plans looking at flats in Berlin"}
    assert told(looking, "We moved to Berlin.") == {"lives in Berlin"}
    assert len(told(looking, "We moved to Hamburg.")) == 2


def test_a_district_takes_the_place_of_no_town_that_was_just_named() -> None:
    moved = "We moved to Berlin."
    assert told("The flat is in Neukölln.") == {"lives in Neukölln"}
    assert told(moved, "The flat is in Neukölln.") == {"lives in Berlin"}
    assert told(moved, "We moved again, the flat is in Potsdam.") == {"lives in Potsdam"}
    assert told(moved, "We've moved again. The flat is in Potsdam.") == {"lives in Potsdam"}
    assert told("Wir wohnen in Berlin.", "Die Wohnung ist in Neukölln.") == {"lives in Berlin"}


@pytest.mark.parametrize(
    ("home", "moved", "now"),
    [
        ("I live in Ghent.", "I moved. The flat is in Antwerp.", "Antwerp"),
        ("Ich wohne in Gent.", "Bin umgezogen. Die Wohnung ist in Antwerpen.", "Antwerpen"),
        ("Vivo en Gante.", "Me he mudado. El piso está en Amberes.", "Amberes"),
        ("J'habite à Gand.", "J'ai déménagé. L'appart est à Anvers.", "Anvers"),
        ("Я живу в Генте.", "Я переехал. Квартира в Антверпене.", "Антверпене"),
        ("我住在北京。", "我搬家了。公寓在上海。", "上海"),
    ],
)
def test_a_flat_elsewhere_is_the_home_of_who_has_moved(home: str, moved: str, now: str) -> None:
    assert f"lives in {now}" in told(home, moved)


def test_a_stored_message_becomes_a_fact(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        memory.remember("been taking clarinet lessons since May, any beginner pieces?", user="ada")
        assert memory.jobs.catch_up(300) == 0
        facts = {(fact.predicate, fact.object) for fact in memory.facts.list(user="ada")}
    assert ("learns", "clarinet") in facts


@given(st.text(max_size=40))
def test_words_and_their_places_are_those_that_are_embedded(text: str) -> None:
    assert [word for word, _, _ in places(text)] == split(text)
    ends = [0, *(place for _, *span in places(text) for place in span)]
    assert all(one <= next_ for one, next_ in pairwise(ends))


def test_a_long_message_is_read_to_its_end() -> None:
    filler = "The weather was as the weather is, and nothing came of it at all. " * 40
    text = f"{filler} I live in Berlin."
    pieces = WordPiece(minilm_folder())
    assert len(pieces.encode(text)) > WINDOW
    windows = list(reader._windows(words_of(text, pieces)))
    assert sum(map(len, windows)) == len(words_of(text, pieces))
    assert all(sum(len(word.pieces) for word in window) <= WINDOW for window in windows)
    assert all(text[mark.start : mark.end].strip() for mark in read(text).marks)


def test_numpy_marks_what_onnxruntime_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for text, _ in SAID]
    marked = [[_rounded(mark) for mark in read(text).marks] for text in texts]
    monkeypatch.setattr(reader, "open_session", lambda *_, **__: None)
    reader._reader.cache_clear()
    try:
        assert [[_rounded(mark) for mark in read(text).marks] for text in texts] == marked
    finally:
        reader._reader.cache_clear()


def _rounded(mark: Mark) -> Mark:
    return mark._replace(chance=round(mark.chance, 1))


@pytest.mark.parametrize(
    ("word", "shape"),
    [("!", 1), ("34", 2), ("b2b", 3), ("我", 4), ("am", 5), ("NASA", 6), ("A", 7), ("Ada", 8)],
)
def test_how_a_word_is_written(word: str, shape: int) -> None:
    assert shape_of(word) == shape
    assert shape_of("iPhone") == 9


def test_without_the_weights_rules_read_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> Path:
        raise ProviderError("the weights are missing")

    monkeypatch.setattr(reader, "minilm_folder", missing)
    reader._reader.cache_clear()
    try:
        assert read("I live in Berlin.") is read("Ich arbeite bei Siemens.")
    finally:
        reader._reader.cache_clear()
    assert caplog.messages == ["messages are read by rules alone: the weights are missing"]
