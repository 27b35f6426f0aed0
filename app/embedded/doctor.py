"""`mentee doctor`: asks every configured part whether it really works, and says what to do where it does not.

Changes nothing but a throw-away adapter on the model server. Prints no secret and no message of a person.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import asyncpg

from app import config
from app.clients.vllm import VllmClient
from app.config import Settings
from app.domain.profiles import served
from app.embedded import commands, doctor_remote, model, postgres, preflight, valkey, vllm, workers
from app.embedded.messages import Texts, language_of, sentence
from app.embedded.parts import Home
from app.embedded.run import address_of
from app.errors import MenteeError, PartError
from app.gateway.channels import Installed, find, read
from bots.package import Finding

CONNECT_TIMEOUT_S = 5
DISK_GB = 1.0
TRAINING_MEMORY_GB = 3.5


Check = Callable[[], Awaitable[Finding]]


def doctor() -> int:
    """Check everything, print a line each; return 0 only if all works."""
    settings = config.load()
    texts = Texts(language_of(settings))
    findings = asyncio.run(_Doctor(settings, texts, read(find(), settings)).findings())
    failed = sum(finding.state == "bad" for finding in findings)
    print(texts.say("doctor.some", count=failed, total=len(findings)) if failed else texts.say("doctor.all"))
    return 1 if failed else 0


class _Doctor:
    """The checks, in the order in which the parts need each other."""

    def __init__(self, settings: Settings, texts: Texts, channels: Sequence[Installed] = ()) -> None:
        self._settings = settings
        self._channels = channels
        self._texts = texts
        self._home = Home(settings.mentee_home.resolve())
        self._base = served(settings)

    async def findings(self) -> list[Finding]:
        checks: tuple[Check, ...] = (
            self._disk,
            self._memory,
            self._database,
            self._schema,
            self._broker,
            self._workers,
            self._gateway,
            self._model,
            self._lora,
            self._isolation,
            self._training,
            self._judge,
            self._transcriber,
        )
        found = [self._shown(await check()) for check in checks]
        for one in self._channels:
            checked = await one.package.doctor(one.settings, self._settings, self._texts.language)
            found += [self._shown(finding) for finding in checked]
        return found

    def _shown(self, finding: Finding) -> Finding:
        print(self._texts.say(f"doctor.{finding.state}", what=finding.what, detail=finding.detail), flush=True)
        return finding

    def _finding(self, part: str, state: Literal["ok", "bad", "skip"], ending: str, **values: object) -> Finding:
        say = self._texts.say
        return Finding(say(f"doctor.{part}"), state, say(f"doctor.{part}.{ending}", **values))

    def _sentence(self, name: str, error: MenteeError) -> Finding:
        return Finding(self._texts.say(f"doctor.{name}"), "bad", sentence(error, self._texts))

    async def _disk(self) -> Finding:
        folder = self._home.root if self._home.root.exists() else self._home.root.parent
        free = preflight.free_disk_gb(folder)
        if free < DISK_GB:
            return self._finding("disk", "bad", "bad", free=free, need=DISK_GB)
        return self._finding("disk", "ok", "ok", free=free)

    async def _memory(self) -> Finding:
        free = preflight.free_memory_gb()
        if free < TRAINING_MEMORY_GB:
            return self._finding("memory", "bad", "bad", free=free, need=TRAINING_MEMORY_GB)
        return self._finding("memory", "ok", "ok", free=free)

    def _database_url(self) -> str:
        given = self._settings.database_url
        return given.get_secret_value() if given else postgres.url(self._home, self._settings.postgres_port)

    def _broker_url(self) -> str:
        given = self._settings.broker_url
        return given.get_secret_value() if given else valkey.url(self._home, self._settings.valkey_port)

    def _model_url(self) -> str:
        return self._settings.vllm_base_url or vllm.url(self._settings.vllm_port)

    async def _database(self) -> Finding:
        try:
            good = await postgres.answers(self._database_url())
        except PartError as error:
            return self._sentence("database", error)
        return self._finding("database", "ok", "ok") if good else self._finding("database", "bad", "bad")

    async def _schema(self) -> Finding:
        wanted = _head()
        try:
            found = await _revision(self._database_url())
        except (PartError, OSError, asyncpg.PostgresError, TimeoutError):
            return self._finding("schema", "bad", "bad", found="–", wanted=wanted)
        if found != wanted:
            return self._finding("schema", "bad", "bad", found=found or "–", wanted=wanted)
        return self._finding("schema", "ok", "ok", revision=found)

    async def _broker(self) -> Finding:
        try:
            good = await valkey.answers(self._broker_url())
        except PartError as error:
            return self._sentence("broker", error)
        return self._finding("broker", "ok", "ok") if good else self._finding("broker", "bad", "bad")

    async def _workers(self) -> Finding:
        names = [worker.name for worker in commands.WORKERS]
        try:
            env = {"BROKER_URL": self._broker_url()}
        except PartError as error:
            return self._sentence("workers", error)
        answered = await asyncio.gather(*(workers.worker_answers(name, env) for name in names))
        silent = [name for name, good in zip(names, answered, strict=True) if not good]
        if silent:
            return self._finding("workers", "bad", "bad", names=", ".join(silent), logs=self._home.logs)
        return self._finding("workers", "ok", "ok", names=", ".join(names))

    async def _gateway(self) -> Finding:
        address = address_of(self._settings)
        if await workers.gateway_answers(f"{address}/readyz"):
            return self._finding("gateway", "ok", "ok", address=address)
        return self._finding("gateway", "bad", "bad", address=address, logs=self._home.logs)

    async def _model(self) -> Finding:
        address = self._model_url()
        if await vllm.answers(address, self._base.key):
            return self._finding("model", "ok", "ok", model=self._base.key)
        return self._finding("model", "bad", "bad", model=self._base.key, address=address)

    def _model_dir(self) -> Path | None:
        return self._settings.model_dir or model.find(self._home, self._base)

    async def _lora(self) -> Finding:
        directory = self._model_dir()
        if find_spec("safetensors") is None:
            return self._finding("lora", "skip", "learner")
        if directory is None:
            return self._finding("lora", "bad", "files")
        try:
            async with self._client() as client:
                await doctor_remote.lora(client, self._base, directory, self._home.root / "probes")
        except MenteeError as error:
            return self._finding("lora", "bad", "bad", reason=str(error).rstrip("."), home=self._home.root)
        return self._finding("lora", "ok", "ok")

    async def _isolation(self) -> Finding:
        directory = self._model_dir()
        if find_spec("safetensors") is None or directory is None:
            lacks = "doctor.lora.files" if find_spec("safetensors") else "doctor.lora.learner"
            return self._finding("isolation", "skip", "away", reason=self._texts.say(lacks))
        print(self._texts.say("doctor.isolation.wait"), flush=True)
        try:
            async with self._client() as client:
                scratch = self._home.root / "probes"
                verdict = await doctor_remote.isolation(client, self._base, directory, scratch)
        except MenteeError as error:
            return self._finding("isolation", "bad", "away", reason=error)
        return self._finding("isolation", "ok" if verdict == "ok" else "bad", verdict, home=self._home.root)

    async def _training(self) -> Finding:
        if self._settings.train_device == "cpu":
            return self._finding("training", "ok", "cpu")
        if find_spec("torch") is None:
            return self._finding("training", "skip", "learner", reason=self._texts.say("doctor.lora.learner"))
        good = await workers.gpu_answers()
        return self._finding("training", "ok", "ok") if good else self._finding("training", "bad", "bad")

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[VllmClient]:
        key = self._settings.vllm_api_key
        client = VllmClient(
            self._model_url(),
            api_key=key.get_secret_value() if key else None,
            template_arguments=self._base.chat_template_args,
        )
        try:
            yield client
        finally:
            await client.close()

    async def _judge(self) -> Finding:
        if not self._settings.judge_base_url:
            return self._finding("judge", "skip", "none")
        problem = await doctor_remote.judge(self._settings, self._texts)
        return self._finding("judge", "bad", "bad", detail=problem) if problem else self._finding("judge", "ok", "ok")

    async def _transcriber(self) -> Finding:
        if not self._settings.transcribe_base_url:
            return self._finding("transcriber", "skip", "none")
        problem = await doctor_remote.transcriber(self._settings)
        if problem:
            return self._finding("transcriber", "bad", "bad", detail=problem)
        return self._finding("transcriber", "ok", "ok")


def _head() -> str:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    configuration = Config(str(workers.MIGRATIONS))
    return ScriptDirectory.from_config(configuration).get_current_head() or "–"


async def _revision(url: str) -> str | None:
    connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S)
    try:
        revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    finally:
        await connection.close(timeout=CONNECT_TIMEOUT_S)
    return revision
