"""Markdown's sections, as CommonMark sees them."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist import InvalidError, NotFoundError
from memorist.context.documents.markdown import Section, find_section, is_closed, sections

LINES = """\
# A|## B ##|### C|#|#no|####### 7| # one|  ## two|   ### three|    # four|\t# tab|# a \\#|# a#|## |\
```|````|~~~|~~~ ~|``` a`b|   ```|    ```|  ~~~|- ```|  ```|> ```|> q|> # q|>|> - x|> > # y|>\t# t|\
* x|- item|1. one|2. two|10) ten|  - nested|  para|    code|      deep|- # in|  # in|   # in|\
-\t# t|+|1.|===|---|- - -|***|=|-|--|  ---|    ---|> ---|text|`x`|<div>|</div>|<!-- c|-->|\
<!-- c -->|<pre>|</pre>|<a href='x'>|<a b>text|<?php|?>|<![CDATA[|]]>|<!X|<script|\\# esc|\
||| |\t""".split("|")
DOCUMENTS = st.builds(
    lambda lines, newline: newline.join(lines),
    st.lists(st.one_of(st.sampled_from(LINES), st.text("#`~ \t->=a1.", max_size=8)), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
)


def outline(text: str) -> list[tuple[int, str]]:
    return [(section.level, section.title) for section in sections(text)]


@given(DOCUMENTS)
def test_a_header_is_the_same_header_where_it_stands_alone(text: str) -> None:
    for section in sections(text):
        lines = text[section.start : section.body]
        assert outline(lines) == [(section.level, section.title)]
        assert len(lines.splitlines()) == 1 or lines.rstrip()[-1] in "=-"


@given(st.one_of(DOCUMENTS, st.text()))
def test_cutting_a_text_at_its_headers_loses_nothing(text: str) -> None:
    found = sections(text)
    cuts = [0, *(section.start for section in found), len(text)]
    assert "".join(text[start:stop] for start, stop in pairwise(cuts)) == text
    for section, limit in zip(found, cuts[2:], strict=True):
        assert section.start < section.body <= limit <= section.stop


@given(DOCUMENTS)
def test_a_section_ends_where_one_that_is_not_deeper_begins(text: str) -> None:
    found = sections(text)
    for number, section in enumerate(found):
        shallow = [one.start for one in found[number + 1 :] if one.level <= section.level]
        assert section.stop == (shallow[0] if shallow else len(text))


@given(DOCUMENTS, st.sampled_from(["```", "~~~~", "   ```` sh", "~~~ `x`"]), DOCUMENTS)
def test_nothing_inside_a_fence_is_a_header(above: str, fence: str, code: str) -> None:
    mark = re.sub(r"[^`~]", "", fence.split("`x`")[0])
    inside = "\n".join(line for line in code.splitlines() if mark[0] * 3 not in line)
    text = f"# Top\n\n{fence}\n{inside}\n{mark}\n\n# End\n"
    assert outline(text) == [(1, "Top"), (1, "End")]
    unclosed = f"# Top\n\n{fence}\n{inside}\n\n# End\n"
    assert outline(unclosed) == [(1, "Top")]
    if is_closed(above):
        assert len(sections(f"{above}\n\n{text}")) == len(sections(above)) + 2


def test_the_offsets_lead_to_header_body_and_end() -> None:
    text = "before\n\n# A #\r\nin a\r\n## B\r\nin b\r\nC\r\n===\r\nin c"
    a, b, c = sections(text)
    assert text[: a.start] == "before\n\n"
    assert (a.level, a.title, b.level, b.title, c.level, c.title) == (1, "A", 2, "B", 1, "in b C")
    assert text[a.start : a.body] == "# A #\r\n"
    assert text[a.body : a.stop] == "in a\r\n## B\r\n"
    assert text[c.start : c.body] == "in b\r\nC\r\n===\r\n"
    assert text[c.body : c.stop] == "in c"


NO_HEADERS = [
    "#no space",
    "    # indented",
    "\t# indented",
    "\\# escaped",
    "####### seven",
    "> # quoted",
    "- # in a list",
    "- a\n\n  # in a list",
    "1. a\n\n   # in a list",
    "- ```\n  # in a fence\n  ```",
    "<!--\n\n# in a comment\n\n-->",
    "<pre>\n# raw\n\n# raw\n</pre>",
    "<div>\n# html\n</div>",
    "text\n\n---",
    "---",
    "- a\n---",
    "> a\n===",
    "```\n# open to the end",
    "``` \n~~~\n# a",
    "````\n```\n# a\n```\n# b\n````",
    "[a]: /url\n---",
    '[a]: <u> "t"\n[b]: /u\n===',
    "\n===\n",
]


def test_what_only_looks_like_a_header_is_none() -> None:
    for text in NO_HEADERS:
        assert sections(text) == [], text


SPELLINGS = [
    ("#", 1, ""),
    ("## ##", 2, ""),
    ("   ### a", 3, "a"),
    ("# a \t b # ", 1, "a b"),
    ("# a#", 1, "a#"),
    ("#\ta", 1, "a"),
    ("# a \\#", 1, "a \\#"),
    ("a\n  b\n----", 2, "a b"),
    ("a\n=", 1, "a"),
    ("<!-- x -->\n# a", 1, "a"),
    ("<?\n?>\n# a", 1, "a"),
    ("text\n# a", 1, "a"),
    ("- x\n# a", 1, "a"),
    ("> x\n# a", 1, "a"),
    ("``` `\n# a", 1, "a"),
    ("[a]: /u\nb\n===", 1, "b"),
    ("    code\n# a", 1, "a"),
    ("<div>\n\n# a", 1, "a"),
    ("-\n\n  # a", 1, "a"),
    ("~~~\n~~~~\n# a", 1, "a"),
]


def test_headers_in_all_their_spellings_are_found() -> None:
    for text, level, title in SPELLINGS:
        assert outline(text) == [(level, title)], text


def test_a_section_is_found_by_its_title_its_level_or_its_path() -> None:
    text = "# Trips\n## Plans\na\n# Work\n## Plans\nb\n### Plans\nc\n# A > B\n# a\u00a0 b\n"
    assert text[slice(*span(text, "Work"))].startswith("# Work\n## Plans\nb")
    assert span(text, "### Plans") == span(text, "Work > ## Plans > Plans")
    assert text[slice(*span(text, "Trips > Plans"))] == "## Plans\na\n"
    assert text[slice(*span(text, " # A > B # "))] == "# A > B\n"
    assert find_section(text, "a b").level == 1
    assert find_section("Plans\n---\n", "Plans\n---").level == 2


def span(text: str, header: str) -> tuple[int, int]:
    found = find_section(text, header)
    return found.start, found.stop


def test_a_header_that_no_section_has_is_refused_without_repeating_it() -> None:
    text = "# Plans\n## Plans\n```\n# Secret\n```\n# Twice\n# Twice\n"
    for header in ("Secret", "### Plans", "Nowhere > Plans", "plans", "Plans > Twice"):
        with pytest.raises(NotFoundError) as missing:
            find_section(text, header)
        assert header not in str(missing.value)
    with pytest.raises(InvalidError, match=r"2 sections .* name its level"):
        find_section(text, "Twice")
    with pytest.raises(InvalidError, match="empty"):
        find_section(text, " ")


def test_a_text_is_closed_where_nothing_swallows_what_follows() -> None:
    for text in ["", "a", "- a", "> ```", "```\n```", "# a", "<div>", "a\r"]:
        assert is_closed(text), text


def test_a_text_is_open_where_code_or_html_is() -> None:
    for text in ["```", "a\n~~~\n``` \n", "<!-- a", "<pre>", "````\n```"]:
        assert not is_closed(text), text


@pytest.mark.parametrize(
    ("begin", "repeated", "end"),
    [
        ("", ">", ""),
        ("", "- ", "a"),
        ("", "#", ""),
        ("<a ", "b ", ""),
        ("", "[", ""),
        ("", " ", "a"),
        ("", "1. ", ""),
        ("", '[a]: /u "', "\n==="),
        ("", "# a\n", ""),
        ("", "* ", "a"),
        ("", "[a]: b\n", "==="),
    ],
)
def test_time_grows_with_the_length_of_a_text_and_no_faster(
    begin: str, repeated: str, end: str
) -> None:
    def seconds(times: int) -> float:
        text = f"{begin}{repeated * times}{end}"
        began = time.thread_time()
        sections(text)
        return time.thread_time() - began

    assert seconds(20_000) < 10 * min(seconds(5_000) for _ in range(3)) + 0.1


@pytest.mark.parametrize("header", ["Trips > Plans", ">" * 1_000, "> " * 30_000])
def test_no_header_takes_long_to_be_looked_for(header: str) -> None:
    text = "# Trips\n" + "## Plans\n" * 7_000
    began = time.process_time()
    with pytest.raises((InvalidError, NotFoundError)):
        find_section(text, header)
    assert time.process_time() - began < 3


def test_a_section_is_a_value() -> None:
    assert sections("# a") == [Section(level=1, title="a", start=0, body=3, stop=3)]


def test_hashes_at_the_end_of_a_header_are_not_its_title() -> None:
    assert find_section("# Learn #\nmore", "# Learn #").title == "Learn"
