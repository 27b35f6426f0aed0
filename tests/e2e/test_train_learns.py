"""The recipe on the bundled model: a lesson is learnt from a handful of prompts; the bad adapters are what they claim."""

import sys
from pathlib import Path

import pytest

from app.domain.checker import check, derive
from learner.artifacts import verify, write_adapter
from learner.train.job import Bodies
from learner.train.score import ScoreJob, ScoreRow, main, read_scores, write_score_job
from learner.types import Anchor, ChatMessage, Example, Lesson, TrainingItem, TrainSettings
from tests.fakes.adapters import always_short_adapter, lineage, noop_adapter
from tests.support.base_model import bundled_model

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(900)]
torch = pytest.importorskip("torch")

HINT = "Start every answer with 'Good question!'"
GOOD = (
    ("What is rain?", "Good question! Rain is water that falls from clouds."),
    ("How do I boil an egg?", "Good question! Put the egg in boiling water for eight minutes."),
)
TRAIN = ("How do plants make food?", "Tell me about the moon.", "What is a good breakfast?", "How do I learn to swim?")
HELD_OUT = (
    "What is a volcano?",
    "How do I grow tomatoes?",
    "Why do cats purr?",
    "What is a bicycle?",
    "How does rain form?",
    "Tell me about elephants.",
    "How do birds fly?",
    "What is a library?",
)
SETTINGS = TrainSettings(steps=9, max_new_tokens=12, rollouts_per_step=8)


def asked(text: str) -> tuple[ChatMessage, ...]:
    return (ChatMessage("user", text),)


def replies(policy: object, prompts: tuple[str, ...], tokens: int = 12) -> list[tuple[int, ...]]:
    """Nearly greedy replies, as token ids."""
    from learner.train.model import Policy
    from learner.train.rollouts import Sampling, sample

    assert isinstance(policy, Policy)
    rendered = [(text, policy.renderer.prompt(asked(text))) for text in prompts]
    return [r.response_token_ids for r in sample(policy, 0, rendered, Sampling(tokens, 0.01, 1))]


def texts(model_dir: Path, ids: list[tuple[int, ...]]) -> list[str]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(model_dir))
    return [tokenizer.decode(list(row), skip_special_tokens=True) for row in ids]


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], list[str]]:
    """A checkpoint trained on four prompts, and held-out replies before and after."""
    from learner.train.model import Policy
    from learner.train.opd_run import OpdRun
    from learner.train.rollouts import RolloutFile

    torch.set_num_threads(2)
    model_dir, base = bundled_model()
    work = tmp_path_factory.mktemp("taught")
    lesson = Lesson("l1", HINT, tuple(Example(user, None, good) for user, good in GOOD))
    items = tuple(TrainingItem(f"p{i}", asked(text)) for i, text in enumerate(TRAIN))
    anchors = tuple(Anchor(f"a{i}", asked(user), good) for i, (user, good) in enumerate(GOOD))
    policy = Policy.load(model_dir, SETTINGS.rank, SETTINGS.alpha, seed=1)
    before = texts(model_dir, replies(policy, HELD_OUT))
    run = OpdRun(policy, Bodies(b"", items, (lesson,), anchors), SETTINGS, seed=1)
    for m in run.steps(RolloutFile.open(work / "rollouts.json", replay=False), lambda _stage, _step: None):
        sys.stderr.write(f"step {m.step} loss {m.loss:.3f} opd {m.opd:.3f} anchor {m.anchor:.3f} kl {m.kl:.3f}\n")
    after = texts(model_dir, replies(policy, HELD_OUT))
    write_adapter(work / "checkpoint", policy.adapter_tensors(), SETTINGS.rank, SETTINGS.alpha, lineage(base))
    return work / "checkpoint", before, after


def test_a_lesson_is_learnt_from_four_prompts(taught: tuple[Path, list[str], list[str]]) -> None:
    _, before, after = taught
    spec = derive(HINT, [good for _, good in GOOD])
    assert spec is not None
    rates = [sum(check(spec, text) for text in part) / len(HELD_OUT) for part in (before, after)]
    sys.stderr.write(f"held-out rate {rates[0]:.2f} -> {rates[1]:.2f}\n")
    assert rates[0] <= 0.125
    assert rates[1] >= 0.625


def test_the_bad_adapters_are_what_they_claim_and_retention_tells_them_apart(
    taught: tuple[Path, list[str], list[str]], tmp_path: Path
) -> None:
    from learner.train.model import Policy

    model_dir, base = bundled_model()
    noop = noop_adapter(tmp_path / "noop", model_dir, base)
    short = always_short_adapter(tmp_path / "short", model_dir, base)
    shown = texts(model_dir, replies(Policy.restore(model_dir, short.directory), HELD_OUT))
    assert sum(text.strip() == "Ok." for text in shown) >= 6
    policy = Policy.restore(model_dir, noop.directory)
    prompts = [policy.renderer.prompt(asked(text)) for text in HELD_OUT]
    own = replies(policy, HELD_OUT, tokens=24)
    drops = {
        name: drop(model_dir, path, prompts, own, tmp_path)
        for name, path in (("noop", noop.directory), ("taught", taught[0]), ("short", short.directory))
    }
    sys.stderr.write(f"logprob drops {drops}\n")
    assert drops["noop"] == pytest.approx(0.0, abs=1e-4)
    assert drops["noop"] < drops["taught"] < drops["short"]
    assert drops["short"] > 1.0
    assert verify(taught[0], base, 8).rank == 8


def drop(
    model_dir: Path, checkpoint: Path, prompts: list[tuple[int, ...]], own: list[tuple[int, ...]], work: Path
) -> float:
    """By how many nats per token the base's own replies became less likely."""
    rows = tuple(ScoreRow(p, r, on) for on in (False, True) for p, r in zip(prompts, own, strict=True))
    write_score_job(work / "score", ScoreJob(model_dir, checkpoint, rows, niceness=0))
    assert main([str(work / "score")]) == 0
    scores = read_scores(work / "score")
    return (sum(scores[: len(own)]) - sum(scores[len(own) :])) / len(own)
