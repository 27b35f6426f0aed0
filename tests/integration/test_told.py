"""An open page hears of everything it shows that changes, whoever changed it: the person's panel as well as the messages."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import aiohttp
import pytest
from sqlalchemy import text

from app.services import release
from app.store.tables import learning
from bots.web import live
from tests.support.panel_world import add
from tests.support.releases import live_release
from tests.support.road import Road, Visitor

QUIET_S = 1.0


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "POLL_S", 0.2)


@asynccontextmanager
async def open_page(visitor: Visitor) -> AsyncIterator[asyncio.Queue[str]]:
    """Yield the names of the events of an open page."""
    events: asyncio.Queue[str] = asyncio.Queue()

    async def read(stream: aiohttp.ClientResponse) -> None:
        async for line in stream.content:
            if line.startswith(b"event: "):
                events.put_nowait(line[7:].decode().strip())

    async with visitor.session.get(f"{visitor.base}/chat/api/stream") as stream:
        reading = asyncio.create_task(read(stream))
        try:
            yield events
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def until_quiet(events: asyncio.Queue[str]) -> None:
    """Wait until nothing more is told."""
    while True:
        try:
            await asyncio.wait_for(events.get(), QUIET_S)
        except TimeoutError:
            return


async def told(events: asyncio.Queue[str], act: Callable[[], Awaitable[object]]) -> None:
    """Do something of which the page must hear, once all that came before is told."""
    await until_quiet(events)
    await act()
    assert await asyncio.wait_for(events.get(), 10) == "changed"


async def test_of_a_switch_on_its_own_panel(running: Road) -> None:
    async with running.visitor() as visitor, open_page(visitor) as here, open_page(visitor) as elsewhere:
        for state in ("1", "0"):
            await until_quiet(elsewhere)
            await told(here, lambda now=state: visitor.press(f"s:memory:{now}"))  # type: ignore[misc]
            assert await asyncio.wait_for(elsewhere.get(), 10) == "changed"
            await until_quiet(elsewhere)


async def test_of_a_rollback_by_an_admin(running: Road) -> None:
    async with running.visitor() as visitor:
        await visitor.ask("hello")
        person = await person_of(running)
        async with running.store.begin() as tx:
            live_id = await live_release(tx, person)
        assert (await visitor.about_me())["release"]
        async with open_page(visitor) as events:
            await told(events, lambda: release.roll_back(running.store, live_id, "a test", "admin"))
        assert not (await visitor.about_me())["release"]


async def test_of_the_progress_of_a_training(running: Road) -> None:
    async with running.visitor() as visitor:
        await visitor.ask("hello")
        person = await person_of(running)

        async def begin() -> None:
            async with running.store.begin() as tx:
                await add(tx, learning.jobs, kind="train", queue="train", key="train:1", person_id=person)

        async def step() -> None:
            async with running.store.begin() as tx:
                await tx.execute(text("""update jobs set progress = '{"step": 1}' where key = 'train:1'"""))

        async with open_page(visitor) as events:
            await told(events, begin)
            await told(events, step)
        assert (await visitor.about_me())["training"]["progress"] == {"step": 1}


async def test_the_switches_of_a_message_follow_those_of_the_panel(running: Road) -> None:
    async with running.visitor() as visitor:
        await visitor.command("privacy")
        await visitor.offered("Your choices now", "Memory")
        await visitor.press("s:memory:1")
        message = await visitor.offered("Your choices now", "✅ Memory")
        assert [b["data"] for row in message["buttons"] for b in row if "Memory" in b["label"]] == ["s:memory:0"]


async def person_of(running: Road) -> UUID:
    (row,) = await running.rows("select person_id from chats where person_id is not null")
    return UUID(str(row["person_id"]))
