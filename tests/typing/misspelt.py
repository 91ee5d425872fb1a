"""Misspelt methods and keywords: each line must be an error for mypy and for Pyright.

Both checkers refuse a comment that silences nothing, so `make lint` fails where a mistake passes.
"""

from __future__ import annotations

import memorist
from memorist import AsyncMemory, Memory


def misspelt(m: Memory) -> None:
    m.recal("x", usr=3)  # type: ignore[attr-defined]  # pyright: ignore
    m.recall("x", usr="ada")  # type: ignore[call-arg]  # pyright: ignore
    m.recall("x", user=3)  # type: ignore[arg-type]  # pyright: ignore
    m.remember("Hi", user="ada", sesion="s")  # type: ignore[call-arg]  # pyright: ignore
    m.facts.add("Ada", "likes", "tea", user="a", singel=True)  # type: ignore[call-arg]  # pyright: ignore
    m.memories.add("Ada likes tea", user="ada", catgory="x")  # type: ignore[call-arg]  # pyright: ignore
    m.jobs.lst(user="ada")  # type: ignore[attr-defined]  # pyright: ignore
    m.session(user="ada").add("user", "Hi", nmae="Ada")  # type: ignore[call-arg]  # pyright: ignore
    m.session(user="ada").contxt("Plan")  # type: ignore[attr-defined]  # pyright: ignore
    m.context("Plan", user="ada", max_token=100)  # type: ignore[call-arg]  # pyright: ignore
    memorist.connect("http://127.0.0.1:7077", kee="mk_")  # type: ignore[call-arg]  # pyright: ignore
    Memory(thinking=None)  # type: ignore[call-arg]  # pyright: ignore


async def misspelt_too(m: AsyncMemory) -> None:
    await m.recal("x")  # type: ignore[attr-defined]  # pyright: ignore
    await m.recall("x", usr="ada")  # type: ignore[call-arg]  # pyright: ignore
    await m.facts.add("Ada", "likes", "tea", user="a", singel=True)  # type: ignore[call-arg]  # pyright: ignore
