"""The anchor: plain NLL of replies a human wrote or approved, with its own token count.

Shapes: B sequences, T reply positions, V vocabulary. Tensors in, tensors out.
"""

import torch
from torch import Tensor

from learner.algo.masked import masked_mean, sampled_logprobs


def anchor_nll(logits_BTV: Tensor, tokens_BT: Tensor, mask_BT: Tensor, count: Tensor | None = None) -> Tensor:
    """Return -log π(y*_t), averaged over the masked tokens (or over `count`); scalar, nats; 0 for an empty mask."""
    quiet = torch.where(mask_BT.bool().unsqueeze(-1), logits_BTV, torch.zeros_like(logits_BTV))
    return masked_mean(-sampled_logprobs(quiet, tokens_BT), mask_BT, count)
