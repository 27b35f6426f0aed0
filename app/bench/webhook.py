"""A gateway to be measured over Telegram's webhook: with the instant model server, on a database of its own.

Whoever measures brings the platform that its replies go to, and the load.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from json import loads
from pathlib import Path

from app.bench import load
from app.bench.load import Load
from app.bench.processes import Process, asked, database, first_line, module, process, ready
from app.demo.installation import Installation
from app.embedded import workers
from app.embedded.parts import LOOPBACK, free_port

RATE = 100
SECONDS = 15
PEOPLE = 200
WARM_UPDATES = 100
SETTLE_S = 2.0
PATH = "/webhooks/telegram"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Milliseconds to each acknowledgement, and how many were refused."""

    ms: tuple[float, ...]
    refused: int
    handled: int


@dataclass(frozen=True, slots=True)
class Platform:
    """What stands for Telegram: its address as `TELEGRAM_BASE_URL` takes it, and the bot's token."""

    base_url: str
    token: str


@dataclass(frozen=True, slots=True)
class Place:
    """What a gateway needs beside the platform: databases, a model server, a folder."""

    database_url: str
    broker_url: str
    model_url: str
    home: Path


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway: where it is posted to with which secret, and its process."""

    url: str
    secret: str
    database_url: str
    process: Process


@asynccontextmanager
async def instant_model(name: str) -> AsyncIterator[str]:
    """Run the instant model server of this checkout under `name`; yield its address."""
    async with process(*module("tests.fakes.model", "--name", name)) as model:
        yield (await first_line(model)).removeprefix("listening on ")


@asynccontextmanager
async def gateway(place: Place, platform: Platform, program: str = "app.main") -> AsyncIterator[Gateway]:
    """Run a gateway whose database is new and migrated, until the block ends.

    Raises:
        DemoError: it did not come up.
        PartError: the database could not be migrated.
    """
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database(place.database_url))
        port, secret = free_port(), secrets.token_urlsafe(32)
        env = {
            "DATABASE_URL": url,
            "BROKER_URL": place.broker_url,
            "VLLM_BASE_URL": place.model_url,
            "MENTEE_HOME": str(place.home),
            "MENTEE_PORT": str(port),
            "MENTEE_SECRET": secrets.token_urlsafe(48),
            "TELEGRAM_BOT_TOKEN": platform.token,
            "TELEGRAM_BASE_URL": platform.base_url,
            "TELEGRAM_MODE": "webhook",
            "TELEGRAM_WEBHOOK_SECRET": secret,
            "PUBLIC_URL": "https://bench.invalid",
            "QUOTA_REPLIES_PER_MINUTE": "0",
            "LOG_LEVEL": "ERROR",
            "OMP_NUM_THREADS": "1",
        }
        await asyncio.to_thread(workers.migrate, env)
        running = await stack.enter_async_context(process(*module(program), env=env))
        await ready(f"http://{LOOPBACK}:{port}/readyz")
        yield Gateway(f"http://{LOOPBACK}:{port}{PATH}", secret, url, running)


async def measure(place: Installation) -> Acknowledged:
    """Load a gateway beside an installation's database, and return what was seen.

    Raises:
        DemoError: something did not start.
    """
    async with AsyncExitStack() as stack:
        model_url = await stack.enter_async_context(instant_model(place.settings.model))
        fake = await stack.enter_async_context(process(*module("app.bench.platform", str(PEOPLE))))
        given = loads(await first_line(fake))
        beside = Place(place.database_url, place.broker_url, model_url, place.home)
        measured = await stack.enter_async_context(gateway(beside, Platform(given["base_url"], given["token"])))
        http = await stack.enter_async_context(load.session(measured.secret))
        await load.send(http, measured.url, Load(1, given["people"], WARM_UPDATES, RATE))
        await asyncio.sleep(SETTLE_S)
        taken = await load.send(http, measured.url, Load(1 + WARM_UPDATES, given["people"], RATE * SECONDS, RATE))
        handled = int(await asked(measured.database_url, "select count(*) from turns"))
    return Acknowledged(tuple(taken.ms), taken.refused, handled)
