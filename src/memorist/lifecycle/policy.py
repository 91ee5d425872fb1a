"""The policy: what may become a memory, how important it is, and how long it stays. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memorist.language.lexicon import category_of, tags_of
from memorist.language.secrets import find_secrets
from memorist.lifecycle.candidate import Candidate
from memorist.lifecycle.settings import DEFAULT_POLICY, Policy
from memorist.records.memory_item import MemoryItem
from memorist.records.message import Message


def refusal(message: Message, *, place: int, policy: Policy = DEFAULT_POLICY) -> str | None:
    """Why a message may not become a memory, or None; `place` is its number in the session."""
    length = len(message.text)
    if message.unfinished:
        return "it is still being written"
    if place < policy.min_messages:
        return "the session has just begun"
    if length < policy.min_chars:
        return "it is too short"
    if length > policy.max_chars:
        return "it is too long to be one thought"
    if find_secrets(message.text):
        return "it holds a secret"
    return None


def has_room(made: int, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether another memory may be made when `made` came of the last messages."""
    return made < policy.share * policy.window


def classify(text: str, *, has_tools: bool = False) -> str:
    """The category of a text: the first in order of precedence."""
    return category_of(text) or ("task_history" if has_tools else "knowledge")


def importance_of(category: str, policy: Policy = DEFAULT_POLICY) -> float:
    """The importance of a new memory of this category."""
    return min(round(policy.base_importance + policy.boosts.get(category, 0.0), 2), 1.0)


def classified(
    candidate: Candidate, *, has_tools: bool = False, policy: Policy = DEFAULT_POLICY
) -> Candidate:
    """The candidate with its category, importance and tags; working memory gets its end."""
    by_words = classify(candidate.text, has_tools=has_tools)
    category = candidate.category if by_words == "knowledge" else by_words
    expires_at, importance = candidate.expires_at, candidate.importance
    if candidate.kind == "working" and expires_at is None:
        expires_at = candidate.said_at + policy.working_for
    return replace(
        candidate,
        category=category,
        importance=importance_of(category, policy) if importance is None else importance,
        tags=tuple(dict.fromkeys((*candidate.tags, *tags_of(candidate.text)))),
        expires_at=expires_at,
    )


def is_expired(item: MemoryItem, now: datetime) -> bool:
    """Whether a memory has expired."""
    return item.expires_at is not None and item.expires_at <= now


def should_promote(item: MemoryItem, now: datetime, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether a short-term memory becomes long-term: by importance, or by use over time."""
    if item.tier == "long" or item.kind == "working":
        return False
    proven = item.uses >= policy.promote_uses and now - item.created_at >= policy.promote_age
    return item.importance >= policy.promote_importance or proven


def surplus(items: Sequence[MemoryItem], policy: Policy = DEFAULT_POLICY) -> list[MemoryItem]:
    """The short-term memories beyond the limit: the least recently used."""
    short = [item for item in items if item.tier == "short"]
    short.sort(key=lambda item: (item.used_at or item.created_at, item.id))
    return short[: max(len(short) - policy.short_term, 0)]
