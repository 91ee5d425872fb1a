"""The schema of a tool, which a model reads: made of a method's signature and docstring."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool; `default` is `...` where it is required."""

    name: str
    type: Any
    description: str
    default: Any = ...


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

    def without_empty(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call without optional ones that were left empty."""
        optional = {argument.name for argument in self.arguments if argument.default in ("", [])}
        return {key: value for key, value in arguments.items() if value or key not in optional}


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
