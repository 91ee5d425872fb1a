"""After each story what is true, what recall finds first, and what a window shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from memorist import Memory
from tests.stories.stories import STORIES, Question, Story, check


def first_that_tells(texts: Sequence[str], question: Question) -> str:
    """The first text with a word of the answer or of what comes after it."""
    words = [word.lower() for word in (question.answer, *question.over, *question.later)]
    return next(text for text in texts if any(word in text.lower() for word in words))


def quotes(content: str) -> list[str]:
    """The quotes of a window, each with the line above it, which says whose it is and till when."""
    return re.findall(r"^(?!>).*\n(?:>.*(?:\n|$))+", content, re.MULTILINE)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_holds_is_true_and_comes_before_what_is_over(story: Story, tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db", clock=lambda: story.end) as memory:
        story.tell(memory)
        check(memory, story)
        for question in story.questions:
            hits = memory.recall(question.ask, user="ada", deadline_ms=None).hits
            first = first_that_tells([hit.text for hit in hits], question)
            assert question.answer.lower() in first.lower()
            window = memory.context(question.ask, user="ada", max_tokens=2_000, deadline_ms=None)
            quoted = quotes(str(window.messages[0]["content"]))
            assert any(question.answer.lower() in quote.lower() for quote in quoted)
            for quote in quoted:
                is_over = any(word.lower() in quote.lower() for word in question.over)
                if is_over and question.answer.lower() not in quote.lower():
                    assert "until" in quote or "history" in quote
