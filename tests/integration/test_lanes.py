"""Lanes: what is claimed at the door and by the loop, in which order, and what waits, however long it takes."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from asyncpg import Record
from sqlalchemy import Executable, text

from app.errors import ChannelAwayError, StoreUnavailableError
from app.services import lanes
from app.services.intake import Intake
from app.services.lanes import LaneRunner, Work
from app.store import StatementPool, Store, inbox, people
from bots.base import RawUpdate
from tests.support.deaf import DeafStore
from tests.support.road import Road


async def test_an_update_waits_for_its_channel(
    store: Store, pool: StatementPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "CHANNEL_AWAY_S", 0.01)
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(pool, bot, inbox.Stored((b"1",), "71:", b"{}"))
    looks = 0
    handled = asyncio.Event()

    async def handle(_: Work) -> None:
        nonlocal looks
        looks += 1
        if looks <= 2 * inbox.MAX_ATTEMPTS:
            raise ChannelAwayError
        handled.set()

    runner = LaneRunner(store, handle, "host:1")
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(handled.wait(), 20)
    await runner.stop()
    await running
    async with store.begin() as tx:
        (row,) = (await tx.execute(text("select state, attempts from inbox"))).all()
    assert tuple(row) == ("done", 2)  # the first look stays counted, the others do not


async def test_an_update_waits_for_a_gateway_that_has_its_bot(running: Road, pool: StatementPool) -> None:
    async with running.store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(pool, bot, inbox.Stored((b"1",), "71:", b"{}"))
    for _ in range(100):
        (row,) = await running.rows("select state, attempts, due_at from inbox")
        if row["due_at"]:
            break
        await asyncio.sleep(0.05)
    assert row["due_at"]
    assert (row["state"], row["attempts"]) == ("stored", 1)


async def test_a_rule_of_the_data_that_was_broken_is_named(
    store: Store, pool: StatementPool, caplog: pytest.LogCaptureFixture
) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(pool, bot, inbox.Stored((b"1",), "71:", b"{}"))
    tried = asyncio.Event()

    async def handle(_: Work) -> None:
        tried.set()
        async with store.begin() as tx:
            again = (
                "insert into bots (id, channel, external_id) select gen_random_uuid(), channel, external_id from bots"
            )
            await tx.execute(text(again))

    runner = LaneRunner(store, handle, "host:1")
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(tried.wait(), 20)
    await runner.stop()
    await running
    (failed,) = [r for r in caplog.records if r.getMessage() == "inbox:work:failed"]
    assert failed.fields["constraint"] == "uq_bots_channel_external_id"
    async with store.begin() as tx:
        assert (await tx.execute(text("select state, error from inbox"))).one() == ("stored", "IntegrityError")


async def test_who_lost_an_update_and_took_it_again_ends_it_once(store: Store, pool: StatementPool) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    await inbox.accept(pool, bot, inbox.Stored((b"1",), "71:", b"{}"))
    tries: list[Work] = []
    first_may_end, ended = asyncio.Event(), asyncio.Event()

    async def handle(work: Work) -> None:
        tries.append(work)
        if len(tries) == 1:
            # The database was away for longer than the lease, and this process is the first to claim again.
            async with store.begin() as tx:
                await tx.execute(text("update inbox set lease_until = now() - interval '1 second'"))
            runner.wake()
            await first_may_end.wait()
            try:
                async with store.begin() as tx:
                    await work.done(tx)
            finally:
                ended.set()
            return
        first_may_end.set()
        await ended.wait()

    runner = LaneRunner(store, handle, "host:1")
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(ended.wait(), 20)
    await runner.stop()
    await running
    assert [work.finished for work in tries] == [False, True]
    async with store.begin() as tx:
        (row,) = (await tx.execute(text("select state, attempts from inbox"))).all()
    assert tuple(row) == ("done", 2)


async def some_wait_for_the_model(store: Store, pool: StatementPool, lanes_of_work: int, most: int) -> int:
    """Return how many of `lanes_of_work` are taken up by a runner with two seats whose work waits for the model."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
    for number in range(lanes_of_work):
        await inbox.accept(pool, bot, update_of(number, f"{number}:"))
    begun, enough, over = 0, asyncio.Event(), asyncio.Event()

    async def handle(work: Work) -> None:
        nonlocal begun
        begun += 1
        if begun == most:
            enough.set()
        with work.waiting():
            await over.wait()

    runner = LaneRunner(store, handle, "host:1", concurrency=2)
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(enough.wait(), 20)
    await asyncio.sleep(2 * lanes.IDLE_S)
    taken = begun
    over.set()
    await runner.stop()
    await running
    return taken


async def test_who_waits_for_the_model_takes_no_seat(store: Store, pool: StatementPool) -> None:
    assert await some_wait_for_the_model(store, pool, 7, 7) == 7


async def test_not_all_of_a_crowd_is_taken_up_at_once(
    store: Store, pool: StatementPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MOST_AT_ONCE", 4)
    assert await some_wait_for_the_model(store, pool, 7, 4) == 4


def update_of(number: int, lane: str = "71:") -> inbox.Stored:
    return inbox.Stored((b"%d" % number,), lane, b"{}")


async def a_bot(store: Store) -> UUID:
    async with store.begin() as tx:
        return await people.ensure_bot(tx, "telegram", "9001")


async def test_an_update_is_claimed_as_it_is_stored_where_its_lane_is_empty(store: Store, pool: StatementPool) -> None:
    bot = await a_bot(store)
    batch = [update_of(1), update_of(2), update_of(3, "72:"), update_of(1)]
    accepted = [await inbox.accept(pool, bot, one, "host:1") for one in batch]
    assert [one.new for one in accepted] == [True, True, True, False]
    assert [one.claimed and (one.claimed.lane, one.claimed.body, one.claimed.attempts) for one in accepted] == [
        (f"{bot}:71:", b"{}", 1),
        None,
        (f"{bot}:72:", b"{}", 1),
        None,
    ]
    async with store.begin() as tx:
        rows = (
            await tx.execute(text("select state, owner, attempts, lease_until > now() from inbox order by id"))
        ).all()
    held = ("claimed", "host:1", 1, True)
    assert [tuple(row) for row in rows] == [held, ("stored", None, 0, None), held]


@pytest.mark.parametrize(("owner", "paused"), [(None, False), ("host:1", True)])
async def test_nothing_is_claimed_as_it_is_stored(
    store: Store, pool: StatementPool, owner: str | None, paused: bool
) -> None:
    bot = await a_bot(store)
    if paused:
        async with store.begin() as tx:
            await tx.execute(text("insert into switches (name, paused) values ('intake', true)"))
    accepted = await inbox.accept(pool, bot, update_of(1), owner)
    assert (accepted.new, accepted.claimed) == (True, None)


@asynccontextmanager
async def held_back(store: Store, bot: UUID) -> AsyncIterator[None]:
    """Somebody has claimed a row of the lane in a transaction that ends with the block."""
    async with store.begin() as tx:
        await tx.execute(
            text(
                "insert into inbox (bot_id, lane, body, state, owner, attempts, lease_until)"
                " values (:bot, :lane, '', 'claimed', 'host:9', 1, now() + interval '30 seconds')"
            ),
            {"bot": bot, "lane": f"{bot}:71:"},
        )
        yield


async def test_who_is_second_in_a_lane_is_stored_behind(store: Store, pool: StatementPool) -> None:
    bot = await a_bot(store)
    async with held_back(store, bot):
        accepting = asyncio.create_task(inbox.accept(pool, bot, update_of(1), "host:1"))
        await asyncio.sleep(0.2)
    accepted = await accepting
    assert (accepted.new, accepted.claimed) == (True, None)


async def test_who_loses_the_race_for_a_lane_looks_again(store: Store, pool: StatementPool) -> None:
    bot = await a_bot(store)
    await inbox.accept(pool, bot, update_of(1))

    async def claim() -> list[inbox.Claimed]:
        async with store.single() as tx:
            return await inbox.claim(tx, "host:1", 10)

    async with held_back(store, bot):
        claiming = asyncio.create_task(claim())
        await asyncio.sleep(0.2)
    with pytest.raises(inbox.LaneTakenError):
        await claiming
    assert await claim() == []  # somebody holds the lane


async def test_two_gateways_never_both_claim_in_one_lane(database_url: str, store: Store) -> None:
    bot = await a_bot(store)
    at_once = most_at_once = 0

    async def handle(_: Work) -> None:
        nonlocal at_once, most_at_once
        at_once += 1
        most_at_once = max(at_once, most_at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    pools = [StatementPool(database_url, size=2) for _ in range(3)]
    runners = [LaneRunner(store, handle, f"host:{number}") for number, _ in enumerate(pools)]
    intakes = [Intake(pool, b"secret", runner) for pool, runner in zip(pools, runners, strict=True)]
    running = [asyncio.create_task(runner.run()) for runner in runners]
    updates = [RawUpdate(b"{}", (f"{number}",), "71:") for number in range(30)]
    new = await asyncio.gather(*(intakes[n % 3].accept(bot, [one]) for n, one in enumerate(updates)))
    await all_done(store)
    for runner in runners:
        await runner.stop()
    await asyncio.gather(*running, *(pool.close() for pool in pools))
    assert sum(new) == 30
    assert most_at_once == 1


async def all_done(store: Store, timeout_s: float = 30) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            async with store.begin() as tx:
                if not await tx.scalar(text("select count(*) from inbox where state <> 'done'")):
                    return
            await asyncio.sleep(0.05)


async def test_what_was_claimed_is_handled_without_another_look(store: Store, pool: StatementPool) -> None:
    handled = asyncio.Event()

    async def handle(_: Work) -> None:
        handled.set()

    runner = LaneRunner(store, handle, "host:1")  # its loop does not run
    await Intake(pool, b"secret", runner).accept(await a_bot(store), [RawUpdate(b"{}", ("1",), "71:")])
    await asyncio.wait_for(handled.wait(), 5)
    await runner.stop()
    async with store.begin() as tx:
        assert await tx.scalar(text("select state from inbox")) == "done"


class BrokenPool(StatementPool):
    """Fails at the third statement of its life, and never again."""

    asked = 0

    async def fetch(self, statement: Executable, values: Mapping[str, object]) -> Sequence[Record]:
        self.asked += 1
        if self.asked == 3:
            raise StoreUnavailableError
        return await super().fetch(statement, values)


async def test_of_a_batch_that_breaks_off_nothing_waits_for_a_lease(database_url: str, store: Store) -> None:
    bot, handled = await a_bot(store), list[int]()

    async def handle(work: Work) -> None:
        handled.append(work.claimed.attempts)

    pool, runner = BrokenPool(database_url, size=2), LaneRunner(store, handle, "host:1")
    running = asyncio.create_task(runner.run())
    intake, batch = Intake(pool, b"secret", runner), [RawUpdate(b"{}", (f"{n}",), f"{n}:") for n in range(4)]
    with pytest.raises(StoreUnavailableError):
        await intake.accept(bot, batch)
    assert await intake.accept(bot, batch) == 2
    await all_done(store, 2)
    assert handled == [1] * 4
    await runner.stop()
    await asyncio.gather(running, pool.close())


class DeafPool(StatementPool):
    """Carries its first statement out and never hears so: the answer is lost, or nobody waits for it any more."""

    def __init__(self, url: str, *, cancelled: bool) -> None:
        super().__init__(url, size=2)
        self._cancelled = cancelled
        self._heard = False

    async def fetch(self, statement: Executable, values: Mapping[str, object]) -> Sequence[Record]:
        rows = await super().fetch(statement, values)
        if self._heard:
            return rows
        self._heard = True
        if self._cancelled:
            await asyncio.sleep(60)
        raise StoreUnavailableError


@pytest.mark.parametrize("cancelled", [True, False])
async def test_what_was_claimed_unheard_is_given_back(database_url: str, store: Store, cancelled: bool) -> None:
    bot, handled = await a_bot(store), list[int]()

    async def handle(work: Work) -> None:
        handled.append(work.claimed.attempts)

    pool, runner = DeafPool(database_url, cancelled=cancelled), LaneRunner(store, handle, "host:1")
    running = asyncio.create_task(runner.run())
    intake, update = Intake(pool, b"secret", runner), RawUpdate(b"{}", ("1",), "71:")
    accepting = asyncio.create_task(intake.accept(bot, [update]))
    if cancelled:
        await asyncio.sleep(0.3)
        accepting.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else StoreUnavailableError):
        await accepting
    assert await intake.accept(bot, [update]) == 0
    await all_done(store, 3)
    assert handled == [1]
    await runner.stop()
    await asyncio.gather(running, pool.close())


async def test_what_the_loop_claimed_unheard_is_given_back(
    database_url: str, store: Store, pool: StatementPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "STORE_AWAY_S", 0.01)
    bot, handled = await a_bot(store), list[int]()

    async def handle(work: Work) -> None:
        handled.append(work.claimed.attempts)

    await inbox.accept(pool, bot, update_of(1, "71:"))
    deaf = DeafStore(database_url)
    runner = LaneRunner(deaf, handle, "host:1")
    running = asyncio.create_task(runner.run())
    await all_done(store, 5)
    assert handled == [1]
    await runner.stop()
    await asyncio.gather(running, deaf.close())


async def test_intake_and_loop_share_the_seats(store: Store, pool: StatementPool) -> None:
    bot, seated, most, over = await a_bot(store), 0, 0, asyncio.Event()

    async def handle(_: Work) -> None:
        nonlocal seated, most
        seated += 1
        most = max(seated, most)
        await over.wait()
        seated -= 1

    for number in range(8):
        await inbox.accept(pool, bot, update_of(number, f"{number}:"))
    runner = LaneRunner(store, handle, "host:1", concurrency=4)
    intake = Intake(pool, b"secret", runner)
    running = asyncio.create_task(runner.run())
    await asyncio.gather(*(intake.accept(bot, [RawUpdate(b"{}", (f"{n}",), f"new{n}:")]) for n in range(8)))
    await asyncio.sleep(2 * lanes.IDLE_S)
    assert seated == 4
    over.set()
    await all_done(store)
    await runner.stop()
    await running
    assert most == 4


async def test_nobody_overtakes_a_crowd_that_waits(store: Store, pool: StatementPool) -> None:
    bot, order, seat = await a_bot(store), list[str](), asyncio.Semaphore(0)

    async def handle(work: Work) -> None:
        order.append(work.claimed.lane.split(":")[1])
        await seat.acquire()

    for number in range(3):
        await inbox.accept(pool, bot, update_of(number, f"{number}:"))
    runner = LaneRunner(store, handle, "host:1", concurrency=1)
    intake = Intake(pool, b"secret", runner)
    running = asyncio.create_task(runner.run())
    async with asyncio.timeout(10):
        while not order:
            await asyncio.sleep(0.01)
        for number in range(3):
            seat.release()
            await intake.accept(bot, [RawUpdate(b"{}", (f"new{number}",), f"new{number}:")])
    for _ in range(3):
        seat.release()
    await all_done(store)
    await runner.stop()
    await running
    assert order == ["0", "1", "2", "new0", "new1", "new2"]


async def test_who_stops_takes_nothing_up(store: Store, pool: StatementPool) -> None:
    async def handle(_: Work) -> None:
        raise AssertionError

    runner = LaneRunner(store, handle, "host:1")
    await runner.stop()
    await Intake(pool, b"secret", runner).accept(await a_bot(store), [RawUpdate(b"{}", ("1",), "71:")])
    async with store.begin() as tx:
        assert await tx.scalar(text("select state from inbox")) == "stored"


async def test_a_row_that_appears_behind_a_later_one_waits_until_that_ends(store: Store, pool: StatementPool) -> None:
    bot = await a_bot(store)
    async with store.begin() as earlier:
        await earlier.execute(
            text("insert into inbox (bot_id, lane, body) values (:bot, :lane, '')"), {"bot": bot, "lane": f"{bot}:71:"}
        )
        later = (await inbox.accept(pool, bot, update_of(2), "host:1")).claimed
        assert later
    async with store.begin() as tx:
        assert await inbox.claim(tx, "host:2", 10) == []
        # Its owner died: whoever takes the lane up goes on where it stood.
        await tx.execute(text("update inbox set lease_until = now() - interval '1 second' where state = 'claimed'"))
    async with store.begin() as tx:
        (again,) = await inbox.claim(tx, "host:2", 10)
        assert (again.id, again.attempts) == (later.id, 2)
        assert await inbox.finish(tx, again, "host:2", "done")
        (first,) = await inbox.claim(tx, "host:2", 10)
        assert first.id < later.id
