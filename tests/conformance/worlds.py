"""Scopes, messages and texts for the conformance suite."""

from __future__ import annotations

from collections.abc import Sequence

from memorist.records.log import Job, LogEntry
from memorist.records.message import AgentCallMsg, Message, ToolCallMsg
from memorist.records.query import Match, Term
from memorist.records.scope import Scope
from memorist.records.values import new_id
from memorist.store.base import Store
from tests.support.hostile import HOSTILE_IDS

HOSTILE_USERS = ["", *HOSTILE_IDS]

ODD_TEXTS = {
    "empty": "",
    "space": " \t\r\n ",
    "quotes": """'"`''""`` ' " \\ \\\\ \\n %s %(x)s :name ? $1 {} {{}}""",
    "control": "".join(chr(code) for code in range(1, 32)) + "\x7f\x80\x9f",
    "right-to-left": "שלום \u202eevil\u202c مرحبا",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽",
    "combining": "e\u0301 vs \u00e9, Å vs A\u030a, ﬁ",
    "chinese": "我三月搬到了柏林。",
    "beyond the basic plane": "𝕳𝖊𝖑𝖑𝖔 \U0010ffff \ufffe \ufeff",
    "sql": "Robert'); DROP TABLE chat_message_history;--",
    "fts": 'NEAR("a" b, 5) AND NOT c* OR ^d : {x y}',
    "html": "<script>alert(1)</script>&amp;",
    "json": '{"tool_call_id": "x", "memorist": "{}"}',
    "escapes": "\\u0000 \\ud800 \\x00",
    "long word": "a" * 50_000,
}


def fresh_scope() -> Scope:
    """A session of a user in a tenant that no other test has."""
    return Scope(tenant=new_id(), user="alice", session="talk")


def claim_all(store: Store, scope: Scope, lease_seconds: float = 600) -> list[Job]:
    """Claim what is due until jobs of the scope come up. Other tests' stay claimed: they are many,
    and those whose lease ends would be taken one by one.
    """
    while jobs := store.claim(limit=10_000, lease_seconds=86_400):
        if own := [job for job in jobs if job.scope.owner == scope.owner]:
            for job in own:
                store.renew(job, lease_seconds=lease_seconds)
            return own
    return []


def texts(entries: Sequence[LogEntry]) -> list[str]:
    """What the entries say."""
    return [entry.message.text for entry in entries]


def worded(store: Store, scope: Scope, terms: Sequence[Term], *, limit: int) -> list[Match]:
    """What a search by words finds, read."""
    return store.read(scope, [it.passage for it in store.match_text(scope, terms, limit=limit)])


def near(
    store: Store, scope: Scope, embedder: str, vector: Sequence[float], *, limit: int
) -> list[Match]:
    """What a search by meaning finds, read."""
    found = store.match_vector(scope, embedder, vector, limit=limit)
    return store.read(scope, [it.passage for it in found])


def rich_messages() -> list[Message]:
    """One message of every shape."""
    call = ToolCallMsg("fc_1", "call_1", "function", "search", '{ "q": "Zürich",\n "n": 1.0 }')
    broken = ToolCallMsg("call_2", "call_2", "function", "broken", '{"cut off": ')
    odd = ToolCallMsg("call_3", "call_3", "custom", "free", '"just \\u0000 text"')
    return [
        Message("system", "Be kind."),
        Message("user", "Hello", name="Ada"),
        Message("user", "Look", images=["photo.png", "https://example.org/cat.jpg"]),
        Message("assistant", None, tool_calls=[call, broken, odd]),
        Message("assistant", "Let me ask", agent_calls=[AgentCallMsg("critic", {"depth": 2})]),
        Message("tool", '{"tool_call_id": "call_1", "output": 3}', name="search"),
        Message("tool", "42", tool_call_id="call_2", structured_data={"duration_ms": 12.5}),
        Message("assistant", {"thought": "hm", "next_action": "final_response"}),
        Message("user", [{"type": "text", "text": "parts"}, {"type": "x", "sizes": [1e23, 0.1]}]),
        Message("assistant", None),
        Message("assistant", ""),
        Message("user", {}),
        Message("user", []),
    ]
