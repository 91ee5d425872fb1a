"""The formats that are imported, each a module, in the order in which they are tried."""

from memorist.transfer.items import Format

from . import chatgpt, claude, claude_code, codex, langchain_tables, langgraph_store

FORMATS: tuple[Format, ...] = (
    *(chatgpt, claude, claude_code, codex),
    *(langchain_tables, langgraph_store),
)
