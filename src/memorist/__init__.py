"""Memorist: the memory of AI agents."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memorist.aio import AsyncChat, AsyncLibrary, AsyncMemory, AsyncNotebook, AsyncStream
    from memorist.chat import Chat, Stream
    from memorist.client import Client, connect
    from memorist.context.window import Context, Part, Receipt, Window
    from memorist.errors import (
        BadAnswerError,
        ConfigError,
        ConflictError,
        DimensionError,
        ForbiddenError,
        ImageError,
        InvalidError,
        LeaseLostError,
        MemoristError,
        MessageError,
        MissingExtraError,
        NotFoundError,
        ProviderError,
        RateLimitedError,
        RecordError,
        SchemaError,
        ScopeError,
        StoreBusyError,
        StoreDamagedError,
        StoreError,
        StoreFullError,
        StoreUnavailableError,
        TooLargeError,
        UnauthorizedError,
        WindowError,
    )
    from memorist.lifecycle.settings import Extraction, Policy, Retention
    from memorist.memory import Memory
    from memorist.providers.chat_model import ChatModel, Reply
    from memorist.providers.embedder import Embedder, Reranker
    from memorist.providers.minilm import MiniLM
    from memorist.providers.tokenizer import Tokenizer
    from memorist.recall.fusion import Ranking
    from memorist.records.documents import Article, Compression, Note, Summary
    from memorist.records.memories import (
        Add,
        Candidate,
        Change,
        Claim,
        Expire,
        Fact,
        MemoryItem,
        Promote,
        Reinforce,
        Restore,
        Retract,
        Supersede,
    )
    from memorist.records.message import (
        AgentCallMsg,
        Appended,
        Job,
        LogEntry,
        Message,
        MessageContent,
        Remembered,
        Session,
        ToolCallMsg,
        extract_action_from_message,
    )
    from memorist.records.query import (
        Filters,
        Forgotten,
        Found,
        Hit,
        Match,
        Passage,
        Query,
        Recall,
        Why,
    )
    from memorist.records.scope import Scope
    from memorist.runtime import open_store
    from memorist.store.base import Store
    from memorist.store.sqlite.store import SqliteStore
    from memorist.views.controller import (
        ContextCompressor,
        LongTermMemory,
        MemoryController,
        ShortTermMemory,
    )
    from memorist.views.conversation import BaseMemory, ConversationMemory
    from memorist.views.knowledge import KGMemory, MemoryManager
    from memorist.views.library import Library
    from memorist.views.notebook import Notebook

__version__ = "0.1.0"

# fmt: off
__all__ = [
    "Add", "AgentCallMsg", "Appended", "Article", "AsyncChat", "AsyncLibrary", "AsyncMemory",
    "AsyncNotebook", "AsyncStream", "BadAnswerError", "BaseMemory", "Candidate", "Change",
    "Chat", "ChatModel", "Claim", "Client", "Compression", "ConfigError", "ConflictError",
    "Context", "ContextCompressor", "ConversationMemory", "DimensionError", "Embedder",
    "Expire", "Extraction", "Fact", "Filters", "ForbiddenError", "Forgotten", "Found", "Hit",
    "ImageError", "InvalidError", "Job", "KGMemory", "LeaseLostError", "Library", "LogEntry",
    "LongTermMemory", "Match", "MemoristError", "Memory", "MemoryController", "MemoryItem",
    "MemoryManager", "Message", "MessageContent", "MessageError", "MiniLM", "MissingExtraError",
    "NotFoundError", "Note", "Notebook", "Part", "Passage", "Policy", "Promote",
    "ProviderError", "Query", "Ranking", "RateLimitedError", "Recall", "Receipt", "RecordError",
    "Reinforce", "Remembered", "Reply", "Reranker", "Restore", "Retention", "Retract",
    "SchemaError", "Scope", "ScopeError", "Session", "ShortTermMemory", "SqliteStore", "Store",
    "StoreBusyError", "StoreDamagedError", "StoreError", "StoreFullError",
    "StoreUnavailableError", "Stream", "Summary", "Supersede", "Tokenizer", "TooLargeError",
    "ToolCallMsg", "UnauthorizedError", "Why", "Window", "WindowError", "__version__",
    "connect", "extract_action_from_message", "open_store",
]

_MODULES = {
    "aio": "AsyncChat AsyncLibrary AsyncMemory AsyncNotebook AsyncStream",
    "chat": "Chat Stream",
    "client": "Client connect",
    "context.window": "Context Part Receipt Window",
    "errors":
        "BadAnswerError ConfigError ConflictError DimensionError ForbiddenError ImageError "
        "InvalidError LeaseLostError MemoristError MessageError MissingExtraError "
        "NotFoundError ProviderError RateLimitedError RecordError SchemaError ScopeError "
        "StoreBusyError StoreDamagedError StoreError StoreFullError StoreUnavailableError "
        "TooLargeError UnauthorizedError WindowError",
    "lifecycle.settings": "Extraction Policy Retention",
    "memory": "Memory",
    "providers.chat_model": "ChatModel Reply",
    "providers.embedder": "Embedder Reranker",
    "providers.minilm": "MiniLM",
    "providers.tokenizer": "Tokenizer",
    "recall.fusion": "Ranking",
    "records.documents": "Article Compression Note Summary",
    "records.memories":
        "Add Candidate Change Claim Expire Fact MemoryItem Promote Reinforce Restore Retract "
        "Supersede",
    "records.message":
        "AgentCallMsg Appended Job LogEntry Message MessageContent Remembered Session "
        "ToolCallMsg extract_action_from_message",
    "records.query": "Filters Forgotten Found Hit Match Passage Query Recall Why",
    "records.scope": "Scope",
    "runtime": "open_store",
    "store.base": "Store",
    "store.sqlite.store": "SqliteStore",
    "views.conversation": "BaseMemory ConversationMemory",
    "views.controller": "ContextCompressor LongTermMemory MemoryController ShortTermMemory",
    "views.knowledge": "KGMemory MemoryManager",
    "views.library": "Library",
    "views.notebook": "Notebook",
}
# fmt: on


def __getattr__(name: str) -> object:
    """A public name, whose module is imported now: `memorist --help` needs none of them."""
    for module, names in _MODULES.items():
        if name in names.split():
            value: object = getattr(import_module(f"memorist.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'memorist' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
