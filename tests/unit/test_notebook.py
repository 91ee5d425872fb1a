"""Notebook: one Markdown text per user and agent, edited safely; and the page that tells of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist import ConflictError, InvalidError, Memory, NotFoundError, SqliteStore, notebook
from memorist.context.documents.markdown import find_section, is_closed, sections
from memorist.notebook import OPERATIONS, Notebook
from memorist.records.documents import Note
from memorist.records.scope import Scope
from tests.unit.test_sections import DOCUMENTS

PAGE = Path(__file__).parent.parent.parent / "docs" / "notes.md"
NOTES = "Ada sails.\n\n# Trips\n\nRome\n## Plans\nOslo\n# Work\nbees\n"
Open = Callable[..., Notebook]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None, extraction=None) as opened:
        yield opened


@pytest.fixture
def new(memory: Memory, request: pytest.FixtureRequest) -> Open:
    """Open the notes that this test has to itself."""
    return lambda **more: Notebook(memory, user=request.node.nodeid, **more)


def private(memory: Memory, text: str) -> Notebook:
    """Notes that say this, whatever the example before left."""
    book = Notebook(memory, user="property")
    book.write(text)
    return book


def test_notes_are_empty_before_anyone_writes(new: Open) -> None:
    book = new()
    assert (book.read(), book.version, book.versions()) == ("", 0, [])
    assert book.manage() == "The notes are empty."
    assert book.clear().version == 0
    assert book.versions() == []


def test_each_agent_has_its_own_notes(new: Open) -> None:
    new(agent="tutor").append("likes sailing")
    assert new(agent="tutor").read() == "likes sailing"
    assert [new(agent="cook").read(), new().read()] == ["", ""]


def test_what_is_added_stands_apart_by_an_empty_line(new: Open) -> None:
    book = new()
    for text in ("one", "two\n", "three\n\n", "four"):
        book.append(text)
    assert book.prepend("zero").version == 5
    assert book.read() == "zero\n\none\n\ntwo\n\nthree\n\nfour"
    book.write("a\r\nb\r\n")
    assert book.append("c").text == "a\r\nb\r\n\r\nc"


def test_a_section_is_deleted_with_all_below_it(new: Open) -> None:
    book = new()
    book.write(NOTES)
    assert book.delete_section("Trips").text == "Ada sails.\n\n# Work\nbees\n"
    assert book.delete_section("# Work").text == "Ada sails.\n\n"


def test_a_replaced_section_keeps_its_header_unless_the_text_brings_one(new: Open) -> None:
    book = new()
    book.write(NOTES)
    assert "# Trips\n\nParis\n\n# Work\n" in book.replace_section("Trips", "Paris").text
    assert book.replace_section("Work", "\n## Job\nwasps").text.endswith("Paris\n\n## Job\nwasps")
    assert book.replace_section("Job", "").text.endswith("Paris\n\n## Job\n")
    book.write("Job\n---")
    assert book.replace_section("## Job", "bees").text == "Job\n---\nbees"


@given(text=DOCUMENTS, number=st.integers(0), content=DOCUMENTS)
def test_section_edits_leave_all_else_as_it_was(
    memory: Memory, text: str, number: int, content: str
) -> None:
    found = sections(text)
    names = [section.title for section in found]
    chosen = found[number % len(found)] if found else None
    if chosen is None or not chosen.title or names.count(chosen.title) > 1:
        return
    header = f"{'#' * chosen.level} {chosen.title}"
    above, below = text[: chosen.start], text[chosen.stop :]

    left = private(memory, text).delete_section(header).text
    assert left.startswith(above)
    assert left.endswith(below)
    assert not left[len(above) : len(left) - len(below)].strip("\r\n")

    if is_closed(content):
        changed = private(memory, text).replace_section(header, content).text
        assert changed.startswith(above)
        assert changed.endswith(below)
        assert content.strip() in changed


@given(text=DOCUMENTS, more=DOCUMENTS)
def test_what_was_there_stays_whole_when_something_is_added(
    memory: Memory, text: str, more: str
) -> None:
    if not more.strip():
        return
    appended = private(memory, text).append(more).text
    assert appended.startswith(text)
    assert appended.endswith(more)
    assert not appended[len(text) : len(appended) - len(more)].strip("\r\n")
    if is_closed(more):
        prepended = private(memory, text).prepend(more).text
        assert prepended.startswith(more)
        assert prepended.endswith(text)


def test_a_text_with_an_open_fence_may_not_swallow_the_notes_below_it(new: Open) -> None:
    book = new()
    book.write("# A\n\n# B\n")
    with pytest.raises(InvalidError, match="close it"):
        book.prepend("```\ncode")
    with pytest.raises(InvalidError, match="close it"):
        book.replace_section("A", "<!-- hidden")
    assert book.version == 1
    assert book.replace_section("B", "```\ncode").version == 2


def test_every_version_is_kept_and_can_be_restored(new: Open) -> None:
    book = new()
    for text in ("one", "two", ""):
        book.write(text)
    kept = [(note.version, note.text) for note in book.versions()]
    assert kept == [(3, ""), (2, "two"), (1, "one")]
    assert book.at(2).text == "two"
    assert (book.restore(1).version, book.read()) == (4, "one")
    for version in (0, 5, -1, 10**30):
        with pytest.raises(NotFoundError, match="the newest is 4"):
            book.restore(version)
    with pytest.raises(InvalidError, match="whole number"):
        book.restore("1")  # type: ignore[arg-type]


def test_an_edit_that_changes_nothing_makes_no_version(new: Open) -> None:
    book = new()
    book.write("one")
    assert [book.write("one").version, book.restore(1).version] == [1, 1]


def test_notes_that_somebody_else_changed_are_not_overwritten(new: Open) -> None:
    mine, theirs = new(), new()
    theirs.append("theirs")
    for edit in (partial(mine.write, "mine"), partial(mine.write, "mine", 0), mine.clear):
        with pytest.raises(ConflictError, match=r"at version 1, .* for version 0; read"):
            edit()
    with pytest.raises(ConflictError):
        mine.restore(1)
    assert mine.read() == "theirs"
    assert mine.write("mine").version == 2
    assert theirs.write("both", base_version=2).text == "both"


def test_adding_to_what_others_wrote_is_not_having_read_it(new: Open) -> None:
    mine, theirs = new(), new()
    theirs.append("theirs")
    assert mine.append("mine").text == "theirs\n\nmine"
    with pytest.raises(ConflictError):
        mine.write("mine alone")
    mine.versions()
    assert mine.write("mine alone").version == 3


def test_a_section_that_somebody_else_changed_is_not_replaced(new: Open) -> None:
    mine = new()
    mine.write(NOTES)
    theirs = new()
    theirs.replace_section("Plans", "Bergen")
    theirs.append("# New\nsection")
    for edit in (
        partial(mine.replace_section, "Trips", "gone"),  # Plans is a part of it
        partial(mine.delete_section, "Plans"),
        partial(mine.replace_section, "New", "mine"),
    ):
        with pytest.raises(ConflictError, match="since it was last read"):
            edit()
    assert "Bergen" in mine.replace_section("Work", "wasps").text
    assert "wasps" not in mine.replace_section("Work", "ants").text  # its own change is known
    assert mine.delete_section("Work").text.endswith("Bergen\n\n# New\nsection")
    with pytest.raises(NotFoundError):
        theirs.replace_section("Work", "more")
    mine.read()
    assert "Bergen" not in mine.delete_section("Plans").text


class Hurried(SqliteStore):
    """A store where somebody else always writes first, so many times."""

    others = 0

    def write_note(self, scope: Scope, text: str, *, base_version: int) -> Note:
        if self.others:
            self.others -= 1
            now = self.note(scope)
            version = now.version if now else 0
            super().write_note(scope, f"{now.text if now else ''}x", base_version=version)
        return super().write_note(scope, text, base_version=base_version)


def test_an_edit_is_redone_until_it_is_hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "LONGEST_PAUSE_S", 0)
    store = Hurried(":memory:")
    with Memory(store, embedder=None, extraction=None) as memory:
        book = Notebook(memory, user="ada")
        store.others = 3
        assert (book.append("mine").text, book.version) == ("xxx\n\nmine", 0)
        book.read()
        store.others = 1
        with pytest.raises(ConflictError, match="at version 5, not 4"):
            book.write("mine alone")
        store.others = 1_000
        with pytest.raises(ConflictError, match="others changed the notes 200 times"):
            book.append("never")
        assert "never" not in book.read()


def test_notes_forgotten_and_begun_anew_are_not_those_that_were_seen(
    new: Open, memory: Memory, request: pytest.FixtureRequest
) -> None:
    mine = new()
    mine.write("before")
    memory.forget(user=request.node.nodeid, everything=True)
    new().write("after")
    with pytest.raises(ConflictError):
        mine.write("mine")
    assert mine.read() == "after"


def test_notes_that_grow_too_long_are_refused_with_a_cure(new: Open) -> None:
    new().write("x" * 300)
    book = new(max_chars=200)
    with pytest.raises(InvalidError, match=r"303 characters, the limit is 200; shorten .* or"):
        book.append("y")
    assert book.write("x" * 250).version == 2  # less than it was
    with pytest.raises(InvalidError, match="64002 characters, the limit is 64000"):
        new().write("x" * 64_002)
    for wrong in (0, -1, "9", True, None):
        with pytest.raises(InvalidError, match="max_chars"):
            new(max_chars=wrong)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("append", [None]),
        ("append", [" \n"]),
        ("prepend", [""]),
        ("write", [b"x"]),
        ("write", ["\x00"]),
        ("append", ["\ud800"]),
        ("delete_section", [None]),
        ("replace_section", ["A", None]),
        ("delete_section", [""]),
        ("write", ["x", "secret"]),
    ],
)
def test_what_is_no_text_is_refused(new: Open, method: str, arguments: list[Any]) -> None:
    with pytest.raises(InvalidError) as refused:
        getattr(new(), method)(*arguments)
    assert "secret" not in str(refused.value)


def test_the_tool_does_all_seven_operations(new: Open) -> None:
    book = new()
    assert book.manage("append", "# A\nalpha") == (
        "Appended. The notes are at version 1, 9 characters."
    )
    assert book.manage("prepend", "Hello").startswith("Prepended. The notes are at version 2,")
    assert book.manage("replace_section_by_header", "beta", "A").startswith("Section replaced.")
    assert book.manage("read") == "Hello\n\n# A\nbeta"
    assert book.manage("delete_section_by_header", section_header="# A").startswith("Section del")
    assert book.manage("overwrite", "All new").startswith("Overwritten.")
    assert book.manage("delete_all_notes", "", "") == (
        "All notes deleted. The notes are at version 6, 0 characters."
    )
    assert len(OPERATIONS) == 7


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["erase secret"], ", ".join(OPERATIONS)),
        ([None], "the operation is one of"),
        (["append"], "append needs content"),
        (["overwrite"], "overwrite needs content"),
        (["delete_section_by_header"], "needs section_header"),
        (["replace_section_by_header", None, "secret"], "needs content"),
        (["delete_all_notes", None, "secret"], "delete_all_notes takes no section_header"),
        (["append", "text", "secret"], "append takes no section_header"),
        (["delete_section_by_header", "secret", "A"], "takes no content"),
    ],
)
def test_the_tool_says_what_is_wrong_and_repeats_nothing(
    new: Open, arguments: list[Any], says: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        new().manage(*arguments)
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_notes_are_found_by_recall(new: Open, memory: Memory) -> None:
    new(agent="tutor").append("# Boats\nAda owns a yellow catamaran")
    user = new()._scope.user
    found = memory.recall("catamaran", user=user, agent="tutor", deadline_ms=None)
    assert [hit.kind for hit in found.hits] == ["note"]
    assert find_section(found.hits[0].text, "Boats")
