"""`python -m app.bench.bare ptb|ptb-many|aiohttp SINK TOKEN`: echo bots without anything, to measure a gateway against.

ptb: python-telegram-bot as its documents show a webhook of one's own: the update is queued, acknowledged, and echoed by a
handler; one after the other, as is its default and keeps the order of every chat. ptb-many: the same, as many at once as
there are, in whatever order. aiohttp: the update is acknowledged and echoed by one request. None stores, remembers or asks
a model. Prints its address, then serves until it is stopped.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import uvloop
from aiohttp import web
from telegram import Update
from telegram.ext import Application, ApplicationBuilder, ContextTypes, MessageHandler, filters

from app.embedded.parts import LOOPBACK

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]
AT_ONCE = {"ptb": 1, "ptb-many": 256}


@asynccontextmanager
async def with_ptb(sink: str, token: str, at_once: int) -> AsyncIterator[Handle]:
    """An application of python-telegram-bot; yields what takes its updates."""

    async def echo(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        if update.message:
            await update.message.reply_text(f"You said: {update.message.text}")

    application: Application = (  # type: ignore[type-arg]  # six parameters that nobody here reads
        ApplicationBuilder().token(token).base_url(f"{sink}/bot").updater(None).concurrent_updates(at_once).build()
    )
    application.add_handler(MessageHandler(filters.TEXT, echo))

    async def take(request: web.Request) -> web.StreamResponse:
        await application.update_queue.put(Update.de_json(await request.json(), application.bot))
        return web.Response()

    async with application:
        await application.start()
        yield take
        await application.stop()


@asynccontextmanager
async def with_aiohttp(sink: str, token: str) -> AsyncIterator[Handle]:
    """One client session; yields what takes updates."""
    echoing: set[asyncio.Task[None]] = set()
    async with aiohttp.ClientSession() as http:

        async def echo(message: dict[str, object]) -> None:
            chat = message["chat"]
            form = {"chat_id": str(chat["id"] if isinstance(chat, dict) else 0), "text": f"You said: {message['text']}"}
            async with http.post(f"{sink}/bot{token}/sendMessage", data=form) as answer:
                await answer.read()

        async def take(request: web.Request) -> web.StreamResponse:
            task = asyncio.create_task(echo((await request.json())["message"]))
            echoing.add(task)
            task.add_done_callback(echoing.discard)
            return web.Response()

        yield take
        await asyncio.gather(*echoing)


async def _serve(kind: str, sink: str, token: str) -> None:
    opened = with_ptb(sink, token, AT_ONCE[kind]) if kind in AT_ONCE else with_aiohttp(sink, token)
    async with opened as take:
        app = web.Application()
        app.router.add_post("/webhooks/telegram", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, LOOPBACK, 0).start()
        print(json.dumps({"url": f"http://{LOOPBACK}:{runner.addresses[0][1]}"}), flush=True)
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await stopped.wait()
        await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(_serve(*sys.argv[1:]))
