"""What contradicts what was said before takes its place, and nothing else."""

from __future__ import annotations

import pytest

from memorist.language.likeness import is_reversed
from tests.support.extraction import facts_after, told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I prefer tea over coffee", "actually I prefer coffee over tea these days"),
        ("Anna reports to Bjorn", "Bjorn reports to Anna"),
        ("the bus goes from New York to Boston", "the bus goes from Boston to New York"),
        (
            "my brother is in Oslo and my sister in Rome",
            "my brother is in Rome and my sister in Oslo",
        ),
        ("Ich mag Tee lieber als Kaffee", "Ich mag Kaffee lieber als Tee"),
        ("我喜欢茶胜过咖啡", "我喜欢咖啡胜过茶"),
    ],
)
def test_the_same_words_in_another_order_say_something_else(one: str, other: str) -> None:
    assert is_reversed(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("In May I moved to Berlin", "I moved to Berlin in May"),
        ("I like tea, milk and coffee", "I like coffee, milk and tea"),
        ("Ich habe am Montag Yoga", "Am Montag habe ich Yoga"),
        ("I'm allergic to nuts and I live in Porto", "I live in Porto and I'm allergic to nuts"),
    ],
)
def test_what_only_stands_elsewhere_says_the_same(one: str, other: str) -> None:
    assert not is_reversed(one, other)


def test_who_prefers_coffee_over_tea_prefers_tea_no_more() -> None:
    facts, memories = told("I prefer tea over coffee", "I prefer coffee over tea")
    assert facts == {"user prefers coffee over tea"}
    assert memories == ["I prefer coffee over tea"]


@pytest.mark.parametrize(
    ("diet", "again", "left"),
    [
        ("I'm gluten-free", "I eat meat again", {"user diet gluten-free"}),
        ("I'm vegetarian", "I eat meat again", set()),
        ("I'm pescatarian", "I eat fish again", {"user diet pescatarian"}),
        ("I'm vegan", "back to dairy", set()),
        ("I keep halal", "I eat everything again", set()),
        ("ich esse glutenfrei", "ich esse wieder Fleisch", {"user diet glutenfrei"}),
        ("soy vegetariana", "he vuelto a comer carne", set()),
        ("je suis végétarienne", "je remange de la viande", set()),
        ("я вегетарианка", "снова ем мясо", set()),
        ("我吃素", "我又吃肉了", set()),
    ],
)
def test_what_is_eaten_again_ends_the_diets_without_it(
    diet: str, again: str, left: set[str]
) -> None:
    assert facts_after(diet, again) == left


def test_who_turns_vegan_still_eats_no_gluten() -> None:
    facts = facts_after("I'm gluten-free", "I'm vegetarian", "I'm vegan now")
    assert facts == {"user diet gluten-free", "user diet vegan"}


@pytest.mark.parametrize(
    ("together", "over"),
    [
        ("my wife is called Nora", "we split up"),
        ("I'm married to Nora", "she moved out, we're done"),
        ("my boyfriend is Ivo", "I'm single again"),
        ("my husband is called Ivo", "he left me for his secretary"),
        ("my husband is called Ivo", "Ivo and I got divorced"),
        ("my husband is called Ivo", "the divorce came through today"),
        ("my fiancé is Ivo", "we called off the engagement"),
        ("meine Frau heißt Nora", "wir haben uns getrennt"),
        ("meine Freundin heißt Nora", "ich bin wieder Single"),
        ("mi novia se llama Nora", "lo hemos dejado"),
        ("ma femme s'appelle Nora", "je suis de nouveau célibataire"),
        ("мою жену зовут Нора", "мы развелись"),
        ("我女朋友叫小美", "我们分手了"),
    ],
)
def test_nobody_is_a_partner_after_a_break_up(together: str, over: str) -> None:
    assert any(" partner " in it or " married to " in it for it in facts_after(together))
    facts = facts_after(together, over)
    assert not any(" partner " in it or " married to " in it for it in facts)


@pytest.mark.parametrize(
    "said",
    [
        "my parents split up last year",
        "we split up the chores",
        "she left me a note on the fridge",
        "we're done with the kitchen",
        "if we get divorced I'll keep the cat",
        "we almost split up last year",
    ],
)
def test_what_is_no_break_up_leaves_the_partner(said: str) -> None:
    assert "user married to Nora" in facts_after("I'm married to Nora", said)


def test_who_left_somebody_may_have_found_another() -> None:
    facts = facts_after("my girlfriend is Nora", "Nora dumped me", "seeing someone new, Zoe")
    assert facts == {"user has partner Zoe"}


@pytest.mark.parametrize(
    ("said", "now", "then"),
    [
        (
            "I used to live in Graz, now it's Linz, but from June I'll be in Vienna",
            "Linz",
            "Vienna",
        ),
        ("früher hab ich in Graz gewohnt, jetzt in Linz, ab Juni in Wien", "Linz", "Wien"),
        ("antes vivía en León, ahora en Cádiz, desde junio estaré en Madrid", "Cádiz", "Madrid"),
        ("avant j'étais à Lyon, maintenant à Nantes, dès juin je serai à Paris", "Nantes", "Paris"),
        ("我以前住在成都，现在住在重庆，六月起住在上海", "重庆", "上海"),
    ],
)
def test_where_somebody_was_is_and_will_be_may_be_one_sentence(
    said: str, now: str, then: str
) -> None:
    def homes(weeks: int) -> set[str]:
        return {it for it in facts_after(said, weeks=weeks) if " lives in " in it}

    assert homes(0) == {f"user lives in {now}"}
    assert homes(6) == {f"user lives in {then}"}


def test_a_memory_that_tells_what_follows_stays() -> None:
    said = "I used to live in Graz, now it's Linz, but from June I'll be in Vienna"
    assert told(said, "nice weather", weeks=6)[1] == [f"{said} [June 2026]"]
