"""MemoristStore: LangGraph's long-term store, kept in Memorist.

from memorist import Memory
from memorist.agents.langgraph import MemoristStore

store = MemoristStore(Memory())
store.put(("memories", "ada"), "home", {"text": "Ada moved to Berlin"})
store.search(("memories",), query="where does Ada live?")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from memorist.aio import in_thread
from memorist.errors import InvalidError, MissingExtraError, RecordError
from memorist.memory import Memory
from memorist.records.entry import Answer, Ask, Entry, Get, Namespace, Namespaces, Put, Search
from memorist.records.query import Forgotten
from memorist.records.scope import shared_scope

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise MissingExtraError("langgraph") from error

DEADLINE_MS = 1_000.0  # for the order of a search; what it finds does not depend on it
WHOLE = "$"


class MemoristStore(BaseStore):
    """A LangGraph `BaseStore`: durable, searched by words and meaning, with times to live.

    With a name it is shared by all users of the tenant. `user` has the user's own instead:
    recall finds what is in it, and it goes when the user is forgotten. `fields` are what a
    value is found by where a `put` does not say, `"$"` all of it; `ttl` sets LangGraph's
    `default_ttl` (minutes) and `refresh_on_read`.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        name: str = "store",
        *,
        user: str | None = None,
        fields: Sequence[str] = (WHOLE,),
        ttl: TTLConfig | None = None,
        deadline_ms: float | None = DEADLINE_MS,
    ) -> None:
        self._memory = memory
        self._fields = tuple(fields)
        self._deadline_ms = deadline_ms
        self.ttl_config = ttl
        if user is None:
            self.scope = shared_scope(memory.tenant_name, "store", name)
        else:
            self.scope = memory.scope(user=user)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer all reads as things stood before, then write, in one transaction."""
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        asks = {number: ask for number, op in enumerate(given) if (ask := self._ask(op))}
        puts = [self._put(op) for op in given if isinstance(op, PutOp)]
        answers = self._memory.entries.batch(
            self.scope, list(asks.values()), puts, deadline_ms=self._deadline_ms
        )
        found = dict(zip(asks, answers, strict=True))
        return [_result(op, found.get(number, [])) for number, op in enumerate(given)]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, for asyncio."""
        return await in_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete now what is over, and say how much; it is never read, swept or not."""
        return self._memory.entries.sweep(self.scope)

    def forget(self, prefix: Namespace = (), *, scrub: bool = True) -> Forgotten:
        """Delete everything below a namespace, or all there is, and the bytes of it."""
        self.sweep_ttl()
        count, search = 0, Search(prefix=tuple(prefix), limit=1_000)
        while entries := self._memory.entries.batch(self.scope, [search])[0]:
            gone = [
                Put(namespace=entry.namespace, key=entry.key, value=None)
                for entry in entries
                if isinstance(entry, Entry)
            ]
            self._memory.entries.batch(self.scope, [], gone)
            count += len(gone)
        residue = self._memory.scrub() if scrub else ""
        return Forgotten(counts={"entries": count} if count else {}, residue=residue)

    def _ask(self, op: Op) -> Ask | None:
        match op:
            case GetOp():
                return Get(namespace=tuple(op.namespace), key=op.key, refresh=op.refresh_ttl)
            case SearchOp():
                return Search(
                    prefix=tuple(op.namespace_prefix),
                    where=op.filter or None,
                    query=op.query or "",
                    limit=op.limit,
                    offset=op.offset,
                    refresh=op.refresh_ttl,
                )
            case ListNamespacesOp():
                return Namespaces()
            case PutOp():
                return None
        raise InvalidError(f"a store knows no {type(op).__name__}")

    def _put(self, op: PutOp) -> Put:
        ttl = None if op.ttl is None else _minutes(op.ttl)
        put = Put(namespace=tuple(op.namespace), key=op.key, value=op.value, ttl=ttl)
        if put.value is None or op.index is False:
            return put
        fields = self._fields if op.index is None else op.index
        return replace(put, texts=tuple(texts_of(put.value, fields)))


def texts_of(value: Mapping[str, Any], fields: Iterable[str]) -> Iterator[str]:
    """What a value is found by: the texts at some paths, each by itself, or all it says."""
    for path in fields:
        if path == WHOLE:
            yield "\n".join(_lines(value))
        else:
            yield from get_text_at_path(value, path)


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """What a value says, a line for each thing, without the signs of JSON."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _lines(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _lines(inner, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def _minutes(ttl: float) -> timedelta:
    try:
        return timedelta(minutes=ttl)
    except (TypeError, ValueError, OverflowError):
        raise RecordError("ttl must be a number of minutes") from None


def _result(op: Op, answer: Answer) -> Result:
    found = [entry for entry in answer if isinstance(entry, Entry)]
    match op:
        case GetOp():
            return _item(found[0]) if found else None
        case SearchOp():
            return [_search_item(entry) for entry in found]
        case ListNamespacesOp():
            return _listed(op, [names for names in answer if isinstance(names, tuple)])
    return None


def _item(entry: Entry) -> Item:
    return Item(
        value=entry.value,
        key=entry.key,
        namespace=entry.namespace,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
    )


def _search_item(entry: Entry) -> SearchItem:
    return SearchItem(
        entry.namespace, entry.key, entry.value, entry.created_at, entry.updated_at, entry.score
    )


def _listed(op: ListNamespacesOp, names: list[Namespace]) -> list[Namespace]:
    """The namespaces that fit, cut to the depth wanted, in the order of their labels."""
    for condition in op.match_conditions or ():
        names = [namespace for namespace in names if _fits(condition, namespace)]
    if op.max_depth is not None:
        names = sorted({namespace[: op.max_depth] for namespace in names})
    return names[op.offset : op.offset + op.limit]


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins, or ends, with a path; `*` is any label."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    if condition.match_type == "prefix":
        part = namespace[: len(path)]
    elif condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    else:
        raise InvalidError("namespaces are matched by prefix or suffix")
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
