"""KL to the reference on sampled tokens: Schulman's k3, corrected for tokens the current policy did not draw.

d = l - f; k3 = exp(-d) - 1 + d >= 0. Multiplied by exp(l - o), with gradient, it is unbiased off-policy
(DeepSeek-V3.2). Shapes: B sequences, T response positions. Tensors in, tensors out.
"""

import torch
from torch import Tensor

from learner.algo.masked import masked_mean

_DIFFERENCE_LIMIT = 20.0
_K3_LIMIT = 10.0


def k3(logprobs_BT: Tensor, reference_BT: Tensor) -> Tensor:
    """Return the estimate per token, (B, T), nats; the difference is clamped to ±20 and the result to 10."""
    difference = (logprobs_BT - reference_BT.detach()).clamp(-_DIFFERENCE_LIMIT, _DIFFERENCE_LIMIT)
    return (torch.expm1(-difference) + difference).clamp(max=_K3_LIMIT)


def kl_to_reference(logprobs_BT: Tensor, old_BT: Tensor, reference_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return mean exp(l - o)·k3 over the masked tokens; scalar, nats; 0 for an empty mask."""
    keep = mask_BT.bool()
    current, old, reference = (torch.where(keep, t, torch.zeros_like(t)) for t in (logprobs_BT, old_BT, reference_BT))
    ratio = (current - old.detach()).clamp(-_DIFFERENCE_LIMIT, _DIFFERENCE_LIMIT).exp()
    return masked_mean(ratio * k3(current, reference), mask_BT)
