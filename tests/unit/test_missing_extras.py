"""Without its framework, a door says which extra brings it; the rest works without any."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "memorist"
ROOMS = ("agents", "server")
FILES = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

TRY_ALL = """
import importlib, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if ".".join(name.split(".")[:2]) in blocked or name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

blocked, modules = json.loads(sys.argv[1])
sys.meta_path.insert(0, Missing())
import memorist
for name in memorist.__all__:
    getattr(memorist, name)
said = {}
for name in modules:
    try:
        importlib.import_module(name)
    except memorist.MissingExtraError as error:
        said[name] = error.extra
    except ImportError as error:
        said[name] = repr(error)
print(json.dumps(said))
"""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST) -> Iterator[str]:
    """The packages that are imported somewhere in some code; Google's share a first name."""
    for node in ast.walk(tree):
        names = [it.name for it in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            first, _, rest = name.partition(".")
            yield f"{first}.{rest.partition('.')[0]}" if first == "google" else first


def guards(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, set[str]]]:
    """Which extra some code asks for, and the packages without which it does."""
    for node in nodes:
        if not isinstance(node, ast.Try):
            continue
        for raised in (it for handler in node.handlers for it in ast.walk(handler)):
            match raised:
                case ast.Call(func=ast.Name(id="MissingExtraError"), args=[ast.Constant(str(it))]):
                    yield it, {name for part in node.body for name in imported(part)}


@cache
def brought(requirement: str) -> frozenset[str]:
    """The distributions that come with a requirement, its own requirements' included."""
    found, waiting = set[str](), [requirement]
    while waiting:
        wanted = Requirement(waiting.pop())
        for extra in ("", *wanted.extras):
            key = f"{plain(wanted.name)}[{extra}]"
            if key in found:
                continue
            found.add(key)
            waiting += [it for it in requires(wanted.name) if applies(it, extra)]
    return frozenset(key.partition("[")[0] for key in found)


@cache
def requires(distribution: str) -> tuple[str, ...]:
    try:
        return tuple(metadata.requires(distribution) or ())
    except metadata.PackageNotFoundError:  # for another platform, or another extra
        return ()


def applies(requirement: str, extra: str) -> bool:
    marker = Requirement(requirement).marker
    return marker is None or marker.evaluate({"extra": extra})


def plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


@cache
def packages() -> dict[str, set[str]]:
    """Which distributions a package that can be imported comes from."""
    found = metadata.packages_distributions()
    named = {name: {plain(it) for it in found[name]} for name in found if name != "google"}
    return named | {"google.adk": {"google-adk"}, "google.genai": {"google-genai"}}


def optional() -> set[str]:
    """The packages that the rooms use and that Memorist itself does not ask for."""
    used = {name for path in FILES for name in imported(ast.parse(path.read_text()))}
    used -= {"memorist", "__future__", *sys.stdlib_module_names}
    core = {plain(Requirement(it).name) for it in requires("memorist") if applies(it, "")}
    return {name for name in used if not packages().get(name, set()) & core}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What each module says to being imported where nothing optional is installed."""
    given = json.dumps([sorted(optional()), [name_of(path) for path in FILES]])
    done = subprocess.run(
        [sys.executable, "-c", TRY_ALL, given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome: dict[str, str] = json.loads(done.stdout)
    return outcome


def test_a_module_without_its_framework_names_an_extra_that_there_is(said: dict[str, str]) -> None:
    """Those that users import, as the documents and examples show; others import these first."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]
    shown = {name for page in pages for name in re.findall(r"memorist\.[a-z_.]+", page.read_text())}
    for path in FILES:
        named, guarded = said.get(name_of(path)), any(guards(ast.parse(path.read_text()).body))
        if guarded or name_of(path) in shown:
            assert named in ((*EXTRAS,) if guarded else (None, *EXTRAS)), path


def test_the_extra_that_a_module_names_brings_all_that_was_missing() -> None:
    for path in FILES:
        for extra, missing in guards(ast.walk(ast.parse(path.read_text()))):
            comes = brought(f"memorist[{extra}]")
            assert not {name for name in missing if not packages().get(name, set()) & comes}, path


def test_every_framework_of_the_extras_was_kept_out() -> None:
    """Else the tests above would prove nothing."""
    assert optional() >= {"langchain", "langchain_core", "langgraph", "mcp", "pydantic"}


def test_the_stand_ins_for_models_want_no_pytest() -> None:
    script = (
        "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None\n"
        "import memorist.testing.model_server, memorist.testing.scripted"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")
