"""`mentee bench install`: from an empty clone of this checkout to the first reply, installation included.

What a newcomer does: clone, `make run`, open the web chat, ask. The clone is made with git (what is not committed is not
measured) into a temporary folder that is removed afterwards; packages are fetched anew, pip's cache is not used. Takes
minutes and gigabytes.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.bench.figures import Figure, Wanted
from app.bench.streaming import Page, opened
from app.demo.installation import ROOT, callers_settings
from app.domain.profiles import DEFAULT_PROFILE
from app.embedded import vllm, workers
from app.embedded.parts import LOOPBACK, die_with_parent, free_port
from app.errors import MenteeError, PartError

INSTALL = Wanted("install", 480.0, unit="s")
LIMIT_S = 3600.0
STOP_TIMEOUT_S = 90.0
POLL_S = 1.0
PORTS = ("MENTEE_PORT", "VLLM_PORT", "POSTGRES_PORT", "VALKEY_PORT")
QUESTION = "What is a lighthouse?"


@dataclass(frozen=True, slots=True)
class Clone:
    """A checkout in which `make run` is under way: where, on which ports, since when (by the monotonic clock)."""

    folder: Path
    ports: Mapping[str, int]
    process: asyncio.subprocess.Process
    began: float

    @property
    def url(self) -> str:
        """Where its gateway will answer."""
        return f"http://{LOOPBACK}:{self.ports['MENTEE_PORT']}"

    @property
    def log(self) -> Path:
        """What `make run` said."""
        return self.folder.with_suffix(".log")

    @property
    def seconds(self) -> float:
        """Seconds since `make run` was typed."""
        return time.monotonic() - self.began

    def still(self) -> None:
        """See that it is under way.

        Raises:
            PartError: it ended, or took too long; the message holds its last line.
        """
        if self.process.returncode is None and self.seconds < LIMIT_S:
            return
        lines = [line for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()]
        raise PartError(f"make run did not come up in {self.seconds:.0f} s: {lines[-1] if lines else 'no message'}")


async def install() -> Figure:
    """Measure it once; a figure without a value, with the reason, where it did not come up."""
    try:
        async with made(ROOT) as clone:
            return await _measured(clone)
    except (MenteeError, OSError, TimeoutError) as error:
        return INSTALL.figure(None, 0, {"error": f"{type(error).__name__}: {error}"})


async def _measured(clone: Clone) -> Figure:
    stages: dict[str, object] = {}
    while not await workers.gateway_answers(f"{clone.url}/readyz"):
        clone.still()
        await asyncio.sleep(POLL_S)
    stages["gateway_s"] = clone.seconds
    while not await vllm.answers(vllm.url(clone.ports["VLLM_PORT"]), DEFAULT_PROFILE):
        clone.still()
        await asyncio.sleep(POLL_S)
    stages["model_s"] = clone.seconds
    page: Page = await opened(clone.url)
    try:
        reply = await page.ask(QUESTION)
    finally:
        await page.close()
    # The end of the reply, by the clock that began with `make run`.
    seconds = clone.seconds - (time.perf_counter() - reply.last)
    stages |= {"first_token_s": reply.first_s, "python": sys.version.split()[0], "gigabytes": _gigabytes(clone.folder)}
    return INSTALL.figure(seconds, 1, stages)


@asynccontextmanager
async def made(checkout: Path) -> AsyncIterator[Clone]:
    """Clone `checkout` and type `make run` in it; at the end stop it and remove everything.

    Raises:
        PartError: it cannot be cloned.
    """
    root = Path(tempfile.mkdtemp(prefix="mentee-install-"))
    try:
        folder = root / "mentee"
        await _git("clone", "--quiet", str(checkout), str(folder))
        ports = {name: free_port() for name in PORTS}
        process = await _make_run(folder, ports)
        try:
            yield Clone(folder, ports, process, time.monotonic())
        finally:
            await asyncio.shield(_stop(process))
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _git(*arguments: str) -> None:
    git = await asyncio.create_subprocess_exec("git", *arguments, stderr=asyncio.subprocess.PIPE)
    _, said = await git.communicate()
    if git.returncode:
        raise PartError(f"git {arguments[0]}: {(said.decode(errors='replace').strip().splitlines() or ['failed'])[-1]}")


async def _make_run(folder: Path, ports: Mapping[str, int]) -> asyncio.subprocess.Process:
    """Start it as a shell would: a process group of its own, which a Ctrl-C reaches as a whole."""
    given = {"LANGUAGE": "en", "PIP_NO_CACHE_DIR": "1", **{name: str(port) for name, port in ports.items()}}
    with folder.with_suffix(".log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *("make", "run"),
            cwd=folder,
            env={**_plain_environment(), **given},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )


def _plain_environment() -> dict[str, str]:
    """Return the environment without settings of ours and without what a virtual environment or another make put there."""
    ours = callers_settings() | {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    inside = str(Path(sys.prefix) / "bin")
    path = os.pathsep.join(part for part in os.environ.get("PATH", "").split(os.pathsep) if part != inside)
    return {name: value for name, value in os.environ.items() if name not in ours} | {"PATH": path}


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Press Ctrl-C, insist after its time is over. The parts have groups of their own and end with their supervisor."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            return


def _gigabytes(folder: Path) -> float:
    return round(sum(f.lstat().st_size for f in folder.rglob("*") if not f.is_dir()) / 1e9, 2)
