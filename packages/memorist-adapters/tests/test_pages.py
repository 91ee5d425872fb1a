"""Each framework's section of docs/adapters.md prints what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.support.pages import program, section

from memorist.records.query import Query


@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")  # LlamaIndex's own
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince211")
@pytest.mark.parametrize(
    "heading", ["AutoGen", "Google ADK", "LlamaIndex", "OpenAI Agents SDK", "Pydantic AI"]
)
def test_a_section_prints_what_it_says(
    heading: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unhurried = property(lambda query: None, lambda query, value: None)
    monkeypatch.setattr(Query, "deadline_ms", unhurried)
    code, promised = program(section("adapters.md", heading))
    (tmp_path / "page.py").write_text(code)
    runpy.run_path(str(tmp_path / "page.py"))  # in this process: importing the SDK takes seconds
    assert promised
    assert capsys.readouterr().out.splitlines() == promised
