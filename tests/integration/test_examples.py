"""The examples, each run as a reader would run it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tools.notebook import PAGE, notebook

from tests.support.model_server import ModelServer
from tests.support.pages import UNHURRIED
from tests.support.program import printed

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PLACE = ("HOME", "XDG_DATA_HOME")


def run(name: str, home: Path, **environment: str) -> str:
    """What an example prints; a warning of Python's is an error here as well."""
    kept = {name: value for name, value in os.environ.items() if "MEMORIST" not in name}
    kept.pop("MODEL", None)
    return printed(EXAMPLES / name, home, kept | dict.fromkeys(PLACE, str(home)) | environment)


def test_an_agent_with_memory_answers_on_tuesday_what_it_was_told_on_monday(tmp_path: Path) -> None:
    said = run("agent_with_memory.py", tmp_path)
    assert "agent: I moved to Berlin in March. I am allergic to peanuts.\n" in said
    assert "agent: My sister Ines will visit me every June.\n" in said
    assert "recalled; window 8,000, system" in said


def test_an_agent_with_memory_is_fifteen_lines() -> None:
    code = (EXAMPLES / "agent_with_memory.py").read_text()
    _, _, agent = code.partition("\nwith Memory(")
    assert len(agent.splitlines()) <= 15


def test_the_support_bot_cites_articles_and_knows_its_customer(tmp_path: Path) -> None:
    said = run("support_bot.py", tmp_path)
    assert "(retrieve_context: How many days do I have to return a lamp?)" in said
    assert "within 60 days" in said
    assert "[Returns (help/returns.md)]" in said
    assert "E14 bulb of at most 6 watts" in said
    assert "(You told me: Hello, I bought the desk lamp Luma from you.)" in said


def test_the_graph_revises_its_memory_after_each_answer(tmp_path: Path) -> None:
    said = run("revise_graph.py", tmp_path)
    assert said.count("'status': 'completed', 'memory_updated': True") == 3
    assert "  tools used: store_fact\n" in said
    assert "6 messages are in the log" in said
    assert "- I never eat peanuts. (" in said


@pytest.mark.parametrize("name", ["agent_with_memory.py", "support_bot.py"])
def test_a_model_of_the_environment_is_asked_instead(name: str, tmp_path: Path) -> None:
    with ModelServer(answers=lambda body: "Ahoy from the server.") as server:
        real = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        said = run(name, tmp_path, MODEL="openai:any", **real)
        asked: list[Any] = [json.dumps(request.body) for request in server.requests]
    assert "Ahoy from the server." in said
    assert any("I bought the desk lamp" in it or "allergic to peanuts" in it for it in asked[2:])


def test_the_notebook_is_the_tutorial_and_its_cells_print_what_is_stored(tmp_path: Path) -> None:
    """Its cells run in order in one process, as a kernel runs them; it takes no Jupyter."""
    stored = json.loads((EXAMPLES / "first_memory.ipynb").read_text("utf-8"))
    assert stored == notebook(PAGE.read_text("utf-8")), "python tools/notebook.py makes it anew"
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    marked = [f"{''.join(cell['source'])}\nprint('\\f', end='')\n" for cell in cells]
    script = tmp_path / "cells.py"
    script.write_text(UNHURRIED + "".join(marked), "utf-8")
    printed = run(str(script), tmp_path).split("\f")[:-1]
    outputs = ["".join(text for out in cell["outputs"] for text in out["text"]) for cell in cells]
    assert printed == outputs
