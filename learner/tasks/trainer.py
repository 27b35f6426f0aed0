"""The training process as its parent sees it: started in its own process group at low priority, watched, stopped.

The kernel kills it when its worker dies, so that two never write into one run folder. Knows no database.
"""

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.errors import TrainingStoppedError
from learner.train import job as files

SILENT_S = 600.0
STOP_S = 90.0
KILL_S = 10.0
LOG = "train.log"
_PR_SET_PDEATHSIG = 1


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
    """Start the training in `run_dir`; whatever happens, it is gone afterwards and so are the texts."""
    libc = ctypes.CDLL(None)
    log = (run_dir / LOG).open("ab")
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "learner.train.process",
            str(run_dir),
            cwd=python_path,
            env=_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            # No Python work in the child before exec: one system call, its function looked up before the fork.
            preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
        )
        running = Trainer(process, run_dir)
        try:
            yield running
        finally:
            await asyncio.shield(running.kill())
    finally:
        log.close()
        (run_dir / files.BODIES).unlink(missing_ok=True)


def _environment() -> dict[str, str]:
    """Return an environment without the addresses and secrets of this installation: the trainer needs none."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"PYTHONUNBUFFERED": "1"}
