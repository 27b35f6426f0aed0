"""One child process of the supervisor: its own group, its log, its pid file, and an end that leaves nobody behind.

Knows nothing of readiness or restarts.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil

from app.embedded.parts import Command, Home, Part, die_with_parent, write_private

KEPT_LOGS = 3
KILL_TIMEOUT_S = 10


class Child:
    """A running part."""

    def __init__(self, part: Part, process: asyncio.subprocess.Process, pid_file: Path) -> None:
        self.part = part
        self._process = process
        self._pid_file = pid_file
        self._swept = False

    @classmethod
    async def start(cls, part: Part, home: Home) -> "Child":
        """Start the part with its output going to its log.

        Raises:
            OSError: the program cannot be run, or the disk is full; then nothing runs.
        """
        command = part.command()
        with log_path(home, part.name).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                env={**os.environ, **command.env},
                cwd=command.cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_born(part, command),
                user=command.uid,
                group=command.gid,
                extra_groups=None if command.uid is None else [],
            )
        pid_file = home.run / f"{part.name}.pid"
        try:
            _write_pid(pid_file, process.pid)
        except OSError:
            # Named in no list and no file, nobody would ever stop it, and its successor would find its port taken.
            kill_group(process.pid)
            await process.wait()
            raise
        return cls(part, process, pid_file)

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for the end; return the exit code."""
        code = await self._process.wait()
        if not self._swept:
            # Once only: later the number may belong to somebody else's group.
            kill_group(self.pid)
            self._pid_file.unlink(missing_ok=True)
            self._swept = True
        return code

    async def stop(self) -> None:
        """Ask it to stop, insist after its time is over, and sweep up what it started."""
        if self.returncode is None:
            self._process.send_signal(self.part.stop_signal)
            try:
                await asyncio.wait_for(self._process.wait(), self.part.stop_timeout_s)
            except TimeoutError:
                kill_group(self.pid)
        await self.wait()


def _born(part: Part, command: Command) -> Callable[[], None]:
    """Return what the child does before it becomes the part."""
    bound = die_with_parent(part.stop_signal)

    def apply() -> None:
        bound()
        os.nice(command.nice)

    return apply


def log_path(home: Home, name: str) -> Path:
    """Return where the part called `name` writes its log."""
    return home.logs / f"{name}.log"


def rotate_log(home: Home, name: str) -> None:
    """Move the logs of earlier runs one place on; the oldest goes."""
    current = log_path(home, name)
    for number in range(KEPT_LOGS, 0, -1):
        older = current.with_suffix(f".log.{number}")
        newer = current if number == 1 else current.with_suffix(f".log.{number - 1}")
        if newer.exists():
            newer.replace(older)


def last_line(home: Home, name: str) -> str:
    """Return the last line of a part's log that is not empty."""
    try:
        tail = log_path(home, name).read_bytes()[-4096:].decode("utf-8", "replace")
    except OSError:
        return "–"
    return next((line.strip() for line in reversed(tail.splitlines()) if line.strip()), "–")


def kill_group(pid: int) -> None:
    """End at once whatever is left of the process group `pid`."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def end_leftovers(home: Home) -> None:
    """End what a run that was killed has left; a pid that now belongs to another program is not touched."""
    for pid_file in home.run.glob("*.pid"):
        process = _recorded(pid_file)
        if process is not None:
            process.terminate()
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(KILL_TIMEOUT_S)
            kill_group(process.pid)
        pid_file.unlink(missing_ok=True)


def _write_pid(pid_file: Path, pid: int) -> None:
    try:
        born = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return
    write_private(pid_file, json.dumps({"pid": pid, "born": born}))


def _recorded(pid_file: Path) -> psutil.Process | None:
    try:
        record = json.loads(pid_file.read_text(encoding="utf-8"))
        process = psutil.Process(record["pid"])
        same = abs(process.create_time() - record["born"]) < 1
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return None
    return process if same else None
