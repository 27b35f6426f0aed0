"""Lanes: what is claimed at the door and by the loop, in which order, and what waits, however long it takes."""

import asyncio

import pytest
from sqlalchemy import text

from app.errors import ChannelAwayError
from app.services import lanes
from app.services.intake import Intake
from app.services.lanes import LaneRunner, Work
from app.store import Door, Store, inbox, people
from bots.base import RawUpdate
from tests.support.road import Road


async def test_an_update_waits_for_its_channel(store: Store, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "CHANNEL_AWAY_S", 0.01)
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(door, bot, [inbox.Stored((b"1",), "71:", b"{}")])
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


async def test_an_update_waits_for_a_gateway_that_has_its_bot(running: Road, door: Door) -> None:
    async with running.store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(door, bot, [inbox.Stored((b"1",), "71:", b"{}")])
    for _ in range(100):
        (row,) = await running.rows("select state, attempts, due_at from inbox")
        if row["due_at"]:
            break
        await asyncio.sleep(0.05)
    assert row["due_at"]
    assert (row["state"], row["attempts"]) == ("stored", 1)


async def test_who_lost_an_update_and_took_it_again_ends_it_once(store: Store, door: Door) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(door, bot, [inbox.Stored((b"1",), "71:", b"{}")])
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


async def some_wait_for_the_model(store: Store, door: Door, lanes_of_work: int, most: int) -> int:
    """Return how many of `lanes_of_work` are taken up by a runner with two seats whose work waits for the model."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    updates = [inbox.Stored((b"%d" % number,), f"{number}:", b"{}") for number in range(lanes_of_work)]
    await inbox.accept(door, bot, updates)
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


async def test_who_waits_for_the_model_takes_no_seat(store: Store, door: Door) -> None:
    assert await some_wait_for_the_model(store, door, 7, 7) == 7


async def test_not_all_of_a_crowd_is_taken_up_at_once(
    store: Store, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MOST_AT_ONCE", 4)
    assert await some_wait_for_the_model(store, door, 7, 4) == 4


def update_of(number: int, lane: str = "71:") -> inbox.Stored:
    return inbox.Stored((b"%d" % number,), lane, b"{}")


async def test_an_update_is_claimed_as_it_is_stored_where_its_lane_is_empty(store: Store, door: Door) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    batch = [update_of(1), update_of(2), update_of(3, "72:"), update_of(4, "73:"), update_of(1)]
    accepted = await inbox.accept(door, bot, batch, owner="host:1", most=2)
    assert accepted.new == 4
    assert [(c.lane, c.body, c.attempts) for c in accepted.claimed] == [
        (f"{bot}:71:", b"{}", 1),
        (f"{bot}:72:", b"{}", 1),
    ]
    async with store.begin() as tx:
        rows = (
            await tx.execute(text("select state, owner, attempts, lease_until > now() from inbox order by id"))
        ).all()
    waits = ("stored", None, 0, None)
    assert [tuple(row) for row in rows] == [
        ("claimed", "host:1", 1, True),
        waits,
        ("claimed", "host:1", 1, True),
        waits,
    ]


@pytest.mark.parametrize(("owner", "most", "paused"), [(None, 1, False), ("host:1", 0, False), ("host:1", 1, True)])
async def test_nothing_is_claimed_at_the_door(
    store: Store, door: Door, owner: str | None, most: int, paused: bool
) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        if paused:
            await tx.execute(text("insert into switches (name, paused) values ('intake', true)"))
    accepted = await inbox.accept(door, bot, [update_of(1)], owner=owner, most=most)
    assert (accepted.new, accepted.claimed) == (1, [])


async def test_two_doors_never_both_claim_in_one_lane(store: Store, door: Door) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    doors = [Intake(door, b"secret", asyncio.Event()) for _ in range(6)]
    at_once = most_at_once = 0

    async def handle(work: Work) -> None:
        nonlocal at_once, most_at_once
        at_once += 1
        most_at_once = max(at_once, most_at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    runners = [LaneRunner(store, handle, f"host:{n}", asyncio.Event()) for n, _ in enumerate(doors)]
    for one, runner in zip(doors, runners, strict=True):
        one.hand_to(runner)
    running = [asyncio.create_task(runner.run()) for runner in runners]
    updates = [RawUpdate(b"{}", (f"{number}",), "71:") for number in range(30)]
    new = await asyncio.gather(*(doors[n % 6].accept(bot, [one]) for n, one in enumerate(updates)))
    async with asyncio.timeout(30):
        while await unfinished(store):
            await asyncio.sleep(0.05)
    for runner in runners:
        await runner.stop()
    await asyncio.gather(*running)
    assert sum(new) == 30
    assert most_at_once == 1


async def unfinished(store: Store) -> int:
    async with store.begin() as tx:
        return int(await tx.scalar(text("select count(*) from inbox where state <> 'done'")))


async def test_a_row_that_appears_behind_a_later_one_waits_until_that_ends(store: Store, door: Door) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    async with store.begin() as earlier:
        await earlier.execute(
            text("insert into inbox (bot_id, lane, body) values (:bot, :lane, '')"), {"bot": bot, "lane": f"{bot}:71:"}
        )
        (later,) = (await inbox.accept(door, bot, [update_of(2)], owner="host:1", most=1)).claimed
    async with store.begin() as tx:
        assert await inbox.claim(tx, "host:2", 10) == []
        # Its owner died: whoever takes the lane up goes on where it stood.
        await tx.execute(text("update inbox set lease_until = now() - interval '1 second' where state = 'claimed'"))
        (again,) = await inbox.claim(tx, "host:2", 10)
        assert (again.id, again.attempts) == (later.id, 2)
        assert await inbox.finish(tx, again, "host:2", "done")
        (first,) = await inbox.claim(tx, "host:2", 10)
        assert first.id < later.id
