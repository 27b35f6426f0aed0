"""Webhook acknowledgements under a steady load: a gateway with the instant model server and the real PostgreSQL.

The load is open: each update is sent at its own moment whether or not earlier ones were answered, and its time counts
from that moment, so that a stall shows in every update it delayed.
"""

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import asyncpg

from app.demo.installation import ROOT, DemoError, Installation
from app.embedded import workers
from app.embedded.parts import LOOPBACK, free_port

RATE = 100
SECONDS = 15
PEOPLE = 200
WARM_UPDATES = 100
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 20.0
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105  # a header's name
TIMEOUT = aiohttp.ClientTimeout(total=30)
OK = 200


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Milliseconds to each acknowledgement, and how many were refused."""

    ms: tuple[float, ...]
    refused: int
    handled: int


@asynccontextmanager
async def _process(*argv: str, env: Mapping[str, str] | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.communicate(), STOP_TIMEOUT_S)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _first_line(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        raise DemoError("a helper process says nothing")
    line = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)
    if not line:
        raise DemoError("a helper process ended at once")
    return line.decode().strip()


async def measure(place: Installation) -> Acknowledged:
    """Start what is needed beside an installation's database, load it, and return what was seen.

    Raises:
        DemoError: something did not start.
    """
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(
            _process(sys.executable, "-m", "tests.fakes.model", "--name", place.settings.model)
        )
        model_url = (await _first_line(model)).removeprefix("listening on ")
        platform = await stack.enter_async_context(_process(sys.executable, "-m", "app.bench.platform", str(PEOPLE)))
        given = json.loads(await _first_line(platform))
        database = await stack.enter_async_context(_database(place.database_url))
        port, secret = free_port(), secrets.token_urlsafe(32)
        address = f"http://{LOOPBACK}:{port}"
        env = {
            "DATABASE_URL": database,
            "BROKER_URL": place.broker_url,
            "VLLM_BASE_URL": model_url,
            "MENTEE_HOME": str(place.home),
            "MENTEE_PORT": str(port),
            "MENTEE_SECRET": secrets.token_urlsafe(48),
            "TELEGRAM_BOT_TOKEN": given["token"],
            "TELEGRAM_BASE_URL": given["base_url"],
            "TELEGRAM_MODE": "webhook",
            "TELEGRAM_WEBHOOK_SECRET": secret,
            "PUBLIC_URL": "https://bench.invalid",
            "LOG_LEVEL": "ERROR",
            "OMP_NUM_THREADS": "1",
        }
        await asyncio.to_thread(workers.migrate, env)
        await stack.enter_async_context(_process(sys.executable, "-m", "app.main", env=env))
        await _ready(f"{address}/readyz")
        return await _load(f"{address}/webhooks/telegram", secret, given["people"], database)


async def _ready(url: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not await workers.gateway_answers(url):
        if time.monotonic() > deadline:
            raise DemoError("the measured gateway did not come up")
        await asyncio.sleep(0.2)


@asynccontextmanager
async def _database(url: str) -> AsyncIterator[str]:
    """Make a database beside the installation's own, and drop it at the end."""
    name = f"bench_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(f"create database {name}")
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            await connection.execute(f"drop database {name} with (force)")
    finally:
        await connection.close()


async def _load(url: str, secret: str, people: Sequence[int], database: str) -> Acknowledged:
    connector = aiohttp.TCPConnector(limit=0)
    headers = {SECRET_HEADER: secret, "Content-Type": "application/json"}
    async with aiohttp.ClientSession(timeout=TIMEOUT, connector=connector, headers=headers) as session:
        await _steady(session, url, people, WARM_UPDATES, first=1)
        await asyncio.sleep(2)
        answers = await _steady(session, url, people, RATE * SECONDS, first=1 + WARM_UPDATES)
    connection = await asyncpg.connect(database, timeout=10)
    try:
        handled = int(await connection.fetchval("select count(*) from turns"))
    finally:
        await connection.close()
    times = tuple(ms for ms, status in answers if status == OK)
    return Acknowledged(times, len(answers) - len(times), handled)


async def _steady(
    session: aiohttp.ClientSession, url: str, people: Sequence[int], count: int, first: int
) -> list[tuple[float, int]]:
    """Send `count` updates at the rate; return milliseconds from each one's moment, and its status."""
    began = time.perf_counter() + 0.05

    async def one(number: int) -> tuple[float, int]:
        due = began + (number - first) / RATE
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        async with session.post(url, data=_update(number, people[number % len(people)])) as answer:
            await answer.read()
            return (time.perf_counter() - due) * 1000, answer.status

    return list(await asyncio.gather(*(one(number) for number in range(first, first + count))))


def _update(number: int, person: int) -> bytes:
    card = {"id": person, "is_bot": False, "first_name": "Person", "language_code": "en"}
    chat = {"id": person, "type": "private", "first_name": "Person"}
    message = {"message_id": number, "date": int(time.time()), "chat": chat, "from": card, "text": f"Hello {number}"}
    return json.dumps({"update_id": number, "message": message}).encode()
