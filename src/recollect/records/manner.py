"""How something is said: about oneself, or as a question."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

# What people tell of themselves by: in English "my", "I've" and "I" with what was done; the like
# in Russian, German, Spanish and French.
_OWN = frozenset(
    "my mine we our i've i'm i'd я мы мой моя моё мои наш наша ich wir mein meine meinen meiner"
    " unser unsere yo mi mis nosotros nosotras nuestro nuestra je mon ma mes nous notre".split()
)
_DONE = frozenset(
    "had was am have went bought got took made saw met found began kept spent left sold gave told"
    " read ran won lost".split()
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
    words = said.lower().replace("’", "'").split()
    count = sum(map(_OWN.__contains__, words))
    if "i" in words:
        pairs = pairwise(words)
        count += sum(1 for one, two in pairs if one == "i" and (two in _DONE or two[-2:] == "ed"))
    if not said.isascii():
        count += said.count("我") + said.count("咱")
    return Manner(min(count, _ENOUGH) / _ENOUGH, "?" in said or "？" in said)
