"""Long questions: people paste logs and code into a chat, and ask before or after them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist import Memory, Message
from memorist.language.questions import (
    EMBEDDED_BYTES,
    QUESTION_BYTES,
    first_and_last,
    shorten_middle,
)
from memorist.language.text import minilm_folder
from memorist.providers.local_model import WordPiece
from memorist.recall.channels import MAX_TERMS, names_in, terms_of
from memorist.recall.fusion import Ranking
from tests.support.models import Vectors, WordEmbedder

ASKED = "When does the staging password rotate?"
ANSWER = "The staging password rotates every Tuesday."
SHORT = (
    ASKED,
    "  What did Caroline's friend say about the adoption agency in May 2023?\n",
    "How many days passed between the day I bought a smoker and the day I attended the event? " * 3,
    "我三月搬到了哪里？",
    "",
)


def log_of(words: int) -> str:
    chance = random.Random(words)
    kinds = ("ERROR", "worker-7", "Traceback", "app.py:88", "TimeoutError", "connection", "refused")
    return " ".join(f"{chance.choice(kinds)} req{chance.randrange(10**6)}" for _ in range(words))


class Listener(WordEmbedder):
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_query(self, text: str) -> Vectors:
        self.asked.append(text)
        return super().embed_query(text)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def memory(listener: Listener) -> Iterator[Memory]:
    talk = [
        Message("user", f"{text} no{number}") for number in range(30) for text in ("tea", "rain")
    ]
    with Memory(":memory:", embedder=listener) as opened:
        opened.remember([Message("user", ANSWER), *talk], user="ada")
        assert opened.jobs.catch_up(300) == 0
        yield opened


@pytest.mark.parametrize("question", SHORT)
def test_of_a_short_question_nothing_is_left_out(
    memory: Memory, listener: Listener, question: str
) -> None:
    memory.recall(question, user="ada", deadline_ms=None)
    assert listener.asked == [question]
    assert shorten_middle(question) is question
    assert first_and_last(terms_of(question), MAX_TERMS) == terms_of(question)


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=EMBEDDED_BYTES))
def test_any_english_question_as_long_as_those_of_the_benchmarks_is_short(text: str) -> None:
    assert shorten_middle(text) is text


@given(st.text(max_size=2_000), st.integers(40, 1_000))
def test_a_gist_is_bounded_and_made_of_the_two_ends(text: str, most: int) -> None:
    made = shorten_middle(text, most)
    assert len(made.encode(errors="replace")) <= max(most, len(text.encode()) * (made == text))
    head, _, tail = made.partition(" ... ")
    whole = text.strip()
    assert made in (text, whole) or (whole.startswith(head) and whole.endswith(tail))


def test_a_gist_is_cut_between_words_where_there_are_words() -> None:
    text = " ".join(f"word{number}" for number in range(1_000))
    made = shorten_middle(text, 200)
    assert 180 < len(made) <= 200
    assert set(made.replace("...", "").split()) <= set(text.split())
    assert made.startswith("word0 word1 ")
    assert made.endswith(" word998 word999")
    assert len(shorten_middle("a" * 50_000, 200)) > 190
    assert len(shorten_middle("你好 " + "我三月搬到了柏林" * 500, 200)) > 60
    assert shorten_middle("a \ud800" * 900, 200).startswith("a ?a ?")


@pytest.mark.parametrize("words", [100, 400, 1_600, 10_000])
@pytest.mark.parametrize("last", [True, False])
def test_what_is_asked_before_or_after_a_paste_is_found_by_words_and_meaning(
    memory: Memory, listener: Listener, words: int, last: bool
) -> None:
    question = f"{log_of(words)}\n{ASKED}" if last else f"{ASKED}\n{log_of(words)}"
    found = memory.recall(question, user="ada", deadline_ms=None)
    answer = next(hit for hit in found.hits if hit.text == ANSWER)
    assert answer.why.ranks["words"] == 1
    assert "meaning" in answer.why.ranks
    [embedded] = listener.asked
    assert ASKED in embedded
    assert len(embedded) <= EMBEDDED_BYTES


def test_names_before_and_after_a_paste_are_heard(memory: Memory) -> None:
    memory.remember(Message("user", "I like pottery", name="Caroline"), user="ada")
    for question in (f"Caroline likes? {log_of(900)}", f"{log_of(900)} likes Caroline?"):
        found = memory.recall(question, user="ada", deadline_ms=None)
        answer = next(hit for hit in found.hits if hit.text == "I like pottery")
        assert answer.why.parts["speaker"] > 0


def test_terms_and_names_of_a_long_question_are_of_both_its_ends() -> None:
    text = " ".join(f"word{number}" for number in range(1_000))
    terms = terms_of(text)
    assert len(terms) == MAX_TERMS
    assert {("word0",), ("word999",)} <= set(terms)
    assert {"word0", "word1 word2", "word999", "word998 word999"} <= set(names_in(text))


PROSE = "My neighbour told me about her sister's wedding, and I thought of our own plans. "


@pytest.mark.parametrize("text", [PROSE * 50, log_of(900), "我三月搬到了柏林，那里很好。" * 200])
def test_of_whatever_script_few_pieces_are_embedded(text: str) -> None:
    pieces = WordPiece(minilm_folder()).encode(shorten_middle(text))
    assert 60 <= len(pieces) <= 130


class Reranker:
    """Finds all alike, and remembers what was asked."""

    asked = ""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked = question
        return [0.0 for _ in texts]


def test_what_a_reranker_is_asked_is_bounded() -> None:
    reranker = Reranker()
    with Memory(":memory:", embedder=None, ranking=Ranking(reranker=reranker)) as memory:
        memory.remember(ANSWER, user="ada")
        memory.recall(f"{log_of(9_000)} {ASKED}", user="ada", deadline_ms=None)
    assert reranker.asked.endswith(ASKED)
    assert len(reranker.asked) <= QUESTION_BYTES
