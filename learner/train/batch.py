"""Ragged token ids to tensors: prompts padded on the left, responses on the right, padding 0 and masked.

So every response starts in the same column, and positions count from each row's own first token: the positions
the server used. Shapes: B sequences, P prompt columns, T response columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

PAD = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences side by side; `response_mask_BT` marks the tokens that were really there."""

    ids_BS: Tensor
    attention_BS: Tensor
    positions_BS: Tensor
    response_BT: Tensor
    response_mask_BT: Tensor


def collate(prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], device: str = "cpu") -> Batch:
    """Return the batch of prompt + response, S = P + T columns."""
    width_p, width_t = max(map(len, prompts)), max(map(len, responses))
    left = [[PAD] * (width_p - len(p)) + list(p) for p in prompts]
    left_mask = [[0] * (width_p - len(p)) + [1] * len(p) for p in prompts]
    right = [list(r) + [PAD] * (width_t - len(r)) for r in responses]
    right_mask = [[1] * len(r) + [0] * (width_t - len(r)) for r in responses]
    response_BT = torch.tensor(right, dtype=torch.long, device=device).reshape(len(prompts), width_t)
    mask_BT = torch.tensor(right_mask, dtype=torch.long, device=device).reshape(len(prompts), width_t)
    ids_BS = torch.cat([torch.tensor(left, dtype=torch.long, device=device), response_BT], 1)
    attention_BS = torch.cat([torch.tensor(left_mask, dtype=torch.long, device=device), mask_BT], 1)
    return Batch(ids_BS, attention_BS, positions(attention_BS), response_BT, mask_BT)


def positions(attention_BS: Tensor) -> Tensor:
    """Return each token's place in its own row, counting from 0 at the first token that is not padding."""
    return (attention_BS.cumsum(-1) - 1).clamp(min=0)
