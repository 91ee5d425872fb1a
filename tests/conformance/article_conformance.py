"""Conformance of articles: kept once, found by their passages, gone when forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from memorist.errors import NotFoundError
from memorist.records.documents import Article, Chunk
from memorist.records.query import Filters
from memorist.records.scope import Scope
from memorist.records.values import new_id
from memorist.store.base import Store
from tests.conformance.worlds import HOSTILE_USERS, ODD_TEXTS, fresh_scope, near, worded

ARTICLES = Filters(kinds=("article",))
TEXT = "# Returns\n\nSend it back within thirty days.\n\n# Repairs\n\nThe workshop mends lamps.\n"
CHUNKS = (Chunk(0, 45, ("Returns",)), Chunk(45, len(TEXT), ("Repairs",)))


def fresh_article(scope: Scope | None = None, text: str = TEXT, uri: str = "docs/a.md") -> Article:
    """An article of somebody whom no other test has."""
    home = scope or fresh_scope().whole_user()
    return Article(scope=home, title="Handbook", text=text, uri=uri)


def whole(article: Article) -> tuple[Chunk, ...]:
    """All of an article as one chunk."""
    return (Chunk(0, len(article.text)),)


class ArticleConformance:
    """Needs a fixture `store`."""

    def test_an_article_comes_back_as_it_was(self, store: Store) -> None:
        article = fresh_article()
        assert store.put_article(article, CHUNKS) == (article.id, "added")
        assert store.read_articles(article.scope, [article.id]) == [article]
        [card] = store.articles(article.scope)
        assert (card.id, card.title, card.uri) == (article.id, "Handbook", "docs/a.md")
        assert (card.digest, card.chars) == (article.digest, len(TEXT))
        assert card.created_at == article.created_at

    def test_odd_texts_titles_and_uris_come_back(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        for text in ODD_TEXTS.values():
            odd = Article(scope=scope, title=text, text=f"{text}{new_id()}", uri=f"{text}#{text}")
            store.put_article(odd, whole(odd))
            assert store.read_articles(scope, [odd.id]) == [odd]
        assert len(store.articles(scope)) == len(ODD_TEXTS)

    def test_an_article_is_read_in_the_order_asked_and_without_the_gone(self, store: Store) -> None:
        one = fresh_article()
        two = fresh_article(one.scope, "Another text", "docs/b.md")
        for article in (one, two):
            store.put_article(article, whole(article))
        found = store.read_articles(one.scope, [two.id, "gone", one.id, two.id])
        assert [article.id for article in found] == [two.id, one.id]

    def test_each_passage_of_an_article_is_found_by_itself(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, CHUNKS)
        [match] = worded(store, article.scope, [("lamps",)], limit=9)
        assert (match.kind, match.id, match.text) == ("article", article.id, TEXT[45:])
        assert match.start == 45
        both = store.match_text(article.scope, [("days",), ("lamps",)], limit=9)
        passages = store.passages(article.scope, [it.passage for it in both])
        assert len({passage.record for passage in passages}) == 2

    def test_title_and_headings_find_a_passage(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, (Chunk(0, 45), Chunk(45, len(TEXT), ("Sanatorium",))))
        assert len(worded(store, article.scope, [("handbooks",)], limit=9)) == 2
        [match] = worded(store, article.scope, [("sanatorium",)], limit=9)
        assert match.start == 45

    def test_a_late_passage_counts_no_less_than_an_early_one(self, store: Store) -> None:
        text = "pelican soup. " + "nothing of the kind here. " * 2_000 + "pelican stew. "
        article = fresh_article(text=text)
        last = len(text) - len("pelican stew. ")
        store.put_article(article, (Chunk(0, 14), Chunk(14, last), Chunk(last, len(text))))
        early, late = store.match_text(article.scope, [("pelican",)], limit=9)
        assert early.score == pytest.approx(late.score)

    def test_what_many_passages_say_counts_little_on_a_shelf_without_messages(
        self, store: Store
    ) -> None:
        scope = fresh_scope().whole_user()
        for number in range(30):
            words = "pelican soup" if number % 3 else f"heron stew {number}"
            article = fresh_article(scope, f"{words}, course {number}", f"docs/{number}")
            store.put_article(article, whole(article))
        common, rare = (store.match_text(scope, [(word,)], limit=1) for word in ("soup", "stew"))
        assert 0.3 * rare[0].score < common[0].score < rare[0].score

    def test_the_same_article_again_changes_nothing(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, CHUNKS)
        again = fresh_article(article.scope)
        assert store.put_article(again, CHUNKS) == (article.id, "unchanged")
        assert len(worded(store, article.scope, [("lamps",)], limit=9)) == 1
        jobs = [job for job in store.jobs(article.scope) if job.kind == "vectors"]
        assert len(jobs) == 1

    def test_a_changed_article_takes_the_place_of_the_old(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, CHUNKS)
        changed = fresh_article(article.scope, "The workshop is closed.")
        assert store.put_article(changed, whole(changed)) == (article.id, "changed")
        assert store.read_articles(article.scope, [article.id]) == [replace(changed, id=article.id)]
        assert worded(store, article.scope, [("lamps",)], limit=9) == []
        assert len(worded(store, article.scope, [("closed",)], limit=9)) == 1
        renamed = replace(changed, title="Almanac")
        assert store.put_article(renamed, whole(renamed)).change == "changed"
        assert len(worded(store, article.scope, [("almanac",)], limit=9)) == 1

    def test_the_same_text_is_kept_once(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, CHUNKS)
        copy = fresh_article(article.scope, uri="docs/copy.md")
        assert store.put_article(copy, CHUNKS) == (article.id, "duplicate")
        assert len(store.articles(article.scope)) == 1
        other = fresh_article()  # of somebody else, who keeps it
        assert store.put_article(other, CHUNKS).change == "added"

    def test_two_who_add_the_same_text_at_once_keep_it_once(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        copies = [fresh_article(scope, uri=f"docs/{number}.md") for number in range(8)]
        with ThreadPoolExecutor(4) as crew:
            done = list(crew.map(lambda copy: store.put_article(copy, CHUNKS), copies))
        assert sorted(it.change for it in done) == ["added", *["duplicate"] * 7]
        assert {it.id for it in done} == {card.id for card in store.articles(scope)}

    def test_what_becomes_a_copy_of_another_is_kept_no_longer(self, store: Store) -> None:
        article = fresh_article()
        other = fresh_article(article.scope, "Of penguins", "docs/b.md")
        store.put_article(article, CHUNKS)
        store.put_article(other, whole(other))
        same = fresh_article(article.scope, TEXT, "docs/b.md")
        assert store.put_article(same, CHUNKS) == (article.id, "duplicate")
        assert [card.id for card in store.articles(article.scope)] == [article.id]
        assert worded(store, article.scope, [("penguins",)], limit=9) == []

    def test_articles_without_a_uri_stand_side_by_side(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        for text in ("one", "two"):
            store.put_article(fresh_article(scope, text, ""), (Chunk(0, 3),))
        assert len(store.articles(scope)) == 2

    def test_nobody_sees_the_articles_of_another(self, store: Store) -> None:
        tenant = new_id()
        ids = {}
        for user in HOSTILE_USERS:
            article = fresh_article(Scope(tenant=tenant, user=user))
            ids[user] = store.put_article(article, CHUNKS).id
        for user, id_ in ids.items():
            scope = Scope(tenant=tenant, user=user)
            assert [card.id for card in store.articles(scope)] == [id_]
            assert [hit.id for hit in worded(store, scope, [("lamps",)], limit=99)] == [id_]
            assert len(store.read_articles(scope, list(ids.values()))) == 1

    def test_an_agents_article_is_its_own_and_others_are_for_all(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        shared = fresh_article(scope)
        tutors = fresh_article(scope.within(agent="tutor"), "Lamps of tutors")
        for article in (shared, tutors):
            store.put_article(article, whole(article))
        seen = {
            agent: {card.id for card in store.articles(scope.within(agent=agent))}
            for agent in ("tutor", "coach")
        }
        assert seen == {"tutor": {shared.id, tutors.id}, "coach": {shared.id}}
        found = worded(store, scope.within(agent="coach"), [("lamps",)], limit=9)
        assert [hit.id for hit in found] == [shared.id]

    def test_passages_of_articles_get_vectors(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, CHUNKS)
        waiting = store.unembedded(article.scope, "e", limit=9)
        assert sorted(waiting.values()) == sorted([TEXT[:45], TEXT[45:]])
        store.put_vectors(
            article.scope,
            "e",
            {id_: [float("lamps" in text), 1.0] for id_, text in waiting.items()},
        )
        first, _ = near(store, article.scope, "e", [1.0, 1.0], limit=9)
        assert (first.kind, first.text) == ("article", TEXT[45:])
        found = store.match_vector(article.scope, "e", [1.0, 1.0], limit=1, filters=ARTICLES)
        assert len(found) == 1

    def test_a_forgotten_article_leaves_nothing_behind(self, store: Store) -> None:
        article = fresh_article()
        store.put_article(article, CHUNKS)
        ids = store.unembedded(article.scope, "e", limit=9)
        store.put_vectors(article.scope, "e", {id_: [1.0] for id_ in ids})
        kept = fresh_article(article.scope, "Of penguins", "docs/b.md")
        store.put_article(kept, whole(kept))
        gone = store.forget(article.scope, record_id=article.id)
        assert gone.counts == {"articles": 1, "passages": 2, "vectors": 2}
        assert [card.id for card in store.articles(article.scope)] == [kept.id]
        assert worded(store, article.scope, [("lamps",)], limit=9) == []
        assert near(store, article.scope, "e", [1.0], limit=9) == []
        with pytest.raises(NotFoundError):
            store.forget(article.scope, record_id=article.id)

    def test_articles_go_with_their_user_and_with_their_agent(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        shared = fresh_article(scope)
        tutors = fresh_article(scope.within(agent="tutor"), "Lamps of tutors")
        for article in (shared, tutors):
            store.put_article(article, whole(article))
        assert store.forget(tutors.scope).counts["articles"] == 1
        assert [card.id for card in store.articles(scope)] == [shared.id]
        assert store.forget(scope).counts["articles"] == 1
        assert store.articles(scope) == []
        assert worded(store, scope, [("lamps",)], limit=9) == []
