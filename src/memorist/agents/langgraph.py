"""MemoristStore: LangGraph's long-term store, kept in a memory."""

from asyncio import to_thread
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from memorist.arguments import NamesArguments
from memorist.errors import InvalidError, RecordError, needs_extra
from memorist.memory import Memory
from memorist.records.entry import (
    Answer,
    Ask,
    Entry,
    Get,
    Namespace,
    Namespaces,
    Put,
    Search,
    whole_text,
)
from memorist.records.query import Forgotten
from memorist.records.scope import shared_scope
from memorist.records.values import check_keys, check_whole

with needs_extra("langgraph"):
    from langgraph.store import base

DEADLINE_MS = 1_000.0  # for ranking the results of a search; the results do not depend on it
WHOLE = "$"  # LangGraph's path for the whole value
_ITEM_FIELDS = ("namespace", "key", "value", "created_at", "updated_at")


class MemoristStore(NamesArguments, base.BaseStore):
    """A LangGraph `BaseStore`: durable, searched by words and meaning, with times to live.

        store = MemoristStore(memory)
        store.put(("memories", "ada"), "home", {"text": "Ada moved to Berlin"})
        store.search(("memories",), query="where does Ada live?")

    A store with a name is shared by all users of the tenant. With `user` it is that user's own:
    recall finds its values, and they are deleted when the user is forgotten. `fields` are the
    paths that are indexed unless a `put` names others, `"$"` for the whole value; `ttl` sets
    LangGraph's `default_ttl` (minutes) and `refresh_on_read`.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        name: str = "store",
        *,
        user: str | None = None,
        fields: Sequence[str] = (WHOLE,),
        ttl: base.TTLConfig | None = None,
        deadline_ms: float | None = DEADLINE_MS,
    ) -> None:
        self._memory, self._deadline_ms = memory, deadline_ms
        self._fields = check_keys(fields, "fields")  # a text would be taken for its characters
        self.ttl_config = ttl
        shared = shared_scope(memory.tenant_name, "store", name)
        self.scope = shared if user is None else memory.scope(user=user)

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Answer all reads, then write, in one transaction."""
        operations = list(ops)
        for op in operations:
            base.validate_op_namespace(op)
        asks = {number: ask for number, op in enumerate(operations) if (ask := self._ask(op))}
        puts = [self._put(op) for op in operations if isinstance(op, base.PutOp)]
        answers = self._memory.entries.batch(
            self.scope, list(asks.values()), puts, deadline_ms=self._deadline_ms
        )
        by_number = dict(zip(asks, answers, strict=True))
        return [_result(op, by_number.get(number, [])) for number, op in enumerate(operations)]

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """`batch`, for asyncio."""
        return await to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete expired values and return their number; they are never read, deleted or not."""
        return self._memory.entries.sweep(self.scope)

    def forget(self, prefix: Namespace = (), *, scrub: bool = True) -> Forgotten:
        """Delete all values below a namespace, by default all; with `scrub` their bytes too."""
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
        residue = self._memory.scrub() if scrub and count else ""
        return Forgotten(counts={"entries": count} if count else {}, residue=residue)

    def _ask(self, op: base.Op) -> Ask | None:
        match op:
            case base.GetOp():
                return Get(namespace=tuple(op.namespace), key=op.key, refresh=op.refresh_ttl)
            case base.SearchOp():
                return Search(
                    prefix=tuple(op.namespace_prefix),
                    where=op.filter or None,
                    query=op.query or "",
                    limit=op.limit,
                    offset=op.offset,
                    refresh=op.refresh_ttl,
                )
            case base.ListNamespacesOp():
                page = {"limit": op.limit, "offset": op.offset, "max_depth": op.max_depth or 0}
                for name, value in page.items():
                    check_whole(value, name)
                return Namespaces()
            case base.PutOp():
                return None
        raise InvalidError(f"a store has no operation {type(op).__name__}")

    def _put(self, op: base.PutOp) -> Put:
        try:
            ttl = None if op.ttl is None else timedelta(minutes=op.ttl)
        except (TypeError, ValueError, OverflowError):
            raise RecordError("ttl must be a number of minutes") from None
        put = Put(namespace=tuple(op.namespace), key=op.key, value=op.value, ttl=ttl)
        if put.value is None or op.index is False:
            return put
        fields = self._fields if op.index is None else check_keys(op.index, "index")
        return replace(put, texts=tuple(texts_of(put.value, fields)))


def texts_of(value: Mapping[str, Any], fields: Iterable[str]) -> Iterator[str]:
    """The texts of a value to index: one for each text at a path, or one for the whole value."""
    for path in fields:
        if path == WHOLE:
            yield whole_text(value)
        else:
            yield from base.get_text_at_path(value, path)


def _result(op: base.Op, answer: Answer) -> base.Result:
    entries = [entry for entry in answer if isinstance(entry, Entry)]
    match op:
        case base.GetOp():
            return base.Item(**_fields(entries[0])) if entries else None
        case base.SearchOp():
            return [base.SearchItem(**_fields(entry), score=entry.score) for entry in entries]
        case base.ListNamespacesOp():
            return _listed(op, [names for names in answer if isinstance(names, tuple)])
    return None


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in _ITEM_FIELDS}


def _listed(op: base.ListNamespacesOp, names: list[Namespace]) -> list[Namespace]:
    """The namespaces that match, cut to `max_depth`, in the order of their labels."""
    for condition in op.match_conditions or ():
        names = [namespace for namespace in names if _fits(condition, namespace)]
    if op.max_depth is not None:
        names = sorted({namespace[: op.max_depth] for namespace in names})
    return names[op.offset : op.offset + op.limit]


def _fits(condition: base.MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins, or ends, with a path; `*` is any label."""
    path = tuple(condition.path)
    if condition.match_type == "suffix":
        path, namespace = path[::-1], namespace[::-1]
    elif condition.match_type != "prefix":
        raise InvalidError("namespaces are matched by prefix or suffix")
    return len(path) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(path, namespace, strict=False)
    )
