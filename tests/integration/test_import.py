"""Imports into every kind of memory: whole, once, resumed, refused."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory, Message, connect
from memorist.errors import InvalidError, RecordError
from memorist.records import json_values
from memorist.records.entry import Search
from memorist.records.scope import shared_scope
from memorist.server.auth import Guard
from memorist.server.http.app import Limits, build_app
from memorist.transfer.formats import FORMATS
from memorist.transfer.importing import BATCH, Progress, Report, examine, recognised, run_import
from memorist.transfer.source import Source
from tests.support.http_server import Served, serving
from tests.unit.test_reading import fill

MAY = datetime(2025, 5, 1, 9, tzinfo=UTC)


def chat(number: int, messages: int = 3, **more: Any) -> dict[str, Any]:
    """A conversation as OpenAI's chat API has it."""
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"chat {number} line {n}"} for n in range(messages)]
    return {"id": f"chat-{number}", "title": f"Chat {number}", "messages": said, **more}


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


CALL = {"type": "function", "function": {"name": "find_train", "arguments": '{"to": "Rome"}'}}
TOOLS = [
    {"role": "user", "content": [{"type": "text", "text": "Which train goes to Rome?"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "at nine", "tool_call_id": "c1"},
    {"role": "developer", "content": "Be brief."},
]
EXPORTS: dict[str, dict[str, str]] = {
    "openai_jsonl": {
        "log.jsonl": lines(
            chat(1, created_at="2025-05-01T09:00:00Z"), chat(2, user_id="bob"), {"messages": TOOLS}
        )
    },
    "mem0": {
        "mem0.json": json.dumps(
            {
                "results": [
                    {"id": "m1", "memory": "Likes green tea", "created_at": "2025-05-01T09:00:00Z"},
                    {"id": "m2", "memory": "Likes green tea", "user_id": "bob"},
                    {"id": "m3", "memory": "Likes green tea, very green", "user_id": "bob"},
                    {"id": "m4", "memory": "Likes milk", "state": "deleted"},
                ]
            },
            indent=1,
        )
    },
    "mcp_memory": {
        "memory.json": lines(
            {
                "type": "entity",
                "name": "Ada",
                "entityType": "person",
                "observations": ["Speaks Spanish", "Ada rows at dawn"],
            },
            {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"},
        )
    },
    "markdown": {
        "wiki/returns.md": "# Returns\n\nA lamp may be sent back within thirty days.\n",
        "wiki/deep/staff.md": "---\ntitle: Who is who\n---\nAda mends toasters.\n",
        "wiki/lamp.png": "not a text",
        "wiki/empty.md": "",
    },
}
TAKEN = {
    "openai_jsonl": {"messages": 10},
    "mem0": {"memories": 3},
    "mcp_memory": {"facts": 2, "memories": 2},
    "markdown": {"articles": 2},
}


@pytest.fixture(params=["sqlite", "postgres", "server"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """A memory of each kind; on a server, with an admin's key."""
    postgres = request.param == "postgres"
    target = request.getfixturevalue("postgres_with_tables") if postgres else tmp_path / "memory.db"
    with Memory(target, embedder=None, extraction=None) as local:
        if request.param != "server":
            yield local
            return
        limits = Limits(requests_per_s=0, failures_per_s=0)
        with (
            serving(build_app(local, Guard(local.keys), limits)) as url,
            connect(url, key=Served(url, local).key(None)) as remote,
        ):
            yield remote


@pytest.fixture
def local() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None, extraction=None) as opened:
        yield opened


def export(folder: Path, name: str) -> Path:
    """The fixture of a format, as a user has it."""
    fill(folder, EXPORTS[name])
    return folder / next(iter(EXPORTS[name])).split("/")[0]


def everything(memory: Memory) -> dict[str, Any]:
    """All that a memory holds, to be compared."""
    store = shared_scope(memory.tenant_name, "store", "store")
    found: dict[str, Any] = {"entries": memory.entries.batch(store, [Search(limit=None)])}
    for scope in memory.users():
        user = scope.user
        sessions = memory.session_summaries(user=user)
        found[user] = {
            "sessions": [(one.scope.session, one.scope.agent, one.title) for one in sessions],
            "messages": memory.history(user=user),
            "memories": memory.memories.list(user=user, current=False),
            "facts": memory.facts.as_of(user=user),
            "articles": [(one.uri, one.title) for one in memory.articles.list(scope)],
        }
    return found


@pytest.mark.parametrize("name", EXPORTS)
def test_what_is_imported_twice_is_there_once(memory: Memory, tmp_path: Path, name: str) -> None:
    path = export(tmp_path, name)
    planned = examine(Source(path))
    first = run_import(memory, Source(path), user="ada")
    there = everything(memory)
    again = run_import(memory, Source(path), user="ada")

    assert recognised(Source(path)).name == first.format == name
    assert dict(planned.found) == dict(first.found) == dict(first.added) == TAKEN[name]
    assert planned.reasons == first.reasons == again.reasons
    assert not any(first.known.values())
    assert not any(again.added.values())
    assert dict(again.known) == TAKEN[name]
    assert everything(memory) == there


def test_dates_titles_users_and_tool_calls_are_kept(local: Memory, tmp_path: Path) -> None:
    for name in ("openai_jsonl", "mem0", "mcp_memory"):
        run_import(local, Source(export(tmp_path, name)), user="ada")

    sessions = {one.scope.session: one for one in local.session_summaries(user="ada")}
    assert sessions["chat-1"].title == "Chat 1"
    assert {one.created_at for one in local.history(user="ada", session="chat-1")} == {MAY}
    asked, called, answered, told = local.history(user="ada")[3:]
    assert asked.text == "Which train goes to Rome?"
    assert called.tool_calls[0].name == "find_train"
    assert (answered.role, answered.tool_call_id, told.role) == ("tool", "c1", "system")
    assert [one.text for one in local.history(user="bob")] == [f"chat 2 line {n}" for n in range(3)]
    [entry] = local.messages.list(local.scope(user="ada", session="chat-1"), last=1)
    assert entry.source == "import"
    [tea, *observed] = local.memories.list(user="ada")
    assert (tea.id, tea.source, tea.created_at) == ("m1", "import", MAY)
    assert [one.text for one in observed] == ["Ada: Speaks Spanish", "Ada rows at dawn"]
    assert len(local.memories.list(user="bob")) == 2  # as they were, though they are alike
    assert [one.text for one in local.facts.list(user="ada")] == [
        "Ada is a person",
        "Ada works at Acme",
    ]


def test_what_is_left_out_is_counted_with_places_and_reasons(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bad = [{"role": "user", "content": "\ud800 secret"}, {"content": "secret"}, 7]
    path.write_text(lines(chat(1), {"messages": [*chat(2)["messages"], *bad]}) + "secret\n[1]\n")
    report = examine(Source(path))

    assert report.found == {"messages": 6}
    assert report.reasons.total() == 5
    assert {item.place: item.reason.split(":")[0].split(" at ")[0] for item in report.skipped} == {
        "line 2, message 4": "content holds a lone surrogate",
        "line 2, message 5": "not a message with a role and content",
        "line 2, message 6": "not a message with a role and content",
        "line 3": "not JSON",
        "line 4": "not a JSON object",
    }
    wiki = examine(Source(export(tmp_path, "markdown")))
    assert {item.place for item in wiki.skipped} == {"lamp.png", "empty.md"}
    deleted = examine(Source(export(tmp_path, "mem0")))
    assert deleted.reasons == {"deleted or archived in the export": 1}
    assert "secret" not in str(report)


@pytest.mark.parametrize("name", ["openai_jsonl", "mem0", "mcp_memory"])
def test_an_export_that_is_cut_off_is_refused_before_anything_is_written(
    local: Memory, tmp_path: Path, name: str
) -> None:
    path = export(tmp_path, name)
    whole = path.read_bytes()
    for size in range(len(whole) * 3 // 4, len(whole) - 3):
        path.write_bytes(whole[:size])
        if name != "mem0" and whole[size - 1 : size + 1] in (b"}\n", b"\n{"):
            continue  # lines that end where it was cut are all there is
        with pytest.raises(RecordError, match=r"cut off|line|character"):
            run_import(local, Source(path), user="ada", format=name)
    assert local.users() == []


def test_a_newer_export_adds_what_is_new(local: Memory, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(chat(1), chat(2)))
    run_import(local, Source(path), user="ada")
    local.rename_session("chat-1", "My own title", user="ada")
    path.write_text(lines(chat(1, messages=5), chat(2), chat(3)))
    report = run_import(local, Source(path), user="ada")

    assert (report.added, report.known) == ({"messages": 5}, {"messages": 6})
    assert [one.text for one in local.history(user="ada", session="chat-1")] == [
        f"chat 1 line {n}" for n in range(5)
    ]
    titles = {one.title for one in local.session_summaries(user="ada")}
    assert titles == {"My own title", "Chat 2", "Chat 3"}


def test_what_is_stored_with_other_content_stays_and_is_reported(
    local: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    said = [{"id": f"id-{n}", "role": "user", "content": f"line {n}"} for n in range(3)]
    local.remember(Message("user", "my words", message_id="id-1"), user="ada", session="s")
    path.write_text(lines({"id": "s", "messages": said}, chat(1)))
    report = run_import(local, Source(path), user="ada")

    assert report.added == {"messages": 5}
    [skipped] = report.skipped
    assert (skipped.place, skipped.reason[:22]) == ("message id-1", "a message with this id")
    assert [one.text for one in local.history(user="ada", session="s")] == [
        "my words",
        "line 0",
        "line 2",
    ]
    memories = tmp_path / "mem0.json"
    local.memories.add("Likes tea", user="ada", id="m1")
    memories.write_text(json.dumps([{"id": "m1", "memory": "Likes milk"}]))
    assert run_import(local, Source(memories), user="ada").reasons == {
        "its id is stored with other content": 1
    }


def test_nobody_gets_what_others_said(local: Memory, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(chat(1, user_id="bob"), chat(2, user_id="eve")))
    with pytest.raises(InvalidError, match="names 2 users"):
        run_import(local, Source(path), user="ada", one_user=True)
    assert local.users() == []
    path.write_text(lines(chat(1, user_id="bob"), chat(2)))
    run_import(local, Source(path), user="ada", one_user=True)
    assert [scope.user for scope in local.users()] == ["ada"]


def test_an_import_that_is_stopped_leaves_whole_conversations_and_goes_on(
    memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(*(chat(n, messages=30) for n in range(60))))

    def stop(progress: Progress) -> None:
        if progress.writing and progress.items > BATCH + 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_import(memory, Source(path), user="ada", on_progress=stop)
    counts = [one.messages.count for one in memory.session_summaries(user="ada")]
    assert counts
    assert set(counts) == {30}
    report = run_import(memory, Source(path), user="ada")
    assert report.known == {"messages": sum(counts)}
    assert report.added == {"messages": 1_800 - sum(counts)}


def test_progress_goes_from_nothing_to_all_twice(local: Memory, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(*(chat(n, messages=40) for n in range(40))))
    steps: list[Progress] = []
    run_import(local, Source(path), user="ada", on_progress=steps.append)

    for writing in (False, True):
        shares = [it.bytes_read / it.bytes_total for it in steps if it.writing is writing]
        assert shares == sorted(shares)
        assert len(shares) > 3
        assert shares[-1] == 1.0


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_no_format_takes_what_is_not_its_own(one: Any, tmp_path: Path) -> None:
    odd = {
        "empty": b"",
        "text.txt": b"hello\nworld\n",
        "binary": os.urandom(4_096),
        "deep.json": b"[" * 200_000,
        "deep.jsonl": b'{"messages":' * 100_000 + b"\n{}\n",
        "cut.json": b'[{"messages": [{"role": "user", "con',
        "null.json": b"null",
        "numbers.json": b"[1, 2, 3]",
        "big.json": b'{"a": ' + b"9" * 5_000 + b"}",
    }
    for name, content in odd.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert one.recognises(Source(path)) is False, name
    assert one.recognises(Source(fill(tmp_path / "folder", {"a.bin": "x"}))) is False


def test_an_entry_of_countless_values_is_refused_and_a_line_of_them_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_values, "MAX_JSON_VALUES", 300_000)
    many = '{"mapping": {}, "x": [' + "[]," * 1_000_000 + "0]}"
    whole = Source(fill(tmp_path / "chats", {"conversations.json": f"[{many}]"}))
    with pytest.raises(RecordError, match="an entry has too many values"):
        examine(whole, format="chatgpt")
    lines = f'{{"role": "user", "content": "Hi"}}\n{many}\n'
    report = examine(Source(fill(tmp_path / "lines", {"chat.jsonl": lines})), format="openai_jsonl")
    assert (report.found, report.reasons) == ({"messages": 1}, {"too many values": 1})


def test_a_message_that_is_none_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    good = {"role": "user", "content": "Hi"}
    odd = [{**good, "n": float("nan")}, {**good, "n": "\ud800"}]
    wrong = [{**good, "role": "assistant", "tool_calls": calls} for calls in (["x"], [1], [None])]
    one_by_one = fill(tmp_path / "one", {"chat.jsonl": lines(*odd, *wrong, good)})
    together = fill(tmp_path / "all", {"chat.jsonl": lines({"messages": [*odd, *wrong, good]})})
    for folder in (one_by_one, together):
        report = examine(Source(folder), format="openai_jsonl")
        assert report.found == {"messages": 3}
        assert report.reasons == {"response tool_calls must be a list of dicts": 3}


def test_what_could_do_harm_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.md")
    link.external_attr = 0o120777 << 16
    members: dict[str, list[tuple[Any, bytes]]] = {
        "outside of it": [("../up.md", b"x")],
        "outside": [("/etc/x.md", b"x")],
        "outside of": [("C:\\x.md", b"x")],
        "a link": [(link, b"/etc/passwd")],
        "200 times": [("bomb.md", bytes(300 << 20))],
    }
    for reason, files in members.items():
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for member, content in files:
                packed.writestr(member, content)
        with pytest.raises(RecordError, match=reason):
            Source(path)
    folder = fill(tmp_path / "folder", {"a.md": "# A\n\nText.\n"})
    (folder / "out.md").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.md")
    report: Report = examine(Source(folder))
    assert report.found == {"articles": 1}
    assert report.reasons == {"a link that leads out of the folder": 1}
    with pytest.raises(RecordError, match="not a file or folder"):
        Source(folder / "pipe.md")
    nameless = tmp_path / "nameless.zip"
    with zipfile.ZipFile(nameless, "w") as packed:
        for name in ("", ".", "a.md"):
            packed.writestr(zipfile.ZipInfo(name), b"# A\n\nText.\n")
    assert Source(nameless).names() == ["a.md"]
    for database in ("mysql://ada:secret@host/db", "host=localhost password=secret", "a\x00.md"):
        with pytest.raises(RecordError, match="give a file") as refused:
            Source(database)
        assert "secret" not in str(refused.value)
    with pytest.raises(RecordError, match="no format that is known"):
        examine(Source(fill(tmp_path / "other", {"a.bin": "x"})))
