"""A reply that is asked for before its turn is committed: model and database work at the same time.

Nothing of it is read, shown or stored until the turn stands; where that fails, the stream is closed and was for nothing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator

from app.ports import Delta


class Ahead:
    """The pieces of a stream, the first of which is waited for from now on. Close it."""

    def __init__(self, stream: AsyncGenerator[Delta]) -> None:
        """Ask for the first piece; `since` is when, by the monotonic clock."""
        self.since = time.monotonic()
        self._stream = stream
        self._first: asyncio.Task[Delta] | None = asyncio.create_task(_next(stream))

    async def sent(self) -> None:
        """Let the request leave before anything else is done."""
        await asyncio.sleep(0)

    def __aiter__(self) -> "Ahead":
        return self

    async def __anext__(self) -> Delta:
        if self._first is None:
            return await anext(self._stream)
        first, self._first = self._first, None
        return await first

    async def aclose(self) -> None:
        """Stop asking; what was not read is dropped, an error of it too."""
        if self._first:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
            self._first = None
        await self._stream.aclose()


async def _next(stream: AsyncGenerator[Delta]) -> Delta:
    return await anext(stream)
