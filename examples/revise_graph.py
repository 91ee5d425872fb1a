"""A LangGraph graph that answers and then revises its memory, over MCP.

python examples/revise_graph.py                      # a stand-in for a model, no key
MODEL=openai:gpt-5-mini python examples/revise_graph.py
"""

import asyncio
import os

from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, StateGraph

from memorist import Memory
from memorist.agents.mcp_manager import McpManager
from memorist.agents.revise import ReviseNode, ReviseState
from memorist.server.mcp.server import build_server
from memorist.testing.scripted import ScriptedChatModel

SAID = ("I moved to Berlin in March.", "I never eat peanuts.", "What did I tell you?")


def stand_in(messages):
    """What a model would do, without one: answer politely, and note down what was said."""
    if messages[0].type != "system":
        return "I will remember that."
    if messages[-1].type == "tool":
        return "Noted what was said."
    return {"name": "store_fact", "args": {"content": SAID[min(len(turns) - 1, 1)]}}


model = (
    init_chat_model(os.environ["MODEL"]) if "MODEL" in os.environ else ScriptedChatModel(stand_in)
)
turns: list[str] = []


async def answer(state):
    """The graph's own work."""
    return {"messages": [await model.ainvoke(state["messages"])]}


async def main():
    """Three turns; after each the node stores what was said and decides what is worth keeping."""
    with Memory(":memory:", embedder=None) as memory:  # or a file, or postgresql://…
        async with McpManager(build_server(memory, program=True)) as manager:
            graph = StateGraph(ReviseState)
            graph.add_node("answer", answer)
            graph.add_node("revise", ReviseNode(manager, model).execute)
            graph.add_edge(START, "answer")
            graph.add_edge("answer", "revise")
            graph.add_edge("revise", END)
            app = graph.compile()
            state = {"messages": [], "session_id": "s1", "user_id": "ada"}
            for text in SAID:
                turns.append(text)
                state["messages"] = [*state["messages"], HumanMessage(text)]
                async for kind, part in app.astream(state, stream_mode=["custom", "values"]):
                    if kind == "custom":
                        print(f"  {part['memory_revision']}")
                    else:
                        state = part
                used = ", ".join(state["memory_tools_used"]) or "none"
                print(f"ada:   {text}\nagent: {state['messages'][-1].text}\n  tools used: {used}")
        stored = memory.history(user="ada", session="s1")
        print(f"{len(stored)} messages are in the log, and these memories beside them:")
        for memo in memory.memories.list(user="ada"):
            print(f"- {memo.text} ({memo.kind})")


asyncio.run(main())
