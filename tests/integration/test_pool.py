"""The statement pool: single statements past the store's pool, with the same words for a server that is away."""

import asyncio

import asyncpg
import pytest
from sqlalchemy import bindparam, select, text
from sqlalchemy.engine import make_url

from app.errors import StoreUnavailableError
from app.store import StatementPool, Store, people
from app.store.tables.people import bots

NOWHERE = "postgresql://mentee:mentee@127.0.0.1:1/mentee"


async def test_a_statement_runs_with_its_own_values_and_those_given(store: Store, pool: StatementPool) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        await people.ensure_bot(tx, "telegram", "9002")
    named = select(bots.c.id, bots.c.external_id).where(
        bots.c.external_id == bindparam("external"), bots.c.channel == "telegram"
    )
    (row,) = await pool.fetch(named.limit(5), {"external": "9001"})
    assert dict(row) == {"id": bot, "external_id": "9001"}


async def test_each_statement_is_a_transaction_by_itself(store: Store, pool: StatementPool) -> None:
    made = text("insert into switches (name, paused) values (:name, true) returning name")
    assert len(await pool.fetch(made, {"name": "intake"})) == 1
    with pytest.raises(asyncpg.UniqueViolationError):
        await pool.fetch(made, {"name": "intake"})
    async with store.begin() as tx:
        assert await tx.scalar(text("select count(*) from switches")) == 1


async def test_a_connection_that_was_cut_is_replaced(store: Store, pool: StatementPool) -> None:
    who = text("select pg_backend_pid() as pid")
    ((first,),) = await pool.fetch(who, {})
    async with store.begin() as tx:
        await tx.execute(text("select pg_terminate_backend(:pid)"), {"pid": first})
    await asyncio.sleep(0.1)
    ((second,),) = await pool.fetch(who, {})
    assert second != first


async def test_a_statement_that_is_cut_off_says_that_the_database_is_away(store: Store, pool: StatementPool) -> None:
    await pool.fetch(text("select 1"), {})
    asking = asyncio.create_task(pool.fetch(text("select pg_sleep(30)"), {}))
    await asyncio.sleep(0.2)
    async with store.begin() as tx:
        await tx.execute(
            text("select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep%'")
        )
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(asking, 5)


async def test_nobody_listens() -> None:
    away = StatementPool(NOWHERE, size=1)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await away.fetch(text("select 1"), {})
    await away.close()


async def test_who_finds_every_connection_busy_for_long_is_told_so(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.pool.WAIT_FOR_CONNECTION_S", 0.05)
    narrow = StatementPool(database_url, size=1)
    busy = asyncio.create_task(narrow.fetch(text("select pg_sleep(0.5)"), {}))
    await asyncio.sleep(0.2)
    with pytest.raises(StoreUnavailableError):
        await narrow.fetch(text("select 1"), {})
    await busy
    await narrow.close()


async def test_who_gives_up_waiting_leaves_the_connection_usable(database_url: str) -> None:
    narrow = StatementPool(database_url, size=1)
    asking = asyncio.create_task(narrow.fetch(text("select pg_sleep(30)"), {}))
    await asyncio.sleep(0.3)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    ((one,),) = await asyncio.wait_for(narrow.fetch(text("select 1 as one"), {}), 5)
    assert one == 1
    await narrow.close()


@pytest.mark.parametrize("more", ["ssl=disable", "prepared_statement_cache_size=7"])
async def test_an_address_is_read_as_the_store_reads_it(database_url: str, more: str) -> None:
    address = f"{database_url}{'&' if '?' in database_url else '?'}{more}"
    for url in (address, address.replace("postgresql://", "postgresql+asyncpg://")):
        store, pool = Store(url), StatementPool(url, size=1)
        await store.ping()
        assert len(await pool.fetch(text("select 1"), {})) == 1
        await store.close()
        await pool.close()


async def test_a_value_that_is_missing_is_no_null(pool: StatementPool) -> None:
    with pytest.raises(KeyError):
        await pool.fetch(text("select cast(:x as text) as x"), {})
    ((x,),) = await pool.fetch(text("select cast(:x as text) as x"), {"x": None})
    assert x is None


async def test_a_value_that_does_not_fit_is_our_own_mistake(pool: StatementPool) -> None:
    with pytest.raises(asyncpg.DataError):
        await pool.fetch(text("select cast(:x as int) as x"), {"x": "one"})


async def test_once_closed_it_stays_closed(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.pool.CLOSE_S", 0.2)
    closed = StatementPool(database_url, size=1)
    hung = asyncio.create_task(closed.fetch(text("select pg_sleep(30)"), {}))
    await asyncio.sleep(0.3)
    waiting = asyncio.create_task(closed.fetch(text("select 1"), {}))
    await asyncio.sleep(0.1)
    await asyncio.wait_for(closed.close(), 5)
    for asked in (hung, waiting):
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(asked, 5)
    with pytest.raises(StoreUnavailableError):
        await closed.fetch(text("select 1"), {})


class FreezingProxy:
    """Stands before the database; once `frozen`, nothing goes through and nobody new is answered."""

    def __init__(self, url: str) -> None:
        self._target = make_url(url)
        self.frozen = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return self._target.set(host=host, port=port, query={}).render_as_string(hide_password=False)

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await self._database()
        for source, sink in ((reader, up_writer), (up_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)

    async def _database(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = self._target.query.get("host")
        if folder:
            return await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{self._target.query.get('port', 5432)}")
        return await asyncio.open_connection(self._target.host, self._target.port)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                while self.frozen:
                    await asyncio.sleep(0.02)
                sink.write(data)
        finally:
            sink.close()


async def test_whoever_is_cancelled_is_cancelled_though_the_database_is_silent(database_url: str) -> None:
    proxy = FreezingProxy(database_url)
    async with proxy as address:
        silent = StatementPool(address, size=1)
        asking = asyncio.create_task(silent.fetch(text("select pg_sleep(20)"), {}))
        await asyncio.sleep(0.3)
        proxy.frozen = True
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, 2)
        proxy.frozen = False
        assert len(await asyncio.wait_for(silent.fetch(text("select 1"), {}), 5)) == 1
        await silent.close()


async def test_a_server_that_says_goodbye_is_away_at_every_moment(store: Store, pool: StatementPool) -> None:
    kill = text("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cut'")
    named = text("select set_config('application_name', 'cut', false)")
    said: set[type[BaseException]] = set()
    for number in range(60):
        await asyncio.gather(*(pool.fetch(named, {}) for _ in range(4)), return_exceptions=True)
        async with store.begin() as tx:
            killing = asyncio.create_task(tx.execute(kill))
            await asyncio.sleep(number % 6 * 0.0005)
            met = await asyncio.gather(*(pool.fetch(text("select 1"), {}) for _ in range(4)), return_exceptions=True)
            await killing
        said |= {type(one) for one in met if isinstance(one, BaseException)}
    assert said <= {StoreUnavailableError}
    await asyncio.sleep(0.2)  # until the last goodbye is heard
    assert len(await pool.fetch(text("select 1"), {})) == 1
