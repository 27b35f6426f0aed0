"""Training positions are serving positions: recompute what the server stored, and stop if it differs."""

from collections.abc import Sequence

import torch

from app.errors import TrainingStoppedError
from learner.algo.masked import sampled_logprobs
from learner.train.batch import collate
from learner.train.model import Policy
from learner.types import ServedTurn

TOLERANCE = 1e-4  # nats, mean |Δ| in float32; measured 7e-6


def check_serving_positions(policy: Policy, turns: Sequence[ServedTurn], tolerance: float = TOLERANCE) -> float:
    """Recompute the stored logprobs of turns served by the bare base; return the mean |Δ| (0.0 without turns).

    Turns without logprobs, as of a server that gives none, are left out rather than padded.

    Raises:
        TrainingStoppedError: lengths differ, a rendered prompt is not the served one, or the mean is above tolerance.
    """
    usable = [turn for turn in turns if turn.logprobs]
    for turn in usable:
        _check_tokens(policy, turn)
    differences = [d for turn in usable for d in _differences(policy, turn)]
    mean = sum(differences) / len(differences) if differences else 0.0
    if not mean <= tolerance:  # NaN is above every tolerance
        raise TrainingStoppedError(
            f"recomputed logprobs differ from the served ones by {mean:.1e} on average (at most {tolerance:.0e}): "
            "the trainer's base or positions are not the server's"
        )
    return mean


def _check_tokens(policy: Policy, turn: ServedTurn) -> None:
    if len(turn.logprobs) != len(turn.response_token_ids):
        raise TrainingStoppedError("a served reply has not one logprob a token")
    if turn.messages and policy.renderer.prompt(turn.messages) != turn.prompt_token_ids:
        raise TrainingStoppedError("the trainer renders a served prompt to other tokens than the server did")


def _differences(policy: Policy, turn: ServedTurn) -> list[float]:
    batch = collate([turn.prompt_token_ids], [turn.response_token_ids], policy.device)
    with policy.without_adapter():
        logits_BTV = policy.response_logits(batch) / turn.temperature
        recomputed = sampled_logprobs(logits_BTV, batch.response_BT)[0]
    stored = torch.tensor(turn.logprobs, dtype=recomputed.dtype, device=recomputed.device)
    differences: list[float] = (recomputed - stored).abs().tolist()
    return differences
