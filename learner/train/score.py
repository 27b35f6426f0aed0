"""`python -m learner.train.score DIR`: how likely given replies are, with and without an adapter; for gates.

In a process of its own rather than on the model server: there, prompt logprobs in a batch with adapter requests end
vLLM's CPU engine. DIR/score.json holds token ids (never texts); DIR/scores.json gets nats per token, one a row.
"""

import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import ArtifactError, InvalidInputError, MenteeError
from learner.dataset.manifest import canonical
from learner.durable import is_full, unwritten, write_durably

if TYPE_CHECKING:
    from learner.train.model import Policy

INPUT, OUTPUT = "score.json", "scores.json"
EXIT_FAILED, EXIT_FULL = 1, 3
_ROWS_A_BATCH = 8
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A prompt and a reply to it; `adapter` says whether the adapter is on."""

    prompt_token_ids: tuple[int, ...]
    reply_token_ids: tuple[int, ...]
    adapter: bool


@dataclass(frozen=True, slots=True)
class ScoreJob:
    """What to score, and with what."""

    model_dir: Path
    checkpoint_dir: Path
    rows: tuple[ScoreRow, ...]
    threads: int = 2
    niceness: int = 19
    device: str = "cpu"


def write_score_job(directory: Path, job: ScoreJob) -> None:
    """Lay down the input.

    Raises:
        StorageFullError: the disk is full.
        ArtifactError: it is not writable.
    """
    data = asdict(job) | {"model_dir": str(job.model_dir), "checkpoint_dir": str(job.checkpoint_dir)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / OUTPUT).unlink(missing_ok=True)
        write_durably(directory / INPUT, canonical(data))
    except OSError as error:
        raise unwritten(error, "what is to be scored could not be written") from error


def read_scores(directory: Path) -> tuple[float, ...]:
    """Return the mean logprob of each row's reply, nats per token.

    Raises:
        ArtifactError: there is no readable result.
    """
    try:
        return tuple(float(score) for score in json.loads((directory / OUTPUT).read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise ArtifactError("the adapter could not be scored") from error


def main(arguments: list[str]) -> int:
    """Score what the directory given asks for; 0 if it worked, `EXIT_FULL` if space for the result was missing."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    directory = Path(arguments[0])
    try:
        job = _read(directory)
        write_durably(directory / OUTPUT, canonical(_score(job)))
    except (MenteeError, OSError) as error:
        _log.error("gate:score:failed kind=%s", type(error).__name__)
        return EXIT_FULL if isinstance(error, OSError) and is_full(error) else EXIT_FAILED
    finally:
        (directory / INPUT).unlink(missing_ok=True)
    return 0


def _read(directory: Path) -> ScoreJob:
    try:
        data = json.loads((directory / INPUT).read_bytes())
        rows = tuple(
            ScoreRow(tuple(r["prompt_token_ids"]), tuple(r["reply_token_ids"]), r["adapter"]) for r in data["rows"]
        )
        paths = {name: Path(data[name]) for name in ("model_dir", "checkpoint_dir")}
        return ScoreJob(**{**data, **paths, "rows": rows})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{INPUT} is malformed") from error


def _score(job: ScoreJob) -> list[float]:
    """Score every row; results in the order of the rows."""
    os.setpriority(os.PRIO_PROCESS, 0, job.niceness)
    import torch  # noqa: PLC0415  # only this process pays for it

    from learner.train.model import Policy  # noqa: PLC0415

    torch.set_num_threads(job.threads)
    policy = Policy.restore(job.model_dir, job.checkpoint_dir, job.device)
    scores = [0.0] * len(job.rows)
    for adapter in (False, True):
        chosen = [i for i, row in enumerate(job.rows) if row.adapter is adapter and row.reply_token_ids]
        for start in range(0, len(chosen), _ROWS_A_BATCH):
            part = chosen[start : start + _ROWS_A_BATCH]
            for index, mean in zip(part, _means(policy, [job.rows[i] for i in part]), strict=True):
                scores[index] = mean
    return scores


def _means(policy: "Policy", rows: Sequence[ScoreRow]) -> list[float]:
    """Return each row's mean logprob; all rows agree on whether the adapter is on."""
    import torch  # noqa: PLC0415  # only this process pays for it

    from learner.algo.masked import sampled_logprobs  # noqa: PLC0415
    from learner.train.batch import collate  # noqa: PLC0415

    batch = collate([r.prompt_token_ids for r in rows], [r.reply_token_ids for r in rows], policy.device)
    with nullcontext() if rows[0].adapter else policy.without_adapter(), torch.no_grad():
        logprobs_BT = sampled_logprobs(policy.response_logits(batch), batch.response_BT)
    mask_BT = batch.response_mask_BT
    means: list[float] = ((logprobs_BT * mask_BT).sum(-1) / mask_BT.sum(-1)).tolist()
    return means


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
