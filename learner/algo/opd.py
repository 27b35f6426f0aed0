"""On-policy distillation: the student is drawn to a teacher that sees the lesson, on the student's own tokens.

(1 - f)·KL(student‖teacher) + f·KL(teacher‖student), f the forward share (generalised knowledge distillation, arXiv
2306.13649). Reverse KL alone cannot find a word that the student never says: its gradient at a token is p_s times
something, and p_s is 0 there. Measured on one lesson ("end with …") of the bundled model: 0.17 of held-out replies after
8 updates with f = 0, 0.88 with f = 1, which in turn sharpened less afterwards (0.96 against 0.92 after 12).

Three forms: the full vocabulary; the likeliest k plus one tail bin (SDPO, arXiv 2601.20802); and the sampled token's
log-ratio as a clipped advantage, reverse only, for servers that give no distributions.
Shapes: B sequences, T response positions, V vocabulary, K support. Tensors in, tensors out.
"""

import torch
from torch import Tensor

from learner.algo.masked import masked_mean

_TAIL_CEILING = -1e-7  # keeps log(1 - p) finite where the support holds all the mass


def kl_full(
    student_logits_BTV: Tensor,
    teacher_logits_BTV: Tensor,
    mask_BT: Tensor,
    forward: float = 0.0,
    count: Tensor | None = None,
) -> Tensor:
    """Return (1 - f)·KL(s‖t) + f·KL(t‖s), averaged over the masked tokens (or over `count`); scalar, nats.

    The teacher is detached. All-masked input gives 0 with zero gradients.
    """
    student = torch.log_softmax(_quiet(student_logits_BTV, mask_BT), -1)
    teacher = torch.log_softmax(_quiet(teacher_logits_BTV.detach(), mask_BT), -1)
    return masked_mean(_both_ways(student, teacher, forward), mask_BT, count)


def kl_top_k(  # the loss of `kl_full` and the size of its support
    student_logits_BTV: Tensor,
    teacher_logits_BTV: Tensor,
    mask_BT: Tensor,
    k: int = 20,
    forward: float = 0.0,
    count: Tensor | None = None,
) -> Tensor:
    """Return the loss over the k likeliest tokens of (1 - f)·p_s + f·p_t and one bin for all the rest; scalar, nats.

    With f = 0 these are the student's own. A lower bound of `kl_full`, equal to it where they hold all the mass.
    """
    student = torch.log_softmax(_quiet(student_logits_BTV, mask_BT), -1)
    teacher = torch.log_softmax(_quiet(teacher_logits_BTV.detach(), mask_BT), -1)
    mixture_BTV = (1 - forward) * student.detach().exp() + forward * teacher.exp()
    support_BTK = mixture_BTV.topk(min(k, student.shape[-1]), -1).indices
    s_bins, t_bins = _with_tail(student.gather(-1, support_BTK)), _with_tail(teacher.gather(-1, support_BTK))
    return masked_mean(_both_ways(s_bins, t_bins, forward), mask_BT, count)


def sampled_advantage(
    teacher_logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor, clip: float = 5.0
) -> Tensor:
    """Return A_t = clip(q - o, ±clip), detached, (B, T); 0 where masked, so a turn without a hint has no term."""
    advantage = (teacher_logprobs_BT - old_logprobs_BT).detach().clamp(-clip, clip)
    return torch.where(mask_BT.bool(), advantage, torch.zeros_like(advantage))


def _both_ways(student_BTX: Tensor, teacher_BTX: Tensor, forward: float) -> Tensor:
    reverse = (student_BTX.exp() * (student_BTX - teacher_BTX)).sum(-1)
    if not forward:
        return reverse
    return (1 - forward) * reverse + forward * (teacher_BTX.exp() * (teacher_BTX - student_BTX)).sum(-1)


def _quiet(logits_BTV: Tensor, mask_BT: Tensor) -> Tensor:
    """Zero the logits of masked positions: what padding computes must not turn a gradient into NaN."""
    return torch.where(mask_BT.bool().unsqueeze(-1), logits_BTV, torch.zeros_like(logits_BTV))


def _with_tail(logprobs_BTK: Tensor) -> Tensor:
    mass = torch.logsumexp(logprobs_BTK, -1, keepdim=True).clamp(max=_TAIL_CEILING)
    return torch.cat([logprobs_BTK, torch.log(-torch.expm1(mass))], -1)
