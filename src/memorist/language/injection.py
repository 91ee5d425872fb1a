"""Prompt injection: texts that try to command the model that reads them.

The patterns stand in `data/<language>/injection.toml`, by the way in which they command. Those
under `always` are refused whoever says them; those under `untrusted` only where they come from
a web page, a tool or an import: a user may well ask an assistant to answer in German from now on.
"""

from __future__ import annotations

import re
from functools import cache

from memorist.language.text import LANGUAGES, data

LOOK_AT_CHARS = 20_000


def injections(text: str, *, trusted: bool = True) -> list[str]:
    """The ways in which a text tries to command its reader, by name."""
    start = text[:LOOK_AT_CHARS]
    kinds = ("always",) if trusted else ("always", "untrusted")
    return [
        name for kind in kinds for name, pattern in _patterns(kind).items() if pattern.search(start)
    ]


@cache
def _patterns(kind: str) -> dict[str, re.Pattern[str]]:
    """One pattern for each way, over all languages; compiled when first needed."""
    lines: dict[str, list[str]] = {}
    for code in LANGUAGES:
        for name, written in data(code, "injection")[kind].items():
            lines.setdefault(name, []).extend(filter(None, written.splitlines()))
    return {
        name: re.compile("|".join(each), re.IGNORECASE | re.MULTILINE)
        for name, each in lines.items()
    }
