"""The bot's queue of updates: what is kept, who may fetch it, what a webhook gets.

Owns update ids, `allowed_updates`, offsets and the conflict between two pollers. Delivery to a webhook is in `webhook`.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.fakes.telegram.errors import JSON, conflict

NOT_BY_DEFAULT: Final = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
FIRST_ID: Final = 731_000_001
_OTHER_POLLER: Final = "terminated by other getUpdates request; make sure that only one bot instance is running"


@dataclass(slots=True)
class Update:
    """One update; `queue` names the order it belongs to, `again` that it is delivered although confirmed."""

    body: JSON
    queue: str
    again: bool = False
    times_sent: int = 0

    @property
    def update_id(self) -> int:
        """Its number; a raw update may have been given none."""
        return int(self.body.get("update_id", 0))


@dataclass(slots=True)
class UpdateQueue:
    """Updates that the bot has not confirmed yet."""

    pending: list[Update] = field(default_factory=list)
    sent: list[Update] = field(default_factory=list)
    allowed: frozenset[str] | None = None
    on_put: list[Callable[[], None]] = field(default_factory=list)
    next_id: int = FIRST_ID
    _waiter: "asyncio.Future[None] | None" = None

    def allows(self, kind: str) -> bool:
        """Whether updates of this kind are kept for the bot."""
        return kind not in NOT_BY_DEFAULT if self.allowed is None else kind in self.allowed

    def allow(self, kinds: object) -> None:
        """Remember `allowed_updates`: None leaves it, an empty list means the default."""
        if isinstance(kinds, list):
            self.allowed = frozenset(map(str, kinds)) if kinds else None

    def put(self, kind: str, payload: object, queue: str) -> Update | None:
        """Number and keep an update; None where the bot does not want its kind."""
        if not self.allows(kind):
            return None
        update = Update({"update_id": self.next_id, kind: payload}, queue)
        self.next_id += 1
        self.add(update)
        return update

    def add(self, update: Update) -> None:
        """Keep an update as it is and wake whoever waits."""
        self.pending.append(update)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        for notify in self.on_put:
            notify()

    def confirm(self, offset: int) -> None:
        """Forget what is older than `offset`; a negative one keeps only the last -offset updates."""
        if offset < 0:
            offset = min((item.update_id for item in self.pending[offset:]), default=0)
        self.pending = [item for item in self.pending if item.again or item.update_id >= offset]

    async def poll(self, offset: int, limit: int, timeout_s: float) -> list[JSON]:
        """Wait up to `timeout_s` for updates; a second poller throws the first one out with 409."""
        self.release()
        self.confirm(offset)
        if not self.pending and timeout_s > 0:
            await self._wait(timeout_s)
        batch = self.pending[:limit]
        for update in batch:
            update.again = False
            self._remember(update)
        return [update.body for update in batch]

    def release(self) -> None:
        """End the waiting of another poller with 409."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(conflict(_OTHER_POLLER))

    async def _wait(self, timeout_s: float) -> None:
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter, timeout_s)
        finally:
            if self._waiter is waiter:
                self._waiter = None

    def head(self, queue: str) -> Update | None:
        """The oldest update of one order."""
        return next((item for item in self.pending if item.queue == queue), None)

    def queues(self) -> set[str]:
        """Orders in which something waits."""
        return {item.queue for item in self.pending}

    def done(self, update: Update) -> None:
        """A webhook took it."""
        self.pending = [item for item in self.pending if item is not update]
        self._remember(update)

    def _remember(self, update: Update) -> None:
        update.times_sent += 1
        if update.times_sent == 1:
            self.sent.append(update)
