"""Notebook: the Markdown notes of a user and agent, with optimistic locking and all versions."""

import random
import re
import time
from collections.abc import Callable
from dataclasses import replace

from memorist.arguments import NamesArguments
from memorist.context.documents.markdown import Section, find_section, is_closed, sections
from memorist.documents import DocumentMemory
from memorist.errors import ConflictError, InvalidError, NotFoundError
from memorist.records.documents import Note
from memorist.records.values import check_text, check_whole, now

MAX_CHARS = 64_000
TRIES = 200  # of an edit in a row of conflicts; each conflict means that another edit succeeded
LONGEST_PAUSE_S = 0.02  # between tries; short and not growing, so that all have the same chance

_EMPTY_LINE = re.compile(r"[ \t]*(?:\r\n|\r|\n)")
# Each operation of manage_long_term_memory: its arguments, its method and its confirmation.
OPERATIONS = {
    "read": ((), "read", ""),
    "overwrite": (("content",), "write", "Overwritten."),
    "append": (("content",), "append", "Appended."),
    "prepend": (("content",), "prepend", "Prepended."),
    "delete_section_by_header": (("section_header",), "delete_section", "Section deleted."),
    "replace_section_by_header": (
        ("section_header", "content"),
        "replace_section",
        "Section replaced.",
    ),
    "delete_all_notes": ((), "clear", "All notes deleted."),
}


class Notebook(NamesArguments):
    """The notes of a user and agent: one Markdown text, every version of it kept.

        notes = Notebook(memory, user="ada", agent="tutor")
        notes.append("## Plans\\n- learn to sail")
        notes.replace_section("Plans", "- learn to fly")

    Others may edit the same notes at the same time. `append` and `prepend` are repeated on the
    newer text. What removes text (`write`, `clear`, `restore`, the section edits) raises
    ConflictError if that text was changed since this Notebook last saw it: when it was opened,
    read, or wrote itself. Give each thread its own.
    """

    def __init__(
        self,
        memory: DocumentMemory,
        *,
        user: str,
        agent: str | None = None,
        max_chars: int = MAX_CHARS,
    ) -> None:
        self._versions = memory.note_versions
        self._scope = memory.scope(user=user, agent=agent)
        self.max_chars = check_whole(max_chars, "max_chars", 1)
        self._seen = self._load()  # the notes as the caller knows them

    @property
    def version(self) -> int:
        """The version last seen; 0 where nothing was ever written."""
        return self._seen.version

    def read(self) -> str:
        """The notes as they are now."""
        self._seen = self._load()
        return self._seen.text

    def versions(self) -> list[Note]:
        """Every version, newest first."""
        notes = self._versions.list(self._scope)
        self._seen = notes[0] if notes else self._load()
        return notes

    def at(self, version: int) -> Note:
        """The notes as they were at a version."""
        newest = self._load().version
        known = 0 < _check_version(version) <= newest
        note = self._versions.get(self._scope, version=version) if known else None
        if note is None:
            raise NotFoundError(f"the notes have no version {version}, the newest is {newest}")
        return note

    def write(self, text: str, base_version: int | None = None) -> Note:
        """Put a text in the place of the notes as last seen, or as they were at `base_version`."""
        check_text(text, "the text", InvalidError)
        current = self._load()
        if base_version is None:
            known, base_version = _is_same(current, self._seen), self.version
        else:
            known = current.version == _check_version(base_version)
        if not known:
            raise ConflictError(
                f"the notes are at version {current.version}, this was written for version "
                f"{base_version}; read them again and redo the edit"
            )
        self._seen = self._put(current, text)
        return self._seen

    def clear(self) -> Note:
        """Empty the notes; their versions stay."""
        return self.write("")

    def restore(self, version: int) -> Note:
        """Write the text of an old version as the newest."""
        return self.write(self.at(version).text)

    def append(self, text: str) -> Note:
        """Add a text below the notes, after an empty line."""
        _check_content(text)
        return self._edit(lambda notes: _joined(notes, text))

    def prepend(self, text: str) -> Note:
        """Add a text above the notes, before an empty line."""
        _check_content(text)
        return self._edit(lambda notes: _above(text, notes))

    def delete_section(self, header: str) -> Note:
        """Remove a section: its header and all below it, deeper sections too."""
        check_text(header, "the header", InvalidError)
        return self._edit(lambda notes: _without(notes, self._unchanged(notes, header)))

    def replace_section(self, header: str, text: str) -> Note:
        """Put a text below a section's header, or in its place where it brings its own header."""
        check_text(header, "the header", InvalidError)
        check_text(text, "the text", InvalidError)
        return self._edit(lambda notes: _with(notes, self._unchanged(notes, header), text))

    def manage(
        self, operation: str = "read", content: str | None = None, section_header: str | None = None
    ) -> str:
        """The tool `manage_long_term_memory`: do one of OPERATIONS, and tell a model about it."""
        if not isinstance(operation, str) or operation not in OPERATIONS:
            raise InvalidError(f"the operation is one of {', '.join(OPERATIONS)}")
        needed, method, done = OPERATIONS[operation]
        arguments = {"section_header": section_header, "content": content}
        # A model that names a section means it: nothing else must be edited in its place.
        if wrong := [name for name, value in arguments.items() if value and name not in needed]:
            raise InvalidError(f"{operation} takes no {wrong[0]}; leave it out")
        if missing := [name for name in needed if arguments[name] is None]:
            raise InvalidError(f"{operation} needs {missing[0]}; give it")
        if operation == "read":
            return self.read() or "The notes are empty."
        note = getattr(self, method)(*(arguments[name] for name in needed))
        return f"{done} The notes are at version {note.version}, {len(note.text)} characters."

    def _load(self) -> Note:
        nothing = Note(id="", scope=self._scope, version=0, text="", created_at=now())
        return self._versions.get(self._scope) or nothing

    def _edit(self, change: Callable[[str], str]) -> Note:
        """Make a change to the newest text; again if another edit was stored meanwhile."""
        for _ in range(TRIES):
            current = self._load()
            text = change(current.text)
            # The caller has not seen what others wrote meanwhile, only this change.
            believed = replace(self._seen, text=change(self._seen.text))
            try:
                note = self._put(current, text)
            except ConflictError:
                time.sleep(random.uniform(0, LONGEST_PAUSE_S))
                continue
            self._seen = note if _is_same(current, self._seen) else believed
            return note
        raise ConflictError(f"others changed the notes {TRIES} times meanwhile; try again later")

    def _put(self, current: Note, text: str) -> Note:
        """Write the version after the current one, unless nothing changes."""
        if text == current.text:
            return current
        if len(text) > max(self.max_chars, len(current.text)):  # getting shorter is always allowed
            raise InvalidError(
                f"the notes would have {len(text)} characters, the limit is {self.max_chars}; "
                "shorten them or delete a section, or set a larger max_chars"
            )
        return self._versions.write(self._scope, text, base_version=current.version)

    def _unchanged(self, notes: str, header: str) -> Section:
        """The section of this header, which must be as it was last seen."""
        section = find_section(notes, header)
        seen = self._seen.text
        if notes != seen and _text_of(notes, header) != _text_of(seen, header):
            raise ConflictError(
                "somebody changed this section since it was last read; "
                "read the notes again and redo the edit"
            )
        return section


def _is_same(note: Note, other: Note) -> bool:
    """By id and version: notes that were forgotten and begun anew have versions from one again."""
    return (note.id, note.version) == (other.id, other.version)


def _text_of(notes: str, header: str) -> str | None:
    """A section without the empty lines below it, which may belong to the next one."""
    try:
        section = find_section(notes, header)
    except (NotFoundError, InvalidError):
        return None
    return notes[section.start : section.stop].rstrip()


def _check_version(version: int) -> int:
    if type(version) is not int:
        raise InvalidError(f"a version is a whole number, not {type(version).__name__}")
    return version


def _check_content(text: str) -> None:
    if not check_text(text, "the text", InvalidError).strip():
        raise InvalidError("there is nothing to add: the text is empty")


def _above(text: str, below: str) -> str:
    """A text put above another, which must not become part of its code."""
    if below and not is_closed(text):
        raise InvalidError(
            "the text leaves a code fence or HTML open, which would swallow the notes below it; "
            "close it"
        )
    return _joined(text, below)


def _without(notes: str, section: Section) -> str:
    return _joined(notes[: section.start], notes[section.stop :])


def _with(notes: str, section: Section, text: str) -> str:
    """The notes with a section's text replaced; its header stays unless the text brings one."""
    own = sections(text)[:1]
    if own and not text[: own[0].start].strip():
        text = text[own[0].start :]
    else:
        gap = _EMPTY_LINE.match(notes, section.body, section.stop)
        header = notes[section.start : gap.end() if gap else section.body]
        text = header + ("" if header.endswith(("\r", "\n")) else "\n") + text
    return _joined(notes[: section.start], _above(text, notes[section.stop :]))


def _joined(above: str, below: str) -> str:
    """Both texts, each whole, with an empty line between them."""
    if not above or not below:
        return above or below
    ending = above[-4:].replace("\r\n", "\n")
    missing = 2 - (len(ending) - len(ending.rstrip("\n")))
    return above + ("\r\n" if "\r\n" in above else "\n") * missing + below
