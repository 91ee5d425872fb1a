"""Indexing: texts are cut into passages and stemmed, and then stored in a transaction.

Writers of other users wait for that transaction, so nothing is computed in it: a `Preparation`
does that before it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from memorist.errors import TooLargeError
from memorist.language.signals import Signals, asks_back, signals_of
from memorist.language.text import passages, stems
from memorist.records.message import ORDINARY, Message
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE, from_micros, to_micros
from memorist.store.engine import Db, Engine, Piece
from memorist.store.jobs import enqueue

MAX_TEXT_BYTES = 32_000_000  # of notes, articles and entries, and of files that are read
MAX_MESSAGE_BYTES = 1_048_576  # of a message's text in UTF-8, unless a setting says otherwise
DAY = 86_400_000_000  # microseconds
EMPTY = [(0, 0)]
# A transcript's line: one to three capitalised words, a colon, and what was said.
_SPOKEN = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): \S")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()


class PreparedMessage(NamedTuple):
    """A message as it is stored, all of it computed."""

    message: Message
    content: dict[str, Any]  # the columns of `Engine.pack`
    traits: dict[str, Any]  # the columns that its passages share
    pieces: list[Piece]

    @property
    def id(self) -> str:
        return self.message.message_id


class PlacedMessage(NamedTuple):
    """A message with its place in the log, and the session that it is in."""

    seq: int
    owner: str
    agent: str
    session: Any  # its key
    prepared: PreparedMessage


def likely_speaker(message: Message, text: str) -> str | None:
    """Who seems to speak: the message's name, or the one a transcript's line begins with.

    It only ranks, and is never shown: a text may begin with any name.
    """
    if message.name:
        return message.name
    if ": " in text[:96] and (found := _SPOKEN.match(text)):
        name = found[1]
        return name if all(part[0].isupper() for part in name.split()) else None
    return None


def spans_of(text: str, start: int = 0) -> list[tuple[int, int]]:
    """The spans of a message's passages, from a passage's start on; blank ones are left out.

    An empty message has an empty span, which no search finds, so that the text it gets later does
    not reuse ids.
    """
    spans = [(start, stop) for start, stop in passages(text, start) if text[start:stop].strip()]
    return spans or EMPTY


@lru_cache(maxsize=1_024)
def date_words(day: int) -> str:
    """A day since 1970 in words, which find the messages of that day."""
    moment = from_micros(day * DAY)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


@lru_cache(maxsize=1_024)
def _about(speaker: str | None, day: int) -> tuple[str, ...]:
    """The stems of who speaks and of the day, which the words of a message begin with."""
    return tuple(stems(f"{speaker or ''} {date_words(day)}"))


def traits_of(message: Message, text: str) -> dict[str, Any]:
    """What all passages of a message have in common; `text` is the message's."""
    own = message.role == "user"
    signals = signals_of(text) if own else Signals(is_question=asks_back(text))
    return {
        "created_at": to_micros(message.created_at),
        "role": message.role,
        "speaker": likely_speaker(message, text),
        "self_reference": signals.self_reference,
        "is_question": int(signals.is_question),
        "importance": message.importance,
    }


def check_size(text: str, name: str, most: int | None = None) -> None:
    """Raise if a message, note, article or entry has more bytes than a store takes."""
    most = MAX_TEXT_BYTES if most is None else most
    if len(text) * 4 > most and (size := len(text.encode())) > most:
        cure = ", or raise MEMORIST_MAX_MESSAGE_BYTES" if name == "message" else ""
        raise TooLargeError(
            f"the {name} has {size:,} bytes of text, and at most {most:,} are stored; "
            f"divide it{cure}"
        )


@dataclass(frozen=True, slots=True)
class Preparation:
    """Computes what a transaction stores, before it begins."""

    engine: Engine
    max_message_bytes: int

    def message(
        self, owner: str, message: Message, *, start: int = 0, is_first: bool = True
    ) -> PreparedMessage:
        """A message and its passages from `start` on, which is the first or a later one."""
        text = message.text
        check_size(text, "message", self.max_message_bytes)
        traits, spans, words = traits_of(message, text), spans_of(text, start), self.engine.words
        about: tuple[str, ...] = ()
        if is_first and spans != EMPTY:
            about = _about(traits["speaker"], traits["created_at"] // DAY)
        pieces: list[Piece] = []
        for at, end in spans:
            pieces.append(Piece(at, end, words(owner, [*about, *stems(text[at:end])])))
            about = ()
        return PreparedMessage(message, self.engine.pack(message), traits, pieces)

    def text(self, owner: str, text: str) -> list[Piece]:
        """The passages of a memory, a fact or notes."""
        spans, words = passages(text), self.engine.view_words
        return [
            Piece(*it, words(owner, text[slice(*it)])) for it in spans if text[slice(*it)].strip()
        ]

    def pieces(self, owner: str, pieces: Iterable[Piece]) -> list[Piece]:
        """Those that are not blank, with their words as the database indexes them."""
        words = self.engine.words
        given = [it for it in pieces if it.words.strip()]
        return [Piece(at, end, words(owner, stems(said))) for at, end, said in given]


class UnpreparedError(Exception):
    """A transaction came upon texts that are not prepared: prepare them, then run it again."""


def index_messages(db: Db, messages: Sequence[PlacedMessage], *, first_piece: int = 0) -> None:
    """Index messages by their words."""
    rows = [
        {
            **it.prepared.traits,
            "owner": it.owner,
            "kind": "message",
            "view_id": None,
            "agent": it.agent,
            "session": it.session,
            "id": it.seq * PASSAGES_PER_MESSAGE + first_piece + number,
            "start_at": start,
            "stop_at": stop,
            "words": words,
        }
        for it in messages
        for number, (start, stop, words) in enumerate(it.prepared.pieces)
    ]
    db.add_passages(rows)
    speakers = {(it.owner, it.prepared.traits["speaker"]) for it in messages}
    for owner, name in sorted(it for it in speakers if it[1] is not None):
        db.later("add_speaker", owner=owner, speaker=name)


def index_view(
    db: Db, scope: Scope, kind: str, view_id: str, text: str, created_at: datetime
) -> None:
    """Index a derived record by its words, and queue it for its vectors."""
    pieces = db.texts.setdefault(text)  # None is noted: then the transaction runs again
    index_pieces(db, scope, kind, view_id, pieces or (), created_at)


def index_pieces(
    db: Db, scope: Scope, kind: str, view_id: str, pieces: Sequence[Piece], created_at: datetime
) -> None:
    """The same for a text whose pieces are prepared already."""
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
        "importance": ORDINARY,
    }
    ids = db.next_view_passages(len(pieces))
    db.add_passages(
        [
            {**shared, "id": id_, "start_at": start, "stop_at": stop, "words": words}
            for id_, (start, stop, words) in zip(ids, pieces, strict=True)
        ]
    )
    enqueue(db, "vectors", min(ids), max(ids))
