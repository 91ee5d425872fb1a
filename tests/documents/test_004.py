"""Document 004, memory and context: its names and its examples."""

from __future__ import annotations

from memorist import Window
from tests.documents.names import uses


@uses("memory_compression_threshold_pct", "max_tokens_before_summary", "context_window")
@uses("memory_compression_target_tokens", "messages_to_keep")
def test_the_defaults_of_compression_are_the_documents() -> None:
    window = Window(max_tokens=262_144)
    assert window.threshold == 222_822  # 85 %
    assert window.summary_tokens == 1_000
    assert window.keep_last == 4
