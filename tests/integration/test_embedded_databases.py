"""The embedded PostgreSQL and Valkey, really started: passwords hold, kill -9 loses nothing, secrets stay private."""

import asyncio
import io
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError

from app.embedded import postgres, valkey
from app.embedded.console import Console
from app.embedded.messages import Texts
from app.embedded.parts import Home, free_port
from app.embedded.process import log_path
from app.embedded.supervisor import Supervisor
from app.errors import PartError


@pytest.fixture
def home() -> Iterator[Home]:
    # Not under pytest's own folder, which other sessions close to PostgreSQL's account while this one runs.
    with tempfile.TemporaryDirectory(prefix="mentee-home-") as folder:
        made = Home(Path(folder) / "var")
        made.create()
        yield made


@pytest.fixture
async def supervisor(home: Home) -> AsyncIterator[Supervisor]:
    made = Supervisor(home, Console(Texts("en"), home.run / "durations.json", io.StringIO()))
    yield made
    await made.stop()


async def _once(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url, timeout=5)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_postgres_keeps_what_was_written_through_kill_and_stop(home: Home, supervisor: Supervisor) -> None:
    port = free_port()
    part = postgres.part(home, port)
    await supervisor.start(part)
    url = postgres.url(home, port)
    await _once(url, "CREATE TABLE kept AS SELECT 'ü 한글'::text AS words")

    lock = home.root / "postgres" / "postmaster.pid"
    os.kill(int(lock.read_text(encoding="utf-8").splitlines()[0]), signal.SIGKILL)
    while await postgres.answers(url):
        await asyncio.sleep(0.05)
    async with asyncio.timeout(30):
        while not await postgres.answers(url):
            await asyncio.sleep(0.1)
    assert await _once(url, "SELECT upper(words) FROM kept") == "Ü 한글"

    await supervisor.stop()
    assert not lock.exists()
    # A lock file that names a process of somebody else, as after a reboot.
    lock.write_text(f"{os.getpid()}\n{home.root / 'postgres'}\n", encoding="utf-8")
    await supervisor.start(part)
    assert await _once(url, "SELECT count(*) FROM kept") == 1


async def test_postgres_lets_in_the_role_with_its_password_only(home: Home, supervisor: Supervisor) -> None:
    port = free_port()
    await supervisor.start(postgres.part(home, port))
    url = postgres.url(home, port)
    password = url.split(":")[2].split("@")[0]
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(url.replace(password, "guess"), timeout=5)
    with pytest.raises(asyncpg.PostgresError):
        await asyncpg.connect(url.replace("mentee:", "postgres:"), timeout=5)
    assert await _once(url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
    await _once(url, "CREATE DATABASE another")


async def test_postgres_does_not_write_values_into_its_log(home: Home, supervisor: Supervisor) -> None:
    port = free_port()
    await supervisor.start(postgres.part(home, port))
    connection = await asyncpg.connect(postgres.url(home, port), timeout=5)
    await connection.execute("CREATE TABLE once (words text PRIMARY KEY)")
    await connection.execute("INSERT INTO once VALUES ('planted-in-a-row')")
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute("INSERT INTO once VALUES ($1)", "planted-in-a-row")
    with pytest.raises(asyncpg.PostgresError):
        await connection.execute("SELECT 'planted-in-a-statement'::int")
    await connection.close()
    await supervisor.stop()
    log = log_path(home, "postgres").read_text(encoding="utf-8")
    assert "shut down" in log
    assert "planted" not in log


async def test_valkey_asks_for_its_password(home: Home, supervisor: Supervisor) -> None:
    port = free_port()
    await supervisor.start(valkey.part(home, port))
    assert await valkey.answers(valkey.url(home, port))
    stranger = Redis(host="127.0.0.1", port=port)
    with pytest.raises(AuthenticationError):
        await stranger.ping()
    await stranger.aclose()


async def test_passwords_are_private_and_on_no_command_line(home: Home, supervisor: Supervisor) -> None:
    await supervisor.start(postgres.part(home, free_port()))
    await supervisor.start(valkey.part(home, free_port()))
    kept = [home.run / "postgres-password", home.run / "valkey-password", home.run / "valkey.conf"]
    assert [oct(path.stat().st_mode & 0o777) for path in kept] == ["0o600"] * 3
    assert home.run.stat().st_mode & 0o777 == 0o700
    secrets = [path.read_text(encoding="utf-8") for path in kept[:2]]
    for name in ("postgres", "valkey"):
        pid = (home.run / f"{name}.pid").read_text(encoding="utf-8").split(":")[1].split(",")[0].strip()
        line = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
        assert not [secret for secret in secrets if secret in line]


async def test_an_address_before_the_first_start_is_a_sentence(home: Home) -> None:
    with pytest.raises(PartError, match="make run"):
        postgres.url(home, 1)
    with pytest.raises(PartError, match="make run"):
        valkey.url(home, 1)
