"""Images: read from a path or a URL when a model is to see them."""

import base64
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from memorist.errors import ImageError
from memorist.forks import fork_safe
from memorist.records.message import Message
from memorist.records.scope import Scope

MAX_BYTES = 10_000_000
MAX_GIVEN = 10_000  # images that a process remembers to have been given
TIMEOUT_SECONDS = 5
_BEGINNINGS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/bmp": rb"BM",
    "image/webp": rb"(?s)RIFF....WEBP",
}

ReadImage = Callable[[str], str]
# The images that callers in this process gave, by tenant, user and path; the oldest go first.
_given: dict[tuple[str, str, str], None] = {}
_lock = fork_safe(threading.Lock())


def note_given(scope: Scope, messages: Iterable[Message]) -> None:
    """Note the images of messages that the application itself stores: contexts may open them."""
    for message in messages:
        parts = message.content if isinstance(message.content, list) else ()
        urls = [part.get("image_url") for part in parts if isinstance(part, Mapping)]
        named = (url.get("url") if isinstance(url, Mapping) else url for url in urls)
        for source in (*message.images, *named):
            if isinstance(source, str) and not source.startswith("data:"):
                with _lock:
                    _given[scope.tenant, scope.user, source] = None
                    while len(_given) > MAX_GIVEN:
                        del _given[next(iter(_given))]


def read_stored(scope: Scope, source: str) -> str:
    """As `encode_image`, of a stored message: only what the application named in this process.

    The path may have got into the store in another way, and lead to any file of this machine.
    """
    if source.startswith("data:") or (scope.tenant, scope.user, source) in _given:
        return encode_image(source)
    raise ImageError("images: only the process that was given a path opens it; pass a read_image")


def stored_reader(scope: Scope, read_image: ReadImage | None) -> ReadImage | None:
    """How images of stored messages are read: by `read_stored` unless another way was chosen."""
    return partial(read_stored, scope) if read_image is encode_image else read_image


def encode_image(source: str) -> str:
    """A data URL of the image at a path or URL; for sources that the application itself names."""
    if source.startswith("data:"):
        return source
    data = _fetch(source) if source.startswith(("http://", "https://")) else _read(source)
    if len(data) > MAX_BYTES:
        raise ImageError(f"images: an image is larger than {MAX_BYTES:,} bytes")
    for kind, beginning in _BEGINNINGS.items():
        if re.match(beginning, data):
            return f"data:{kind};base64,{base64.b64encode(data).decode()}"
    raise ImageError("images: a file is not a PNG, JPEG, GIF, WebP or BMP image")


def refuse_image(source: str) -> str:
    """For sources from the network: data URLs alone, so that no path or URL is read (SSRF)."""
    if source.startswith("data:image/"):
        return source
    raise ImageError("images from the network must be data URLs; paths and URLs are not read")


def _read(path: str) -> bytes:
    if "\x00" in path:
        raise ImageError("images: a path holds a NUL character")
    try:
        # Without blocking: the path may be a named pipe.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)  # not with open(): it refuses a directory and leaves it open
            raise ImageError("images: a path is not a regular file")
        with open(descriptor, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ImageError(f"images: a file cannot be read ({error.strerror})") from None


def _fetch(url: str) -> bytes:
    import http.client
    import urllib.error
    import urllib.request  # here, so that `import memorist` stays light

    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as reply:
            data: bytes = reply.read(MAX_BYTES + 1)
            cut_off = reply.length and len(data) <= MAX_BYTES
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is also the reply, with its connection
        raise ImageError(f"images: a URL cannot be fetched ({type(error).__name__})") from None
    if cut_off:
        raise ImageError("images: a URL cannot be fetched (the reply was cut off)")
    return data
