"""The formats that are imported, each a module, in the order in which they are tried."""

from memorist.transfer.items import Format

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

FORMATS: tuple[Format, ...] = (
    *(chatgpt, claude, claude_code, codex),
    *(langchain_tables, langgraph_store),
    *(mcp_memory, openai_jsonl, mem0, markdown),
)
