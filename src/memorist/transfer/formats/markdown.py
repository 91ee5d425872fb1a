"""Folders of Markdown, as of a wiki or of notes: each file becomes an article to quote from."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from memorist.context.documents.reading import MAX_BYTES, TEXTS, parse_document
from memorist.errors import InvalidError
from memorist.transfer.items import Document, Item, Skipped
from memorist.transfer.source import Source

name = "markdown"
title = "Markdown files"


def recognises(source: Source) -> bool:
    """Whether there is a Markdown file."""
    return any(PurePosixPath(each).suffix.lower() in TEXTS[:3] for each in source.names())


def read(source: Source) -> Iterator[Item]:
    """Each file; those that are not texts are skipped."""
    for each in source.names():
        path = PurePosixPath(each)
        if path.suffix.lower() not in TEXTS:
            yield Skipped(each, "not a Markdown or text file")
            continue
        with source.open(each) as file:
            raw = file.read(MAX_BYTES + 1)
        try:
            read_file = parse_document(raw, path.suffix.lower(), path.stem)
        except InvalidError as error:
            yield Skipped(each, str(error))
            continue
        uri = each if source.names() == [source.name] else f"{source.name}/{each}"
        yield Document(uri=uri, title=read_file.title, text=read_file.text)
