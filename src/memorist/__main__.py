"""`memorist`, also as `python -m memorist`: the command line."""

import os
import signal
from types import FrameType


def _end(_: int, __: FrameType | None) -> None:
    os._exit(130)  # as after Ctrl-C later


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback while it is being loaded, too."""
    takes_it = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if takes_it:
        signal.signal(signal.SIGINT, _end)
    from memorist.cli.main import main as run

    if takes_it:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
