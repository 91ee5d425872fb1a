"""Entries: JSON objects by key in namespaces, as LangGraph's BaseStore keeps them."""

from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, model_validator

from memorist.errors import InvalidError
from memorist.records import entry as records
from memorist.records.entry import Entry
from memorist.records.json_values import check_json
from memorist.records.scope import shared_scope
from memorist.records.values import check_text
from memorist.server.http.openapi import AT
from memorist.server.http.pagination import MAX_PAGE_BYTES
from memorist.server.http.routing import Caller, operation
from memorist.server.http.schemas import MAX_ITEMS, RequestModel, UserRequest, Wait

MAX_FOUND = 10_000
MAX_SEARCHES = 32
MAX_TTL_S = records.MAX_TTL.total_seconds()
Labels = Annotated[tuple[str, ...], Field(max_length=64, examples=[["ada", "likes"]])]
Seconds = Annotated[float, Field(ge=-MAX_TTL_S, le=MAX_TTL_S, allow_inf_nan=False)]
RECORDS: dict[str, type[records.Ask]] = {
    "get": records.Get,
    "search": records.Search,
    "namespaces": records.Namespaces,
}


class EntryRead(RequestModel):
    """A read of entries, by the name of its kind."""

    op: str

    def ask(self) -> Any:
        """The read as a record."""
        return RECORDS[self.op](**self.arguments("op"))


class GetEntry(EntryRead):
    """Read the entry of a key."""

    op: Literal["get"]
    namespace: Labels
    key: str
    refresh: bool = False


class SearchEntries(EntryRead):
    """Find entries below a prefix: those that fit the query first, then the newest."""

    op: Literal["search"]
    prefix: Labels = ()
    where: dict[str, Any] | None = None
    query: str = ""
    limit: Annotated[
        Annotated[int, Field(ge=0, le=MAX_FOUND)] | None,
        AfterValidator(lambda limit: MAX_FOUND if limit is None else limit),
    ] = 10
    offset: Annotated[int, Field(ge=0, lt=2**31)] = 0
    refresh: bool = False


class EntryIds(EntryRead):
    """The ids of all that a search finds."""

    op: Literal["ids"]
    of: SearchEntries

    def ask(self) -> Any:
        return records.Ids(of=self.of.ask())


class ListNamespaces(EntryRead):
    """Every namespace that has an entry."""

    op: Literal["namespaces"]


class PutEntry(RequestModel):
    """Write a value, or remove it with null; `texts` are what it is found by."""

    op: Literal["put"] = "put"
    namespace: Labels
    key: str
    value: dict[str, Any] | None
    texts: tuple[str, ...] = ()
    ttl: Seconds | None = Field(None, description="Seconds until it is gone.")
    written_at: AwareDatetime | None = Field(None, description="If that was before now.")

    def put(self) -> records.Put:
        """The write as a record; half a character could be stored, but never answered with."""
        return records.Put(
            namespace=self.namespace,
            key=check_text(self.key, "key", InvalidError),
            value=check_json(self.value, "value", InvalidError),
            texts=self.texts,
            ttl=None if self.ttl is None else timedelta(seconds=self.ttl),
            written_at=self.written_at,
        )


Read = Annotated[GetEntry | SearchEntries | EntryIds | ListNamespaces, Field(discriminator="op")]


class EntryBatchBody(UserRequest):
    """Reads and writes of one store: a shared one by its name, or a user's own."""

    name: str | None = Field(None, description="A shared store; needs an admin's key.")
    asks: list[Read] = Field([], max_length=MAX_ITEMS)
    puts: list[PutEntry] = Field([], max_length=MAX_ITEMS)
    deadline_ms: Wait = 50.0

    @model_validator(mode="after")
    def bound_searches(self) -> Self:
        """Limit what one request makes the server read."""
        searches = [read for read in self.asks if not isinstance(read, GetEntry)]
        if len(searches) > MAX_SEARCHES:
            raise ValueError(f"asks has more than {MAX_SEARCHES} searches")
        return self


class EntryAnswers(BaseModel):
    """One answer for each read, in order."""

    answers: list[list[Entry] | list[tuple[str, ...]] | list[str]]


_ENTRY = Entry(namespace=("ada",), key="tea", value={"is": "green"}, created_at=AT, updated_at=AT)


@operation("batch_entries", example=EntryAnswers(answers=[[_ENTRY]]))
def batch_entries(body: EntryBatchBody, caller: Caller) -> EntryAnswers:
    """Answer the reads as things stood before, then do the writes in one transaction.

    An answer that is too large is refused while it is read, and nothing is written.
    """
    if body.name is None:
        scope = caller.scope(body)
    else:
        caller.require_operator()
        scope = shared_scope(caller.memory.tenant_name, "store", body.name)
    answers = caller.memory.entries.batch(
        scope,
        [read.ask() for read in body.asks],
        [put.put() for put in body.puts],
        deadline_ms=body.deadline_ms,
        max_bytes=MAX_PAGE_BYTES,
    )
    return EntryAnswers(answers=answers)
