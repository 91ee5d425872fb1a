"""`memorist jobs`, `rebuild`, `backup` and `doctor`: the state of the queue and of the database."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.progress import Progress
from rich.text import Text

from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.render import console, safe_text
from memorist.client import Client
from memorist.config import Settings
from memorist.errors import MemoristError, ProviderError, StoreDamagedError
from memorist.language.text import LANGUAGES
from memorist.lifecycle.settings import DEFAULT_EXTRACTION
from memorist.memory import Memory
from memorist.providers.opening import open_model
from memorist.records.log import Job
from memorist.records.values import new_id

SLOW_MS = {"remember": 50.0, "recall": 50.0, "history": 20.0, "forget": 50.0}
POLL_SECONDS = 0.2
DEADLINE_MS = 5_000.0  # long, to tell what is slow from what fails
_STYLES = {"ok": "green", "slow": "yellow", "warning": "yellow", "fails": "red"}


def jobs(
    user: opt.User = None,
    everyone: opt.Everyone = False,
    dead: bool = typer.Option(False, "--dead", help="Only those that were given up."),
    retry: str | None = typer.Option(
        None, metavar="ID|all", help="Put what was given up back into the queue."
    ),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show the jobs that wait and those that were given up, with the reason."""
    if retry not in (None, "all") and not retry.isdecimal():
        raise typer.BadParameter("give the number of a job, or all", param_hint="--retry")
    with opt.open_memory(db, user, worker=False) as (memory, user):
        users = opt.all_users(memory) if everyone else [user]
        only_dead = True if dead or retry else None
        rows = [job for name in users for job in memory.jobs.list(user=name, dead=only_dead)]
        if retry not in (None, "all"):
            rows = [job for job in rows if job.id == int(retry)]
            if not rows:
                memory.jobs.retry(int(retry), user=user)  # raises the fitting error
        for job in rows if retry else ():
            memory.jobs.retry(job.id, user=job.scope.user)
    if retry and not as_json:
        console.print(f"retried {render.counted(len(rows), 'jobs')}")
        return
    columns: render.Columns = {
        "id": lambda job: Text(str(job.id)),
        "user": "scope.user",
        "kind": "kind",
        "state": _state,
        "next try": lambda job: None if job.dead else job.run_at,
        "tries": "attempts",
        "error": lambda job: safe_text(job.error or "", "yellow"),
    }
    render.records(rows, columns, as_json=as_json, empty="no jobs")


def _state(job: Job) -> Text:
    return Text("dead", "red") if job.dead else Text("taken" if job.lease else "waiting")


def rebuild(user: opt.User = None, everyone: opt.Everyone = False, db: opt.Database = None) -> None:
    """Throw away what was derived from the log, and derive it anew; interrupted, it goes on later.

    Messages, notes, articles, and what was added, changed or taken back by hand stay.
    """
    with opt.open_memory(db, user) as (memory, user):
        chosen = None if everyone else user
        memory.jobs.rebuild(user=chosen)
        if memory.extraction is None and not isinstance(memory, Client):
            render.remark("it is queued; `memorist worker` does it with the model")
            return
        with Progress(console=render.errors, disable=not render.errors.is_terminal) as bar:
            task, most = bar.add_task("rebuilding", total=None), 0
            while left := _left(memory, chosen):
                most = max(most, left)
                bar.update(task, total=most, completed=most - left)
                memory.jobs.catch_up(POLL_SECONDS)
    console.print("rebuilt")


def _left(memory: Memory, user: str | None) -> int:
    waiting = memory.jobs.waiting(user=user)
    return sum(count for kind, count in waiting.items() if kind not in ("dead", "summarize"))


def backup(
    file: Path = typer.Argument(metavar="FILE", help="The new file to copy into."),
    db: opt.Database = None,
    as_json: opt.AsJson = False,
) -> None:
    """Copy the database into a new file; others may use it meanwhile."""
    with opt.open_memory(db, worker=False, local_command="backup") as (memory, _):
        memory.backup(file)
    size = file.stat().st_size
    if as_json:
        render.print_json({"file": str(file), "bytes": size})
    else:
        console.print(f"copied, {size:,} bytes", highlight=False)


class Check(NamedTuple):
    """One line of the doctor's report."""

    name: str
    verdict: str  # one of _STYLES
    detail: str


def doctor(db: opt.Database = None, as_json: opt.AsJson = False) -> None:
    """Check that memory works, by using it: remember, recall, read back, forget."""
    checks = list(_examine(db))
    columns: render.Columns = {
        "verdict": lambda check: Text(check.verdict, _STYLES[check.verdict]),
        "name": "name",
        "detail": "detail",
    }
    rows: list[Any] = [check._asdict() for check in checks] if as_json else checks
    render.records(rows, columns, header=False, as_json=as_json, empty="")
    if any(check.verdict == "fails" for check in checks):
        raise typer.Exit(1)


def _examine(database: str | None) -> Iterator[Check]:
    """Look at the settings and the store, then make the round trip."""
    try:
        with opt.open_memory(database) as (memory, user):
            if isinstance(memory, Client):
                memory.warm_up()
                yield Check("server", "ok", "it answers")
            else:
                yield from _check_store(memory)
                yield _check_embedder(memory)
                yield _check_model(memory, Settings.from_environment())
            yield _check_queue(memory)
            yield from _round_trip(memory, user)
    except MemoristError as error:
        yield Check("store", "fails", f"{type(error).__name__}: {error}")


def _check_store(memory: Memory) -> Iterator[Check]:
    for name, value in memory.check().items():
        if name == "integrity" and value != "ok":
            raise StoreDamagedError("the file is damaged; restore it from a backup")
        elif name == "synchronous" and value in ("normal", "off"):
            yield Check(name, "warning", f"{value}: a power cut may take the last messages")
        elif name == "vectors" and "crashed" in value:
            yield Check(name, "warning", f"{value}; install a build for this processor")
        elif name == "row-level security" and value.startswith("off"):  # row-level security
            yield Check(name, "fails", value)
        elif name == "privileges" and value != "ok":
            yield Check(name, "warning", f"any login can have functions of its own called; {value}")
        else:
            yield Check(name, "ok", value)


def _check_embedder(memory: Memory) -> Check:
    if memory.embedder is None:
        memory.warm_up()
        return Check("embedder", "ok", "none: recall goes by words and links")
    try:
        (load_ms, _), (query_ms, _) = _timed(memory.warm_up), _timed(memory.warm_up)
    except ProviderError as error:
        return Check("embedder", "warning", f"recall goes by words and links: {error}")
    times = f"loaded in {load_ms:.0f} ms, a question in {query_ms:.1f} ms"
    return Check("embedder", "ok", f"{memory.embedder.name}: {times}")


def _check_model(memory: Memory, settings: Settings) -> Check:
    """Whether the model can be opened, and what it cost. It is not asked: that would cost too."""
    if not settings.model:
        listed = ", ".join(LANGUAGES)
        return Check("model", "ok", f"none: memories are made by rules, of texts in {listed}")
    try:
        open_model(settings.model, settings.model_url, settings.model_key)
    except MemoristError as error:
        return Check("model", "fails", f"{type(error).__name__}: {error}")
    (calls, tokens), limits = memory.jobs.spent(), DEFAULT_EXTRACTION
    cost = (
        f"{calls:,} of {limits.calls_per_hour:,} calls and "
        f"{tokens:,} of {limits.tokens_per_hour:,} tokens spent this hour"
    )
    return Check("model", "ok", f"{settings.model}: {cost}; `memorist worker` asks it")


def _check_queue(memory: Memory) -> Check:
    waiting = memory.jobs.waiting()
    dead = waiting.pop("dead")
    kinds = ", ".join(f"{kind} {count}" for kind, count in waiting.items())
    detail = f"{sum(waiting.values())} waiting, {dead} dead ({kinds})"
    if dead:
        return Check("queue", "warning", f"{detail}; see `memorist jobs --dead --everyone`")
    return Check("queue", "ok", detail)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The milliseconds that work takes, and its result."""
    started = time.perf_counter()
    result = work()
    return (time.perf_counter() - started) * 1_000, result


def _round_trip(memory: Memory, user: str) -> Iterator[Check]:
    """Use the memory of a user made up for it; on a server, a session of the key's own user."""
    session, word = f"doctor-{new_id()}", f"canary{new_id().replace('-', '')}"
    text = f"a {word} sings"
    where: dict[str, Any] = {"session": session}
    if not isinstance(memory, Client):
        user, where = session, {"everything": True}

    def recall() -> bool:
        result = memory.recall(word, user=user, session=session, deadline_ms=DEADLINE_MS)
        return text in [hit.text for hit in result.hits]

    def forget() -> bool:
        forgotten = memory.forget(user=user, scrub=False, **where)
        return forgotten.counts.get("messages", 0) == 1

    steps: dict[str, Callable[[], bool]] = {
        "remember": lambda: memory.remember(text, user=user, session=session).added == 1,
        "recall": recall,
        "history": lambda: memory.history(user=user, session=session)[0].content == text,
        "forget": forget,
    }
    try:
        for name, step in steps.items():
            if step is recall:
                recall()  # the first of a process loads what the others find in place
            took_ms, worked = _timed(step)
            if worked:
                is_slow = took_ms > SLOW_MS[name]
                usual = f", usually below {SLOW_MS[name]:.0f}" if is_slow else ""
                yield Check(name, "slow" if is_slow else "ok", f"{took_ms:.1f} ms{usual}")
            else:
                yield Check(name, "fails", "the answer was not what had been stored")
    finally:
        forget()
