"""Reading: files of many kinds, encodings and faults become titles and texts."""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from memorist.context.documents import reading
from memorist.context.documents.reading import decode, find_files, parse_document, read_document
from memorist.errors import InvalidError, MissingExtraError


def pdf(*pages: str, title: str = "") -> bytes:
    """A small PDF whose pages say these lines."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, said in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({said}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    objects.append(f"<< /Title ({title}) >>")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    end = f"trailer << /Size {count} /Root 1 0 R /Info {count - 1} 0 R >>\nstartxref\n{len(out)}\n"
    return out + f"xref\n0 {count}\n0000000000 65535 f \n{table}{end}%%EOF".encode()


def fill(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 'Tea, brewed'\n---\n# Other\n", "Tea, brewed"),
        ("---\nby: Ada\n---\nWords.\n\n## Second\n\n# First\n", "First"),
        ("Tea\n===\n\nWords", "Tea"),
        ("```\n# code\n```\n\nWords", "the-name"),
        ("Only words", "the-name"),
    ],
)
def test_the_title_is_what_the_text_says_or_its_name(text: str, title: str) -> None:
    assert parse_document(text.encode(), ".md", "the-name").title == title


def test_a_page_has_the_title_of_its_header_or_its_own() -> None:
    assert parse_document(b"<title>Shop</title><h1>Tea</h1>x", ".html", "n").title == "Tea"
    assert parse_document(b"<title>Shop</title><p>x", ".htm", "n").title == "Shop"


def test_a_title_is_one_short_line() -> None:
    title = parse_document(b"# a\tb " + b"word " * 200, ".md", "n").title
    assert title.startswith("a b word")
    assert len(title) == 200


@pytest.mark.parametrize(
    ("raw", "text", "noted"),
    [
        ("Käse".encode(), "Käse", ""),
        ("Käse".encode("utf-8-sig"), "Käse", ""),
        ("Käse".encode("utf-16"), "Käse", ""),
        ("Käse “fein”".encode("cp1252"), "Käse “fein”", "cp1252"),
        (b"K\xe4se \x81", "Käse \x81", "latin-1"),
        (b"one\r\ntwo\rthree\n", "one\ntwo\nthree\n", ""),
        (b"", "", ""),
    ],
)
def test_encodings_are_told_apart(raw: bytes, text: str, noted: str) -> None:
    found, note = decode(raw)
    assert found == text
    assert noted in note
    assert bool(note) == bool(noted)


def test_the_encoding_a_page_declares_is_believed() -> None:
    raw = '<meta charset="koi8-r"><h1>Чай</h1>'.encode("koi8-r")
    document = parse_document(raw, ".html", "n")
    assert (document.title, document.note) == ("Чай", "")


def test_a_pdf_is_read_page_by_page() -> None:
    document = parse_document(pdf("Brew it", "", "Drink it", title="Tea"), ".pdf", "n")
    assert document.title == "Tea"
    assert document.text == "## Page 1\n\nBrew it\n\n## Page 3\n\nDrink it"
    assert parse_document(pdf("Brew it"), ".pdf", "name").title == "name"


def test_without_pypdf_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "pypdf":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install \"memorist\[pdf\]\""):
        parse_document(pdf("Brew it"), ".pdf", "n")


@pytest.mark.parametrize(
    ("name", "raw", "reason"),
    [
        ("a.pdf", b"%PDF-1.4 secret", "PDF cannot be read"),
        ("scan.pdf", pdf(""), "no text"),
        ("a.txt", b"", "no text"),
        ("a.md", b" \n\n", "no text"),
        ("a.html", b"<p> </p>", "no text"),
        ("a.txt", b"secret\x00\x01\x02\xff" * 9, "not a text"),
    ],
)
def test_what_cannot_be_read_is_told_without_its_words(
    tmp_path: Path, name: str, raw: bytes, reason: str
) -> None:
    path = fill(tmp_path, {name: raw}) / name
    with pytest.raises(InvalidError, match=reason) as raised:
        read_document(path)
    assert "secret" not in str(raised.value)


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1_000)
    path = fill(tmp_path, {"a.txt": "x" * 1_001}) / "a.txt"
    with pytest.raises(InvalidError, match="more than the 1,000 bytes"):
        read_document(path)
    with pytest.raises(InvalidError, match="No such file"):
        read_document(tmp_path / "gone.txt")


def uris(*paths: Path) -> Sequence[str]:
    return list(find_files(list(paths)).paths)


def test_files_are_known_by_the_folder_and_the_path_below_it(tmp_path: Path) -> None:
    names = {"b.md": "b", "a.TXT": "a", "deep/er/c.html": "c", "deep/d.pdf": "", "e.png": ""}
    folder = fill(tmp_path / "docs", names)
    assert uris(folder) == ["docs/a.TXT", "docs/b.md", "docs/deep/d.pdf", "docs/deep/er/c.html"]
    assert find_files([folder]).skipped == ["docs/e.png"]
    assert uris(folder / "deep") == ["deep/d.pdf", "deep/er/c.html"]
    assert uris(folder, folder / "b.md", folder)[-1] == "b.md"


def test_a_file_is_known_by_the_name_it_was_given_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path / "docs", {"b.md": "b", "c": "no kind"})
    monkeypatch.chdir(tmp_path)
    assert uris(Path("docs/b.md"), Path("docs")) == ["docs/b.md"]
    assert uris(folder / "b.md") == ["b.md"]
    assert uris(Path("docs/../docs/b.md")) == ["b.md"]
    assert uris(Path("docs/c")) == ["docs/c"]
    assert uris(Path(".")) == [f"{tmp_path.name}/docs/b.md"]


def test_hidden_files_and_links_that_lead_out_are_passed_over(tmp_path: Path) -> None:
    names = {"a.md": "a", ".hidden.md": "h", ".git/c.md": "c", "sub/b.md": "b"}
    folder = fill(tmp_path / "docs", names)
    fill(tmp_path, {"secret.md": "s", "outside/d.md": "d"})
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "outside").symlink_to(tmp_path / "outside")
    (folder / "round").symlink_to(folder)
    (folder / "inside.md").symlink_to(folder / "a.md")
    (folder / "gone.md").symlink_to(folder / "never.md")
    os.mkfifo(folder / "pipe.md")
    assert uris(folder) == ["docs/a.md", "docs/inside.md", "docs/sub/b.md"]


def test_two_files_of_one_name_are_not_taken_for_each_other(tmp_path: Path) -> None:
    fill(tmp_path, {"one/a.md": "1", "two/a.md": "2"})
    files = find_files([tmp_path / "one" / "a.md", tmp_path / "two" / "a.md", tmp_path / "nine"])
    assert list(files.failed) == ["a.md", "nine"]


def test_a_name_that_is_no_text_is_still_a_uri(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "docs")
    with open(os.path.join(os.fsencode(tmp_path / "docs"), b"caf\xe9.md"), "w") as file:
        file.write("x")
    [uri] = uris(tmp_path / "docs")
    assert uri == "docs/caf\ufffd.md"


def test_links_in_a_circle_and_pipes_are_passed_over(tmp_path: Path) -> None:
    fill(tmp_path, {"a.md": "a"})
    (tmp_path / "b.md").symlink_to("c.md")
    (tmp_path / "c.md").symlink_to("b.md")
    os.mkfifo(tmp_path / "d.md")
    found = find_files([tmp_path])
    assert list(found.paths) == [f"{tmp_path.name}/a.md"]
    assert [uri[-4:] for uri in found.skipped] == ["b.md", "c.md", "d.md"]


@pytest.mark.parametrize("name", ["a" * 5_000, "a\0b"])
def test_a_name_that_no_file_can_have_is_told(name: str) -> None:
    assert list(find_files([Path(name)]).failed) == [name]


@pytest.mark.parametrize("line", ["title: 'Tea'", "Title:Tea  ", f"title: Tea{' ' * 200_000}"])
def test_a_title_is_read_from_the_front_matter_at_once(line: str) -> None:
    began = time.process_time()
    assert reading.title_of(f"---\n{line}\n---\n# Coffee\n") == "Tea"
    assert reading.title_of(f"---\n{line}x\n---\n# Coffee\n") != "Coffee"
    assert reading.title_of("---\ntitle:  \n---\n# Coffee\n") == "Coffee"
    assert time.process_time() - began < 1
