"""Builds the documentation into site/: `make docs`.

The pages in docs/ are plain Markdown that reads well wherever the repository is shown. Here they
are laid out as a site: links that leave docs/ are led to where their pages go, the sections of
docs/README.md become the navigation, and the reference is made from the code. Strict: a link that
leads nowhere, and anything that would be fetched from elsewhere, fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sphinx.cmd.build import build_main

import memorist.server.http.app  # noqa: F401 - its routes are on the router then
from memorist.server.http.openapi import describe
from memorist.server.http.routing import router

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
STAGE = ROOT / "build" / "docs"
SITE = ROOT / "site"
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["'](?:https?:)?//|<link[^>]+rel=["'](?:stylesheet|"""
    r"""preload|preconnect|icon)["'][^>]+href=["'](?:https?:)?//|@import|url\(["']?(?:https?:)?//"""
)
FIRST_GROUPS = ("messages", "sessions", "recall", "context", "chat", "memories", "facts")
HTTP_OPENING = """# The HTTP API

Made from the server's own `/openapi.json`. [The server](../server.md) explains what all
operations have in common: users, keys, pages of lists, errors.
"""
REFERENCE = ["memory", "asyncio", "records", "errors", "protocols", "http", "../cli"]


def places() -> dict[Path, Path]:
    """Where each file of the repository goes in the site."""
    pages = {ROOT / "README.md": "index.md", ROOT / "docs" / "README.md": "contents.md"}
    for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING"):
        pages[ROOT / f"{name}.md"] = f"{name.lower()}.md"
    trained_on = [f"training/{it}/README.md" for it in ("corpus", "stories", "talks", "claims")]
    for name in ("MODEL_CARD.md", "training/README.md", *trained_on):
        pages[ROOT / "packages/memorist-minilm" / name] = f"embedder/{name.lower()}"
    for page in (ROOT / "docs").rglob("*.*"):
        if page not in pages and HERE not in page.parents:
            pages[page] = str(page.relative_to(ROOT / "docs"))
    for page in (HERE / "reference").glob("*.md"):
        pages[page] = f"reference/{page.name}"
    for page in (ROOT / "benchmarks").glob("*/README.md"):
        pages[page] = f"benchmarks/{page.parent.name}.md"
    for file in [*(ROOT / "examples").glob("*.*"), ROOT / "tests" / "budgets.toml"]:
        pages[file] = f"files/{file.name}"  # to be downloaded
    return {page: STAGE / place for page, place in pages.items()}


def lay_out(where: dict[Path, Path]) -> None:
    """Copy the pages, with their links led to where the others now are."""

    def led(page: Path, target: str) -> str:
        aimed = (page.parent / target).resolve()
        aimed = aimed / "README.md" if aimed.is_dir() else aimed
        if aimed not in where:
            raise SystemExit(
                f"{page.relative_to(ROOT)} links to {target}, which is not in the site"
            )
        return os.path.relpath(where[aimed], where[page].parent)

    for page, place in where.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copy(page, place)
            continue
        text = LINK.sub(lambda link, page=page: led(page, link[1]), page.read_text("utf-8"))
        place.write_text(text, "utf-8")


def navigation(contents: str) -> str:
    """Trees of pages, as the sections of the contents list them; each page where it comes last."""
    trees: dict[str, list[str]] = {}
    for title, _, links in (part.partition("\n") for part in contents.split("\n## ")[1:]):
        named = [page for page in dict.fromkeys(LINK.findall(links)) if page.endswith(".md")]
        for pages in trees.values():
            pages[:] = [page for page in pages if page not in named]
        trees[title] = [page for page in named if page != "index.md"]
    next(iter(trees.values())).insert(0, "contents.md")
    shown = [_tree(title, pages) for title, pages in trees.items()]
    shown.insert(3, _tree("Reference", [f"reference/{name}.md" for name in REFERENCE]))
    return "\n".join(shown)


def _tree(title: str, pages: list[str]) -> str:
    names = "\n".join(os.path.normpath(page).removesuffix(".md") for page in pages)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{names}\n```\n"


def api_document() -> dict[str, Any]:
    app = FastAPI(title="Memorist", version="0")
    app.include_router(router)
    describe(app)
    return app.openapi()


def http_reference(document: dict[str, Any]) -> Iterator[str]:
    """The OpenAPI document as a page: what each operation takes and answers."""
    yield HTTP_OPENING
    operations: dict[str, list[tuple[str, str, Any]]] = {group: [] for group in FIRST_GROUPS}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            group = operation.get("tags", ["server"])[0]
            operations.setdefault(group, []).append((method.upper(), path, operation))
    for group, members in operations.items():
        yield f"\n## {group.capitalize()}\n"
        for method, path, operation in members:
            yield f"\n### {method} {path}\n\n{operation.get('description', operation['summary'])}\n"
            yield from _fields(document, operation)
            answer = operation["responses"].get("200", {}).get("content", {})
            if example := answer.get("application/json", {}).get("example"):
                shown = json.dumps(example, indent=2, ensure_ascii=False)
                yield f"\nAnswers, for example:\n\n```json\n{shown}\n```\n"


def _fields(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    rows = [
        (one["name"], one["in"], one["schema"], one.get("required", False), one)
        for one in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = _resolved(document, body.get("schema", {}))
    for name, field in schema.get("properties", {}).items():
        rows.append((name, "body", field, name in schema.get("required", []), field))
    if rows:
        yield "\n| field | in | type | means |\n|---|---|---|---|\n"
    for name, place, field, required, described in rows:
        means = described.get("description", "").replace("\n", " ").replace("|", "\\|")
        default = f" Default: `{json.dumps(field['default'])}`." if field.get("default") else ""
        star = " (required)" if required else ""
        yield f"| `{name}`{star} | {place} | {_type(field)} | {means}{default} |\n"


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def _type(field: dict[str, Any]) -> str:
    if choices := field.get("anyOf"):
        return ", ".join(_type(choice) for choice in choices if choice.get("type") != "null")
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kind = field.get("format", field.get("type", "any"))
    return f"list of {_type(field['items'])}" if "items" in field else str(kind)


def check(site: Path) -> None:
    """Nothing is fetched from elsewhere when a page is looked at; links that leave are listed."""
    leaving: set[str] = set()
    for page in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = page.read_text("utf-8")
        leaving.update(re.findall(r'<a [^>]*href="(https?://[^"]+)"', text))
        if found := FETCHED.search(text):
            raise SystemExit(f"{page.relative_to(site)} fetches from elsewhere: {found[0]}")
    listed = STAGE.parent / "external-links.txt"
    listed.write_text("\n".join(sorted(leaving)) + "\n", "utf-8")
    print(f"{len(leaving)} links lead elsewhere, and are not followed: {listed.relative_to(ROOT)}")


def main() -> int:
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    lay_out(places())
    contents = STAGE / "contents.md"
    contents_text = contents.read_text("utf-8")
    with (STAGE / "index.md").open("a", encoding="utf-8") as index:
        index.write(navigation(contents_text))
    (STAGE / "reference" / "http.md").write_text("".join(http_reference(api_document())), "utf-8")
    with (STAGE / "decisions" / "README.md").open("a", encoding="utf-8") as decisions:
        decisions.write("\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n")
    with (STAGE / "recall.md").open("a", encoding="utf-8") as recall:
        recall.write("\n```{toctree}\n:hidden:\n:glob:\n\nembedder/**\nbenchmarks/*\n```\n")
    options = ["-W", "--keep-going", "-q", "-j", "auto", "-d", str(STAGE.parent / "doctrees")]
    if failed := build_main(["-b", "html", "-c", str(HERE), *options, str(STAGE), str(SITE)]):
        return failed
    check(SITE)
    print(f"site/index.html: {len([*SITE.rglob('*.html')])} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
