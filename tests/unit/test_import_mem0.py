"""mem0's exports, in the forms that people have them in."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorist.errors import RecordError
from memorist.records.memories import MemoryItem
from memorist.transfer.formats import mem0
from memorist.transfer.items import Skipped
from memorist.transfer.source import Source

Reader = Callable[[Any], list[MemoryItem | Skipped]]
TEA: dict[str, Any] = {
    "id": "1f0c",
    "memory": "Likes green tea",
    "hash": "9d",
    "user_id": "ada",
    "score": 0.3,
    "metadata": {"kind": "drink"},
    "created_at": "2026-02-01T09:30:00-08:00",
    "updated_at": None,
}
OAT = TEA | {"id": "2f0c", "memory": "Takes oat milk"}
OPEN_MEMORY = {
    "user": {"id": "u"},
    "memories": [{"id": "7", "content": "Likes green tea", "state": "active", "created_at": 1.7e9}],
    "categories": [],
}


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Reads the bytes or the JSON of an export."""

    def read(export: Any) -> list[MemoryItem | Skipped]:
        path = tmp_path / "export"
        path.write_bytes(export if isinstance(export, bytes) else json.dumps(export).encode())
        items = list(mem0.read(source := Source(path)))
        assert mem0.recognises(source) or not isinstance(next(iter(items), None), MemoryItem)
        return [item for item in items if isinstance(item, MemoryItem | Skipped)]

    return read


def memories(items: list[MemoryItem | Skipped]) -> list[MemoryItem]:
    assert all(isinstance(item, MemoryItem) for item in items)
    return [item for item in items if isinstance(item, MemoryItem)]


def zipped(name: str, content: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as packed:
        packed.writestr(name, content)
    return held.getvalue()


@pytest.mark.parametrize(
    "export",
    [
        {"results": [TEA, OAT]},
        {"count": 2, "next": None, "results": [TEA, OAT], "relations": []},
        [TEA, OAT],
        [{"results": [TEA]}, {"results": [TEA, OAT]}],  # pages that overlap
        {"memories": [TEA, OAT]},
        f"{json.dumps(TEA)}\n\n{json.dumps(OAT)}\n".encode(),
        f"{json.dumps([TEA])}\n{json.dumps([OAT])}".encode(),
        json.dumps([TEA, OAT], indent=2).encode("utf-8-sig"),
        gzip.compress(f"{json.dumps(TEA)}\n{json.dumps(OAT)}".encode()),
        zipped("a/memories.json", json.dumps({"memories": [TEA, OAT]}).encode()),
    ],
)
def test_every_form_of_an_export_is_read(read: Reader, export: Any) -> None:
    texts = [item.text for item in memories(read(export))]
    assert list(dict.fromkeys(texts)) == ["Likes green tea", "Takes oat milk"]


def test_an_entry_keeps_whose_it_is_and_when_it_was_made(read: Reader) -> None:
    given = TEA | {"agent_id": "tutor", "run_id": "r1", "expiration_date": "2026-03-01"}
    (item,) = memories(read([given]))

    assert (item.id, item.source) == ("1f0c", "import")
    assert (item.scope.user, item.scope.agent, item.scope.session) == ("ada", "tutor", "r1")
    assert item.created_at == datetime(2026, 2, 1, 17, 30, tzinfo=UTC)
    assert item.expires_at == datetime(2026, 3, 1, tzinfo=UTC)


def test_what_open_memory_deleted_has_ended(read: Reader) -> None:
    gone = {"id": "8", "content": "Likes milk", "state": "deleted", "deleted_at": 1_700_000_000_000}
    kept, ended = memories(read(OPEN_MEMORY | {"memories": [*OPEN_MEMORY["memories"], gone]}))

    assert kept.ended_at is None
    assert kept.created_at == ended.ended_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_an_entry_needs_no_more_than_its_text(read: Reader) -> None:
    export = b'[{"memory": "a"}, {"text": "b"}]'
    first, second = memories(read(export))

    assert first.id != second.id
    assert [item.id for item in memories(read(export))] == [first.id, second.id]
    assert first.scope.user == ""


def test_an_export_without_memories_is_empty(read: Reader) -> None:
    assert read({"results": []}) == read([]) == []


@pytest.mark.parametrize(
    ("export", "place", "reason"),
    [
        (b'{"memory": "secret"}\n{"memory": 7}', "line 2", "`memory` must be a string, got int"),
        (b'{"memory": "secret"}\n{"memory": \n{}', "line 2", "not JSON"),
        (b'[{"memory": "secret"}, 3]', "entry 2", "not an object but int"),
        (b'[{"id": "secret"}]', "entry 1", "has no `memory`"),
        (b'[{"memory": "a", "created_at": "secret"}]', "entry 1", "`created_at` must be a date"),
        (b'[{"memory": "a", "user_id": ["secret"]}]', "entry 1", "`user_id` must be a string"),
        (b'[{"memory": "\\u0000 secret"}]', "entry 1", "text holds a NUL"),
        (b'{"full_name": "secret", "role": "nurse"}', "line 1", "has no `memory`; save what"),
        (b'"secret"\n', "line 1", "not a JSON object"),
        (b'[[[[[[[{"memory": "secret"}]]]]]]]', "entry 1", "not an object but list"),
    ],
)
def test_a_bad_entry_is_skipped_and_named_by_its_place_without_its_content(
    read: Reader, export: bytes, place: str, reason: str
) -> None:
    skipped = next(item for item in read(export) if isinstance(item, Skipped))

    assert (skipped.place, skipped.reason[: len(reason)]) == (place, reason)
    assert "secret" not in skipped.reason


@pytest.mark.parametrize(
    ("export", "error"),
    [
        (b"[{\n", "character 4: not JSON"),
        (b'{"memory": "secret"}\n{"memory": "secret"', "line 2: the file is cut off"),
        (b'{"results": [\n{"memory": "secret"},', "character 36: "),
        (b'[{"memory": "secret"}] {', "character 25: "),
        (b'[{"memory": "secret\xff"}]', "not UTF-8"),
        (b"PK\x03\x04 broken", "cannot be read: damaged"),
        (b"\x1f\x8b broken", "cannot be read: it is cut off"),
        (gzip.compress(b'{"memory": "secret"}\n' * 10_000)[:-12], "it is cut off"),
        (zipped("readme.txt", b"secret"), "readme.txt, character 1: `[` is missing"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_export_is_refused_with_the_place_and_without_its_content(
    read: Reader, export: bytes, error: str
) -> None:
    with pytest.raises(RecordError) as raised:
        read(export)

    assert error in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        Source(tmp_path / "none.json")
