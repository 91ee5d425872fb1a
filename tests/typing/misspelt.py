"""Misspelt methods and keywords: each line must be an error for mypy and for Pyright.

Both checkers refuse a comment that silences nothing, so `make lint` fails where a mistake passes.
"""

from __future__ import annotations

from memorist import Memory


def misspelt(m: Memory) -> None:
    m.recal("x", usr=3)  # type: ignore[attr-defined]  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    m.recall("x", usr="ada")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    m.recall("x", user=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
