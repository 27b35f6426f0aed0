"""Relay, broker and worker as processes of their own: jobs are done, whatever is killed or emptied on the way."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from redis.asyncio import Redis
from sqlalchemy import text

from app.embedded import valkey
from app.embedded.parts import Home, free_port
from app.services.forget import forget_person
from app.store import Store, jobs
from app.store.jobs import Work
from tests.fakes.model import ModelServer
from tests.fakes.model.faults import Slow
from tests.integration.test_release import by_model
from tests.support.lessons import base_folder, candidate, learner_on, pupil
from tests.support.postgres import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PATIENCE_S = 90
RELAY = """
import asyncio, os
from app.store import Store, jobs
from app.worker import relay
jobs.REWAKE_S = 1.0
asyncio.run(relay(Store(os.environ["DATABASE_URL"])).run())
"""
WORKER = ("-m", "celery", "-A", "app.worker", "worker", "-n", "test@%h")
QUIET = ("--without-gossip", "--without-mingle")


@dataclass
class Parts:
    """Processes of one test; each writes its log into `home`."""

    home: Path
    env: dict[str, str]
    broker_url: str
    running: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self, name: str, *arguments: str) -> asyncio.subprocess.Process:
        with (self.home / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, env=os.environ | self.env, cwd=ROOT, stdout=log, stderr=log
            )
        self.running.append(process)
        return process

    async def relay(self) -> asyncio.subprocess.Process:
        return await self.start("relay", "-c", RELAY)

    async def worker(
        self, queues: str = "evaluate,release,train,score", pool: tuple[str, str] = ("threads", "2")
    ) -> asyncio.subprocess.Process:
        return await self.start("worker", *WORKER, "--pool", pool[0], "-c", pool[1], "-Q", queues, *QUIET)

    async def stop(self) -> None:
        for process in self.running:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def logs(self) -> str:
        return "\n".join(p.read_text(errors="replace") for p in self.home.glob("*.log"))


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="mentee-worker-") as folder:
        made = Home(Path(folder))
        made.create()
        yield made


@asynccontextmanager
async def broker(home: Home, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    part = valkey.part(home, port)
    part.prepare()
    process = await asyncio.create_subprocess_exec(*part.command().argv, stdout=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(20):
            while not await part.ready():
                await asyncio.sleep(0.1)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def parts(home: Home, database_url: str, model: ModelServer, tmp_path: Path) -> AsyncIterator[Parts]:
    """A broker, and the settings of workers that stand on a fake model server."""
    model.reply_with(by_model)
    port = free_port()
    async with broker(home, port):
        url = valkey.url(home, port)
        env = {
            "DATABASE_URL": database_url,
            "BROKER_URL": url,
            "VLLM_BASE_URL": model.url,
            "MENTEE_HOME": str(tmp_path / "home"),
            "MODEL_DIR": str(base_folder(tmp_path / "base")),
        }
        made = Parts(home.root, env, url)
        yield made
        await made.stop()


async def queue(store: Store, work: Work) -> UUID:
    async with store.begin() as tx:
        return await jobs.enqueue(tx, work)


async def until(store: Store, job_id: UUID, states: Sequence[str], parts: Parts) -> str:
    state = ""
    for _ in range(PATIENCE_S * 5):
        async with store.begin() as tx:
            state = str(await tx.scalar(text("select state from jobs where id = :i"), {"i": job_id}))
        if state in states:
            return state
        await asyncio.sleep(0.2)
    raise AssertionError(f"still {state}\n{parts.logs()[-4000:]}")


async def probed(store: Store) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with store.begin() as tx:
                if await tx.scalar(text("select probe_state from model_servers")) == "passed":
                    return
            await asyncio.sleep(0.2)


async def test_jobs_are_done_and_the_broker_holds_ids_only(store: Store, parts: Parts) -> None:
    who = await pupil(store, "canary-account-4412")
    client = Redis.from_url(parts.broker_url)
    await parts.relay()
    given = await forget_person(store, Path(parts.env["MENTEE_HOME"]), who.person_id, "all", "person")
    async with asyncio.timeout(PATIENCE_S):
        while not await client.llen("release"):
            await asyncio.sleep(0.1)
    (message,) = await client.lrange("release", 0, -1)
    assert b"mentee.wake" in message
    assert str(who.person_id).encode() not in message
    assert given.code.encode() not in message
    await client.aclose()
    await parts.worker()
    async with store.begin() as tx:
        job_id = UUID(str(await tx.scalar(text("select id from jobs where kind = 'forget'"))))
    assert await until(store, job_id, ("done", "failed"), parts) == "done"
    assert "canary-account-4412" not in parts.logs()


@pytest.mark.parametrize("pool", [("threads", "2"), ("solo", "1")])
async def test_the_worker_proves_its_servers_without_any_job(store: Store, parts: Parts, pool: tuple[str, str]) -> None:
    await parts.relay()
    await parts.worker("evaluate,release", pool)
    await probed(store)
    assert (
        await until(store, await queue(store, Work("reconcile", "release", "r")), ("done", "failed"), parts) == "done"
    )


async def test_an_emptied_broker_costs_time_only(store: Store, parts: Parts) -> None:
    await parts.relay()
    client = Redis.from_url(parts.broker_url)
    job_id = await queue(store, Work("reconcile", "release", "reconcile"))
    async with asyncio.timeout(PATIENCE_S):
        while not await client.llen("release"):
            await asyncio.sleep(0.05)
    await client.flushall()
    await client.aclose()
    await parts.worker()
    assert await until(store, job_id, ("done", "failed"), parts) == "done"


async def test_a_broker_that_dies_is_waited_for(
    store: Store, home: Home, database_url: str, model: ModelServer, tmp_path: Path
) -> None:
    model.reply_with(by_model)
    port = free_port()
    env = {
        "DATABASE_URL": database_url,
        "VLLM_BASE_URL": model.url,
        "MENTEE_HOME": str(tmp_path / "home"),
        "MODEL_DIR": str(base_folder(tmp_path / "base")),
    }
    async with broker(home, port):
        url = valkey.url(home, port)
        made = Parts(home.root, env | {"BROKER_URL": url}, url)
        await made.relay()
        await made.worker()
        assert await until(store, await queue(store, Work("reconcile", "release", "one")), ("done",), made) == "done"
    job_id = await queue(store, Work("reconcile", "release", "two"))
    await asyncio.sleep(3)
    try:
        async with broker(home, port):
            assert await until(store, job_id, ("done",), made) == "done"
    finally:
        await made.stop()


async def test_a_killed_worker_s_job_is_taken_by_another(
    store: Store, parts: Parts, model: ModelServer, tmp_path: Path
) -> None:
    who = await pupil(store)
    folder = Path(parts.env["MODEL_DIR"])
    async with learner_on(store, model.url, Path(parts.env["MENTEE_HOME"]), folder) as learner:
        await learner.reconciler.once()
        checkpoint_id, _ = await candidate(learner, who)
    await parts.relay()
    first = await parts.worker()
    model.pace = Slow(first_token_s=1.0)
    job_id = await queue(store, Work("evaluate", "evaluate", "e", {"checkpoint_id": str(checkpoint_id)}, who.person_id))
    await until(store, job_id, ("running",), parts)
    first.kill()
    await first.wait()
    model.pace = Slow()
    await parts.worker()
    async with store.begin() as tx:
        # The lease of the dead worker, without waiting for it here.
        await tx.execute(
            text("update jobs set lease_until = now() + interval '2 seconds' where id = :i"), {"i": job_id}
        )
    await until(store, job_id, ("done", "failed"), parts)
    async with store.begin() as tx:
        assert await tx.scalar(text("select attempts from jobs where id = :i"), {"i": job_id}) == 2
