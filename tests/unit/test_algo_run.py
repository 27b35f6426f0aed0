"""The distillation loop on a tiny base: positions, micro-batches, forms of the loss, learning."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import TrainingStoppedError
from learner.train.job import Bodies
from learner.types import ChatMessage, ServedTurn, TrainSettings
from tests.fakes.tiny_base import ANCHORS, ITEMS, LESSONS, SALT, SETTINGS, make_tiny_base, make_tiny_seeing_base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
torch = pytest.importorskip("torch")

BODIES = Bodies(SALT, ITEMS, LESSONS, ANCHORS)


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_base(tmp_path_factory.mktemp("tiny"))


def policy_of(model_dir: Path):  # noqa: ANN201  # imports torch's half lazily
    from learner.train.model import Policy

    torch.set_num_threads(1)
    return Policy.load(model_dir, 2, 4, seed=1)


def losses(model_dir: Path, tmp_path: Path, settings: TrainSettings, bodies: Bodies = BODIES) -> list[float]:
    from learner.train.opd_run import OpdRun
    from learner.train.rollouts import RolloutFile

    run = OpdRun(policy_of(model_dir), bodies, settings, seed=1)
    file = RolloutFile.open(tmp_path / "rollouts.json", replay=False)
    return [m.opd for m in run.steps(file, lambda _stage, _step: None)]


def test_a_padded_batch_says_what_each_row_says_alone(model_dir: Path) -> None:
    from learner.algo.masked import sampled_logprobs
    from learner.train.batch import collate

    policy = policy_of(model_dir)
    prompts, replies = [[1, 9, 8, 7, 6], [1, 5], [4]], [[10, 11], [12, 13, 14], [15]]
    with torch.no_grad():
        batch = collate(prompts, replies)
        together = sampled_logprobs(policy.response_logits(batch), batch.response_BT)
        for row, (prompt, reply) in enumerate(zip(prompts, replies, strict=True)):
            alone = collate([prompt], [reply])
            expected = sampled_logprobs(policy.response_logits(alone), alone.response_BT)[0]
            assert torch.allclose(together[row, : len(reply)], expected, atol=1e-5)


def test_a_base_that_sees_is_taught_by_words_alone(tmp_path: Path) -> None:
    """Its adapter has the names that servers and gates know, on the layers of its words and on nothing that it sees with."""
    from learner.adapter_form import KEY
    from learner.serve.probe import shapes

    folder = make_tiny_seeing_base(tmp_path / "base")
    test_a_padded_batch_says_what_each_row_says_alone(folder)
    tensors = policy_of(folder).adapter_tensors()
    assert all(KEY.fullmatch(name) for name in tensors)
    modules = {name.removeprefix("base_model.model.").partition(".lora_")[0] for name in tensors}
    assert modules == set(shapes(folder))
    for name, tensor in tensors.items():
        inward, outward = shapes(folder)[name.removeprefix("base_model.model.").partition(".lora_")[0]]
        assert tensor.shape == ((2, inward) if ".lora_A." in name else (outward, 2))
    first, *_, last = losses(folder, tmp_path, replace(SETTINGS, steps=6))
    assert last < first


def test_sampled_logprobs_are_those_of_a_plain_forward_pass(model_dir: Path) -> None:
    from learner.train.positions import check_serving_positions
    from learner.train.rollouts import Sampling, sample

    policy = policy_of(model_dir)  # a fresh adapter is the base: B is zero
    prompts = [("a", policy.renderer.prompt(ITEMS[0].messages)), ("b", (5, 6))]
    drawn = sample(policy, 0, prompts, Sampling(12, 0.7, 1))
    turns = [ServedTurn(r.prompt_token_ids, r.response_token_ids, r.logprobs, 0.7) for r in drawn]
    assert check_serving_positions(policy, turns) <= 1e-5
    assert sample(policy, 0, prompts, Sampling(12, 0.7, 1)) == drawn
    assert sample(policy, 1, prompts, Sampling(12, 0.7, 1)) != drawn


def test_positions_are_checked_in_every_way(model_dir: Path) -> None:
    from learner.train.positions import check_serving_positions

    policy = policy_of(model_dir)
    served = policy.renderer.prompt((ChatMessage("user", "hi"),))
    assert check_serving_positions(policy, []) == 0.0
    assert check_serving_positions(policy, [ServedTurn(served, (5,), ())]) == 0.0
    for bad in (
        ServedTurn(served, (5, 6), (-1.0,)),
        ServedTurn((1, *served), (5,), (-1.0,), messages=(ChatMessage("user", "hi"),)),
        ServedTurn(served, (5,), (float("nan"),)),
        ServedTurn(served, (5,), (0.0,)),
    ):
        with pytest.raises(TrainingStoppedError):
            check_serving_positions(policy, [bad])


def test_micro_batches_change_nothing(model_dir: Path, tmp_path: Path) -> None:
    whole = losses(model_dir, tmp_path, replace(SETTINGS, micro_batch=4))
    parts = losses(model_dir, tmp_path, replace(SETTINGS, micro_batch=3))
    assert parts == pytest.approx(whole, rel=1e-3)


@pytest.mark.parametrize("support", ["full", "top_k", "sampled"])
def test_every_form_of_the_loss_trains(model_dir: Path, tmp_path: Path, support: str) -> None:
    found = losses(model_dir, tmp_path, replace(SETTINGS, support=support, kl_weight=0.1))
    assert len(found) == 3
    assert len(set(found)) == 3


def test_distillation_comes_nearer_to_the_teacher(model_dir: Path, tmp_path: Path) -> None:
    settings = replace(
        SETTINGS, steps=40, rollouts_per_step=8, max_new_tokens=12, learning_rate=2e-2, anchor_weight=0.0
    )
    found = losses(model_dir, tmp_path, settings)
    assert sum(found[-4:]) < 0.7 * sum(found[:4])


def test_nothing_to_learn_from_is_a_sentence(model_dir: Path, tmp_path: Path) -> None:
    for bodies, settings in (
        (replace(BODIES, lessons=()), SETTINGS),
        (replace(BODIES, items=()), SETTINGS),
        (BODIES, replace(SETTINGS, max_prompt_tokens=3)),
        (replace(BODIES, anchors=(replace(ANCHORS[0], reply=""),)), SETTINGS),
    ):
        with pytest.raises(TrainingStoppedError):
            losses(model_dir, tmp_path, settings, bodies)


def test_a_second_training_in_one_process_really_changes(model_dir: Path, tmp_path: Path) -> None:
    from learner.train.opd_run import OpdRun
    from learner.train.rollouts import RolloutFile

    tensors = []
    for seed in (1, 2):
        policy = policy_of(model_dir)
        run = OpdRun(policy, BODIES, SETTINGS, seed)
        assert len(list(run.steps(RolloutFile.open(tmp_path / "r.json", replay=False), lambda _a, _b: None))) == 3
        tensors.append(policy.adapter_tensors())
    moved = [name for name in tensors[0] if "lora_B" in name and abs(tensors[0][name]).max() > 0]
    assert moved
    assert any((tensors[0][name] != tensors[1][name]).any() for name in moved)


def test_frozen_weights_stay_frozen(model_dir: Path, tmp_path: Path) -> None:
    from learner.train.opd_run import OpdRun
    from learner.train.rollouts import RolloutFile

    policy = policy_of(model_dir)
    frozen = {n: p.detach().clone() for n, p in policy.model.named_parameters() if not p.requires_grad}
    list(
        OpdRun(policy, BODIES, SETTINGS, 1).steps(
            RolloutFile.open(tmp_path / "r.json", replay=False), lambda _a, _b: None
        )
    )
    assert all(torch.equal(frozen[n], p) for n, p in policy.model.named_parameters() if n in frozen)
    assert all("lora_" in n for n, p in policy.model.named_parameters() if p.requires_grad)
