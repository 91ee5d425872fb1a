"""What people tell in passing becomes facts that are right, current, and read well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memorist import Memory, Message
from memorist.lifecycle.rules import extract
from memorist.providers.reader import read
from tests.support.extraction import MONDAY, facts_after


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("I run a small bakery", "user runs small bakery"),
        ("je tiens une petite librairie à Nantes", "user runs petite librairie"),
        ("I teach pilates", "user teaches pilates"),
        ("I teach maths at a secondary school", "user teaches maths"),
        ("our standup moved from 9:30 to 10", "user standup 10"),
        ("My passport expires in March 2027", "user event passport expires in March 2027"),
        ("so the new deadline is December 5th", "user event new deadline is December 5th"),
        ("i'm a nurse at a clinic called Bluebird", "user works at Bluebird"),
        ("bought a second hand Yaris off a guy in Monza", "user owns Yaris"),
    ],
)
def test_a_fact_reads_as_one_would_say_it(message: str, fact: str) -> None:
    facts = facts_after(message)
    assert fact in facts
    words = ("user works as run", "user works as teach", "works as tiens", "user has appointment")
    assert not any(each.startswith(words) for each in facts)


@pytest.mark.parametrize(
    "message",
    [
        "Tom called me.",
        "Anna texted me",
        "Том мне позвонил.",
        "мама звонила вчера",
        "Tom hat mich angerufen.",
    ],
)
def test_a_call_is_no_fact(message: str) -> None:
    with Memory(":memory:", embedder=None, clock=lambda: MONDAY) as memory:
        memory.remember(Message("user", message, created_at=MONDAY), user="ada")
        assert memory.jobs.catch_up(300) == 0
        assert not memory.facts.list(user="ada")
        assert not memory.memories.list(user="ada")


def test_how_long_somebody_is_pregnant_is_not_their_age() -> None:
    assert facts_after("my wife Meera is 6 months pregnant") == {"user married to Meera"}


@pytest.mark.parametrize(
    "offer",
    [
        "I accepted the offer from Lumen! I start on 1 July.",
        "signed with Lumen today, i start 1 July",
        "got offered the job at Lumen!! start 1 july",
        "hab die Stelle bei Lumen bekommen, fange am 1. Juli an",
        "me han ofrecido un puesto en Lumen, empiezo el 1 de julio",
        "j'ai signé chez Lumen, je commence le 1er juillet",
    ],
)
def test_an_accepted_offer_ends_the_old_job_on_the_day_it_begins(offer: str) -> None:
    before = facts_after("I work at Siemens", offer)
    after = facts_after("I work at Siemens", offer, weeks=12)
    assert "user works at Siemens" in before
    assert "user works at Lumen" not in before
    assert after == {"user works at Lumen"}


@pytest.mark.parametrize(
    ("said", "corrected", "right"),
    [
        ("our son Theo is at school", "his name is Leo, not Theo, sorry", "child Leo"),
        ("we have a son, Theo", "her name's Leah not theo lol my bad", "child Leah"),
        ("we adopted a dog called Rex", "he's called Max, not Rex", "pet Max"),
        ("Baby's here! Her name is Anika", "it's spelled Anica, with a c", "child Anica"),
        ("meine Tochter Emma ist krank", "sie heißt Emmi, nicht Emma, sorry", "child Emmi"),
        ("mi hijo Mateo tiene gripe", "se llama Matías, no Mateo, perdón", "child Matías"),
        ("mon fils s'appelle Théo", "il s'appelle Léo, pas Théo, pardon", "child Léo"),
        ("у меня есть сын Миша", "ой, его зовут Гриша, а не Миша", "child Гриша"),
        ("我养了一只猫，叫豆豆", "它叫逗逗，不叫豆豆", "pet 逗逗"),
    ],
)
def test_a_name_is_corrected_for_whomever_it_is(said: str, corrected: str, right: str) -> None:
    assert facts_after(said, corrected) == {f"user has {right}"}


def test_a_phone_number_is_corrected() -> None:
    facts = facts_after("new number: 07700 900123", "oops typo, 07700 900132")
    assert facts == {"user phone 07700 900132"}


@pytest.mark.parametrize(
    ("said", "named", "fact"),
    [
        ("my bf and i share a flat", "his name's callum btw", "user has partner callum"),
        ("My brother's allergic to nuts", "his name is Owen", "user has brother Owen"),
        ("mon copain travaille chez Airbus", "il s'appelle Hugo", "user has partner Hugo"),
    ],
)
def test_a_name_told_in_the_next_message_is_that_of_whom_the_last_spoke(
    said: str, named: str, fact: str
) -> None:
    assert fact in facts_after(said, named)


def test_a_name_and_an_age_do_not_begin_when_somebody_moved() -> None:
    with Memory(":memory:", embedder=None, clock=lambda: MONDAY) as memory:
        text = "hey, i'm nora, 34, moved to leeds in jan"
        memory.remember(Message("user", text, created_at=MONDAY), user="ada")
        assert memory.jobs.catch_up(300) == 0
        began = {fact.predicate: fact.valid_from for fact in memory.facts.list(user="ada")}
    assert began == {"name": MONDAY, "age": MONDAY, "lives in": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("avoided", "again"),
    [
        ("i'm off gluten for now, doctor's orders", "gluten is fine again, test was negative"),
        ("I quit coffee", "I'm back on coffee"),
    ],
)
def test_what_is_fine_again_is_avoided_no_longer(avoided: str, again: str) -> None:
    assert facts_after(avoided)
    assert not facts_after(avoided, again)


@pytest.mark.parametrize(
    ("had", "left", "rest"),
    [
        ("my friend Ana is a nurse", "Ana quit nursing", {"user has friend Ana"}),
        ("my son Dan works at Tesco", "Dan quit already", {"user has child Dan"}),
        ("我男朋友叫阿杰，他在字节跳动上班", "阿杰从字节跳动辞职了", {"user has partner 阿杰"}),
        (
            "mein Bruder Jan wohnt in Wien und arbeitet bei Bosch",
            "Jan hat bei Bosch gekündigt",
            {"user has brother Jan", "Jan lives in Wien"},
        ),
    ],
)
def test_what_others_leave_is_over(had: str, left: str, rest: set[str]) -> None:
    assert facts_after(had) > rest
    assert facts_after(had, left) == rest


@pytest.mark.parametrize(
    ("home", "plan", "off"),
    [
        ("i live in Bonn", "we're moving to Graz in august", "the move is off"),
        ("ich wohne in Bonn", "wir ziehen im August nach Graz", "der umzug ist abgesagt"),
        ("vivo en Bonn", "nos mudamos a Graz en agosto", "al final no nos mudamos"),
        ("j'habite à Bonn", "on déménage à Graz en août", "finalement on déménage pas"),
    ],
)
def test_a_move_that_is_off_leaves_the_home(home: str, plan: str, off: str) -> None:
    assert facts_after(home, plan, off, weeks=20) == {"user lives in Bonn"}


@pytest.mark.parametrize(
    ("bought", "off"),
    [
        (
            "We bought a house in Mansfield!",
            "closing fell through, so we're not moving to Mansfield",
        ),
        ("We're closing on a house in Mansfield in June", "the closing fell through"),
    ],
)
def test_a_home_that_comes_to_nothing_leaves_the_one_before(bought: str, off: str) -> None:
    facts = facts_after("i live in Leeds", bought, off)
    assert "user lives in Leeds" in facts
    assert not any("Mansfield" in fact for fact in facts)
    assert "user lives in Leeds" in facts_after("i live in Leeds", "I'm not moving from Leeds")


@pytest.mark.parametrize(
    "message",
    [
        "new flatmate is Hannah, she has a cat named Milo",
        "my sister adopted a dog called Rex",
        "they got a cat called Mia",
        "our neighbours have a dog named Odin",
        "our daughter has a hamster called Pip",
        "mein Bruder hat einen Hund namens Odin",
        "so my sister Beth just had twins, Max and Ruby",
        "Zara had the baby, a girl, Mina",
    ],
)
def test_what_others_have_is_not_the_speakers(message: str) -> None:
    facts = " ".join(facts_after(message))
    assert " has pet " not in facts
    assert " has child " not in facts


def test_whom_a_couple_has_is_the_speakers() -> None:
    facts = facts_after(
        "my wife and i have a son, Leo",
        "we had twins, Max and Ruby",
        "mein Mann hat unseren Sohn Emil abgeholt",
    )
    assert facts == {f"user has child {name}" for name in ("Leo", "Max", "Ruby", "Emil")}


@pytest.mark.parametrize(
    ("owned", "lost"),
    [
        ("got a used Brompton", "Someone stole the Brompton outside Aldi"),
        ("hab mir ein gebrauchtes E-Bike gekauft", "das e-bike wurde geklaut :("),
        ("у нас кот Барсик", "Барсик умер :("),
        ("I've bought a bike", "The bike was stolen from outside the library this morning"),
        ("I've bought a road bike", "Someone stole my road bike from the shed"),
        ("i cycle to work on my road bike, a Boardman", "sold my road bike"),
        ("our cat Luna is ill", "gave Luna away, to my sister"),
        ("we adopted a dog called Rex", "we had to give the dog away"),
        ("wir haben eine Katze, Minka", "wir mussten Minka leider abgeben"),
        ("tenemos una gata, Luna", "hemos dado a Luna en adopción"),
        ("on a un chat, Minou", "on a donné Minou à une amie"),
        ("у нас кот Барсик", "мы отдали Барсика в добрые руки"),
        ("我养了一只猫，叫豆豆", "我们把豆豆送人了"),
    ],
)
def test_what_is_gone_is_theirs_no_longer(owned: str, lost: str) -> None:
    assert len(facts_after(owned)) == 1
    assert not facts_after(owned, lost)


def test_of_two_pets_in_one_memory_none_is_taken_for_the_one_that_is_given_away() -> None:
    had = facts_after("our dog Rex is two and our cat is Luna")
    assert had == {"user has pet Rex", "user has pet Luna"}
    assert facts_after("our dog Rex is two and our cat is Luna", "we gave the dog away") == had
    moved = facts_after("our daughter feeds our cat Luna", "our daughter lives with her dad now")
    assert "user has pet Luna" in moved


@pytest.mark.parametrize(
    ("had", "over"),
    [
        ("i'm allergic to eggs", "turns out i've outgrown the egg allergy"),
        ("i'm allergic to eggs", "my allergy to eggs has gone"),
        ("ich habe eine Eiallergie", "meine Eiallergie ist weg"),
        ("soy alérgica al huevo", "se me ha quitado la alergia al huevo"),
        ("je suis allergique aux œufs", "mon allergie aux œufs a disparu"),
        ("у меня аллергия на яйца", "аллергия на яйца прошла"),
        ("我对鸡蛋过敏", "鸡蛋过敏好了"),
    ],
)
def test_an_allergy_that_is_gone_is_over(had: str, over: str) -> None:
    assert len(facts_after(had)) == 1
    assert not facts_after(had, over)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I prefer tea to coffee", "prefer coffee"),
        ("I prefer coffee", "prefer tea to coffee"),
        ("I prefer night shifts to days", "prefer days to nights"),
        ("I prefer the Globe crossword to the Times one", "prefer the Times crossword"),
    ],
)
def test_a_preference_ends_once_what_was_passed_over_is_preferred(before: str, now: str) -> None:
    right = now.replace("prefer", "user prefers")
    assert facts_after(before, f"i {now} now") == {right}


@pytest.mark.parametrize(
    ("before", "now", "right"),
    [
        ("prefiero el tren al avión", "la verdad es que ahora prefiero el avión", "avión"),
        ("je préfère le train à l'avion", "je préfère l'avion maintenant", "avion"),
    ],
)
def test_a_preference_is_turned_round_in_other_languages(before: str, now: str, right: str) -> None:
    assert facts_after(before, now) == {f"user prefers {right}"}


def test_another_preference_for_the_same_thing_ends_none() -> None:
    facts = facts_after("I prefer tea to coffee", "I prefer tea", "I prefer the train to flying")
    assert len(facts) == 3


@pytest.mark.parametrize("over", ["we split up in the summer", "me and my husband broke up"])
def test_who_splits_up_is_married_no_longer(over: str) -> None:
    assert facts_after("my husband Dan is at home") == {"user married to Dan"}
    assert not facts_after("my husband Dan is at home", over)
    assert facts_after("my husband Dan is at home", "we split up the work")


def test_a_newborn_is_not_the_wife_of_whom_the_message_before_spoke() -> None:
    facts = facts_after("my wife Meera is pregnant", "Baby's here! Her name is Anika")
    assert facts == {"user married to Meera", "user has child Anika"}


def test_a_partner_is_none_since_the_month_of_a_journey() -> None:
    text = "me and callum want to go to puglia in june"
    found = extract(Message("user", text, created_at=MONDAY), read=read)
    began = {it.predicate: it.valid_from for one in found for it in one.claims if not it.ends}
    assert began["has partner"] == MONDAY


def test_a_course_begins_on_the_day_ahead() -> None:
    with Memory(":memory:", embedder=None, clock=lambda: MONDAY) as memory:
        text = "taking a carpentry course from september"
        memory.remember(Message("user", text, created_at=MONDAY), user="ada")
        assert memory.jobs.catch_up(300) == 0
        facts = memory.facts.as_of(valid=MONDAY + timedelta(weeks=20), user="ada")
        began = {fact.object: fact.valid_from for fact in facts}
    assert began["carpentry"] == datetime(2026, 9, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "memory"),
    [
        ("seeing someone new, Alex.", "seeing someone new, Alex."),
        ("我开了一家小面馆，在成都", "我开了一家小面馆，在成都"),
        ("i'm 34, what should I eat?", "i'm 34"),
        ("oh and i'm allergic to nuts", "i'm allergic to nuts"),
        ("ach, und ich bin allergisch gegen Nüsse", "ich bin allergisch gegen Nüsse"),
        ("ah, y soy alérgica a las nueces", "soy alérgica a las nueces"),
        ("ah, et je suis allergique aux noix", "je suis allergique aux noix"),
        ("ой, и у меня аллергия на орехи", "у меня аллергия на орехи"),
        ("对了，我对坚果过敏", "我对坚果过敏"),
    ],
)
def test_a_memory_can_be_understood_alone(message: str, memory: str) -> None:
    assert [one.text for one in extract(Message("user", message), read=read)] == [memory]


def test_what_follows_a_not_is_not_claimed() -> None:
    assert facts_after("allergy test: it's kiwi not strawberries") == {"user allergic to kiwi"}


def test_the_price_of_another_is_no_figure_of_the_speaker() -> None:
    assert not facts_after("Rui raised his price to 30€ an hour")
    assert facts_after("I raised my price to 30 an hour") == {"user price 30"}


def test_what_is_not_eaten_is_no_diet() -> None:
    facts = facts_after("I don't eat pork or shellfish")
    assert facts == {"user avoids pork", "user avoids shellfish"}


def test_an_event_is_not_cut_before_its_thing() -> None:
    assert "user event got an" not in facts_after("I got an offer from Lumen, starting 1 June")


def test_what_a_rule_has_a_name_for_is_nothing_else() -> None:
    assert facts_after("Ich bin laktoseintolerant") == {"user diet laktosefrei"}


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("what can I eat? I'm allergic to nuts", "user allergic to nuts"),
        ("ugh I'm allergic to cats, what now", "user allergic to cats"),
        ("Mum texted, I'm allergic to penicillin apparently", "user allergic to penicillin"),
        ("I need to pay the rent by Friday", "user plans pay the rent by Friday"),
    ],
)
def test_what_is_told_in_passing_is_known(message: str, fact: str) -> None:
    assert fact in facts_after(message)


def test_what_is_not_wanted_is_no_preference_or_diet() -> None:
    facts = facts_after("so dont suggest 7am stuff", "i dont even drink beer")
    assert facts == {"user dislikes 7am stuff", "user avoids beer"}


def test_the_number_of_a_house_is_no_age() -> None:
    assert "user age 71" in facts_after("I'm Ken, I'm 71", "Well I'm in. 14 Catherine Close.")


@pytest.mark.parametrize(
    "message",
    [
        "Joined the Selwood bowls club, £85 a year",
        "I joined the Rotary Club last week",
        "I've joined the choir at St John's as well",
    ],
)
def test_a_club_is_no_employer(message: str) -> None:
    assert not any(" works at " in fact for fact in facts_after(message))
    assert "user works at Stripe" in facts_after("I joined the platform group at Stripe")


def test_when_somebody_moved_is_no_plan() -> None:
    facts = facts_after("I work at the Royal Infirmary", "i'm at St James now, moved in april")
    assert "user works at St James" in facts
    assert not any(" plans " in fact for fact in facts)


def test_a_baby_that_is_awaited_comes_next_august() -> None:
    text = "ma femme Inès attend un bébé pour août"
    said = Message("user", text, created_at=MONDAY)
    assert [one.text for one in extract(said, read=read)] == [f"{text} [August 2026]"]
