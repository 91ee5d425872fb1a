"""Two of the stories of the memories, on PostgreSQL."""

from __future__ import annotations

from memorist import Memory
from tests.page import test_memories as stories
from tests.page.conftest import Open, local_server
from tests.support.demo import DemoClock, fill


def test_memories_are_found_edited_and_undone(postgres_with_tables: str, open_page: Open) -> None:
    with Memory(postgres_with_tables, clock=DemoClock()) as memory:
        fill(memory)
        with local_server(memory) as served:
            stories.test_find_by_words_and_facets_and_come_back(served, open_page)
            stories.test_edit_in_place_and_undo(served, open_page)
