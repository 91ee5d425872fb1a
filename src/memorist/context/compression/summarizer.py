"""The summarizer: extracts summaries of sessions at once, and has a model improve them later."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memorist import metrics
from memorist.context.compression.compress import (
    DEFAULT,
    EXTRACTIVE,
    Compress,
    Compression,
    compress,
)
from memorist.context.tokens import TokenCounter
from memorist.context.turns import MANY
from memorist.context.window import Window
from memorist.errors import ConflictError, LeaseLostError, StoreError
from memorist.providers.chat_model import ChatModel
from memorist.records.documents import Summary
from memorist.records.message import Job, LogEntry
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.store.jobs import SUMMARY_KINDS, JobRunner

CHUNK = MANY  # messages that are summarised at once

log = logging.getLogger("memorist")


@dataclass(frozen=True, slots=True)
class Style:
    """How long a summary may be, and who counts its tokens."""

    counter: TokenCounter
    max_tokens: int = DEFAULT.max_tokens


def style_of(window: Window, counter: TokenCounter) -> Style:
    """The style of summaries for a window: at most a quarter of it, unless that is tiny."""
    return Style(counter, min(window.summary_tokens, max(window.max_tokens // 4, 100)))


class Summarizer(JobRunner):
    """Extends the summaries of sessions, and has a model improve them where there is one.

    Summaries asked for wait in the queue: they survive a crash, and any process may make them.
    """

    name = "summaries"
    batch_size = 1
    lease_seconds = 300.0  # a model may take long, and is paid for

    def __init__(
        self,
        store: Store,
        style: Style,
        model: ChatModel | None = None,
        settings: Compress = DEFAULT,
    ) -> None:
        super().__init__(store, SUMMARY_KINDS)
        self._style = style
        self._model = model
        self._settings = settings

    def take_in(
        self, scope: Scope, entries: Sequence[LogEntry], previous: Summary | None, style: Style
    ) -> Compression | None:
        """Extend the summary by these messages without a model, which may improve it later.

        None if the summary would save no tokens.
        """
        done = self._compress(scope, entries, previous, style)
        if done.saved <= 0:
            return None
        self._write(scope, done, entries)
        if self._model is not None:
            self.ask_for(scope, done.summary.last_seq)
        return done

    def ask_for(self, scope: Scope, last_seq: int) -> None:
        """Queue a summary of all messages up to a place in the log, or its improvement."""
        self._store.queue_summary(scope, last_seq)
        self.wake()

    def extend(
        self, scope: Scope, last_seq: int, style: Style | None = None, *, asked: bool = False
    ) -> Compression | None:
        """Extend the summary up to a place in the log, the last step by the model.

        None if the summary reaches that far already.
        """
        before, done = 0, None
        ids: list[str] = []
        while True:
            previous = self._store.summary(scope)
            after = previous.last_seq if previous else 0
            following = self._store.following(scope, after=after, limit=CHUNK)
            entries = [entry for entry in following if entry.seq <= last_seq]
            if not entries:
                break
            model = self._model if len(entries) < CHUNK else None
            done = self._compress(scope, entries, previous, style, model)
            done = self._write(scope, done, entries, asked=asked)
            before += done.tokens_before - (previous.tokens if previous and ids else 0)
            ids += done.message_ids
        return done and replace(done, message_ids=tuple(ids), tokens_before=before)

    def improve(self, scope: Scope) -> Compression | None:
        """Have the model write the newest summary anew, if that was made without it."""
        summaries = self._store.summaries(scope)
        if not summaries or self._model is None or summaries[0].made_by != EXTRACTIVE:
            return None
        newest, previous = summaries[0], summaries[1] if len(summaries) > 1 else None
        after = previous.last_seq if previous else 0
        limit = newest.messages - (previous.messages if previous else 0)
        entries = self._store.following(scope, after=after, limit=limit)
        if not entries or entries[-1].seq != newest.last_seq:
            raise ConflictError("the messages of a summary have changed meanwhile; try again")
        done = self._compress(scope, entries, previous, None, self._model)
        return self._write(scope, done, entries, asked=newest.asked)

    def do(self, jobs: Sequence[Job]) -> None:
        """Extend or improve the summary of a job's session."""
        for job in jobs:
            try:
                if self.extend(job.scope, job.last_seq) is None:
                    self.improve(job.scope)
                self._store.apply(job.scope, [], done=job)
            except LeaseLostError:
                continue  # another process has it
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the job is tried again later
                self.fail(job, error)

    def _compress(
        self,
        scope: Scope,
        entries: Sequence[LogEntry],
        previous: Summary | None,
        style: Style | None,
        model: ChatModel | None = None,
    ) -> Compression:
        style = style or self._style
        return compress(
            entries,
            scope=scope,
            counter=style.counter,
            previous=previous,
            model=model,
            settings=replace(self._settings, max_tokens=style.max_tokens),
        )

    def _write(
        self, scope: Scope, done: Compression, entries: Sequence[LogEntry], *, asked: bool = False
    ) -> Compression:
        done = replace(done, summary=replace(done.summary, asked=asked))
        self._store.write_summary(scope, done.summary, of=entries)
        made_by = "extractive" if done.made_by == EXTRACTIVE else "model"
        metrics.count("memorist.compressions", made_by=made_by)
        metrics.count("memorist.compression.saved", max(done.saved, 0), made_by=made_by)
        if done.fell_back:
            metrics.count("memorist.compression.fallbacks")
            log.warning("a summary was extracted, as the model failed: %s", done.fell_back)
        return done
