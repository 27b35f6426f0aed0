"""Files and folders that survive a crash: written whole, fsynced, renamed. Knows nothing of what is in them."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import ArtifactError, MenteeError, StorageFullError
from app.failpoints import reach

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_durably(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or none, also after a power cut.

    Raises:
        OSError: the disk is full or not writable; nothing is left under `path`.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def is_full(error: OSError) -> bool:
    """Whether space is what was missing, so that the same may work later."""
    return error.errno in _FULL


def unwritten(error: OSError, what: str) -> MenteeError:
    """Return what to raise when `what` failed: a full disk says nothing against the thing that was to be written."""
    if is_full(error):
        return StorageFullError(f"{what}: the disk is full; free some space, and it goes on by itself")
    return ArtifactError(f"{what}: {error.strerror}")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, without waiting for the disk; for heartbeats."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def appearing(directory: Path) -> Iterator[Path]:
    """Yield a hidden folder to fill; at the end of the block it stands at `directory`, whole, also after a power cut.

    Raises:
        OSError: the disk is full or not writable, or a folder with something in it stands there; nothing is left.
    """
    # Machines that share a disk may have processes of one number, so the number alone names no writer.
    hidden = directory.with_name(f".{directory.name}.{os.getpid()}-{secrets.token_hex(4)}")
    directory.parent.mkdir(parents=True, exist_ok=True)
    hidden.mkdir()
    try:
        yield hidden
        fsync_directory(hidden)
        reach("folder:filled")
        rename_durably(hidden, directory)
    finally:
        discard(hidden)


def fsync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename_durably(source: Path, target: Path) -> None:
    """Rename a directory into place and make the new name durable."""
    source.rename(target)
    fsync_directory(target.parent)


def discard(path: Path) -> None:
    """Remove a directory tree if it is there; another process may be at it too."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
    elif path.exists():
        _remove_tree(path)


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:  # somebody else removed a part of it first
        if path.exists():
            shutil.rmtree(path)
