"""Document 003, sessions and notes: its names and its examples."""

from __future__ import annotations

from memorist import Memory, Notebook
from tests.documents.names import uses


@uses("ManageLTMInput.operation", "ManageLTMInput.content", "ManageLTMInput.section_header")
@uses("read", "overwrite", "append", "prepend", "delete_section_by_header")
@uses("replace_section_by_header", "delete_all_notes")
def test_notes_are_managed_by_seven_operations(memory: Memory) -> None:
    notes = Notebook(memory, user="ada", agent="tutor")
    notes.manage("overwrite", "# Ada\n\nLikes tea.")
    notes.manage("append", "# Work\n\nPaints lighthouses.")
    notes.manage("prepend", "# First\n\nBe kind.")
    notes.manage("replace_section_by_header", "Likes coffee.", "Ada")
    notes.manage("delete_section_by_header", section_header="First")
    assert notes.manage("read") == "# Ada\n\nLikes coffee.\n\n# Work\n\nPaints lighthouses."
    notes.manage("delete_all_notes")
    assert notes.manage() == "The notes are empty."
