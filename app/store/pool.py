"""Single statements through the driver alone, past transactions of `Store`, for what somebody outside waits for.

On the road of a message the statements before its lane cost less this way, and work that holds every connection of the
store keeps no platform waiting.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import asyncpg
from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.engine import make_url
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

from app.errors import StoreUnavailableError
from app.store.engine import STATEMENTS_KEPT, WAIT_FOR_CONNECTION_S, async_url, our_words

CLOSE_S = 5.0
_DIALECT = dialect()  # type: ignore[no-untyped-call]
# Of SQLAlchemy's own; the driver would take them for settings of the server.
_NOT_THE_DRIVERS = ("prepared_statement_cache_size", "prepared_statement_name_func", "async_fallback")


class StatementPool:
    """A few connections of their own; each statement is a transaction by itself. Opened at the first use; close it."""

    def __init__(self, url: str, *, size: int) -> None:
        """Take the address as `Store` does, and the most connections."""
        self._url = url
        self._size = size
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def fetch(self, statement: Executable, values: Mapping[str, object]) -> Sequence[asyncpg.Record]:
        """Run a statement and return its rows.

        Values go to the driver as they are: no type of SQLAlchemy's converts them, and no `in_` list is written out.

        Raises:
            KeyError: a value is missing.
            StoreFullError: the database's disk is full; nothing was changed.
            StoreUnavailableError: the database is away, or no connection was free for long. The statement may have been
                carried out where only its answer was lost.
            asyncpg.IntegrityConstraintViolationError: a constraint forbids it; nothing was changed.
        """
        sql, names, given = _compiled(statement)
        arguments = [values[name] if name in values else given[name] for name in names]
        with _our_words():
            pool = self._pool or await self._open()
            connection = await pool.acquire(timeout=WAIT_FOR_CONNECTION_S)
            try:
                return await connection.fetch(sql, *arguments)
            except (asyncio.CancelledError, asyncpg.InternalClientError):
                # Given back as it is, it would be waited for until the server answers that it cancelled; and one that met
                # the server's goodbye would be lent again.
                connection.terminate()
                raise
            finally:
                await pool.release(connection)

    async def close(self) -> None:
        """Close every connection; one that is busy for long is cut off."""
        self._closed = True
        if self._pool:
            try:
                await asyncio.wait_for(self._pool.close(), CLOSE_S)
            except TimeoutError:
                self._pool.terminate()

    async def _open(self) -> asyncpg.Pool:
        async with self._opening:
            if self._closed:
                raise StoreUnavailableError
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    **_driver_arguments(self._url),
                    min_size=0,
                    max_size=self._size,
                    statement_cache_size=STATEMENTS_KEPT,
                    max_inactive_connection_lifetime=0,
                    reset=_as_it_is,
                )
            return self._pool


@contextmanager
def _our_words() -> Iterator[None]:
    """Say the same as a store does where the driver's own complaint is about a connection that is closing or closed."""
    try:
        with our_words():
            yield
    except asyncpg.DataError:
        raise  # a value that does not fit is our own mistake
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise StoreUnavailableError from error


async def _as_it_is(_connection: object) -> None:
    """Leave a connection as it is: no statement here leaves anything behind, and asking costs a round trip."""


def _driver_arguments(url: str) -> dict[str, Any]:
    """Return what the driver is told of an address, read as SQLAlchemy reads it for the store."""
    _, arguments = _DIALECT.create_connect_args(make_url(async_url(url)))  # type: ignore[no-untyped-call]
    return {name: value for name, value in arguments.items() if name not in _NOT_THE_DRIVERS}


@lru_cache(maxsize=STATEMENTS_KEPT)
def _compiled(statement: ClauseElement) -> tuple[str, Sequence[str], Mapping[str, object]]:
    """Return a statement as text, the names of its arguments in order, and the values that stand in it already."""
    compiled = statement.compile(dialect=_DIALECT)
    assert isinstance(compiled, SQLCompiler)  # noqa: S101 - what every statement compiles to
    given = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    return str(compiled), tuple(compiled.positiontup or ()), given
