"""On-policy distillation: reverse KL of the student to a teacher that sees the lesson, on the student's own tokens.

Three forms: the full vocabulary; the student's top-k plus one tail bin (Hinton-style support of SDPO, arXiv
2601.20802); and the sampled token's log-ratio as a clipped advantage, for servers that give no distributions.
Shapes: B sequences, T response positions, V vocabulary, K support. Tensors in, tensors out.
"""

import torch
from torch import Tensor

from learner.algo.masked import masked_mean

_TAIL_CEILING = -1e-7  # keeps log(1 - p) finite where the support holds all the mass


def reverse_kl_full(
    student_logits_BTV: Tensor, teacher_logits_BTV: Tensor, mask_BT: Tensor, count: Tensor | None = None
) -> Tensor:
    """Return Σ_v p_s (log p_s - log p_t), averaged over the masked tokens (or over `count`); scalar, nats.

    The teacher is detached. All-masked input gives 0 with zero gradients.
    """
    student = torch.log_softmax(_quiet(student_logits_BTV, mask_BT), -1)
    teacher = torch.log_softmax(_quiet(teacher_logits_BTV.detach(), mask_BT), -1)
    return masked_mean((student.exp() * (student - teacher)).sum(-1), mask_BT, count)


def reverse_kl_top_k(
    student_logits_BTV: Tensor, teacher_logits_BTV: Tensor, mask_BT: Tensor, k: int = 20, count: Tensor | None = None
) -> Tensor:
    """Return the reverse KL over the student's k likeliest tokens and one bin for all the rest; scalar, nats.

    A lower bound of `reverse_kl_full`, equal to it where the k tokens hold all the mass.
    """
    student = torch.log_softmax(_quiet(student_logits_BTV, mask_BT), -1)
    teacher = torch.log_softmax(_quiet(teacher_logits_BTV.detach(), mask_BT), -1)
    support_BTK = student.detach().topk(min(k, student.shape[-1]), -1).indices
    s_bins, t_bins = _with_tail(student.gather(-1, support_BTK)), _with_tail(teacher.gather(-1, support_BTK))
    return masked_mean((s_bins.exp() * (s_bins - t_bins)).sum(-1), mask_BT, count)


def sampled_advantage(
    teacher_logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor, clip: float = 5.0
) -> Tensor:
    """Return A_t = clip(q - o, ±clip), detached, (B, T); 0 where masked, so a turn without a hint has no term."""
    advantage = (teacher_logprobs_BT - old_logprobs_BT).detach().clamp(-clip, clip)
    return torch.where(mask_BT.bool(), advantage, torch.zeros_like(advantage))


def _quiet(logits_BTV: Tensor, mask_BT: Tensor) -> Tensor:
    """Zero the logits of masked positions: what padding computes must not turn a gradient into NaN."""
    return torch.where(mask_BT.bool().unsqueeze(-1), logits_BTV, torch.zeros_like(logits_BTV))


def _with_tail(logprobs_BTK: Tensor) -> Tensor:
    mass = torch.logsumexp(logprobs_BTK, -1, keepdim=True).clamp(max=_TAIL_CEILING)
    return torch.cat([logprobs_BTK, torch.log(-torch.expm1(mass))], -1)
