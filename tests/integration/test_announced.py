"""A change that is announced holds from its day on, whichever door is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memorist import Fact, MemoryItem
from memorist.records.query import Hit
from tests.support.lives import DAY, Life

DAY_NAMED = datetime(2026, 2, 1, tzinfo=UTC)
PLAN = "I start at Lumen on 1 February. [1 February 2026]"
SIEMENS, LUMEN = "user works at Siemens", "user works at Lumen"


@pytest.fixture(params=["sqlite", "postgres"])
def ada(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Life]:
    """Her life, told up to the day before her new job was to begin."""
    is_postgres = request.param == "postgres"
    url = request.getfixturevalue("postgres_with_tables") if is_postgres else tmp_path / "ada.db"
    life = Life(str(url))
    life.says("I work at Siemens.")
    life.says("I start at Lumen on 1 February.")
    yield life
    life.memory.close()


def answers(life: Life) -> tuple[list[str], list[str], list[str]]:
    """What facts, recall and memories tell."""
    facts = [fact.text for fact in life.memory.facts.list(user="ada", predicate="works at")]
    found = life.recalls("where does the user work?")
    return facts, [text for text in found if "works at" in text], life.memories()


def siemens(life: Life) -> tuple[bool, str, int]:
    """Whether the old job comes first, its mark, and how many facts hold."""
    hits: Sequence[Hit] = life.memory.recall("where do I work?", user="ada", deadline_ms=None).hits
    [place] = [place for place, hit in enumerate(hits) if "Siemens" in hit.text]
    return place == 0, hits[place].over, life.memory.counts(user="ada").facts_current.count


def views(life: Life) -> tuple[list[Fact], list[MemoryItem]]:
    """All facts and memories, however often they were used."""
    items = life.memory.memories.list(user="ada", state="all")
    unused = [replace(item, uses=0, used_at=None, tier="short") for item in items]
    return life.memory.facts.as_of(user="ada"), unused


def test_nobody_has_to_say_it_again(ada: Life) -> None:
    assert answers(ada) == ([SIEMENS], [SIEMENS], ["I work at Siemens.", PLAN])
    assert siemens(ada) == (True, "", 2)
    assert ada.then(valid=DAY_NAMED, of="works at") == ["Lumen"]
    assert ada.then(valid=DAY_NAMED, known=ada.clock() - DAY * 1.5, of="works at") == ["Siemens"]
    ada.clock.moment = DAY_NAMED
    assert answers(ada) == ([LUMEN], [LUMEN], [PLAN])
    assert siemens(ada) == (False, "until 1 February 2026", 2)
    assert ada.then(valid=DAY_NAMED - DAY, of="works at") == ["Siemens"]


def test_a_rebuild_and_maintenance_change_nothing(ada: Life) -> None:
    before = views(ada)
    for moment in (ada.clock(), DAY_NAMED):
        ada.clock.moment = moment
        ada.memory.jobs.rebuild(user="ada")
        ada.thinks()
        assert views(ada) == before
    ada.memory.memories.maintain(user="ada")
    assert answers(ada) == ([LUMEN], [LUMEN], [PLAN])


@pytest.mark.parametrize("day", [DAY_NAMED - DAY, DAY_NAMED + DAY])
def test_a_plan_that_is_undone_ends_nothing(ada: Life, day: datetime) -> None:
    ada.clock.moment = day
    ada.memory.memories.undo(ada.id_of("Lumen"), user="ada")
    assert answers(ada) == ([SIEMENS], [SIEMENS], ["I work at Siemens."])


def test_a_plan_that_is_forgotten_ends_nothing(ada: Life) -> None:
    [plan] = [item for item in ada.memory.memories.list(user="ada") if item.text == PLAN]
    ada.memory.forget(user="ada", message=plan.sources[0])
    ada.thinks()
    ada.clock.moment = DAY_NAMED
    assert answers(ada) == ([SIEMENS], [SIEMENS], ["I work at Siemens."])
