"""What each part of the ranking is worth: the default, then the same without it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from memorist.recall.fusion import Ranking

NOT_A_PART = {"half_life_days", "short_chars", "reranker"}  # the shape of one, or no part of ours
Variant = tuple[str, dict[str, Any]]
"""A label, and the arguments of the Memory that is measured under it."""


def variants() -> list[Variant]:
    """The ranking less one part at a time; `make bench-recall` sets them beside the default."""
    default = Ranking()
    parts = [field.name for field in fields(Ranking) if field.name not in NOT_A_PART]
    less: list[dict[str, Any]] = [{part: 0} for part in parts if getattr(default, part)]
    return [
        (f"without {next(iter(change))}", {"ranking": replace(default, **change)})
        for change in less
    ]
