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
from app.store import Door, inbox
from bots.base import Accept, RawUpdate


class Intake:
    """Stores updates once. `woken` is set when some were left to the lanes' next look, so that it comes at once."""

    def __init__(self, door: Door, secret: bytes, woken: asyncio.Event) -> None:
        """Take the database, the key of the dedupe digests, and the event that wakes the lanes."""
        self._door = door
        self._secret = secret
        self._woken = woken
        self._lanes: LaneRunner | None = None

    def hand_to(self, lanes: LaneRunner) -> None:
        """Let these lanes have what they have seats for as soon as it is stored."""
        self._lanes = lanes

    def door(self, bot_id: UUID) -> Accept:
        """Return the function through which one bot's channel hands over its updates."""

        async def accept(updates: Sequence[RawUpdate]) -> None:
            await self.accept(bot_id, updates)

        return accept

    async def accept(self, bot_id: UUID, updates: Sequence[RawUpdate]) -> int:
        """Store a batch; return how many were new.

        Raises:
            StoreUnavailableError: not all of it was stored; the platform shall send it again.
        """
        rows = [inbox.Stored(tuple(self.digest(bot_id, key) for key in u.keys), u.lane, u.body) for u in updates]
        if self._lanes is None:
            accepted = await inbox.accept(self._door, bot_id, rows)
            reach("intake:stored")
        else:
            with self._lanes.expecting(len(rows)) as seats:
                accepted = await inbox.accept(self._door, bot_id, rows, owner=self._lanes.owner, most=seats)
                reach("intake:stored")
                self._lanes.take(accepted.claimed)
        if accepted.new > len(accepted.claimed):
            self._woken.set()
        # What was taken up asks the database for its first words; the answer here is written meanwhile.
        await asyncio.sleep(0)
        return accepted.new

    def digest(self, bot_id: UUID, key: str) -> bytes:
        """Return the keyed digest under which a platform identifier is remembered for ever."""
        return hmac.new(self._secret, f"{bot_id}:{key}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
