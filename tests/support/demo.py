"""The memory with a life in it that `memorist demo` shows, for the tests of the page."""

from memorist.cli.demo import TODAY, DemoClock, fill

__all__ = ["TODAY", "DemoClock", "fill"]
