"""docs/documents.md lists what the documents name, and each row is used by a test."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.support.pages import ROOT

PAGE = (ROOT / "docs" / "documents.md").read_text("utf-8")
DOCUMENTS = ["000", "001", "002", "003", "004"]


def listed(document: str) -> list[str]:
    """The names in the first column of the document's table."""
    section = re.search(rf"^## {document} .*?(?=^## |\Z)", PAGE, re.M | re.S)
    assert section is not None
    return re.findall(r"^\| `([^`]+)` \|", section[0], re.M)


def used(document: str) -> set[str]:
    """The names that the tests of the document say they use."""
    module = import_module(f"tests.documents.test_{document}")
    return {
        name
        for it, test in vars(module).items()
        if it.startswith("test_")
        for name in getattr(test, "document_names", ())
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_row_is_used_by_a_test(document: str) -> None:
    missing = sorted(set(listed(document)) - used(document))
    assert not missing, f"no test uses {missing}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_name_that_a_test_uses_has_one_row(document: str) -> None:
    rows = listed(document)
    unlisted = sorted(used(document) - set(rows))
    assert not unlisted, f"no row has {unlisted}"
    assert sorted(rows) == sorted(set(rows))
