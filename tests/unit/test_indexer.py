"""The indexer: everything stored gets its vector, once, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorist import Memory, Message, ProviderError
from memorist.recall import indexer as indexer_module
from memorist.recall.indexer import PASSAGES, Indexer
from memorist.records.log import MAX_ATTEMPTS
from memorist.records.memories import Add, Expire, Fact, MemoryItem
from memorist.records.scope import Scope
from memorist.store import runner
from memorist.store.runner import ForegroundGate
from memorist.store.sqlite.store import SqliteStore
from tests.support.models import HungEmbedder, Vectors, WordEmbedder
from tests.support.waiting import until

ADA = Scope(user="ada", session="talk")
USER = ADA.whole_user()


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def skip(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "memory.db", durability="normal", clock=clock) as opened:
        yield opened


def begin(store: SqliteStore, embedder: WordEmbedder) -> None:
    """Make the user one whom the embedder knows: then there are no jobs for their past."""
    store.open_session(ADA)
    store.prepare(USER, embedder.name)


def say(store: SqliteStore, *texts: str, scope: Scope = ADA) -> None:
    """Store each text by itself, so that each has its own job."""
    for text in texts:
        store.append(scope, [Message("user", text)])


def run(store: SqliteStore, embedder: WordEmbedder) -> None:
    """Do what there is to do now."""
    indexer = Indexer(store, embedder)
    while indexer.step():
        pass


def left(store: SqliteStore, embedder: WordEmbedder, scope: Scope = USER) -> int:
    return len(store.unembedded(scope, embedder.name, limit=10_000))


def meant(store: SqliteStore, embedder: WordEmbedder, question: str, limit: int = 1) -> list[str]:
    """What is found by meaning alone."""
    vector = embedder.embed_query(question)[0].tolist()
    found = store.match_vector(USER, embedder.name, vector, limit=limit)
    return [match.text for match in store.read(USER, [it.passage for it in found])]


def fill_views(store: SqliteStore) -> None:
    store.apply(
        USER,
        [
            Add(MemoryItem(scope=USER, text="prefers oolong tea")),
            Add(Fact(scope=USER, subject="Ada", predicate="lives in", object="Berlin")),
        ],
    )
    store.write_note(USER, "a note on violins", base_version=0)


def test_all_that_is_stored_is_found_by_its_meaning(store: SqliteStore) -> None:
    embedder = WordEmbedder()
    with Memory(store, embedder=embedder) as memory:
        for number in range(100):
            memory.remember(f"message {number} about subject{number}", user="ada")
        assert memory.jobs.catch_up(300) == 0
        assert left(store, embedder) == 0
        hit = memory.recall("subject42", user="ada", deadline_ms=None).hits[0]
        assert hit.why.ranks["meaning"] == 1
        assert len(embedder.seen) == len(set(embedder.seen)) == 100
        assert embedder.batches < 100


class LocalEmbedder(WordEmbedder):
    """A model on this machine, which can be loaded ahead; it notes the threads that use it."""

    def __init__(self, refused: str | None = None) -> None:
        super().__init__("local", refused=refused)
        self.meeting = threading.Barrier(2)
        self.met = False

    def load(self) -> None:
        pass

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not self.met and texts != ["."]:
            with contextlib.suppress(threading.BrokenBarrierError):
                self.meeting.wait(timeout=10)  # until another thread is here, too
                self.met = True
        return super().embed(texts)


def test_a_local_model_embeds_texts_one_by_one_side_by_side(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer_module, "LANES", 2)
    embedder, texts = LocalEmbedder(), [f"The bus {number} is late." for number in range(10)]
    begin(store, embedder)
    say(store, *texts)
    run(store, embedder)
    assert embedder.met
    assert sorted(embedder.seen) == sorted(texts)
    assert embedder.batches == len(texts)
    assert left(store, embedder) == 0
    assert meant(store, embedder, "The bus 7 is late.") == ["The bus 7 is late."]


def test_a_text_that_one_lane_refuses_leaves_the_others_their_vectors(
    store: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer_module, "LANES", 2)
    embedder = LocalEmbedder(refused="cursed")
    begin(store, embedder)
    say(store, *(f"The bus {number} is late." for number in range(5)), "A cursed text.")
    run(store, embedder)
    assert left(store, embedder) == 1
    assert store.backlog(("embed",)) == 1


def test_while_requests_are_answered_one_lane_works_and_stands_back() -> None:
    gate = ForegroundGate()
    assert gate.is_quiet()
    with gate:
        assert not gate.is_quiet()
    assert not gate.is_quiet(), "one was answered just now"


def test_work_that_somebody_waits_for_does_not_wait_for_requests_or_more_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GATHER_SECONDS", "LONGEST_GATHER"):
        monkeypatch.setattr(runner, name, 3_600.0)
    gate = ForegroundGate()
    with gate, ThreadPoolExecutor(1) as thread:
        settling = thread.submit(gate.settle)
        with gate.hurry():
            settling.result(60)
            gate.settle()


def test_memories_facts_and_notes_get_vectors_too(store: SqliteStore) -> None:
    embedder = WordEmbedder()
    fill_views(store)
    run(store, embedder)
    assert left(store, embedder) == 0
    assert meant(store, embedder, "oolong") == ["prefers oolong tea"]
    assert meant(store, embedder, "lives in") == ["Ada lives in Berlin"]
    assert meant(store, embedder, "violins") == ["a note on violins"]


def test_a_messages_job_is_thought_about_next_and_a_views_job_is_done(store: SqliteStore) -> None:
    say(store, "one", "two")
    fill_views(store)
    assert Counter(job.kind for job in store.jobs(USER)) == {"embed": 2, "vectors": 3}
    run(store, WordEmbedder())
    jobs = store.jobs(USER)
    assert [job.kind for job in jobs] == ["derive", "derive"]
    assert all((job.attempts, job.lease, job.error) == (0, None, None) for job in jobs)
    assert store.backlog(("embed", "vectors")) == 0


def test_a_new_embedder_embeds_all_of_the_past_once(store: SqliteStore) -> None:
    old, new = WordEmbedder("old", 16), WordEmbedder("new", 32)
    for number in range(150):
        say(store, f"message {number}", scope=USER.within(session=f"talk {number % 3}"))
    fill_views(store)
    run(store, old)
    assert (left(store, old), left(store, new)) == (0, 153)
    run(store, new)
    assert left(store, new) == 0
    assert len(new.seen) == len(set(new.seen)) == 153
    assert meant(store, new, "oolong") == meant(store, old, "oolong") == ["prefers oolong tea"]
    before = len(new.seen)
    run(store, new)
    assert len(new.seen) == before
    assert len(store.match_vector(USER, "old", [1.0] * 16, limit=999)) == 153
    assert len(store.match_vector(USER, "new", [1.0] * 32, limit=999)) == 153


def test_while_a_new_embedder_is_at_work_recall_goes_on_by_words(store: SqliteStore) -> None:
    say(store, "the treasure lies under the oak", "good night")
    run(store, WordEmbedder("old", 16))
    hung = HungEmbedder(questions=False)
    with Memory(store, embedder=hung) as memory:
        memory._runtime.indexer.wake()  # type: ignore[union-attr]
        found = memory.recall("treasure", user="ada", deadline_ms=None)
        assert found.hits[0].text == "the treasure lies under the oak"
        assert found.hits[0].why.ranks.keys() == {"words", "recency"}
        assert (found.late, found.failed) == ((), {})
        hung.let_go.set()
        assert memory.jobs.catch_up(300) == 0
        found = memory.recall("treasure", user="ada", deadline_ms=None)
        assert found.hits[0].why.ranks["meaning"] == 1


def test_two_embedders_on_one_store_never_mix(store: SqliteStore) -> None:
    small, large = WordEmbedder("small", 8), WordEmbedder("large", 96)
    for round_ in range(3):
        say(store, f"round {round_}")
        for embedder in (small, large):
            texts = store.unembedded(USER, embedder.name, limit=99)
            vectors = embedder.embed(list(texts.values()))
            store.put_vectors(USER, embedder.name, dict(zip(texts, vectors, strict=True)))
    for embedder in (small, large):
        assert meant(store, embedder, "round 1") == ["round 1"]
        assert left(store, embedder) == 0


def test_an_embedder_that_comes_back_gets_what_came_meanwhile(store: SqliteStore) -> None:
    first, second = WordEmbedder("first"), WordEmbedder("second")
    say(store, "one")
    run(store, first)
    say(store, "two")
    run(store, second)
    run(store, first)
    assert left(store, first) == 0


def test_an_expired_memory_does_not_keep_others_from_their_vectors(
    store: SqliteStore, clock: Clock
) -> None:
    soon = clock.now + timedelta(seconds=5)
    items = [MemoryItem(scope=USER, text=f"item {number}") for number in range(2 * PASSAGES)]
    brief = MemoryItem(scope=USER, text="brief", expires_at=soon)
    store.apply(USER, [*map(Add, items[:100]), Add(brief), *map(Add, items[100:])])
    run(store, WordEmbedder("old"))
    clock.skip(10)
    new = WordEmbedder("new")
    run(store, new)
    assert left(store, new) == 0


class Stopping(WordEmbedder):
    """Stops the indexer after some batches, as a deploy would."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.indexer: Indexer | None = None
        self._after = after

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.batches == self._after and self.indexer is not None:
            self.indexer.stop()
        return super().embed(texts)


def test_an_indexer_stopped_half_way_is_continued_and_nothing_is_embedded_twice(
    store: SqliteStore, clock: Clock
) -> None:
    store.append(ADA, [Message("user", f"message {number}") for number in range(500)])
    embedder = Stopping(after=2)
    embedder.indexer = Indexer(store, embedder)
    embedder.indexer.run()
    assert embedder.batches == 3
    assert left(store, embedder) == 500 - len(embedder.seen) > 0
    clock.skip(Indexer.lease_seconds + 1)
    run(store, embedder)
    assert left(store, embedder) == 0
    assert Counter(embedder.seen).most_common(1)[0][1] == 1
    assert len(embedder.seen) == 500
    assert {job.kind for job in store.jobs(USER)} == {"derive later"}


def test_a_worker_that_died_loses_its_lease_and_another_goes_on(
    store: SqliteStore, clock: Clock
) -> None:
    embedder = WordEmbedder()
    begin(store, embedder)
    say(store, "one")
    [lost] = store.claim(lease_seconds=120)
    run(store, embedder)
    assert left(store, embedder) == 1
    clock.skip(121)
    run(store, embedder)
    assert left(store, embedder) == 0
    assert store.jobs(USER)[0].id == lost.id


def test_a_text_that_is_refused_dies_visibly_and_the_others_get_their_vectors(
    store: SqliteStore, clock: Clock
) -> None:
    embedder = WordEmbedder(refused="poison")
    begin(store, embedder)
    say(store, *(f"fine {number}" for number in range(5)), "poison", "fine too")
    run(store, embedder)
    assert list(store.unembedded(USER, embedder.name, limit=9).values()) == ["poison"]
    for _ in range(MAX_ATTEMPTS - 1):
        assert store.jobs(USER, dead=True) == []
        clock.skip(100)
        run(store, embedder)
    [dead] = store.jobs(USER, dead=True)
    assert (dead.kind, dead.attempts, dead.error) == ("embed", 5, "the model refuses a text")
    assert store.backlog(("embed", "vectors")) == 0
    embedder.refused = None
    store.retry(USER, dead.id)
    run(store, embedder)
    assert left(store, embedder) == 0


def test_a_refused_text_does_not_keep_those_of_its_own_job_from_their_vectors(
    store: SqliteStore, clock: Clock
) -> None:
    texts = [f"fine {number}" for number in range(150)]
    texts[70] = "poison"
    store.append(ADA, [Message("user", text) for text in texts])
    run(store, WordEmbedder("old"))
    embedder = WordEmbedder("new", refused="poison")
    for _ in range(MAX_ATTEMPTS):
        run(store, embedder)
        clock.skip(100)
    assert list(store.unembedded(USER, "new", limit=999).values()) == ["poison"]
    assert len(store.jobs(USER, dead=True)) == 1


def test_a_model_that_is_away_is_not_asked_for_every_text(store: SqliteStore) -> None:
    class Away(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            self.batches += 1
            raise ProviderError("the model is away")

    embedder = Away()
    begin(store, embedder)
    store.append(ADA, [Message("user", f"message {number}") for number in range(150)])
    for _ in range(2 * MAX_ATTEMPTS):
        with pytest.raises(ProviderError, match="the model is away"):
            run(store, embedder)
    assert embedder.batches == 4 * MAX_ATTEMPTS  # the texts, and whether it is about them
    left = {(job.attempts, job.lease, job.dead) for job in store.jobs(USER)}
    assert left == {(0, None, False)}


@pytest.mark.parametrize(
    "answer", [KeyError("the secret"), None, [], [1.0], [[float("nan")] * 2] * 2]
)
def test_an_embedder_that_breaks_its_contract_is_as_one_that_is_away(
    store: SqliteStore, answer: Any
) -> None:
    class Odd(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    begin(store, Odd())
    store.append(ADA, [Message("user", "one"), Message("user", "two")])
    with pytest.raises(ProviderError, match="the embedder") as raised:
        run(store, Odd())
    assert "secret" not in str(raised.value)
    [job] = store.jobs(USER)
    assert (job.attempts, job.lease) == (0, None)


def test_the_background_thread_outlives_an_error_of_the_embedder(store: SqliteStore) -> None:
    class Shaky(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if not self.batches:
                self.batches = 1
                raise RuntimeError("once")
            return super().embed(texts)

    embedder = Shaky()
    with Memory(store, embedder=embedder) as memory:
        memory.remember("first", user="ada")
        while not embedder.batches:
            memory.jobs.catch_up(0.05)
        memory.remember("second", user="ada")
        while "second" not in embedder.seen:
            memory.jobs.catch_up(0.05)


def test_two_indexers_share_the_work_and_do_none_of_it_twice(store: SqliteStore) -> None:
    begin(store, WordEmbedder())
    for number in range(200):
        say(store, f"message {number}")
    meet = threading.Barrier(2)

    class Slow(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if not self.batches:
                meet.wait(20)  # so that each of them takes its part
            return super().embed(texts)

    one, two = Slow(), Slow()
    threads = [threading.Thread(target=run, args=(store, each)) for each in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert left(store, one) == 0
    assert one.seen
    assert two.seen
    assert len(one.seen) + len(two.seen) == len({*one.seen, *two.seen}) == 200


OTHER_PROCESS = """
import sys
from memorist import Memory
from tests.support.models import WordEmbedder
with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:
    memory.remember("the treasure lies under the oak", user="ada", session="talk")
    assert memory.jobs.catch_up(300) == 0
"""


def test_vectors_made_by_another_process_are_found_by_this_one(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    path = tmp_path / "shared.db"
    with Memory(path, embedder=embedder) as memory:
        memory.remember("good night", user="ada", session="talk")
        memory.jobs.catch_up(300)
        assert memory.recall("treasure", user="ada", deadline_ms=None).hits[0].text == "good night"
        memory._runtime.indexer.close()  # type: ignore[union-attr] # it might do the other's work
        command = [sys.executable, "-c", OTHER_PROCESS, str(path)]
        subprocess.run(command, check=True, timeout=60)
        hit = memory.recall("treasure", user="ada", deadline_ms=None).hits[0]
        assert hit.text == "the treasure lies under the oak"
        assert hit.why.ranks["meaning"] == 1
        assert embedder.seen == ["good night"]


def test_a_revised_message_gets_a_vector_of_its_new_words(store: SqliteStore) -> None:
    embedder = WordEmbedder()
    message = Message("user", "I drink tea")
    store.append(ADA, [message, Message("user", "good night")])
    run(store, embedder)
    assert meant(store, embedder, "tea") == ["I drink tea"]
    store.revise(ADA, message.changed(content="I drink coffee"))
    run(store, embedder)
    assert embedder.seen[-1] == "I drink coffee"
    assert meant(store, embedder, "coffee") == ["I drink coffee"]
    assert sorted(meant(store, embedder, "tea", limit=9)) == ["I drink coffee", "good night"]


def test_what_is_forgotten_or_over_is_not_found_through_what_is_held_in_memory(
    store: SqliteStore,
) -> None:
    embedder = WordEmbedder()
    message = Message("user", "I drink tea")
    item = MemoryItem(scope=USER, text="tea drinker")
    store.append(ADA, [message, Message("user", "good night")])
    store.apply(USER, [Add(item)])
    run(store, embedder)
    assert len(meant(store, embedder, "tea", limit=9)) == 3
    store.forget(ADA, message_id=message.message_id)
    assert meant(store, embedder, "tea", limit=9) == ["tea drinker", "good night"]
    store.apply(USER, [Expire(id=item.id)])
    assert meant(store, embedder, "tea", limit=9) == ["good night"]


def test_what_was_forgotten_while_it_was_embedded_does_not_come_back(store: SqliteStore) -> None:
    message = Message("user", "the canary")
    store.append(ADA, [message, Message("user", "fine")])

    class Meanwhile(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if not self.batches:
                store.forget(ADA, message_id=message.message_id)
            return super().embed(texts)

    embedder = Meanwhile()
    run(store, embedder)
    assert left(store, embedder) == 0
    assert meant(store, embedder, "canary", limit=9) == ["fine"]


def test_a_closed_memory_leaves_the_rest_in_the_queue(store: SqliteStore) -> None:
    memory = Memory(store, embedder=WordEmbedder(), extraction=None)
    indexer = Indexer(store, WordEmbedder())
    indexer.close()
    say(store, "one")
    indexer.wake()
    assert indexer.catch_up() == 1
    assert memory.jobs.catch_up(300) == 0
    memory.close()
    assert Memory(store, embedder=None, extraction=None).jobs.catch_up() == 0


def test_a_store_that_fails_for_a_while_only_makes_the_indexer_pause(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = WordEmbedder()
    failed = threading.Event()
    claim = store.claim

    def refuse(**how: Any) -> Any:
        if not failed.is_set():
            failed.set()
            store.renew(store.jobs(USER)[0], lease_seconds=1)  # nobody's: raises as ours do
        return claim(**how)

    monkeypatch.setattr(store, "claim", refuse)
    with Memory(store, embedder=embedder, extraction=None) as memory:
        memory.remember("one", user="ada")
        assert memory.jobs.catch_up(300) == 0
    assert failed.is_set()
    assert "embedding pauses" in caplog.text
    assert embedder.seen == ["one"]


def test_catching_up_after_a_change_of_embedder_waits_for_the_new_vectors(tmp_path: Path) -> None:
    path = tmp_path / "changed.db"
    with Memory(path, embedder=WordEmbedder("old"), extraction=None) as memory:
        memory.remember(["one", "two"], user="ada")
        assert memory.jobs.catch_up(300) == 0
    with Memory(path, embedder=WordEmbedder("new"), extraction=None) as memory:
        assert memory.jobs.catch_up(300) == 0
        assert memory.store.unembedded(memory.scope(user="ada"), "new", limit=9) == {}


def test_what_was_embedded_and_not_extracted_from_is_when_a_memory_wakes(tmp_path: Path) -> None:
    path = tmp_path / "left.db"
    with Memory(path, embedder=WordEmbedder(), extraction=None) as memory:
        memory.remember("My name is Ada.", user="ada")
        assert memory.jobs.catch_up(300) == 0
        assert memory.store.backlog(("derive",)) == 1
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.wake()
        until(lambda: memory.store.backlog(("derive",)) == 0)
        assert memory.facts.list(user="ada")


def test_the_jobs_of_one_embedder_are_not_taken_by_another(store: SqliteStore) -> None:
    old, new = WordEmbedder("old"), WordEmbedder("new")
    say(store, "one", "two")
    run(store, old)
    store.prepare(USER, new.name)
    run(store, old)
    assert left(store, new) == 2
    run(store, new)
    assert (left(store, old), left(store, new)) == (0, 0)


def test_taking_a_job_and_giving_it_back_costs_it_nothing(store: SqliteStore) -> None:
    say(store, "one")
    for _ in range(2 * MAX_ATTEMPTS):
        [job] = store.claim()
        store.release(job)
    run(store, WordEmbedder())
    assert left(store, WordEmbedder()) == 0


def test_a_process_that_only_recalls_embeds_what_others_stored(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.remember("one", user="ada")
    embedder = WordEmbedder()
    with Memory(tmp_path / "m.db", embedder=embedder) as memory:
        memory.recall("one", user="ada")
        assert memory.jobs.catch_up(300) == 0
        assert memory.store.unembedded(USER, embedder.name, limit=9) == {}
