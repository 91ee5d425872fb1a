"""What the client sends and reads: arguments as JSON, answers as records."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any, TypeVar, get_args

from memorist.context.documents.excerpts import Retrieved
from memorist.context.window import Window
from memorist.errors import InvalidError
from memorist.lifecycle.policy import Maintained
from memorist.providers.images import encode_image
from memorist.records.decoding import from_json
from memorist.records.documents import Compression
from memorist.records.entry import Answer, Ask, Entry, Get, Ids, Namespaces, Put, Search
from memorist.records.memories import Change, Expire, Promote
from memorist.records.message import UNSET, Message, to_messages
from memorist.records.query import NO_FILTERS, check_deadline
from memorist.records.scope import Scope
from memorist.records.values import batches, check_share

T = TypeVar("T")
MAX_DEADLINE_MS = 10_000  # the longest that a server searches
MAX_MESSAGES, MAX_BYTES = 1_000, 4_000_000  # of one request
# What ends the tenant of a scope that all users of the tenant share.
LIBRARY_TENANT, STORE_TENANT = "/library", "/store"


def read_id(data: Any) -> str:
    """The id in an answer; empty where nothing was kept."""
    return str(data["id"] or "")


def items_of(kind: type[T]) -> Callable[[Any], list[T]]:
    """Reads the records of an answer that holds all items of a list."""
    return lambda data: [from_json(kind, item) for item in data["items"]]


def read_changes(data: Any) -> list[Change]:
    """The changes in an answer, each by its name."""
    kinds = {kind.__name__.lower(): kind for kind in get_args(Change)}
    return [from_json(kinds[item["change"]], item["what"]) for item in data["changes"]]


def read_maintained(data: Any) -> Maintained:
    """What was changed by policy, or would be."""
    changes = (it for it in read_changes(data) if isinstance(it, Expire | Promote))
    return Maintained(changes=tuple(changes), dry_run=data["dry_run"])


def search_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `search` as a request holds them, checked as at hand."""
    body = dict(arguments)
    scope, filters = body.pop("scope"), body.pop("filters", NO_FILTERS)
    check_share(body.get("min_score", 0.0), "min_score")
    body["deadline_ms"] = deadline_json(body.get("deadline_ms", UNSET))
    names = {"kind": filters.kinds, "category": filters.categories, "role": filters.roles}
    others = {"tags": filters.tags, "after": filters.after, "before": filters.before}
    return {**scope.names, **body, **{name: it for name, it in (names | others).items() if it}}


def of_all_times(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a list of facts: those of all times where no moment is given."""
    return {**arguments, "always": not (arguments.get("valid") or arguments.get("known"))}


def fit_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `fit` as a request holds them."""
    body = dict(arguments)
    scope, counter, left = body.pop("scope"), body.pop("counter"), body.pop("max_tokens")
    # The server takes the query's tokens off again.
    body["window"] = max(left + counter.text(body["query"]), 1)
    body["deadline_ms"] = deadline_json(body["deadline_ms"])
    return {**library_arguments(scope), **body}


def read_quotations(data: Any) -> list[Retrieved]:
    """The articles in an answer."""
    return [from_json(Retrieved, quoted["article"]) for quoted in data["found"]]


def deadline_json(deadline_ms: float | None) -> float | None:
    """A checked deadline as a request holds it: one beyond the server's own waits for all."""
    if deadline_ms is not UNSET:  # else the server's own holds
        check_deadline(deadline_ms)
        if deadline_ms is not None and deadline_ms > MAX_DEADLINE_MS:
            return None
    return deadline_ms


def context_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `context` as a request holds them."""
    body = dict(arguments)
    if body.pop("read_image", encode_image) is not encode_image:
        raise InvalidError("read_image cannot be sent to a server")
    body |= question_json(body.pop("question"))
    body["deadline_ms"] = deadline_json(body.get("deadline_ms", UNSET))
    body |= library_json(body.pop("library", None))
    window, max_tokens = window_json(body.pop("window", None)), body.pop("max_tokens", None)
    body |= window if max_tokens is None else {**window, "max_tokens": max_tokens}
    body["tools"] = [dict(tool) for tool in body.pop("tools", ())] or UNSET
    if body.get("system") is None:
        body["system"] = UNSET
    return body


def compress_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `compress` as a request holds them."""
    body = dict(arguments)
    return {**window_json(body.pop("window", None)), **body}


def users_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `users` as those of its operation, which goes on after a name."""
    after: Scope | None = arguments.get("after")
    return {"limit": 1_000, **arguments, "after": after and after.user}


def forget_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `forget` as a request holds them; an id that is None is refused here too."""
    if None in arguments.values():
        raise InvalidError("an id to forget by is None")
    return dict(arguments)


def message_batches(messages: Iterable[Message]) -> Iterator[list[dict[str, Any]]]:
    """Messages in as few requests as a server takes."""

    def size(message: dict[str, Any]) -> int:
        return len(json.dumps(message, ensure_ascii=False).encode())

    return batches(map(message_json, messages), size, most=MAX_MESSAGES, most_size=MAX_BYTES)


def library_arguments(scope: Scope) -> dict[str, str | None]:
    """The scope of a library as a request's arguments."""
    if scope.tenant.endswith(LIBRARY_TENANT):
        return {"shelf": scope.user}
    return {"user": scope.user, "agent": scope.agent}


def list_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a list of the store as those of its operation."""
    rest = dict(arguments)
    where = library_arguments(scope := rest.pop("scope")) | {"session": scope.session}
    if "before" in rest:
        rest["after"] = rest.pop("before")
    return {**where, **rest}


def library_json(library: Any) -> dict[str, Any]:
    """The library that a context quotes from, as far as a request can name it."""
    if library is None:
        return {}
    if not isinstance(getattr(library, "scope", None), Scope):
        raise InvalidError("quote from a library of this server: memory.library(…)")
    return {"library": True, "shelf": library_arguments(library.scope).get("shelf")}


def message_json(message: Message) -> dict[str, Any]:
    """A message as a request holds it, without the fields that say nothing."""
    fields = {name: it for name, it in asdict(message).items() if it not in (None, (), False)}
    return {**fields, "created_at": message.created_at.isoformat()}


def many_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The items of several users, with their messages as JSON."""
    items = [
        {**item, "messages": [message_json(one) for one in to_messages(item.get("messages", ()))]}
        for item in arguments["items"]
    ]
    return {**arguments, "items": items}


def to_json(value: Any) -> Any:
    """An argument as JSON has it."""
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def operation_json(operation: Ask | Put) -> dict[str, Any]:
    """A read or write of entries as a request holds it, by the name of its kind."""
    if isinstance(operation, Ids):
        return {"op": "ids", "of": operation_json(operation.of)}
    fields = {
        name: value.total_seconds() if isinstance(value, timedelta) else to_json(value)
        for name, value in asdict(operation).items()
        if name != "ranks"  # the server ranks by the query
    }
    return {"op": type(operation).__name__.lower(), **fields}


def read_answer(ask: Ask, answer: list[Any]) -> Answer:
    """The answer to one read of entries."""
    if isinstance(ask, Get | Search):
        return [from_json(Entry, item) for item in answer]
    return [tuple(item) for item in answer] if isinstance(ask, Namespaces) else list(answer)


def question_json(question: str | Message) -> dict[str, Any]:
    """A question as a request holds it."""
    if not isinstance(question, Message):
        return {"question": question}
    if question.role != "user":
        raise InvalidError("the question must be a user's")
    if not isinstance(question.content, str):
        raise InvalidError("a question for a server is text, with images where there are some")
    return {"question": question.content, "images": list(question.images)}


def window_json(window: Window | None) -> dict[str, Any]:
    """A window as a request holds it."""
    if window is None:
        return {}
    if window.tokenizer is not None:
        raise InvalidError("a tokenizer cannot be sent to a server; name the window's model")
    names = [name for name in Window.__dataclass_fields__ if name != "tokenizer"]
    return {name: getattr(window, name) for name in names}


def read_summary(answer: Any) -> Compression | None:
    """The compression in an answer, if there was something to compress."""
    return None if answer is None else from_json(Compression, answer)
