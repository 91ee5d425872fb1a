"""The formats that are imported, each a module, in the order in which they are tried."""

from collections.abc import Iterator
from typing import Protocol

from memorist.transfer.items import Item
from memorist.transfer.source import Source

from . import (
    chatgpt,
    claude,
    claude_code,
    codex,
    langchain_tables,
    langgraph_store,
    markdown,
    mcp_memory,
    mem0,
    openai_jsonl,
)


class Format(Protocol):
    """A module of this package."""

    name: str  # as `--format` takes it
    title: str  # as reports show it

    def recognises(self, source: Source) -> bool:
        """Whether a source looks like this format; never raises."""
        ...

    def read(self, source: Source) -> Iterator[Item]:
        """What is in it, one by one; `RecordError` with the place where it is broken or cut off."""
        ...


FORMATS: tuple[Format, ...] = (
    *(chatgpt, claude, claude_code, codex),
    *(langchain_tables, langgraph_store),
    *(mcp_memory, openai_jsonl, mem0, markdown),
)
