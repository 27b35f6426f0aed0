"""Sums over masked tokens; every loss here divides by its own count of tokens.

Shapes: B sequences, T response positions, V vocabulary, K support.
"""

import torch
from torch import Tensor


def token_count(mask_BT: Tensor) -> Tensor:
    """Return the number of tokens that count, as a scalar of at least one, so that an empty mask divides by one."""
    return mask_BT.sum().clamp(min=1)


def masked_sum(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the sum of `values_BT` where the mask is set; masked values may be NaN or infinite."""
    return torch.where(mask_BT.bool(), values_BT, torch.zeros_like(values_BT)).sum()


def masked_mean(values_BT: Tensor, mask_BT: Tensor, count: Tensor | None = None) -> Tensor:
    """Return the masked sum over `count` tokens (default: those of this mask); 0 for an empty mask."""
    return masked_sum(values_BT, mask_BT) / (token_count(mask_BT) if count is None else count)


def sampled_logprobs(logits_BTV: Tensor, tokens_BT: Tensor) -> Tensor:
    """Return log π of each sampled token, (B, T), in nats."""
    return torch.log_softmax(logits_BTV, -1).gather(-1, tokens_BT.unsqueeze(-1)).squeeze(-1)
