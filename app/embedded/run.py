"""`mentee run`: every part that is not external, in the order in which they need each other.

    postgres ─► valkey ─► schema ─┬─► gateway ─┬─► score, train, evaluate
    model (once) ─────────────────┴─► vllm ────┘

The children learn each other's addresses through the variables of `.env.example`, and through nothing else.
"""

import asyncio
import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path

import psutil

from app.config import Settings
from app.domain.profiles import PROFILES, BaseProfile, profile, served
from app.embedded import model, postgres, preflight, valkey, vllm, workers
from app.embedded.admin_link import first_admin_link
from app.embedded.console import Console
from app.embedded.messages import SentenceError, Texts, spoken
from app.embedded.parts import LOOPBACK, Home, Part, write_private
from app.embedded.process import end_leftovers
from app.embedded.supervisor import Supervisor
from app.errors import MenteeError, PartError

WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
BETTER = "qwen3-0.6b"
CHECK_TIMEOUT_S = 60.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(settings: Settings, texts: Texts) -> None:
    """Start everything, stay until told to stop, stop everything.

    Raises:
        PartError: something stands in the way, or a part does not start.
    """
    with spoken(texts):
        _check_channels()
    home = Home(settings.mentee_home.resolve())
    base = profile(settings.model)
    with contextlib.suppress(OSError):  # preflight says it in a sentence
        home.create()
    with _only_one(home, texts):
        end_leftovers(home)
        found = preflight.problems(settings, base, home, texts)
        if found:
            raise PartError("\n".join(found))
        with spoken(texts):
            asyncio.run(_Run(settings, texts, home, base).main())


def _check_channels() -> None:
    """See that the gateway will not refuse a channel's settings, before anything is started for it."""
    command = [sys.executable, "-m", "app.gateway.check"]
    try:
        checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CHECK_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise SentenceError("channels.slow", seconds=CHECK_TIMEOUT_S) from error
    if checked.returncode:
        raise PartError(checked.stderr.strip())


def address_of(settings: Settings) -> str:
    """Return the address under which a browser on this machine reaches the gateway."""
    host = LOOPBACK if settings.mentee_host in WILDCARDS else settings.mentee_host
    return f"http://{host}:{settings.mentee_port}"


def children_environment(settings: Settings, home: Home) -> dict[str, str]:
    """Return the variables that tell every child where the others are; needs prepared parts."""
    env = {"MENTEE_HOME": str(home.root), "MENTEE_SECRET": secret(settings, home), "MODEL": settings.model}
    env["DATABASE_URL"] = (
        settings.database_url.get_secret_value()
        if settings.database_url
        else postgres.url(home, settings.postgres_port)
    )
    env["BROKER_URL"] = (
        settings.broker_url.get_secret_value() if settings.broker_url else valkey.url(home, settings.valkey_port)
    )
    # What the server serves in decides how closely its replies must agree; by its address alone no child could tell.
    env["VLLM_DTYPE"] = served(settings).dtype
    env["VLLM_BASE_URL"] = settings.vllm_base_url or vllm.url(settings.vllm_port)
    directory = settings.model_dir or model.find(home, profile(settings.model))
    if directory is not None:
        env["MODEL_DIR"] = str(directory.resolve())
    return env


def secret(settings: Settings, home: Home) -> str:
    """Return the installation's key, made once and kept where only the owner can read it."""
    if settings.mentee_secret:
        return settings.mentee_secret.get_secret_value()
    path = home.run / "secret"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(48))
    return path.read_text(encoding="utf-8").strip()


@contextlib.contextmanager
def _only_one(home: Home, texts: Texts) -> Iterator[None]:
    path = home.run / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise PartError(texts.say("preflight.home", home=home.root)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PartError(texts.say("run.second", pid=path.read_text("utf-8").strip() or "?")) from error
        with contextlib.suppress(OSError):  # only for the sentence above; what a full disk means preflight says next
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)


class _Run:
    """One run from start to stop."""

    def __init__(self, settings: Settings, texts: Texts, home: Home, base: BaseProfile) -> None:
        self._settings = settings
        self._texts = texts
        self._home = home
        self._base = base
        self._console = Console(texts, home.run / "durations.json")
        self._supervisor = Supervisor(home, self._console)

    async def main(self) -> None:
        loop = asyncio.get_running_loop()
        work = asyncio.create_task(self._work())
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            self._console.say("run.stopping")
        finally:
            for number in STOP_SIGNALS:
                # A second Ctrl-C must not cut the stopping short: the database is being written out.
                loop.add_signal_handler(number, _patience)
            await self._supervisor.stop()
            _end_helpers()
        self._console.say("run.stopped", home=self._home.root)

    async def _work(self) -> None:
        await self._start()
        await self._greet()
        await self._supervisor.watched()
        await asyncio.Event().wait()

    @property
    def _address(self) -> str:
        return self._settings.public_url or address_of(self._settings)

    async def _start(self) -> None:
        await _together(self._start_databases(), self._prepare_model())
        # The gateway is up while the model loads, so that a person sees a page that says so.
        env = children_environment(self._settings, self._home)
        gateway = workers.gateway(address_of(self._settings), self._settings.mentee_port, env)
        await _together(self._start_gateway(gateway), self._start_model())
        await _together(*(self._supervisor.start(worker) for worker in workers.workers(env)))

    async def _start_gateway(self, gateway: Part) -> None:
        await self._supervisor.start(gateway)
        self._console.say("run.open", address=self._address)

    async def _start_databases(self) -> None:
        settings, start = self._settings, self._supervisor.start
        if settings.database_url:
            self._console.say("part.external", name="postgres", variable="DATABASE_URL")
        else:
            await start(postgres.part(self._home, settings.postgres_port))
        if settings.broker_url:
            self._console.say("part.external", name="valkey", variable="BROKER_URL")
        else:
            await start(valkey.part(self._home, settings.valkey_port))
        async with self._console.job("schema", "part.done"):
            await asyncio.to_thread(workers.migrate, children_environment(settings, self._home))

    async def _prepare_model(self) -> None:
        """Convert or fetch the base, once; a model server elsewhere brings its own."""
        if self._settings.vllm_base_url or model.find(self._home, self._base):
            return
        left = threading.Event()
        async with self._console.job("model", "part.done"):
            try:
                await asyncio.to_thread(_ensure, self._home, self._base, self._settings, self._until(left))
            finally:
                left.set()

    def _until(self, left: threading.Event) -> model.Wait:
        """Return how to wait for whoever makes the model: said once of each, and no longer than until `left` is set."""
        loop, told = asyncio.get_running_loop(), set[str]()

        def wait(pid: str) -> None:
            if pid not in told:
                told.add(pid)
                loop.call_soon_threadsafe(partial(self._console.say, "model.waiting", pid=pid))
            if left.wait(model.LOOK_S):
                raise PartError("told to stop")

        return wait

    async def _start_model(self) -> None:
        settings, directory = self._settings, model.find(self._home, self._base)
        if settings.vllm_base_url or directory is None:
            self._console.say("part.external", name="vllm", variable="VLLM_BASE_URL")
            return
        await self._supervisor.start(vllm.part(self._base, directory, settings.vllm_port))

    async def _greet(self) -> None:
        say, address = self._console.say, self._address
        say("run.chat", address=address)
        say("run.panel", address=address)
        for name, why in (await workers.broken(address_of(self._settings))).items():
            say("run.broken", name=name, why=why)
        link = await first_admin_link(children_environment(self._settings, self._home), address)
        if link:
            say("run.admin", link=link)
        if self._base.bundled and not self._settings.vllm_base_url:
            say("run.bundled", title=self._base.title, better=BETTER, choices=", ".join(PROFILES))
        else:
            languages = ", ".join(self._base.languages)
            say("run.model", title=self._base.title, licence=self._base.licence, languages=languages)
        say("run.stop")


def _ensure(home: Home, base: BaseProfile, settings: Settings, wait: model.Wait) -> Path:
    return model.ensure(home, base, allow_download=settings.allow_download, wait=wait)


async def _together(*starts: Coroutine[object, object, None]) -> None:
    """Run starts side by side; the first that fails ends the others.

    Raises:
        MenteeError: the first failure.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for start in starts:
                group.create_task(start)
    except* MenteeError as failed:
        raise failed.exceptions[0] from None


def _patience() -> None:
    """Do nothing more than is already being done."""


def _end_helpers() -> None:
    """End one-time jobs (a conversion, a migration) that were under way when the run was told to stop."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
