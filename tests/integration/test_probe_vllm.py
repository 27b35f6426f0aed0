"""The isolation probe against the real vLLM: one slot without the guard is refused, the way we start it passes."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.clients.vllm import VllmClient
from app.domain.profiles import profile
from app.embedded import model, vllm
from app.embedded.parts import Home, free_port
from learner.serve.evict import evict
from learner.serve.probe import ProbeBase, ProbeReport, probe_names, probe_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
BASE = profile("smollm2-135m")
HOME = Home(Path(os.environ.get("MENTEE_TEST_HOME", "var")))
UNGUARDED = {"VLLM_PLUGINS": "none"}


@asynccontextmanager
async def server(model_dir: Path, slots: int, env: dict[str, str]) -> AsyncIterator[VllmClient]:
    """Start a model server and stop it."""
    part = vllm.part(BASE, model_dir, free_port(), max_loras=slots)
    command = part.command()
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command.argv, env={**os.environ, **command.env, **env}, stdout=quiet, stderr=quiet
    )
    client = VllmClient(vllm.url(part.port or 0), token_timeout_s=600)
    try:
        async with asyncio.timeout(600):
            while not await part.ready():
                assert process.returncode is None
                await asyncio.sleep(1)
        yield client
    finally:
        await client.close()
        process.terminate()
        await asyncio.wait_for(process.wait(), 60)


async def probe(client: VllmClient, model_dir: Path, workdir: Path) -> ProbeReport:
    report = await probe_server(client, ProbeBase(BASE.key, model_dir), workdir)
    print(report)
    return report


async def test_one_slot_without_the_guard_is_refused(tmp_path: Path) -> None:
    model_dir = model.ensure(HOME, BASE)
    async with server(model_dir, 1, UNGUARDED) as client:
        report = await probe(client, model_dir, tmp_path)
    assert not report.passed
    assert report.reason == "answered_with_another"
    assert report.different >= 8  # every base reply of both rounds


@pytest.mark.nightly
async def test_more_slots_without_the_guard_are_refused_once_they_were_used(tmp_path: Path) -> None:
    model_dir = model.ensure(HOME, BASE)
    async with server(model_dir, 2, UNGUARDED) as client:
        assert not (await probe(client, model_dir, tmp_path)).passed


@pytest.mark.nightly
async def test_the_server_as_we_start_it_passes_and_lets_go_of_weights(tmp_path: Path) -> None:
    model_dir = model.ensure(HOME, BASE)
    async with server(model_dir, vllm.LORA_SLOTS, {}) as client:
        assert (await probe(client, model_dir, tmp_path)).passed
        names = probe_names(ProbeBase(BASE.key, model_dir))
        assert await evict(client, names, model_dir, tmp_path) == 2
        assert {m.name for m in await client.models()} == {BASE.key}
