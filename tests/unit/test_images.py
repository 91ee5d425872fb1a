"""Images: real files, a real web server, and everything that can be wrong with either."""

from __future__ import annotations

import base64
import gc
import os
import threading
import time
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memorist import ImageError, Message
from memorist.providers import images
from memorist.providers.images import encode_image, refuse_image

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
KINDS = {
    "image/png": PIXEL,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
    "image/gif": b"GIF89a\x01\x00\x01\x00",
    "image/webp": b"RIFF\x1a\x00\x00\x00WEBPVP8L",
    "image/bmp": b"BM\x1e\x00\x00\x00",
}


def data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def refused(source: str) -> str:
    """What the error says, having made sure that it does not say where the image lies."""
    with pytest.raises(ImageError) as caught:
        encode_image(source)
    assert source not in "".join(traceback.format_exception(caught.value))
    assert Path(source).name not in str(caught.value)
    assert str(caught.value).startswith("images")
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_file_becomes_a_data_url_of_its_own_kind(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "the name says nothing.txt"
    path.write_bytes(KINDS[kind])

    assert encode_image(str(path)) == data_url(kind, KINDS[kind])


def test_the_older_gif_is_an_image_too(tmp_path: Path) -> None:
    path = tmp_path / "old.gif"
    path.write_bytes(b"GIF87a\x01\x00")

    assert encode_image(str(path)).startswith("data:image/gif;base64,")


def test_a_missing_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    assert "No such file" in refused(str(tmp_path / "ada-passport.png"))


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    loop = tmp_path / "loop.png"
    loop.symlink_to(loop)  # unreadable even for root

    assert "cannot be read" in refused(str(loop))


def test_an_image_as_large_as_allowed_is_read_and_one_byte_more_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(PIXEL)

    monkeypatch.setattr(images, "MAX_BYTES", len(PIXEL))
    assert encode_image(str(path)) == data_url("image/png", PIXEL)
    monkeypatch.setattr(images, "MAX_BYTES", len(PIXEL) - 1)
    assert "larger than" in refused(str(path))


def test_a_huge_file_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    with path.open("wb") as file:
        file.write(PIXEL)
        file.truncate(50_000_000_000)  # sparse: it takes no room

    assert "larger than 10,000,000 bytes" in refused(str(path))


@pytest.mark.parametrize(
    "data", [b"", b"<svg/>", b"%PDF-1.7", b"RIFF\x00\x00\x00\x00WAVE", b"\x89"]
)
def test_a_file_that_is_no_image_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(data)

    assert "not a PNG" in refused(str(path))


def test_a_directory_is_refused_and_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))

    assert "not a regular file" in refused(str(tmp_path))
    assert len(os.listdir("/dev/fd")) == before


def test_a_pipe_does_not_hang_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "pipe.png"
    os.mkfifo(path)
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(refused(str(path))), daemon=True)
    reader.start()
    reader.join(timeout=5)

    assert said == ["images: a path is not a regular file"]


def test_a_device_without_end_is_refused() -> None:
    assert "not a regular file" in refused("/dev/zero")


@pytest.mark.parametrize("path", ["a\x00.png", "x" * 5_000, ""], ids=["NUL", "too long", "empty"])
def test_a_path_that_cannot_be_one_is_an_image_error(path: str) -> None:
    with pytest.raises(ImageError, match=r"^images"):
        encode_image(path)


class Site(BaseHTTPRequestHandler):
    """A web site with every kind of luck."""

    def do_GET(self) -> None:
        if self.path == "/ok.png":
            self.answer(200, PIXEL)
        elif self.path == "/moved.png":
            self.send_response(302)
            self.send_header("Location", "/ok.png")
            self.end_headers()
        elif self.path == "/to-a-file.png":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
        elif self.path == "/page.png":
            self.answer(200, b"<html>a page of ada</html>")
        elif self.path == "/cut.png":
            self.answer(200, PIXEL, length=len(PIXEL) + 100)
        elif self.path == "/noise.png":
            self.wfile.write(b"this is not HTTP\r\n\r\n")
        elif self.path == "/silent.png":
            time.sleep(1)
        else:
            self.answer(404, b"no such page of ada")

    def answer(self, status: int, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as opened:
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{opened.server_port}"
        opened.shutdown()
        thread.join()


@pytest.fixture
def site(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the site; a connection that is left open fails the test that left it."""
    monkeypatch.setenv("no_proxy", "*")
    yield server
    gc.collect()


@pytest.mark.parametrize("page", ["ok.png", "moved.png"])
def test_an_image_is_fetched_from_a_url(site: str, page: str) -> None:
    assert encode_image(f"{site}/{page}") == data_url("image/png", PIXEL)


def test_a_page_that_is_not_there_is_an_error(site: str) -> None:
    assert "cannot be fetched" in refused(f"{site}/missing.png")


def test_a_reply_that_is_too_large_is_an_error(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_BYTES", 10)

    assert "larger than" in refused(f"{site}/ok.png")


def test_a_reply_that_is_no_image_is_an_error(site: str) -> None:
    assert "not a PNG" in refused(f"{site}/page.png")


def test_a_reply_that_was_cut_off_is_an_error(site: str) -> None:
    assert "cannot be fetched" in refused(f"{site}/cut.png")


def test_a_reply_that_is_not_http_is_an_error(site: str) -> None:
    assert "cannot be fetched" in refused(f"{site}/noise.png")


def test_a_url_cannot_lead_to_a_local_file(site: str) -> None:
    assert "cannot be fetched" in refused(f"{site}/to-a-file.png")


def test_a_server_that_keeps_silent_is_given_up(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "TIMEOUT_SECONDS", 0.1)

    assert "cannot be fetched" in refused(f"{site}/silent.png")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/closed.png",
        "http://127.0.0.1:1/with a space.png",
        "http://127.0.0.1:no-port/a.png",
        "http://[::1/unclosed.png",
        "http:///nowhere.png",
        f"https://{'a' * 70}.example/label-too-long.png",
    ],
)
def test_a_url_that_leads_nowhere_is_an_image_error(url: str) -> None:
    assert "cannot be fetched" in refused(url)


def test_a_data_url_passes_as_it_is() -> None:
    url = data_url("image/png", PIXEL)

    assert encode_image(url) == url
    assert refuse_image(url) == url


def test_callers_from_the_network_have_no_file_read_and_no_url_fetched(
    tmp_path: Path, site: str
) -> None:
    path = tmp_path / "real.png"
    path.write_bytes(PIXEL)
    sources = [str(path), path.as_uri(), "real.png", f"{site}/ok.png", "https://example.org/a.png"]
    for source in (*sources, "", "data:text/html;base64,AAAA", "DATA:IMAGE/PNG;base64,AAAA"):
        with pytest.raises(ImageError, match="must be data URLs") as caught:
            refuse_image(source)
        assert not source or source not in str(caught.value)


def test_a_message_keeps_the_path_and_encodes_it_when_read(tmp_path: Path) -> None:
    path = tmp_path / "pixel.png"
    path.write_bytes(PIXEL)
    message = Message("user", "What is this?", images=[str(path)])
    wire = message.to_wire(encode_image)

    assert message.images == (str(path),)
    assert wire["content"][1]["image_url"]["url"] == data_url("image/png", PIXEL)
    path.unlink()
    _, problem = message.to_wire(encode_image)["content"]
    assert problem["text"].startswith(f"[image {path}: a file cannot be read")
