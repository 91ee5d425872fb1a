"""Categories and tags come from keywords in any language; every data file is sound."""

from __future__ import annotations

import pytest

from memorist.language.lexicon import category_of, language, languages_of, tags_of
from memorist.language.text import ALL_LANGUAGES, LANGUAGES, data


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("The build crashes with an exception in our code", "error_patterns"),
        ("Our code lives in one repository, and I like it", "code_context"),
        ("Restarting it solved it, as I prefer", "solutions"),
        ("I prefer tea", "user_preferences"),
        ("Ich bevorzuge Tee", "user_preferences"),
        ("Der Fehler steht im Quellcode", "error_patterns"),
        ("Me encanta el té", "user_preferences"),
        ("Je préfère le thé", "user_preferences"),
        ("Сервер падает, код не менялся", "error_patterns"),
        ("我喜欢喝茶", "user_preferences"),
        ("代码在仓库里", "code_context"),
        ("I was born in Graz", None),
        ("The encoder is unlikely, escaping rapidly", None),
        ("我们用python写", "code_context"),
    ],
)
def test_the_first_category_in_order_of_precedence_wins(text: str, category: str | None) -> None:
    assert category_of(text) == category


def test_tags_name_technologies_and_topics_once_each() -> None:
    text = "My wife and I use Python, pytest and Postgres at work"
    assert tags_of(text) == ("family", "python", "sql", "work")
    assert tags_of("我老婆喜欢咖啡") == ("family", "food")
    assert tags_of("nothing of note") == ()


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("I play the cello in an orchestra.", ()),  # thé, without its accent
        ("I like to chat with my friends.", ()),  # un chat
        ("J'ai un chat et je bois du thé.", ("pets", "food")),
        ("Te quiero mucho.", ()),
        ("Me gusta el café.", ("food",)),
        ("Ich habe einen Hund und trinke Tee.", ("pets", "food")),
        ("Ich bin Engineer, und wir machen ein Meeting.", ("work",)),
    ],
)
def test_a_topic_is_named_by_the_words_of_the_language_of_the_text(
    text: str, tags: tuple[str, ...]
) -> None:
    assert tags_of(text) == tags


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("I live here", "en"),
        ("Ich wohne hier", "de"),
        ("Yo vivo aquí", "es"),
        ("J'habite ici avec ma sœur", "fr"),
        ("Я живу здесь", "ru"),
        ("我住在这里", "zh"),
    ],
)
def test_a_language_is_known_by_its_script_and_its_commonest_words(text: str, code: str) -> None:
    assert [one.code for one in languages_of(text)] == [code]


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_rule_that_claims_something_names_its_object(code: str) -> None:
    for rule in language(code).rules:
        told = ("born on", "plans", "event", "has appointment")  # the date, or the whole clause
        if rule.predicate and not rule.object and rule.predicate not in told:
            written = rule.pattern.written
            assert "(?P<object>" in written or "(?P<food>" in written, written


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_the_same_cues(code: str) -> None:
    assert language(code).cues.keys() == language("en").cues.keys()


@pytest.mark.parametrize("code", ALL_LANGUAGES)
def test_a_stop_word_stands_in_one_group_and_once(code: str) -> None:
    groups = data(code, "words").get("stop_words", {})
    words = [word for group in groups.values() for word in group.split()]
    assert len(words) == len(set(words))
