"""Room for bodies: so many bytes at once, so that many large requests cannot fill the memory.

    stay = room.enter(caller, most=8 * MIB)
    await room.take(stay, 256 * KIB)   # again and again, as bytes come; waits while there are none
    room.leave(stay)

Who brings a body bit by bit must be able to bring the rest of it. So more is given only where all
who hold some could still end, one after the other (the banker's rule); else they would come to
wait for each other. Who declares much and brings little takes little.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Hashable

SHARES = 4  # one caller gets one of them


class Stay:
    """One body in the room: how much it holds, and how much it may come to hold."""

    def __init__(self, caller: Hashable, most: int) -> None:
        self.caller = caller
        self.most = most
        self.held = 0
        self.waited_s = 0.0


class Room:
    """Bytes that may be held at once; who finds too few free waits in line."""

    def __init__(self, size: int, *, patience_s: float = 5.0, places: int = 64) -> None:
        self._size = size
        self._share = size // SHARES
        self._patience_s = patience_s
        self._places = places
        self._stays: set[Stay] = set()  # of those who hold something
        self._line: deque[tuple[Stay, int, asyncio.Future[None]]] = deque()

    @property
    def free(self) -> int:
        """How many bytes nobody holds."""
        return self._size - sum(stay.held for stay in self._stays)

    def enter(self, caller: Hashable, most: int) -> Stay:
        """Come in for a body of at most so many bytes, of which a caller's share is counted."""
        return Stay(caller, min(most, self._share))

    async def take(self, stay: Stay, size: int) -> None:
        """Wait until the stay may hold so many bytes in all.

        Raises TimeoutError when its patience is over, or the line is too long to begin with: who
        waits holds memory too.
        """
        size = min(size, stay.most)
        if size <= stay.held or self._grows(stay, size):
            return
        if len(self._line) >= self._places:
            raise TimeoutError
        loop = asyncio.get_running_loop()
        place, began = (stay, size, loop.create_future()), loop.time()
        self._line.append(place)
        try:
            async with asyncio.timeout(self._patience_s - stay.waited_s):
                await place[2]
        finally:
            stay.waited_s += loop.time() - began
            if place in self._line:
                self._line.remove(place)

    def settle(self, stay: Stay, size: int) -> None:
        """No more than so many bytes will be held: give the others back, and let others in."""
        stay.held = stay.most = min(size, stay.held)
        if not stay.held:
            self._stays.discard(stay)
        for place in list(self._line):
            waiting, wanted, turn = place
            if not turn.done() and self._grows(waiting, wanted):
                self._line.remove(place)
                turn.set_result(None)

    def leave(self, stay: Stay) -> None:
        """Give all of it back."""
        self.settle(stay, 0)

    def _grows(self, stay: Stay, size: int) -> bool:
        """Let it hold so many if all could still end, both the caller's own and everybody's."""
        held, stay.held = stay.held, size
        everybody = self._stays | {stay}
        own = [it for it in everybody if it.caller == stay.caller]
        if could_end(own, self._share) and could_end(everybody, self._size):
            self._stays.add(stay)
            return True
        stay.held = held
        return False


def could_end(stays: Collection[Stay], size: int) -> bool:
    """Whether all could bring the rest of what they bring, one after the other."""
    free = size - sum(stay.held for stay in stays)
    for stay in sorted(stays, key=lambda it: it.most - it.held):
        if stay.most - stay.held > free:
            return False
        free += stay.held
    return True
