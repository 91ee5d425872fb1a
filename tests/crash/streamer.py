"""A process that streams one message and says how far: `python -m tests.crash.streamer TARGET`.

It says "ready" and waits for a line before it opens the memory. Then it writes the message's id,
and the length of the stored text each time it was stored. It goes on until killed.
"""

from __future__ import annotations

import itertools
import os
import sys
import time

from memorist.memory import Memory
from tests.crash.evidence import SCOPE


def word(number: int) -> str:
    """The stream's words: each tells its place."""
    return f"word{number} "


def main(target: str) -> None:
    os.write(1, b"ready\n")
    sys.stdin.readline()
    with Memory(target, embedder=None) as memory:
        chat = memory.session(user=SCOPE.user, agent=SCOPE.agent, id=SCOPE.session)
        with chat.stream("assistant", flush_s=0.005, flush_chars=100) as reply:
            os.write(1, f"{reply.id}\n".encode())
            for number in itertools.count():
                before = reply.message
                reply.write(word(number))
                if reply.message is not before:
                    os.write(1, b"%d\n" % len(reply.message.text))
                time.sleep(0.0005)  # a fast model's pace


if __name__ == "__main__":
    main(sys.argv[1])
