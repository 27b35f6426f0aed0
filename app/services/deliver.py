"""The last step: what a message should show reaches the platform, in the order of its chat, each part once.

due ──claim──► sending ──► sent            the platform has this version
                  │ asked to wait          due again after that time; only this chat waits
                  │ answer lost, new part  sent once more: the one case in which a copy is possible
                  │ answer lost, edit      edited again, which is harmless
                  │ chat moved             the chat gets its new id, and the part goes there at once
                  │ person gone            the chat is closed, nothing more is sent
                  └ refused                failed, with the reason
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from app.errors import (
    ChatMovedError,
    DeliveryError,
    DeliveryRetryError,
    DeliveryUncertainError,
    RecipientGoneError,
    StoreUnavailableError,
)
from app.failpoints import reach
from app.ports import Channel
from app.store import Store, outbox, people
from app.telemetry import Log

log = Log(__name__)
IDLE_S = 0.5
STORE_AWAY_S = 2.0
MAX_ATTEMPTS = 8
MAX_BACKOFF_S = 300.0


class Deliverer:
    """Sends due parts until it is stopped."""

    def __init__(
        self, store: Store, channels: Mapping[UUID, Channel], owner: str, due: asyncio.Event, concurrency: int = 32
    ) -> None:
        """Take the channels by bot, the owner's name for leases, and the event that tells of new parts."""
        self._store = store
        self._channels = channels
        self._owner = owner
        self._due = due
        self._slots = concurrency
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Work until `stop`."""
        while not self._stopping.is_set():
            self._due.clear()
            if not await self._claim():
                try:
                    await asyncio.wait_for(self._due.wait(), IDLE_S)
                except TimeoutError:
                    continue

    async def stop(self, grace_s: float = 10.0) -> None:
        """Claim nothing more; wait for what is on its way."""
        self._stopping.set()
        self._due.set()
        if self._running:
            await asyncio.wait(self._running, timeout=grace_s)

    async def _claim(self) -> bool:
        free = self._slots - len(self._running)
        if free <= 0:
            return False
        try:
            async with self._store.begin() as tx:
                rows = await outbox.claim(tx, self._owner, free)
        except StoreUnavailableError:
            log.warning("outbox:claim:store_away")
            await asyncio.sleep(STORE_AWAY_S)
            return False
        for row in rows:
            task = asyncio.create_task(self._deliver(row))
            self._running.add(task)
            task.add_done_callback(self._ended)
        return bool(rows)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._due.set()

    async def _deliver(self, row: outbox.Due) -> None:
        try:
            await self._send(row)
        except StoreUnavailableError:
            # The lease runs out; a part that was sent without a receipt is the documented second copy.
            log.warning("outbox:receipt:store_away", outbox=row.id)
        except Exception as error:  # noqa: BLE001 - the last resort of this loop: one part never stops the others
            log.failure("outbox:part:failed", error, outbox=row.id)
            await self._later(row, type(error).__name__, _backoff(row.attempts))

    async def _send(self, row: outbox.Due) -> None:
        channel = self._channels.get(row.bot_id)
        if channel is None:
            await self._fail(row, "this gateway has no channel for the bot")
            return
        try:
            message_id = await self._hand_over(channel, row)
            reach("deliver:sent")
        except DeliveryRetryError as wait:
            await self._later(row, "asked_to_wait", wait.retry_after_s)
        except DeliveryUncertainError:
            await self._later(row, "answer_lost", _backoff(row.attempts))
        except RecipientGoneError:
            async with self._store.begin() as tx:
                await outbox.withdraw(tx, row.chat_id)
                await people.set_chat_status(tx, row.chat_id, "gone")
            log.info("chat:recipient:gone", chat=row.chat_id)
        except DeliveryError as error:
            await self._fail(row, type(error).__name__)
        else:
            async with self._store.begin() as tx:
                await outbox.sent(tx, row, self._owner, message_id)

    async def _hand_over(self, channel: Channel, row: outbox.Due) -> str:
        try:
            return await self._show(channel, row)
        except ChatMovedError as moved:
            async with self._store.begin() as tx:
                await people.move_chat(tx, row.bot_id, row.address.external_id, moved.new_chat_id)
            log.info("chat:id:moved", chat=row.chat_id)
            # Ids of messages stay behind: what was shown under the old id cannot be edited, only sent again.
            return await channel.send(replace(row.address, external_id=moved.new_chat_id), row.content)

    async def _show(self, channel: Channel, row: outbox.Due) -> str:
        if row.provider_message_id is None:
            return await channel.send(row.address, row.content)
        await channel.edit(row.address, row.provider_message_id, row.content)
        return row.provider_message_id

    async def _later(self, row: outbox.Due, why: str, delay_s: float) -> None:
        # A platform that says how long to wait is obeyed for as long as it says so; other failures end some day.
        if row.attempts >= MAX_ATTEMPTS and why != "asked_to_wait":
            await self._fail(row, why)
            return
        async with self._store.begin() as tx:
            await outbox.retry(tx, row, self._owner, delay_s, why)

    async def _fail(self, row: outbox.Due, why: str) -> None:
        log.warning("outbox:part:given_up", outbox=row.id, why=why)
        async with self._store.begin() as tx:
            await outbox.fail(tx, row, self._owner, why)


def _backoff(attempts: int) -> float:
    return min(float(2**attempts), MAX_BACKOFF_S)
