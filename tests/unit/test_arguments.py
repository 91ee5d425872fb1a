"""What is given to a public method by mistake: the error names the argument and quotes nothing."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memorist import Extraction, Memory, Message, Policy, Ranking, Retention, Window
from memorist.agents.toolbox import Toolbox
from memorist.arguments import NamesArguments
from memorist.client import Client
from memorist.errors import InvalidError, MemoristError, ScopeError, StoreUnavailableError
from memorist.records.documents import Article
from memorist.records.scope import Scope
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite.store import SqliteStore
from memorist.views.controller import LongTermMemory, ShortTermMemory

PARTS = ("messages", "facts", "memories", "jobs", "entries", "articles", "note_versions", "keys")
LONG = "zq" * 40_000
FIVE: Any = 5
TEXT: Any = "5"
NAIVE = datetime(2026, 1, 1)
WRONG = (object(), 5, b"x", ["a"], {"a": 1}, range(2), 1e400, 10**30, LONG, NAIVE, lambda: 1)
LEFT = {"close", "warm_up", "catch_up", "rebuild", "builder", "quotes"}  # not for users, or slow
ASKED = Scope(user="ada", agent="tutor", session="talk")
GIVEN: dict[str, Any] = {
    "article": Article(scope=Scope(user="ada"), title="Tea", text="Green"),
    "message": Message("user", "hi"),
    "scope": ASKED,
    "user": "ada",
    **dict.fromkeys(("batches", "items", "asks", "ids", "chunks", "paths"), ()),
    **dict.fromkeys(("after", "base_version", "start"), 0),
    **dict.fromkeys(("limit", "max_tokens", "top_k", "job_id"), 1),
    **dict.fromkeys(("counter", "key", "receipt", "deadline_ms"), None),
}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder=None, extraction=None) as opened:
        opened.session(user="ada", agent="tutor", id="talk").add("user", "I live in Rome.")
        yield opened


def methods(part: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, method in inspect.getmembers(part, inspect.ismethod):
        if not name.startswith("_") and name not in LEFT:
            yield name, method


def attack(part: object) -> Iterator[tuple[str, str, Exception]]:
    """The errors of all methods, each with one argument of another type."""
    for name, method in methods(part):
        parameters = inspect.signature(method).parameters.values()
        needed = [it.name for it in parameters if it.default is it.empty]
        given = {it: GIVEN.get(it, "x") for it in needed}
        for wrong in WRONG:
            for it in parameters:
                try:
                    result = method(**{**given, it.name: wrong})
                    if inspect.isgenerator(result):
                        next(result, None)
                except Exception as error:  # noqa: BLE001 - which it is, is asked
                    yield name, it.name, error


@pytest.mark.parametrize("part", ["memory", "chat", "notes", "library", *PARTS])
def test_an_argument_of_a_wrong_type_is_an_error_that_names_it(
    memory: Memory, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a backup may be made
    known: dict[str, object] = {
        "memory": memory,
        "chat": memory.session(user="ada", agent="tutor", id="talk"),
        "notes": memory.notes(user="ada"),
        "library": memory.library(user="ada"),
    }
    count = 0
    for name, argument, error in attack(known.get(part) or getattr(memory, part)):
        assert isinstance(error, MemoristError), (name, argument, error)
        assert "zqzq" not in str(error), (name, argument)
        count += 1
    assert count > 10


def test_a_part_of_a_memory_that_cannot_be_is_named() -> None:
    for name in ("store", "embedder", "extraction", "settings"):
        with pytest.raises(InvalidError, match=f"^{name} must be .*, got int$"):
            Memory(**{"store": ":memory:", name: 5})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "value", "must"),
    [
        (Policy, "share", "0.5", "be float, got str"),
        (Policy, "boosts", None, r"be Mapping\[str, float\], got NoneType"),
        (Policy, "boosts", {"preference": "0.3"}, r"be Mapping\[str, float\], got dict"),
        (Policy, "window", -5, "be a number, and not negative"),
        (Policy, "alike", math.nan, "be a number, and not negative"),
        (Retention, "max_age", 30, r"be timedelta \| None, got int"),
        (Retention, "min_importance", "high", r"be float \| None, got str"),
        (Extraction, "policy", {"share": 0.5}, "be Policy, got dict"),
        (Extraction, "retention", Retention(max_count=3), "be Sequence.*, got Retention"),
        (Extraction, "model", "openai:gpt-5-mini", r"be ChatModel \| None, got str"),
        (Ranking, "words", "1", "be float, got str"),
        (Ranking, "recency", math.nan, "be a number$"),
        (Window, "tokenizer", "gpt-5-mini", r"be .*Tokenizer \| None, got str"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(
    kind: Any, name: str, value: Any, must: str
) -> None:
    with pytest.raises(InvalidError, match=f"^{name} must {must}"):
        kind(**{name: value})


def test_a_ranking_and_a_window_that_are_none_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidError, match=r"^ranking must be a Ranking, got int"):
        Memory(":memory:", ranking=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match=r"^window must be a Window, got dict"):
        memory.context("hm", user="ada", window={"max_tokens": 5})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "must"),
    [
        (lambda _: Toolbox(FIVE), "memory must be Memory"),
        (lambda it: Toolbox(it, window=FIVE), "window must be Window"),
        (lambda _: LongTermMemory(FIVE, user="ada"), "memory must be a Memory"),
        (lambda it: ShortTermMemory(it, user="ada", policy=FIVE), "policy must be a Policy"),
        (lambda _: Client("http://a", timeout_s=TEXT), "timeout_s must be a number of seconds"),
        (lambda _: SqliteStore(FIVE), "path must be str"),
        (lambda _: PostgresStore(FIVE), "url must be str"),
    ],
)
def test_what_cannot_be_a_part_is_refused_by_its_name(
    memory: Memory, make: Callable[[Memory], object], must: str
) -> None:
    with pytest.raises(InvalidError, match=f"^{must}"):
        make(memory)


@pytest.mark.parametrize("flag", [None, "", "no", 0])
def test_nothing_is_forgotten_for_a_flag_that_is_none(memory: Memory, flag: Any) -> None:
    with pytest.raises(InvalidError, match="everything must be true or false"):
        memory.forget(user="ada", everything=flag)
    with pytest.raises(InvalidError, match="adopt must be true or false"):
        memory.session(user="ada", id="talk", adopt=flag)
    assert len(memory.history(user="ada")) == 1


@pytest.mark.parametrize("name", [None, 5, ["a"], "a\x00", "\ud800"])
def test_a_tenant_is_named_by_text(memory: Memory, name: Any) -> None:
    with pytest.raises(ScopeError, match=r"^tenant "):
        memory.tenant(name)  # None would be a tenant that all share who have none


@pytest.mark.parametrize("path", ["a\x00", "\ud800"])
def test_a_path_that_cannot_be_is_named(memory: Memory, path: str) -> None:
    with pytest.raises(InvalidError, match=r"^path holds a character"):
        memory.backup(path)
    with pytest.raises(InvalidError, match=r"^path holds a character"):
        Memory(path)


def test_other_errors_stay_as_they_are() -> None:
    class Part(NamesArguments):
        def fail(self, text: str, *, count: int = 0) -> None:
            raise KeyError(text)

    with pytest.raises(KeyError, match="x"):
        Part().fail("x")
    with pytest.raises(InvalidError, match="count must be int, got str"):
        Part().fail("x", count="many")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing"):
        Part().fail()  # type: ignore[call-arg]


@pytest.mark.parametrize("deadline_ms", [50.0, None])
def test_a_recall_whose_read_cannot_begin_ends(
    memory: Memory, deadline_ms: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(*_: object) -> Any:
        raise StoreUnavailableError("it is gone")

    monkeypatch.setattr(memory.store, "reading", reading)
    found = memory.recall("Where do I live?", user="ada", deadline_ms=deadline_ms)
    assert [hit.text for hit in found.hits] == ["I live in Rome."]
