"""Lives of memories, told through the public door: each test reads like its story."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory, Message
from memorist.errors import ConflictError
from memorist.lifecycle.settings import Extraction, Policy
from memorist.store.sqlite.store import SqliteStore
from tests.support.lives import DAY, NEW_YEAR, Clock, Life, Lives


@pytest.fixture
def lives() -> Iterator[Lives]:
    """Opens lives, and closes them at the end."""
    opened: list[Life] = []

    def live(store: str = ":memory:", **extraction: Any) -> Life:
        opened.append(Life(store, Extraction(**extraction)))
        return opened[-1]

    yield live
    for life in opened:
        life.memory.close()


@pytest.fixture(params=["sqlite", "postgres"])
def ada(request: pytest.FixtureRequest, tmp_path: Path) -> Life:
    """Her life in a file, and in PostgreSQL, which stays until the life is closed."""
    url = request.getfixturevalue("postgres_with_tables") if request.param == "postgres" else None
    lives: Lives = request.getfixturevalue("lives")
    return lives(url or str(tmp_path / "ada.db"))


def test_who_moves_lives_in_the_new_place_and_lived_in_the_old_one(ada: Life) -> None:
    ada.says("I live in Munich.")
    moved = ada.clock()
    ada.says("I moved to Berlin.")
    assert ada.now() == ["Berlin"]
    assert ada.then(valid=moved - DAY) == ["Munich"]
    assert ada.then() == ["Munich", "Berlin"]
    assert ada.memories() == ["I moved to Berlin."]
    assert ada.recalls("where does the user live?") == ["user lives in Berlin"]
    [munich, berlin] = ada.memory.facts.as_of(user="ada")
    assert (munich.superseded_by, munich.valid_to) == (berlin.id, moved)
    assert munich.reason == "something newer was said"


def test_what_was_corrected_was_never_so_but_was_once_believed(ada: Life) -> None:
    said = ada.clock()
    ada.says("I live in Berlin.")
    corrected = ada.clock()
    ada.says("Actually, I live in Hamburg, not Berlin.")
    assert ada.now() == ada.then() == ["Hamburg"]
    assert ada.then(valid=said) == ["Hamburg"]
    assert ada.then(known=corrected - DAY / 2) == ["Berlin"]
    assert ada.then(known=corrected) == ["Hamburg"]
    assert ada.memories() == ["I live in Hamburg."]
    assert ada.recalls("Berlin Hamburg") == ["user lives in Hamburg"]


def test_a_correction_that_names_only_the_places_corrects_where_she_lives(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Berlin.")
    ada.says("Actually it's Hamburg, not Berlin.")
    assert (ada.now(), ada.memories()) == (["Hamburg"], ["I live in Hamburg."])


@pytest.mark.parametrize(
    ("said", "correction", "right"),
    [
        ("I live in Oslo.", "Sorry, I meant Bergen.", "I live in Bergen."),
        ("My wedding is on 3 May 2027.", "No wait, the 4th.", "My wedding is on 4 May 2027."),
        ("My wedding is on 3 May 2027.", "Sorry, it's 4 June, not 3 May.", "… 4 June 2027."),
    ],
)
def test_a_correction_changes_what_was_said_and_is_no_memory(
    lives: Lives, said: str, correction: str, right: str
) -> None:
    together, apart = lives(), lives()
    for text in (said, correction):
        apart.says(text)
    messages = [
        Message("user", text, created_at=NEW_YEAR + DAY / 24 * number)
        for number, text in enumerate((said, correction))
    ]
    together.memory.remember(messages, user="ada")
    together.thinks()
    for ada in (apart, together):
        [text] = ada.memories()
        assert text.startswith(right.replace("…", "My wedding is on"))
        facts = ada.memory.facts.list(user="ada")
        assert facts
        assert all(right.rstrip(".").endswith(fact.object[-6:]) for fact in facts)


@pytest.mark.parametrize(
    "correction",
    [
        "No wait, Thursday.",
        "No wait, not on Friday, on Thursday.",
        "Sorry, not Friday but Thursday.",
    ],
)
@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("I met my boss Anna on Friday.", "I met my boss Anna on Thursday. [25 December 2025]"),
        (
            "We adopted a cat called Milo last Friday.",
            "… called Milo last Thursday. [25 December 2025]",
        ),
    ],
)
def test_a_day_that_is_put_right_leaves_all_else_as_it_was(
    lives: Lives, said: str, correction: str, right: str
) -> None:
    ada = lives()
    ada.says(said)
    [before], facts = ada.memories(), ada.memory.facts.list(user="ada")
    assert facts
    ada.says(correction)
    [item] = ada.memory.memories.list(user="ada")
    assert item.text.endswith(right.removeprefix("…"))
    assert ada.memory.facts.list(user="ada") == facts
    ada.memory.memories.undo(item.id, user="ada")
    assert (ada.memories(), ada.memory.facts.list(user="ada")) == ([before], facts)


def test_a_correction_of_nothing_known_is_no_memory(lives: Lives) -> None:
    ada = lives()
    ada.says("Actually it's Hamburg, not Berlin.")
    assert (ada.now(), ada.memories()) == ([], [])


def test_a_fact_without_a_memory_is_corrected_too(lives: Lives) -> None:
    ada = lives()
    ada.memory.facts.add("user", "lives in", "Berlin", user="ada")
    ada.says("Actually it's Hamburg, not Berlin.")
    assert (ada.now(), ada.memories()) == (["Hamburg"], [])


def test_a_correction_can_be_corrected(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Berlin.")
    ada.says("Actually, I live in Hamburg, not Berlin.")
    again = ada.clock()
    ada.says("Actually, I live in Berlin, not Hamburg.")
    assert ada.now() == ada.then() == ["Berlin"]
    assert ada.then(known=again - DAY / 2) == ["Hamburg"]
    assert ada.then(known=again - DAY * 1.5) == ["Berlin"]
    assert ada.memories() == ["I live in Berlin."]


def test_who_comes_back_has_lived_there_twice(ada: Life) -> None:
    days = []
    for text in ("I live in Munich.", "I moved to Berlin.", "I moved back to Munich."):
        days.append(ada.clock())
        ada.says(text)
    assert [ada.then(valid=day) for day in days] == [["Munich"], ["Berlin"], ["Munich"]]
    spans = [(fact.object, fact.valid_to) for fact in ada.memory.facts.as_of(user="ada")]
    assert spans == [("Munich", days[1]), ("Berlin", days[2]), ("Munich", None)]


def test_facts_told_outright_can_come_back_too(lives: Lives) -> None:
    ada = lives()
    for city in ("Munich", "Berlin", "Munich"):
        ada.memory.facts.add("user", "lives in", city, user="ada", single=True)
        ada.clock.on()
    assert ada.now() == ["Munich"]
    assert ada.then() == ["Munich", "Berlin", "Munich"]


def test_a_memory_told_again_after_it_was_taken_back_is_there_again(lives: Lives) -> None:
    ada = lives()
    first = ada.memory.memories.add("The sky is teal", user="ada")
    ada.memory.memories.retract(first, user="ada", reason="it is blue")
    assert ada.memories() == []
    assert ada.memory.memories.add("The sky is teal", user="ada") != first
    assert ada.memories() == ["The sky is teal"]


def test_a_move_that_was_undone_did_not_happen(ada: Life) -> None:
    ada.says("I live in Munich.")
    ada.says("I moved to Berlin.")
    ada.memory.memories.undo(ada.id_of("Berlin"), user="ada")
    ada.clock.on()
    assert ada.now() == ["Munich"]
    assert ada.memories() == ["I live in Munich."]
    assert ada.recalls("Munich Berlin") == ["user lives in Munich"]
    assert ada.recalls("Munich Berlin", "memory") == ["I live in Munich."]


def test_a_move_is_undone_from_the_old_place_as_well(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    ada.says("I moved to Berlin.")
    ada.memory.memories.undo(ada.id_of("Munich"), user="ada")
    ada.clock.on()
    assert ada.now() == ada.then() == ["Munich"]


@pytest.mark.parametrize("place", ["Berlin", "Hamburg"])
def test_a_correction_that_was_undone_leaves_what_was_believed(ada: Life, place: str) -> None:
    ada.says("I live in Berlin.")
    ada.says("Actually, I live in Hamburg, not Berlin.")
    ada.memory.memories.undo(ada.id_of(place), user="ada")
    ada.clock.on()
    assert ada.now() == ada.then() == ["Berlin"]
    assert ada.memories() == ["I live in Berlin."]


def test_a_fact_taken_back_by_hand_can_be_brought_back(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Berlin.")
    ada.memory.memories.retract(ada.id_of("Berlin"), user="ada", reason="a joke")
    ada.clock.on()
    assert (ada.now(), ada.memories()) == ([], [])
    ada.memory.memories.undo(ada.id_of("Berlin"), user="ada")
    assert (ada.now(), ada.memories()) == (["Berlin"], ["I live in Berlin."])


def test_what_is_taken_back_as_a_memory_is_taken_back_as_a_fact(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    [item] = ada.memory.memories.list(user="ada")
    ada.memory.memories.retract(item.id, user="ada", reason="a joke")
    ada.clock.on()
    assert (ada.now(), ada.memories()) == ([], [])
    ada.memory.memories.undo(item.id, user="ada")
    assert (ada.now(), ada.memories()) == (["Munich"], ["I live in Munich."])


@pytest.mark.parametrize("end", [0, 1], ids=["from the old one", "from the new one"])
def test_a_move_is_undone_by_its_memories_as_by_its_facts(lives: Lives, end: int) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    ada.says("I moved to Berlin.")
    items = ada.memory.memories.list(user="ada", current=False)
    ada.memory.memories.undo(items[end].id, user="ada")
    ada.clock.on()
    assert (ada.now(), ada.then()) == (["Munich"], ["Munich"])
    assert ada.memories() == ["I live in Munich."]


def test_a_move_that_others_followed_cannot_be_undone_before_them(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    ada.says("I moved to Berlin.")
    ada.says("I moved to Oslo.")
    with pytest.raises(ConflictError):
        ada.memory.memories.undo(ada.id_of("Munich"), user="ada")
    for city, home in (("Oslo", "Berlin"), ("Berlin", "Munich")):
        ada.memory.memories.undo(ada.id_of(city), user="ada")
        ada.clock.on()
        assert ada.now() == [home]


def test_undoing_what_was_undone_leaves_one_home(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    ada.says("I moved to Berlin.")
    berlin = ada.id_of("Berlin")
    ada.memory.memories.undo(berlin, user="ada")
    ada.clock.on()
    ada.memory.memories.undo(berlin, user="ada")
    ada.clock.on()
    assert ada.now() == ["Berlin"]


def test_undoing_a_fact_with_its_own_end_takes_it_back_and_opens_nothing(lives: Lives) -> None:
    ada = lives()
    then, until = NEW_YEAR - 900 * DAY, NEW_YEAR - 600 * DAY
    span = {"valid_from": then, "valid_to": until}
    id_ = ada.memory.facts.add("user", "lives in", "Rome", user="ada", **span)  # type: ignore[arg-type]
    assert ada.then(valid=then) == ["Rome"]
    ada.memory.memories.undo(id_, user="ada")
    assert ada.then() == []
    ada.memory.memories.undo(id_, user="ada")
    assert (ada.then(valid=then), ada.now()) == (["Rome"], [])


def test_what_is_told_late_of_an_earlier_time_leaves_the_present_alone(ada: Life) -> None:
    ada.says("I live in Berlin.")
    began, learnt, earlier = ada.clock() - DAY, ada.clock(), NEW_YEAR - 700 * DAY
    ada.says("I live in Munich.", at=earlier, session="an old chat")
    assert ada.now() == ["Berlin"]
    assert ada.then(valid=earlier) == ["Munich"]
    assert ada.then(valid=began - DAY) == ["Munich"]
    assert ada.then(valid=earlier, known=learnt - DAY / 2) == []  # nobody knew yet
    assert ada.then(valid=earlier, known=learnt) == ["Munich"]
    [munich] = [fact for fact in ada.memory.facts.as_of(user="ada") if fact.object == "Munich"]
    assert (munich.valid_from, munich.valid_to) == (earlier, began)
    ada.memory.memories.undo(munich.id, user="ada")
    assert ada.now() == ada.then() == ["Berlin"]


def test_what_is_told_late_of_a_time_between_leaves_one_home_at_each_time(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    between = ada.clock()
    ada.clock.on(9 * DAY)
    ada.says("I moved to Berlin.")
    ada.says("I moved to Oslo.", at=between, session="an old chat")
    assert ada.now() == ["Berlin"]
    assert ada.then(valid=between) == ["Oslo"]


def test_a_planned_move_ends_nothing_before_its_day(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    ada.says("I'm moving to Rome next month.")
    assert ada.now() == ["Munich"]
    assert "I live in Munich." in ada.memories()
    ada.says("I live in Oslo now.")
    assert ada.now() == ["Oslo"]


def test_the_same_told_late_of_an_earlier_time_is_one_present(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Berlin.")
    earlier = NEW_YEAR - 700 * DAY
    ada.says("I live in Berlin.", at=earlier, session="an old chat")
    assert ada.now() == ada.then(valid=earlier) == ["Berlin"]
    assert len([fact for fact in ada.memory.facts.as_of(user="ada") if fact.valid_to is None]) == 1


def test_an_end_is_not_known_before_it_was_told(ada: Life) -> None:
    ada.says("I work at Siemens.")
    left = ada.clock()
    ada.says("I no longer work at Siemens.")
    assert ada.now("works at") == []
    assert ada.then(valid=left - DAY / 2, of="works at") == ["Siemens"]
    assert ada.then(valid=left + DAY, known=left - DAY / 2, of="works at") == ["Siemens"]
    assert ada.then(valid=left + DAY, known=left, of="works at") == []
    assert ada.memories() == ["I no longer work at Siemens."]


def test_an_end_that_was_undone_did_not_come(lives: Lives) -> None:
    ada = lives()
    ada.says("I work at Siemens.")
    ada.says("I no longer work at Siemens.")
    ada.memory.memories.undo(ada.id_of("Siemens"), user="ada")
    assert ada.now("works at") == ["Siemens"]


def test_what_is_said_again_grows_surer_and_does_not_pile_up(ada: Life) -> None:
    ids = [
        ada.says(text) for text in ("I love green tea.", "I love green tea!", "I love green tea")
    ]
    [item] = ada.memory.memories.list(user="ada")
    assert (item.text, item.uses, set(item.sources)) == ("I love green tea.", 2, set(ids))
    [fact] = ada.memory.facts.list(user="ada", predicate="likes")
    assert set(fact.sources) == set(ids)


def test_an_echo_of_the_assistant_makes_no_memory(lives: Lives) -> None:
    ada = lives()
    ada.says("I decided to use PostgreSQL for our new shop.")
    made = ada.memories()
    assert len(made) == 1
    ada.says("So we decided to use PostgreSQL for our new shop.", "assistant")
    assert ada.memories() == made
    assert ada.memory.memories.list(user="ada")[0].uses == 0


def test_a_secret_makes_no_memory_and_stays_in_the_log(lives: Lives) -> None:
    ada = lives()
    secret = "I live in Rome and my API key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD."
    ada.says(secret)
    assert (ada.memories(), ada.now()) == ([], [])
    assert [message.text for message in ada.memory.history(user="ada")] == [secret]


@pytest.mark.parametrize("source", ["web", "tool", "import"])
def test_strangers_cannot_overthrow_what_she_said(ada: Life, source: Any) -> None:
    ada.says("I live in Munich.")
    ada.says("I moved to Minsk.", source=source)
    ada.says("Actually, I live in Minsk, not Munich.", source=source)
    ada.says("I no longer live in Munich.", source=source)
    for corrects, ends, city in ((0, 0, "Minsk"), (1, 0, "Minsk"), (0, 1, "Munich")):
        ada.memory.facts.add(
            "user",
            "lives in",
            city,
            user="ada",
            single=True,
            source=source,
            corrects=bool(corrects),
            ends=bool(ends),
        )
    assert ada.now() == ada.then() == ["Munich"]


def test_a_fact_is_trusted_as_the_least_of_what_it_cites(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    page = ada.says("Minsk is lovely in spring.", source="web")
    ada.memory.facts.add("user", "lives in", "Minsk", user="ada", single=True, sources=(page,))
    assert ada.now() == ["Munich"]
    id_ = ada.memory.memories.add("Minsk is lovely", user="ada", sources=(page,))
    [item] = [item for item in ada.memory.memories.list(user="ada") if item.id == id_]
    assert item.source == "web"


def test_she_overthrows_what_strangers_said(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Minsk.", source="web")
    assert ada.now() == ["Minsk"]
    ada.says("I live in Munich.")
    assert ada.now() == ["Munich"]


def test_what_she_confirms_is_hers_and_no_stranger_can_take_it_back(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Rome.", source="web")
    ada.says("I live in Rome.")
    ada.says("I live in Minsk.", source="web")
    assert ada.now() == ["Rome"]
    ada.memory.forget(user="ada", source="web")
    ada.thinks()
    assert ada.now() == ["Rome"]


def test_what_a_stranger_confirms_stays_hers_when_the_stranger_is_forgotten(lives: Lives) -> None:
    ada = lives()
    ada.memory.facts.add("user", "lives in", "Rome", user="ada", single=True)
    ada.memory.memories.add("I live in Rome.", user="ada")
    for source in ("web", "import"):
        ada.says("I live in Rome.", source=source)
        ada.memory.forget(user="ada", source=source)
        ada.thinks()
    assert (ada.now(), ada.memories()) == (["Rome"], ["I live in Rome."])


def test_since_when_she_says_cannot_be_ended_by_a_stranger(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Minsk.", source="web")
    ada.says("I have lived in Rome since March 2020.")
    assert ada.now() == ["Rome"]


def test_working_memory_is_over_when_its_time_is(lives: Lives) -> None:
    ada = lives()
    ada.memory.memories.add("Compare the blue draft with the red one", user="ada", kind="working")
    ada.memory.memories.add("Her cat is called Pixel", user="ada")
    assert len(ada.memories()) == 2
    ada.clock.on(Policy().working_for)
    assert ada.memories() == ["Her cat is called Pixel"]
    assert ada.recalls("blue draft", "memory") == []
    assert ada.memory.memories.maintain(user="ada").expired == 1
    gone = [item for item in ada.memory.memories.list(user="ada", current=False) if item.ended_at]
    assert [item.kind for item in gone] == ["working"]


def test_two_workers_on_one_file_agree_on_one_home(tmp_path: Path) -> None:
    path, cities = tmp_path / "shared.db", ["Munich", "Berlin", "Hamburg", "Oslo", "Rome"]
    with Memory(str(path), embedder=None, extraction=None) as writer:
        for session in ("one", "two", "three"):
            for day, city in enumerate(cities * 2):
                said = Message("user", f"I moved to {city}.", created_at=NEW_YEAR + day * DAY)
                writer.remember(said, user="ada", session=session)
        workers = [Memory(str(path), embedder=None, extraction=Extraction()) for _ in range(2)]
        try:
            assert [worker.jobs.catch_up(300) for worker in workers] == [0, 0]
        finally:
            for worker in workers:
                worker.close()
        assert [fact.object for fact in writer.facts.list(user="ada")] == ["Rome"]
        last = [fact for fact in writer.facts.as_of(user="ada") if fact.valid_to is None]
        assert len(last) == 1
        assert len(last[0].sources) == 3  # told in every session, kept once
        texts = [item.text for item in writer.memories.list(user="ada")]
        assert len(texts) == len(set(texts))


def test_agents_of_one_user_do_not_tell_each_other(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.", agent="tutor")
    assert ada.now(agent="tutor") == ["Munich"]
    assert (ada.now(agent="coach"), ada.memories(agent="coach")) == ([], [])
    assert ada.recalls("Munich", agent="coach") == []
    ada.says("I live in Berlin.", agent="coach")
    assert (ada.now(agent="tutor"), ada.now(agent="coach")) == (["Munich"], ["Berlin"])


def test_agents_that_share_know_what_either_was_told(lives: Lives) -> None:
    ada = lives(policy=Policy(shared=True))
    ada.says("I live in Munich.", agent="tutor")
    assert ada.now(agent="coach") == ["Munich"]
    assert ada.recalls("Munich", agent="coach") == ["user lives in Munich"]
    ada.says("I moved to Berlin.", agent="coach")
    assert ada.now(agent="tutor") == ada.now(agent="coach") == ["Berlin"]


def test_a_forgotten_message_takes_its_memory_and_what_it_replaced_returns(ada: Life) -> None:
    ada.says("I live in Munich.")
    moved = ada.says("I moved to Berlin.")
    ada.memory.forget(user="ada", message=moved)
    ada.thinks()
    assert ada.now() == ada.then() == ["Munich"]
    assert ada.memories() == ["I live in Munich."]
    assert ada.recalls("Berlin Munich", "memory") == ["I live in Munich."]


def test_a_forgotten_message_in_between_leaves_one_home(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Munich.")
    moved = ada.says("I moved to Berlin.")
    last = ada.clock()
    ada.says("I moved to Hamburg.")
    ada.memory.forget(user="ada", message=moved)
    ada.thinks()
    assert ada.now() == ["Hamburg"]
    assert ada.then(valid=last - DAY / 2) == ["Munich"]
    assert ada.memories() == ["I moved to Hamburg."]


def test_a_forgotten_correction_leaves_what_was_believed(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Berlin.")
    corrected = ada.says("Actually, I live in Hamburg, not Berlin.")
    ada.memory.forget(user="ada", message=corrected)
    ada.thinks()
    assert (ada.now(), ada.memories()) == (["Berlin"], ["I live in Berlin."])


def test_a_forgotten_duplicate_leaves_what_the_other_message_says(ada: Life) -> None:
    first = ada.says("I love green tea.")
    second = ada.says("I love green tea!")
    ada.memory.forget(user="ada", message=first)
    ada.thinks()
    [item] = ada.memory.memories.list(user="ada")
    assert (item.text, item.sources) == ("I love green tea!", (second,))
    assert ada.now("likes") == ["green tea"]
    ada.memory.forget(user="ada", message=second)
    ada.thinks()
    assert (ada.memories(), ada.now("likes")) == ([], [])


def test_forgetting_a_duplicate_of_what_was_corrected_keeps_the_correction(lives: Lives) -> None:
    ada = lives()
    ada.says("I live in Berlin.")
    again = ada.says("I live in Berlin!")
    ada.says("Actually, I live in Hamburg, not Berlin.")
    ada.memory.forget(user="ada", message=again)
    ada.thinks()
    assert ada.now() == ["Hamburg"]


def test_what_a_model_may_cost_begins_anew_each_hour(tmp_path: Path, postgres_url: str) -> None:
    clock = Clock()
    for store in (SqliteStore(tmp_path / "m.db", clock=clock), _postgres(postgres_url, clock)):
        with store:
            clock.moment = NEW_YEAR + timedelta(minutes=59)
            assert store.spend(calls=2, tokens=100, max_calls=2, max_tokens=100)
            assert not store.spend(calls=1, tokens=1, max_calls=2)
            clock.on(timedelta(minutes=1))
            assert store.spent() == (0, 0)
            store.spend(calls=0, tokens=-90)  # given back for the hour before
            assert not store.spend(calls=1, tokens=101, max_calls=2, max_tokens=100)
            assert store.spend(calls=1, tokens=100, max_calls=2, max_tokens=100)
            assert store.spent() == (1, 100)


def _postgres(url: str, clock: Clock) -> Any:
    from memorist.store.postgres.store import PostgresStore

    return PostgresStore(url, clock=clock)


def test_what_is_called_important_is_found_first_and_stays(ada: Life) -> None:
    for thing, score in (("cocoa", 0.1), ("coffee", 0.7), ("tea", None)):
        data = {"structured_data": {"importance_score": score}} if score else {}
        ada.says(f"I love hot {thing}.", at=NEW_YEAR, fields=data, session=thing)
    found = ada.recalls("what hot drinks does she love?", "message")
    assert [text.split()[-1] for text in found] == ["coffee.", "tea.", "cocoa."]
    items = ada.memory.memories.list(user="ada")
    weights = {item.text.split()[-1]: (item.importance, item.tier) for item in items}
    short, long = (0.2, "short"), (0.8, "long")
    assert weights == {"cocoa.": short, "coffee.": long, "tea.": (0.6, "short")}
