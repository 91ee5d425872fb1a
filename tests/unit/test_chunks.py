"""Chunks: the structure of a text decides where it is cut, and nothing is lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorist.context.documents.markdown import chunks
from memorist.context.documents.reading import html_to_text
from memorist.language.text import PASSAGE_CHARS
from memorist.records.documents import Chunk

LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "### Three ###",
        "Setext",
        "=====",
        "---",
        "```",
        "~~~~",
        "    indented",
        "- item",
        "1. item",
        "> quoted",
        "",
        "",
        "word " * 30,
        "x" * 1_500,
        "| a | b |",
        "<!--",
        "-->",
        "title: x",
        "...",
        "我三月搬到了柏林。" * 40,
        "\ttab",
        "\r",
    ]
)
TEXTS = st.one_of(st.text(max_size=3_000), st.lists(LINES, max_size=60).map("\n".join))


def texts(text: str) -> list[str]:
    return [text[chunk.start : chunk.stop] for chunk in chunks(text)]


@settings(deadline=None)
@given(TEXTS)
def test_no_character_is_lost_and_none_comes_twice(text: str) -> None:
    assert "".join(texts(text)) == text
    cut = chunks(text)
    assert all(len(piece) <= PASSAGE_CHARS for piece in texts(text))
    assert all(chunk.start < chunk.stop for chunk in cut) or text == ""
    assert [chunk.start for chunk in cut[1:]] == [chunk.stop for chunk in cut[:-1]]


def test_an_empty_text_is_one_empty_chunk() -> None:
    assert chunks("") == [Chunk(0, 0)]


def test_each_section_is_a_chunk_with_the_path_to_it() -> None:
    text = "Before.\n\n# Cars\n\nOf cars.\n\n## Red\n\nOf red ones.\n\n# Boats\n\nOf boats.\n"
    assert [(text[it.start : it.stop].strip(), it.headings) for it in chunks(text)] == [
        ("Before.", ()),
        ("# Cars\n\nOf cars.", ("Cars",)),
        ("## Red\n\nOf red ones.", ("Cars", "Red")),
        ("# Boats\n\nOf boats.", ("Boats",)),
    ]


def test_a_header_with_nothing_below_it_goes_with_what_follows() -> None:
    text = "# Cars\n\n## Red\n\nOf red ones.\n\nSetext\n======\n\n# End\n"
    found = [(text[it.start : it.stop].strip(), it.headings) for it in chunks(text)]
    assert found == [
        ("# Cars\n\n## Red\n\nOf red ones.", ("Cars", "Red")),
        ("Setext\n======\n\n# End", ("End",)),
    ]


def test_paragraphs_are_packed_whole() -> None:
    paragraph = "A sentence of some length stands here. " * 10
    text = "\n\n".join([paragraph] * 5)
    pieces = texts(text)
    assert len(pieces) == 3
    assert all(piece.startswith("A sentence") for piece in pieces)


def test_code_and_lists_stay_whole_where_they_fit() -> None:
    code = "```python\n" + "x = 1\n\n" * 60 + "# no header\n```\n\n"
    items = "".join(f"- item {number} of the list\n" for number in range(25)) + "\n"
    pieces = texts("word " * 150 + "\n\n" + code + items + "The end. " * 60)
    assert any(code in piece for piece in pieces)
    assert any(items in piece for piece in pieces)


def test_what_is_too_long_is_cut_where_it_pauses() -> None:
    code = "```\n" + "".join(f"call({number})\n" for number in range(300)) + "```\n"
    assert all(piece.endswith("\n") for piece in texts(code))
    prose = "This is one sentence of many. " * 100
    assert all(piece.endswith(". ") for piece in texts(prose))


@pytest.mark.parametrize("end", ["---", "..."])
def test_front_matter_is_no_header(end: str) -> None:
    text = f"---\ntitle: Tea\nby: Ada\n{end}\n\n# Tea\n\nHow to brew it.\n"
    [front, tea] = chunks(text)
    assert (front.headings, tea.headings) == ((), ("Tea",))


def test_a_page_becomes_text_with_its_structure() -> None:
    title, text = html_to_text("""
        <html><head><title>Shop &amp; co</title><style>p {color: red}</style></head><body>
        <nav><ul><li>Home<li>Cart</ul></nav><script>alert("<p>no</p>")</script>
        <h1>Returns</h1><p>Send it <b>back</b>
        within   30&nbsp;days.<br>Really.</p>
        <ul><li>a lamp<li><p>a chair</p></ul>
        <table><tr><th>Item<th>Fee</tr><tr><td><p>Lamp</p></td><td></td><td>2&euro;</td></tr></table>
        <pre>x  =  1
y = 2</pre><div>The</div><div>end</div><svg><text>logo</text></svg></body></html>""")
    assert title == "Shop & co"
    assert text == (
        "# Returns\n\nSend it back within 30 days.\nReally.\n\n- a lamp\n\n- a chair\n\n"
        "Item | Fee\nLamp |  | 2€\n\n```\nx  =  1\ny = 2\n```\n\nThe\n\nend"
    )


def test_a_menu_that_never_closes_does_not_swallow_the_page() -> None:
    assert html_to_text("<nav><p>All there is</p>") == ("", "All there is")


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<h2>",
                "</h2>",
                "<li>",
                "<pre>",
                "</pre>",
                "<tr>",
                "<td>",
                "</tr>",
                "</table>",
                "<nav>",
                "</nav>",
                "<script>",
                "</script>",
                "<!--",
                "-->",
                "<![CDATA[",
                "]]>",
                "<br/>",
                "&amp;",
                "&#0;",
                "word ",
                "\n",
                "<",
                "\"'",
                "<title>",
                "</title>",
                "<p a='",
                "<!x",
            ]
        ),
        max_size=30,
    )
)
def test_no_page_is_too_broken_to_be_read(parts: list[str]) -> None:
    _, text = html_to_text("".join(parts))
    assert "".join(texts(text)) == text


@pytest.mark.parametrize(
    "page", ["<!--", "<a ", "</", "<?", "<![CDATA[", "<!doctype ", "<td>", "<svg></nav>", "<a b='"]
)
def test_no_page_takes_long(page: str) -> None:
    began = time.process_time()
    html_to_text(f"{page * 40_000} words")
    assert time.process_time() - began < 3


def test_what_never_ends_hides_nothing() -> None:
    assert html_to_text("<p>Tea</p><!-- <b>is</b> <!-- hot <i")[1] == "Tea\n\nis hot i"


def test_a_header_as_long_as_a_book_is_not_told_with_each_chunk() -> None:
    text = f"{'word ' * 5_000}\n===\n\n" + "Some words.\n\n" * 1_000
    found = chunks(text)
    assert "".join(texts(text)) == text
    assert all(len(title) <= 200 for chunk in found for title in chunk.headings)
