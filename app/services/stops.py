"""Who asks that a reply stops while it is written: at this gateway at once, at another one within a second or so.

One look at the database serves all replies that are being written here.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from app.errors import StoreUnavailableError
from app.store import Store, turns
from app.telemetry import Log

log = Log(__name__)
LOOK_S = 1.0


class Stops:
    """The replies that are being written here. One instance per gateway."""

    def __init__(self, store: Store) -> None:
        """Take the store in which other gateways leave their wish."""
        self._store = store
        self._writing: dict[UUID, asyncio.Event] = {}

    @contextmanager
    def of(self, turn_id: UUID) -> Iterator[asyncio.Event]:
        """Yield the event that is set when somebody asks to stop the reply of this turn."""
        stop = self._writing[turn_id] = asyncio.Event()
        try:
            yield stop
        finally:
            if self._writing.get(turn_id) is stop:  # a second try may have taken the place
                del self._writing[turn_id]

    def ask(self, turn_id: UUID) -> None:
        """Stop the reply of this turn, if it is written here."""
        if turn_id in self._writing:
            self._writing[turn_id].set()

    async def run(self) -> None:
        """Look for wishes that came in elsewhere, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except StoreUnavailableError:
                log.warning("turn:stop:store_away")
            except Exception as error:  # noqa: BLE001 - the last resort of this loop: without it no reply can be stopped
                log.failure("turn:stop:unwatched", error)

    async def _look(self) -> None:
        if not self._writing:
            return
        async with self._store.single() as tx:
            asked = await turns.stop_requested(tx, self._writing.keys())
        for turn_id in asked:
            self.ask(turn_id)
