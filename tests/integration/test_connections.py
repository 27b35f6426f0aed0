"""Connections and what goes wrong with them: a task cancelled while it commits, a server that closes them, a task that
asks for a second one while it holds the first.
"""

import asyncio

import asyncpg
import pytest
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


async def test_connections_that_the_server_closed_are_replaced_unnoticed(store: Store, database_url: str) -> None:
    async def busy() -> None:
        async with store.begin() as tx:
            await tx.execute(text("select pg_sleep(0.1)"))

    await asyncio.gather(*(busy() for _ in range(4)))
    other = await asyncpg.connect(database_url)
    mine = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    assert len(await other.fetch(mine)) >= 4
    while await other.fetchval("select count(*) from pg_stat_activity where datname = current_database()") > 1:
        await asyncio.sleep(0.02)
    await other.close()
    await asyncio.gather(*(busy() for _ in range(4)), store.ping())


@pytest.mark.parametrize("inner", ["begin", "single"])
async def test_a_transaction_inside_a_transaction_is_refused_and_the_outer_one_goes_on(
    store: Store, inner: str
) -> None:
    async with store.begin() as tx:
        with pytest.raises(RuntimeError):
            async with getattr(store, inner)():
                pass
        assert await tx.scalar(text("select 1")) == 1
    async with store.around(), store.begin() as tx:
        assert await tx.scalar(text("select 1")) == 1
