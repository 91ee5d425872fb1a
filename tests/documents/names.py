"""Which names of a document a test uses; `test_table.py` compares them with docs/documents.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def uses(*names: str) -> Callable[[Test], Test]:
    """Say that the test uses these names, each as its row of docs/documents.md has it."""

    def mark(test: Test) -> Test:
        earlier = getattr(test, "document_names", ())
        test.document_names = (*names, *earlier)  # type: ignore[attr-defined]
        return test

    return mark
