"""A task that is cancelled while it commits: the commit counts, and the task ends."""

import asyncio

from sqlalchemy import text

from app.store import Store

SLOW_COMMIT = (
    "create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(0.4); return null; end'",
    """create constraint trigger wait after insert on dedupe_keys deferrable initially deferred
       for each row execute function wait()""",
)


async def test_a_cancellation_during_a_commit_waits_for_it_and_goes_on(store: Store) -> None:
    async with store.begin() as tx:
        for statement in SLOW_COMMIT:
            await tx.execute(text(statement))
    written = asyncio.Event()

    async def write() -> None:
        async with store.begin() as tx:
            await tx.execute(text("insert into dedupe_keys (key) values ('1')"))
            written.set()

    writing = asyncio.create_task(write())
    await written.wait()
    await asyncio.sleep(0.1)
    writing.cancel()
    await asyncio.wait([writing])
    assert writing.cancelled()
    async with store.begin() as tx:
        assert await tx.scalar(text("select count(*) from dedupe_keys")) == 1
