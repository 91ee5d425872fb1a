"""What requests have in common; their bodies and queries stand beside the routes that take them."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from memorist.agents.toolbox import LONGEST_QUESTION
from memorist.records.log import Source

Role = Literal["user", "assistant", "system", "tool"]
MAX_ITEMS = 1_000
MAX_PAGE = 500
MAX_WAIT_MS = 10_000.0
MAX_TOKENS = 10_000_000
MAX_INT = 2**31 - 1
SCOPE_FIELDS = ("user", "agent", "session", "shelf")  # whose memory, and which part of it

Wait = Annotated[
    Annotated[float, Field(gt=0, le=MAX_WAIT_MS, allow_inf_nan=False)] | None,
    AfterValidator(lambda wait: MAX_WAIT_MS if wait is None else wait),
    Field(description="Milliseconds; null waits for everything, for ten seconds at most."),
]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Reserved = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Position = Annotated[int, Field(ge=0, le=MAX_INT)]
Ids = Annotated[list[str], Field(max_length=MAX_ITEMS)]
Images = Annotated[list[str], Field(description="Data URLs; paths and URLs are refused.")]
UserName = Annotated[str | None, Field(description="Whose memory; only an admin names a user.")]
AgentName = Annotated[str | None, Field(description="With which agent.", examples=["tutor"])]
SessionId = Annotated[str | None, Field(description="Which session.")]
ShelfName = Annotated[str | None, Field(description="A shared shelf, not the user's own.")]
PageSize = Annotated[
    int, Field(ge=1, le=MAX_PAGE, description="How many items at most; fewer where they are long.")
]
Origin = Annotated[Source | None, Field(description="Where it came from.")]
NewestFirst = Annotated[bool, Field(description="From the newest back.")]
ModelName = Annotated[str, Field(max_length=200, description="Whose tokens are counted.")]
Scrub = Annotated[bool, Field(description="Remove the bytes from the files too, within a minute.")]

DryRun = Annotated[bool, Field(description="Only count what would go.")]


def _check_length(text: str) -> str:
    # Not pydantic's max_length: that fails on lone surrogates, before a record can say why.
    if len(text) > LONGEST_QUESTION:
        raise PydanticCustomError(
            "string_too_long",
            "String should have at most {max_length} characters",
            {"max_length": LONGEST_QUESTION},
        )
    return text


Question = Annotated[
    str,
    AfterValidator(_check_length),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_QUESTION}),
]


class RequestModel(BaseModel):
    """The base of every body and query: a misspelt name is an error."""

    model_config = ConfigDict(extra="forbid")

    def arguments(self, *without: str) -> dict[str, Any]:
        """The fields that are not null, as arguments; those of the scope are left out."""
        left_out = (*SCOPE_FIELDS, *without)
        return {name: value for name, value in self if value is not None and name not in left_out}


class UserRequest(RequestModel):
    """Whose memory a request is about."""

    user: UserName = None


class AgentRequest(UserRequest):
    """Whose memory, and with which agent."""

    agent: AgentName = None


class SessionRequest(AgentRequest):
    """Whose memory, with which agent, and in which session."""

    session: SessionId = None


class ForgetQuery(UserRequest):
    """How something is forgotten."""

    scrub: Scrub = True
    dry_run: DryRun = False


class ShelfRequest(AgentRequest):
    """A library: the user's own, or a shelf that the whole tenant shares."""

    shelf: ShelfName = None


class CursorQuery(RequestModel):
    """A page of a list."""

    limit: PageSize = 100
    cursor: str | None = Field(None, max_length=8_192, description="`next` of the page before.")


class SessionPageQuery(CursorQuery, SessionRequest):
    """A page of what belongs to a user, an agent or a session."""


class AgentPageQuery(CursorQuery, AgentRequest):
    """A page of what belongs to a user, or to a user and an agent."""
