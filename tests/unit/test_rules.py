"""Rules keep what people say of themselves and their work, and leave the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memorist import Message
from memorist.language.lexicon import Rule, codes_of, language, plain
from memorist.language.patterns import Pattern
from memorist.lifecycle import rules
from memorist.lifecycle.clauses import Clauses
from memorist.lifecycle.marks import SURE, MarkedPart
from memorist.lifecycle.rules import extract
from memorist.lifecycle.statement import RuleMatch, Statement
from memorist.records.memories import PLANS, Candidate

SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)


def extracted(text: str, role: str = "user", name: str | None = None) -> list[Candidate]:
    return extract(Message(role=role, content=text, name=name, created_at=SUNDAY))


def claims(text: str) -> list[tuple[str, str, str, bool]]:
    """What a text claims, other than that a plan is done: anything done may have been one."""
    return [
        (claim.subject, claim.predicate, claim.object, claim.ends)
        for candidate in extracted(text)
        for claim in candidate.claims
        if not (claim.ends and claim.predicate in PLANS)
    ]


@pytest.mark.parametrize(
    ("text", "predicate", "thing"),
    [
        ("My name is Sofia and I'm a nurse.", "name", "Sofia"),
        ("I work as a data engineer at Zalando.", "works at", "Zalando"),
        ("I work as a data engineer at Zalando.", "works as", "data engineer"),
        ("I've lived in Porto since 2019.", "lives in", "Porto"),
        ("I'm allergic to penicillin, so what can I take?", "allergic to", "penicillin"),
        ("My favourite colour is teal.", "favourite colour", "teal"),
        ("Our dog is called Biscuit.", "has pet", "Biscuit"),
        ("Ich bin gegen Erdnüsse allergisch.", "allergic to", "Erdnüsse"),
        ("Meine Lieblingsfarbe ist Grün.", "favourite colour", "Grün"),
        ("Unser Kater heißt Felix.", "has pet", "Felix"),
        ("Me llamo Carmen y vivo en Sevilla.", "lives in", "Sevilla"),
        ("Mi color favorito es el verde.", "favourite colour", "verde"),
        ("Меня зовут Ольга, живу в Казани.", "name", "Ольга"),
        ("Мой любимый цвет — зелёный.", "favourite colour", "зелёный"),
        ("我叫王芳，住在杭州。", "lives in", "杭州"),
        ("我最喜欢的颜色是绿色。", "favourite colour", "绿色"),
        ("我对花生过敏。", "allergic to", "花生"),
    ],
)
def test_a_claim_has_an_english_predicate_and_a_clean_object(
    text: str, predicate: str, thing: str
) -> None:
    assert ("user", predicate, thing, False) in claims(text)


@pytest.mark.parametrize(
    ("text", "predicate", "thing"),
    [
        ("I no longer work at Siemens.", "works at", "Siemens"),
        ("I quit my job at Deloitte last month.", "works at", "Deloitte"),
        ("I moved out of Munich in June.", "lives in", "Munich"),
        ("Ich wohne nicht mehr in Hamburg.", "lives in", "Hamburg"),
        ("Ya no vivo en Bilbao.", "lives in", "Bilbao"),
        ("Я больше не живу в Самаре.", "lives in", "Самара"),
        ("我已经不住在深圳了。", "lives in", "深圳"),
    ],
)
def test_an_ending_ends_its_claim(text: str, predicate: str, thing: str) -> None:
    assert claims(text) == [("user", predicate, thing, True)]


def test_who_hates_coffee_no_longer_likes_it() -> None:
    assert claims("I hate coffee.") == [
        ("user", "dislikes", "coffee", False),
        ("user", "likes", "coffee", True),
    ]


@pytest.mark.parametrize(
    ("text", "predicate", "thing"),
    [
        ("Nací el 22 de noviembre.", "birthday", "22 de noviembre"),
        ("Je suis né le 30 décembre.", "birthday", "30 décembre"),
        ("Je suis né le 30 décembre 1990.", "born on", "30 December 1990"),
    ],
)
def test_a_day_of_birth_without_a_year_is_a_birthday(text: str, predicate: str, thing: str) -> None:
    [claim] = extracted(text)[0].claims
    assert (claim.predicate, claim.object) == (predicate, thing)


def test_a_move_ends_the_old_home() -> None:
    assert claims("We moved from Oslo to Bergen.") == [
        ("user", "lives in", "Bergen", False),
        ("user", "lives in", "Oslo", True),
    ]


def test_a_list_makes_a_claim_of_each_thing() -> None:
    liked = [thing for _, predicate, thing, _ in claims("I love jazz, blues and chess.")]
    assert liked[:3] == ["jazz", "blues", "chess"]


def test_where_a_thing_is_disliked_is_no_thing() -> None:
    things = [thing for _, _, thing, _ in claims("No soporto el pepino, ni en la sopa.")]
    assert "pepino" in things
    assert not any("sopa" in thing for thing in things)


def test_the_speaker_is_no_part_of_what_they_dislike() -> None:
    assert ("user", "dislikes", "острого", False) in claims("острого я не люблю")
    assert ("user", "dislikes", "на дух", False) not in claims("на дух не переношу лицемеров")


def test_a_relative_date_is_told_in_brackets_and_dates_the_claim() -> None:
    [candidate] = extracted("I moved to Berlin last month.")
    assert candidate.text == "I moved to Berlin last month. [October 2026]"
    assert candidate.claims[0].valid_from == datetime(2026, 10, 1, tzinfo=UTC)
    assert candidate.claims[0].single
    assert (candidate.kind, candidate.category) == ("fact", "knowledge")


def test_without_a_date_a_claim_holds_since_it_was_said() -> None:
    [candidate] = extracted("I like tea.")
    assert candidate.claims[0].valid_from == SUNDAY
    assert not candidate.claims[0].single
    assert (candidate.kind, candidate.category) == ("concept", "user_preferences")


@pytest.mark.parametrize(
    "text",
    [
        "I live in Ghent until June 2027.",
        "Ich wohne in Gent bis Juni 2027.",
        "Vivo en Gante hasta junio de 2027.",
        "J'habite à Gand jusqu'en juin 2027.",
        "Я живу в Генте до июня 2027.",
        "我在根特住到2027年6月。",
    ],
)
def test_a_claim_holds_until_the_day_that_it_names(text: str) -> None:
    [candidate] = extracted(text)
    [claim] = [it for it in candidate.claims if it.predicate == "lives in"]
    assert (claim.valid_from, claim.valid_to) == (SUNDAY, datetime(2027, 7, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "text", ["我今年3月搬到上海了。", "我搬到上海，今年12月。", "I lived in Ghent until June 2020."]
)
def test_a_move_and_what_is_past_hold_until_no_day(text: str) -> None:
    lasting = [it for one in extracted(text) for it in one.claims if it.predicate not in PLANS]
    assert [it.valid_to for it in lasting if it.valid_to] == []


def test_until_a_month_is_until_the_next_one_if_it_is_so_now() -> None:
    [candidate] = extracted("I live in Ghent until June.")
    assert candidate.text == "I live in Ghent until June. [June 2027]"
    assert candidate.claims[0].valid_from == SUNDAY
    assert candidate.claims[0].valid_to == datetime(2027, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "lasts"),
    [
        ("I'm in Oslo until Friday", True),
        ("I'm working from home until Friday", True),
        ("I have an essay to hand in, I've got until Friday", False),
        ("ich bin bis Freitag in Oslo", True),
        ("bis Freitag bin ich in Oslo", True),
        ("wir sind bis Freitag mit dem Bericht fertig", False),
        ("bis Freitag muss ich den Bericht abgeben", False),
        ("estoy en Oslo hasta el viernes", True),
        ("tengo hasta el viernes para entregar el informe", False),
        ("je suis à Oslo jusqu'à vendredi", True),
        ("j'ai jusqu'à vendredi pour rendre le rapport", False),
        ("я в Осло до пятницы", True),
        ("до пятницы я должен сдать отчёт в бухгалтерию", False),
        ("我在奥斯陆待到周五", True),
    ],
)
def test_what_is_so_until_a_day_ends_then_but_not_what_is_due_by_then(
    text: str, lasts: bool
) -> None:
    [code] = codes_of(text)
    clauses = Clauses(plain(text), language(code).cues["pauses"])
    match = RuleMatch(
        Rule("plan", Pattern("")), MarkedPart(text, 0, len(text), SURE), language(code)
    )
    assert Statement(text, clauses, "user", SUNDAY).lasts(match) is lasts


def test_a_plan_that_lasts_until_a_day_holds_no_longer_after_it() -> None:
    [candidate] = extracted("Staying in Oslo until Friday")
    [claim] = candidate.claims
    assert (claim.predicate, claim.valid_to) == ("plans", datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("my boss is called Oren and the wedding is on 3 May", "wedding is on 3 May"),
        ("I live in Berlin and the wedding is on 3 May", "wedding is on 3 May"),
        ("I live in Berlin and fly to Oslo on Friday", "fly to Oslo on Friday"),
        ("Anna and my wedding is on 3 May", "Anna and my wedding is on 3 May"),
        ("mum and dad are coming on Friday", "mum and dad are coming on Friday"),
        ("mein Chef heißt Oren und die Hochzeit ist am 3. Mai", "Hochzeit ist am 3. Mai"),
        ("mi jefe se llama Oren y la boda es el 3 de mayo", "boda es el 3 de mayo"),
        ("mon chef s'appelle Oren et le mariage est le 3 mai", "mariage est le 3 mai"),
        ("моего начальника зовут Олег и свадьба 3 мая", "свадьба 3 мая"),
    ],
)
def test_a_plan_is_told_by_its_own_clause(text: str, event: str) -> None:
    assert [claim[2] for claim in claims(text) if claim[1] in PLANS] == [event]


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("My name is Ada, mum and dad are coming on Friday", "Ada"),
        ("Ich wohne in Berlin und habe am Freitag einen Zahnarzttermin", "Berlin"),
    ],
)
def test_the_day_of_a_plan_is_not_when_something_else_began(text: str, thing: str) -> None:
    [candidate] = extracted(text)
    assert "13 November" not in candidate.text
    [began] = {it.valid_from for it in candidate.claims if it.object == thing}
    assert began == SUNDAY


def test_until_ends_only_what_its_clause_says() -> None:
    [candidate] = extracted("I live in Ghent, on leave until June 2027.")
    [claim] = [it for it in candidate.claims if it.predicate == "lives in"]
    assert (claim.valid_from, claim.valid_to) == (SUNDAY, None)


def test_an_appointment_of_the_day_expires_with_it() -> None:
    [candidate] = extracted("I have a dentist appointment today at 5.")
    assert candidate.kind == "working"
    assert candidate.expires_at == datetime(2026, 11, 16, tzinfo=UTC)
    [later] = extracted("I have a dentist appointment on Tuesday.")
    assert (later.kind, later.expires_at) == ("episode", None)
    assert later.text.endswith("[17 November 2026]")


def test_each_date_is_of_what_its_clause_tells() -> None:
    [candidate] = extracted("My manager Priya is strict, so the new deadline is December 5th.")
    assert candidate.text.endswith("[5 December 2026]")
    [candidate] = extracted("I joined Meta in January, and my exam is on 5 December.")
    assert candidate.text.endswith("[January 2026; 5 December 2026]")


def test_errors_and_solutions_are_told_apart() -> None:
    [error] = extracted("The deploy fails with an OutOfMemoryError on staging.")
    assert (error.kind, error.category) == ("episode", "error_patterns")
    [solution] = extracted("I solved it by restarting the router.")
    assert (solution.kind, solution.category) == ("procedure", "solutions")


def test_a_full_stop_ends_a_sentence_only_where_one_ends() -> None:
    assert len(extracted("I'm 29. I live in Rome.")) == 2
    [whole] = extracted("Am 5. Mai 2019 bin ich nach Köln gezogen.")
    assert whole.claims[0].valid_from == datetime(2019, 5, 5, tzinfo=UTC)
    [named] = extracted("I work for Dr. Jones at St. Mary's Hospital, e.g. on Sundays.")
    assert named.text.startswith("I work for Dr. Jones at St. Mary's")


def test_a_correction_says_so() -> None:
    [candidate] = extracted("Actually, my birthday is on 3 June, not 4 June.")
    assert candidate.corrects
    assert not extracted("My birthday is on 3 June.")[0].corrects


def test_in_a_chat_of_friends_the_subject_is_the_speaker() -> None:
    message = Message(role="user", name="Mel", content="My wife Ana is a nurse.", message_id="m1")
    [candidate] = extract(message, source="import")
    assert {claim.subject for claim in candidate.claims} == {"Mel", "Mel's wife"}
    assert (candidate.sources, candidate.source) == (("m1",), "import")
    assert candidate.said_at == message.created_at


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "I'm so tired today.",
        "I love your idea!",
        "If I lived in Paris, I would eat croissants.",
        "Maybe I'll move to Rome next year.",
        "My neighbour says he hates his job at Google.",
        "Translate to German: I live in London.",
        'He told me: "I live in Rome and I love it here".',
        "Write a story about a dragon. I live in a cave.",
        "Let's role-play. I am a pirate and I live in Nassau.",
        "> I live in Rome\n> and I work at the zoo",
        "```\nI live in Rome.\n```",
        "My password is Hunter42x. I live in Rome.",
        "He lives in Berlin and works at Siemens.",
        "Ich bin gerade echt müde.",
        "Wenn ich reich wäre, würde ich in Monaco wohnen.",
        "¿Puedes ayudarme? Quizás me mude el año que viene.",
        "Если бы я жил в Париже, ел бы круассаны.",
        "也许明年我会搬家。",
        "今天好累啊。",
        "I live in Rome. " * 500,
    ],
)
def test_what_nobody_would_keep_is_left(text: str) -> None:
    assert extracted(text) == []


def test_assistants_are_believed_only_about_errors_solutions_and_decisions() -> None:
    assert extracted("I live in the cloud and I love tea.", role="assistant") == []
    assert extracted("Usually the fix is to restart it.", role="assistant") == []
    [found] = extracted("I fixed the timeout by raising the limit to 60 s.", role="assistant")
    assert found.kind == "procedure"


@pytest.mark.parametrize("role", ["system", "tool"])
def test_system_and_tool_messages_teach_nothing_here(role: str) -> None:
    assert extracted("I live in Rome.", role=role) == []


@pytest.mark.parametrize(
    "text",
    [
        "我昨天晚上和我的几个好朋友一起去看了一部非常精彩的电影" * 4,
        "Ich mag keine " + ", ".join(["Äpfel", "Birnen", "Brot", "Käse"] * 15),
        "We don't love " + "a, " * 300,
    ],
    ids=["Chinese without a full stop", "a German list", "a list of one letter"],
)
def test_long_lists_and_sentences_come_to_an_end(text: str) -> None:
    # A pattern that matches in many ways would never end.
    assert len(extract(Message("user", text), "user")) < 10


@pytest.mark.parametrize(
    ("text", "predicate", "thing"),
    [
        ("we're in Graz now, got the keys on Monday", "lives in", "Graz"),
        ("first day at Lumen next week, as a data engineer", "works at", "Lumen"),
        ("first day at Lumen next week, as a data engineer", "works as", "data engineer"),
        ("my boss is called Oren", "has boss", "Oren"),
        ("(Priyanka, my manager) wants it by noon", "has boss", "Priyanka"),
        ("the wedding is on 3 May", "event", "wedding is on 3 May"),
        ("nothing with cashews for me, please", "avoids", "cashews"),
        ("don't let me forget to renew my passport", "plans", "renew my passport"),
        ("just turned 41 and my knees know it", "age", "41"),
        ("our daughter Mia started school", "has child", "Mia"),
        ("I have a dog called Rex", "has pet", "Rex"),
        ("my kids Ruby and Arlo are off sick", "has child", "Arlo"),
        ("husband (Piotr) is cooking, what goes with fish?", "married to", "Piotr"),
        ("could you write dates as ISO in future?", "prefers", "dates as ISO"),
        ("we're on FastAPI with postgres", "uses", "postgres"),
        ("sold the van 🎉 can you redo the budget", "owns", "van"),
    ],
)
def test_claims_are_found_in_the_words_people_use(text: str, predicate: str, thing: str) -> None:
    found = [(claim[1], claim[2]) for claim in claims(text)]
    assert (predicate, thing) in found
    assert ("has relative", "dog") not in found


@pytest.mark.parametrize(
    "text",
    [
        "sure, and I'm the pope",
        "I'm in Lisbon this week for a conference, what should i see",
        "asking for a friend: she's 30 and lives in Hull",
        "Tenant says: lived in Hull all my life, I work nights",
        "I dreamt I was a pilot and we had a goat called Susan",
        "please don't call me Rosalind",
        "no worries for me",
        "not that I'm allergic to cats, I just don't mind",
        "I applied for a job at Siemens",
        "hab mich bei Sartorius auf eine Stelle beworben",
        "he postulado a un trabajo en Iberdrola",
    ],
)
def test_jokes_dreams_and_others_make_no_claims(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "She moved to Leipzig last month.",
        "My neighbours just moved to Spain for work",
        "Eoin's brother got a flat in Naas before the madness",
        "my sister went vegan for a month and then ate a whole salami",
        "my roommate can't do cats, which is sad",
        "I know people who live in Berlin and work at Google",
        "I want to quit and live in Spain",
        "Она недавно переехала в Казань",
        "她搬到了上海。",
    ],
)
def test_what_others_do_is_no_claim_about_the_speaker(text: str) -> None:
    assert [claim for claim in claims(text) if claim[0] == "user"] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "I live in Munich and work at Siemens.",
            {("lives in", "Munich"), ("works at", "Siemens")},
        ),
        ("My wife and I live in Rome and love hiking", {("lives in", "Rome"), ("likes", "hiking")}),
        ("I'm a nurse and live in Graz", {("works as", "nurse"), ("lives in", "Graz")}),
    ],
)
def test_a_subject_is_that_of_what_follows_and(text: str, told: set[tuple[str, str]]) -> None:
    assert {(claim[1], claim[2]) for claim in claims(text)} >= told


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("I finally filed my tax return!", "filed my tax return"),
        ("Paid the rent this morning.", "Paid the rent"),
        ("We cancelled the Norway trip", "Norway trip"),
        ("The wedding is off.", "wedding"),
        ("Ya llamé al dentista.", "llamé al dentista"),
        ("已经给牙医打电话了。", "给牙医打电话"),
    ],
)
def test_what_was_done_is_no_memory_and_ends_a_plan(text: str, task: str) -> None:
    [candidate] = extracted(text)
    assert candidate.text == ""
    assert {claim.predicate for claim in candidate.claims} >= {*PLANS}
    assert task in {claim.object for claim in candidate.claims if claim.ends}


@pytest.mark.parametrize("name", ["Helen", "Ahmed", "Emily", "Theo"])
def test_a_name_is_no_other_word_that_it_begins_like(name: str) -> None:
    assert [claim[:3] for claim in claims(f"{name} moved to Leipzig.")] == [
        (name, "lives in", "Leipzig")
    ]


def test_a_doubt_or_a_question_takes_no_other_clause_with_it() -> None:
    [candidate] = extracted("I'm vegan now, maybe I'll keep bees, can you plan a menu?")
    assert candidate.text == "I'm vegan now"


def test_a_language_without_rules_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    rules._said.discard("ko")
    assert extracted("저는 그라츠에 살아요.") == extracted("저는 커피를 좋아해요.") == []
    assert [record.message for record in caplog.records if "'ko'" in record.message] == [
        "no rules for the language 'ko': what is said in it is found, but makes no memories"
    ]


def test_what_is_not_seen_is_in_no_memory() -> None:
    [candidate] = extract(Message("user", "I live in Ber\u200blin\u202e.", name="Ann\nBee"))
    assert candidate.text == "I live in Berlin."
    assert {claim.subject for claim in candidate.claims} == {"Ann Bee"}
    assert candidate.claims[0].object == "Berlin"
