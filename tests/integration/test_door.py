"""The door: single statements past the store's pool, with the same words for a server that is away."""

import asyncio

import asyncpg
import pytest
from sqlalchemy import bindparam, select, text

from app.errors import StoreUnavailableError
from app.store import Door, Store, people
from app.store.tables.people import bots

NOWHERE = "postgresql://mentee:mentee@127.0.0.1:1/mentee"


async def test_a_statement_runs_with_its_own_values_and_those_given(store: Store, door: Door) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        await people.ensure_bot(tx, "telegram", "9002")
    named = select(bots.c.id, bots.c.external_id).where(
        bots.c.external_id == bindparam("external"), bots.c.channel == "telegram"
    )
    (row,) = await door.rows(named.limit(5), {"external": "9001"})
    assert dict(row) == {"id": bot, "external_id": "9001"}


async def test_each_statement_is_a_transaction_by_itself(store: Store, door: Door) -> None:
    made = text("insert into switches (name, paused) values (:name, true) returning name")
    assert len(await door.rows(made, {"name": "intake"})) == 1
    with pytest.raises(asyncpg.UniqueViolationError):
        await door.rows(made, {"name": "intake"})
    async with store.begin() as tx:
        assert await tx.scalar(text("select count(*) from switches")) == 1


async def test_a_connection_that_was_cut_is_replaced(store: Store, door: Door) -> None:
    who = text("select pg_backend_pid() as pid")
    ((first,),) = await door.rows(who, {})
    async with store.begin() as tx:
        await tx.execute(text("select pg_terminate_backend(:pid)"), {"pid": first})
    await asyncio.sleep(0.1)
    ((second,),) = await door.rows(who, {})
    assert second != first


async def test_a_statement_that_is_cut_off_says_that_the_database_is_away(store: Store, door: Door) -> None:
    await door.rows(text("select 1"), {})
    asking = asyncio.create_task(door.rows(text("select pg_sleep(30)"), {}))
    await asyncio.sleep(0.2)
    async with store.begin() as tx:
        await tx.execute(
            text("select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep%'")
        )
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(asking, 5)


async def test_nobody_listens() -> None:
    away = Door(NOWHERE)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await away.rows(text("select 1"), {})
    await away.close()


async def test_who_finds_every_connection_busy_for_long_is_told_so(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.door.WAIT_FOR_CONNECTION_S", 0.05)
    narrow = Door(database_url, pool_size=1)
    busy = asyncio.create_task(narrow.rows(text("select pg_sleep(0.5)"), {}))
    await asyncio.sleep(0.2)
    with pytest.raises(StoreUnavailableError):
        await narrow.rows(text("select 1"), {})
    await busy
    await narrow.close()


async def test_who_gives_up_waiting_leaves_the_connection_usable(database_url: str) -> None:
    narrow = Door(database_url, pool_size=1)
    asking = asyncio.create_task(narrow.rows(text("select pg_sleep(30)"), {}))
    await asyncio.sleep(0.3)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    ((one,),) = await asyncio.wait_for(narrow.rows(text("select 1 as one"), {}), 5)
    assert one == 1
    await narrow.close()
