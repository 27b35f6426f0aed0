"""The first step: authentic bytes become durable rows before anyone is told that they arrived. Parses nothing."""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from uuid import UUID

from app.failpoints import reach
from app.store import Store, inbox
from bots.base import Accept, RawUpdate


class Intake:
    """Stores updates once. `woken` is set after each batch, so that lanes need not wait for their next look."""

    def __init__(self, store: Store, secret: bytes, woken: asyncio.Event) -> None:
        """Take the store, the key of the dedupe digests, and the event that wakes the lanes."""
        self._store = store
        self._secret = secret
        self._woken = woken

    def door(self, bot_id: UUID) -> Accept:
        """Return the function through which one bot's channel hands over its updates."""

        async def accept(updates: Sequence[RawUpdate]) -> None:
            await self.accept(bot_id, updates)

        return accept

    async def accept(self, bot_id: UUID, updates: Sequence[RawUpdate]) -> int:
        """Store a batch in one transaction; return how many were new.

        Raises:
            StoreUnavailableError: nothing was stored; the platform shall send again.
        """
        rows = [inbox.Stored(tuple(self.digest(bot_id, key) for key in u.keys), u.lane, u.body) for u in updates]
        async with self._store.single() if len(rows) == 1 else self._store.begin() as tx:
            stored = await inbox.accept(tx, bot_id, rows)
        reach("intake:stored")
        self._woken.set()
        return stored

    def digest(self, bot_id: UUID, key: str) -> bytes:
        """Return the keyed digest under which a platform identifier is remembered for ever."""
        return hmac.new(self._secret, f"{bot_id}:{key}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
