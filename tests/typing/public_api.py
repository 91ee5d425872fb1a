"""Every verb and namespace of the public class, used as documented: no error in either checker.

It is never run: `make lint` reads it with mypy and Pyright, both strict.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

import memorist
from memorist import (
    AsyncMemory,
    Chat,
    Context,
    Extraction,
    Fact,
    Forgotten,
    Job,
    Library,
    LogEntry,
    Memory,
    MemoryItem,
    Message,
    Note,
    Notebook,
    Recall,
    Remembered,
    Scope,
    Session,
    Summary,
    Window,
)
from memorist.records.activity import Counts, Events, TurnReceipt
from memorist.records.archive import RestoreReport
from memorist.records.log import SessionSummary
from memorist.records.memories import Entity, Neighbourhood

NOW = datetime.now(UTC)


def opened() -> None:
    with Memory() as memory:
        assert_type(memory, Memory)
    with Memory("agent.db", tenant="acme", embedder=None, extraction=Extraction()) as memory:
        assert_type(memory.tenant("other"), Memory)
    with memorist.connect("http://127.0.0.1:7077", key="mk_secret") as client:
        assert_type(client, Memory)
        verbs(client)


def verbs(memory: Memory) -> None:
    stored = memory.remember(Message("user", "Hi"), user="ada", agent="tutor", session="s")
    assert_type(stored, Remembered)
    found = memory.recall("where?", user="ada", limit=5, deadline_ms=50, kind="fact", after=NOW)
    assert_type(found, Recall)
    for hit in found.hits:
        assert_type(hit.text, str)
    window = memory.context("Plan my weekend", user="ada", max_tokens=4_000, system="Be kind.")
    assert_type(window, Context)
    assert_type(memory.search(memory.scope(user="ada"), "tea", limit=3), Recall)
    [summary, *_] = memory.session_summaries(user="ada", newest_first=True, limit=5)
    assert_type(summary, SessionSummary)
    assert_type(memory.agents(user="ada"), list[str])
    memory.rename_session("s", "Home", user="ada")
    assert_type(memory.forget(user="ada", session="s", dry_run=True), Forgotten)
    assert_type(memory.memories.list(user="ada", text="tea", state="over"), list[MemoryItem])
    assert_type(memory.memories.change("m", user="ada", tags=["home"]), str)
    assert_type(memory.memories.chain("m", user="ada"), list[MemoryItem])
    assert_type(memory.facts.chain("f", user="ada"), list[Fact])
    assert_type(memory.facts.entities(user="ada", text="ad"), list[Entity])
    assert_type(memory.facts.neighbourhood("ada", user="ada", as_of=NOW), Neighbourhood)
    memory.compress(user="ada", session="s", window=Window(max_tokens=1_000))
    assert_type(memory.summaries(user="ada", session="s"), list[Summary])
    assert_type(memory.history(user="ada", last=10, role="user"), list[Message])
    assert_type(memory.sessions(user="ada"), list[Session])
    assert_type(memory.active_session(user="ada", agent="tutor"), Session | None)
    assert_type(memory.forget(user="ada", message="m1", scrub=False), Forgotten)
    assert_type(memory.scope(user="ada", agent="tutor", session="s"), Scope)
    assert_type(memory.users(limit=10), list[Scope])
    assert_type(memory.counts(user="ada"), Counts)
    assert_type(memory.events(user="ada", after="1.2"), Events)
    assert_type(memory.receipts(user="ada", session="s"), list[TurnReceipt])
    memory.check()
    memory.backup(Path("copy.db"))
    assert_type(memory.export("ada", vectors=True), Iterator[bytes])
    assert_type(memory.restore([b""], user="ada"), RestoreReport)
    memory.warm_up()
    memory.scrub()


def conversation(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor", new=True)
    assert_type(chat, Chat)
    assert_type(chat.add("user", "Hi"), str)
    assert_type(chat.history(last=2), list[Message])
    assert_type(chat.recall("tea", limit=2), Recall)
    assert_type(chat.context("Plan", max_tokens=4_000), Context)
    with chat.stream("assistant", flush_s=0.1) as reply:
        reply.write("A walk")
    for text in chat.follow(reply.id, timeout_s=1):
        assert_type(text, str)


def namespaces(memory: Memory, scope: Scope) -> None:
    assert_type(memory.messages.get(scope, ["m1"]), list[LogEntry])
    assert_type(memory.messages.list(scope, last=5, before=9, role="user"), list[LogEntry])
    memory.messages.revise(scope, Message("user", "Hi", message_id="m1"))
    assert_type(memory.messages.revisions(scope, "m1"), list[Message])
    memory.messages.append_text(scope, Message("assistant", "A walk", message_id="m2"))

    fact = memory.facts.add("Ada", "works at", "Zeiss", user="ada", single=True, valid_from=NOW)
    assert_type(fact, str)
    assert_type(memory.facts.change(fact, user="ada", object="Bosch"), str)
    assert_type(memory.facts.get(fact, user="ada"), Fact)
    assert_type(memory.facts.list(user="ada", subject="Ada"), list[Fact])
    assert_type(memory.facts.as_of(user="ada", valid=NOW, known=NOW), list[Fact])
    assert_type(memory.facts.history("Ada", "works at", user="ada"), list[Fact])

    item = memory.memories.add("Ada reads Greek", user="ada", kind="concept", importance=0.9)
    assert_type(memory.memories.get(item, user="ada"), MemoryItem)
    assert_type(memory.memories.list(user="ada", current=False), list[MemoryItem])
    memory.memories.retract(item, user="ada", reason="wrong")
    memory.memories.undo(item, user="ada")
    memory.memories.maintain(user="ada", dry_run=True)
    memory.memories.audit(user="ada")

    assert_type(memory.jobs.waiting(), dict[str, int])
    for job in memory.jobs.list(user="ada", dead=True):
        assert_type(job, Job)
        memory.jobs.retry(job.id, user="ada")
    assert_type(memory.jobs.rebuild(user="ada"), int)
    assert_type(memory.jobs.catch_up(timeout_s=10), int)


def factories(memory: Memory) -> None:
    notes = memory.notes(user="ada", agent="tutor")
    assert_type(notes, Notebook)
    assert_type(notes.append("# Plans\n- sail"), Note)
    assert_type(memory.library("handbook"), Library)


async def asynchronous() -> None:
    async with AsyncMemory("agent.db") as memory:
        chat = await memory.session(user="ada", agent="tutor")
        assert_type(await chat.add("user", "Hi"), str)
        assert_type(await memory.recall("where?", user="ada", limit=5), Recall)
        assert_type(await memory.facts.list(user="ada"), list[Fact])
        assert_type(await memory.jobs.catch_up(), int)
        assert_type(await chat.context("Plan", max_tokens=4_000), Context)
