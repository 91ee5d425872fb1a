"""Bringing an export into a memory: all of it is read first, then written in batches.

What is written keeps the ids of the export, so that importing twice changes nothing, and an import
that was interrupted goes on when it is run again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from memorist import archive
from memorist.context.documents.markdown import chunks
from memorist.derived import Facts, Memories
from memorist.errors import ConflictError, InvalidError, NotFoundError, RecordError
from memorist.memory import Memory
from memorist.records.documents import Article
from memorist.records.entry import Entry, Get, Put, same
from memorist.records.log import Batch
from memorist.records.memories import Fact, MemoryItem
from memorist.records.scope import shared_scope
from memorist.records.values import Tally, now
from memorist.transfer.formats import FORMATS, Format
from memorist.transfer.items import Document, Item, Skipped, Turn
from memorist.transfer.source import Source

BATCH = 1_000  # messages that are written together; a conversation is not divided …
MAX_BATCH = 2_000  # … that has fewer than so many
CHARS = 2_000  # of a message that count as much as another message
MAX_PLACES = 100  # that a report names
MAX_COUNTED = 100_000  # conversations and users
STEP = 256  # items between two calls of `on_progress`
NONE = Tally(0)
DIFFERENT = "its id is stored with other content"
KINDS: dict[type, str] = {
    Turn: "messages",
    MemoryItem: "memories",
    Fact: "facts",
    Put: "entries",
    Document: "articles",
}


@dataclass(slots=True)
class Report:
    """What an import found, added, knew already, and left out and why.

    The counts are exact; of what was left out, `skipped` has the first places.
    """

    format: str
    title: str
    dry_run: bool = True
    found: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    conversations: Tally = NONE
    users: Tally = NONE
    first: datetime | None = None
    last: datetime | None = None

    def skip(self, item: Skipped) -> None:
        """Count what is left out."""
        self.reasons[item.reason] += 1
        if len(self.skipped) < MAX_PLACES:
            self.skipped.append(item)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is. All of the export is checked before the `writing` begins."""

    writing: bool
    bytes_read: int
    bytes_total: int
    items: int = 0


OnProgress = Callable[[Progress], None]


def recognised(source: Source, name: str | None = None) -> Format:
    """The format of a source: the one of this name, or the first that recognises it."""
    names = ", ".join(one.name for one in FORMATS)
    if name is not None:
        if name not in names.split(", "):
            raise InvalidError(f"there is no such format; give one of {names}")
        return next(one for one in FORMATS if one.name == name)
    for one in FORMATS:
        if one.recognises(source):
            return one
    raise RecordError(f"{source.name} is in no format that is known: {names}")


def run_import(
    memory: Memory,
    source: Source,
    *,
    user: str,
    one_user: bool = False,
    format: str | None = None,
    dry_run: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> Report:
    """Bring an export into a memory, or with `dry_run` only say what is in it.

    What names no user in the export becomes `user`'s, the rest is its own users'. With `one_user`
    everything becomes `user`'s, and an export that names several is refused. An export that is
    broken or cut off raises `RecordError` before anything is written.
    """
    report = examine(source, format=format, one_user=one_user, on_progress=on_progress)
    report.dry_run = dry_run
    if source.archive is not None and not dry_run:
        with source.archive.open("rb") as file:
            _restore(memory, file, user if one_user else None, report, on_progress)
    elif not dry_run:
        reader = recognised(source, report.format)
        writer = _Writer(memory, report, user, one_user)
        for item in _read(reader, source, on_progress, writing=True):
            writer.take(item)
        writer.flush()
    return report


def examine(
    source: Source,
    *,
    format: str | None = None,
    one_user: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> Report:
    """What is in an export; what makes an import impossible is raised as there."""
    if source.archive is not None:
        with source.archive.open("rb") as file:
            users, counts = archive.contents(file)
        return Report("memorist", "Memorist archive", found=counts, users=Tally(users))
    reader = recognised(source, format)
    report = _counted(reader, _read(reader, source, on_progress, writing=False))
    for skipped in source.skipped:
        report.skip(skipped)
    if one_user and report.users.count > 1:
        raise InvalidError(
            f"the export names {report.users.count:,} users, and one was to get everything; "
            "name no user, so that each keeps what is theirs"
        )
    return report


def _restore(
    memory: Memory, file: IO[bytes], user: str | None, report: Report, on_progress: OnProgress
) -> None:
    done = memory.restore(file, user=user, progress=lambda *far: on_progress(Progress(True, *far)))
    report.added.update(done.added)
    report.known.update(done.there)
    report.skipped += [Skipped(place, DIFFERENT) for place in done.places]
    if done.differing:
        report.reasons[DIFFERENT] = sum(done.differing.values())


def _read(
    reader: Format, source: Source, on_progress: OnProgress, *, writing: bool
) -> Iterator[Item]:
    source.bytes_read = count = 0
    for count, item in enumerate(reader.read(source), start=1):
        if count % STEP == 0:
            read = min(source.bytes_read, source.bytes_total)
            on_progress(Progress(writing, read, source.bytes_total, count))
        if isinstance(item, MemoryItem) and item.ended_at is not None:
            item = Skipped(f"memory {item.id}", "deleted or archived in the export")
        yield item
    source.bytes_total = source.bytes_read  # which may be a part of the files
    on_progress(Progress(writing, source.bytes_total, source.bytes_total, count))


def _counted(reader: Format, items: Iterable[Item]) -> Report:
    """How much of each kind is in an export, of how many users, and from when."""
    report, started = Report(reader.name, reader.title), now()
    users, sessions = set[str](), set[int]()
    for item in items:
        if isinstance(item, Skipped):
            report.skip(item)
            continue
        report.found[KINDS[type(item)]] += 1
        if (user := _user_of(item)) and len(users) <= MAX_COUNTED:
            users.add(user)
        if isinstance(item, Turn) and len(sessions) <= MAX_COUNTED:
            sessions.add(hash((item.user, item.agent, item.session)))
        if (at := _moment_of(item)) is not None and at < started:
            report.first = min(report.first or at, at)
            report.last = max(report.last or at, at)
    report.users = Tally.of(len(users), MAX_COUNTED)
    report.conversations = Tally.of(len(sessions), MAX_COUNTED)
    return report


def _user_of(item: Item) -> str | None:
    if isinstance(item, MemoryItem | Fact):
        return item.scope.user
    return item.user if isinstance(item, Turn) else None


def _moment_of(item: Item) -> datetime | None:
    if isinstance(item, Turn):
        return item.message.created_at
    if isinstance(item, Fact):
        return item.said_at
    return item.created_at if isinstance(item, MemoryItem | Document) else None


class _Writer:
    """Writes what is in an export to a memory, messages and entries in batches."""

    def __init__(self, memory: Memory, report: Report, user: str, one_user: bool) -> None:
        self._memory, self._report = memory, report
        self._user, self._one_user = user, one_user
        shared = shared_scope(memory.tenant_name, "store", "store")
        self._entries = memory.scope(user=user) if one_user else shared
        self._turns: defaultdict[tuple[str, str | None, str], list[Turn]] = defaultdict(list)
        self._puts: list[Put] = []
        self._waiting = 0

    def take(self, item: Item) -> None:
        """Write an item, or let it wait for the next batch."""
        if isinstance(item, Turn):
            key = (self._owner(item.user), item.agent, item.session)
            if self._waiting >= (MAX_BATCH if key in self._turns else BATCH):
                self.flush()
            self._turns[key].append(item)
            self._waiting += 1 + len(item.message.text) // CHARS
        elif isinstance(item, Put):
            self._puts.append(item)
            if len(self._puts) >= BATCH:
                self.flush()
        elif not isinstance(item, Skipped):
            self._write(item)

    def flush(self) -> None:
        """Write what waits."""
        batches: list[Batch] = []
        for (user, agent, session), turns in self._turns.items():
            scope = self._memory.scope(user=user, agent=agent, session=session)
            batches.append(Batch(scope, [turn.message for turn in turns], turns[0].title))
        if batches:
            self._add(batches)
        self._turns.clear()
        self._waiting = 0
        if self._puts:
            self._put(self._puts)
            self._puts = []

    def _owner(self, user: str | None) -> str:
        return self._user if self._one_user or not user else user

    def _count(self, kind: str, found: int, added: int) -> None:
        self._report.added[kind] += added
        self._report.known[kind] += found - added

    def _add(self, batches: Sequence[Batch]) -> None:
        """Write conversations; where one is refused, write them, or its messages, one by one."""
        messages = [(batch, message) for batch in batches for message in batch.messages]
        try:
            stored = self._memory.messages.add(batches, source="import")
        except (InvalidError, ConflictError) as error:
            if len(messages) == 1:
                self._report.skip(Skipped(f"message {messages[0][1].message_id}", str(error)))
                return
            parts = batches
            if len(batches) == 1:
                parts = [batch._replace(messages=[message]) for batch, message in messages]
            for part in parts:
                self._add([part])
            return
        self._count("messages", len(messages), sum(one.added for one in stored))

    def _put(self, puts: Sequence[Put]) -> None:
        """Write entries whose keys are free; others are not overwritten."""
        asks = [Get(namespace=put.namespace, key=put.key) for put in puts]
        answers = self._memory.entries.batch(self._entries, asks)
        new: list[Put] = []
        for put, entries in zip(puts, answers, strict=True):
            stored = next((one.value for one in entries if isinstance(one, Entry)), None)
            if stored is None:
                new.append(put)
            elif same(stored, put.value):
                self._count("entries", 1, 0)
            else:
                place = f"entry {put.id}"
                self._report.skip(Skipped(place, "its key has another value here"))
        self._memory.entries.batch(self._entries, [], new)
        self._count("entries", len(new), len(new))

    def _write(self, item: MemoryItem | Fact | Document) -> None:
        kind = KINDS[type(item)]
        try:
            added = self._added(item)
        except (InvalidError, ConflictError) as error:
            name = item.uri if isinstance(item, Document) else item.id
            self._report.skip(Skipped(f"{kind}: {name}", str(error)))
            return
        self._count(kind, 1, added)

    def _added(self, item: MemoryItem | Fact | Document) -> bool:
        """Write an item; whether it was not there yet."""
        memory = self._memory
        named: dict[str, Any]
        part: Any
        stated: tuple[str, ...]
        if isinstance(item, Document):
            scope = memory.scope(user=self._user)
            at = item.created_at or memory.clock()
            named = {"title": item.title, "text": item.text, "uri": item.uri, "created_at": at}
            article = Article(scope=scope, **named)
            return memory.articles.put(article, chunks(item.text)).change in ("added", "changed")
        user = self._owner(item.scope.user)
        named = {"user": user, "agent": item.scope.agent, "source": "import", "id": item.id}
        named["sources"] = item.sources
        if isinstance(item, Fact):
            part, stated = memory.facts, (item.subject, item.predicate, item.object)
            named |= {"valid_from": item.valid_from, "valid_to": item.valid_to}
            named |= {"said_at": item.said_at}
        else:
            part, stated = memory.memories, (item.text,)
            named |= {"session": item.scope.session, "kind": item.kind, "tags": item.tags}
            named |= {"category": item.category, "expires_at": item.expires_at}
            named |= {"said_at": item.created_at}
        if _is_stored(part, item, user):
            return False
        added = part.add(*stated, **named)
        if added != item.id:
            raise ConflictError("it is known already, or something more trusted says otherwise")
        return True


def _is_stored(part: Facts | Memories, item: MemoryItem | Fact, user: str) -> bool:
    try:
        stored = part.get(item.id, user=user)
    except NotFoundError:
        return False
    if stored.text != item.text:
        raise ConflictError(DIFFERENT)
    return True
