"""The format of archives: documented as it is written, and safe to read whoever wrote it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist import Memory, SqliteStore, archive
from memorist.context.documents import reading
from memorist.errors import ConflictError, InvalidError, RecordError, TooLargeError
from memorist.records import json_values
from memorist.records.archive import KINDS, fields_of, line_of
from memorist.records.entry import Put
from memorist.store import indexing

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
Lines = list[dict[str, Any]]


def packed(lines: Iterable[dict[str, Any]]) -> bytes:
    """An archive of these lines, whose checksums are right."""
    total, whole, text = archive.Checksum(), hashlib.sha256(), b""
    for data in lines:
        data = dict(data)
        if data.get("type") == "user":
            total = archive.Checksum()
        elif data.get("type") == "user_end":
            data |= total.to_json()
        elif data.get("type") == "end":
            data["sha256"] = whole.hexdigest()
        line = line_of(data)
        if data.get("type") in KINDS:
            total.add(data["type"], line)
        whole.update(line)
        text += line
    return gzip.compress(text)


def unpacked(data: bytes) -> Lines:
    return [json.loads(line) for line in gzip.decompress(data).splitlines()]


@pytest.fixture
def exported(memory: Memory) -> bytes:
    memory.remember(["I moved to Berlin.", "I like tea."], user="ada", session="talk")
    scope = memory.scope(user="ada", session="talk")
    memory.messages.revise(scope, memory.history(user="ada")[0].changed(content="I moved."))
    memory.memories.add("Ada likes tea.", user="ada")
    memory.facts.add("Ada", "likes", "tea", user="ada")
    memory.library(user="ada").add("Tea", "# Tea\n\nGreen.")
    memory.notes(user="ada").write("# Note")
    return b"".join(memory.export("ada"))


def test_the_documented_fields_are_those_written() -> None:
    for name in KINDS:
        section = PAGE.split(f"\n### `{name}`\n")[1].split("\n#")[0]
        named = [it for it in re.findall(r"`(\w+)`", section) if it in fields_of(name)]
        assert tuple(dict.fromkeys(named)) == fields_of(name), name


def test_an_archive_is_cut_off_altered_or_newer(memory: Memory, exported: bytes) -> None:
    text = gzip.decompress(exported)
    refused: dict[str, bytes] = {
        "cut off": exported[:-30],
        "missing": gzip.compress(b"\n".join(text.splitlines()[:-1]) + b"\n"),
        "altered": gzip.compress(text.replace(b"tea", b"sea")),
        "install a newer": gzip.compress(text.replace(b'"version":1', b'"version":2', 1)),
        "not an archive": gzip.compress(b'{"format":"other","version":1}\n'),
        "goes on after": gzip.compress(text + b'{"type":"user","user":"eve"}\n'),
        "no archive": b"PK\x03\x04 something else",
        "is missing": b"",
    }
    with Memory(":memory:", embedder=None, extraction=None) as empty:
        for reason, data in refused.items():
            with pytest.raises(RecordError, match=reason):
                empty.restore([data])
        for size in range(0, len(exported) - 1, 37):
            with pytest.raises(RecordError):
                empty.restore([exported[:size]])
        assert empty.users() == []
        assert empty.restore([exported]).users == 1


def changed(lines: Lines, name: str, **fields: Any) -> Lines:
    return [{**it, **fields} if it.get("type") == name else it for it in lines]


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("memory", {"uses": "many"}, "whole number"),
        ("memory", {"uses": -1}, "whole number"),
        ("memory", {"uses": 2**70}, "whole number"),
        ("memory", {"uses": True}, "whole number"),
        ("memory", {"kind": "rumour"}, "kind must be one of"),
        ("memory", {"importance": 7}, "from 0 to 1"),
        ("memory", {"created_at": "yesterday"}, "not a MemoryItem"),
        ("memory", {"created_at": "2026-01-01T00:00:00"}, "no time zone"),
        ("memory", {"scope": {"user": "eve"}}, "unknown"),
        ("memory", {"text": "\x00"}, "NUL"),
        ("memory", {"agent": 3}, "agent must be a string"),
        ("memory", {"indexed_at": 7}, "indexed_at must be a datetime"),
        ("fact", {"object": " "}, "object is empty"),
        ("message", {"role": "god"}, "role must be one of"),
        ("message", {"id": ""}, "message_id is empty"),
        ("message", {"session": 4}, "session must be a string"),
        ("message", {"place": None}, "whole number|place"),
        ("message", {"job": {"kind": "rebuild"}}, "kind must be one of"),
        ("message", {"owner": "x"}, "unknown"),
        ("note", {"version": 1.5}, "whole number"),
        ("article", {"title": None}, "title must be a string"),
        ("user", {"room": "../other"}, "names no user"),
        ("user", {"user": None}, "names no user"),
        ("session", {"type": "table"}, "type of record is unknown"),
    ],
)
def test_a_record_that_is_none_is_refused_before_anything_is_stored(
    exported: bytes, name: str, fields: dict[str, Any], reason: str
) -> None:
    bad = packed(changed(unpacked(exported), name, **fields))
    with Memory(":memory:", embedder=None, extraction=None) as empty:
        with pytest.raises(RecordError, match=f"line [0-9]+ of the archive: .*({reason})"):
            empty.restore([bad])
        assert empty.users() == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(data=st.data())
def test_no_line_does_more_than_to_be_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*KINDS, "user", "end", "user_end", "x"]))
    known = st.sampled_from(fields_of(name)) if name in KINDS else st.text(max_size=4)
    fields = data.draw(st.dictionaries(known, JSON, max_size=9))
    lines: Lines = [{"format": "memorist", "version": 1}, {"type": "user", "user": "ada"}]
    lines += [{**fields, "type": name}, {"type": "user_end"}, {"type": "end", "users": 1}]
    with Memory(":memory:", embedder=None, extraction=None) as empty:
        try:
            empty.restore([packed(lines)])
        except (RecordError, ValueError):  # ValueError: a number that is not finite
            assert empty.users() == []


@pytest.mark.parametrize(
    "parts", [{}, {"0": ""}, {"0": "AAAA", "x": "AAAA"}, {"0": "?"}, {"0": "AADAfw=="}, {"0": 1}]
)
def test_vectors_that_are_none_are_refused(memory: Memory, parts: dict[str, Any]) -> None:
    vectors = {"type": "vectors", "embedder": "e", "id": "m", "session": "s", "parts": parts}
    lines: Lines = [{"format": "memorist", "version": 1}, {"type": "user", "user": "ada"}]
    with pytest.raises(RecordError, match=r"line 3 .*(vectors|parts)"):
        memory.restore([packed([*lines, vectors, {"type": "user_end"}, {"type": "end"}])])


def test_nobody_elses_data_is_reached(memory: Memory, exported: bytes) -> None:
    other = memory.tenant("other")
    for tenant in (memory, other):
        tenant.remember("Eve's own.", user="eve", session="talk")
        tenant.memories.add("Eve's memory.", user="eve")
    eves = [b"".join(it.export("eve")) for it in (memory, other)]
    adas = b"".join(memory.export("ada"))
    [eves_memory] = memory.memories.list(user="eve")
    hostile = changed(unpacked(exported), "memory", id=eves_memory.id, superseded_by="x")
    hostile = changed(hostile, "user", user="eve\x01default")
    memory.restore([packed(hostile)], user="mallory")
    assert [b"".join(it.export("eve")) for it in (memory, other)] == eves
    assert b"".join(memory.export("ada")) == adas
    assert {it.user for it in memory.users()} == {"ada", "eve", "mallory"}
    with pytest.raises(InvalidError, match="holds 3 users"):
        memory.restore(memory.export(), user="mallory")
    with pytest.raises(RecordError, match="shared by all users"):
        memory.restore([packed(changed(hostile, "user", room="library"))], user="mallory")


def test_deep_and_large_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    head = b'{"format":"memorist","version":1}\n{"type":"user","user":"ada"}\n'
    deep = b'{"type":"receipt","receipt":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001 + b"\n"
    with Memory(":memory:", embedder=None, extraction=None) as empty:
        with pytest.raises(RecordError, match="line 3 of the archive: this is not a JSON object"):
            empty.restore([gzip.compress(head + deep)])
        monkeypatch.setattr(json_values, "MAX_JSON_VALUES", 1_000)
        many = b'{"type":"kept","view":[' + b"[]," * 1_000 + b"0]}\n"
        with pytest.raises(RecordError, match="line 3 of the archive: this holds too many values"):
            empty.restore([gzip.compress(head + many)])
        monkeypatch.setattr(archive, "MAX_LINE", 1_000)
        with pytest.raises(RecordError, match="a line that is too long"):
            empty.restore([gzip.compress(head + b'{"a":"' + b"a" * 2_000 + b'"}\n')])
        monkeypatch.setattr(archive, "ALWAYS_FINE", 100_000)
        bomb = gzip.compress(head + (b'{"type":"kept","view":"%s"}\n' % (b"x" * 900)) * 30_000)
        tracemalloc.start()
        with pytest.raises(RecordError, match="more than 200 times its size"):
            empty.restore([bomb])
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
        tracemalloc.stop()
        assert empty.users() == []


def test_a_message_longer_than_the_store_takes_is_refused_before_anything_is_stored(
    tmp_path: Path, exported: bytes
) -> None:
    long = packed(changed(unpacked(exported), "message", content="a" * 2_000))
    store = SqliteStore(tmp_path / "small.db", max_message_bytes=1_999)
    with Memory(store, embedder=None, extraction=None) as small:
        with pytest.raises(RecordError, match=r"line [0-9]+ .*MEMORIST_MAX_MESSAGE_BYTES"):
            small.restore([long])
        assert small.users() == []
        assert small.restore([exported]).users > 0


def test_a_note_article_or_entry_longer_than_the_store_takes_is_refused_by_every_way(
    memory: Memory, exported: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert indexing.MAX_TEXT_BYTES >= reading.MAX_BYTES
    long, scope, amy = "a" * 3_000, memory.scope(user="zoe"), memory.scope(user="amy")
    put = Put(namespace=("a",), key="long", value={"it": long})
    memory.store.batch(amy, (), [put])
    entry = b"".join(memory.export("amy"))
    memory.forget(user="amy", everything=True)
    monkeypatch.setattr(indexing, "MAX_TEXT_BYTES", 2_999)
    with pytest.raises(TooLargeError, match="the note has 3,000 bytes"):
        memory.note_versions.write(scope, long, base_version=0)
    with pytest.raises(TooLargeError, match="the article has 3,000 bytes"):
        memory.library(user="zoe").add("Long", long)
    with pytest.raises(TooLargeError, match="the entry has 3,009 bytes"):
        memory.store.batch(scope, (), [put])
    for name in ("note", "article"):
        with pytest.raises(RecordError, match=f"line [0-9]+ .* the {name} has 3,000 bytes"):
            memory.restore([packed(changed(unpacked(exported), name, text=long))])
    with pytest.raises(RecordError, match=r"line 3 .* the entry has 3,009 bytes"):
        memory.restore([entry])
    assert not {"zoe", "amy"} & {it.user for it in memory.users()}


def test_what_is_there_stays_and_is_reported(memory: Memory, exported: bytes) -> None:
    kept = memory.memories.list(user="ada", current=False)
    memory.memories.retract(kept[0].id, user="ada", reason="wrong")
    [first, _] = memory.history(user="ada")
    scope = memory.scope(user="ada", session="talk")
    memory.messages.revise(scope, first.changed(content="I never moved."))
    before = b"".join(memory.export("ada"))
    report = memory.restore([exported])
    assert set(report.differing) >= {"message", "memory"}
    assert len(report.places) == sum(report.differing.values())
    assert not report.added
    assert b"".join(memory.export("ada")) == before


def test_one_user_is_restored_for_another(memory: Memory, exported: bytes) -> None:
    report = memory.restore([exported], user="grace")
    assert report.users == 1
    assert not report.there
    assert memory.history(user="grace") == memory.history(user="ada")
    assert unpacked(b"".join(memory.export("grace")))[2:-1] == unpacked(exported)[2:-1]


def test_while_memories_are_rebuilt_nothing_is_exported(memory: Memory, exported: bytes) -> None:
    memory.jobs.rebuild(user="ada")
    memory.store.rebuild(memory.scope(user="ada"))
    with pytest.raises(ConflictError, match="being rebuilt"):
        b"".join(memory.export("ada"))


def test_an_archive_of_anything_but_bytes_is_refused(memory: Memory) -> None:
    for wrong in ("a.jsonl.gz", b"x", ["text"], io.StringIO("text")):
        with pytest.raises(InvalidError, match="give the archive as a file opened to read bytes"):
            memory.restore(wrong)  # type: ignore[arg-type]


def test_an_archive_is_told_from_other_files(exported: bytes) -> None:
    assert archive.is_archive(exported[:100])
    for other in (b"", b"PK", exported[:5], gzip.compress(b'{"a": 1}'), b"\x1f\x8b garbage"):
        assert not archive.is_archive(other)


def test_the_progress_of_a_restore_reaches_its_end(memory: Memory, exported: bytes) -> None:
    told: list[tuple[int, int]] = []
    memory.restore([exported], progress=lambda *it: told.append(it))
    assert told == sorted(told)
    assert told[-1][0] <= told[-1][1] == 2 * len(exported)
