"""Builds and runs the Dockerfile without Docker: `python3 tools/image.py`, as root on Linux.

Each stage is this machine's own file system with an overlay on top, in which the steps run as they
are written; nothing of it is left afterwards. The base images are not tried, and need a registry.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
PORT = "7078"  # 7077 may be somebody's
TRIAL = """
import json, sys, urllib.request as http
url, key = sys.argv[1:]
def ask(path, **body):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = http.Request(url + path, json.dumps(body).encode(), headers)
    return http.urlopen(request, timeout=30).read().decode()
ask("/api/messages", user="ada", role="user", content="I moved to Berlin in March.")
assert "Berlin" in ask("/api/recall", user="ada", question="where does she live?", deadline_ms=9000)
"""


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and what they are given, lines that go on joined."""
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines if line.strip()]


@dataclass
class Stage:
    """A stage of the build: a root of its own, and what holds for its next command."""

    root: Path
    environment: dict[str, str]
    folder: str = "/"
    user: str = "0"
    settings: dict[str, str] = field(default_factory=dict)

    def command(self, *argv: str) -> list[str]:
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        who = "root" if self.user == "0" else f"{self.user}:{self.user}"
        inside = ["sh", "-c", 'cd "$0" && exec "$@"', self.folder, *argv]
        return ["chroot", f"--userspec={who}", str(self.root), "env", "-i", *variables, *inside]

    def run(self, *argv: str, capture: bool = False) -> str:
        pipe = subprocess.PIPE if capture else None
        return subprocess.run(self.command(*argv), check=True, text=True, stdout=pipe).stdout

    def copy(self, sources: list[Path], target: str) -> None:
        place = self.root / os.path.join(self.folder, target).lstrip("/")
        for source in sources:
            if source.is_dir():
                shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place)


def overlay(place: Path) -> Path:
    """A root that shows this machine's, and keeps what is written to itself."""
    layers = {name: place / name for name in ("upper", "work", "root")}
    for folder in layers.values():
        folder.mkdir(parents=True)
    options = f"lowerdir=/,upperdir={layers['upper']},workdir={layers['work']}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, layers["root"]], check=True)
    for name in ("proc", "dev"):
        subprocess.run(
            ["mount", "--bind", "-o", "ro", f"/{name}", layers["root"] / name], check=True
        )
    if Path(sys.prefix).is_relative_to("/root"):  # this Python; the image's user must read it, too
        (layers["root"] / "root").chmod(0o711)
    return layers["root"]


def checked_in(place: Path) -> Path:
    """The checkout as a build is given it: without what is ignored."""
    files = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others"]
    named = subprocess.run([*files, "--exclude-standard"], check=True, stdout=subprocess.PIPE)
    for name in filter(None, named.stdout.decode().split("\0")):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if (CHECKOUT / name).exists():
            shutil.copy2(CHECKOUT / name, place / name)
    return place


def build(place: Path) -> Stage:
    """Carry out every instruction, in the stages that the Dockerfile has."""
    stages: dict[str, Stage] = {}
    context = checked_in(place / "context")
    # What a machine needs to reach its package index is no part of the image.
    base = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIST")}
    stage = Stage(Path("/"), base)
    for name, given in instructions((CHECKOUT / "Dockerfile").read_text()):
        print(f"{name} {given}", flush=True)
        if name == "FROM":
            stage = Stage(overlay(place / f"stage{len(stages)}"), dict(base))
            stages[given.partition(" AS ")[2] or "last"] = stage
        elif name == "RUN":
            stage.run("sh", "-c", given)
        elif name == "COPY":
            *sources, target = given.removeprefix("--from=build ").split()
            root = stages["build"].root if given.startswith("--from=") else context
            stage.copy([root / source.lstrip("/") for source in sources], target)
        elif name == "WORKDIR":
            (stage.root / given.lstrip("/")).mkdir(parents=True, exist_ok=True)
            stage.folder = given
        elif name == "ENV":
            variable, _, value = given.partition("=")
            stage.environment[variable] = value.replace("$PATH", stage.environment["PATH"])
        elif name == "USER":
            stage.user = given
        else:
            stage.settings[name] = given
    return stage


def try_it(stage: Stage) -> None:
    """Start the server as a container does; it is healthy, remembers, recalls and ends."""
    stage.folder = "/"
    entry, arguments = (json.loads(stage.settings[name]) for name in ("ENTRYPOINT", "CMD"))
    check = json.loads(stage.settings["HEALTHCHECK"].partition("CMD ")[2].replace("7077", PORT))
    server = subprocess.Popen(stage.command(*entry, *arguments, "--port", PORT))
    try:
        for _ in range(120):
            with contextlib.suppress(subprocess.CalledProcessError):
                stage.run(*check)
                break
            time.sleep(1)
            assert server.poll() is None, "the server ended by itself"
        key = stage.run(*entry, "keys", "create", "--admin", "--json", capture=True)
        stage.run("python", "-c", TRIAL, f"http://127.0.0.1:{PORT}", json.loads(key)["key"])
    finally:
        server.terminate()
    assert server.wait(30) in (0, -signal.SIGTERM), "it does not end as it should"


def main() -> None:
    if len(sys.argv) > 1:
        place = Path(sys.argv[1])
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
        try_it(build(place))
        print("the Dockerfile builds; its server is healthy, remembers, recalls and ends")
        return
    # Mounts that nobody else sees, and that end with the process; what is left is an empty folder.
    place = Path(tempfile.mkdtemp())
    inside = ["unshare", "--mount", sys.executable, __file__, str(place)]
    code = subprocess.run(inside, check=False).returncode
    place.rmdir()
    sys.exit(code)


if __name__ == "__main__":
    main()
