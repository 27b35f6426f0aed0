"""The last step: what a message should show reaches the platform, in the order of its chat, each part once.

due ──claim──► sending ──► sent            the platform has this version
                  │ asked to wait          due again after that time, as often as it takes; only this chat waits
                  │ answer lost, new part  sent again: the one case in which a copy is possible
                  │ answer lost, edit      edited again, which is harmless
                  │ chat moved             the chat gets its new id, and the part goes there at once
                  │ window closed          held, with all behind it, until the person writes again (app/store/holding.py)
                  │ person gone            the chat is closed, nothing more is sent
                  └ refused                failed, with the reason

A part is claimed only where its bot has a channel; elsewhere it waits. The first part of a reply comes claimed already where
nothing else is on its way in its chat (`slot`, `take`); the loop looks for everything else.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import UUID

from app.errors import (
    ChatMovedError,
    DeliveryError,
    DeliveryRetryError,
    DeliveryUncertainError,
    MessageGoneError,
    RecipientGoneError,
    StoreUnavailableError,
    WindowClosedError,
)
from app.failpoints import reach
from app.ports import Channel
from app.services.places import Places
from app.store import Store, holding, outbox, people
from app.telemetry import PARTS, Log

log = Log(__name__)
IDLE_S = 0.5
STORE_AWAY_S = 2.0
MAX_ATTEMPTS = 8
MAX_BACKOFF_S = 300.0
HOUR_S = 3600.0
# Shorter than the lease: who is still sending when it ends would be joined by a second sender.
SEND_S = outbox.LEASE_S * 0.75
RECEIPT_AGAIN_S = 0.5


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
        self._running: dict[asyncio.Task[None], outbox.Due] = {}
        self._quiet: set[int] = set()
        self._places = Places()
        self._short = False
        self._settling = False
        self._looking = asyncio.Lock()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Work until `stop`."""
        while not self._stopping.is_set():
            self._due.clear()
            async with self._looking:
                await self._claim()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), IDLE_S)

    async def stop(self, grace_s: float = 10.0) -> None:
        """Claim nothing more; wait for what is on its way."""
        self._stopping.set()
        self._due.set()
        async with self._looking:
            pass  # what was claimed until now is among what runs
        if self._running:
            await asyncio.wait(self._running, timeout=grace_s)

    def wake(self) -> None:
        """Look at once: something is due."""
        self._due.set()

    @contextmanager
    def slot(self, bot_id: UUID) -> Iterator[str | None]:
        """Keep a slot for what a bot says next; yield the name under which to claim it, None where nobody here sends it soon.

        What is claimed is to be taken (`take`) inside the block. Where that ends with an error something may have been claimed
        that nobody was told of: the next look gives it back.
        """
        able = bot_id in self._channels and not self._stopping.is_set() and not self._settling
        kept = able and self._free > 0
        with self._places.keep(int(kept)):
            yield self._owner if kept else None

    def take(self, row: outbox.Due) -> None:
        """Send a part that was claimed under this deliverer's name."""
        task = asyncio.create_task(self._deliver(row))
        self._running[task] = row
        task.add_done_callback(self._ended)

    @property
    def _free(self) -> int:
        return self._slots - len(self._running) - self._places.kept

    async def _claim(self) -> None:
        free = self._free
        self._short = free <= 0
        if self._short or self._stopping.is_set():
            return
        self._settling = self._places.unsettled
        try:
            async with self._store.single() as tx:
                if self._settling:
                    sent_now = [row.id for row in self._running.values()]
                    await outbox.give_back(tx, self._owner, self._channels.keys(), sent_now)
                    self._places.settle()
                rows = await outbox.claim(tx, self._owner, free, self._channels.keys())
        except StoreUnavailableError:
            self._places.doubt()  # only the answer may have been lost
            log.warning("outbox:claim:store_away")
            await asyncio.sleep(STORE_AWAY_S)
            return
        finally:
            self._settling = False
        self._short = len(rows) == free
        for row in rows:
            self.take(row)

    def _ended(self, task: asyncio.Task[None]) -> None:
        row = self._running.pop(task)
        if self._short or row.id not in self._quiet:
            self._due.set()
        self._quiet.discard(row.id)

    async def _deliver(self, row: outbox.Due) -> None:
        try:
            await self._try(row)
        except StoreUnavailableError:
            # The lease runs out; a part that was sent without a receipt is the documented second copy.
            log.warning("outbox:receipt:store_away", outbox=row.id)

    async def _try(self, row: outbox.Due) -> None:
        try:
            await self._send(row)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - the last resort of this loop: one part never stops the others
            log.failure("outbox:part:failed", error, outbox=row.id)
            await self._again(row, type(error).__name__)

    async def _send(self, row: outbox.Due) -> None:
        if row.gone:
            async with self._store.begin() as tx:
                await outbox.withdraw(tx, row.chat_id)
            return
        if self._closed(row):
            await self._hold(row, holding.BY_CLOCK)
            return
        try:
            async with asyncio.timeout(SEND_S):
                message_id = await self._hand_over(self._channels[row.bot_id], row)
            reach("deliver:sent")
        except DeliveryRetryError as wait:
            # A platform that says how long to wait is obeyed for as long as it says so.
            async with self._store.begin() as tx:
                await outbox.put_back(tx, row, wait.retry_after_s, "asked_to_wait")
            self._count(row, "told_to_wait")
        except (DeliveryUncertainError, TimeoutError):
            await self._again(row, "answer_lost")
        except WindowClosedError as error:
            await self._hold(row, error.code or holding.BY_CLOCK)
        except RecipientGoneError:
            async with self._store.begin() as tx:
                await outbox.withdraw(tx, row.chat_id)
                await people.set_chat_status(tx, row.chat_id, "gone")
            self._count(row, "gone")
            log.info("chat:recipient:gone", chat=row.chat_id)
        except DeliveryError as error:
            await self._fail(row, error.code or type(error).__name__)
        else:
            await self._receipt(row, message_id)

    async def _receipt(self, row: outbox.Due, message_id: str) -> None:
        receipt = await self._recorded(row, message_id)
        self._count(row, "sent")
        if not receipt.recorded:
            log.warning("outbox:claim:lost", outbox=row.id)
        if not receipt.followed:
            self._quiet.add(row.id)

    async def _recorded(self, row: outbox.Due, message_id: str) -> outbox.Receipt:
        """Record what the platform has, again where only a connection was lost: as long as the claim surely lasts."""
        until = time.monotonic() + outbox.LEASE_S - SEND_S
        while True:
            try:
                async with self._store.single() as tx:
                    return await outbox.sent(tx, row, message_id)
            except StoreUnavailableError:
                if time.monotonic() >= until:
                    raise
                log.warning("outbox:receipt:again", outbox=row.id)
            await asyncio.sleep(RECEIPT_AGAIN_S)

    def _closed(self, row: outbox.Due) -> bool:
        """Whether nothing freely written is taken in a chat now. Where nobody knows, the platform is asked.

        What changes in a message that is there already is nothing new to it.
        """
        hours = self._channels[row.bot_id].capabilities.window_hours
        if hours is None or row.content.template or row.provider_message_id is not None:
            return False
        return row.behind_held or (row.silent_s is not None and row.silent_s > hours * HOUR_S)

    async def _hold(self, row: outbox.Due, why: str) -> None:
        if row.content.template:
            await self._fail(row, why)  # what was made for a closed window waits for nothing
            return
        async with self._store.begin() as tx:
            held = await holding.hold(tx, row, why)
        if held:
            self._count(row, "held")
            log.info("outbox:part:held", outbox=row.id, why=why)

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
        try:
            await channel.edit(row.address, row.provider_message_id, row.content)
        except MessageGoneError:
            if not await self._unread(row):
                raise
            log.info("outbox:placeholder:gone", outbox=row.id)
            return await channel.send(row.address, row.content)
        return row.provider_message_id

    async def _unread(self, row: outbox.Due) -> bool:
        """Whether nobody has seen a reply yet, but only what stood in its place while it was written."""
        async with self._store.single() as tx:
            return await outbox.is_unread(tx, row)

    def _count(self, row: outbox.Due, result: str) -> None:
        PARTS.labels(self._channels[row.bot_id].name, result).inc()

    async def _again(self, row: outbox.Due, why: str) -> None:
        if row.attempts >= MAX_ATTEMPTS:
            await self._fail(row, why)
            return
        async with self._store.begin() as tx:
            await outbox.retry(tx, row, _backoff(row.attempts), why)

    async def _fail(self, row: outbox.Due, why: str) -> None:
        self._count(row, "failed")
        log.warning("outbox:part:given_up", outbox=row.id, why=why)
        async with self._store.begin() as tx:
            await outbox.fail(tx, row, why)


def _backoff(attempts: int) -> float:
    """Return the seconds until the next try: doubling, a few minutes at most."""
    return min(2.0 ** min(attempts, 10), MAX_BACKOFF_S)
