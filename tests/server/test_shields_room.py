"""Room for bodies: nobody has too much of it, nobody waits for nothing, and none of it is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorist.server.http.room import Room, Stay, could_end


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def holding(room: Room, caller: str, size: int) -> Stay:
    """A stay of a whole body."""
    stay = room.enter(caller, size)
    await room.take(stay, size)
    return stay


def test_a_caller_gets_a_quarter_and_others_the_rest() -> None:
    async def work() -> None:
        room = Room(400, patience_s=0.01)
        first = await holding(room, "eve", 100)
        with pytest.raises(TimeoutError):
            await holding(room, "eve", 1)
        for name in ("ada", "bob", "cy"):
            await holding(room, name, 100)
        assert room.free == 0
        with pytest.raises(TimeoutError):
            await holding(room, "dee", 1)
        room.leave(first)
        await holding(room, "dee", 100)

    run(work())


def test_who_declares_much_and_brings_little_takes_little() -> None:
    async def work() -> None:
        room = Room(400, patience_s=0.01)
        for number in range(20):
            await room.take(room.enter(f"eve {number}", 100), 1)
        assert room.free == 380
        await holding(room, "ada", 100)
        await holding(room, "bob", 100)

    run(work())


def test_those_who_wait_come_in_as_others_leave() -> None:
    async def work() -> None:
        room = Room(40, patience_s=5)
        first = await holding(room, "ada", 10)
        second = asyncio.create_task(holding(room, "ada", 10))
        third = asyncio.create_task(holding(room, "ada", 10))
        await asyncio.sleep(0)
        room.leave(first)
        stay = await second
        assert not third.done()
        room.settle(stay, 0)
        room.leave(await third)
        assert room.free == 40

    run(work())


def test_who_gives_up_or_is_cancelled_amid_its_turn_holds_nobody_up() -> None:
    async def work() -> None:
        room = Room(40, patience_s=5)
        first = await holding(room, "ada", 10)
        stays = [room.enter("ada", 10) for _ in range(3)]
        tasks = [asyncio.create_task(room.take(stay, 10)) for stay in stays]
        await asyncio.sleep(0)
        tasks[0].cancel()  # and has not left the line yet
        room.leave(first)
        tasks[1].cancel()  # it has its turn, and does not know it
        await asyncio.gather(*tasks[:2], return_exceptions=True)
        for stay in stays[:2]:
            room.leave(stay)
        await tasks[2]
        assert room.free == 30

    run(work())


def test_patience_is_for_all_the_waiting_of_a_body() -> None:
    async def work() -> None:
        room = Room(40, patience_s=0.2)
        other, stay = await holding(room, "ada", 10), room.enter("ada", 10)
        waiting = asyncio.create_task(room.take(stay, 5))
        await asyncio.sleep(0.15)
        room.settle(other, 5)
        await waiting
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await room.take(stay, 10)
        assert asyncio.get_running_loop().time() - began < 0.15
        assert stay.waited_s >= 0.2

    run(work())


def test_a_line_that_is_too_long_is_not_joined() -> None:
    async def work() -> None:
        room = Room(40, patience_s=5, places=1)
        first = await holding(room, "ada", 10)
        waiting = asyncio.create_task(holding(room, "ada", 1))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await holding(room, "ada", 1)
        room.leave(first)
        await waiting
        assert room.free == 39

    run(work())


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 100)), max_size=30), st.randoms())
def test_whoever_brings_bodies_bit_by_bit_all_of_them_end(
    bodies: list[tuple[int, int]], chance: random.Random
) -> None:
    async def bring(room: Room, caller: int, size: int) -> None:
        stay = room.enter(caller, size)
        while stay.held < size:
            await room.take(stay, min(size, stay.held + chance.randint(1, 30)))
            assert could_end(room._stays, 400)
            await asyncio.sleep(0)
        room.leave(stay)

    async def work() -> None:
        room = Room(400, patience_s=60)
        async with asyncio.timeout(5):  # else they wait for each other
            await asyncio.gather(*(bring(room, *body) for body in bodies))
        assert room.free == 400

    run(work())
