"""Room for bodies: so many bytes at once, so that many large requests cannot fill the memory."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """Bytes that may be held at once; who finds too few free waits in line."""

    def __init__(self, size: int, *, patience_s: float = 5.0, places: int = 64) -> None:
        self._size = size
        self._places = places
        self._patience_s = patience_s
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.free = size

    async def take(self, size: int) -> int:
        """Wait for so many bytes, at most all there are; says how many are to be given back.

        Raises TimeoutError when patience is over, or the line is too long to begin with: who waits
        holds memory too.
        """
        size = min(size, self._size)
        if not self._line and size <= self.free:
            self.free -= size
            return size
        if len(self._line) >= self._places:
            raise TimeoutError
        place = size, asyncio.get_running_loop().create_future()
        self._line.append(place)
        try:
            async with asyncio.timeout(self._patience_s):
                await place[1]
        except (TimeoutError, asyncio.CancelledError):
            self._leave(place)
            raise
        return size

    def give(self, size: int) -> None:
        """Give bytes back, and let in who waits longest."""
        self.free += size
        while self._line and (self._line[0][1].cancelled() or self._line[0][0] <= self.free):
            wanted, turn = self._line.popleft()
            if not turn.cancelled():
                self.free -= wanted
                turn.set_result(None)

    def _leave(self, place: tuple[int, asyncio.Future[None]]) -> None:
        had_its_turn = not place[1].cancelled()
        if place in self._line:
            self._line.remove(place)
        self.give(place[0] if had_its_turn else 0)  # those behind may fit now
