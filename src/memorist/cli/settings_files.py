"""Settings files of other programs: changed with the user's consent, all else in them as it was."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from memorist.cli.render import remark
from memorist.errors import ConfigError
from memorist.records.values import now

PRIVATE = 0o600
_INDENT = re.compile(r"^[ \t]+(?=\")", re.MULTILINE)


def offer(file: Path, before: str, after: str, *, yes: bool, private: bool = False) -> None:
    """Write a changed file if the user wants it. `private`: it holds a key."""
    if after == before:
        remark("It is so already; nothing was written.", style="")
        return
    if not yes and not typer.confirm("Write it?", err=True):
        raise ConfigError("nothing was written")
    copy = write(file, before, after, private=private)
    old_file = f"The old file: {copy}. " if copy else ""
    old_file += "Only you may read it now, as it holds a key. " if private else ""
    remark(f"Written. {old_file}Restart the client.", style="")


def edited(text: str, file: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """A JSON file after a change of its object; its indentation is kept."""
    try:
        content = json.loads(text) if text.strip() else {}
        was = json.dumps(content, allow_nan=False)  # a number that is too large would be no JSON
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError(
            f"{file} is not plain JSON{where}, and was left as it is; "
            "mend it, or make the change by hand"
        ) from None
    if not isinstance(content, dict):
        raise odd_shape(file)
    change(content)
    if json.dumps(content) == was:
        return text
    indent = _INDENT.search(text)
    return json.dumps(content, indent=indent[0] if indent else 2, ensure_ascii=False) + "\n"


def odd_shape(file: Path) -> ConfigError:
    """The error about a file that its program would not have written so."""
    return ConfigError(f"{file} has another shape than its client writes; it was left as it is")


def read(file: Path) -> str:
    """The content of a file; empty if there is no such file."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read ({type(error).__name__})") from None


def write(file: Path, before: str, after: str, *, private: bool = False) -> Path | None:
    """Replace the file in one step; return a copy of the old one. `private`: the owner's only."""
    file = file.resolve()  # a link stays a link
    file.parent.mkdir(parents=True, exist_ok=True)
    if private and file.exists() and not _is_ours(file):
        raise ConfigError(
            f"{file} is another user's, so a key in it could not be kept from others; "
            "nothing was written. Add what --print shows to a file of your own"
        )
    copy: Path | None = None
    mode = PRIVATE
    if file.exists():
        copy = file.with_name(f"{file.name}.{now():%Y%m%d-%H%M%S-%f}.bak")
        shutil.copy2(file, copy)
        mode = PRIVATE if private else file.stat().st_mode & 0o777
        os.chmod(copy, mode)  # it may hold the key of an earlier time
    descriptor, made = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        # A lone surrogate stays escaped, as it was.
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(descriptor)
        os.chmod(made, mode)
        if private and os.name == "posix" and os.stat(made).st_mode & 0o077:
            raise ConfigError(
                f"{file} is where files cannot be kept from others (no mode 0600), so the key "
                "was not written; choose a server that needs no key, or another disk"
            )
        if read(file) != before:
            raise ConfigError(f"{file} changed in the meantime and was left; try again")
        os.replace(made, file)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    return copy


def _is_ours(file: Path) -> bool:
    return os.name != "posix" or file.stat().st_uid == os.getuid()
