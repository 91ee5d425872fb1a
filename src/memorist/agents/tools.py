"""The toolbox as LangChain tools: `create_agent(model, tools=memory_tools(toolbox))`."""

import json
import logging
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memorist.errors import needs_extra

with needs_extra("agents"):
    from langchain.tools import ToolRuntime
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from pydantic import BaseModel, ValidationError

from memorist.agents.messages import from_langchain
from memorist.agents.pending_writes import identity_of_run
from memorist.agents.tool_schema import ToolSchema
from memorist.agents.toolbox import NAMES, Toolbox, tool_schemas
from memorist.context.tokens import TokenCounter
from memorist.errors import InvalidError, MemoristError

NOTHING = "Nothing was found."
_OF_RUN = ("session_id", "user_id")  # arguments that the run knows
_OF_THE_RUN = "Leave it out for the one at hand."

log = logging.getLogger("memorist")


def memory_tools(toolbox: Toolbox, *, only: Sequence[str] = (), system: str = "") -> list[BaseTool]:
    """Every tool of the toolbox, or those named by `only`.

    Where the toolbox names no user, agent or session, those of the run are used: `user_id`,
    `agent_id`, `session_id` and `thread_id` of its context or configuration. `system` is the
    agent's prompt, for which `retrieve_context` leaves room.
    """
    if unknown := set(only) - set(NAMES):
        raise InvalidError(
            f"{len(unknown)} of the names are no tools; the tools are {', '.join(NAMES)}"
        )
    toolbox = replace(toolbox, program=False)  # here a model calls it
    counter = TokenCounter(toolbox.window.counts_with())
    return [
        _ToolCall(tool, toolbox, counter, system).as_tool()
        for tool in tool_schemas()
        if not only or tool.name in only
    ]


@dataclass(frozen=True, slots=True)
class _ToolCall:
    """One tool of a toolbox, as LangChain calls it."""

    tool: ToolSchema
    toolbox: Toolbox
    counter: TokenCounter
    system: str

    def as_tool(self) -> BaseTool:
        """The tool; its failures are texts for the model."""

        # Without this annotation, and without it in the schema, no runtime is handed over.
        def run(runtime: ToolRuntime = None, **arguments: Any) -> tuple[str, Any]:  # type: ignore
            return self.run(runtime, arguments)

        # LangChain's own would run callbacks in a thread, too, away from their event loop.
        async def arun(runtime: ToolRuntime = None, **arguments: Any) -> tuple[str, Any]:  # type: ignore
            return await to_thread(self.run, runtime, arguments)

        return StructuredTool(
            name=self.tool.name,
            description=self.tool.description,
            func=run,
            coroutine=arun,
            args_schema=_schema(self.tool),
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=_argument_errors,
        )

    def run(self, runtime: Any, arguments: Mapping[str, Any]) -> tuple[str, Any]:
        """The result of a call as text for the model, and as data."""
        try:
            run = identity_of_run(runtime)
            box = self.toolbox.for_user(run.user)
            box = replace(box, agent=box.agent or run.agent, session=box.session or run.session)
            named = {key: value for key, value in arguments.items() if value or key not in _OF_RUN}
            takes = {argument.name for argument in self.tool.arguments}
            if "user_id" in takes:
                named = {"session_id": box.session, "user_id": box.user, **named}
            if "reserved_tokens" in takes:
                named["reserved_tokens"] = self._reserved(runtime)
            result = self.tool.method(box, **named)
        except MemoristError as error:
            raise ToolException(str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            # Its text may quote the user, so it is not repeated.
            log.warning("the tool %s failed: %s", self.tool.name, type(error).__name__)
            raise ToolException(f"the memory failed ({type(error).__name__})") from None
        if isinstance(result, str):
            return result, result
        return json.dumps(result, ensure_ascii=False) if result else NOTHING, result

    def _reserved(self, runtime: Any) -> int:
        """The tokens of the prompt, the tools and the messages, and those for other calls."""
        state = getattr(runtime, "state", None)
        messages = state.get("messages", ()) if isinstance(state, Mapping) else ()
        tools = [convert_to_openai_tool(tool) for tool in getattr(runtime, "tools", None) or ()]
        counts = self.counter.messages([from_langchain(message) for message in messages])
        prompt = self.counter.request([{"role": "system", "content": self.system}])
        used = sum(counts) + self.counter.tools(tools) + (prompt if messages else 0)
        calls = len(getattr(messages[-1], "tool_calls", ())) if messages else 0
        left = self.toolbox.window.budget - used
        return used + left - left // max(calls, 1) if left > 0 else used


def _schema(tool: ToolSchema) -> type[BaseModel]:
    """The arguments that a model gives; those that the run knows are optional."""
    arguments = []
    for it in tool.arguments:
        if it.name in _OF_RUN:
            it = replace(it, description=f"{it.description} {_OF_THE_RUN}", default="")
        if it.name != "reserved_tokens":  # counted, not guessed
            arguments.append(it)
    known = replace(tool, arguments=tuple(arguments))
    return known.model(runtime=(ToolRuntime[Any, Any], None))  # of any context, not None only


def _argument_errors(error: Any) -> str:
    """What is wrong with a call's arguments, without their values."""
    problems = error.errors() if isinstance(error, ValidationError) else []
    return "; ".join(f"{'.'.join(map(str, it['loc']))}: {it['type']}" for it in problems)
