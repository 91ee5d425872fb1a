"""From messages to changes: what a job's messages say, and what that does to what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from memorist import metrics
from memorist.errors import BadAnswerError, ProviderError
from memorist.lifecycle import model
from memorist.lifecycle.candidate import Candidate
from memorist.lifecycle.keep import completed, known_of, near
from memorist.lifecycle.pending_changes import Draft
from memorist.lifecycle.policy import has_room, judged, refusal
from memorist.lifecycle.reconcile import Known, reconcile
from memorist.lifecycle.revised import said_again, unsaid
from memorist.lifecycle.rules import extract
from memorist.lifecycle.settings import Extraction
from memorist.lifecycle.tools import lessons
from memorist.records.change import Change
from memorist.records.log import Job, LogEntry, is_trusted
from memorist.records.scope import Scope
from memorist.store.background import Courtesy
from memorist.store.base import Store

CONTEXT = 20  # messages before those at hand that are looked at too
MOST_MESSAGES = 50  # asked about in one call, and
MOST_CHARS = 40_000


class OverBudgetError(Exception):
    """What a model may cost in an hour is spent; the rest has to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The messages of some jobs, those before them, and where what they say belongs."""

    home: Scope
    session: Scope
    entries: tuple[LogEntry, ...]
    wanted: frozenset[int]

    def before(self, seq: int, count: int) -> list[LogEntry]:
        """The messages just before a place."""
        return [entry for entry in self.entries if entry.seq < seq][-count:]


def whose(source: str) -> str:
    """Whose words a source's are: the conversation's own, or one of the others'."""
    return "" if is_trusted(source) else source


class _Part:
    """Jobs for one call."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._messages = self._chars = 0

    def takes(self, messages: int, chars: int) -> bool:
        return self._messages + messages <= MOST_MESSAGES and self._chars + chars <= MOST_CHARS

    def add(self, job: Job, messages: int, chars: int) -> None:
        self.jobs.append(job)
        self._messages += messages
        self._chars += chars


class Deriver:
    """Reads, asks and decides; changes nothing."""

    def __init__(
        self,
        store: Store,
        extraction: Extraction,
        clock: Callable[[], datetime],
        courtesy: Courtesy | None = None,
    ) -> None:
        self._store = store
        self._extraction = extraction
        self._clock = clock
        self._courtesy = courtesy or Courtesy()

    def read(self, jobs: Sequence[Job]) -> Material:
        """The messages that the jobs of one session are about."""
        scope, policy = jobs[0].scope, self._extraction.policy
        context = max(CONTEXT, policy.window, policy.min_messages)
        found: dict[int, LogEntry] = {}
        for job in jobs:
            count = job.last_seq - job.first_seq + 1 + context
            entries = self._store.history(scope, last=count, before=job.last_seq + 1)
            found |= {entry.seq: entry for entry in entries}
        wanted = {seq for job in jobs for seq in found if job.first_seq <= seq <= job.last_seq}
        agent = "" if policy.shared else scope.agent
        return Material(
            home=Scope(user=scope.user, tenant=scope.tenant, agent=agent),
            session=scope,
            entries=tuple(found[seq] for seq in sorted(found)),
            wanted=frozenset(wanted),
        )

    def apart(self, jobs: Sequence[Job], material: Material) -> list[list[Job]]:
        """The jobs that may share a call: of the same trust, and not too much to read at once."""
        parts: dict[str, list[_Part]] = {}
        for job in jobs:
            entries = [one for one in material.entries if job.first_seq <= one.seq <= job.last_seq]
            count, chars = len(entries), sum(len(entry.message.text) for entry in entries)
            theirs = parts.setdefault(whose(entries[0].source) if entries else "", [])
            if not theirs or not theirs[-1].takes(count, chars):
                theirs.append(_Part())
            theirs[-1].add(job, count, chars)
        return [part.jobs for theirs in parts.values() for part in theirs]

    def candidates(self, material: Material) -> list[Candidate]:
        """What the messages say that may be worth keeping, and what their tools teach."""
        worth = [entry for entry in material.entries if self._is_worth(entry, material)]
        said = self._by_model(worth, material) if self._extraction.model else self._by_rules(worth)
        weighed = [self._judge(one, material) for one in said]
        taught = lessons(material.entries, material.wanted)
        return [*self._few(weighed, material), *taught]

    def _judge(self, candidate: Candidate, material: Material) -> Candidate:
        said = (it.message for it in material.entries if it.message.message_id in candidate.sources)
        has_tools = any(message.tool_calls for message in said)
        return judged(candidate, has_tools=has_tools, policy=self._extraction.policy)

    def changes(self, material: Material, candidates: Sequence[Candidate]) -> list[Change]:
        """What the candidates change, each in the light of those before it."""
        draft, policy = Draft(), self._extraction.policy
        place = material.home.within(session=material.session.session)
        ids = [one.message.message_id for one in material.entries if one.seq in material.wanted]
        store, home = self._store, material.home
        old = unsaid(store, home, material.session, ids, self._clock())
        draft.add(old)
        for candidate in candidates:
            self._courtesy.wait()
            candidate = completed(self._store, material.home, candidate)
            known = draft.over(self._known(material, candidate))
            draft.add(reconcile(candidate, known, scope=place, now=self._clock(), policy=policy))
        return said_again(store, home, draft.changes) if old else draft.changes

    def _is_worth(self, entry: LogEntry, material: Material) -> bool:
        if entry.seq not in material.wanted or entry.message.role not in ("user", "assistant"):
            return False
        place = sum(other.seq <= entry.seq for other in material.entries)
        return refusal(entry.message, place=place, policy=self._extraction.policy) is None

    def _by_rules(self, entries: Sequence[LogEntry]) -> list[Candidate]:
        found: list[Candidate] = []
        for entry in entries:
            self._courtesy.wait()
            found += extract(entry.message, entry.source)
        return found

    def _few(self, said: Sequence[Candidate], material: Material) -> Iterator[Candidate]:
        """As many as the share allows; of what one message says, the weightiest."""
        policy = self._extraction.policy
        places = {entry.message.message_id: entry.seq for entry in material.entries}
        made: dict[str, int] = {}
        for one in sorted(said, key=lambda one: (places[one.sources[-1]], -(one.importance or 0))):
            recent = material.before(places[one.sources[-1]] + 1, policy.window)
            ids = [entry.message.message_id for entry in recent]
            count = len(self._store.derived(material.home, ids)) + sum(made.get(i, 0) for i in ids)
            if has_room(count, policy):
                made[one.sources[-1]] = made.get(one.sources[-1], 0) + 1
                yield one

    def _by_model(self, entries: Sequence[LogEntry], material: Material) -> list[Candidate]:
        """One call for what the user and the assistant said; others are not put beside them."""
        groups: dict[str, list[LogEntry]] = {}
        for entry in entries:
            groups.setdefault(whose(entry.source), []).append(entry)
        return [one for group in groups.values() for one in self._ask(group, material)]

    def _ask(self, entries: Sequence[LogEntry], material: Material) -> Sequence[Candidate]:
        extraction, store = self._extraction, self._store
        if extraction.model is None or not entries:
            return ()
        text = " ".join(entry.message.text for entry in entries)
        beside = near(store, material.home, text)
        known = [item.text for item in beside if whose(item.source) == whose(entries[0].source)]
        expected = model.estimate_tokens(entries, known) + extraction.max_tokens
        limits = {"max_calls": extraction.calls_per_hour, "max_tokens": extraction.tokens_per_hour}
        if not store.spend(calls=1, tokens=expected, **limits):
            raise OverBudgetError("the model's budget for this hour is spent")
        used, result = expected, "failed"  # where nobody tells what a call cost, it may be that
        try:
            found = model.ask(
                extraction.model,
                entries,
                known=known,
                max_tokens=extraction.max_tokens,
                timeout_s=extraction.timeout_s,
            )
            used, result = found.input_tokens + found.output_tokens, "answered"
        except BadAnswerError as error:
            used, result = error.tokens or expected, "unusable"
            raise
        except ProviderError as error:
            used = 0 if error.status else expected
            raise
        finally:
            metrics.count("memorist.model.calls", task="memories", result=result)
            metrics.count("memorist.model.tokens", used, task="memories")
            store.spend(calls=0, tokens=used - expected)
        return found.candidates

    def _known(self, material: Material, candidate: Candidate) -> Known:
        seqs = {entry.message.message_id: entry.seq for entry in material.entries}
        first = min((seqs[id_] for id_ in candidate.sources if id_ in seqs), default=0)
        earlier = material.before(first, CONTEXT)
        said = [entry.message.text for entry in earlier if is_trusted(entry.source)]
        return known_of(self._store, material.home, candidate, said)
