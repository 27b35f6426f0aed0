"""What a bench starts beside itself: processes that say where they are, a database that is dropped at the end.

Every process is started, watched and stopped by its own handle; nothing else on the machine is touched.
"""

import asyncio
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from app.demo.installation import ROOT, DemoError
from app.embedded import postgres, valkey, workers
from app.embedded.parts import Home, Part, free_port
from app.embedded.process import Child

Process = asyncio.subprocess.Process
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 20.0
LOOK_S = 0.2
LONGEST_LINE = 4 * 1024 * 1024


@asynccontextmanager
async def process(*argv: str, env: Mapping[str, str] | None = None, log: Path | None = None) -> AsyncIterator[Process]:
    """Run a process until the block ends.

    Args:
        argv: the program and its arguments.
        env: added to our own environment.
        log: where its messages are appended; None: nowhere.
    """
    started = await start(*argv, env=env, log=log)
    try:
        yield started
    finally:
        await end(started)


async def start(*argv: str, env: Mapping[str, str] | None = None, log: Path | None = None) -> Process:
    """Start a process that whoever calls ends with `end`; its standard output can be read."""
    with (log or Path(os.devnull)).open("ab") as messages:
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=messages,
            limit=LONGEST_LINE,
        )


async def end(started: Process) -> None:
    """Ask a process to stop, insist after its time is over."""
    if started.returncode is not None:
        return
    started.terminate()
    try:
        await asyncio.wait_for(started.communicate(), STOP_TIMEOUT_S)
    except TimeoutError:
        started.kill()
        await started.wait()


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command line of one of our modules."""
    return (sys.executable, "-m", name, *arguments)


async def first_line(started: Process) -> str:
    """Return what a process says first.

    Raises:
        DemoError: it ended without a word.
        TimeoutError: it said nothing for long.
    """
    if started.stdout is None:
        raise DemoError("a helper process says nothing")
    line = await asyncio.wait_for(started.stdout.readline(), START_TIMEOUT_S)
    if not line:
        raise DemoError("a helper process ended at once")
    return line.decode().strip()


async def ready(url: str) -> None:
    """Wait until a gateway answers at `url`. Raises `DemoError` where it never does."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not await workers.gateway_answers(url):
        if time.monotonic() > deadline:
            raise DemoError("the measured gateway did not come up")
        await asyncio.sleep(LOOK_S)


class Server:
    """An embedded part that can be killed and started again."""

    def __init__(self, part: Part, home: Home) -> None:
        self._part = part
        self._home = home
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """Its process. Raises `DemoError` while there is none."""
        if self._child is None:
            raise DemoError(f"{self._part.name} does not run")
        return self._child.pid

    async def start(self) -> None:
        """Start it and wait until it answers. Raises `DemoError` where it never does."""
        await asyncio.to_thread(self._part.prepare)
        self._child = child = await Child.start(self._part, self._home)
        deadline = time.monotonic() + self._part.start_timeout_s
        while not await self._part.ready():
            if child.returncode is not None or time.monotonic() > deadline:
                raise DemoError(f"{self._part.name} did not come up")
            await asyncio.sleep(LOOK_S)

    async def crash(self) -> None:
        """End it at once, whatever it does; what was committed is found again at the next start."""
        os.kill(self.pid, signal.SIGQUIT)
        await self._ended()

    async def stop(self) -> None:
        """End it in order."""
        if self._child:
            await self._child.stop()

    async def _ended(self) -> None:
        if self._child:
            await self._child.wait()


@dataclass(frozen=True, slots=True)
class Databases:
    """An embedded PostgreSQL and Valkey of one bench: their addresses, and PostgreSQL itself."""

    home: Path
    database_url: str
    broker_url: str
    server: Server


@asynccontextmanager
async def databases() -> AsyncIterator[Databases]:
    """Start the embedded databases as `mentee run` does, in a temporary home that is removed.

    Raises:
        PartError: a wheel is missing.
        DemoError: one of them did not come up.
    """
    with tempfile.TemporaryDirectory(prefix="mentee-bench-", ignore_cleanup_errors=True) as folder:
        home = Home(Path(folder).resolve())
        home.create()
        ports = free_port(), free_port()
        server, broker = Server(postgres.part(home, ports[0]), home), Server(valkey.part(home, ports[1]), home)
        try:
            await server.start()
            await broker.start()
            yield Databases(home.root, postgres.url(home, ports[0]), valkey.url(home, ports[1]), server)
        finally:
            await broker.stop()
            await server.stop()


@asynccontextmanager
async def database(url: str) -> AsyncIterator[str]:
    """Make an empty database beside the one at `url`, and drop it at the end."""
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


async def asked(url: str, query: str, *values: object) -> Any:  # noqa: ANN401  # whatever the column holds
    """Return the first column of the first row of a query."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()
