"""The rules of the house that no linter checks: sizes, words, doors, documentation."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import memorist

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "memorist"
ADAPTERS = ROOT / "packages" / "memorist-adapters" / "src" / "memorist_adapters"
OTHERS = [path for room in ("tests", "benchmarks") for path in (ROOT / room).rglob("*.py")]
BUDGETS = tomllib.loads((ROOT / "tests" / "budgets.toml").read_text())
DOORS = ("agents", "cli", "server", "views")


@cache
def modules(package: Path) -> dict[Path, ast.Module]:
    """What is in a package, parsed by the one process that asks."""
    return {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def room(path: Path) -> str:
    """The folder of src/memorist that a module is in; `memorist` for those beside the folders."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "memorist"


def test_every_room_keeps_to_its_budget_of_lines() -> None:
    used: Counter[str] = Counter()
    for path in modules(PACKAGE):
        used[room(path)] += lines(path)
    rooms = BUDGETS["rooms"]
    assert used.keys() == rooms.keys()
    over = {name: f"{used[name]} of {rooms[name]}" for name in rooms if used[name] > rooms[name]}
    assert not over
    assert sum(rooms.values()) <= BUDGETS["lines"]
    assert len(modules(PACKAGE)) <= BUDGETS["files"]


def test_files_and_functions_stay_small() -> None:
    trees = modules(PACKAGE) | modules(ADAPTERS)
    large = [f"{path}: {lines(path)}" for path in (*trees, *OTHERS) if lines(path) > 600]
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 60:
                    large.append(f"{path}: {node.name}: {length}")
    assert not large


def test_parameters_are_written_out_and_ruff_formats_nearly_everything() -> None:
    assert not [path for path in modules(PACKAGE) if "Unpack[" in path.read_text()]
    assert sum(path.read_text().count("# fmt: skip") for path in (*modules(PACKAGE), *OTHERS)) < 30


def test_no_class_name_has_two_meanings() -> None:
    names = Counter(
        node.name
        for tree in modules(PACKAGE).values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in names.items() if count > 1]


def test_doors_call_memory_and_never_its_store() -> None:
    """A door reads and writes through the public class, so that it works on a remote memory too."""
    doors = {path: tree for path, tree in modules(PACKAGE).items() if room(path) in DOORS}
    offences = {
        path.name: found
        for path, tree in (doors | modules(ADAPTERS)).items()
        if (found := sorted(set(shortcuts(tree))))
    }
    assert not offences


def shortcuts(tree: ast.Module) -> Iterator[str]:
    """Where a module imports the store, takes a memory's store, or uses its private names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("memorist.store."):
            yield f"imports {node.module}"
        if isinstance(node, ast.Attribute):
            private = node.attr.startswith("_") and ast.unparse(node.value).endswith("memory")
            if node.attr == "store" or private:
                yield ast.unparse(node)


def test_no_module_imports_its_own_importer() -> None:
    imports = {module_name(path): own_imports(tree) for path, tree in modules(PACKAGE).items()}
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


def own_imports(tree: ast.Module) -> set[str]:
    """Modules of ours imported when this one is imported; not those for type checkers only."""
    return {
        node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memorist.")
        if node.module
    }


def test_the_public_names_are_exactly_those_in_all() -> None:
    assert len(memorist.__all__) > 90
    assert all(hasattr(memorist, name) for name in memorist.__all__)
    assert set(memorist.__all__) <= set(dir(memorist))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        memorist.nothing  # type: ignore[attr-defined]


def test_every_module_and_public_class_has_a_docstring() -> None:
    for info in pkgutil.walk_packages(memorist.__path__, "memorist."):
        assert importlib.import_module(info.name).__doc__, info.name
    for name in memorist.__all__:
        if not name.startswith("_") and isinstance(getattr(memorist, name), type):
            assert getattr(memorist, name).__doc__, name


def test_the_changelog_has_this_version() -> None:
    assert f"## {memorist.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_has_its_reason_written_down() -> None:
    reasons = (ROOT / "docs" / "decisions" / "dependencies.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    named = {re.split(r"[^\w-]", line)[0] for line in sum(extras, project["dependencies"])}
    for dependency in named - {"memorist"}:
        assert f"`{dependency}`" in reasons, dependency


def test_the_readme_and_the_makefile_agree_on_the_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for command in ("run", "test"):
        assert f"make {command}" in readme
        assert f"\n{command}:" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_forks_and_exits_are_handled_in_one_place_and_every_lock_is_free_in_a_child() -> None:
    of_one_call = {"search.py", "scripted.py", "model_server.py", "daemon_pool.py"}
    for path, tree in (modules(PACKAGE) | modules(ADAPTERS)).items():
        text = path.read_text()
        if path.name != "forks.py":
            banned = r"register_at_fork|import atexit|getpid\(|import cached_property"
            assert not re.search(banned, text), path
        safe = {
            id(inner)
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "fork_safe"
            for inner in ast.walk(call)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and path.name not in of_one_call:
                made = re.fullmatch(r"threading\.(Lock|RLock|Condition)", ast.unparse(node.func))
                assert not made or id(node) in safe, f"{path}: {ast.unparse(node)} is not fork_safe"
