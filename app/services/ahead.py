"""A reply that may be asked for before its turn is committed: model and database work at the same time.

Nothing of it is read, shown or stored until the turn stands; where that fails, the stream is closed and was for nothing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator

from app.ports import Delta

# A connection that stands carries the request two turns of the loop later; what the database is asked meanwhile would
# hold that up.
TURNS_OF_THE_LOOP = 2


class Ahead:
    """The pieces of a stream, asked for at the first read or, with `start`, before. Close it."""

    def __init__(self, stream: AsyncGenerator[Delta]) -> None:
        """Take the stream; nothing is asked for yet."""
        self.since = time.monotonic()
        """When it was asked for, by the monotonic clock."""
        self.first_ms: float | None = None
        """Milliseconds from then to the first piece, whenever that is read."""
        self._stream = stream
        self._first: asyncio.Task[Delta] | None = None

    async def start(self) -> None:
        """Ask now; the first piece is waited for, whether or not somebody reads."""
        self._first = asyncio.create_task(self._next())
        for _ in range(TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)

    def __aiter__(self) -> "Ahead":
        return self

    async def __anext__(self) -> Delta:
        if self._first is None:
            return await self._next()
        first, self._first = self._first, None
        return await first

    async def aclose(self) -> None:
        """Stop asking; what was not read is dropped, an error of it too."""
        try:
            if self._first:
                self._first.cancel()
                await asyncio.gather(self._first, return_exceptions=True)
        finally:
            self._first = None
            await self._stream.aclose()

    async def _next(self) -> Delta:
        if self.first_ms is not None:
            return await anext(self._stream)
        self.since = time.monotonic()
        delta = await anext(self._stream)
        self.first_ms = (time.monotonic() - self.since) * 1000
        return delta
