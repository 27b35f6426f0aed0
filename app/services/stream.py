"""What is being written right now, passed inside this process to whoever shows it live (web page, live edits).

Nothing here is the truth: a subscriber that misses an item finds the same in the database.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

QUEUE_ITEMS = 256


@dataclass(frozen=True, slots=True)
class Item:
    """Something new in a chat: `text` is the reply of `turn_id` so far; without a turn, a stored message changed."""

    turn_id: UUID | None = None
    text: str = ""


class Streams:
    """Subscribers per chat. A slow one loses its oldest items, never the writer's time."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[UUID, set[asyncio.Queue[Item]]] = defaultdict(set)

    def publish(self, chat_id: UUID, item: Item) -> None:
        """Hand `item` to everyone who watches `chat_id`."""
        for queue in self._subscribers.get(chat_id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(item)

    @asynccontextmanager
    async def subscribe(self, chat_id: UUID) -> AsyncIterator[asyncio.Queue[Item]]:
        """Yield a queue of what happens in `chat_id` from now on."""
        queue: asyncio.Queue[Item] = asyncio.Queue(QUEUE_ITEMS)
        self._subscribers[chat_id].add(queue)
        try:
            yield queue
        finally:
            self._subscribers[chat_id].discard(queue)
            if not self._subscribers[chat_id]:
                del self._subscribers[chat_id]
