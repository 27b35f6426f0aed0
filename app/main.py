"""The gateway process: `python -m app.main`. Puts the parts together, runs them, and stops them in order.

    web, telegram, whatsapp ─► intake ─► lanes ─► dialogue ─► converse ─► deliver ─► channels
                                                        └► jobs ─► relay ─► broker

Composition root: imports everything, nobody imports it. Starts without torch.
"""

import asyncio
import gc
import os
import secrets
import signal
import socket
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psutil
import uvloop
from aiohttp import web

from app import config, telemetry
from app.admin.application import create_admin_app
from app.clients.judge import JudgeClient
from app.clients.transcribe import TranscribeClient
from app.clients.vllm import VllmClient
from app.config import Settings
from app.domain.media import Kind
from app.domain.messages import LANGUAGES
from app.domain.messages import text as say
from app.domain.profiles import profile
from app.errors import ConfigError, MenteeError
from app.gateway.base import served_base
from app.gateway.health import GatewayParts
from app.gateway.learning import Acts, learning_of, live_release
from app.gateway.telegram import TelegramPart, telegram_part
from app.ports import Channel
from app.services.converse import Converse
from app.services.deliver import Deliverer
from app.services.housekeeping import keep_house
from app.services.intake import Intake
from app.services.judging import Judge
from app.services.lanes import LaneRunner
from app.services.remember import Rewriter
from app.services.sight import Eyes
from app.services.stops import Stops
from app.services.stream import Streams
from app.store import StatementPool, Store, people
from app.store.owners import release_dead
from app.telemetry import Log
from app.web.export import add_export_route
from app.web.health import Started, add_health_routes
from app.web.metrics import add_metrics_route
from app.web.middleware import install
from app.web.receipt import add_receipt_route
from app.worker import relay
from bots.dialogue import Dialogue, Parts
from bots.web import create_web_chat

if TYPE_CHECKING:
    from app.gateway.whatsapp import WhatsAppPart

log = Log(__name__)
# Few, so that a crowd's messages wait for a turn at the database and not all at once for a turn in this process.
CONNECTIONS = 6
# What arrives is stored and acknowledged beside all that, and beside whoever only opens pages: a platform waits for it.
INTAKE_CONNECTIONS = 4
PAGE_CONNECTIONS = 2
SMALL_MODEL_PARAMETERS = 500_000_000
MAX_BODY = 4 * 1024 * 1024
JUDGE_TIMEOUT_S = 8.0
# A recording of some minutes on a modest machine.
TRANSCRIBE_TIMEOUT_S = 60.0
# Together some 100 MB at most, whatever a crowd sends at once.
MOST_FETCHED: dict[Kind, int] = {"picture": 8, "voice": 4}


@dataclass(slots=True)
class Gateway:
    """A built gateway: its web application, its loops, and what must be closed."""

    app: web.Application
    store: Store
    lanes: LaneRunner
    deliverer: Deliverer
    loops: Sequence[Coroutine[Any, Any, None]]
    telegram: TelegramPart | None
    whatsapp: "WhatsAppPart | None"
    closing: Sequence[Coroutine[Any, Any, None]]
    started: Started
    running: list[asyncio.Task[None]] = field(default_factory=list)
    receiving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Give back what dead processes of this host hold; run the loops."""
        async with self.store.begin() as tx:
            await release_dead(tx, socket.gethostname(), psutil.pid_exists)
        loops = [self.lanes.run(), self.deliverer.run(), *self.loops]
        self.running = [asyncio.create_task(loop) for loop in loops]
        if self.telegram:
            self.receiving = asyncio.create_task(self.telegram.run())
            self.running.append(self.receiving)
        if self.whatsapp:
            self.whatsapp.start()
            self.running.append(asyncio.create_task(self.whatsapp.run()))
        self.started.complete()

    async def until_broken(self, stop: asyncio.Event) -> BaseException | None:
        """Wait until `stop`, or until a loop ends by an error that it should have handled; return that error.

        A gateway without one of its loops looks alive and is not: it ends, and is started again.
        """
        stopping = asyncio.create_task(stop.wait())
        waiting: set[asyncio.Task[Any]] = {stopping, *self.running}
        while not stopping.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                if error := task.exception():
                    log.failure("gateway:loop:broken", error)
                    stopping.cancel()
                    return error
        return None

    async def stop(self) -> None:
        """Stop in the order of the road: nothing more comes in, what runs ends, what is due goes out."""
        if self.receiving:
            self.receiving.cancel()
            await asyncio.wait([self.receiving])
        await self.lanes.stop()
        await self.deliverer.stop()
        if self.telegram:
            await self.telegram.close()
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        if self.whatsapp:
            await self.whatsapp.close()
        for close in self.closing:
            await close


async def build(settings: Settings) -> Gateway:
    """Put a gateway together.

    Raises:
        ConfigError: a setting is missing; the sentence says which.
    """
    store = Store(_database_url(settings), pool_size=CONNECTIONS)
    secret = _secret(settings)
    # The random part keeps apart what containers would call the same: one host name, process 1.
    owner = f"{socket.gethostname()}:{secrets.token_hex(4)}:{os.getpid()}"
    due = asyncio.Event()
    streams = Streams()
    channels: dict[UUID, Channel] = {}

    model = _model(settings)
    judge, transcriber = _judge_client(settings), _transcriber(settings)
    acts = Acts(store, settings)
    stops = Stops(store)
    base = served_base(profile(settings.model), settings.model_dir)
    converse = Converse(store, model, base, streams, stops, settings, learning_of(settings), due)
    dialogue = Dialogue(_dialogue_parts(store, settings, model, judge, transcriber, acts, converse, due), channels)
    lanes = LaneRunner(store, dialogue.handle, owner)
    intake_pool = StatementPool(_database_url(settings), size=INTAKE_CONNECTIONS)
    page_pool = StatementPool(_database_url(settings), size=PAGE_CONNECTIONS)
    intake = Intake(intake_pool, secret, lanes)

    web_bot = await _bot(store, settings, "web", "web", "Mentee")
    chat_app, channels[web_bot] = create_web_chat(store, page_pool, streams, intake.door(web_bot, "web"), settings)
    telegram = await _telegram(store, settings, intake, owner)
    whatsapp = await _whatsapp(store, settings, intake)
    channels.update({part.bot_id: part.channel for part in (telegram, whatsapp) if part})

    wake = relay(store)
    parts = GatewayParts(store, model, wake, telegram, whatsapp)
    started = Started()
    app = _application(
        settings, store, parts, started, chat_app, create_admin_app(store, acts, parts, settings), telegram
    )
    for path, handler in whatsapp.routes.items() if whatsapp else ():
        app.router.add_post(path, handler)
    opened = (model, judge, transcriber, intake_pool, page_pool, store)
    return Gateway(
        app=app,
        store=store,
        lanes=lanes,
        deliverer=Deliverer(store, channels, owner, due),
        loops=(wake.run(), stops.run(), keep_house(store, settings)),
        telegram=telegram,
        whatsapp=whatsapp,
        closing=[one.close() for one in opened if one],
        started=started,
    )


async def _telegram(store: Store, settings: Settings, intake: Intake, owner: str) -> TelegramPart | None:
    if settings.telegram_bot_token is None:
        return None
    number = settings.telegram_bot_token.get_secret_value().partition(":")[0]
    bot_id = await _bot(store, settings, "telegram", number, "Mentee")
    return telegram_part(store, settings, intake, bot_id, owner)


async def _whatsapp(store: Store, settings: Settings, intake: Intake) -> "WhatsAppPart | None":
    if settings.whatsapp_from is None:
        return None
    from app.gateway.whatsapp import WhatsAppPart  # noqa: PLC0415 - 40 MB that nobody else should pay

    number = settings.whatsapp_from.partition("+")[2]
    bot_id = await _bot(store, settings, "whatsapp", number, "Mentee")
    async with store.begin() as tx:
        born = await people.bot_born(tx, bot_id)
    return WhatsAppPart(settings, intake, bot_id, born)


def _dialogue_parts(
    store: Store,
    settings: Settings,
    model: VllmClient,
    judge: JudgeClient | None,
    transcriber: TranscribeClient | None,
    acts: Acts,
    converse: Converse,
    due: asyncio.Event,
) -> Parts:
    chosen = profile(settings.model)
    return Parts(
        store=store,
        settings=settings,
        converse=converse,
        rewriter=Rewriter(model, chosen.key, settings.max_reply_tokens),
        judge=Judge(judge) if judge else None,
        leaving=acts,
        live_release=live_release,
        due=due,
        small_model=chosen.parameters < SMALL_MODEL_PARAMETERS,
        sees=chosen.sees,
        eyes=Eyes(),
        transcriber=transcriber,
        fetching={kind: asyncio.Semaphore(most) for kind, most in MOST_FETCHED.items()},
    )


def _application(
    settings: Settings,
    store: Store,
    parts: GatewayParts,
    started: Started,
    chat: web.Application,
    panel: web.Application,
    telegram: TelegramPart | None,
) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY)
    install(app, settings.proxies)
    add_health_routes(app, parts, started)
    add_metrics_route(app, store, settings)
    add_receipt_route(app, store)
    add_export_route(app, store, _secret(settings))
    app.add_subapp("/chat", chat)
    app.add_subapp("/admin", panel)
    app.router.add_get("/", _to_chat)
    if telegram and telegram.webhook:
        app.router.add_post(telegram.path, telegram.webhook)
    return app


async def serve(settings: Settings) -> None:
    """Run the gateway until SIGTERM or SIGINT."""
    gateway = await build(settings)
    runner = web.AppRunner(gateway.app, access_log=None, handler_cancellation=False, shutdown_timeout=5)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.mentee_host, settings.mentee_port).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(f"MENTEE_PORT: {settings.mentee_port} cannot be listened on; choose another port") from error
    await gateway.start()
    # What is there now stays: a collection that walks through all of it would hold up every stream.
    gc.freeze()
    log.info("gateway:process:started", port=settings.mentee_port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    broken = await gateway.until_broken(stop)
    log.info("gateway:process:stopping")
    await runner.cleanup()
    await gateway.stop()
    if broken:
        raise broken


async def _to_chat(_request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/chat")


async def _bot(store: Store, settings: Settings, channel: str, external_id: str, name: str) -> UUID:
    """Return a bot's row; a bot that has no identity yet begins with a plain one that the panel can change."""
    async with store.begin() as tx:
        bot_id = await people.ensure_bot(tx, channel, external_id)
        if await people.identity(tx, bot_id) is None:
            await people.add_identity(
                tx,
                bot_id,
                name=name,
                system_prompt=say(settings.language, "default_system_prompt"),
                privacy_notice="\n\n".join(say(language, "default_privacy_notice") for language in LANGUAGES),
                created_by="system",
            )
    return bot_id


def _database_url(settings: Settings) -> str:
    if settings.database_url is None:
        raise ConfigError("DATABASE_URL: set it to postgresql://..., or start everything with `make run`")
    return settings.database_url.get_secret_value()


def _model(settings: Settings) -> VllmClient:
    return VllmClient(
        settings.vllm_base_url or f"http://127.0.0.1:{settings.vllm_port}",
        api_key=settings.vllm_api_key.get_secret_value() if settings.vllm_api_key else None,
        token_timeout_s=settings.model_timeout_s,
        template_arguments=profile(settings.model).chat_template_args,
    )


def _secret(settings: Settings) -> bytes:
    if settings.mentee_secret is None:
        raise ConfigError("MENTEE_SECRET: set it to 32 or more random characters, or start with `make run`")
    return settings.mentee_secret.get_secret_value().encode()


def _judge_client(settings: Settings) -> JudgeClient | None:
    if not settings.judge_base_url or not settings.judge_model:
        return None
    key = settings.judge_api_key.get_secret_value() if settings.judge_api_key else None
    return JudgeClient(settings.judge_base_url, settings.judge_model, api_key=key, timeout_s=JUDGE_TIMEOUT_S)


def _transcriber(settings: Settings) -> TranscribeClient | None:
    if not settings.transcribe_base_url or not settings.transcribe_model:
        return None
    key = settings.transcribe_api_key.get_secret_value() if settings.transcribe_api_key else None
    named = (settings.transcribe_base_url, settings.transcribe_model)
    return TranscribeClient(*named, api_key=key, timeout_s=TRANSCRIBE_TIMEOUT_S)


def main() -> None:
    """Run the gateway; a misconfiguration ends it with one sentence."""
    try:
        settings = config.load()
        telemetry.configure(settings.log_level)
        uvloop.run(serve(settings))
    except MenteeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
