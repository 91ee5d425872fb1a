"""The tests of `packages/memorist-adapters`, in a process of their own.

To import the five frameworks takes seconds, which else each process that runs tests would spend.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.examples import LONG
from tests.support.pages import ROOT


def test_the_adapters_pass_their_tests() -> None:
    chosen = [] if LONG else ["-m", "not prove"]
    folder = "packages/memorist-adapters/tests"
    command = [sys.executable, "-m", "pytest", *chosen, "-p", "no:cacheprovider", folder]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
