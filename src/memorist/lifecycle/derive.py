"""From messages to changes: what the messages of some jobs say, and what that changes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memorist.language.people import NOBODY, People, names_someone
from memorist.language.pronouns import SAID_CHARS
from memorist.lifecycle import model
from memorist.lifecycle.neighbours import neighbours_of, similar_memories
from memorist.lifecycle.policy import classified, has_room, may_become_memory
from memorist.lifecycle.reconcile import duplicate_of, reconcile
from memorist.lifecycle.rules import extract
from memorist.lifecycle.settings import Extraction
from memorist.lifecycle.tools import is_lesson, lessons
from memorist.providers.reader import read
from memorist.records.log import Job, LogEntry, is_trusted
from memorist.records.memories import (
    Add,
    Candidate,
    Change,
    Expire,
    Fact,
    MemoryItem,
    Reinforce,
    Restore,
    Retract,
    Supersede,
    plain_text,
)
from memorist.records.message import ORDINARY, Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.store.runner import ForegroundGate

CONTEXT = 20  # messages before those of the jobs that are read too
SAID_BEFORE = 3  # messages of the user that tell whom "she" means
REVISED = "its message was revised"
MAX_MESSAGES = 50  # in one call of the model, and
MAX_CHARS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBatch:
    """The messages of some jobs of a session and those before them."""

    home: Scope  # of what is derived from them
    session: Scope
    entries: tuple[LogEntry, ...]
    wanted: frozenset[int]  # the places of the jobs' messages

    def before(self, seq: int, count: int) -> list[LogEntry]:
        """The last messages before a place."""
        return [entry for entry in self.entries if entry.seq < seq][-count:]

    def said_before(self, entry: LogEntry) -> list[str]:
        """What the user said last before a message of theirs."""
        if entry.message.role != "user":
            return []
        own = [one for one in self.before(entry.seq, CONTEXT) if one.message.role == "user"]
        return [one.message.text[-SAID_CHARS:] for one in own[-SAID_BEFORE:]]


def trust_group(source: str) -> str:
    """The same for sources whose messages may share a call of the model."""
    return "" if is_trusted(source) else source


class OverTimeError(Exception):
    """The work on a message took more processor time than it may."""


class TimeBudget:
    """How much processor time is left for the work at hand; checked between its steps."""

    def __init__(self, seconds: float, timer: Callable[[], float]) -> None:
        self._seconds = seconds
        self._timer = timer
        self.start()

    def start(self, messages: int = 1) -> None:
        """Begin with so many messages."""
        self._ends_at = self._timer() + self._seconds * messages

    def check(self) -> None:
        """Raise if the time is over."""
        if self._timer() > self._ends_at:
            raise OverTimeError(f"a message took more than {self._seconds:g} s of processor time")


def _as_said(entry: LogEntry) -> LogEntry:
    """What a model passed on as its user's words, read as such; its trust stays the model's."""
    data = entry.message.structured_data or {}
    if entry.source == entry.message.role == "assistant" and data.get("said_by") == "user":
        return entry._replace(message=replace(entry.message, role="user"))
    return entry


class Deriver:
    """Reads messages, extracts from them and decides what changes; it applies nothing."""

    def __init__(
        self,
        store: Store,
        extraction: Extraction,
        clock: Callable[[], datetime],
        gate: ForegroundGate | None = None,
        timer: Callable[[], float] = time.thread_time,
    ) -> None:
        self._budget = TimeBudget(extraction.seconds_per_message, timer)
        self._store = store
        self._extraction = extraction
        self._clock = clock
        self._gate = gate or ForegroundGate()

    def read(self, jobs: Sequence[Job]) -> SessionBatch:
        """The messages that the jobs of one session are about."""
        scope, policy = jobs[0].scope, self._extraction.policy
        context = max(CONTEXT, policy.window, policy.min_messages)
        entries: dict[int, LogEntry] = {}
        for job in jobs:
            count = job.last_seq - job.first_seq + 1 + context
            read = max(entries, default=None)
            history = self._store.history(scope, last=count, before=job.last_seq + 1, after=read)
            entries |= {entry.seq: entry for entry in history}
        wanted = {seq for job in jobs for seq in entries if job.first_seq <= seq <= job.last_seq}
        agent = "" if policy.shared else scope.agent
        return SessionBatch(
            home=Scope(user=scope.user, tenant=scope.tenant, agent=agent),
            session=scope,
            entries=tuple(entries[seq] for seq in sorted(entries)),
            wanted=frozenset(wanted),
        )

    def apart(self, jobs: Sequence[Job], batch: SessionBatch) -> list[list[Job]]:
        """The jobs that may share a call: of the same trust, and not too much to read at once."""
        parts: dict[str, list[list[Job]]] = {}
        room: dict[str, tuple[int, int]] = {}
        for job in jobs:
            entries = [one for one in batch.entries if job.first_seq <= one.seq <= job.last_seq]
            group = trust_group(entries[0].source) if entries else ""
            count, chars = len(entries), sum(len(entry.message.text) for entry in entries)
            messages_left, chars_left = room.get(group, (0, 0))
            if group not in parts or count > messages_left or chars > chars_left:
                parts.setdefault(group, []).append([])
                messages_left, chars_left = MAX_MESSAGES, MAX_CHARS
            parts[group][-1].append(job)
            room[group] = messages_left - count, chars_left - chars
        return [part for each in parts.values() for part in each]

    def candidates(self, batch: SessionBatch) -> list[Candidate]:
        """What the messages say that may be worth keeping, and what their tools teach."""
        policy = self._extraction.policy
        entries = [
            _as_said(entry)
            for place, entry in enumerate(batch.entries, start=1)
            if entry.seq in batch.wanted
            and entry.message.role in ("user", "assistant")
            and may_become_memory(entry.message, place=place, policy=policy)
        ]
        find = self._by_model if self._extraction.model else self._by_rules
        messages = {entry.message.message_id: entry.message for entry in batch.entries}
        found = [
            self._weighed(candidate, [messages[id_] for id_ in candidate.sources])
            for candidate in find(entries, batch)
        ]
        found += lessons(batch.entries, batch.wanted)
        seqs = {entry.message.message_id: entry.seq for entry in batch.entries}
        return sorted(found, key=lambda one: (seqs[one.sources[-1]], -(one.importance or 0)))

    def _weighed(self, candidate: Candidate, said: Sequence[Message]) -> Candidate:
        """The candidate with its category, and as important as it and its messages are."""
        has_tools = any(message.tool_calls for message in said)
        candidate = classified(candidate, has_tools=has_tools, policy=self._extraction.policy)
        score = max(message.importance for message in said) + (candidate.importance or 0.0)
        return replace(candidate, importance=min(max(round(score - ORDINARY, 2), 0.0), 1.0))

    def _by_rules(self, entries: Sequence[LogEntry], batch: SessionBatch) -> Iterator[Candidate]:
        """What rules and the reader find, message by message; who is named is known from then."""
        people = People.of(self._store.naming(batch.home)) if entries else NOBODY
        known = dict(people.known)
        for entry in entries:
            self._gate.wait()
            self._budget.start()
            said = batch.said_before(entry)
            found = extract(entry.message, entry.source, self._budget.check, said, read, known)
            claims = [claim for candidate in found for claim in candidate.claims]
            naming = [it for it in claims if names_someone(it.predicate) and it.subject == "user"]
            known |= {plain_text(it.object): it.predicate for it in naming}
            self._budget.check()
            yield from found

    def _by_model(self, entries: Sequence[LogEntry], batch: SessionBatch) -> Iterator[Candidate]:
        """One call for the conversation's own messages, and one for each untrusted source."""
        extraction, groups = self._extraction, defaultdict[str, list[LogEntry]](list)
        assert extraction.model is not None
        budgeted = model.BudgetedModel(extraction.model, self._store, extraction, "memories")
        for entry in entries:
            groups[trust_group(entry.source)].append(entry)
        for group, asked in groups.items():
            text = " ".join(entry.message.text for entry in asked)
            similar = similar_memories(self._store, batch.home, text, self._clock())
            yield from model.ask(
                budgeted,
                asked,
                known=[item.text for item in similar if trust_group(item.source) == group],
                max_tokens=extraction.max_tokens,
                timeout_s=extraction.timeout_s,
            )

    def _has_room(self, batch: SessionBatch, seq: int, changes: Sequence[Change]) -> bool:
        """Whether the policy's share allows another memory of a message, after some changes."""
        policy = self._extraction.policy
        ids = {one.message.message_id for one in batch.before(seq + 1, policy.window)}
        made = set(self._store.derived(batch.home, sorted(ids)))
        for one in (change.record if isinstance(change, Add) else change for change in changes):
            # A fact that is said again gets a confidence, a memory does not.
            if isinstance(one, MemoryItem) or (isinstance(one, Reinforce) and not one.importance):
                made.update(() if ids.isdisjoint(one.sources) else (one.id,))
        return has_room(len(made), policy)

    def changes(self, batch: SessionBatch, candidates: Sequence[Candidate]) -> list[Change]:
        """What the candidates change, each decided with regard to those before it."""
        scope = batch.home.within(session=batch.session.session)
        seqs = {entry.message.message_id: entry.seq for entry in batch.entries}
        ids = [one.message.message_id for one in batch.entries if one.seq in batch.wanted]
        derived = self._store.derived(batch.home, ids, facts=True)
        revised = {id_ for id_ in ids if derived and self._is_revised(batch.session, id_)}
        taken_back = self._taken_back(batch.home, revised, derived) if revised else {}
        ended = self._ended_by_hand(batch.home, derived)
        changes = [change for of in taken_back.values() for change in of]
        self._budget.start(max(len(batch.wanted), 1))
        for candidate in candidates:
            self._gate.wait()
            self._budget.check()
            told = [item for item in ended if not {*item.sources}.isdisjoint(candidate.sources)]
            if duplicate_of(candidate, told, self._extraction.policy):
                continue
            last = seqs[candidate.sources[-1]]
            says = bool(candidate.claims) or candidate.only_corrects
            is_own = says and candidate.source in ("user", "import")
            if not (is_own or is_lesson(candidate) or self._has_room(batch, last, changes)):
                continue
            first = min((seqs[id_] for id_ in candidate.sources if id_ in seqs), default=0)
            earlier = [one for one in batch.before(first, CONTEXT) if is_trusted(one.source)]
            texts = [entry.message.text for entry in earlier]
            before = [entry.message.message_id for entry in earlier]
            neighbours = neighbours_of(self._store, batch.home, candidate, texts, changes, before)
            now, policy = self._clock(), self._extraction.policy
            new = reconcile(candidate, neighbours, scope=scope, now=now, policy=policy)
            changes += self._undecided(batch.home, new)
        return self._keep_restated(batch.home, changes, taken_back) if revised else changes

    def _undecided(self, home: Scope, changes: Sequence[Change]) -> list[Change]:
        """The changes, without those that add what a person has added, ended or forgotten."""
        added = {id(one): one.record.id for one in changes if isinstance(one, Add | Supersede)}
        kept = self._store.kept_by_hand(home, list(added.values())) if added else set()
        return [change for change in changes if added.get(id(change)) not in kept]

    def _ended_by_hand(self, home: Scope, derived: Sequence[str]) -> list[MemoryItem]:
        """The memories that a person has ended: their messages do not bring them back."""
        kept = self._store.kept_by_hand(home, derived) if derived else set()
        records = self._store.records(home, sorted(kept)) if kept else []
        return [one for one in records if isinstance(one, MemoryItem) and _is_over(one)]

    def _is_revised(self, session: Scope, id_: str) -> bool:
        """Whether a message said something else before, and no copy in another session says it."""
        before = {message.text for message in self._store.revisions(session, id_)}
        copies = self._store.find(session.whole_user(), [id_]) if before else ()
        others = (copy.message.text for copy in copies if copy.session_id != session.session)
        return bool(before) and before.isdisjoint(others)

    def _taken_back(
        self, home: Scope, revised: set[str], derived: Sequence[str]
    ) -> dict[str, list[Change]]:
        """The changes by which each record of nothing but revised messages is taken back.

        What it took the place of holds again, until what came after it.
        """
        kept = self._store.kept_by_hand(home, derived)
        wrong = {
            record.id: record
            for record in self._store.records(home, derived)
            if record.id not in kept
            and not _is_over(record)
            and record.sources
            and revised.issuperset(record.sources)
        }
        now, changes = self._clock(), dict[str, list[Change]]()
        for record in wrong.values():
            undoing: list[Change] = [Retract(id=record.id, reason=REVISED, at=now, alone=True)]
            last: MemoryItem | Fact = record
            while last.superseded_by in wrong:
                last = wrong[last.superseded_by]
            until = last.valid_to if isinstance(last, Fact) and last.superseded_by else None
            for old in self._store.superseded_by(home, record.id):
                if old.id in wrong:
                    continue
                undoing.append(Restore(id=old.id, reason=REVISED))
                if until:
                    by, why = last.superseded_by, old.reason or ""
                    undoing.append(Expire(id=old.id, at=until, by=by, reason=why))
            changes[record.id] = undoing
        return changes

    def _keep_restated(
        self, home: Scope, changes: Sequence[Change], taken_back: Mapping[str, Sequence[Change]]
    ) -> list[Change]:
        """The changes, where a record that was there before the revision stays or is restored."""
        added = [change.record.id for change in changes if isinstance(change, Add | Supersede)]
        known = {record.id: record for record in self._store.records(home, added)}
        idle = {id(change) for id_ in known for change in taken_back.get(id_, ())}
        kept = [
            change
            for change in changes
            if id(change) not in idle
            and not (isinstance(change, Add) and change.record.id in known)
        ]
        over = [it for it in known.values() if _is_over(it) and it.reason == REVISED]
        return kept + [Restore(id=record.id, reason="it was said again") for record in over]


def _is_over(record: MemoryItem | Fact) -> bool:
    return (record.known_to if isinstance(record, Fact) else record.ended_at) is not None
