"""Library: articles that an agent searches and cites."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from memorist.arguments import NamesArguments
from memorist.context.documents.markdown import chunks
from memorist.context.documents.reading import find_files, read_document
from memorist.documents import DocumentMemory
from memorist.errors import InvalidError, MissingExtraError, NotFoundError
from memorist.records.documents import Article, ArticleInfo, PutResult
from memorist.records.query import Forgotten
from memorist.records.scope import shared_scope
from memorist.records.values import check_whole

if TYPE_CHECKING:
    from memorist.context.documents.excerpts import Retrieved
    from memorist.context.quote import Quote
    from memorist.context.tokens import TokenCounter

WINDOW = 262_144  # tokens
TOP_K = 5
RECALL_MS = 50.0
DEADLINE_MS = 1_000.0
JOINTS = 8  # tokens that texts may take more together than apart

Progress = Callable[[int, int, str], None]
"""Called after each file: how many are done, of how many, and its uri."""
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

log = logging.getLogger("memorist")


@dataclass(slots=True)
class Ingested:
    """The uris of files by what became of them. `failed` and `notes` give reasons, `skipped` have
    kinds that are not read, `duplicates` have the text of another article.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


class Library(NamesArguments):
    """A collection of articles: read from files, searched by words and meaning, and quoted.

        library = Library(memory, "handbook")
        library.ingest("docs")
        for found in library.retrieve("How long may I return it?", window=8_000):
            print(found.citation, found.text)

    A library with a name is shared by all users of the tenant; with `user` it is that user's own.
    `system_prompt` is that of the agent that reads it, for which `retrieve` leaves room.
    """

    def __init__(
        self,
        memory: DocumentMemory,
        name: str = "library",
        *,
        user: str | None = None,
        agent: str | None = None,
        system_prompt: str = "",
    ) -> None:
        self._articles, self._clock = memory.articles, memory.clock
        self._system_prompt = system_prompt
        shared = shared_scope(memory.tenant_name, "library", name)
        self.scope = shared if user is None else memory.scope(user=user, agent=agent)

    def add(self, title: str, text: str, uri: str = "") -> PutResult:
        """Store a text, in the place of the article with the same uri, if there is one."""
        return self._put(self._article(title, text, uri))

    def articles(self) -> list[ArticleInfo]:
        """All articles without their texts, by uri and title."""
        articles = self._articles.list(self.scope)
        return sorted(articles, key=lambda card: (card.uri, card.title, card.id))

    def get(self, id: str) -> Article:
        """An article with its text."""
        articles = self._articles.get(self.scope, [id])
        if not articles:
            raise NotFoundError("no article with this id in this library")
        return articles[0]

    def remove(self, id: str) -> Forgotten:
        """Remove an article. Its bytes go with the next `Memory.scrub`."""
        self.get(id)
        return self._articles.remove(self.scope, id)

    def ingest(
        self, paths: Paths, *, prune: bool = False, progress: Progress | None = None
    ) -> Ingested:
        """Read files and folders in: Markdown, text, HTML, and PDF with the extra `pdf`.

        Each article is durable before the next is read, and what is there already is left as it
        is: after a crash, run it again. With `prune`, what came from the folders and is no longer
        in them is removed.
        """
        paths = [paths] if isinstance(paths, str | os.PathLike) else paths
        files = find_files([Path(path) for path in paths])
        done = Ingested(skipped=files.skipped, failed=dict(files.failed))
        known = {card.uri: card for card in self.articles()}
        if prune:
            folders, there = tuple(files.folders), {*files.paths, *files.skipped}
            done.removed = [uri for uri in known if uri.startswith(folders) and uri not in there]
            for uri in done.removed:
                self.remove(known[uri].id)
        for number, (uri, path) in enumerate(files.paths.items(), start=1):
            if uri not in done.failed:
                self._ingest(uri, path, known.get(uri), done)
            if progress is not None:
                progress(number, len(files.paths), uri)
        if done.changed:  # what was a duplicate of an older version is one no more
            for uri in done.duplicates[:]:
                done.duplicates.remove(uri)
                self._ingest(uri, files.paths[uri], None, done)
        return done

    def retrieve(
        self,
        query: str,
        top_k: int | None = None,
        reserved_tokens: int = 0,
        *,
        window: int = WINDOW,
        model: str = "",
        deadline_ms: float | None = DEADLINE_MS,
    ) -> list[Retrieved]:
        """The articles for a question, whole or in passages, as far as they fit.

        They take at most what `window` has left after the system prompt, `reserved_tokens`, which
        the conversation needs, and the question; tokens are those of `model`. The best comes first.
        """
        top_k = TOP_K if top_k is None else check_whole(top_k, "top_k", 1)
        check_whole(reserved_tokens, "reserved_tokens")
        check_whole(window, "window", 1)
        from memorist.context.tokens import TokenCounter  # here: `import memorist` stays light
        from memorist.providers.tokenizer import tokenizer_for

        counter = TokenCounter(tokenizer_for(model))
        system, question = counter.texts([self._system_prompt, query])
        left = max(window - system - reserved_tokens - question, 0)
        found = self._articles.fit(
            self.scope, query, left, counter, top_k=top_k, deadline_ms=deadline_ms, model=model
        )
        used, whole = sum(it.tokens for it in found), sum(it.whole for it in found)
        log.info(
            "Context window: %d tokens, system prompt: %d, reserved for conversation: %d, using %d "
            "for articles: %d are %d tokens, %d of them whole",
            *(window, system, reserved_tokens, left, len(found), used, whole),
        )
        return found

    def quotes(
        self,
        question: str,
        max_tokens: int,
        counter: TokenCounter,
        *,
        deadline_ms: float | None = RECALL_MS,
    ) -> list[Quote]:
        """The passages for a question that fit into `max_tokens`, to be quoted in a context."""
        from memorist.context.assemble import ARTICLES_INTRO, QUESTION_INTRO

        frame = counter.text(f"{ARTICLES_INTRO}\n\n{QUESTION_INTRO}\n") + JOINTS
        left = max(max_tokens - frame, 0)
        found = self._articles.fit(
            self.scope, question, left, counter, top_k=TOP_K, deadline_ms=deadline_ms
        )
        return [article.quote for article in found]

    def _article(self, title: str, text: str, uri: str) -> Article:
        return Article(scope=self.scope, title=title, text=text, uri=uri, created_at=self._clock())

    def _put(self, article: Article, known: ArticleInfo | None = None) -> PutResult:
        if known and (known.title, known.digest) == (article.title, article.digest):
            return PutResult(known.id, "unchanged")
        if not article.text.strip():
            raise InvalidError("the text of an article is empty; there is nothing to find in it")
        return self._articles.put(article, chunks(article.text))

    def _ingest(self, uri: str, path: Path, known: ArticleInfo | None, done: Ingested) -> None:
        """Read one file in; an error is noted in `done`."""
        try:
            document = read_document(path)
            result = self._put(self._article(document.title, document.text, uri), known)
        except (InvalidError, MissingExtraError) as error:
            done.failed[uri] = str(error)
            return
        if document.note:
            done.notes[uri] = document.note
        uris = done.duplicates if result.change == "duplicate" else getattr(done, result.change)
        uris.append(uri)
