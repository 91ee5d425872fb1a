"""The toolbox as LangChain tools: `create_agent(model, tools=memory_tools(toolbox))`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memorist.errors import MissingExtraError

try:
    from langchain.tools import ToolRuntime
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
except ImportError as error:
    raise MissingExtraError("agents") from error

from memorist.agents.messages import field_of, from_langchain
from memorist.agents.tool_schema import Argument, ToolSchema
from memorist.agents.toolbox import NAMES, Toolbox, tool_schemas
from memorist.aio import in_thread
from memorist.context.tokens import TokenCounter
from memorist.errors import InvalidError, MemoristError

NOTHING = "Nothing was found."
_OF_RUN = ("session_id", "user_id")  # the run knows them

log = logging.getLogger("memorist")


def memory_tools(toolbox: Toolbox, *, only: Sequence[str] = (), system: str = "") -> list[BaseTool]:
    """Every tool of the toolbox, or those named by `only`.

    Where the toolbox names no user, agent or session, those of the run count: `user_id`,
    `agent_id`, `session_id` and `thread_id` of its context or configuration. `system` is the
    agent's prompt, for which `retrieve_context` leaves room.
    """
    if unknown := set(only) - set(NAMES):
        raise InvalidError(
            f"{len(unknown)} of the names are no tools; the tools are {', '.join(NAMES)}"
        )
    counter = TokenCounter(toolbox.window.counts_with())
    return [
        _ToolCall(tool, toolbox, counter, system).as_tool()
        for tool in tool_schemas()
        if not only or tool.name in only
    ]


class _ToolCall:
    """One tool of a toolbox, as LangChain calls it."""

    def __init__(
        self, tool: ToolSchema, toolbox: Toolbox, counter: TokenCounter, system: str
    ) -> None:
        self._tool = tool
        self._toolbox = toolbox
        self._counter = counter
        self._system = system

    def as_tool(self) -> BaseTool:
        """The tool, whose failures are texts for the model."""

        # Without this annotation, and without it in the schema, no runtime is handed over.
        def run(runtime: ToolRuntime = None, **arguments: Any) -> tuple[str, Any]:  # type: ignore
            return self.run(runtime, arguments)

        async def arun(runtime: ToolRuntime = None, **arguments: Any) -> tuple[str, Any]:  # type: ignore
            return await in_thread(self.run, runtime, arguments)

        return StructuredTool(
            name=self._tool.name,
            description=self._tool.description,
            func=run,
            coroutine=arun,
            args_schema=_schema(self._tool),
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=_argument_errors,
        )

    def run(self, runtime: Any, arguments: Mapping[str, Any]) -> tuple[str, Any]:
        """The result of a call as text for the model, and as data."""
        try:
            box = _toolbox_of_run(self._toolbox, runtime)
            named = self._complete(box, runtime, self._tool.without_empty(arguments))
            result = getattr(box, self._tool.name)(**named)
        except MemoristError as error:
            raise ToolException(str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            # Its text may quote the user, so it goes nowhere.
            log.warning("the tool %s failed: %s", self._tool.name, type(error).__name__)
            raise ToolException(f"the memory failed ({type(error).__name__})") from None
        return _text(result), result

    def _complete(self, box: Toolbox, runtime: Any, named: dict[str, Any]) -> dict[str, Any]:
        """The arguments, with those that the run knows better than the model does."""
        takes = {argument.name for argument in self._tool.arguments}
        if "user_id" in takes:
            named = {"session_id": box.session, "user_id": box.user, **named}
        if "reserved_tokens" in takes:
            named["reserved_tokens"] = self._used_tokens(runtime)
        return named

    def _used_tokens(self, runtime: Any) -> int:
        """The tokens of the running conversation: prompt, tools and messages."""
        state = getattr(runtime, "state", None)
        said = state.get("messages", ()) if isinstance(state, Mapping) else ()
        tools = [convert_to_openai_tool(tool) for tool in getattr(runtime, "tools", None) or ()]
        messages = self._counter.messages([from_langchain(message) for message in said])
        prompt = self._counter.request([{"role": "system", "content": self._system}])
        return sum(messages) + self._counter.tools(tools) + (prompt if said else 0)


def _schema(tool: ToolSchema) -> type[BaseModel]:
    fields: dict[str, Any] = {
        argument.name: (argument.type, _field(argument))
        for argument in tool.arguments
        if argument.name != "reserved_tokens"  # counted, not guessed
    }
    fields["runtime"] = (ToolRuntime[Any, Any], None)  # else its context must be None
    config = ConfigDict(arbitrary_types_allowed=True)
    return create_model(tool.name, __config__=config, __doc__=tool.description, **fields)


def _field(argument: Argument) -> Any:
    default = "" if argument.name in _OF_RUN else argument.default
    more = " Leave it out for the one at hand." if argument.name in _OF_RUN else ""
    return Field(default, description=argument.description + more)


def _toolbox_of_run(toolbox: Toolbox, runtime: Any) -> Toolbox:
    """The toolbox for the user, agent and session of this run."""
    context = getattr(runtime, "context", None)
    configured = (getattr(runtime, "config", None) or {}).get("configurable")

    def look(name: str) -> str | None:
        value = field_of(context, name) or field_of(configured, name)
        return str(value) if value else None

    box = toolbox.for_user(look("user_id"))
    session = box.session or look("session_id") or look("thread_id")
    return replace(box, agent=box.agent or look("agent_id"), session=session)


def _argument_errors(error: Any) -> str:
    """What is wrong with a call's arguments, without their values."""
    problems = error.errors() if isinstance(error, ValidationError) else []
    return "; ".join(f"{'.'.join(map(str, it['loc']))}: {it['type']}" for it in problems)


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    return json.dumps(result, ensure_ascii=False) if result else NOTHING
