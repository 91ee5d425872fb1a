"""After each story the facts and memories are as it says, in whatever order it is derived."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import permutations

import pytest

from memorist import Memory
from tests.stories.stories import STORIES, Story, check
from tests.support.postgres import Server

# Of PostgreSQL, which does what SQLite does as the conformance suite has it.
SOME = STORIES if os.environ.get("MEMORIST_PROVE") else STORIES[::4]
ORDERS = [
    (story, order)
    for story in STORIES
    if story.late
    for order in permutations(range(len(story.messages)))
]


@pytest.fixture(scope="module")
def database(vector_server: Server, _with_tables: str) -> str:
    """One for all stories, each of which is a tenant's."""
    return vector_server.create_database("stories", copy_of=_with_tables)


@pytest.mark.parametrize("story", SOME, ids=lambda story: story.name)
def test_what_is_true_after_a_story_in_postgres(story: Story, database: str) -> None:
    with Memory(database, tenant=story.name, embedder=None, clock=lambda: story.end) as memory:
        story.tell(memory)
        check(memory, story)


@pytest.mark.parametrize(("story", "order"), ORDERS, ids=lambda each: getattr(each, "name", None))
def test_what_is_true_though_it_is_derived_in_another_order(
    story: Story, order: Sequence[int]
) -> None:
    with Memory(":memory:", embedder=None, clock=lambda: story.end) as memory:
        story.tell(memory, order)
        check(memory, story)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_is_true_though_it_is_told_at_once(story: Story) -> None:
    with Memory(":memory:", embedder=None, clock=lambda: story.end) as memory:
        memory.remember(list(story.messages), user="ada")
        assert memory.jobs.catch_up(300) == 0
        check(memory, story)
