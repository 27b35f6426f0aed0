"""Disks of a few pages or megabytes, for what must survive a full one. They are tmpfs; to mount one takes root.

That of PostgreSQL holds its tables alone, and only the server sees it (a mount namespace of its own): the write-ahead log
lies elsewhere, as PostgreSQL ends itself where that one has no room, which is another fault: the server is away.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tests.support.postgres import migrate, throwaway_postgres

MIB = 40
NAME = "small"
_WEIGH = "insert into ballast select repeat('x', 7000) from generate_series(1, $1::int)"
# Mount, then go on as the account that the server runs under.
_INSIDE = (
    'mount -t tmpfs -o "size=$1,mode=700,uid=$(id -u nobody)" tmpfs "$2" && shift 2 && '
    'exec setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"'
)


def may_mount() -> bool:
    """Whether this process may mount a file system."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None or shutil.which("setpriv") is None:
        return False
    return subprocess.run([unshare, "--mount", "true"], capture_output=True, timeout=10, check=False).returncode == 0


def on_small_disk(folder: Path, *command: str, size: str = "256k") -> tuple[str, ...]:
    """Return the command line that runs `command` where a disk of its own, so small, lies on `folder`."""
    mount = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", mount, "sh", size, str(folder), *command)


@dataclass
class SmallDisk:
    """A migrated database on the small disk."""

    url: str

    async def fill(self) -> None:
        """Leave no page free. What has room in its pages still takes rows, as it is with a full disk."""
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute("create table ballast (weight text)")
            await connection.execute("alter table ballast alter weight set storage plain")
            for rows in (500, 50, 1):
                with suppress(asyncpg.DiskFullError):
                    while True:
                        await connection.execute(_WEIGH, rows)
        finally:
            await connection.close()

    async def free(self) -> None:
        """Make room."""
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute("drop table ballast")
        finally:
            await connection.close()


@contextmanager
def small_disk() -> Iterator[SmallDisk]:
    """Run a server with a migrated database on a small disk until the block ends."""
    mount = Path(tempfile.mkdtemp(prefix="mentee-small-"))
    inside = ("unshare", "--mount", "sh", "-c", _INSIDE, "sh", f"{MIB}m", str(mount))
    try:
        with throwaway_postgres(inside) as server:
            asyncio.run(_lay(server.format("postgres"), mount))
            migrate(server.format(NAME))
            yield SmallDisk(server.format(NAME))
    finally:
        mount.rmdir()


async def _lay(url: str, mount: Path) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"create tablespace disk location '{mount}'")
        await connection.execute(f"create database {NAME} tablespace disk strategy file_copy")
    finally:
        await connection.close()


@dataclass
class SmallFolder:
    """A folder on a disk of its own."""

    path: Path

    def grow(self, kib: int) -> None:
        """Make room."""
        subprocess.run(["mount", "-o", f"remount,size={kib}k", self.path], check=True, timeout=10)  # noqa: S607


@contextmanager
def small_folder(path: Path, kib: int) -> Iterator[SmallFolder]:
    """Put `path` on a disk of `kib` KiB, in pages of 4, until the block ends; what is in it is lost then."""
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", path], check=True, timeout=10)  # noqa: S607
    try:
        yield SmallFolder(path)
    finally:
        subprocess.run(["umount", path], check=True, timeout=10)  # noqa: S607
