"""Images: read from a path or a URL when a model is to see them."""

from __future__ import annotations

import base64
import os
import stat

from memorist.errors import ImageError

MAX_BYTES = 10_000_000
TIMEOUT_SECONDS = 5
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


def encode_image(source: str, *, max_bytes: int = MAX_BYTES) -> str:
    """A data URL of the image at a path or URL; for sources that the application itself names."""
    if source.startswith("data:"):
        return source
    if source.startswith(("http://", "https://")):
        data = _fetch(source, max_bytes)
    else:
        data = _read(source, max_bytes)
    return f"data:{_kind(data)};base64,{base64.b64encode(data).decode()}"


def refuse_image(source: str) -> str:
    """For sources from the network: data URLs alone, so that no path or URL is read (SSRF)."""
    if source.startswith("data:image/"):
        return source
    raise ImageError("images from the network must be data URLs; paths and URLs are not read")


def _read(path: str, max_bytes: int) -> bytes:
    if "\x00" in path:
        raise ImageError("images: a path holds a NUL character")
    try:
        # Without blocking: the path may be a named pipe.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)  # not with open(): it refuses a directory and leaves it open
            raise ImageError("images: a path is not a regular file")
        with open(descriptor, "rb") as file:
            return _bounded(file.read(max_bytes + 1), max_bytes)
    except OSError as error:
        raise ImageError(f"images: a file cannot be read ({error.strerror})") from None


def _fetch(url: str, max_bytes: int) -> bytes:
    import http.client
    import urllib.error
    import urllib.request  # here, so that `import memorist` stays light

    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as reply:
            data = reply.read(max_bytes + 1)
            cut = reply.length and len(data) <= max_bytes
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is also the reply, with its connection
        raise ImageError(f"images: a URL cannot be fetched ({type(error).__name__})") from None
    if cut:
        raise ImageError("images: a URL cannot be fetched (the reply was cut off)")
    return _bounded(data, max_bytes)


def _bounded(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise ImageError(f"images: an image is larger than {max_bytes:,} bytes")
    return data


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            return kind
    raise ImageError("images: a file is not a PNG, JPEG, GIF, WebP or BMP image")
