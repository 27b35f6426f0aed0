"""Connections to PostgreSQL. Knows no tables.

A cancelled task must not leave a half-used connection in the pool: commits are shielded, and SQLAlchemy discards a
connection that was cancelled in mid-query.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import StoreFullError, StoreUnavailableError

# Classes of SQLSTATE in which the statement was right and the server could not: resources are short (53), it stops or is
# only starting (57P), the system under it failed (58): https://www.postgresql.org/docs/current/errcodes-appendix.html
_AWAY = ("53", "57P", "58")
_DISK_FULL = "53100"
_URL_PREFIXES = ("postgresql://", "postgres://")

Tx = AsyncConnection


def async_url(url: str) -> str:
    """Return `url` with the asyncpg driver named."""
    for prefix in _URL_PREFIXES:
        if url.startswith(prefix):
            return "postgresql+asyncpg://" + url.removeprefix(prefix)
    return url


class Store:
    """The door to the database: one pool, one transaction per `begin()`."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        """Prepare the pool; nothing connects yet.

        Args:
            url: `postgresql://user:password@host:port/database`.
            pool_size: most connections kept; as many again may open under load.
        """
        self._engine: AsyncEngine = create_async_engine(
            async_url(url),
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            pool_timeout=10,
            # An error that reaches a log must not carry what people wrote.
            hide_parameters=True,
        )

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Tx]:
        """Open a transaction; commit at the end, roll back on an error.

        Raises:
            StoreFullError: the database's disk is full; the transaction is rolled back.
            StoreUnavailableError: the database is away, refuses connections or lacks what it needs to work.
        """
        try:
            async with self._engine.connect() as connection:
                yield connection
                await _to_its_end(connection.commit())
        except (OSError, InterfaceError, OperationalError, asyncpg.PostgresConnectionError) as error:
            raise StoreUnavailableError from error
        except (DBAPIError, asyncpg.PostgresError) as error:
            away = _meaning(error)
            if away is None:
                raise
            raise away from error

    async def ping(self) -> None:
        """Ask the database whether it is there. Raises `StoreUnavailableError`."""
        async with self.begin() as tx:
            await tx.execute(text("select 1"))

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for migrations and tests."""
        return self._engine


async def _to_its_end(commit: Coroutine[object, object, None]) -> None:
    """Await a commit even while the task is being cancelled, and only then let the cancellation go on.

    Left to itself, it would still use the connection when that is closed; the driver's complaint about it would stand in
    the place of the cancellation, and the task would live on.
    """
    running = asyncio.ensure_future(commit)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


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
