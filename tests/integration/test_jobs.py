"""Jobs are rows: queued once a key, claimed by one, given back when a worker dies, whatever the broker does."""

import asyncio
from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import text

from app.services.relay import BrokerAwayError, Relay
from app.store import Store, jobs
from app.store.jobs import Job, JobLostError, Work

WORK = Work("train", "train", "train:one")


async def queue(store: Store, work: Work = WORK) -> UUID:
    async with store.begin() as tx:
        return await jobs.enqueue(tx, work)


async def take(store: Store, job_id: UUID, owner: str = "w1") -> Job | None:
    async with store.begin() as tx:
        return await jobs.claim(tx, job_id, owner)


async def taken(store: Store, job_id: UUID, owner: str = "w1") -> Job:
    job = await take(store, job_id, owner)
    assert job
    return job


async def kill_worker(store: Store, job_id: UUID) -> None:
    async with store.begin() as tx:
        await tx.execute(text("update jobs set lease_until = now() - interval '1 second' where id = :i"), {"i": job_id})


async def state(store: Store, job_id: UUID) -> tuple[str, str | None]:
    async with store.begin() as tx:
        row = (await tx.execute(text("select state, error from jobs where id = :i"), {"i": job_id})).one()
    return row.state, row.error


async def test_one_live_job_a_key(store: Store) -> None:
    first = await queue(store)
    assert await queue(store) == first
    job = await taken(store, first)
    assert await queue(store) == first
    async with store.begin() as tx:
        await jobs.finish(tx, job)
    assert await queue(store) != first


async def test_a_job_exists_only_if_its_transaction_commits(store: Store) -> None:
    async def queued_and_undone() -> None:
        async with store.begin() as tx:
            await jobs.enqueue(tx, WORK)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await queued_and_undone()
    async with store.begin() as tx:
        assert await jobs.live(tx, WORK.key) is None


async def test_only_one_of_many_claims_wins(store: Store) -> None:
    job_id = await queue(store)
    claims = await asyncio.gather(*(take(store, job_id, f"w{n}") for n in range(5)))
    assert sum(c is not None for c in claims) == 1


async def test_who_lost_a_job_can_change_nothing(store: Store) -> None:
    job_id = await queue(store)
    old = await taken(store, job_id, "dead")
    await kill_worker(store, job_id)
    new = await taken(store, job_id, "alive")
    changes: list[Callable[[], object]] = [
        lambda: jobs.finish(tx, old),
        lambda: jobs.fail(tx, old, "x"),
        lambda: jobs.report(tx, old, {}),
        lambda: jobs.heartbeat(tx, old),
    ]
    for change in changes:
        async with store.begin() as tx:
            with pytest.raises(JobLostError):
                await change()  # type: ignore[misc]
    async with store.begin() as tx:
        await jobs.finish(tx, new)
    assert (await state(store, job_id))[0] == "done"


async def test_a_job_that_another_worker_has_or_will_get_is_told_from_one_that_is_over(store: Store) -> None:
    job_id = await queue(store)
    old = await taken(store, job_id, "slow")
    async with store.begin() as tx:
        assert not await jobs.passed_on(tx, old)
    await kill_worker(store, job_id)
    async with store.begin() as tx:
        await jobs.sweep(tx)
        assert await jobs.passed_on(tx, old)
    new = await taken(store, job_id, "alive")
    async with store.begin() as tx:
        assert await jobs.passed_on(tx, old)
        await jobs.cancelled(tx, new, "withdrawn")
        assert not await jobs.passed_on(tx, new)
        await tx.execute(text("delete from jobs"))
        assert not await jobs.passed_on(tx, old)


async def test_a_dead_worker_s_job_is_given_back_and_at_last_fails_visibly(store: Store) -> None:
    job_id = await queue(store)
    for _ in range(WORK.max_attempts):
        await taken(store, job_id)
        await kill_worker(store, job_id)
        async with store.begin() as tx:
            over = await jobs.sweep(tx)
    assert over == [job_id]
    assert await state(store, job_id) == ("failed", jobs.DIED)


async def test_a_postponed_job_spends_no_attempt(store: Store) -> None:
    job_id = await queue(store)
    for _ in range(5):
        job = await taken(store, job_id)
        async with store.begin() as tx:
            await jobs.postpone(tx, job, "paused", 0)
    assert (await taken(store, job_id)).attempts == 1


async def test_a_retried_job_fails_after_its_attempts(store: Store) -> None:
    job_id = await queue(store)
    for _ in range(WORK.max_attempts):
        job = await taken(store, job_id)
        async with store.begin() as tx:
            await jobs.retry(tx, job, "the server is away", 0)
    assert await state(store, job_id) == ("failed", "the server is away")
    assert await take(store, job_id) is None


class Broker:
    """A broker that can be away."""

    def __init__(self) -> None:
        self.got: list[tuple[UUID, str]] = []
        self.away = False

    def __call__(self, job_id: UUID, queue_name: str) -> None:
        if self.away:
            raise BrokerAwayError
        self.got.append((job_id, queue_name))


async def test_the_relay_wakes_each_due_job_once(store: Store) -> None:
    broker = Broker()
    relays = [Relay(store, broker) for _ in range(3)]
    ids = {await queue(store, Work("train", "train", f"train:{n}")) for n in range(5)}
    later = await queue(store, Work("train", "train", "train:later", delay_s=60))
    await asyncio.gather(*(relay.tick() for relay in relays))
    assert {job_id for job_id, _ in broker.got} == ids
    assert len(broker.got) == 5
    assert later not in ids


async def test_a_broker_that_is_away_loses_nothing(store: Store) -> None:
    broker = Broker()
    relay = Relay(store, broker)
    job_id = await queue(store)
    broker.away = True
    assert await relay.tick() == 0
    assert relay.broker_away
    broker.away = False
    assert await relay.tick() == 1
    assert not relay.broker_away
    assert broker.got == [(job_id, "train")]


async def test_a_broker_that_was_emptied_is_told_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    relay = Relay(store, broker)
    await queue(store)
    await relay.tick()
    await relay.tick()
    assert len(broker.got) == 1
    monkeypatch.setattr(jobs, "REWAKE_S", 0.0)
    await relay.tick()
    assert len(broker.got) == 2


async def test_a_killed_worker_s_job_is_sent_again(store: Store) -> None:
    broker = Broker()
    relay = Relay(store, broker)
    job_id = await queue(store)
    await relay.tick()
    await taken(store, job_id)
    await relay.tick()
    await kill_worker(store, job_id)
    await relay.tick()
    assert broker.got == [(job_id, "train")] * 2


@pytest.mark.parametrize(("switch", "queue_name"), [("training", "train"), ("release", "release")])
async def test_a_paused_step_is_not_woken_and_goes_on_at_once(store: Store, switch: str, queue_name: str) -> None:
    broker = Broker()
    relay = Relay(store, broker)
    await queue(store, Work("x", queue_name, "x"))
    async with store.begin() as tx:
        await tx.execute(text("insert into switches (name, paused) values (:n, true)"), {"n": switch})
    assert await relay.tick() == 0
    async with store.begin() as tx:
        await tx.execute(text("update switches set paused = false"))
    assert await relay.tick() == 1


async def test_jobs_are_queued_for_as_long_as_a_connection_lives(database_url: str) -> None:
    """From its sixth use on PostgreSQL may plan a statement without its values; the key's index must fit then too."""
    store = Store(database_url, pool_size=1)
    try:
        for number in range(12):
            async with store.begin() as tx:
                first = await jobs.enqueue(tx, Work("reconcile", "release", f"key-{number}"))
            async with store.begin() as tx:
                assert await jobs.enqueue(tx, Work("reconcile", "release", f"key-{number}")) == first
    finally:
        await store.close()
