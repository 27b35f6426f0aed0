"""The lane loop: an update whose channel is not connected yet waits, however long it takes."""

import asyncio

import pytest
from sqlalchemy import text

from app.errors import ChannelAwayError
from app.services import lanes
from app.services.lanes import LaneRunner, Work
from app.store import Store, inbox, people
from tests.support.road import Road


async def test_an_update_waits_for_its_channel(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "CHANNEL_AWAY_S", 0.01)
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        await inbox.accept(tx, bot, [inbox.Stored((b"1",), "71:", b"{}")])
    looks = 0
    handled = asyncio.Event()

    async def handle(_: Work) -> None:
        nonlocal looks
        looks += 1
        if looks <= 2 * inbox.MAX_ATTEMPTS:
            raise ChannelAwayError
        handled.set()

    woken = asyncio.Event()
    runner = LaneRunner(store, handle, "host:1", woken)
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(handled.wait(), 20)
    await runner.stop()
    await running
    async with store.begin() as tx:
        (row,) = (await tx.execute(text("select state, attempts from inbox"))).all()
    assert tuple(row) == ("done", 2)  # the first look stays counted, the others do not


async def test_an_update_waits_for_a_gateway_that_has_its_bot(running: Road) -> None:
    async with running.store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        await inbox.accept(tx, bot, [inbox.Stored((b"1",), "71:", b"{}")])
    for _ in range(100):
        (row,) = await running.rows("select state, attempts, due_at from inbox")
        if row["due_at"]:
            break
        await asyncio.sleep(0.05)
    assert row["due_at"]
    assert (row["state"], row["attempts"]) == ("stored", 1)


async def test_who_lost_an_update_and_took_it_again_ends_it_once(store: Store) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        await inbox.accept(tx, bot, [inbox.Stored((b"1",), "71:", b"{}")])
    tries: list[Work] = []
    first_may_end, ended = asyncio.Event(), asyncio.Event()

    async def handle(work: Work) -> None:
        tries.append(work)
        if len(tries) == 1:
            # The database was away for longer than the lease, and this process is the first to claim again.
            async with store.begin() as tx:
                await tx.execute(text("update inbox set lease_until = now() - interval '1 second'"))
            runner._woken.set()
            await first_may_end.wait()
            try:
                async with store.begin() as tx:
                    await work.done(tx)
            finally:
                ended.set()
            return
        first_may_end.set()
        await ended.wait()

    runner = LaneRunner(store, handle, "host:1", asyncio.Event())
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(ended.wait(), 20)
    await runner.stop()
    await running
    assert [work.finished for work in tries] == [False, True]
    async with store.begin() as tx:
        (row,) = (await tx.execute(text("select state, attempts from inbox"))).all()
    assert tuple(row) == ("done", 2)


async def some_wait_for_the_model(store: Store, lanes_of_work: int, most: int) -> int:
    """Return how many of `lanes_of_work` are taken up by a runner with two seats whose work waits for the model."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        for number in range(lanes_of_work):
            await inbox.accept(tx, bot, [inbox.Stored((b"%d" % number,), f"{number}:", b"{}")])
    begun, enough, over = 0, asyncio.Event(), asyncio.Event()

    async def handle(work: Work) -> None:
        nonlocal begun
        begun += 1
        if begun == most:
            enough.set()
        with work.waiting():
            await over.wait()

    runner = LaneRunner(store, handle, "host:1", asyncio.Event(), concurrency=2)
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(enough.wait(), 20)
    await asyncio.sleep(2 * lanes.IDLE_S)
    taken = begun
    over.set()
    await runner.stop()
    await running
    return taken


async def test_who_waits_for_the_model_takes_no_seat(store: Store) -> None:
    assert await some_wait_for_the_model(store, 7, 7) == 7


async def test_not_all_of_a_crowd_is_taken_up_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_AT_ONCE", 4)
    assert await some_wait_for_the_model(store, 7, 4) == 4
