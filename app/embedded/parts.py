"""What an embedded part is: a command, a check that it really answers, and how it is asked to stop.

Knows nothing of any particular part and nothing of the order in which they start (`supervisor.py`).
"""

import ctypes
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = "127.0.0.1"
PR_SET_PDEATHSIG = 1


def _nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a process is started."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the environment of the supervisor; never printed, it holds passwords."""
    uid: int | None = None
    gid: int | None = None
    cwd: Path | None = None
    nice: int = 0
    """How far others of this machine come first (`nice`)."""


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the embedded form."""

    name: str
    command: Callable[[], Command]
    ready: Callable[[], Awaitable[bool]]
    """Asks the part itself; False while it does not answer yet."""
    prepare: Callable[[], None] = _nothing
    """One-time work before the start (create a cluster, convert a model); runs in a thread."""
    stop_signal: signal.Signals = signal.SIGTERM
    start_timeout_s: float = 60.0
    stop_timeout_s: float = 20.0
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Home:
    """Folders in which the embedded parts keep their things."""

    root: Path

    @property
    def run(self) -> Path:
        """Pid files and generated secrets; only the owner may look in."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """One log per part."""
        return self.root / "logs"

    @property
    def models(self) -> Path:
        """Base models, converted or downloaded."""
        return self.root / "models"

    def create(self) -> None:
        """Make the folders."""
        for folder in (self.root, self.run, self.logs, self.models):
            folder.mkdir(parents=True, exist_ok=True)
        self.run.chmod(0o700)


def write_private(path: Path, text: str) -> None:
    """Write `text` so that only the owner can read it, replacing what was there in one step."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def port_is_free(port: int) -> bool:
    """Whether a server could listen on `port` of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def die_with_parent(stop_signal: signal.Signals) -> Callable[[], None]:
    """Return a function for the child: the kernel sends it `stop_signal` when its parent is gone, even after kill -9."""
    libc = ctypes.CDLL(None, use_errno=True)

    def apply() -> None:
        libc.prctl(PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)

    return apply
