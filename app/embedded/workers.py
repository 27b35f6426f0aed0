"""The gateway, the Celery workers and the migration as parts: how they are started and how one sees that they answer.

Every child is configured through the environment variables of `.env.example`, in the embedded form as elsewhere.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from app.embedded import commands
from app.embedded.messages import SentenceError
from app.embedded.parts import Command, Part

ROOT = Path(__file__).parents[2]
MIGRATIONS = ROOT / "migrations" / "alembic.ini"
MIGRATE_TIMEOUT_S = 300
READY_TIMEOUT_S = 3
BROKEN = frozenset({"degraded", "down"})
PING_TIMEOUT_S = 15
GPU_TIMEOUT_S = 60
WORKER_STOP_TIMEOUT_S = 15.0
GATEWAY_STOP_TIMEOUT_S = 45.0


def gateway(address: str, port: int, env: Mapping[str, str]) -> Part:
    """Return the gateway at `address`. It is up before the model is, so it is asked whether it has started."""
    return Part(
        name="gateway",
        command=lambda: Command((sys.executable, *commands.GATEWAY), _light(env)),
        ready=lambda: gateway_answers(f"{address}/startupz"),
        # What is being answered may end, and what is due may go out (`Gateway.stop`).
        stop_timeout_s=GATEWAY_STOP_TIMEOUT_S,
        port=port,
    )


async def gateway_answers(url: str) -> bool:
    """Whether the gateway says yes at `url`: `/startupz` (it has started) or `/readyz` (it can take messages)."""
    timeout = aiohttp.ClientTimeout(total=READY_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            return answer.status == 200  # noqa: PLR2004
    except (aiohttp.ClientError, TimeoutError):
        return False


async def broken(address: str) -> Mapping[str, str]:
    """Return the parts of the gateway at `address` that do not work, as Telegram that cannot be reached, each with why."""
    timeout = aiohttp.ClientTimeout(total=READY_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"{address}/readyz") as answer:
            parts = (await answer.json()).get("parts") or {}
    except (aiohttp.ClientError, TimeoutError):
        return {}  # the supervisor sees to a gateway that is gone
    return {name: part["detail"] or part["state"] for name, part in parts.items() if part["state"] in BROKEN}


def workers(env: Mapping[str, str]) -> list[Part]:
    """Return the Celery workers."""
    return [_worker(worker, env) for worker in commands.WORKERS]


def _worker(worker: commands.Worker, env: Mapping[str, str]) -> Part:
    return Part(
        name=worker.name,
        command=lambda: Command(
            worker.argv(sys.executable), _heavy(env) if worker.queues == ("train",) else _light(env)
        ),
        ready=lambda: worker_answers(worker.name, env),
        start_timeout_s=180,
        # A task that was cut off is found by the sweeper, so there is no need to wait for it for long.
        stop_timeout_s=WORKER_STOP_TIMEOUT_S,
    )


async def worker_answers(name: str, env: Mapping[str, str]) -> bool:
    """Whether the worker called `name` on this machine answers a ping through the broker."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "celery", "-b", env["BROKER_URL"], "inspect", "ping"),
        *("-d", f"{name}@{socket.gethostname()}", "-t", str(READY_TIMEOUT_S)),
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        return await asyncio.wait_for(process.wait(), PING_TIMEOUT_S) == 0
    except TimeoutError:
        process.kill()
        await process.wait()
        return False


async def gpu_answers() -> bool:
    """Whether torch finds a GPU here that trainings could use; asked in a process of its own, which gives its memory back."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import torch; raise SystemExit(not torch.cuda.is_available())"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        return await asyncio.wait_for(process.wait(), GPU_TIMEOUT_S) == 0
    except TimeoutError:
        process.kill()
        await process.wait()
        return False


def migrate(env: Mapping[str, str]) -> None:
    """Bring the database to the newest schema.

    Raises:
        PartError: a migration failed; the message holds its last line.
    """
    argv = [sys.executable, *commands.MIGRATE]
    try:
        subprocess.run(
            argv,
            check=True,
            capture_output=True,
            text=True,
            timeout=MIGRATE_TIMEOUT_S,
            cwd=ROOT,
            env={**os.environ, **env},
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["–"])[-1]
        raise SentenceError("schema.failed", last=last) from error
    except subprocess.TimeoutExpired as error:
        raise SentenceError("schema.slow", seconds=MIGRATE_TIMEOUT_S) from error


def _light(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that computes little: no thread pools, few memory arenas."""
    return {**env, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def _heavy(env: Mapping[str, str]) -> dict[str, str]:
    return {**env, "MALLOC_ARENA_MAX": "2"}
