"""One step of setting up, shown: its number, what it does, how long that takes about, and took.

python3 tools/step.py 2/4 "Packages" "20 s" -- command …

On a terminal the command's own bars are seen while it runs. Elsewhere it is silent unless it fails.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time

LISTED = re.compile(rb"^ (\x1b\[\d+m)?[+~-](\x1b\[\d+m)? .*\n", re.MULTILINE)
BEGUN = re.compile(rb"^ (\x1b(\[\d*)?m?)?([+~-].*)?\Z", re.MULTILINE)


def shown(command: list[str]) -> int:
    """Run it on the terminal, less the list of every package that was installed."""
    rest = b""

    def read(screen: int) -> bytes:
        nonlocal rest
        text = LISTED.sub(b"", rest + os.read(screen, 65536))
        rest = begun[0] if (begun := BEGUN.search(text)) else b""
        return text.removesuffix(rest) or b"\0"  # nothing at all would mean the end

    return os.waitstatus_to_exitcode(pty.spawn(command, read))


def silent(command: list[str]) -> int:
    """Run it, and print what it said only if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.stdout.buffer.write(done.stdout)
    return done.returncode


def main(number: str, what: str, expected: str, _: str, *command: str) -> int:
    on_terminal = sys.stdout.isatty() and not os.environ.get("CI")
    print(f"[{number}] {what}, about {expected} …", flush=True)
    began = time.monotonic()
    code = (shown if on_terminal else silent)([*command])
    seconds = time.monotonic() - began
    print(f"      {'failed after' if code else 'done in'} {seconds:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
