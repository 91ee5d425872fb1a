"""Whose a fact is, and whether it holds: what was said once, what relatives have, what is over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memorist import Memory, Message
from tests.support.extraction import MONDAY, facts_after, told


@pytest.mark.parametrize(
    "said",
    [
        "as a kid I said I hate broccoli",
        "I said I don't eat shellfish, but honestly I eat everything",
        "I used to tell people I'm vegan",
        "I told my landlord I have a dog but it's a lie",
        "I thought I was allergic to nuts but the test was negative",
        "ich habe gesagt, ich esse keine Nüsse, aber das stimmt nicht",
        "früher hab ich immer gesagt, dass ich Kaffee hasse",
        "dije que no como carne pero era mentira",
        "antes decía que odio el café",
        "j'ai dit que je mange pas de viande mais c'est faux",
        "раньше я всем говорил, что я веган",
        "я сказал, что не ем мясо, но это неправда",
        "以前我跟别人说我吃素",
        "我跟他说我对花生过敏，其实不是",
    ],
)
def test_what_was_said_once_or_is_taken_back_is_no_fact(said: str) -> None:
    assert facts_after(said) == set()


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("As I said, I live in Leeds", "user lives in Leeds"),
        ("I told my doctor I'm allergic to penicillin", "user allergic to penicillin"),
        ("I've always said I hate cats, but now I love dogs", "user likes dogs"),
        ("I used to live in Leeds but now I live in York", "user lives in York"),
        ("como te dije, vivo en Madrid", "user lives in Madrid"),
    ],
)
def test_what_is_said_again_or_beside_it_holds(said: str, fact: str) -> None:
    assert facts_after(said) == {fact}


def test_a_diet_ends_beside_what_was_said_of_it() -> None:
    assert facts_after("I'm vegan", "I said I'm vegan, but I eat fish again") == set()


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("my wife has a son, Tim", "Tim"),
        ("my wife has a son called Tim from her first marriage", "Tim"),
        ("my partner has a daughter called Mia", "Mia"),
        ("meine Frau hat einen Sohn, Tim", "Tim"),
        ("mi mujer tiene un hijo, Tim", "Tim"),
        ("ma femme a un fils, Tim", "Tim"),
        ("у жены есть сын, Тим", "Тим"),
        ("我老婆有个儿子，叫小明", "小明"),
    ],
)
def test_a_child_of_the_wife_is_the_speakers_too(said: str, name: str) -> None:
    assert facts_after(said) == {f"user has child {name}"}


@pytest.mark.parametrize(
    "said",
    [
        "my sister had a baby, Max",
        "my sister has a son, Max",
        "my friend's son is called Max",
        "meine Schwester hat einen Sohn bekommen, er heißt Max",
        "ma sœur a eu un fils, il s'appelle Paul",
        "mi hermana tuvo una hija, se llama Lucía",
        "у моей сестры родился сын, Миша",
        "моя сестра родила сына, Мишу",
        "我姐姐生了个女儿，叫小美",
    ],
)
def test_a_child_of_the_sister_is_neither_a_sister_nor_the_speakers(said: str) -> None:
    assert facts_after(said) == set()


@pytest.mark.parametrize(
    "said",
    [
        ("my wife is called Nora", "Nora works at Bosch", "we split up last week"),
        ("my girlfriend Kate works at Siemens", "Kate is vegan", "we broke up"),
        ("my husband Tom is allergic to nuts", "the divorce is final"),
    ],
)
def test_what_was_known_of_a_partner_is_over_with_the_couple(said: tuple[str, ...]) -> None:
    assert facts_after(*said[:-1]) != set()
    facts, memories = told(*said)
    assert facts == set()
    assert len(memories) == 1


def test_only_the_one_who_left_is_forgotten() -> None:
    facts = facts_after("my girlfriend Kate works at Siemens", "Jo works at Bosch", "Kate left me")
    assert facts == {"Jo works at Bosch"}
    kept = facts_after("my husband is Ivo", "Ivo works at Siemens", "my ex Tom called")
    assert kept == {"user married to Ivo", "Ivo works at Siemens"}


@pytest.mark.parametrize(
    ("planned", "done"),
    [
        ("I'm getting married on 12 June 2026", "we got married yesterday"),
        ("our wedding is on 5 May", "done, the wedding was lovely"),
        ("my driving test is on 5 May", "the driving test went really well"),
        ("my exam is on 3 June", "passed my exam!"),
        ("unsere Hochzeit ist am 12. Juni", "wir haben gestern geheiratet"),
        ("Hochzeit am 5. Mai", "die Hochzeit war wunderschön"),
        ("la boda es el 12 de junio", "ya nos casamos ayer"),
        ("le mariage est le 12 juin", "on s'est mariés hier"),
        ("свадьба 12 июня", "вчера мы поженились"),
        ("我们6月12日结婚", "昨天我们结婚了"),
    ],
)
def test_what_went_well_is_planned_no_more(planned: str, done: str) -> None:
    opened = facts_after(planned)
    assert opened
    assert not opened & facts_after(planned, done)


def test_a_question_about_the_partner_finds_the_end_first() -> None:
    said = ["my girlfriend Kate works at Siemens", "we broke up"]
    days = [MONDAY, MONDAY + timedelta(days=30)]
    with Memory(":memory:", embedder=None, clock=lambda: days[-1]) as memory:
        pairs = zip(said, days, strict=True)
        memory.remember([Message("user", it, created_at=day) for it, day in pairs], user="ada")
        assert memory.jobs.catch_up(300) == 0
        assert [it.text for it in memory.memories.list(user="ada")] == said[1:]
        hits = memory.recall("where does my girlfriend work?", user="ada").hits
    over = {hit.text: bool(hit.over) for hit in hits}
    assert hits[0].text == said[1]
    assert over[said[0]]
    assert not over[said[1]]


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Я живу в Казани", "user lives in Казань"),
        ("живу в берлине уже год", "user lives in Берлин"),
        ("живу в Мурманске", "user lives in Мурманск"),
        ("живу в Сочи", "user lives in Сочи"),
        ("я переехал из Москвы в Испанию", "user lives in Испания"),
        ("я из Перми", "user comes from Пермь"),
        ("работаю в Яндексе", "user works at Яндекс"),
    ],
)
def test_a_russian_name_is_called_as_it_is(said: str, fact: str) -> None:
    assert facts_after(said) == {fact}


@pytest.mark.parametrize("said", ["Ben quit", "Ben got fired", "Ben quit last week"])
def test_a_known_name_is_no_word_of_another_language(said: str) -> None:
    known = facts_after("my colleague Ben works at Google")
    assert known == {"user has colleague Ben", "Ben works at Google"}
    assert facts_after("my colleague Ben works at Google", said) == {"user has colleague Ben"}


def test_who_went_somewhere_does_not_live_there() -> None:
    assert facts_after("I went to Rome last week") == set()


@pytest.mark.parametrize(
    "said",
    [
        "Quentin's moved to the grill section at his place.",
        "dad got moved to days at the plant",
        "my gran moved into sheltered housing in Crieff",
    ],
)
def test_what_others_move_into_is_no_town(said: str) -> None:
    assert facts_after(said) == set()


def test_what_is_told_of_a_post_is_one_memory() -> None:
    facts, memories = told("Stripe said yes!! I start in June", weeks=6)
    assert memories == ["Stripe said yes!! I start in June [June 2026]"]
    assert "user works at Stripe" in facts


@pytest.mark.parametrize(
    "said", ["He shall start at the school in August", "parents signed, they go to Irving in march"]
)
def test_what_others_plan_is_kept_but_is_no_plan_of_the_speaker(said: str) -> None:
    facts, memories = told(said)
    assert facts == set()
    assert len(memories) == 1


def test_a_name_is_whole_and_needs_a_word_for_whose_it_is() -> None:
    facts = facts_after("Kids: Xin Yi is at CHIJ Toa Payoh and Zhi Hao is P6, PSLE year")
    assert {"user has child Xin Yi", "user has child Zhi Hao"} <= facts
    assert "user has friend Sonne" not in facts_after("Packliste für Regen und Sonne im Juli")


def test_remarks_in_brackets_lead_to_whom_a_sentence_is_about_however_many_there_are() -> None:
    assert facts_after("my mate (a good one) got a job at Gazelle") == set()
    assert facts_after(f"my mate {'(yes)' * 900} got a job at Gazelle") == set()
