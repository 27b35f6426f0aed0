"""From rows to wake-ups: tells the broker which jobs are due, and gives back the jobs whose worker died.

    jobs row (committed) ─► relay ─► broker: id ─► worker ─► claims the row

The broker may be away, emptied or slow at any time: then jobs wait in their rows and nothing is lost (I11). Any number
of relays may run. Knows the broker only as a function that sends an id.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

from app.errors import StoreUnavailableError
from app.store import Store, jobs
from app.telemetry import Log

TICK_S = 1.0
AWAY_S = 5.0
BATCH = 50
KEEP_DAYS = 90
PURGE_EVERY = 3600

Send = Callable[[UUID, str], None]
"""Tells the broker of a job: (id, queue). Blocks; raises `BrokerAwayError`."""

_log = Log(__name__)


class BrokerAwayError(Exception):
    """The broker did not take the message; it is sent again later."""


class Relay:
    """A background task of the gateway. `run()` until cancelled."""

    def __init__(self, store: Store, send: Send) -> None:
        self._store = store
        self._send = send
        self._ticks = 0
        self.broker_away = False

    async def run(self) -> None:
        """Relay for ever; a database that is away is waited for."""
        while True:
            try:
                await self.tick()
            except StoreUnavailableError as error:
                _log.failure("relay:store:away", error)
            await asyncio.sleep(AWAY_S if self.broker_away else TICK_S)

    async def tick(self) -> int:
        """Do one round; return how many wake-ups the broker took."""
        async with self._store.begin() as tx:
            for job_id in await jobs.sweep(tx):
                _log.warning("job:worker:died", job=job_id)
            due = await jobs.to_wake(tx, BATCH)
        self._ticks += 1
        if self._ticks % PURGE_EVERY == 0:
            async with self._store.begin() as tx:
                await jobs.purge(tx, KEEP_DAYS)
        return await self._wake(due) if due else 0

    async def _wake(self, due: list[tuple[UUID, str]]) -> int:
        try:
            await asyncio.to_thread(self._send_all, due)
        except BrokerAwayError:
            if not self.broker_away:
                _log.warning("relay:broker:away", waiting=len(due))
            self.broker_away = True
            async with self._store.begin() as tx:
                await jobs.not_woken(tx, [job_id for job_id, _ in due])
            return 0
        if self.broker_away:
            _log.info("relay:broker:back")
        self.broker_away = False
        return len(due)

    def _send_all(self, due: list[tuple[UUID, str]]) -> None:
        for job_id, queue in due:
            self._send(job_id, queue)
