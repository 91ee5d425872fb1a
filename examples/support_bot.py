"""A support bot: it looks things up in articles, cites them, and remembers its customers.

python examples/support_bot.py                            # a stand-in for a model, no key
MODEL=openai:gpt-5-mini python examples/support_bot.py
"""

import json
import os

from memorist import Library, Memory
from memorist.agents.react import ReactAgent, Response, Token, ToolStarted
from memorist.agents.toolbox import Toolbox
from memorist.agents.tools import memory_tools
from memorist.testing.scripted import ScriptedChatModel

ARTICLES = {
    "Returns": "A lamp may be returned within 60 days, everything else within 30 days. "
    "The refund takes five working days.",
    "Bulbs": "The desk lamp Luma takes an E14 bulb of at most 6 watts. The floor lamp Nox has "
    "its light built in.",
    "Shipping": "Parcels leave Hamburg every working day at noon. Within Europe they take two "
    "to four days.",
}
SYSTEM = "You help the customers of a lamp shop. Look things up with retrieve_context, and cite."
TALK = (
    ("monday", "Hello, I bought the desk lamp Luma from you."),
    ("monday", "How many days do I have to return a lamp?"),
    ("friday", "Which bulb do I need for the lamp that I bought?"),
)


def stand_in(messages):
    """What a model would do, without one: look up each question, then read out what it got."""
    turn = next(it for it in reversed(messages) if it.type == "human")
    *above, question = turn.text.splitlines()  # what is recalled is quoted above it
    remembered = [line[2:] for line in above if line.startswith("> ")]
    if messages[-1].type == "tool":
        first = json.loads(messages[-1].text)[0]
        known = f" (You told me: {remembered[0]})" if remembered else ""
        return f"{first['text']} [{first['citation']}]{known}"
    if "?" in question:
        return {"name": "retrieve_context", "args": {"query": question, "top_k": 1}}
    return "Good to know. How can I help?"


def show(event):
    """A stream as a terminal shows it."""
    if isinstance(event, ToolStarted):
        print(f"\n     ({event.name}: {event.arguments.get('query')})\nbot: ", end="")
    elif isinstance(event, Token):
        print(event.text, end="", flush=True)
    elif isinstance(event, Response):
        print(f"\n     ({len(event.recalled)} recalled; {event.receipt})", *event.warnings, "\n")


def main():
    with Memory(":memory:") as memory:
        library = Library(memory, "shop")
        for title, text in ARTICLES.items():
            library.add(title, text, uri=f"help/{title.lower()}.md")
        box = Toolbox(memory, user="ada", agent="support", library=library)
        agent = ReactAgent(
            os.environ.get("MODEL") or ScriptedChatModel(stand_in),
            memory,
            user="ada",
            agent="support",
            tools=memory_tools(box, only=["retrieve_context"], system=SYSTEM),
            system=SYSTEM,
            deadline_ms=1_000,  # 50 unless told otherwise; a busy machine may need more
        )
        for session, question in TALK:
            print(f"ada: {question}\nbot: ", end="")
            for event in agent.stream(question, session):
                show(event)


if __name__ == "__main__":
    main()
