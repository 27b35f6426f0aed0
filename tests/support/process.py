"""The gateway as a process of its own, so that it can be killed."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.support.postgres import ROOT

START_S = 60


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def gateway_process(port: int, environment: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a gateway until the block ends; it is ended by pid."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "app.main",
        cwd=ROOT,
        env=os.environ | {"MODEL_WAIT_S": "0"} | environment | {"MENTEE_PORT": str(port)},
    )
    try:
        await _started(process, port)
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 40)


async def _started(process: asyncio.subprocess.Process, port: int) -> None:
    async with asyncio.timeout(START_S), aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with session.get(f"http://127.0.0.1:{port}/startupz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
                continue
            await asyncio.sleep(0.1)
