"""How something is said: about oneself, or as a question."""

from __future__ import annotations

import re
from typing import NamedTuple

# What people tell of themselves: "I've", "I moved", "my", "we", and the like elsewhere.
_OWN = re.compile(
    r"\b(?:I['’](?:ve|m|d)|I (?:had|was|am|have|\w+ed|went|bought|got|took|made|saw|met|found|began"
    r"|kept|spent|left|sold|gave|told|read|ran|won|lost)|[Mm]y|[Mm]ine|[Ww]e|[Oo]ur"
    r"|[Яя]|[Мм]о[йяеёию]|[Мм]ы|[Нн]аш\w?|[Ii]ch|[Mm]eine?[rmns]?|[Ww]ir|[Uu]nsere?\w?"
    r"|[Yy]o|[Mm]is?|[Nn]osotr[oa]s|[Nn]uestr[oa]s?|[Jj]e|[Mm]on|[Mm]es|[Nn]ous|[Nn]otre)\b|[我咱]"
)
_ENOUGH = 3
_LOOK_AT_CHARS = 4_000


class Manner(NamedTuple):
    """`own` says how much of it is about the one who says it, from 0 to 1."""

    own: float = 0.0
    asks: bool = False


def manner_of(text: str) -> Manner:
    """How a text is said, by its words alone."""
    said = text[:_LOOK_AT_CHARS]
    own = min(len(_OWN.findall(said)), _ENOUGH) / _ENOUGH
    return Manner(own, "?" in said or "？" in said)
