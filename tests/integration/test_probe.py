"""The isolation probe: what keeps people apart passes, what mixes them up is refused, and the reason is kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from app.clients.vllm import VllmClient
from app.errors import ModelBadAnswerError, ModelUnavailableError
from app.ports import ServedModel
from app.services.release import base_served
from app.store import Store
from learner.serve.probe import ProbeBase, ProbeReport, probe_names, probe_server, write_marked_adapter
from learner.serve.reconcile import Reconciler
from learner.tasks.context import Learner
from tests.fakes.model import ModelServer
from tests.fakes.model.faults import Slow
from tests.fakes.model.replies import Call
from tests.support.lessons import MODEL, base_folder, learner_on


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
