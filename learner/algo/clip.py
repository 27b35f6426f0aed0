"""The clipped policy loss with three policies: current l, start of update o, behaviour b.

w·max(-ρA, -clip(ρ, 1-low, 1+high)·A), ρ = exp(l - o), w = min(exp(o - b), cap) detached; for A < 0 the term is
capped at c·|A| (dual clip). Clip-higher as in DAPO, truncated importance sampling as in verl and slime.
Shapes: B sequences, T response positions. Tensors in, tensors out.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from learner.algo.masked import masked_mean

_LOG_RATIO_LIMIT = 20.0  # exp(20) is far outside every clip and far inside float32


class ClipBounds(NamedTuple):
    """How far a token's probability may move in one update, and how stale a sample may count."""

    low: float = 0.2
    high: float = 0.28
    dual: float = 3.0
    weight_cap: float = 2.0


DEFAULT_BOUNDS = ClipBounds()


def importance_weights(old_BT: Tensor, behaviour_BT: Tensor, cap: float = 2.0) -> Tensor:
    """Return w = min(exp(o - b), cap), detached, (B, T)."""
    return (old_BT - behaviour_BT).detach().clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT).exp().clamp(max=cap)


def clipped_policy_loss(
    logprobs_BT: Tensor,
    old_BT: Tensor,
    behaviour_BT: Tensor,
    advantages_BT: Tensor,
    mask_BT: Tensor,
    bounds: ClipBounds = DEFAULT_BOUNDS,
) -> Tensor:
    """Return the clipped loss averaged over the masked tokens; scalar; 0 for an empty mask.

    All but `logprobs_BT` are detached. A sample whose behaviour logprobs are unknown belongs outside the mask.
    """
    keep = mask_BT.bool()
    quiet = [torch.where(keep, t, torch.zeros_like(t)) for t in (logprobs_BT, old_BT, behaviour_BT, advantages_BT)]
    current, old, behaviour, advantage = quiet[0], *(t.detach() for t in quiet[1:])
    ratio = (current - old).clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT).exp()
    loss = torch.maximum(-ratio * advantage, -ratio.clamp(1 - bounds.low, 1 + bounds.high) * advantage)
    loss = torch.where(advantage < 0, torch.minimum(loss, -bounds.dual * advantage), loss)
    return masked_mean(importance_weights(old, behaviour, bounds.weight_cap) * loss, mask_BT)
