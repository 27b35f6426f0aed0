"""A store that carries its first statement out and never hears so: the connection breaks before the answer is there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.errors import StoreUnavailableError
from app.store import Store, Tx


class DeafStore(Store):
    """Hears nothing of the first statement that stands alone."""

    _heard = False

    @asynccontextmanager
    async def single(self) -> AsyncIterator[Tx]:
        async with super().single() as tx:
            yield tx
        if not self._heard:
            self._heard = True
            raise StoreUnavailableError
