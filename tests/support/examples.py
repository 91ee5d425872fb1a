"""How many examples a property is tried with."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("MEMORIST_PROVE"))


def examples(many: int) -> int:
    """So many in `make prove`; in `make test` a quarter, which are the same each time."""
    return many if LONG else many // 4
