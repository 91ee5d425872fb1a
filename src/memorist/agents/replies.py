"""Replies: named after the question that they answer, so that a second try finds the first."""

from __future__ import annotations

import uuid

_NAMES = uuid.UUID("0c7e6f5c-6f0e-4c0a-9d0b-52a1f6f0c3d4")


def reply_id(asked_id: str, number: int) -> str:
    """The id of what a model says to a question: each call of tools, and at last the answer."""
    return str(uuid.uuid5(_NAMES, f"{number} {asked_id}"))
