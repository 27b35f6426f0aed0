"""The gates' doors: a `GateModel` on the `Model` port, the client that chats use, and a `Scorer` in a process."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from app.domain.prompt import ChatMessage as PromptMessage
from app.errors import GateDelayedError, GateError, StorageFullError
from app.ports import Model, Sampling
from learner import child
from learner.gate.measure import Messages, Reply
from learner.train.score import EXIT_FULL, ScoreJob, ScoreRow, read_scores, write_score_job

PRIORITY = 10  # vLLM serves smaller numbers first: chats come before gates


class ServedGateModel:
    """Asks one model server; `salt` keeps the gate's prefix cache apart from everybody's.

    What is asked again gets another salt: a prefix computed in a quiet pass must not stand in for one computed while
    the candidate is served, or the isolation gate would compare the quiet pass with itself.
    """

    def __init__(self, model: Model, salt: str) -> None:
        self._model = model
        self._salt = salt
        self._asked: Counter[tuple[str, Messages]] = Counter()

    async def generate(self, messages: Messages, model_name: str, max_tokens: int, temperature: float = 0.0) -> Reply:
        prompt = [PromptMessage(role=m.role, content=m.content) for m in messages]
        sampling = Sampling(temperature=temperature, max_tokens=max_tokens, priority=PRIORITY)
        before = self._asked[model_name, messages]
        self._asked[model_name, messages] += 1
        done = await self._model.complete(model_name, prompt, sampling, salt=f"{self._salt}-{before}")
        if not done.prompt_token_ids or not done.token_ids:
            raise GateDelayedError("the model server returned no token ids, so positions cannot be compared")
        return Reply(done.text, done.prompt_token_ids, done.token_ids)


class ProcessScorer:
    """A `Scorer` in a process of its own, at low priority, killed after `timeout_s` and with its worker."""

    def __init__(self, model_dir: Path, checkpoint_dir: Path, work_dir: Path, timeout_s: float = 1800.0) -> None:
        self._model_dir = model_dir
        self._checkpoint_dir = checkpoint_dir
        self._work_dir = work_dir
        self._timeout_s = timeout_s

    async def score(self, rows: Sequence[ScoreRow]) -> Sequence[float]:
        write_score_job(self._work_dir, ScoreJob(self._model_dir, self._checkpoint_dir, tuple(rows)))
        process = await child.start("learner.train.score", self._work_dir)
        try:
            code = await asyncio.wait_for(process.wait(), self._timeout_s)
        except TimeoutError as error:
            raise GateDelayedError("scoring the candidate took too long") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if code == EXIT_FULL:
            raise StorageFullError
        if code < 0:  # killed: by the machine that had no memory left, or by whoever stops it
            raise GateDelayedError("scoring the candidate was cut off")
        if code:
            raise GateError("the candidate could not be scored")
        return read_scores(self._work_dir)
