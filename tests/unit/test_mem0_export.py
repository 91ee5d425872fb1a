"""mem0's exports, in the forms that people have them in."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorist.errors import RecordError
from memorist.lifecycle.mem0_export import parse_mem0, read_mem0

NOW = datetime(2026, 6, 1, tzinfo=UTC)
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


def texts(value: Any) -> list[str]:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return [item.text for item in parse_mem0(raw, NOW)]


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
        {
            "result": {
                "points": [
                    {"id": 1, "payload": {"data": TEA["memory"]}},
                    {"id": 2, "payload": {"data": OAT["memory"]}},
                ]
            }
        },
        f"{json.dumps(TEA)}\n\n{json.dumps(OAT)}\n".encode(),
        f"{json.dumps([TEA])}\n{json.dumps([OAT])}".encode(),
        json.dumps([TEA, OAT], indent=2).encode("utf-8-sig"),
        gzip.compress(f"{json.dumps(TEA)}\n{json.dumps(OAT)}".encode()),
        zipped("a/memories.json", json.dumps({"memories": [TEA, OAT]}).encode()),
    ],
)
def test_every_form_of_an_export_is_read(export: Any) -> None:
    assert texts(export) == ["Likes green tea", "Takes oat milk"]


def test_an_entry_keeps_whose_it_is_and_when_it_was_made() -> None:
    given = TEA | {"agent_id": "tutor", "run_id": "r1", "expiration_date": "2026-03-01"}
    (item,) = parse_mem0(json.dumps([given]).encode(), NOW, tenant="t")

    assert (item.id, item.source) == ("1f0c", "import")
    assert (item.scope.user, item.scope.agent, item.scope.session) == ("ada", "tutor", "r1")
    assert item.created_at == datetime(2026, 2, 1, 17, 30, tzinfo=UTC)
    assert item.expires_at == datetime(2026, 3, 1, tzinfo=UTC)


def test_what_open_memory_deleted_has_ended() -> None:
    gone = {"id": "8", "content": "Likes milk", "state": "deleted", "deleted_at": 1_700_000_000_000}
    both = OPEN_MEMORY | {"memories": [*OPEN_MEMORY["memories"], gone]}
    kept, ended = parse_mem0(json.dumps(both).encode(), NOW)

    assert kept.ended_at is None
    assert kept.created_at == ended.ended_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_an_entry_needs_no_more_than_its_text() -> None:
    first, second = parse_mem0(b'[{"memory": "a"}, {"text": "b"}]', NOW)

    assert (first.id, second.id) == ("entry 1", "entry 2")
    assert (first.scope.user, first.created_at) == ("unknown", NOW)


def test_an_export_without_memories_is_empty() -> None:
    assert texts({"results": []}) == []
    assert texts([]) == []


@pytest.mark.parametrize(
    ("export", "error"),
    [
        (b"", "the export is empty"),
        (b"[{\n", "line 2, column 1: not JSON"),
        (b'{"memory": "secret"}\n{"memory": "secret"', "line 2, column 20: not JSON"),
        (b'{"memory": "secret"}\n{"memory": 7}', "line 2: `memory` must be a string, got int"),
        (b'[{"memory": "secret"}, 3]', "entry 2 must be an object, got int"),
        (b'[{"id": "secret"}]', "entry 1: has no `memory`"),
        (b'[{"memory": "a", "created_at": "secret"}]', "entry 1: `created_at` must be a date"),
        (b'[{"memory": "a", "user_id": ["secret"]}]', "`user_id` must be a string, got list"),
        (b'[{"memory": "\\u0000 secret"}]', "entry 1: text holds a NUL"),
        (b'[{"id": "1", "memory": "a"}, {"id": "1", "memory": "b"}]', "entry 2: its id was given"),
        (b'"secret"', "must hold objects, got str"),
        (b'{"full_name": "secret", "role": "nurse"}', "has no `memory`; save what"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"PK\x03\x04 broken", "cannot be unpacked"),
        (b"\x1f\x8b broken", "cannot be unpacked"),
        (zipped("readme.txt", b""), "holds no memories.json"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named_by_its_place_without_its_content(export: bytes, error: str) -> None:
    with pytest.raises(RecordError) as raised:
        parse_mem0(export, NOW)

    assert error in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        read_mem0(tmp_path / "none.json", NOW)
