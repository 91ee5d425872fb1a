"""The memory with a life in it that `memorist demo` shows, for the tests of the page."""

from memorist import Memory
from memorist.cli.demo import TODAY, USER, DemoClock, tell

__all__ = ["TODAY", "DemoClock", "fill"]


def fill(memory: Memory, user: str = USER) -> None:
    """Tell a memory the whole story, and wait for what is made of it; give it a DemoClock."""
    list(tell(memory, user))
    assert memory.jobs.catch_up(300) == 0
