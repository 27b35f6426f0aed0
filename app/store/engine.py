"""Connections to PostgreSQL. Knows no tables.

A cancelled task must not leave a half-used connection in the pool: commits are shielded, and SQLAlchemy discards a
connection that was cancelled in mid-query. Whether a pooled connection still lives is known without asking the server:
the driver hears its end; a ping at every use would cost three round trips.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidatePoolError, InvalidRequestError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import StoreFullError, StoreUnavailableError

# SQLSTATEs, or classes of them, in which the statement was right and the server could not: the connection broke (08), only
# reading is allowed, as on a standby (25006), two waited for each other (40P01), resources are short (53), it stops or is
# only starting (57P), the system under it failed (58):
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_AWAY = ("08", "25006", "40P01", "53", "57P", "58")
_DISK_FULL = "53100"
_URL_PREFIXES = ("postgresql://", "postgres://")
# Every statement of ours fits: one that is thrown out of the cache is parsed and planned anew at its next use.
STATEMENTS_KEPT = 512
# Who waits longer would outlive the leases of what is sent (60 s, of which 45 are for sending) and handled (30 s, renewed
# every 10).
WAIT_FOR_CONNECTION_S = 10

Tx = AsyncConnection


def async_url(url: str) -> str:
    """Return `url` with the asyncpg driver named."""
    for prefix in _URL_PREFIXES:
        if url.startswith(prefix):
            return "postgresql+asyncpg://" + url.removeprefix(prefix)
    return url


class Store:
    """Transactions: one pool, one transaction per `begin()`."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        """Prepare the pool; nothing connects yet.

        Args:
            url: `postgresql://user:password@host:port/database`.
            pool_size: most connections; who finds none free waits. Opening more under load would cost what is short then.
        """
        self._holders: set[asyncio.Task[object] | None] = set()
        self._engine: AsyncEngine = create_async_engine(
            async_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=WAIT_FOR_CONNECTION_S,
            # The one used last knows the statements already.
            pool_use_lifo=True,
            connect_args={"prepared_statement_cache_size": STATEMENTS_KEPT},
            # An error that reaches a log must not carry what people wrote.
            hide_parameters=True,
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Tx]:
        """Open a transaction; commit at the end, roll back on an error.

        Raises:
            RuntimeError: this task has a transaction of this store open already.
            StoreFullError: the database's disk is full; the transaction is rolled back.
            StoreUnavailableError: the database is away, refuses connections or lacks what it needs to work.
        """
        with self._alone():
            async with self.around() as connection:
                yield connection

    @asynccontextmanager
    async def around(self) -> AsyncIterator[Tx]:
        """Open a transaction that holds a lock around others of this task. For what happens once in a process at a time.

        Raises:
            StoreFullError: as `begin`; `StoreUnavailableError` too.
        """
        async with self._connected(self._engine) as connection:
            yield connection
            await to_its_end(connection.commit())

    @asynccontextmanager
    async def single(self) -> AsyncIterator[Tx]:
        """Open a connection on which each statement is a transaction by itself: for one, or for reads of which each stands alone.

        Two round trips fewer than `begin`.

        Raises:
            RuntimeError: as `begin`; `StoreFullError`, `StoreUnavailableError` too.
        """
        with self._alone():
            async with self._connected(self._single) as connection:
                yield connection

    @contextmanager
    def _alone(self) -> Iterator[None]:
        task = asyncio.current_task()
        if task in self._holders:
            # As many of these at once as there are connections would wait for each other for ever.
            raise RuntimeError("a transaction was opened inside a transaction of the same store")
        self._holders.add(task)
        try:
            yield
        finally:
            self._holders.discard(task)

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncIterator[Tx]:
        """Lend a connection."""
        lent = False
        try:
            with our_words():
                async with engine.connect() as connection:
                    lent = True
                    yield connection
        except InvalidRequestError as error:
            if lent:
                raise
            # Connections that were opened just now were closed again by the other side.
            raise StoreUnavailableError from error

    async def ping(self) -> None:
        """Ask the database whether it is there. Raises `StoreUnavailableError`."""
        async with self.single() as tx:
            await tx.execute(text("select 1"))

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for migrations and tests."""
        return self._engine


@contextmanager
def our_words() -> Iterator[None]:
    """Say of a failure of the server in one of our words that it was away or full."""
    try:
        yield
    except (OSError, InterfaceError, OperationalError, NoConnectionError, asyncpg.PostgresConnectionError) as error:
        raise StoreUnavailableError from error
    except (DBAPIError, asyncpg.PostgresError) as error:
        away = _meaning(error)
        if away is None:
            raise
        raise away from error


def _refuse_closed(connection: DBAPIConnection, _record: object, _proxy: object) -> None:
    """Let the pool replace a connection that the server has closed, and with it all that are older than that."""
    if connection.driver_connection.is_closed():
        raise InvalidatePoolError


async def to_its_end(commit: Coroutine[object, object, None]) -> None:
    """Await a commit, or what leads to one, even while the task is being cancelled; only then let the cancellation go on.

    Left to itself, a commit would still use the connection when that is closed; the driver's complaint about it would stand
    in the place of the cancellation, and the task would live on.
    """
    running = asyncio.ensure_future(commit)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def constraint_of(error: Exception) -> str | None:
    """Return the name of the constraint that a statement broke; None for every other error."""
    cause = error.orig.__cause__ if isinstance(error, DBAPIError) and error.orig else None
    return cause.constraint_name if isinstance(cause, asyncpg.IntegrityConstraintViolationError) else None


def _meaning(error: DBAPIError | asyncpg.PostgresError) -> StoreUnavailableError | None:
    """Return what to raise when the server could not; None when it was the statement that was wrong."""
    # An error while connecting comes as the driver raised it; one of a statement is wrapped twice.
    cause = error.orig.__cause__ if isinstance(error, DBAPIError) and error.orig else error
    state = cause.sqlstate or "" if isinstance(cause, asyncpg.PostgresError) else ""
    if state == _DISK_FULL:
        return StoreFullError()
    if state.startswith(_AWAY) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return StoreUnavailableError()
    return None
