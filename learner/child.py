"""Processes that the learner starts: in a session of their own, without this installation's secrets, gone with their worker.

The kernel kills one when its worker dies, so that two never write into one folder. Knows not what they compute.
"""

import asyncio
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
_PR_SET_PDEATHSIG = 1
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV")


async def start(
    module: str, folder: Path, log: IO[bytes] | None = None, python_path: Path = ROOT
) -> asyncio.subprocess.Process:
    """Run `python -m module folder`; what it prints goes to `log`, or where this process prints."""
    libc = ctypes.CDLL(None)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        str(folder),
        cwd=python_path,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        # No Python work in the child before exec: one system call, its function looked up before the fork.
        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
    )


def environment() -> dict[str, str]:
    """Return an environment without the addresses and secrets of this installation: a child needs none."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ} | {"PYTHONUNBUFFERED": "1"}
