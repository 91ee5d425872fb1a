"""An agent is killed with `kill -9` in the midst of its talk, and goes on in a new process.

`python -m tests.crash.test_agent_kill PATH FIRST LAST` is that agent: it talks from one turn to
another, and writes the number of each turn that was answered.
"""

from __future__ import annotations

import os
import sys
from itertools import repeat
from pathlib import Path

from memorist import Memory
from tests.crash.processes import finish, kill, read_line, start
from tests.integration.test_long_conversation import QUESTION, Boat, check_log, said

KILLED_AT, TURNS = 40, 46
HANGS = "hang"


def talk(path: str, first: int, last: int, where: str = "") -> None:
    """Talk; where told so, hang while the model thinks of its last answer."""
    with Memory(path, embedder=None) as memory:
        boat = Boat(memory)
        if where == HANGS:
            own = boat.small.replies

            def reply(messages: list[object]) -> object:
                if messages[-1].text == said(last):  # type: ignore[attr-defined]
                    os.write(1, b"thinking\n")
                    sys.stdin.readline()
                return own(messages)

            boat.small._script = repeat(reply)
        for turn in range(first, last + 1):
            boat.ask(said(turn))
            os.write(1, b"%d\n" % turn)


def roles_of(path: str) -> list[str]:
    with Memory(path, embedder=None, extraction=None) as memory:
        log = memory.history(user="ada", agent="mate", session="voyage")
        return [
            message.role for message in log if message.role != "tool" and not message.tool_calls
        ]


def test_a_talk_killed_at_turn_forty_goes_on_in_a_new_process(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    first = start("test_agent_kill", path, 1, TURNS)
    for turn in range(1, KILLED_AT + 1):
        assert read_line(first) == str(turn)
    acked = KILLED_AT + len(kill(first))
    roles = roles_of(path)
    answered = roles.count("assistant")
    assert answered >= acked  # what the user has read is stored
    assert roles.count("user") - answered in (0, 1)  # and what was asked, even without an answer

    resumed = start("test_agent_kill", path, roles.count("user") + 1, TURNS)
    finish(resumed, timeout_seconds=120)
    with Memory(path, embedder=None) as memory:
        boat = Boat(memory)
        assert boat.ask(QUESTION)["messages"][-1].text == "It is 4711."
        log = memory.history(user="ada", agent="mate", session="voyage")
        users = [message.text for message in log if message.role == "user"]
        assert users == [*map(said, range(1, TURNS + 1)), QUESTION]
        if roles.count("user") == answered:
            check_log(memory, TURNS)


def test_a_question_whose_answer_never_came_is_in_the_log(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    child = start("test_agent_kill", path, 1, 4, HANGS)
    assert [read_line(child) for _ in range(4)] == ["1", "2", "3", "thinking"]
    kill(child)
    assert roles_of(path) == ["user", "assistant"] * 3 + ["user"]
    with Memory(path, embedder=None) as memory:
        boat = Boat(memory)
        boat.ask(QUESTION)
        shown = [str(message.text) for message in boat.small.prompts[0].messages]
        assert said(4) in shown
        assert shown[-1] == QUESTION


if __name__ == "__main__":
    talk(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
