"""Recollect: the memory of AI agents."""

import typing

from recollect.chat import Chat
from recollect.context.window import Context, Part, Receipt, Window
from recollect.errors import (
    BadAnswerError,
    ConfigError,
    ConflictError,
    DimensionError,
    ForbiddenError,
    HeldError,
    ImageError,
    InvalidError,
    LeaseLostError,
    MessageError,
    MissingExtraError,
    NotFoundError,
    ProviderError,
    RateLimitedError,
    RecollectError,
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
from recollect.lifecycle.candidate import Candidate, Claim
from recollect.lifecycle.retention import Retention
from recollect.lifecycle.thinking import Policy, Thinking
from recollect.memory import Memory, open_store
from recollect.providers.chat_model import ChatModel, Reply
from recollect.providers.embedder import Embedder
from recollect.providers.minilm import MiniLM
from recollect.providers.reranker import Reranker
from recollect.providers.tokenizer import Tokenizer
from recollect.recall.fusion import Ranking
from recollect.records.article import Article
from recollect.records.change import (
    Add,
    Change,
    Expire,
    Promote,
    Reinforce,
    Restore,
    Retract,
    Supersede,
)
from recollect.records.fact import Fact
from recollect.records.hold import Hold
from recollect.records.log import Appended, Job, LogEntry
from recollect.records.memory_item import MemoryItem
from recollect.records.message import (
    AgentCallMsg,
    Message,
    MessageContent,
    ToolCallMsg,
    extract_action_from_message,
)
from recollect.records.note import Note
from recollect.records.query import (
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
from recollect.records.scope import Scope
from recollect.records.session import Session
from recollect.records.summary import Summary
from recollect.said import Remembered
from recollect.store.base import Store
from recollect.store.sqlite.store import SqliteStore
from recollect.stream import Stream

if typing.TYPE_CHECKING:
    from recollect.aio import AsyncChat, AsyncMemory, AsyncStream
    from recollect.aio_views import AsyncLibrary, AsyncNotebook
    from recollect.context.compression.compress import Compression
    from recollect.remote.client import Client
    from recollect.views.conversation import BaseMemory, ConversationMemory
    from recollect.views.knowledge import KGMemory
    from recollect.views.library import Library
    from recollect.views.manager import MemoryManager
    from recollect.views.notebook import Notebook

__version__ = "0.1.0"

__all__ = [
    "Add",
    "AgentCallMsg",
    "Appended",
    "Article",
    "AsyncChat",
    "AsyncLibrary",
    "AsyncMemory",
    "AsyncNotebook",
    "AsyncStream",
    "BadAnswerError",
    "BaseMemory",
    "Candidate",
    "Change",
    "Chat",
    "ChatModel",
    "Claim",
    "Client",
    "Compression",
    "ConfigError",
    "ConflictError",
    "Context",
    "ConversationMemory",
    "DimensionError",
    "Embedder",
    "Expire",
    "Fact",
    "Filters",
    "ForbiddenError",
    "Forgotten",
    "Found",
    "HeldError",
    "Hit",
    "Hold",
    "ImageError",
    "InvalidError",
    "Job",
    "KGMemory",
    "LeaseLostError",
    "Library",
    "LogEntry",
    "Match",
    "Memory",
    "MemoryItem",
    "MemoryManager",
    "Message",
    "MessageContent",
    "MessageError",
    "MiniLM",
    "MissingExtraError",
    "NotFoundError",
    "Note",
    "Notebook",
    "Part",
    "Passage",
    "Policy",
    "Promote",
    "ProviderError",
    "Query",
    "Ranking",
    "RateLimitedError",
    "Recall",
    "Receipt",
    "RecollectError",
    "RecordError",
    "Reinforce",
    "Remembered",
    "Reply",
    "Reranker",
    "Restore",
    "Retention",
    "Retract",
    "SchemaError",
    "Scope",
    "ScopeError",
    "Session",
    "SqliteStore",
    "Store",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "Stream",
    "Summary",
    "Supersede",
    "Thinking",
    "Tokenizer",
    "TooLargeError",
    "ToolCallMsg",
    "UnauthorizedError",
    "Why",
    "Window",
    "WindowError",
    "__version__",
    "extract_action_from_message",
    "open_store",
]

_WHEN_ASKED_FOR = {
    "AsyncChat": "recollect.aio",
    "AsyncLibrary": "recollect.aio_views",
    "AsyncMemory": "recollect.aio",
    "AsyncNotebook": "recollect.aio_views",
    "AsyncStream": "recollect.aio",
    "BaseMemory": "recollect.views.conversation",
    "Client": "recollect.remote.client",
    "Compression": "recollect.context.compression.compress",
    "ConversationMemory": "recollect.views.conversation",
    "KGMemory": "recollect.views.knowledge",
    "Library": "recollect.views.library",
    "MemoryManager": "recollect.views.manager",
    "Notebook": "recollect.views.notebook",
}


def __getattr__(name: str) -> object:
    """Names whose modules are imported when they are first used."""
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_WHEN_ASKED_FOR[name]), name)
    return found
