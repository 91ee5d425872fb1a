"""How something is said: telling of oneself and of what happened, or as a question."""

from __future__ import annotations

import re
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
# What says when it happened, and what says that it is yet to be.
_PAST = frozenset(
    word + mark
    for word in (
        "recently last ago yesterday today already недавно вчера сегодня назад прошлой прошлом"
        " gestern heute neulich kürzlich letzte letzten letzter letztes ayer hoy recientemente"
        " pasado pasada aujourd'hui récemment dernier dernière"
    ).split()
    for mark in ("", ".", ",", "!", "?", ";", ":")
)
_TO_BE = frozenset({"i'll", "we'll"})
_FIGURE = re.compile(r"\d")
_ENOUGH = 3
_MOST = 7
_LOOK_AT_CHARS = 4_000


class Manner(NamedTuple):
    """`own` says how much the one who says it tells, of themselves and of what happened: up to 1,
    and below 0 where all it tells is what they will do.
    """

    own: float = 0.0
    asks: bool = False


def manner_of(text: str) -> Manner:
    """How a text is said, by its words alone.

    Questions about the past are answered by what is definite: a figure or a time counts as
    much as two words of oneself, and against it counts what is only meant to be done.
    """
    said = text[:_LOOK_AT_CHARS]
    words = said.lower().replace("’", "'").split()
    count = sum(map(_OWN.__contains__, words))
    if "i" in words:
        pairs = pairwise(words)
        count += sum(1 for one, two in pairs if one == "i" and (two in _DONE or two[-2:] == "ed"))
    if not said.isascii():
        count += said.count("我") + said.count("咱")
    told = min(count, _ENOUGH)
    if _FIGURE.search(said):
        told += 2
    if not _PAST.isdisjoint(words):
        told += 2
    if not _TO_BE.isdisjoint(words):
        told -= 2
    return Manner(told / _MOST, "?" in said or "？" in said)
