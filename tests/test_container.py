"""The Dockerfile and compose.yaml are true: linted, what they name is there, the server answers.

`.ci/image` goes further and carries out the Dockerfile's steps, as far as that needs no registry.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from tools.image import instructions

from tests.support.pages import ROOT

STEPS = instructions((ROOT / "Dockerfile").read_text())
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
PROGRAMS = Path(sys.executable).parent


def step(name: str) -> str:
    """What the last instruction of that name is given, which is what holds."""
    return [given for called, given in STEPS if called == name][-1]


def test_both_files_are_as_their_linters_want_them() -> None:
    for command in (
        ["hadolint", "Dockerfile"],
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"],
    ):
        done = subprocess.run(
            [PROGRAMS / command[0], *command[1:]],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_image_copies_is_in_the_checkout_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        given.split() for name, given in STEPS if name == "COPY" and not given.startswith("--from")
    ]
    for name in (source for *sources, _ in copied for source in sources):
        assert (ROOT / name).exists(), name
        rules = [rule for rule in ignored if fnmatch.fnmatch(name, rule.lstrip("!"))]
        assert rules[-1].startswith("!"), name


def test_the_image_has_what_compose_uses_and_runs_as_nobody_in_particular() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.M))
    assert {"psycopg", "psycopg-binary", "fastapi", "uvicorn", "mcp", "pypdf"} <= locked
    assert int(step("USER")) > 0
    assert step("VOLUME") in step("ENV").partition("=")[2]
    assert "ports" not in COMPOSE["services"]["database"]
    assert all(port.startswith("127.0.0.1:") for port in COMPOSE["services"]["server"]["ports"])
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()
    assert not (ROOT / ".env").exists() or not _checked_in(".env")


def test_the_server_of_compose_is_healthy_on_postgres(postgres_url: str) -> None:
    """Started as compose does, on a real server, as far as a process can be a container."""
    service = COMPOSE["services"]["server"]
    at = urlsplit(postgres_url)
    url = re.sub(r"\$\{[^}]+\}", at.password or "", service["environment"]["MEMORIST_URL"])
    url = url.replace("memorist:", f"{at.username}:").replace(
        "@database", f"@{at.netloc.split('@')[1]}"
    )
    url = url.removesuffix("/memorist") + at.path
    names = service["environment"]["MEMORIST_HOSTS"].replace("${MEMORIST_HOSTS:-}", "")
    port = str(_free_port())
    check = json.loads(step("HEALTHCHECK").partition("CMD ")[2].replace("7077", port))
    check[0] = sys.executable
    command = [*json.loads(step("ENTRYPOINT")), *json.loads(step("CMD")), "--port", port]
    server = subprocess.Popen(
        [PROGRAMS / command[0], *command[1:]],
        env=os.environ | {"MEMORIST_URL": url, "MEMORIST_HOSTS": names},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        while subprocess.run(check, capture_output=True, check=False).returncode:
            assert server.poll() is None
            time.sleep(0.2)
        inside = [check[0], "-c", check[2].replace("127.0.0.1", "localhost")]
        assert subprocess.run(inside, check=False).returncode == 0
    finally:
        server.terminate()
    said, _ = server.communicate(timeout=60)
    assert server.returncode in (0, -signal.SIGTERM)
    assert "PostgreSQL" in said
    assert "whoever has a key" in said


def _checked_in(name: str) -> bool:
    listed = ["git", "-C", str(ROOT), "ls-files", "--error-unmatch", name]
    return subprocess.run(listed, capture_output=True, check=False).returncode == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
