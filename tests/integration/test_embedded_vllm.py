"""The embedded model server, really started: base and adapters keep apart however many adapters it has seen."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from app.clients.vllm import VllmClient
from app.domain.profiles import profile
from app.domain.prompt import ChatMessage
from app.embedded import model, vllm
from app.embedded.parts import Command, Home, Part, free_port
from app.ports import Sampling

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(900)]

BASE = profile("smollm2-135m")
SLOTS = 2
PROMPT = "Name three things that float on water."
HOME = Home(Path(os.environ.get("MENTEE_TEST_HOME", "var")))


@pytest.fixture(scope="module")
def model_dir() -> Path:
    """The converted model; it is kept between runs, as in real life."""
    return model.ensure(HOME, BASE)


@pytest.fixture(scope="module")
def server(model_dir: Path) -> Iterator[str]:
    """The address of a server with two adapter slots."""
    with asyncio.Runner() as runner:
        part = vllm.part(BASE, model_dir, free_port(), max_loras=SLOTS)
        process = runner.run(_start(part.command()))
        try:
            runner.run(_until_ready(part, process))
            yield vllm.url(part.port or 0)
        finally:
            process.terminate()
            runner.run(asyncio.wait_for(process.wait(), 60))


async def _start(command: Command) -> asyncio.subprocess.Process:
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        *command.argv, env={**os.environ, **command.env}, stdout=quiet, stderr=quiet
    )


async def _until_ready(part: Part, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(600):
        while not await part.ready():
            assert process.returncode is None
            await asyncio.sleep(1)


@pytest.fixture
async def client(server: str) -> AsyncIterator[VllmClient]:
    opened = VllmClient(server)
    yield opened
    await opened.close()


async def _tokens(client: VllmClient, name: str) -> tuple[int, ...]:
    sampling = Sampling(temperature=0.0, max_tokens=12, priority=0)
    reply = await client.complete(name, [ChatMessage(role="user", content=PROMPT)], sampling, salt=uuid4().hex)
    return reply.token_ids


async def test_the_base_stays_itself_once_every_slot_has_held_an_adapter(
    client: VllmClient, model_dir: Path, tmp_path: Path
) -> None:
    from learner.serve.probe import write_marked_adapter

    names = [f"marked-{number}" for number in range(SLOTS + 1)]
    quiet = {BASE.key: await _tokens(client, BASE.key)}
    for seed, name in enumerate(names):
        await client.load_adapter(name, str(write_marked_adapter(tmp_path / name, model_dir, seed)))
        quiet[name] = await _tokens(client, name)
    assert len(set(quiet.values())) == len(quiet)
    for name in names:
        base, adapted, again = await asyncio.gather(
            _tokens(client, BASE.key), _tokens(client, name), _tokens(client, BASE.key)
        )
        assert (base, adapted, again) == (quiet[BASE.key], quiet[name], quiet[BASE.key])


async def test_prompt_logprobs_in_a_mixed_batch_leave_the_server_alive_and_are_the_same(client: VllmClient) -> None:
    asked = await client.token_ids(BASE.key, [ChatMessage(role="user", content=PROMPT)])
    quiet = (await client.prompt_logprobs(BASE.key, asked, salt=uuid4().hex)).logprobs
    talking = [asyncio.create_task(_tokens(client, BASE.key)) for _ in range(6)]
    mixed = [(await client.prompt_logprobs(BASE.key, asked, salt=uuid4().hex)).logprobs for _ in range(3)]
    await asyncio.gather(*talking)
    assert await client.healthy()
    assert all(max(abs(a - b) for a, b in zip(quiet, one, strict=True)) < 1e-4 for one in mixed)


async def test_the_model_on_disk_names_itself(model_dir: Path) -> None:
    found = model.identity(model_dir)
    assert found.profile == BASE.key
    assert found.revision == model.weights_hash(model_dir)
    assert model.ensure(HOME, BASE) == model_dir
