"""The training process as its parent sees it: started, watched, stopped. Knows no database."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from app.errors import TrainingStoppedError
from learner import child
from learner.durable import unwritten
from learner.train import job as files

SILENT_S = 600.0
STOP_S = 90.0
KILL_S = 10.0
LOG = "train.log"


class Trainer:
    """One running training process."""

    def __init__(self, process: asyncio.subprocess.Process, run_dir: Path) -> None:
        self._process = process
        self._run_dir = run_dir
        self._last_at = 0.0
        self._last_seen = time.monotonic()

    @property
    def pid(self) -> int:
        """Its process id, which is also its group's."""
        return self._process.pid

    async def ended(self, within_s: float) -> int | None:
        """Wait a moment; return the exit code once it ended."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._process.wait()), within_s)
        except TimeoutError:
            return None

    def progress(self) -> files.Progress | None:
        """Return how far it is.

        Raises:
            TrainingStoppedError: it said nothing for too long.
        """
        found = files.read_progress(self._run_dir)
        if found and found.at != self._last_at:
            self._last_at, self._last_seen = found.at, time.monotonic()
        # By a clock that stands still while the machine sleeps, as the training does.
        if time.monotonic() - self._last_seen > SILENT_S:
            raise TrainingStoppedError(f"the training said nothing for {SILENT_S:.0f} s and was stopped")
        return found

    async def stop(self) -> None:
        """Ask it to end between two steps, then insist; its rollouts stay and can be taken up again."""
        self._signal(signal.SIGTERM)
        if await self.ended(STOP_S) is None:
            await self.kill()

    async def kill(self) -> None:
        """End it and everything it started, now."""
        self._signal(signal.SIGKILL)
        await self.ended(KILL_S)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def trainer(run_dir: Path, python_path: Path) -> AsyncIterator[Trainer]:
    """Start the training in `run_dir`; whatever happens, it is gone afterwards and so are the texts.

    Raises:
        StorageFullError: there is no room for its log.
        ArtifactError: its log cannot be written.
    """
    try:
        with _log(run_dir) as log:
            process = await child.start("learner.train.process", run_dir, log, python_path)
        running = Trainer(process, run_dir)
        try:
            yield running
        finally:
            await _killed(running)
    finally:
        (run_dir / files.BODIES).unlink(missing_ok=True)


async def _killed(running: Trainer) -> None:
    """Kill it and see it gone, also where this is cancelled meanwhile: a lost job is noticed in two places."""
    killing = asyncio.create_task(running.kill())
    try:
        await asyncio.shield(killing)
    except asyncio.CancelledError:
        await killing
        raise


def _log(run_dir: Path) -> IO[bytes]:
    try:
        return (run_dir / LOG).open("ab")
    except OSError as error:
        raise unwritten(error, "the training's log could not be written") from error
