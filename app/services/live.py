"""Shows a reply while it is written, by editing its placeholder: best effort, never the truth.

The final text goes through the outbox after `finish`, which waits for an edit that is still on its way, so that no
late edit can overwrite it. A platform that asks to wait ends the live view of this reply.
"""

import asyncio

from app.domain.event import ChatAddress
from app.domain.outgoing import Content
from app.domain.turn import Turn
from app.errors import DeliveryError, DeliveryRetryError, StoreUnavailableError
from app.ports import Channel
from app.services.deliver import Deliverer
from app.services.replies import worded
from app.store import Store, outbox
from app.telemetry import Log

log = Log(__name__)
TYPING_S = 4.5
# What comes within this is shown at once and whole: who reads it could not see that it was being written.
QUIET_S = 0.3
EDIT_TIMEOUT_S = 10.0
PATIENCE_S = 5.0


class Placeholder:
    """What a chat is shown of a reply before there is any: sent once, as its first part, and edited from then on."""

    def __init__(self, store: Store, deliverer: Deliverer, turn: Turn, content: Content) -> None:
        """Take where it is kept, who sends it, the turn, and what it says."""
        self._store = store
        self._deliverer = deliverer
        self._turn = turn
        self._content = content

    async def put(self) -> None:
        """Have it sent, unless the reply is there already."""
        async with self._store.single() as tx:
            put = await outbox.put_placeholder(tx, self._turn.id, self._content)
        if put:
            self._deliverer.wake()

    async def message_id(self) -> str | None:
        """Return its platform id, once it was sent."""
        async with self._store.single() as tx:
            return await outbox.provider_id(tx, self._turn.id)


class LiveView:
    """One reply's live view on one channel."""

    def __init__(self, channel: Channel, chat: ChatAddress, placeholder: Placeholder) -> None:
        """Take the channel, the chat, and what stands in the place of the reply where it takes a while."""
        self._channel = channel
        self._chat = chat
        self._placeholder = placeholder
        self._text = ""
        self._shown = ""
        self._ended = asyncio.Event()
        self._tasks = [asyncio.create_task(self._edits())] if channel.capabilities.live_edit_s else []
        if channel.capabilities.typing:
            self._tasks.append(asyncio.create_task(self._typing()))

    def show(self, text: str) -> None:
        """Note the reply so far."""
        self._text = text

    async def finish(self) -> None:
        """End the view; afterwards no edit is on its way."""
        self._ended.set()
        for task in self._tasks:
            await asyncio.wait([task], timeout=EDIT_TIMEOUT_S)
            task.cancel()

    async def _edits(self) -> None:
        try:
            await self._edit_on()
        except StoreUnavailableError:
            log.warning("live:edits:store_away")

    async def _edit_on(self) -> None:
        pause = self._channel.capabilities.live_edit_s or 1.0
        limit = self._channel.capabilities.max_units
        if await self._wait(QUIET_S):
            return
        await self._placeholder.put()
        while not await self._wait(pause):
            text = self._text[: limit // 2]
            if text.strip() in {"", self._shown}:
                continue
            message_id = await self._placeholder.message_id()
            if message_id is None:
                continue
            try:
                await self._channel.edit(self._chat, message_id, Content(f"{worded(self._channel, text)} …"))
            except DeliveryRetryError as wait:
                if wait.retry_after_s > PATIENCE_S:
                    return
                continue
            except DeliveryError:
                return
            self._shown = text.strip()

    async def _typing(self) -> None:
        # Where a reply is not shown as it is written, this is all that tells of it.
        if self._channel.capabilities.live_edit_s and await self._wait(QUIET_S):
            return
        await self._channel.typing(self._chat)
        while not await self._wait(TYPING_S):
            await self._channel.typing(self._chat)

    async def _wait(self, seconds: float) -> bool:
        """Return whether the view ended within `seconds`."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True
