"""The first step: authentic bytes become durable rows before anyone is told that they arrived. Parses nothing.

What can be handled at once is claimed by the same statement and handed to the lanes of this process; the rest waits in
the database for the next look of anybody's.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from uuid import UUID

from app.failpoints import reach
from app.services.lanes import LaneRunner
from app.store import StatementPool, inbox
from app.telemetry import UPDATES
from bots.base import Accept, RawUpdate


class Intake:
    """Stores updates once."""

    def __init__(self, pool: StatementPool, secret: bytes, lanes: LaneRunner) -> None:
        """Take the database, the key of the dedupe digests, and the lanes of this process."""
        self._pool = pool
        self._secret = secret
        self._lanes = lanes

    def door(self, bot_id: UUID, channel: str) -> Accept:
        """Return the function through which one bot's channel hands over its updates."""

        async def accept(updates: Sequence[RawUpdate]) -> None:
            new = await self.accept(bot_id, updates)
            UPDATES.labels(channel, "new").inc(new)
            UPDATES.labels(channel, "repeat").inc(len(updates) - new)

        return accept

    async def accept(self, bot_id: UUID, updates: Sequence[RawUpdate]) -> int:
        """Store a batch, each update by itself; return how many were new.

        Raises:
            StoreUnavailableError: not all of it was stored; the platform shall send it again.
        """
        new = 0
        for update in updates:
            new += (await self.accept_one(bot_id, update)).new
        # What was taken up asks the database for its first words; the answer here is written meanwhile.
        await asyncio.sleep(0)
        return new

    async def accept_one(self, bot_id: UUID, update: RawUpdate) -> inbox.Accepted:
        """Store one update; tell whether it was new, and its row. Raises `StoreUnavailableError`."""
        keys = tuple(self.digest(bot_id, key) for key in update.keys)
        return await self._accept(bot_id, inbox.Stored(keys, update.lane, update.body))

    async def _accept(self, bot_id: UUID, update: inbox.Stored) -> inbox.Accepted:
        with self._lanes.seat() as kept:
            accepted = await inbox.accept(self._pool, bot_id, update, self._lanes.owner if kept else None)
            reach("intake:stored")
            if accepted.claimed:
                self._lanes.take(accepted.claimed)
        if accepted.new and not accepted.claimed:
            self._lanes.stored(inbox.lane_of(bot_id, update.lane))
        return accepted

    def digest(self, bot_id: UUID, key: str) -> bytes:
        """Return the keyed digest under which a platform identifier is remembered for ever."""
        return hmac.new(self._secret, f"{bot_id}:{key}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
