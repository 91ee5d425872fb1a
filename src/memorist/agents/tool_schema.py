"""Tools: what a model reads of one, made of a method's signature and docstring, and answers."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from memorist.records.message import readable

if TYPE_CHECKING:
    from pydantic import BaseModel

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool; `default` is `...` where it is required.

    One that is `hidden` is taken, and not described to models.
    """

    name: str
    type: Any
    description: str
    default: Any = field(default=..., hash=False)  # may be a list
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool: its name, description, arguments and result type, and whether it only reads.

    `method` is what a call does: its first argument is the toolbox.
    """

    name: str
    method: Callable[..., Any]
    description: str
    arguments: tuple[Argument, ...]
    returns: Any
    reads: bool

    def model(self, **more: Any) -> "type[BaseModel]":
        """The arguments as a pydantic model, in which null stands for the default."""
        from pydantic import BaseModel, Field, create_model, model_validator

        class Arguments(BaseModel, arbitrary_types_allowed=True):
            @model_validator(mode="before")
            @classmethod
            def drop_null(cls, given: Any) -> Any:
                return without_null(given) if isinstance(given, Mapping) else given

        fields: dict[str, Any] = {
            it.name: (it.type, Field(it.default, description=it.description))
            for it in self.arguments
        }
        return create_model(
            self.name, __base__=Arguments, __doc__=self.description, **more, **fields
        )


def without_null(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that are null, as JSON clients send what they leave out."""
    return {name: value for name, value in arguments.items() if value is not None}


def tool(method: Callable[P, R]) -> Callable[P, R]:
    """A method for models, who may send null, or an empty text or list, for the default."""
    signature = inspect.signature(method)

    def is_left_out(name: str, value: Any) -> bool:
        default = signature.parameters[name].default
        is_empty = value is None or (default is None and value in ("", []))
        return is_empty and default is not inspect.Parameter.empty

    @wraps(method)
    def call(*args: P.args, **named: P.kwargs) -> R:
        given = signature.bind(*args, **named).arguments
        kept = {name: it for name, it in given.items() if not is_left_out(name, it)}
        return method(**kept)  # type: ignore[call-arg]

    return call


def schema_of(method: Callable[..., Any], *, name: str, reads: bool) -> ToolSchema:
    """The schema of a method of the toolbox, by its signature and docstring."""
    hints = get_type_hints(method, include_extras=True)
    arguments = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        kind, description = get_args(hints[parameter.name])
        default = ... if parameter.default is parameter.empty else parameter.default
        if get_origin(kind) is UnionType:  # empty, not None: models read simpler schemas
            kind = next(part for part in get_args(kind) if part is not NoneType)
            default = "" if kind is str else []
        arguments.append(Argument(parameter.name, kind, description, default))
    description = inspect.cleandoc(method.__doc__ or "")
    return ToolSchema(name, method, description, tuple(arguments), hints["return"], reads)


class ToolCaller(Protocol):
    """What calls the tools of an MCP server; `McpManager` is one."""

    async def call_tool(self, name: str, arguments: Mapping[str, Any], /) -> Any: ...


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server describes it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tool: Any) -> Self:
        """The tool in our own form or in that of the MCP SDK."""
        schema = getattr(tool, "schema" if isinstance(tool, cls) else "inputSchema")
        return cls(tool.name, tool.description or "", schema)


@dataclass(frozen=True, slots=True)
class McpResult:
    """A tool's answer: its text, its structured data if any, and whether it is an error."""

    text: str
    data: Mapping[str, Any] | None = None
    failed: bool = False

    @classmethod
    def of(cls, answer: Any) -> Self:
        """The answer of any `ToolCaller`: in our form, the MCP SDK's, a dict, or anything else."""
        if isinstance(answer, cls):
            return answer
        if isinstance(answer, Mapping):
            failed = bool(answer.get("isError") or answer.get("error"))
            return cls(readable(dict(answer)), answer, failed)
        data, blocks = (getattr(answer, name, None) for name in ("structuredContent", "content"))
        texts = [getattr(it, "text", "") for it in blocks] if isinstance(blocks, list) else [answer]
        failed = getattr(answer, "isError", False) is True
        text = "\n".join(str(it) for it in texts if it)
        return cls(text, data if isinstance(data, Mapping) else None, failed)
