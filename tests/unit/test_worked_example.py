"""Document 004's example, turn by turn: a window of 262,144 tokens that compresses at 85 %."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from memorist import Chat, Memory
from memorist.context.quote import Quote
from memorist.context.tokens import TokenCounter
from memorist.context.window import Context, Window

WINDOW = Window(max_tokens=262_144, answer_tokens=0, model="gpt-4o", memories=0)
SYSTEM, QUESTION, REPLY = 2_000, 500, 3
FRAME = 4  # three tokens and the role


class Shelf:
    """Tells how many tokens there were for articles."""

    def __init__(self) -> None:
        self.room = 0

    def quotes(
        self, question: str, max_tokens: int, counter: TokenCounter, *, deadline_ms: float | None
    ) -> Sequence[Quote]:
        self.room = max_tokens
        return []


def text_of(tokens: int) -> str:
    """A text that makes a message of exactly so many tokens."""
    return "word" + " word" * (tokens - FRAME - 1)


def answer_tokens(turn: int) -> int:
    """Such that a conversation has 1.5 K tokens after turn 1, 10 K at turn 5, 150 K at turn 50."""
    if turn == 1:
        return 1_000
    if turn < 5:
        return 2_334 if turn == 4 else 2_333
    if turn < 50:
        return 2_616 if turn == 49 else 2_611
    return 6_600


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        yield memory.session(user="ada", agent="engineer")


def ask(chat: Chat, shelf: Shelf) -> Context:
    """The user's message is stored first, then the window is filled."""
    chat.add("user", text_of(QUESTION))
    return chat.context(
        text_of(QUESTION), window=WINDOW, system=text_of(SYSTEM), library=shelf, deadline_ms=None
    )


def test_the_conversation_of_document_004(chat: Chat) -> None:
    shelf, history = Shelf(), 0
    assert WINDOW.threshold == 222_822
    expected = {1: 0, 2: 1_500, 5: 10_000, 50: 150_000, 59: 213_900}
    for turn in range(1, 60):
        context = ask(chat, shelf)
        assert context.receipt.part("history").tokens == history
        assert shelf.room == 262_144 - SYSTEM - QUESTION - REPLY - history
        assert context.receipt.compression is None
        assert context.receipt.exact
        assert history == expected.get(turn, history)
        chat.add("assistant", text_of(answer_tokens(turn)))
        history += QUESTION + answer_tokens(turn)
    assert history == 221_000

    # Turn 60: 2,000 + 221,000 + 503 are more than 85 %. Turns 1 to 57 become a summary, the last
    # four messages stay, and what the articles had lost is theirs again.
    context = ask(chat, shelf)
    done = context.receipt.compression
    assert done is not None
    assert done.made_by == "extractive"
    assert len(done.message_ids) == done.summary.messages == 57 * 2
    assert done.tokens_before == 221_000 - 2 * (QUESTION + 6_600)
    assert done.tokens_after <= 1_000
    assert done.saved == done.tokens_before - done.tokens_after
    kept = context.receipt.part("history")
    assert len(kept.ids) == 4
    assert kept.tokens == 2 * (QUESTION + 6_600)
    summary = context.receipt.part("summary").tokens
    assert 0 < summary <= 1_100  # quoted, with its heading
    assert shelf.room == 262_144 - SYSTEM - QUESTION - REPLY - kept.tokens - summary

    # Turn 61 goes on from there; the log has every turn.
    chat.add("assistant", text_of(6_600))
    context = ask(chat, shelf)
    assert context.receipt.compression is None
    assert context.receipt.part("history").tokens == 3 * (QUESTION + 6_600)
    assert context.receipt.part("summary").ids == (done.summary.id,)
    assert len(chat.history()) == 60 * 2 + 1


def test_the_receipt_says_what_document_004_logs(chat: Chat) -> None:
    context = ask(chat, Shelf())
    assert str(context.receipt) == (
        "window 262,144, system 2,000, tools 0, notes 0, summary 0, history 0, memories 0, "
        "articles 0, question 503, left 259,641 (o200k_base)"
    )
