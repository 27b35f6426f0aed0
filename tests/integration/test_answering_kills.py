"""kill -9 of a gateway while it answers a post: what was taken is given to the next one, what was given is known."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import text

from app.store import Store
from tests.fakes.model import ModelServer
from tests.support.parrot import FOLDER, KEY, Parrot, install
from tests.support.process import free_port, gateway_process
from tests.support.road import SECRET

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(
    database_url: str, model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """What a gateway process needs, the example channel installed."""
    install(monkeypatch, tmp_path)
    found = os.pathsep.join([str(FOLDER), str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {
        "DATABASE_URL": database_url,
        "VLLM_BASE_URL": model.url,
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "MENTEE_SECRET": SECRET,
        "MENTEE_HOME": str(tmp_path),
        "PARROT_SECRET": KEY,
        "PYTHONPATH": found,
    }


@pytest.mark.parametrize(("point", "copies"), [("converse:stored", 1), ("respond:taken", 1), ("respond:given", 2)])
async def test_a_reply_survives(point: str, copies: int, environment: dict[str, str], store: Store) -> None:
    port, shown = free_port(), list[str]()
    async with gateway_process(port, environment | {"MENTEE_KILL_AT": point}) as process:
        with contextlib.suppress(aiohttp.ClientError):  # it is killed before or after it answers
            shown += await Parrot(f"http://127.0.0.1:{port}").say("ann", "What is tea?", "7")
        assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL
    async with store.begin() as tx:  # as the time would
        await tx.execute(text("update outbox set lease_until = now() where state = 'sending'"))
        await tx.execute(text("update inbox set lease_until = now() where state = 'claimed'"))
    async with gateway_process(port, environment):
        again = await Parrot(f"http://127.0.0.1:{port}").say("ann", "What is tea?", "7")
        assert await Parrot(f"http://127.0.0.1:{port}").say("ann", "What is tea?", "7") == again
    assert "You said: What is tea?" in again
    assert (shown + again).count(
        "You said: What is tea?"
    ) == copies  # an answer without a receipt is the one second copy
    async with store.begin() as tx:
        assert await tx.scalar(text("select count(*) from turns")) == 1
        assert await tx.scalar(text("select count(*) from outbox where state <> 'sent'")) == 0
