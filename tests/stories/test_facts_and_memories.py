"""After each story the facts and memories are as it says, in whatever order it is derived."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from memorist import Memory
from tests.stories.stories import STORIES, Story, spelled
from tests.support.postgres import Server

ORDERS = [
    (story, order)
    for story in STORIES
    if story.late
    for order in permutations(range(len(story.messages)))
]


def _check(memory: Memory, story: Story) -> None:
    facts = [spelled(fact) for fact in memory.facts.list(user="ada")]
    assert set(story.facts) <= set(facts), "they hold"
    assert not set(story.ended) & set(facts), "they are over"
    assert len(facts) == len(set(facts)), "nothing is there twice"
    texts = [item.text for item in memory.memories.list(user="ada")]
    for words in story.memories:
        assert any(words in text for text in texts), f"a memory says {words!r}"
    for words in story.gone:
        assert not any(words in text for text in texts), f"no memory says {words!r}"


@pytest.fixture(scope="module")
def database(vector_server: Server, _with_tables: str) -> str:
    """One for all stories, each of which is a tenant's."""
    return vector_server.create_database("stories", copy_of=_with_tables)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_is_true_after_a_story(
    story: Story, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = tmp_path / "a.db" if kind == "sqlite" else request.getfixturevalue("database")
    with Memory(where, tenant=story.name, embedder=None, clock=lambda: story.end) as memory:
        story.tell(memory)
        _check(memory, story)


@pytest.mark.parametrize(("story", "order"), ORDERS, ids=lambda each: getattr(each, "name", None))
def test_what_is_true_though_it_is_derived_in_another_order(
    story: Story, order: Sequence[int]
) -> None:
    with Memory(":memory:", embedder=None, clock=lambda: story.end) as memory:
        story.tell(memory, order)
        _check(memory, story)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_is_true_though_it_is_told_at_once(story: Story) -> None:
    with Memory(":memory:", embedder=None, clock=lambda: story.end) as memory:
        memory.remember(list(story.messages), user="ada")
        assert memory.jobs.catch_up(300) == 0
        _check(memory, story)
