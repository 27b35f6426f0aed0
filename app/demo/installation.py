"""What a demonstration runs on: a `mentee run` of its own in a fresh home on free ports, or one that is running already.

Its own one reads no `.env` and none of the caller's settings: the defaults are what is demonstrated, ladder included.
Only the pause between two trainings of one person is taken away. Knows nothing of what is demonstrated.
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

from app import config
from app.config import LadderSettings, Settings
from app.domain.profiles import PROFILES, profile
from app.embedded import model, postgres, valkey, vllm, workers
from app.embedded.parts import LOOPBACK, Home, die_with_parent, free_port
from app.embedded.run import children_environment
from app.errors import MenteeError, PartError, StoreUnavailableError
from app.store import Store, servers

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 1200.0
PROOF_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 90.0
POLL_S = 1.0
LOG = "demo-run.log"
COOLDOWN = {"LADDER_TRAIN_COOLDOWN_S": "0"}


class DemoError(MenteeError):
    """The demonstration cannot go on."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A running Mentee: its address, and how its parts are reached."""

    url: str
    settings: Settings
    home: Path
    store: Store

    @property
    def database_url(self) -> str:
        """The database, password included."""
        given = self.settings.database_url
        return given.get_secret_value() if given else ""

    @property
    def broker_url(self) -> str:
        """The broker, password included."""
        given = self.settings.broker_url
        return given.get_secret_value() if given else ""

    @property
    def model_url(self) -> str:
        """The model server."""
        return self.settings.vllm_base_url or vllm.url(self.settings.vllm_port)

    @property
    def model_dir(self) -> Path:
        """The base's folder. Raises `DemoError` where it is not known."""
        if self.settings.model_dir is None:
            raise DemoError("MODEL_DIR: set it to the folder of the served base")
        return self.settings.model_dir


@asynccontextmanager
async def own(folder: Path | None, more: Mapping[str, str]) -> AsyncIterator[Installation]:
    """Start an installation, stop it at the end; a home that was not named is removed.

    Args:
        folder: where its home shall be; None for a temporary one.
        more: settings beyond the defaults, by their names in `.env.example`.

    Raises:
        PartError: it did not come up; the message holds its last line.
    """
    _forget_settings()
    root = folder or Path(tempfile.mkdtemp(prefix="mentee-demo-"))
    home = Home(root.resolve())
    home.create()
    _lend_model(home)
    ports = {name: free_port() for name in ("MENTEE_PORT", "VLLM_PORT", "POSTGRES_PORT", "VALKEY_PORT")}
    given = {"MENTEE_HOME": str(home.root), "LANGUAGE": "en", **COOLDOWN, **more}
    env = {**os.environ, "PYTHONPATH": str(ROOT), **given, **{name: str(port) for name, port in ports.items()}}
    with (home.root / LOG).open("ab") as log:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app.cli", "run"),
            cwd=home.root,  # no .env of the caller is read from here
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
    try:
        settings = await _up(child, home, ports)
        store = Store(str(settings.database_url.get_secret_value() if settings.database_url else ""), pool_size=2)
        try:
            await _proven(child, home, store)
            yield Installation(f"http://{LOOPBACK}:{ports['MENTEE_PORT']}", settings, home.root, store)
        finally:
            await store.close()
    finally:
        await asyncio.shield(_stop(child))
        if folder is None:
            shutil.rmtree(home.root, ignore_errors=True)


@asynccontextmanager
async def running(url: str) -> AsyncIterator[Installation]:
    """Use the installation that this folder's settings describe and that answers at `url`.

    Raises:
        DemoError: it does not answer, or no model server has proven its isolation.
    """
    settings = config.load()
    env = children_environment(settings, Home(settings.mentee_home.resolve()))
    settings = settings.model_copy(update=_addresses(env))
    if not await workers.gateway_answers(f"{url}/readyz"):
        raise DemoError(f"nothing answers at {url}; start `mentee run`, or leave --url away")
    store = Store(env["DATABASE_URL"], pool_size=2)
    try:
        await _patiently_proven(store)
        yield Installation(url.rstrip("/"), settings, settings.mentee_home.resolve(), store)
    finally:
        await store.close()


async def _up(child: asyncio.subprocess.Process, home: Home, ports: Mapping[str, int]) -> Settings:
    """Wait for gateway and model server; return the settings that lead to every part."""
    deadline = time.monotonic() + START_TIMEOUT_S
    key = Settings(_env_file=None).model
    address = f"http://{LOOPBACK}:{ports['MENTEE_PORT']}"
    while not (await workers.gateway_answers(f"{address}/readyz") and await _model_answers(ports, key)):
        await _still(child, home, deadline)
    env = {
        "DATABASE_URL": postgres.url(home, ports["POSTGRES_PORT"]),
        "BROKER_URL": valkey.url(home, ports["VALKEY_PORT"]),
        "VLLM_BASE_URL": vllm.url(ports["VLLM_PORT"]),
        "MODEL_DIR": str(model.find(home, profile(key))),
    }
    ladder = LadderSettings(_env_file=None, train_cooldown_s=0)
    plain = Settings(_env_file=None, mentee_home=home.root, ladder=ladder)
    return plain.model_copy(update=_addresses(env))


async def _model_answers(ports: Mapping[str, int], key: str) -> bool:
    return await vllm.answers(vllm.url(ports["VLLM_PORT"]), key)


async def _proven(child: asyncio.subprocess.Process, home: Home, store: Store) -> None:
    """Wait until the isolation probe passed, which also shows that the learner's worker is at work."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        with suppress(StoreUnavailableError):
            async with store.begin() as tx:
                if await servers.proven(tx):
                    return
        await _still(child, home, deadline)


async def _patiently_proven(store: Store) -> None:
    """Wait a while for a model server that proved its isolation.

    Raises:
        DemoError: none did.
    """
    deadline = time.monotonic() + PROOF_TIMEOUT_S
    while time.monotonic() < deadline:
        async with store.begin() as tx:
            if await servers.proven(tx):
                return
        await asyncio.sleep(POLL_S)
    raise DemoError("no model server has proven its isolation; see `mentee doctor`")


async def _still(child: asyncio.subprocess.Process, home: Home, deadline: float) -> None:
    """Wait a moment; raise where it ended or where there is no more time."""
    log = home.root / LOG
    if child.returncode is not None:
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        raise PartError(f"mentee run ended: {lines[-1] if lines else 'no message'} (log: {log})")
    if time.monotonic() > deadline:
        raise PartError(f"mentee run was not ready after {START_TIMEOUT_S:.0f} s (log: {log})")
    await asyncio.sleep(POLL_S)


def _addresses(env: Mapping[str, str]) -> dict[str, object]:
    from pydantic import SecretStr

    return {
        "database_url": SecretStr(env["DATABASE_URL"]),
        "broker_url": SecretStr(env["BROKER_URL"]),
        "vllm_base_url": env["VLLM_BASE_URL"],
        "model_dir": Path(env["MODEL_DIR"]) if env.get("MODEL_DIR") else None,
    }


def callers_settings() -> frozenset[str]:
    """Return the variables of this process that are settings of ours; none of them may reach a new installation."""
    names = {name.upper() for name in Settings.model_fields}
    return frozenset(name for name in os.environ if name.upper() in names or name.upper().startswith("LADDER_"))


def _forget_settings() -> None:
    """Take them out of this process, which reads its settings too."""
    for name in callers_settings():
        del os.environ[name]


def _lend_model(home: Home) -> None:
    """Use a base that was converted before: the conversion is the same and takes a minute."""
    usual = Home((ROOT / "var").resolve())
    known = model.find(usual, PROFILES["smollm2-135m"])
    if known is not None and usual.root != home.root and not (home.models / known.name).exists():
        (home.models / known.name).symlink_to(known, target_is_directory=True)


async def _stop(child: asyncio.subprocess.Process) -> None:
    """Ask it to stop in order, insist after its time is over."""
    if child.returncode is None:
        child.terminate()
    try:
        await asyncio.wait_for(child.wait(), STOP_TIMEOUT_S)
    except TimeoutError:
        child.kill()
        await child.wait()
