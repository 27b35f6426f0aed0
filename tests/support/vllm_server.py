"""The real model server on the CPU, as the embedded form starts it, for one test or for all of a module."""

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from app.domain.profiles import DEFAULT_PROFILE, profile
from app.embedded import vllm
from app.embedded.parts import free_port

START_S = 600


@asynccontextmanager
async def vllm_server(model_dir: Path, slots: int = 4) -> AsyncIterator[str]:
    """Start it, yield its address, stop it by its pid."""
    part = vllm.part(profile(DEFAULT_PROFILE), model_dir, free_port(), max_loras=slots)
    command = part.command()
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command.argv, env={**os.environ, **command.env}, stdout=quiet, stderr=quiet
    )
    try:
        async with asyncio.timeout(START_S):
            while not await part.ready():
                assert process.returncode is None
                await asyncio.sleep(1)
        yield vllm.url(part.port or 0)
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 60)


@contextmanager
def vllm_for_many(model_dir: Path) -> Iterator[str]:
    """Start it outside of any loop, as what several tests share must be; yield its address, stop it by its pid."""
    part = vllm.part(profile(DEFAULT_PROFILE), model_dir, free_port())
    command = part.command()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command.argv, env={**os.environ, **command.env}, stdout=quiet, stderr=quiet)
    try:
        deadline = time.monotonic() + START_S
        with ThreadPoolExecutor(1) as beside:  # the fixture that asks for it may run in a loop of its own
            while not beside.submit(lambda: asyncio.run(part.ready())).result():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(1)
        yield vllm.url(part.port or 0)
    finally:
        process.terminate()
        process.wait(60)
