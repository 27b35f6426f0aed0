"""One on-policy distillation, from the first rollout to the last update.

for each step:  draw replies (or replay them) ─► student, teacher, reference on the same tokens ─► one AdamW update

total = α·L_opd/N_opd + λ·L_anchor/N_anchor + β·KL, each with its own token count. Knows no files but the rollouts'.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from app.errors import TrainingStoppedError
from learner.algo import algorithm
from learner.algo.clip import clipped_policy_loss
from learner.algo.kl import k3, kl_to_reference
from learner.algo.masked import masked_sum, sampled_logprobs
from learner.train.batch import Batch, collate
from learner.train.job import Bodies, Stage
from learner.train.model import Policy
from learner.train.render import fit_teacher
from learner.train.rollouts import Rollout, RolloutFile, Sampling, sample
from learner.types import TrainSettings


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """What one update measured: losses and KL in nats per token, counts in tokens."""

    step: int
    loss: float
    opd: float
    anchor: float
    kl: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """One training prompt as the student and as the teacher see it."""

    item_id: str
    student_ids: tuple[int, ...]
    teacher_ids: tuple[int, ...]
    trimmed: bool = False


Watch = Callable[[Stage, int], None]
T = TypeVar("T")


class OpdRun:
    """Holds the policy, its optimiser and the rendered prompts of one run.

    `trimmed` prompts are taught with fewer examples than there are, `left_out` ones not at all: they were too long.
    """

    def __init__(self, policy: Policy, bodies: Bodies, settings: TrainSettings, seed: int) -> None:
        self._policy = policy
        self._settings = settings
        self._seed = seed
        self._algorithm = algorithm(settings.algorithm)
        self._prompts = _prompts(policy, bodies, settings)
        self.trimmed = sum(prompt.trimmed for prompt in self._prompts)
        self.left_out = len(bodies.items) - len(self._prompts)
        self._by_id = {prompt.item_id: prompt for prompt in self._prompts}
        self._anchors = [(policy.renderer.prompt(a.messages), policy.renderer.reply(a.reply)) for a in bodies.anchors]
        self._optimiser = torch.optim.AdamW(policy.trainable(), lr=settings.learning_rate, weight_decay=0.0)

    def steps(self, rollouts: RolloutFile, watch: Watch) -> Iterator[StepMetrics]:
        """Run all updates, yielding after each; `watch(stage, step)` is called before each part.

        Raises:
            TrainingStoppedError: a loss is not finite, or the student ran away from the base.
            ArtifactError: the rollouts cannot be stored, or those to replay are of other prompts.
        """
        for step in range(self._settings.steps):
            watch("rollouts", step)
            drawn = rollouts.step(step)
            if drawn is None:
                drawn = self._draw(step)
                rollouts.append(drawn)
            watch("updating", step)
            yield self._update(step, drawn)

    def _draw(self, step: int) -> list[Rollout]:
        chosen = _rotation(self._prompts, self._settings.rollouts_per_step, step, self._seed)
        sampling = Sampling(self._settings.max_new_tokens, self._settings.temperature, self._seed)
        return sample(self._policy, step, [(p.item_id, p.student_ids) for p in chosen], sampling)

    def _update(self, step: int, rollouts: list[Rollout]) -> StepMetrics:
        self._optimiser.zero_grad(set_to_none=True)
        tokens = sum(len(r.response_token_ids) for r in rollouts)
        opd = kl = 0.0
        for chunk in _chunks(rollouts, self._settings.micro_batch):
            chunk_opd, chunk_kl = self._backward_opd(chunk, tokens)
            opd, kl = opd + chunk_opd, kl + chunk_kl
        anchor = self._backward_anchors(step)
        s = self._settings
        loss = s.opd_weight * opd + s.anchor_weight * anchor + s.kl_weight * kl
        norm = torch.nn.utils.clip_grad_norm_(self._policy.trainable(), s.grad_clip)
        _check_step(step, loss, float(norm), kl, s.kl_abort)
        self._optimiser.step()
        return StepMetrics(step, loss, opd, anchor, kl, tokens)

    def _backward_opd(self, rollouts: Sequence[Rollout], tokens: int) -> tuple[float, float]:
        """Add the gradients of a micro-batch; return its share of the mean loss and of the mean KL."""
        replies = [r.response_token_ids for r in rollouts]
        student = collate([r.prompt_token_ids for r in rollouts], replies, self._policy.device)
        teacher = collate([self._prompt_of(r).teacher_ids for r in rollouts], replies, self._policy.device)
        with self._policy.without_adapter():
            teacher_BTV = self._logits(teacher)
            reference_BT = sampled_logprobs(self._logits(student), student.response_BT)
        student_BTV = self._logits(student)
        mask_BT, share = student.response_mask_BT, float(student.response_mask_BT.sum()) / tokens
        loss = self._opd_loss(student_BTV, teacher_BTV, student, rollouts) * share
        current_BT = sampled_logprobs(student_BTV, student.response_BT)
        kl = masked_sum(k3(current_BT, reference_BT), mask_BT) / tokens
        penalty = kl_to_reference(current_BT, current_BT.detach(), reference_BT, mask_BT) * share
        (self._settings.opd_weight * loss + self._settings.kl_weight * penalty).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return float(loss.detach()), float(kl.detach())

    def _opd_loss(self, student_BTV: Tensor, teacher_BTV: Tensor, batch: Batch, rollouts: Sequence[Rollout]) -> Tensor:
        """Return the mean over the micro-batch's own tokens; scalar, nats."""
        function, mask_BT = self._algorithm.supports[self._settings.support], batch.response_mask_BT
        if self._settings.support == "full":
            return function(student_BTV, teacher_BTV, mask_BT, self._settings.forward_share)
        if self._settings.support == "top_k":
            return function(student_BTV, teacher_BTV, mask_BT, self._settings.top_k, self._settings.forward_share)
        current_BT = sampled_logprobs(student_BTV, batch.response_BT)
        old_BT, teacher_BT = current_BT.detach(), sampled_logprobs(teacher_BTV, batch.response_BT)
        advantages_BT = function(teacher_BT, old_BT, mask_BT, self._settings.advantage_clip)
        return clipped_policy_loss(current_BT, old_BT, _behaviour(rollouts, batch), advantages_BT, mask_BT)

    def _backward_anchors(self, step: int) -> float:
        if not self._anchors or not self._settings.anchor_weight:
            return 0.0
        chosen = _rotation(self._anchors, min(len(self._anchors), self._settings.anchors_per_step), step, self._seed)
        batch = collate([prompt for prompt, _ in chosen], [reply for _, reply in chosen], self._policy.device)
        logits_BTV = self._policy.response_logits(batch)
        loss = self._algorithm.anchor(logits_BTV, batch.response_BT, batch.response_mask_BT)
        (self._settings.anchor_weight * loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return float(loss.detach())

    def _logits(self, batch: Batch) -> Tensor:
        return self._policy.response_logits(batch) / self._settings.temperature

    def _prompt_of(self, rollout: Rollout) -> Prompt:
        prompt = self._by_id.get(rollout.item_id)
        if prompt is None or prompt.student_ids != rollout.prompt_token_ids:
            raise TrainingStoppedError("the stored rollouts belong to other prompts than this snapshot's")
        return prompt


def _prompts(policy: Policy, bodies: Bodies, settings: TrainSettings) -> list[Prompt]:
    """Render every prompt, with as many examples as the settings have room for; where not one fits it is left out.

    Raises:
        TrainingStoppedError: no lesson to teach, or no prompt that fits.
    """
    if not bodies.lessons:
        raise TrainingStoppedError("the snapshot holds no lesson")
    render = policy.renderer.prompt
    fitting = [
        Prompt(item.id, render(item.messages), teacher.ids, teacher.trimmed)
        for item in bodies.items
        if (teacher := fit_teacher(item.messages, bodies.lessons, render, settings.max_prompt_tokens))
    ]
    if not fitting:
        raise TrainingStoppedError("no prompt of the snapshot fits the trainer's context")
    return sorted(fitting, key=lambda p: p.item_id)


def _rotation(things: Sequence[T], count: int, step: int, seed: int) -> list[T]:
    """Return the next `count` of an endless seeded shuffle, so that every thing is used equally often."""
    start, size = step * count, len(things)
    rounds = range(start // size, (start + count - 1) // size + 1)
    order = [thing for r in rounds for thing in random.Random(f"{seed}:{r}").sample(things, size)]  # noqa: S311  # no secret
    offset = start % size
    return order[offset : offset + count]


def _behaviour(rollouts: Sequence[Rollout], batch: Batch) -> Tensor:
    width = batch.response_BT.shape[1]
    rows = [list(r.logprobs) + [0.0] * (width - len(r.logprobs)) for r in rollouts]
    return torch.tensor(rows, dtype=torch.float32, device=batch.response_BT.device)


def _chunks(rollouts: Sequence[Rollout], size: int) -> Iterator[Sequence[Rollout]]:
    for start in range(0, len(rollouts), size):
        yield rollouts[start : start + size]


def _check_step(step: int, loss: float, norm: float, kl: float, kl_abort: float) -> None:
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise TrainingStoppedError(f"step {step + 1}: the loss is not a number; nothing was saved")
    if kl > kl_abort:
        raise TrainingStoppedError(
            f"step {step + 1}: the student is {kl:.2f} nats from the base (at most {kl_abort:g})"
        )
