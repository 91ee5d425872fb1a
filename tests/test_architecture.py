"""The house rules, checked: sizes, exports, cycles, commands, versions."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import memorist

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
ALL_PYTHON = [
    *SOURCES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *(ROOT / "benchmarks").rglob("*.py"),
]
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7  # six, and self


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", ALL_PYTHON, ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES
    for function in functions(path):
        assert function.end_lineno is not None
        length = function.end_lineno - function.lineno + 1
        assert length <= MAX_FUNCTION_LINES, f"{function.name} has {length} lines"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_take_few_parameters(path: Path) -> None:
    # Doors onto the command line have an option per parameter.
    for function in functions(path) if "cli" not in path.parts else ():
        arguments = function.args
        count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
        assert count <= MAX_PARAMETERS, f"{function.name} takes {count}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_unsafe_is_used_and_nothing_is_caught_blindly(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            assert not names & {"pickle", "marshal", "shelve"}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec")
        if isinstance(node, ast.ExceptHandler):
            caught = getattr(node.type, "id", None)
            again = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            assert node.type is not None
            kept = (
                path.name == "daemon_pool.py"
            )  # a thread's error is raised where its result is taken
            assert caught not in ("Exception", "BaseException") or again or kept


def test_no_module_imports_its_own_importer() -> None:
    imports = {module_name(path): own_imports(path) for path in SOURCES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail[trail.index(module) :], module))
        if module not in done:
            for imported in imports.get(module, ()):
                visit(imported, (*trail, module))
            done.add(module)

    for module in imports:
        visit(module, ())


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def own_imports(path: Path) -> set[str]:
    """Modules of ours imported when this one is imported; not for type checkers only."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memorist."):
            found.add(str(node.module))
    return found


def test_the_public_door_lists_exactly_what_it_holds() -> None:
    held = {
        name
        for name, value in vars(memorist).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    later = set(memorist._WHEN_ASKED_FOR)
    assert all(isinstance(getattr(memorist, name), type) for name in later)
    assert sorted(held | later | {"__version__"}) == sorted(memorist.__all__)
    assert memorist.__all__ == sorted(memorist.__all__)


def test_every_module_and_public_name_says_what_it_means() -> None:
    for info in pkgutil.walk_packages(memorist.__path__, "memorist."):
        assert importlib.import_module(info.name).__doc__, info.name
    for name in memorist.__all__:
        if not name.startswith("_") and isinstance(getattr(memorist, name), type):
            assert getattr(memorist, name).__doc__, name


def test_imports_point_downward() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_changelog_knows_this_version() -> None:
    assert f"## {memorist.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_justified() -> None:
    justified = (ROOT / "docs" / "decisions" / "dependencies.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    named = {re.split(r"[^\w-]", line)[0] for line in sum(extras, project["dependencies"])}
    for dependency in named - {"memorist"}:
        assert f"`{dependency}`" in justified, dependency


def test_the_readme_and_the_makefile_agree_on_the_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for command in ("run", "test"):
        assert f"make {command}" in readme
        assert f"\n{command}:" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()
