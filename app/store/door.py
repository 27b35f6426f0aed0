"""The database's door: single statements past pool and transaction of `Store`, for what somebody outside waits for.

On the road of a message the statements before its lane cost less this way, and work that holds every connection of the
store does not keep a platform waiting.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import asyncpg
from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

from app.errors import StoreUnavailableError
from app.store.engine import STATEMENTS_KEPT, WAIT_FOR_CONNECTION_S, our_words

_DIALECT = dialect()  # type: ignore[no-untyped-call]


class Door:
    """A few connections of their own; each statement is a transaction by itself. Opened at the first use; close it."""

    def __init__(self, url: str, *, pool_size: int = 4) -> None:
        """Take the address as `Store` does, and the most connections."""
        self._url = url
        self._size = pool_size
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    async def rows(self, statement: Executable, values: Mapping[str, object]) -> Sequence[asyncpg.Record]:
        """Run a statement; values go to the driver as they are, and rows come as it gives them.

        Raises:
            StoreFullError: the database's disk is full; nothing was changed.
            StoreUnavailableError: the database is away, or no connection was free for long.
            asyncpg.IntegrityConstraintViolationError: a constraint forbids it; nothing was changed.
        """
        sql, names, given = _compiled(statement)
        arguments = [values[name] if name in values else given[name] for name in names]
        with our_words():
            pool = self._pool or await self._open()
            try:
                connection = await pool.acquire(timeout=WAIT_FOR_CONNECTION_S)
            except TimeoutError as error:
                raise StoreUnavailableError from error
            try:
                return await connection.fetch(sql, *arguments)
            finally:
                await pool.release(connection)

    async def close(self) -> None:
        """Close every connection."""
        pool, self._pool = self._pool, None
        if pool:
            await pool.close()

    async def _open(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url,
                    min_size=0,
                    max_size=self._size,
                    statement_cache_size=STATEMENTS_KEPT,
                    max_inactive_connection_lifetime=0,
                    reset=_as_it_is,
                )
            return self._pool


async def _as_it_is(_connection: object) -> None:
    """Leave a connection as it is: no statement here leaves anything behind, and asking costs a round trip."""


@lru_cache(maxsize=STATEMENTS_KEPT)
def _compiled(statement: ClauseElement) -> tuple[str, Sequence[str], Mapping[str, Any]]:
    """Return a statement as text, the names of its arguments in order, and the values that stand in it already."""
    compiled = statement.compile(dialect=_DIALECT)
    assert isinstance(compiled, SQLCompiler)  # noqa: S101 - what every statement compiles to
    return str(compiled), tuple(compiled.positiontup or ()), compiled.params
