"""A gateway that polls the Bot API server, for generated tests: they run beside its loop and hand over what they do."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from bots.telegram import pace
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.chats import Chat
from tests.support.road import Road, road

T = TypeVar("T")
PATIENCE_S = 30
_OPEN = (
    "select (select count(*) from inbox where state in ('stored', 'claimed'))"
    " + (select count(*) from outbox where state in ('due', 'sending')) as n"
)


@dataclass
class World:
    """One gateway for all examples, with the servers around it. Rules run beside its loop and hand over what they do."""

    loop: asyncio.AbstractEventLoop
    server: TelegramServer
    model: ModelServer
    database_url: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    gateway: Road | None = None

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(doing, self.loop).result(PATIENCE_S * 2)

    def do(self, act: Callable[[], T]) -> T:
        """Do something in the loop that waits for nothing."""

        async def doing() -> T:
            return act()

        return self.run(doing())

    async def start(self) -> None:
        """Start the gateway."""
        made = road(
            self.database_url,
            self.model.url,
            telegram_bot_token=self.server.token,
            telegram_base_url=self.server.base_url,
            quota_replies_per_minute=0,
        )
        self.gateway = await self.stack.enter_async_context(made)

    async def stop(self) -> None:
        """Stop it in order, as an update of the program does."""
        await self.stack.aclose()
        self.gateway = None

    async def settle(self) -> None:
        """Wait until everything that was said is handled and everything that follows is shown."""
        assert self.gateway
        async with asyncio.timeout(PATIENCE_S):
            while self.server.world.queue.pending or (await self.gateway.rows(_OPEN))[0]["n"]:
                await asyncio.sleep(0.01)

    async def until_generating(self, chat: Chat) -> None:
        """Wait until a reply is being written in a chat."""
        assert self.gateway
        query = (
            "select 1 from turns t join chats c on c.id = t.chat_id where t.state = 'generating' and c.external_id = :c"
        )
        async with asyncio.timeout(PATIENCE_S):
            while not await self.gateway.rows(query, c=str(chat.chat_id)):
                await asyncio.sleep(0.01)


@contextmanager
def without_pace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Telegram's pace is another test's."""
    with monkeypatch.context() as patched:
        patched.setattr(pace, "PRIVATE_GAP_S", 0.0)
        patched.setattr(pace, "GROUP_GAP_S", 0.0)
        patched.setattr(pace, "ALL_PER_S", 10_000)
        yield
