"""Indexing in a transaction: messages and derived records are cut into passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from memorist.language.signals import Signals, signals_of
from memorist.language.text import passages
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE, from_micros, to_micros
from memorist.store.engine import Db
from memorist.store.jobs import enqueue

DAY = 86_400_000_000  # microseconds
EMPTY = [(0, 0)]
# A transcript's line: one to three capitalised words, a colon, and what was said.
_SPOKEN = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): \S")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()


class Piece(NamedTuple):
    """A span of a text, and the words it is found by."""

    start: int
    stop: int
    words: str


def speaker_of(message: Message) -> str | None:
    """Who speaks: the message's name, or the one a transcript's line begins with."""
    if message.name:
        return message.name
    if ": " in message.text[:96] and (found := _SPOKEN.match(message.text)):
        name = found[1]
        return name if all(part[0].isupper() for part in name.split()) else None
    return None


def spans_of(text: str) -> list[tuple[int, int]]:
    """The spans of a message's passages; blank ones are left out.

    An empty message has an empty span, which no search finds, so that the text it gets later does
    not reuse ids.
    """
    spans = [(start, stop) for start, stop in passages(text) if text[start:stop].strip()]
    return spans or EMPTY


@lru_cache(maxsize=1_024)
def date_words(day: int) -> str:
    """A day since 1970 in words, which find the messages of that day."""
    moment = from_micros(day * DAY)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def index_messages(
    db: Db,
    owner: str,
    messages: Sequence[tuple[int, Message, int]],
    *,
    agent: str,
    session: Any,
    first_piece: int = 0,
) -> None:
    """Index messages, given with their seqs and moments, by their words."""
    rows, speakers = [], set()
    for seq, message, created_at in messages:
        speaker, text = speaker_of(message), message.text
        signals = signals_of(text) if message.role == "user" else Signals()
        spans = spans_of(text)
        about = f"{speaker or ''} {date_words(created_at // DAY)} " if spans != EMPTY else ""
        if speaker:
            speakers.add(speaker)
        for piece, (start, stop) in enumerate(spans):
            rows.append(
                {
                    "owner": owner,
                    "kind": "message",
                    "agent": agent,
                    "session": session,
                    "view_id": None,
                    "id": seq * PASSAGES_PER_MESSAGE + first_piece + piece,
                    "start_at": start,
                    "stop_at": stop,
                    "created_at": created_at,
                    "role": message.role,
                    "speaker": speaker,
                    "self_reference": signals.self_reference,
                    "is_question": int(signals.is_question),
                    "words": text[start:stop] if piece else f"{about}{text[start:stop]}",
                }
            )
    db.add_passages(rows)
    if speakers:
        db.many("add_speaker", [{"owner": owner, "speaker": name} for name in sorted(speakers)])


def index_view(
    db: Db, scope: Scope, kind: str, view_id: str, text: str, created_at: datetime
) -> None:
    """Index a derived record by its words, and queue it for its vectors."""
    pieces = [Piece(start, stop, text[start:stop]) for start, stop in passages(text)]
    index_pieces(db, scope, kind, view_id, pieces, created_at)


def index_pieces(
    db: Db, scope: Scope, kind: str, view_id: str, pieces: Sequence[Piece], created_at: datetime
) -> None:
    """The same for a text that is cut into pieces already, each with the words that find it."""
    pieces = [piece for piece in pieces if piece.words.strip()]
    if not pieces:
        return
    session = scope.session and db.row("find_session", **scope.columns())
    shared = {
        "owner": scope.owner,
        "kind": kind,
        "agent": scope.agent or "",
        "session": session[0] if session else None,
        "view_id": view_id,
        "created_at": to_micros(created_at),
        "role": None,
        "speaker": None,
        "self_reference": 0.0,
        "is_question": 0,
    }
    ids = db.next_view_passages(len(pieces))
    db.add_passages(
        [
            {**shared, "id": id_, "start_at": start, "stop_at": stop, "words": words}
            for id_, (start, stop, words) in zip(ids, pieces, strict=True)
        ]
    )
    enqueue(db, scope.owner, "vectors", min(ids), max(ids))
