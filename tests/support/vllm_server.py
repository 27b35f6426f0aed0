"""The real model server on the CPU, as the embedded form starts it, for one test."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
