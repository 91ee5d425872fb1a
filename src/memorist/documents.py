"""The namespaces of what is kept as it is given: entries, articles, notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from memorist.namespaces import List, MemoryPart, stored
from memorist.records.entry import Answer, Ask, Ids, Put, Search, findable
from memorist.records.query import RECALL_DEADLINE_MS, Filters, Forgotten, Hit, Query
from memorist.records.scope import Scope
from memorist.store.base import Store

if TYPE_CHECKING:  # the rest is imported where it is used: `import memorist` stays light
    from memorist.context.documents.excerpts import Retrieved
    from memorist.context.tokens import TokenCounter

PASSAGES_PER_ARTICLE = 12  # looked for, for each article that is wanted
MAX_QUOTED_CHARS = 8_000_000  # of the articles that are read to quote from
MAX_RANKED = 10_000  # entries of a search without a limit that are ranked by its query


class Entries(MemoryPart):
    """JSON objects by key in namespaces, as LangGraph's BaseStore keeps them: `memory.entries`."""

    def batch(
        self,
        scope: Scope,
        asks: Sequence[Ask],
        puts: Sequence[Put] = (),
        *,
        deadline_ms: float | None = RECALL_DEADLINE_MS,
        max_bytes: int | None = None,
    ) -> List[Answer]:
        """Answer the reads, in `max_bytes` at most; then do the writes, in one transaction."""
        ranked = [
            replace(ask, ranks=self._ranks(scope, ask, deadline_ms))
            if isinstance(ask, Search) and ask.query
            else ask
            for ask in asks
        ]
        answers = self._store.batch(scope, ranked, puts, max_bytes=max_bytes)
        if puts:
            self._runtime.wake()
        return answers

    def _ranks(self, scope: Scope, ask: Search, deadline_ms: float | None) -> dict[str, float]:
        """How well entries fit the query of a search: the order they are read in a moment later."""
        records: tuple[str, ...] = ()
        if ask.prefix or ask.where:
            [ids] = self._store.batch(scope, [Ids(of=ask)])
            records = tuple(id_ for id_ in ids if isinstance(id_, str))
            if not records:
                return {}
        query = Query(
            scope=scope,
            question=findable(ask.query),
            now=self._runtime.clock(),
            limit=max(ask.offset + (MAX_RANKED if ask.limit is None else ask.limit), 1),
            deadline_ms=deadline_ms,
            filters=Filters(kinds=("entry",), records=records),
            min_score=0.0,
        )
        return {hit.id: hit.score for hit in self._runtime.search(query).hits}

    sweep = stored(Store.sweep)


class Articles(MemoryPart):
    """The documents that `Library` reads in and quotes: `memory.articles`."""

    put = stored(Store.put_article, wakes=True)
    get = stored(Store.read_articles)
    list = stored(Store.articles)

    def remove(self, scope: Scope, id: str) -> Forgotten:
        """Remove an article; its bytes go with the next `Memory.scrub`."""
        return self._store.forget(scope, record_id=id)

    def fit(
        self,
        scope: Scope,
        query: str,
        max_tokens: int,
        counter: TokenCounter,
        *,
        top_k: int,
        deadline_ms: float | None,
        model: str = "",
    ) -> List[Retrieved]:
        """The articles for a query, best first, whole or in passages; `model` is for servers."""
        from memorist.context.documents.excerpts import fit

        search = Query(
            scope=scope,
            question=query,
            now=self._runtime.clock(),
            limit=top_k * PASSAGES_PER_ARTICLE,
            deadline_ms=deadline_ms,
            filters=Filters(kinds=("article",)),
            min_score=0.0,
        )
        hits: defaultdict[str, List[Hit]] = defaultdict(List)
        for hit in self._runtime.search(search).hits if max_tokens else ():
            if hit.id in hits or len(hits) < top_k:
                hits[hit.id].append(hit)
        articles = self._store.read_articles(scope, List(hits), max_chars=MAX_QUOTED_CHARS)
        return fit(hits, articles, max_tokens, counter)


class NoteVersions(MemoryPart):
    """The versions of a user's notes, which `Notebook` edits: `memory.note_versions`."""

    get = stored(Store.note)
    list = stored(Store.note_versions)
    write = stored(Store.write_note, wakes=True)


class DocumentMemory(Protocol):
    """A memory, as far as notebooks and libraries use it."""

    tenant_name: str
    clock: Callable[[], datetime]
    articles: Articles
    note_versions: NoteVersions

    def scope(self, *, user: str, agent: str | None = None) -> Scope: ...
