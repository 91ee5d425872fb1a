"""Exports of other programs, as they are: each is recognised, and read whole with its dates."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_to_dict
from langchain_postgres import PostgresChatMessageHistory
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from memorist import Memory, RecordError
from memorist.records.entry import Put, Search
from memorist.records.values import MadeAt
from memorist.transfer.content import LEFT_OUT as WORDS
from memorist.transfer.formats import FORMATS
from memorist.transfer.importing import run_import
from memorist.transfer.items import Document, Item, Skipped, Turn
from memorist.transfer.source import Source

EXPORTS = Path(__file__).parent.parent / "data" / "exports"
CHAT = [
    HumanMessage("Where is the trowel?", id="h1"),
    AIMessage("", tool_calls=[{"name": "look", "args": {"in": "shed"}, "id": "c1"}]),
    ToolMessage("On the shelf.", tool_call_id="c1", name="look"),
]
TROWEL = [
    "user: Where is the trowel?",
    'assistant:  -> look {"in":"shed"} (c1)',
    "tool: On the shelf. (c1)",
]
SESSION = "10000000-0000-4000-8000-000000000001"
TULIPS = ["entry ada.garden/tulips: {'colour': 'red', 'count': 3}"]


def chatgpt_split(home: Path, _: str) -> Path:
    """The newer form: conversations in several files, in a zip."""
    conversations = json.loads((EXPORTS / "chatgpt/conversations.json").read_text())
    with zipfile.ZipFile(home / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, conversation in enumerate(conversations):
            archive.writestr(f"conversations-{number:03}.json", json.dumps([conversation]))
        archive.writestr("export_manifest.json", "{}")
    return home / "export.zip"


def message_store(home: Path, _: str) -> Path:
    """As langchain_community's SQLChatMessageHistory makes it (it is not installed here)."""
    with sqlite3.connect(home / "chat.db") as database:
        columns = "id INTEGER NOT NULL, session_id TEXT, message TEXT, PRIMARY KEY (id)"
        database.execute(f"CREATE TABLE message_store ({columns})")
        rows = [(SESSION, json.dumps(message_to_dict(message))) for message in CHAT]
        insert = "INSERT INTO message_store (session_id, message) VALUES (?, ?)"
        database.executemany(insert, rows)
    database.close()
    return home / "chat.db"


def langchain_postgres(_: Path, url: str) -> str:
    with psycopg.connect(url) as connection:
        PostgresChatMessageHistory.create_tables(connection, "chat_history")
        history = PostgresChatMessageHistory("chat_history", SESSION, sync_connection=connection)
        history.add_messages(CHAT)
    return url


def sqlite_store(home: Path, _: str) -> Path:
    with SqliteStore.from_conn_string(str(home / "store.db")) as store:
        store.setup()
        store.put(("ada", "garden"), "tulips", {"colour": "red", "count": 3})
        store.put(("ada", "garden"), "frost", {"text": "tonight"}, ttl=-1)
    return home / "store.db"


def postgres_store(_: Path, url: str) -> str:
    with PostgresStore.from_conn_string(url) as store:
        store.setup()
        store.put(("ada", "garden"), "tulips", {"colour": "red", "count": 3})
        store.put(("ada", "garden"), "frost", {"text": "tonight"}, ttl=-1)
    return url


def kept(name: str) -> Callable[[Path, str], Path]:
    """A copy of an export in the test data."""
    return lambda home, _: Path(shutil.copytree(EXPORTS / name, home / name))


CHATGPT = [
    "document Custom instructions for ChatGPT: I garden in Lisbon.\n\nAnswer briefly.",
    "10:01:00.250 user: [image: balcony.png]\nMy balcony faces south. Which herbs like sun?",
    "10:01:04 assistant:  -> python print(sum([3, 4])) (c1)",
    "10:01:05 tool: 7 (c1)",
    '10:01:06 assistant:  -> browser {"query": "herbs full sun"} (w1)',
    "10:01:07 tool: Sunny herbs\nhttps://herbs.example/sun\nThyme wants sun. (w1)",
    "10:01:10 assistant: Thyme, sage and rosemary.",
    "10:20:00.500 user: I already have rosemary.\n[file: plants.pdf]",
    "10:00:00 user: Water thyme how often?",
    "10:01:00 assistant: Once a week\ufffd \ufffd.",
]
CLAUDE = [
    "10:00:01.500 user: When do I repot the fig?",
    '10:01:00 assistant: Let me look. -> web_search {"query":"repot fig"} (toolu_1)',
    '10:01:00 tool: {"type":"knowledge","title":"Figs","url":"https://figs.example",'
    '"text":"Repot in spring."}\n\n[image: image/png] (toolu_1)',
    "10:01:00 assistant: In early spring.",
    "10:10:00 user: I bought a clay pot today.\n\n[file: plan.md]\n\n[file: fig.jpg]",
    "document plan.md: # Plan\n\nRepot the fig on Sunday.",
    "08:00:00 user: Does basil survive frost?",
    "08:00:05 assistant: No.",
    "document Garden: Speak as a gardener.",
    "document soil.txt: The soil is chalky.",
    "document What Claude remembered: The garden plan is weekly.",
    "document What Claude remembered: Ada grows a fig on her balcony.",
]
CLAUDE_CODE = [
    "11:00:01.250 user: Write the watering plan to plan.md.",
    '11:00:04 assistant: I write it. -> Write {"file_path":"plan.md","content":"Monday: figs"} '
    "(toolu_2)",
    "11:00:05 tool: The disk is full. (toolu_2) error",
    "11:00:06 user: Use the other disk, please.",
    "11:00:07 user: /water the fig twice",
    "11:05:00 user: [image: image/png]\n\nThis is the fig now.",
    "09:00:00 user: Is the plan done?",
]
CODEX = [
    "17:24:21.123 user: Rename the lavender bed.",
    "17:24:21.123 assistant: It is called the blue bed now.",
    "12:00:01.500 user: Count the pots.\n\n[image]",
    '12:00:03 assistant:  -> shell {"command":["ls","pots"]} (call_1)',
    '12:00:04 tool: {"output":"clay\\nzinc\\n","metadata":{"exit_code":0}} (call_1)',
    "12:00:05 assistant:  -> apply_patch *** Begin Patch\n*** End Patch (call_2)",
    "12:00:06 tool: Done (call_2)",
    "12:00:07 assistant: ",
    "12:05:00 assistant: There are two pots.",
]
LEFT_OUT = {
    "chatgpt": {"file": 2, "thoughts": 1, "branch": 2},
    "claude": {"file": 1, "thoughts": 1, "branch": 1, "example": 1},
    "claude_code": {"added": 3, "thoughts": 1, "summary": 1, "file": 1, "copy": 1, "subagent": 1},
    "codex": {"added": 2, "file": 1, "thoughts": 1, "summary": 1},
    "langchain_tables": {},
    "langgraph_store": {"over": 1},
}
SHAPES: dict[str, tuple[str, Callable[[Path, str], Any], list[str]]] = {
    "chatgpt": ("chatgpt", kept("chatgpt"), CHATGPT),
    "chatgpt in parts": ("chatgpt", chatgpt_split, CHATGPT),
    "claude": ("claude", kept("claude"), CLAUDE),
    "claude_code": ("claude_code", kept("claude_code"), CLAUDE_CODE),
    "codex": ("codex", kept("codex"), CODEX),
    "langchain in sqlite": ("langchain_tables", message_store, TROWEL),
    "langchain in postgres": ("langchain_tables", langchain_postgres, TROWEL),
    "langgraph in sqlite": ("langgraph_store", sqlite_store, TULIPS),
    "langgraph in postgres": ("langgraph_store", postgres_store, TULIPS),
}


class Export:
    """An export of one shape, where it lies."""

    def __init__(self, shape: str, home: Path, url: str) -> None:
        self.format, make, self.lines = SHAPES[shape]
        self.path = make(home, url)
        self.reader = next(one for one in FORMATS if one.name == self.format)

    def items(self) -> list[Item]:
        return list(self.reader.read(Source(self.path)))


@pytest.fixture(params=SHAPES)
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Export:
    url = request.getfixturevalue("postgres_with_tables") if "postgres" in request.param else ""
    return Export(request.param, tmp_path, url)


def shown(item: Item) -> str:
    """An item as a line, for comparison."""
    if isinstance(item, Document):
        return f"document {item.title}: {item.text}"
    if isinstance(item, Put):
        value = dict(sorted((item.value or {}).items()))
        return f"entry {'.'.join(item.namespace)}/{item.key}: {value}"
    assert isinstance(item, Turn)
    message = item.message
    calls = "".join(f" -> {it.name} {it.arguments} ({it.call_id})" for it in message.tool_calls)
    answered = f" ({message.tool_call_id})" if message.tool_call_id else ""
    error = " error" if (message.structured_data or {}).get("status") == "error" else ""
    at = f"{message.created_at.isoformat(timespec='milliseconds')[11:23]} ".replace(".000 ", " ")
    at = "" if item.agent == "langchain" else at
    return f"{at}{message.role}: {message.content or ''}{calls}{answered}{error}"


def test_it_is_recognised_as_itself_alone_and_read_whole(export: Export) -> None:
    source = Source(export.path)
    assert [one.name for one in FORMATS if one.recognises(source)] == [export.format]
    items = export.items()
    assert [shown(item) for item in items if not isinstance(item, Skipped)] == export.lines
    reasons = Counter(item.reason for item in items if isinstance(item, Skipped))
    assert reasons == {
        WORDS["reasons"][key]: count for key, count in LEFT_OUT[export.format].items()
    }


JUNK: list[Any] = [
    None,
    0,
    -1.5,
    True,
    "",
    "x\ud800\x00",
    [],
    [[]],
    {},
    {"type": []},
    float("nan"),
    1e99,
]


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (key,)
        if isinstance(item, dict | list):
            yield from ((key, *rest) for rest in places(item))


def spoilt(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """A copy with junk in one place."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    return changed


@pytest.mark.parametrize("name", ["chatgpt", "claude", "claude_code", "codex"])
def test_values_of_other_types_than_expected_are_left_out_and_break_nothing(
    name: str, tmp_path: Path
) -> None:
    [path, *_] = sorted(EXPORTS.joinpath(name).rglob("*0001.jsonl")) or [
        EXPORTS / name / "conversations.json"
    ]
    reader, by_line = next(one for one in FORMATS if one.name == name), path.suffix == ".jsonl"
    text = path.read_text()
    value = [json.loads(line) for line in text.splitlines()] if by_line else json.loads(text)
    junk = itertools.cycle(JUNK)
    for place in places(value):
        values = spoilt(value, place, next(junk))
        text = "\n".join(map(json.dumps, values)) + "\n" if by_line else json.dumps(values)
        tmp_path.joinpath(path.name).write_text(text)
        source = Source(tmp_path / path.name)
        reader.recognises(source)
        for item in reader.read(source):
            assert isinstance(item, Turn | Document | Skipped)


def stored(memory: Memory) -> list[Any]:
    """All that an import could have written."""
    scope = memory.scope(user="ada")
    sessions = memory.session_summaries(user="ada")
    chats = [(it.scope, it.title, memory.history(user="ada", session=it.id)) for it in sessions]
    entries = memory.entries.batch(scope, [Search(limit=None)])
    articles = [(it.uri, it.title, it.created_at) for it in memory.articles.list(scope)]
    return [sorted(chats, key=str), entries, articles]


def test_importing_twice_is_importing_once_with_all_dates(export: Export, memory: Memory) -> None:
    first = run_import(memory, Source(export.path), user="ada", one_user=True)
    kept = stored(memory)
    again = run_import(memory, Source(export.path), user="ada", one_user=True)
    assert (sum(first.added.values()), sum(again.added.values())) == (len(export.lines), 0)
    assert stored(memory) == kept
    items = export.items()
    turns = {(it.session, it.message.message_id): it for it in items if isinstance(it, Turn)}
    for scope, title, history in kept[0]:
        for message in history:
            turn = turns.pop((scope.session, message.message_id))
            assert turn.agent == scope.agent
            assert turn.title in (None, title)
            if not isinstance(turn.message.created_at, MadeAt):
                assert message.created_at == turn.message.created_at
    assert not turns
    puts = [item for item in items if isinstance(item, Put)]
    assert [entry.updated_at for entry in kept[1][0]] == [put.written_at for put in puts]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "postgres" not in shape])
def test_what_is_cut_off_is_refused_with_its_place_and_nothing_is_written(
    shape: str, tmp_path: Path, memory: Memory
) -> None:
    export = Export(shape, tmp_path, "")
    files = [path for path in [export.path, *export.path.rglob("*")] if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size * 6 // 10])
    before = stored(memory)
    with pytest.raises(RecordError) as refused:
        run_import(memory, Source(export.path), user="ada")
    assert any(word in str(refused.value) for word in ("cut off", "cannot be read"))
    assert stored(memory) == before


def test_the_people_of_an_organisation_keep_their_own_conversations(tmp_path: Path) -> None:
    export = Export("claude", tmp_path, "")
    people = export.path / "users.json"
    people.write_text(json.dumps([{"uuid": "ada-uuid"}, {"uuid": "bob-uuid"}]))
    conversations = export.path / "conversations.json"
    conversations.write_text(conversations.read_text().replace("ada-uuid", "bob-uuid", 1))
    items = export.items()
    users = [item.user for item in items if isinstance(item, Turn)]
    assert users == ["bob-uuid"] * 5 + ["ada-uuid"] * 2
    assert not any(isinstance(item, Document) for item in items)
    reasons = [item.reason for item in items if isinstance(item, Skipped)]
    assert reasons.count(WORDS["reasons"]["other_people"]) == 5


def test_conversations_below_a_key_in_a_file_of_any_name_are_read_too(tmp_path: Path) -> None:
    conversations = json.loads((EXPORTS / "chatgpt/conversations.json").read_text())
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"conversations": conversations}))
    [reader] = [one for one in FORMATS if one.recognises(Source(path))]
    read = [item for item in reader.read(Source(path)) if not isinstance(item, Skipped)]
    assert [shown(item) for item in read] == CHATGPT
