"""Fresh replies by the current student, and the file that keeps them.

Sampling is seeded by (seed, step), so a run repeats itself and a resumed run, which replays the file, goes on as
if it had never stopped. Top_p 1, no penalties: the stored logprobs are those of the policy itself.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import DynamicCache

from app.errors import ArtifactError, TrainingStoppedError
from learner.dataset.manifest import canonical
from learner.durable import unwritten, write_durably
from learner.train.batch import PAD, collate, positions
from learner.train.model import Policy

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled reply: ids and behaviour logprobs (nats), equally long; `finished` if it ended its turn."""

    step: int
    item_id: str
    prompt_token_ids: tuple[int, ...]
    response_token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finished: bool


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are drawn."""

    max_new_tokens: int
    temperature: float
    seed: int


def sample(
    policy: Policy, step: int, prompts: Sequence[tuple[str, tuple[int, ...]]], sampling: Sampling
) -> list[Rollout]:
    """Draw one reply for each (item id, prompt ids), in one left-padded batch.

    Raises:
        TrainingStoppedError: the student's weights are no numbers any more.
    """
    generator = torch.Generator(policy.device).manual_seed(_step_seed(sampling.seed, step))
    batch = collate([ids for _, ids in prompts], [()] * len(prompts), policy.device)
    tokens_BT, logprobs_BT = _decode(policy, batch.ids_BS, batch.attention_BS, sampling, generator)
    return [
        _cut(step, item_id, ids, tokens, logprobs, policy.renderer.end_ids)
        for (item_id, ids), tokens, logprobs in zip(prompts, tokens_BT.tolist(), logprobs_BT.tolist(), strict=True)
    ]


@torch.no_grad()
def _decode(
    policy: Policy, ids_BS: Tensor, attention_BS: Tensor, sampling: Sampling, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    cache = DynamicCache()
    ends = torch.tensor(policy.renderer.end_ids, device=policy.device)
    done_B = torch.zeros(len(ids_BS), dtype=torch.bool, device=policy.device)
    tokens: list[Tensor] = []
    logprobs: list[Tensor] = []
    step_ids, step_positions = ids_BS, positions(attention_BS)
    while len(tokens) < sampling.max_new_tokens and not bool(done_B.all()):
        out = policy.model(
            input_ids=step_ids,
            attention_mask=attention_BS,
            position_ids=step_positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        scores_BV = torch.log_softmax(out.logits[:, -1] / sampling.temperature, -1)
        if bool(scores_BV.isnan().any()):
            raise TrainingStoppedError("the student's next token is not a number any more; nothing was saved")
        drawn_B1 = torch.multinomial(scores_BV.exp(), 1, generator=generator)
        logprobs.append(scores_BV.gather(-1, drawn_B1))
        step_ids = torch.where(done_B.unsqueeze(-1), PAD, drawn_B1)
        tokens.append(step_ids)
        done_B = done_B | torch.isin(drawn_B1.squeeze(-1), ends)
        attention_BS = torch.cat([attention_BS, torch.ones_like(drawn_B1)], 1)
        step_positions = attention_BS.sum(-1, keepdim=True) - 1
    return torch.cat(tokens, 1), torch.cat(logprobs, 1)


def _cut(
    step: int, item_id: str, prompt: tuple[int, ...], tokens: list[int], logprobs: list[float], ends: tuple[int, ...]
) -> Rollout:
    """Keep a row up to and with its first end of turn; a row cut by length has none to learn."""
    length = next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))
    finished = tokens[length - 1] in ends
    return Rollout(step, item_id, prompt, tuple(tokens[:length]), tuple(logprobs[:length]), finished)


def _step_seed(seed: int, step: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{step}".encode()).digest()[:8], "big") >> 1


class RolloutFile:
    """The rollouts of a run on disk: appended step by step, replayed when resumed, hashed at the end."""

    def __init__(self, path: Path, steps: list[list[Rollout]]) -> None:
        self._path = path
        self._steps = steps

    @classmethod
    def open(cls, path: Path, *, replay: bool) -> "RolloutFile":
        """Start a file, or with `replay` take up the one that is there.

        Raises:
            ArtifactError: the file to replay is malformed.
        """
        if not replay or not path.exists():
            return cls(path, [])
        try:
            data = json.loads(path.read_bytes())
            if data["format"] != FORMAT:
                raise ArtifactError("the rollouts are of another format")
            return cls(path, [[_rollout(row) for row in step] for step in data["steps"]])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError("the rollouts cannot be read") from error

    def step(self, number: int) -> list[Rollout] | None:
        """Return the stored rollouts of a step (from 0), if it was drawn before."""
        return self._steps[number] if number < len(self._steps) else None

    def append(self, rollouts: list[Rollout]) -> None:
        """Add the next step's rollouts and store them.

        Raises:
            StorageFullError: the disk is full; the steps before stay as they were.
            ArtifactError: it is not writable.
        """
        self._steps.append(rollouts)
        try:
            write_durably(self._path, self._bytes())
        except OSError as error:
            raise unwritten(error, "the rollouts could not be saved") from error

    def digest(self) -> str:
        """Return the SHA-256 (hex) of the file's content."""
        return hashlib.sha256(self._bytes()).hexdigest()

    def __len__(self) -> int:
        return sum(len(step) for step in self._steps)

    def _bytes(self) -> bytes:
        return canonical({"format": FORMAT, "steps": [[asdict(row) for row in step] for step in self._steps]})


def _rollout(row: dict[str, object]) -> Rollout:
    ids, replies, logprobs = row["prompt_token_ids"], row["response_token_ids"], row["logprobs"]
    if not (isinstance(ids, list) and isinstance(replies, list) and isinstance(logprobs, list)):
        raise ArtifactError("the rollouts cannot be read")
    if len(replies) != len(logprobs) or not replies:
        raise ArtifactError("a rollout has not one logprob a token")
    return Rollout(
        int(str(row["step"])), str(row["item_id"]), tuple(ids), tuple(replies), tuple(logprobs), bool(row["finished"])
    )
