"""The isolation probe: what keeps people apart passes, what mixes them up is refused, and the reason is kept."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from app.clients.vllm import VllmClient
from app.domain.turn import BaseIdentity as StoredIdentity
from app.errors import ModelBadAnswerError, ModelUnavailableError, StorageFullError
from app.ports import ServedModel
from app.services.release import base_served
from app.store import Store, Tx
from learner.serve.probe import ProbeBase, ProbeReport, probe_names, probe_server, write_marked_adapter
from learner.serve.reconcile import Reconciler
from learner.tasks.context import Learner
from tests.fakes.model import ModelServer
from tests.fakes.model.faults import Slow
from tests.fakes.model.replies import Call
from tests.support.lessons import MODEL, base_folder, learner_on
from tests.support.small_disk import may_mount, small_folder

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_WRITE = """
import sys
from pathlib import Path
from learner.serve.probe import write_marked_adapter
write_marked_adapter(Path(sys.argv[1]), Path(sys.argv[2]), 11)
"""


def by_model(call: Call) -> str:
    """Answer so that each model's replies are its own."""
    return f"{call.model} says: {call.last_user}"


async def probe(server: ModelServer, folder: Path) -> ProbeReport:
    client = VllmClient(server.url)
    try:
        return await probe_server(client, ProbeBase(MODEL, base_folder(folder / "base")), folder / "probes")
    finally:
        await client.close()


async def test_a_server_that_keeps_models_apart_passes(model: ModelServer, tmp_path: Path) -> None:
    model.reply_with(by_model)
    report = await probe(model, tmp_path)
    assert report.passed
    assert report.compared == 24
    assert set(model.adapters.loaded) == set(probe_names(ProbeBase(MODEL, tmp_path / "base")))


async def test_base_requests_answered_with_an_adapter_s_weights_are_noticed(model: ModelServer, tmp_path: Path) -> None:
    def mixed_up(call: Call) -> str:
        # As vLLM with one adapter slot: whoever shares a batch with an adapter gets the adapter.
        others = [name for name in model.adapters.loaded if model.running > 1]
        return by_model(Call(others[0] if others and call.model == MODEL else call.model, call.messages))

    model.pace = Slow(first_token_s=0.05)
    model.reply_with(mixed_up)
    report = await probe(model, tmp_path)
    assert report.reason == "answered_with_another"
    assert report.like_other >= 4


async def test_a_server_that_ignores_adapters_is_noticed(model: ModelServer, tmp_path: Path) -> None:
    model.reply_with(lambda call: call.last_user)
    assert (await probe(model, tmp_path)).reason == "same_replies"


async def test_a_server_that_cannot_load_is_noticed(model: ModelServer, tmp_path: Path) -> None:
    model.reply_with(by_model)
    model.adapters.max_rank = 2
    report = await probe(model, tmp_path)
    assert not report.passed


async def test_a_server_that_is_away_is_not_judged(tmp_path: Path) -> None:
    async with ModelServer(name=MODEL) as gone:
        url = gone.url
    client = VllmClient(url)
    try:
        with pytest.raises(ModelUnavailableError):
            await probe_server(client, ProbeBase(MODEL, base_folder(tmp_path / "base")), tmp_path)
    finally:
        await client.close()


async def test_probe_adapters_repeat_themselves(tmp_path: Path) -> None:
    base = base_folder(tmp_path / "base")
    one, two = write_marked_adapter(tmp_path / "1", base, 11), write_marked_adapter(tmp_path / "2", base, 11)
    other = write_marked_adapter(tmp_path / "3", base, 29)
    weights = [(d / "adapter_model.safetensors").read_bytes() for d in (one, two, other)]
    assert weights[0] == weights[1]
    assert weights[0] != weights[2]


def emptied(folder: Path) -> None:
    (folder / CONFIG).write_bytes(b"")


def cut(folder: Path) -> None:
    (folder / CONFIG).write_bytes((folder / CONFIG).read_bytes()[:40])


def without_weights(folder: Path) -> None:
    (folder / WEIGHTS).unlink()


def with_half_the_weights(folder: Path) -> None:
    os.truncate(folder / WEIGHTS, (folder / WEIGHTS).stat().st_size // 2)


@pytest.mark.parametrize("spoil", [emptied, cut, without_weights, with_half_the_weights])
async def test_a_half_written_probe_adapter_is_written_anew(
    model: ModelServer, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    model.reply_with(by_model)
    base = base_folder(tmp_path / "base")
    for name in probe_names(ProbeBase(MODEL, base)):
        spoil(write_marked_adapter(tmp_path / "probes" / name, base, 11))
    client = VllmClient(model.url)
    report = await probe_server(client, ProbeBase(MODEL, base), tmp_path / "probes")
    await client.close()
    assert report.reason == "ok"


def test_a_probe_adapter_whose_writer_is_killed_is_not_there(tmp_path: Path) -> None:
    base, folder = base_folder(tmp_path / "base"), tmp_path / "probes" / "a"
    killed = subprocess.run(
        [sys.executable, "-c", _WRITE, str(folder), str(base)],
        env=os.environ | {"MENTEE_KILL_AT": "folder:filled"},
        timeout=60,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not folder.exists()
    assert {f.name for f in write_marked_adapter(folder, base, 11).iterdir()} == {CONFIG, WEIGHTS}


async def server_row(store: Store) -> tuple[str, dict[str, object]]:
    async with store.begin() as tx:
        row = (await tx.execute(text("select probe_state, probe_detail from model_servers"))).one()
    return row.probe_state, row.probe_detail


async def reconciled(learner: Learner) -> None:
    assert await learner.reconciler.once()


async def test_a_server_is_probed_at_its_start_and_after_each_restart(
    store: Store, model: ModelServer, tmp_path: Path
) -> None:
    model.reply_with(by_model)
    async with learner_on(store, model.url, tmp_path, base_folder(tmp_path / "base")) as learner:
        await reconciled(learner)
        assert (await server_row(store))[0] == "passed"
        asked = len(model.calls)
        await reconciled(learner)
        assert len(model.calls) == asked
        model.adapters.loaded.clear()  # what a restart does
        await reconciled(learner)
        assert len(model.calls) > asked
        assert (await server_row(store))[0] == "passed"


async def test_a_server_that_failed_says_why_and_is_not_asked_again_until_it_restarts(
    store: Store, model: ModelServer, tmp_path: Path
) -> None:
    model.reply_with(lambda call: call.last_user)
    async with learner_on(store, model.url, tmp_path, base_folder(tmp_path / "base")) as learner:
        await reconciled(learner)
        state, detail = await server_row(store)
        assert (state, detail["reason"]) == ("failed", "same_replies")
        asked = len(model.calls)
        await reconciled(learner)
        assert len(model.calls) == asked


@asynccontextmanager
async def reconciling(reconciler: Reconciler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Reconcile in quick rounds until the block ends."""
    monkeypatch.setattr("learner.serve.reconcile.EVERY_S", 0.05)
    running = asyncio.create_task(reconciler.run())
    try:
        yield
        assert not running.done()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def eventually(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
async def test_a_probe_that_has_no_room_is_made_as_soon_as_there_is(
    store: Store, model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model.reply_with(by_model)

    async def passed() -> bool:
        async with store.begin() as tx:
            return await tx.scalar(text("select probe_state from model_servers")) == "passed"

    async def said() -> bool:
        return any(r.exc_info and r.exc_info[0] is StorageFullError for r in caplog.records)

    async with learner_on(store, model.url, tmp_path / "home", base_folder(tmp_path / "base")) as learner:
        with small_folder(learner.places.probes, kib=4) as disk:
            async with reconciling(learner.reconciler, monkeypatch):
                await eventually(said)
                assert not await passed()
                assert list(disk.path.iterdir()) == []
                disk.grow(kib=1024)
                await eventually(passed)


async def test_a_round_that_fails_for_an_unforeseen_reason_is_not_the_last(
    store: Store, model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.reply_with(by_model)
    rounds = 0

    async def served(tx: Tx, base: StoredIdentity) -> int:
        nonlocal rounds
        rounds += 1
        return 1 // (rounds - 1) * 0 + await base_served(tx, base)

    async with learner_on(store, model.url, tmp_path / "home", base_folder(tmp_path / "base")) as learner:
        reconciler = Reconciler(store, learner.fleet, learner.places, served)

        async def passed() -> bool:
            async with store.begin() as tx:
                return await tx.scalar(text("select probe_state from model_servers")) == "passed"

        async with reconciling(reconciler, monkeypatch):
            await eventually(passed)
    assert rounds >= 2


async def test_a_server_that_answers_nonsense_does_not_hold_up_the_others(
    store: Store, model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.reply_with(by_model)
    async with learner_on(store, model.url, tmp_path, base_folder(tmp_path / "base")) as learner:
        broken = VllmClient("http://127.0.0.1:1")

        async def nonsense() -> Sequence[ServedModel]:
            raise ModelBadAnswerError

        monkeypatch.setattr(broken, "models", nonsense)
        fleet = replace(learner.fleet, models={"http://broken": broken, **learner.fleet.models})
        assert await Reconciler(store, fleet, learner.places, base_served).once()
        await broken.close()
    assert (await server_row(store))[0] == "passed"
