"""The knowledge graph of the official MCP memory server: `memory.json`, entities and relations.

A relation becomes a fact, so does an entity's type; an observation becomes a memory.
"""

from collections.abc import Iterator
from typing import Any

from memorist.errors import InvalidError
from memorist.records.memories import Fact, MemoryItem
from memorist.transfer.items import IMPORTER, Item, Skipped, stable_id
from memorist.transfer.source import Source

name = "mcp_memory"
title = "MCP memory server"

_RELATION = ("from", "relationType", "to")


def recognises(source: Source) -> bool:
    """Whether the first entry is an entity or a relation."""
    names = source.names()
    return len(names) == 1 and _kind(source.first(names[0], "entities", "relations")) != ""


def read(source: Source) -> Iterator[Item]:
    """The entities and relations of the graph."""
    for entry in source.values(source.names()[0], "entities", "relations"):
        if isinstance(entry, Skipped):
            yield entry
            continue
        place, value = entry
        try:
            yield from _items(value)
        except (InvalidError, AttributeError) as error:
            text = str(error) if isinstance(error, InvalidError) else "a name must be a text"
            yield Skipped(place, text)


def _items(value: dict[str, Any]) -> list[Item]:
    kind, subject = _kind(value), value.get("name")
    if kind == "relation":
        return [_fact(*(value[key] for key in _RELATION))]
    if kind != "entity" or not isinstance(observations := value.get("observations", []), list):
        raise InvalidError("neither an entity nor a relation")
    facts = [_fact(subject, "is a", value["entityType"])] if value.get("entityType") else []
    return [*facts, *(_memory(subject, text) for text in observations)]


def _kind(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    if all(key in value for key in _RELATION):
        return "relation"
    is_entity = "name" in value and ("entityType" in value or "observations" in value)
    return "entity" if is_entity else ""


def _fact(subject: Any, predicate: Any, thing: Any) -> Fact:
    id_ = stable_id(name, str(subject), str(predicate), str(thing))
    words = predicate.replace("_", " ")
    return Fact(
        id=id_, scope=IMPORTER, subject=subject, predicate=words, object=thing, source="import"
    )


def _memory(subject: Any, text: Any) -> MemoryItem:
    said = text if subject.casefold() in text.casefold() else f"{subject}: {text}"
    id_ = stable_id(name, subject, text)
    return MemoryItem(id=id_, scope=IMPORTER, text=said, source="import", tags=(subject,))
