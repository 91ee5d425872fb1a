"""How Sphinx builds the site. `build.py` beside it gathers the pages first."""

from __future__ import annotations

import re
import textwrap
from itertools import chain, zip_longest
from typing import Any

import memorist

project = "Memorist"
copyright = "the Memorist authors, Apache-2.0"
release = memorist.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
language = "en"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as Git hosts make them
# A page begins at whatever level reads well; what a ```console block shows need not be one program.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "Memorist"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_copy_source = False
html_favicon = "static/icon.svg"
html_theme_options = {"light_logo": "icon.svg", "dark_logo": "icon.svg"}
# Fonts that every system has: nothing is fetched from elsewhere.
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
MONO = "ui-monospace, 'Cascadia Code', Menlo, 'DejaVu Sans Mono', monospace"
html_theme_options |= {
    f"{theme}_css_variables": {"font-stack": SANS, "font-stack--monospace": MONO}
    for theme in ("light", "dark")
}


def from_markdown(app: Any, what: str, name: str, it: Any, options: Any, lines: list[str]) -> None:
    """Our docstrings are Markdown: `code` between backticks, and what is indented is code, too."""
    paragraphs = textwrap.dedent("\n".join(lines)).split("\n\n")
    lines[:] = "\n\n".join(map(_paragraph, paragraphs)).splitlines()


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        language = "text" if "─" in text else "python"
        return f".. code-block:: {language}\n\n{text}"
    parts = re.split(r"`+([^`]+)`+", text)
    plain = [re.sub(r"([*|_\\])", r"\\\1", part) for part in parts[::2]]
    code = [f"``{' '.join(part.split())}``\\ " for part in parts[1::2]]
    return "".join(chain(*zip_longest(plain, code, fillvalue="")))


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", from_markdown)
