"""`GET /chat/api/stream`: what happens in the visitor's chat, as server-sent events.

    live    {"turn", "text"}   a reply so far (whole, not a piece: a lost event costs nothing)
    changed {}                 something stored changed: read the messages again
    note    {"text"}           the short answer to a press
    gone    {"text"}           the cookie is worthless: start again; with the last words to somebody who is forgotten
    : keep-alive comment every 15 s

Live text comes from this process. What is stored is told by looking at the database: soon after something happened here,
and every 2 s, because another gateway may have the turn; less often while a reply flows, whose end is told anyway.
"""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from app.domain.press import short_id
from app.errors import StoreUnavailableError
from app.services.stream import Item
from app.store import webchat, webchat_read
from app.store.webchat import Visitor
from bots.web.context import CONTEXT, Context
from bots.web.guard import TooManyRequestsError

POLL_S = 2.0
# After something happened in this process its rows follow at once: look soon, then less and less often.
SOON_S = 0.1
# While text comes, what else may have changed elsewhere can wait a little: looking costs the reply its pace.
FLOWING_POLL_S = 5.0
FLOWING_S = 1.0
SLOWER = 2.0
HEARTBEAT_S = 15.0
# Faster than this nobody reads; between two events newer texts of the same turn replace older ones.
PACE_S = 0.05
MAX_STREAMS = 20
OPEN_STREAMS = web.AppKey("open_streams", set[asyncio.Task[object]])


async def stream(request: web.Request) -> web.StreamResponse:
    """Answer the event stream until the page closes it, the person leaves, or the gateway stops."""
    context = request.app[CONTEXT]
    visitor = await context.visitor(request)
    task = asyncio.current_task()
    with _counted(context, visitor):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        await response.prepare(request)
        open_streams = request.app[OPEN_STREAMS]
        open_streams.add(task) if task else None
        try:
            await Feed(context, visitor, request, response).run()
        except ConnectionError:
            return response  # the page was closed: the usual end
        finally:
            open_streams.discard(task) if task else None
    return response


@contextmanager
def _counted(context: Context, visitor: Visitor) -> Iterator[None]:
    account = visitor.account_id
    if context.live.get(account, 0) >= MAX_STREAMS:
        raise TooManyRequestsError
    context.live[account] = context.live.get(account, 0) + 1
    try:
        yield
    finally:
        context.live[account] -= 1
        if not context.live[account]:
            del context.live[account]
            context.seen.pop(visitor.account_external_id, None)


async def close_streams(app: web.Application) -> None:
    """End every open stream, so that the gateway can stop; pages reconnect by themselves."""
    for task in app[OPEN_STREAMS]:
        task.cancel()


class Feed:
    """One open stream."""

    def __init__(self, context: Context, visitor: Visitor, request: web.Request, response: web.StreamResponse) -> None:
        self._context = context
        self._visitor = visitor
        self._request = request
        self._response = response
        self._seen = ""
        self._written_at = time.monotonic()
        self._text_at = -math.inf
        self._happened = asyncio.Event()

    async def run(self) -> None:
        """Write events until the page is gone or the cookie is worthless."""
        async with self._context.streams.subscribe(self._visitor.chat_id) as queue:
            await self._write("retry: 1000\n\n")
            # Side by side: a word that is just being written does not wait for the database.
            both = [asyncio.create_task(self._watch()), asyncio.create_task(self._relay(queue))]
            try:
                done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)

    @property
    def _connected(self) -> bool:
        # A closed page shows at the next write only, and between two changes nothing is written for long.
        transport = self._request.transport
        return transport is not None and not transport.is_closing()

    async def _watch(self) -> None:
        """Look at the database, soon after something happened and then less and less often, until the visitor is gone."""
        pause = POLL_S
        while self._connected and await self._poll():
            if await self._happens_within(pause):
                pause = SOON_S
                await asyncio.sleep(pause)
                self._happened.clear()
            else:
                pause = min(pause * SLOWER, POLL_S)

    async def _happens_within(self, pause: float) -> bool:
        """Return whether something happens here before the next look is due; that is later while a reply flows."""
        began = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(pause):
                    await self._happened.wait()
            except TimeoutError:
                now = time.monotonic()
                if now - self._text_at > FLOWING_S or now - began >= FLOWING_POLL_S:
                    return False
                # Nothing is asked meanwhile; waking ten times a second for each page would cost the reply its pace.
                pause = FLOWING_S
            else:
                return True

    async def _relay(self, queue: asyncio.Queue[Item]) -> None:
        """Write what comes, older texts of a turn left out."""
        while self._connected:
            items = [await queue.get()]
            while not queue.empty():
                items.append(queue.get_nowait())
            for item in _newest(items):
                await self._write_item(item)
            if any(item.turn_id is None for item in items):
                # What it changed is told by the look at the database: once, when all of it is there.
                self._happened.set()
            if any(item.text for item in items):
                self._text_at = time.monotonic()
                await asyncio.sleep(PACE_S)

    async def _write_item(self, item: Item) -> None:
        if item.turn_id:
            await self._event("live", turn=short_id(item.turn_id), text=item.text)
        elif item.text:
            await self._event("note", text=item.text)

    async def _poll(self) -> bool:
        """Look at the database; False when the visitor's cookie is worthless."""
        visitor = self._visitor
        try:
            known = await webchat.find(self._context.pool, visitor.bot_id, visitor.account_external_id)
            async with self._context.store.single() as tx:
                seen = await webchat_read.fingerprint(tx, visitor)
                words = "" if known else await webchat_read.last_words(tx, visitor)
        except StoreUnavailableError:
            return True  # the next poll tells
        if known is None:
            self._context.seen.pop(visitor.account_external_id, None)
            await self._event("gone", text=words)
            return False
        self._context.seen[visitor.account_external_id] = known, asyncio.get_running_loop().time()
        if seen != self._seen:
            self._seen = seen
            await self._event("changed")
        elif time.monotonic() - self._written_at > HEARTBEAT_S:
            await self._write(": here\n\n")
        return True

    async def _event(self, name: str, **fields: str) -> None:
        await self._write(f"event: {name}\ndata: {json.dumps(fields)}\n\n")

    async def _write(self, text: str) -> None:
        await self._response.write(text.encode())
        self._written_at = time.monotonic()


def _newest(items: list[Item]) -> list[Item]:
    """Return the items with only the newest text of each turn, and one of all that say that something happened."""
    last = {(item.turn_id, item.text if item.turn_id is None else ""): item for item in items}
    return list(last.values())
