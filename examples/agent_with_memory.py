"""An agent that remembers: told on Monday, asked on Tuesday.

python examples/agent_with_memory.py                      # a stand-in for a model, no key
MODEL=openai:gpt-5-mini python examples/agent_with_memory.py
"""

import os

from memorist import Memory
from memorist.agents.react import ReactAgent
from memorist.testing.scripted import ScriptedChatModel


def stand_in(messages):
    """What a model would do, without one: say what its memory shows it, as far as it bears."""
    *above, question = messages[-1].text.splitlines()  # what is recalled is quoted above it
    asked = set(question.rstrip("?").split())
    shown = [line[2:] for line in above if line.startswith("> ")]
    return max(shown, key=lambda line: len(asked & set(line.split())), default="I see.")


with Memory(":memory:") as memory:  # or a file, or postgresql://…
    agent = ReactAgent(
        os.environ.get("MODEL") or ScriptedChatModel(stand_in),
        memory,
        user="ada",
        system="You plan Ada's evenings. Answer in one sentence.",
        deadline_ms=1_000,  # 50 unless told otherwise; a busy machine may need more
    )
    agent.process_message("I moved to Berlin in March. I am allergic to peanuts.", "monday")
    agent.process_message("My sister Ines will visit me every June.", "monday")
    for question in ("What food am I allergic to?", "When will my sister visit me?"):
        answer = agent.process_message(question, "tuesday")
        print(f"ada:   {question}\nagent: {answer.message}")
        print(f"       {len(answer.recalled)} recalled; {answer.receipt}", *answer.warnings)
