"""What may be said from what was said."""

from __future__ import annotations

import pytest

from memorist.language.likeness import Ground, is_grounded


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I moved to Berlin yesterday", "The user moved to Berlin on 2026-03-03."),
        ("I moved to Berlin yesterday", "The user moved to Berlin on 3 March 2026."),
        ("peanuts make my throat swell", "User is allergic to peanuts."),
        ("my flat costs 1450 euros", "The user's flat costs 1,450 euros."),
        ("we have two kids", "The user has 2 kids."),
        ("Docs are at https://x.example/a.", "Docs of the user: https://x.example/a"),
        ("Ich wohne seit März in Köln.", "Der Nutzer wohnt seit März in Köln."),
        ("Ich bin Lehrer, Schule in Köln", "Der Nutzer ist Lehrer an einer Schule in Köln."),
        ("Vivo en Madrid desde 2019", "El usuario vive en Madrid desde 2019."),
        ("Я живу в Берлине", "Пользователь живёт в Берлине."),
        ("我住在柏林", "用户住在柏林"),
        ("저는 베를린에 살아요", "사용자는 베를린에서 산다"),
        ("ich hasse Koriander", "Der Nutzer hasst Koriander."),
        ("I use Go at work", "The user uses Go at work."),
    ],
)
def test_what_was_said_in_other_words_is_grounded(said: str, text: str) -> None:
    ground = Ground.of(said)

    assert is_grounded(text, ground, ground)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I work at a tech company", "The user works at Google."),
        ("Ich arbeite an einer Schule", "Der Nutzer arbeitet an einer Schule als Lehrer."),
        ("I like tea", "The user is a millionaire and owns a yacht."),
        ("I paid 20 euros", "The user paid 2000 euros."),
        ("mail me", "The user's mail is eve@evil.example."),
        ("我住在柏林", "用户喜欢喝咖啡"),
        ("Я живу в Берлине", "Пользователь ненавидит кофе"),
        ("hello", "The user."),
        ("hello", "!!!"),
    ],
)
def test_what_nobody_said_is_not_grounded(said: str, text: str) -> None:
    ground = Ground.of(said)

    assert not is_grounded(text, ground, ground)


def test_a_name_may_come_from_another_message() -> None:
    text = "Eva Braun moved to Berlin."
    cited = Ground.of("She moved to Berlin.")

    assert is_grounded(text, cited, Ground.of("My sister is Eva Braun.\nShe moved to Berlin."))
    assert not is_grounded(
        "Her sister Eva moved to Berlin.", Ground.of("moved"), Ground.of("moved")
    )
