"""Reading files: text, HTML and PDF become documents with a title and a text."""

import io
import os
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from memorist.context.documents.markdown import FRONT_MATTER, MAX_TITLE, sections
from memorist.errors import InvalidError, needs_extra
from memorist.records.entry import findable

MAX_BYTES = 32_000_000
TEXTS = (".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc")
PAGES = (".html", ".htm", ".xhtml")
SUFFIXES = (*TEXTS, *PAGES, ".pdf")
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_TITLE = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileText:
    """The title and text of a file; `note` says if its encoding was guessed."""

    title: str
    text: str
    note: str = ""


@dataclass(slots=True)
class Files:
    """The files to read, by their uris, and those that are skipped or cannot be read."""

    paths: dict[str, Path] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, uri: str, path: Path) -> None:
        """Add a file; it fails if another file has its uri."""
        known = self.paths.setdefault(uri, path)
        if known != path and not os.path.samefile(known, path):
            self.failed[uri] = "two files of this name were given; give the folders they are in"


def find_files(paths: list[Path]) -> Files:
    """The files at these paths, and in the folders among them.

    The uri of a file is its relative path as given, or the folder's name and the path inside it:
    never an absolute path, which would reveal where it lies on this machine.
    """
    files = Files()
    for path in paths:
        if os.path.isdir(path):  # unlike Path.is_dir it never raises
            _walk(path, files)
        elif os.path.isfile(path):
            plain = not path.is_absolute() and ".." not in path.parts
            files.add(_uri(path if plain else Path(path.name)), path)
        else:
            files.failed[_uri(Path(path.name))] = "there is no such file or folder"
    return files


def _walk(folder: Path, files: Files) -> None:
    """Add the files of a folder, without hidden ones and links that lead out of it."""
    home = folder.resolve()
    prefix = f"{_uri(Path(home.name))}/" if home.name else ""

    def unreadable(error: OSError) -> None:
        files.failed[prefix] = f"a folder in it cannot be read: {error.strerror}"

    for place, folders, names in os.walk(home, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            uri = prefix + _uri(path.relative_to(home))
            if name.startswith(".") or not Path(os.path.realpath(path)).is_relative_to(home):
                continue
            if path.suffix.lower() in SUFFIXES and os.path.isfile(path):
                files.add(uri, path)
            else:
                files.skipped.append(uri)
    if prefix not in files.failed:
        files.folders.append(prefix)


def _uri(path: Path) -> str:
    """A path as text; bytes in it that are not UTF-8 are replaced."""
    return path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_document(path: Path) -> FileText:
    """Read a file. Errors say why it cannot be read, and quote nothing from it."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)  # not by its reported size, which may be wrong
    except OSError as error:
        raise InvalidError(f"it cannot be read: {error.strerror}") from error
    return parse_document(raw, path.suffix.lower(), path.stem)


def parse_document(raw: bytes, suffix: str, name: str) -> FileText:
    """The document in the bytes of a file; `name` becomes its title if it has none."""
    if len(raw) > MAX_BYTES:
        raise InvalidError(f"it has more than the {MAX_BYTES:,} bytes that are read")
    note = ""
    if suffix == ".pdf":
        title, text = _read_pdf(raw)
    elif suffix in PAGES:
        declared = _DECLARED.search(raw[:4_096])
        html, note = decode(raw, declared[1].decode() if declared else "")
        title, text = html_to_text(html)
        title = title_of(text) or title
    else:
        text, note = decode(raw)
        title = title_of(text)
    if not text.strip():
        raise InvalidError("it holds no text")
    return FileText(" ".join((title or name).split())[:MAX_TITLE], text, note)


def title_of(text: str) -> str:
    """The title in the front matter, or the first header of the highest level."""
    front = FRONT_MATTER.match(text)
    if front and (named := _TITLE.search(front[0])):
        return named[1].strip().strip("\"'").strip()
    begin = front.end() if front else 0
    headers = [header for header in sections(text) if header.title and header.start >= begin]
    return min(headers, key=lambda header: header.level).title if headers else ""


def decode(raw: bytes, declared: str = "") -> tuple[str, str]:
    """The text with "\\n" as line ends, and a note if the encoding had to be guessed."""
    marked = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "")
    note = ""
    guesses = marked, "utf-8", declared, "cp1252", "latin-1"
    for encoding in filter(None, guesses):
        try:
            text = raw.decode(encoding)
        except (UnicodeError, LookupError):
            continue
        if encoding in ("cp1252", "latin-1") and encoding != declared.lower():
            note = f"it is not UTF-8 and was read as {encoding}"
        break
    if "\x00" in text:
        raise InvalidError("it holds NUL characters: it is not a text")
    return text.replace("\r\n", "\n").replace("\r", "\n"), note


def _read_pdf(raw: bytes) -> tuple[str, str]:
    """The title of a PDF, and the text of its pages under numbered headers."""
    with needs_extra("pdf"):
        from pypdf import PdfReader
    try:
        reader = PdfReader(io.BytesIO(raw))
        title = str(reader.metadata.title or "") if reader.metadata else ""
        pages = [findable(page.extract_text()).strip() for page in reader.pages]
    except Exception as error:  # pypdf raises errors of every kind
        raise InvalidError(f"this PDF cannot be read: {type(error).__name__}") from error
    texts = [f"## Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text]
    return findable(title).strip(), "\n\n".join(texts)


_NO_WORDS = frozenset({"script", "style", "template"})
_DROPPED = _NO_WORDS | {"nav", "noscript", "svg"}
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption "
    "figure footer form header hr main ol option p section select summary table tbody thead "
    "tfoot ul".split()
)
_HEADERS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
_MARKDOWN = {**_HEADERS, "li": "- "}  # before the words of an element
_BREAKS = {"li": 1, "br": 1, "tr": 1} | dict.fromkeys((*_BLOCKS, *_HEADERS, "pre"), 2)  # in lines
LONGEST_MARK = 1_000  # characters of empty cells in a row
_SPACE = re.compile(r"\s+")
_ENDS = (("<!--", "-->"), ("<![", "]>"), ("<", ">"))


def html_to_text(html: str) -> tuple[str, str]:
    """The title of a page, and its text as Markdown, without scripts and navigation."""
    for begin, end in _ENDS:  # at a tag that never ends, the parser would search to the end
        last = html.rfind(end) + 1
        html = html[:last] + html[last:].replace(begin, " ")
    for dropped in (_DROPPED, _NO_WORDS):
        page = _Page(dropped)
        try:
            page.feed(html)
            page.close()
        except AssertionError as error:  # how the parser reports a broken declaration
            raise InvalidError("this HTML cannot be read: a declaration in it is broken") from error
        title, text = _SPACE.sub(" ", "".join(page.title)).strip(), "".join(page.out).strip()
        if text:
            break  # otherwise a menu was never closed: keep its text
    return title, text


class _Page(HTMLParser):
    """Collects the title and the text of a page."""

    def __init__(self, dropped: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.out: list[str] = []
        self._dropped = dropped
        self._inside: list[str] = []  # open elements whose text is dropped
        self._gap = 0  # line breaks before the next word
        self._mark = ""  # Markdown right before the next word
        self._space = False
        self._in_title = self._in_row = False
        self._cells = 0
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in self._dropped:
            if tag not in self._inside:  # one end tag closes it, however often it was opened
                self._inside.append(tag)
        elif self._inside:
            return
        elif tag == "title":
            self._in_title = True
        elif tag == "pre":
            self._pre += 1
            if self._pre == 1:
                self.out.append("\n\n```\n" if self.out else "```\n")
        elif tag in ("td", "th"):
            if self._cells and len(self._mark) < LONGEST_MARK:
                self._mark += " | "
            self._cells += 1
        else:
            self._break(tag)
            self._mark = _MARKDOWN.get(tag, self._mark)
            if tag == "tr":
                self._in_row, self._cells = True, 0

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropped:
            if tag in self._inside:
                del self._inside[self._inside.index(tag) :]
        elif self._inside:
            return
        elif tag == "title":
            self._in_title = False
        elif tag == "pre":
            if self._pre == 1:
                self.out.append("```" if self.out[-1].endswith("\n") else "\n```")
                self._break(tag)
            self._pre = max(self._pre - 1, 0)
        elif tag not in ("li", "br"):
            self._mark = "" if tag == "tr" or tag in _HEADERS else self._mark
            self._in_row = self._in_row and tag not in ("tr", "table")
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._inside:
            return
        if self._in_title or self._pre:
            (self.title if self._in_title else self.out).append(data)
            return
        text = _SPACE.sub(" ", data)
        words = text.strip()
        if not words:
            self._space = self._space or bool(text)
            return
        between = " " if self._space or text[0] == " " else ""
        if self._gap or self._mark or not self.out:
            between = ("\n" * self._gap if self.out else "") + self._mark
        self.out.append(between + words)
        self._gap, self._mark, self._space = 0, "", text[-1] == " "

    def _break(self, tag: str) -> None:
        if self._in_row and tag in _BLOCKS:  # a row stays one line
            self._space = True
        elif tag in _BREAKS:
            self._gap, self._space = max(self._gap, _BREAKS[tag]), False
