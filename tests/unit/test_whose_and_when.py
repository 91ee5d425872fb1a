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
        "Sheila's son Martin got up and sang",
        "Graham is flying over with his wife Joanne on 18 June",
        "her husband Pete and her sister Kate came, too",
        "To be near Rachel, her husband Pete and the little ones, Molly who is 9 and Jude who is 6",
        "meine Schwester kommt, ihr Mann und die Kinder, Max und Ruby, auch",
        "Emre's fiancée Selin is pregnant, due in October",
        "Pete's got me a dog to cheer me up!!",
        "im an auntie!!! Selin had the baby on friday, a girl",
        "Ich war auf dem Fest, und Sabines Sohn Martin hat gesungen",
        "mi vecina vino con su hija Marta",
        "j'ai vu Paul, il est venu avec sa femme Julie",
    ],
)
def test_a_relative_or_pet_of_another_is_not_the_speakers(said: str) -> None:
    relatives = ("married to", "has partner", "has child", "has pet", "has sister")
    assert not any(f"user {one} " in fact for fact in facts_after(said) for one in relatives)


def test_the_kids_beside_my_husband_are_ours() -> None:
    facts = facts_after("my husband and the kids, Max and Ruby, are here")
    assert facts == {"user has child Max", "user has child Ruby"}


def test_not_every_s_after_a_name_says_whose_somebody_is() -> None:
    assert "user has child Leo" in facts_after("Friday's with my son Leo")
    assert "user has child Ruby" in facts_after("Dad's taking the twins, Max and Ruby")


def test_a_verb_that_begins_a_sentence_is_nobody() -> None:
    said = "Found a flat in Chapel Allerton, moving in on 14 November."
    assert "user lives in Chapel Allerton" in facts_after(said, weeks=40)


def test_a_place_ends_where_it_is_told_with_whom() -> None:
    facts = facts_after("my brother Emre lives in Kirkstall w his cat called Pepper")
    assert "Emre lives in Kirkstall" in facts


def test_a_wife_beside_those_of_others_is_the_speakers() -> None:
    facts = facts_after("I came with my wife Lena, and Tom with his wife Anna")
    assert "user married to Lena" in facts
    assert not any("Anna" in fact for fact in facts)


@pytest.mark.parametrize("said", ["Ich mag Tee", "Yo odio el café", "Nous adorons le thé"])
def test_i_and_we_are_no_names(said: str) -> None:
    assert all(fact.startswith("user ") for fact in facts_after(said))


def test_a_partner_is_one_before_what_both_plan() -> None:
    assert "user has partner Callum" in facts_after("me and Callum are dating, Rome in june!")


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


@pytest.mark.parametrize(
    ("works", "quit"),
    [
        ("I work at Siemens", "quit my job!"),
        ("I work at Siemens", "so I quit today, after 14 years"),
        ("I work at Siemens", "just got laid off last week"),
        ("ich arbeite bei Siemens", "hab gekündigt!! nach 14 Jahren"),
        ("ich arbeite bei Siemens", "mir wurde gestern gekündigt"),
        ("trabajo en Siemens", "he dejado el trabajo, no podía más"),
        ("trabajo en Siemens", "me han despedido"),
        ("je travaille chez Siemens", "j'ai démissionné hier"),
        ("я работаю в Сименсе", "меня вчера уволили"),
        ("я работаю в Сименсе", "я вчера уволилась"),
        ("我在华为工作", "我昨天辞职了"),
    ],
)
def test_who_quits_works_there_no_longer(works: str, quit: str) -> None:
    assert any(fact.startswith("user works at") for fact in facts_after(works))
    assert not any(fact.startswith("user works at") for fact in facts_after(works, quit))


@pytest.mark.parametrize(
    "said",
    [
        "my sister and her mate got laid off yesterday",
        "I quit the gym",
        "ich hab die Wohnung gekündigt",
        "mi hermana ha dejado el trabajo",
        "ma sœur a démissionné",
        "моя сестра уволилась",
        "我朋友辞职了",
    ],
)
def test_who_quits_something_else_or_is_somebody_else_ends_no_job(said: str) -> None:
    assert "user works at Siemens" in facts_after("I work at Siemens", said)


def test_who_quits_in_the_message_that_names_the_new_job_has_it() -> None:
    for said in (
        "I joined Lumen on Monday! Finally quit my job.",
        "I quit my job and joined Lumen",
    ):
        assert "user works at Lumen" in facts_after("I work at Siemens", said)


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("seeing someone new, his name is aled", {"user has partner aled"}),
        ("I've been seeing a girl called Maja", {"user has partner Maja"}),
        ("my sister is dating a guy called Bob", set[str]()),
        ("my sister is seeing someone, his name is Bob", set[str]()),
    ],
)
def test_who_is_seeing_somebody_has_a_partner(said: str, facts: set[str]) -> None:
    assert facts_after(said) == facts


@pytest.mark.parametrize(
    ("before", "now", "preferred"),
    [
        ("I like tea better than coffee", "these days I like coffee more than tea", "coffee"),
        ("ich trink lieber Tee als Kaffee", "inzwischen mag ich Kaffee lieber als Tee", "Kaffee"),
        ("me gusta más el té que el café", "ahora me gusta más el café que el té", "café"),
        ("j'aime mieux le thé que le café", "maintenant j'aime plus le café que le thé", "café"),
        ("чай люблю больше, чем кофе", "теперь больше люблю кофе, чем чай", "кофе"),
        ("比起茶，我更喜欢咖啡", "比起咖啡，我现在更喜欢茶", "茶"),
    ],
)
def test_of_two_things_one_is_liked_better_until_it_is_the_other(
    before: str, now: str, preferred: str
) -> None:
    preferences = {it for it in facts_after(before, now) if it.startswith("user prefers ")}
    assert preferences == {f"user prefers {preferred}"}


@pytest.mark.parametrize(
    "said",
    [
        "mi novia se llama Ana, su cumple es el 18 de mayo",
        "son anniversaire est le 3 mai",
        "его день рождения 3 мая",
        "her birthday is 3 May",
    ],
)
def test_whose_birthday_it_is_a_pronoun_tells_too(said: str) -> None:
    assert not any(fact.startswith("user birthday") for fact in facts_after(said))


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        (["we use Django", "the stack is Django 4.2"], {"uses Django", "uses Django 4.2"}),
        (["we use Django 3", "the stack is Django 4.2"], {"uses Django 4.2"}),
        (["we use Heroku", "we're leaving Heroku"], set[str]()),
        (["we use Heroku", "Sven is leaving Heroku"], {"uses Heroku"}),
        (["day rate 420"], {"rate 420 (day rate)"}),
        (["my rent is 690", "rent 720 now"], {"rent 720"}),
    ],
)
def test_what_is_used_and_what_things_cost_now(said: list[str], facts: set[str]) -> None:
    assert facts_after(*said) == {f"user {fact}" for fact in facts}


def test_a_plan_is_told_without_the_week_before_which_it_is() -> None:
    assert "user plans freeze the schema" in facts_after(
        "remind me to freeze the schema the week before"
    )


@pytest.mark.parametrize(
    "said",
    [
        "I like it more than I expected",
        "I like hiking more than I used to",
        "ich mag dich lieber als ihn",
        "me gusta más que antes",
    ],
)
def test_what_is_liked_more_than_before_is_no_preference(said: str) -> None:
    assert not any(fact.startswith("user prefers ") for fact in facts_after(said))


@pytest.mark.parametrize(
    "said",
    [
        "a 3yo whippet, she's called Pixel",
        "wir haben einen Welpen, der heißt Balu",
        "tenemos un perro, se llama Toby",
        "on a un chien, il s'appelle Toby",
        "у нас собака, её зовут Белка",
        "我们养了一只狗，它叫小白",
    ],
)
def test_what_says_how_something_is_called_is_told_with_what_it_is(said: str) -> None:
    facts, memories = told(said)
    assert len(facts) == 1
    assert memories == [said]


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


def test_what_the_speaker_calls_off_counts_beside_what_others_do() -> None:
    facts = facts_after(
        "I'm starting at Lumen in June.",
        "My brother got a job at Bosch, but I'm sticking with my job for now.",
    )
    assert facts == {"user's brother works at Bosch"}
