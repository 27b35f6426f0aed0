"""The gateway process: `python -m app.main`. Puts the parts together, runs them, and stops them in order.

    channels ─► intake ─► lanes ─► dialogue ─► converse ─► deliver ─► channels
                                                      └► jobs ─► relay ─► broker

Composition root: imports everything, nobody imports it. Starts without torch.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
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
from app.domain.consent import DataUse
from app.domain.media import Kind
from app.domain.profiles import profile
from app.errors import ConfigError, MenteeError
from app.gateway import channels as packages
from app.gateway.base import served_base
from app.gateway.channels import Installed
from app.gateway.health import GatewayParts
from app.gateway.keeping import Keeper
from app.gateway.learning import Acts, learning_of, live_release
from app.gateway.parts import Shared, build_channels
from app.ports import Channel, Push
from app.services.converse import Converse
from app.services.deliver import Deliverer
from app.services.housekeeping import free_the_dead, keep_house
from app.services.intake import Intake
from app.services.judging import Judge
from app.services.lanes import LaneRunner
from app.services.remember import Rewriter
from app.services.respond import Responder
from app.services.sight import Eyes
from app.services.stops import Stops
from app.services.stream import Streams
from app.store import StatementPool, Store
from app.store.owners import new_owner, release_dead, this_place
from app.telemetry import Log
from app.web.export import add_export_route
from app.web.health import Started, add_health_routes
from app.web.metrics import add_metrics_route
from app.web.middleware import install
from app.web.receipt import add_receipt_route
from app.worker import relay
from bots.dialogue import Dialogue
from bots.dialogue import Parts as DialogueParts
from bots.dialogue.pressed import Notes
from bots.package import Part

log = Log(__name__)
# Few, so that a crowd's messages wait for a turn at the database and not all at once for a turn in this process.
CONNECTIONS = 6
# What arrives is stored and acknowledged beside all that, and beside whoever only opens pages: a platform waits for it.
INTAKE_CONNECTIONS = 4
PAGE_CONNECTIONS = 2
SMALL_MODEL_PARAMETERS = 500_000_000
MAX_BODY = 4 * 1024 * 1024
# The first words of the addresses that no channel may have.
HOUSE_PATHS = frozenset({"", "admin", "export", "healthz", "metrics", "readyz", "receipt", "startupz"})
JUDGE_TIMEOUT_S = 8.0
# A recording of some minutes on a modest machine.
TRANSCRIBE_TIMEOUT_S = 60.0
# Together some 100 MB at most, whatever a crowd sends at once.
MOST_FETCHED: dict[Kind, int] = {"picture": 8, "voice": 4}


@dataclass(frozen=True, slots=True)
class Asked:
    """The servers that the dialogue asks; None where there is none."""

    model: VllmClient
    judge: JudgeClient | None
    transcriber: TranscribeClient | None


@dataclass(slots=True)
class Gateway:
    """A built gateway: its web application, its loops, and what must be closed."""

    app: web.Application
    store: Store
    lanes: LaneRunner
    deliverer: Deliverer
    loops: Sequence[Coroutine[Any, Any, None]]
    channels: Mapping[str, Part | None]
    keeper: Keeper
    closing: Sequence[Coroutine[Any, Any, None]]
    started: Started
    running: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Give back what dead processes of this host hold; run the loops."""
        async with self.store.begin() as tx:
            await release_dead(tx, this_place(), psutil.pid_exists)
        loops = [self.lanes.run(), self.deliverer.run(), *self.loops]
        self.running = [asyncio.create_task(loop) for loop in loops]
        await self.keeper.start()
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
        await self.keeper.stop_receiving()
        await self.lanes.stop()
        await self.deliverer.stop()
        await self.keeper.close()
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        for close in self.closing:
            await close


async def build(settings: Settings, given: Sequence[Installed] | None = None) -> Gateway:
    """Put a gateway together, with the `given` channels or else with whatever is installed.

    Raises:
        ConfigError: a setting is missing; the sentence says which.
    """
    installed = packages.read(packages.find(), settings) if given is None else packages.checked(given, settings)
    store = Store(_database_url(settings), pool_size=CONNECTIONS)
    secret = _secret(settings)
    owner = new_owner()
    due = asyncio.Event()
    streams = Streams()
    model = _model(settings)
    asked = Asked(model, _judge_client(settings), _transcriber(settings))
    acts = Acts(store, settings)
    stops = Stops(store)
    base = served_base(profile(settings.model), settings.model_dir)
    channels: dict[UUID, Channel] = {}
    written_to: dict[UUID, Channel] = {}
    deliverer = Deliverer(store, written_to, owner, due)
    converse = Converse(store, model, base, streams, stops, settings, learning_of(settings), deliverer)
    data_use = packages.data_use(installed)
    dialogue = Dialogue(_dialogue_parts(store, settings, asked, acts, converse, due, data_use), channels)
    lanes = LaneRunner(store, dialogue.handle, owner)
    intake_pool = StatementPool(_database_url(settings), size=INTAKE_CONNECTIONS)
    page_pool = StatementPool(_database_url(settings), size=PAGE_CONNECTIONS)
    intake = Intake(intake_pool, secret, lanes)

    responder = Responder(store, intake, lanes, owner, settings.language)
    shared = Shared(settings, store, page_pool, streams, intake, responder, Notes(store, settings.language), owner)
    built = await build_channels(installed, shared)
    channels.update(built.by_bot)
    written_to.update(_written_to(channels))

    wake = relay(store)
    keeper = Keeper({name: part for name, part in built.parts.items() if part})
    parts = GatewayParts(store, model, wake, built.parts, keeper.troubles)
    started = Started()
    panel = create_admin_app(store, acts, parts, settings, packages.telling_arrival(installed))
    app = _application(settings, store, parts, started, panel)
    _add_routes(app, built.parts.values())
    opened = (model, asked.judge, asked.transcriber, intake_pool, page_pool, store)
    return Gateway(
        app=app,
        store=store,
        lanes=lanes,
        deliverer=deliverer,
        loops=(
            wake.run(),
            stops.run(),
            keep_house(store, settings),
            free_the_dead(store, this_place(), psutil.pid_exists),
        ),
        channels=built.parts,
        keeper=keeper,
        closing=[one.close() for one in opened if one],
        started=started,
    )


def _written_to(channels: Mapping[UUID, Channel]) -> Mapping[UUID, Channel]:
    """Return the channels that can be written to at any time; the others ask for what is due."""
    return {bot: channel for bot, channel in channels.items() if isinstance(channel.capabilities.reply_mode, Push)}


def check_paths(paths: Sequence[str]) -> None:
    """Check what channels want to be asked under.

    Raises:
        ConfigError: two of them claim the same path, or one claims what is no path or the house's own.
    """
    for path in paths:
        if not path.startswith("/") or path.split("/")[1] in HOUSE_PATHS:
            raise ConfigError(f"a channel package claims the path {path!r}, which it cannot have; uninstall it")
        if paths.count(path) > 1:
            raise ConfigError(f"two channel packages claim the path {path}; uninstall one")


def _add_routes(app: web.Application, parts: Iterable[Part | None]) -> None:
    """Add what channels are asked under. Raises `ConfigError`."""
    routes = [(path, target) for part in parts if part for path, target in part.routes.items()]
    check_paths([path for path, _ in routes])
    for path, target in routes:
        if isinstance(target, web.Application):
            app.add_subapp(path, target)
        else:
            app.router.add_post(path, target)


def _dialogue_parts(
    store: Store,
    settings: Settings,
    asked: Asked,
    acts: Acts,
    converse: Converse,
    due: asyncio.Event,
    data_use: Mapping[str, DataUse],
) -> DialogueParts:
    chosen = profile(settings.model)
    return DialogueParts(
        store=store,
        settings=settings,
        converse=converse,
        rewriter=Rewriter(asked.model, chosen.key, settings.max_reply_tokens),
        judge=Judge(asked.judge) if asked.judge else None,
        leaving=acts,
        live_release=live_release,
        due=due,
        small_model=chosen.parameters < SMALL_MODEL_PARAMETERS,
        data_use=data_use,
        sees=chosen.sees,
        eyes=Eyes(),
        transcriber=asked.transcriber,
        fetching={kind: asyncio.Semaphore(most) for kind, most in MOST_FETCHED.items()},
    )


def _application(
    settings: Settings,
    store: Store,
    parts: GatewayParts,
    started: Started,
    panel: web.Application,
) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY)
    install(app, settings.proxies)
    add_health_routes(app, parts, started)
    add_metrics_route(app, store, settings)
    add_receipt_route(app, store)
    add_export_route(app, store, _secret(settings))
    app.add_subapp("/admin", panel)
    app.router.add_get("/", _to_chat)
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
