"""Without its framework, a door says which extra brings it; the rest works without any."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "memorist"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# What the extras bring, and what comes with it.
OPTIONAL = """
anyio cryptography fastapi jwt langchain langchain_core langgraph mcp pydantic pydantic_core
pypdf psycopg psycopg_pool starlette uvicorn
""".split()
IMPORT_ALL = """
import importlib, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in optional:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

optional, modules = json.loads(sys.argv[1])
sys.meta_path.insert(0, Missing())
import memorist
for name in memorist.__all__:
    getattr(memorist, name)
outcomes = {}
for name in modules:
    try:
        importlib.import_module(name)
        outcomes[name] = ""
    except memorist.MissingExtraError as error:
        outcomes[name] = error.extra
    except ImportError as error:
        outcomes[name] = repr(error)
print(json.dumps(outcomes))
"""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def test_a_door_without_its_framework_names_the_extra_and_the_rest_needs_none() -> None:
    doors = [path for room in ("agents", "server") for path in (SOURCE / room).rglob("*.py")]
    arguments = json.dumps([OPTIONAL, sorted(map(name_of, doors))])
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, str] = json.loads(done.stdout)
    for path in doors:
        name, said = name_of(path), outcomes[name_of(path)]
        if name.startswith("memorist.server.http"):
            assert said == "server", name
        elif name.startswith("memorist.server.mcp") or "\nexcept ImportError" in path.read_text():
            assert said in EXTRAS, (name, said)
    named = set(outcomes.values())
    assert named >= {"", "server", "mcp", "langchain"}, named


def test_the_stand_in_for_models_wants_no_pytest() -> None:
    script = (
        "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None\n"
        "import memorist.testing.scripted"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")
