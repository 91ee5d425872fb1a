"""Recollect: the memory of AI agents."""

from recollect.aio import AsyncChat, AsyncMemory, AsyncStream
from recollect.chat import Chat
from recollect.errors import (
    BadAnswerError,
    ConfigError,
    ConflictError,
    DimensionError,
    HeldError,
    ImageError,
    InvalidError,
    LeaseLostError,
    MessageError,
    MissingExtraError,
    NotFoundError,
    ProviderError,
    RecollectError,
    RecordError,
    SchemaError,
    ScopeError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    WindowError,
)
from recollect.lifecycle.candidate import Candidate, Claim
from recollect.lifecycle.retention import Retention
from recollect.lifecycle.thinking import Policy, Thinking
from recollect.memory import Memory, Remembered, open_store
from recollect.providers.chat_model import ChatModel, Reply
from recollect.providers.embedder import Embedder
from recollect.providers.minilm import MiniLM
from recollect.providers.reranker import Reranker
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
from recollect.store.base import Store
from recollect.store.sqlite.store import SqliteStore
from recollect.stream import Stream
from recollect.views.conversation import BaseMemory, ConversationMemory
from recollect.views.knowledge import KGMemory
from recollect.views.manager import MemoryManager

__version__ = "0.1.0"

__all__ = [
    "Add",
    "AgentCallMsg",
    "Appended",
    "Article",
    "AsyncChat",
    "AsyncMemory",
    "AsyncStream",
    "BadAnswerError",
    "BaseMemory",
    "Candidate",
    "Change",
    "Chat",
    "ChatModel",
    "Claim",
    "ConfigError",
    "ConflictError",
    "ConversationMemory",
    "DimensionError",
    "Embedder",
    "Expire",
    "Fact",
    "Filters",
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
    "Passage",
    "Policy",
    "Promote",
    "ProviderError",
    "Query",
    "Ranking",
    "Recall",
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
    "Supersede",
    "Thinking",
    "ToolCallMsg",
    "Why",
    "WindowError",
    "__version__",
    "extract_action_from_message",
    "open_store",
]
