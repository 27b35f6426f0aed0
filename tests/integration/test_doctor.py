"""`mentee doctor`: works means that all works; what does not is named with what to do, and nothing else is blamed for it."""

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from app import config
from app.config import Settings
from app.embedded import commands, preflight, valkey
from app.embedded.doctor import Finding, _Doctor, doctor
from app.embedded.messages import Texts
from app.embedded.parts import Home, free_port
from tests.fakes.model import ModelServer
from tests.fakes.model.faults import Refuse, Slow
from tests.fakes.model.replies import Call
from tests.fakes.telegram import TelegramServer
from tests.fakes.transcriber import Transcriber
from tests.integration.test_probe import by_model
from tests.support.lessons import base_folder
from tests.support.road import Road

ROOMY_GB = 50.0
ALONE = {"judge", "voice to text", "Telegram", "WhatsApp"}
"""Checks of what may be absent."""


@pytest.fixture
def settings(model: ModelServer, tmp_path: Path) -> Settings:
    """A model server elsewhere whose base lies here; nothing else runs."""
    model.reply_with(by_model)
    return Settings(
        _env_file=None, mentee_home=tmp_path / "var", vllm_base_url=model.url, model_dir=base_folder(tmp_path / "base")
    )


async def round_trip(settings: Settings) -> tuple[Finding, Finding]:
    """Return what the doctor finds about adapters: the round trip, the isolation."""
    patient = _Doctor(settings, Texts("en"))
    return await patient._lora(), await patient._isolation()


async def test_an_adapter_goes_in_changes_the_replies_and_goes_out(
    settings: Settings, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    lora, isolation = await round_trip(settings)
    assert "about a minute" in capsys.readouterr().out
    assert (lora.state, isolation.state) == ("ok", "ok")
    assert not [name for name in model.adapters.loaded if name.startswith("mentee-doctor-")]
    assert [name for name in model.adapters.unloads if name.startswith("mentee-doctor-")]
    # The reconciler knows a restarted server by a marker that only it loads: a visit of the doctor says nothing about it.
    assert not [name for name in model.adapters.loaded if "proven" in name]


async def test_a_server_that_takes_no_adapters(settings: Settings, model: ModelServer) -> None:
    model.adapters.max_rank = 2
    lora, isolation = await round_trip(settings)
    assert (lora.state, isolation.state) == ("bad", "bad")
    assert "--enable-lora" in lora.detail
    assert "does not load adapters" in isolation.detail


async def test_a_server_that_ignores_adapters(
    settings: Settings, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fakes.model.wire.logprob", lambda _model, _before, _token: -1.0)
    model.reply_with(lambda call: call.last_user)
    lora, isolation = await round_trip(settings)
    assert (lora.state, isolation.state) == ("bad", "bad")
    assert "adapters change nothing" in isolation.detail
    assert not [name for name in model.adapters.loaded if name.startswith("mentee-doctor-")]


async def test_a_server_that_mixes_people_up(settings: Settings, model: ModelServer) -> None:
    def mixed_up(call: Call) -> str:
        others = [name for name in model.adapters.loaded if model.running > 1]
        return by_model(Call(others[0] if others and call.model == model.name else call.model, call.messages))

    model.pace = Slow(first_token_s=0.05)
    model.reply_with(mixed_up)
    lora, isolation = await round_trip(settings)
    assert (lora.state, isolation.state) == ("ok", "bad")
    assert "another person's adapter" in isolation.detail
    assert "--max-loras 2" in isolation.detail


@pytest.mark.parametrize(("said", "state"), [(None, "bad"), ("bfloat16", "ok")])
async def test_replies_must_agree_as_closely_as_the_precision_that_was_said_allows(
    settings: Settings, model: ModelServer, said: str | None, state: str
) -> None:
    def rounded(call: Call) -> str:
        # Beside others a reply turns at some token, as near ties do in lower precision; it stays its model's own.
        return f"{call.model} {'also' if model.running > 1 else 'now'} says: {call.last_user}"

    model.pace = Slow(first_token_s=0.05)
    model.reply_with(rounded)
    _, isolation = await round_trip(settings.model_copy(update={"vllm_dtype": said}))
    assert isolation.state == state


async def test_a_server_that_is_away_is_not_judged(settings: Settings) -> None:
    gone = settings.model_copy(update={"vllm_base_url": f"http://127.0.0.1:{free_port()}"})
    lora, isolation = await round_trip(gone)
    assert (lora.state, isolation.state) == ("bad", "bad")
    assert isolation.detail.startswith("not checked")


async def test_without_the_bases_files_the_round_trip_is_not_called_done(settings: Settings, tmp_path: Path) -> None:
    lora, isolation = await round_trip(settings.model_copy(update={"model_dir": None, "model": "qwen3-4b"}))
    assert (lora.state, isolation.state) == ("bad", "skip")
    assert "MODEL_DIR" in lora.detail
    assert "MODEL_DIR" in isolation.detail


async def test_a_gpu_that_is_not_there_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = await _Doctor(settings.model_copy(update={"train_device": "cuda"}), Texts("en"))._training()
    assert found.state == "bad"
    assert "TRAIN_DEVICE=cpu" in found.detail
    assert (await _Doctor(settings, Texts("en"))._training()).state == "ok"


async def test_a_transcriber_is_given_a_second_of_silence(settings: Settings, transcriber: Transcriber) -> None:
    named = {"transcribe_base_url": transcriber.url, "transcribe_model": "whisper-1"}
    patient = _Doctor(settings.model_copy(update=named), Texts("en"))
    transcriber.words = ""
    assert (await patient._transcriber()).state == "ok"
    assert transcriber.heard[-1].data.startswith(b"RIFF")
    transcriber.status = 503
    found = await patient._transcriber()
    assert found.state == "bad"
    assert "503" in found.detail
    assert "TRANSCRIBE_MODEL" in found.detail
    assert (await _Doctor(settings, Texts("en"))._transcriber()).state == "skip"


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="mentee-doctor-") as folder:
        made = Home(Path(folder))
        made.create()
        yield made


@asynccontextmanager
async def process(*argv: str) -> AsyncIterator[None]:
    """Run something until the block ends."""
    quiet = asyncio.subprocess.DEVNULL
    started = await asyncio.create_subprocess_exec(*argv, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        started.kill()
        await started.wait()


@asynccontextmanager
async def broker(home: Home) -> AsyncIterator[str]:
    """A real broker, and workers under our names that answer a ping and nothing else."""
    port = free_port()
    part = valkey.part(home, port)
    part.prepare()
    address = valkey.url(home, port)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(process(*part.command().argv))
        async with asyncio.timeout(20):
            while not await valkey.answers(address):
                await asyncio.sleep(0.05)
        celery = (sys.executable, "-m", "celery", "-b", address, "worker", "--pool", "threads", "-c", "1")
        for worker in commands.WORKERS:
            await stack.enter_async_context(process(*celery, "-n", f"{worker.name}@{socket.gethostname()}"))
        yield address


@pytest.fixture
async def whole(
    running: Road, model: ModelServer, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Everything that the doctor asks about, up and found by the environment alone; the machine has room."""
    model.reply_with(by_model)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "free_memory_gb", lambda: ROOMY_GB)
    monkeypatch.setattr(preflight, "free_disk_gb", lambda _: ROOMY_GB)
    given = running.settings.database_url
    async with broker(home) as address:
        for name, value in {
            "DATABASE_URL": given.get_secret_value() if given else "",
            "BROKER_URL": address,
            "VLLM_BASE_URL": model.url,
            "MODEL_DIR": str(base_folder(tmp_path / "base")),
            "MENTEE_HOME": str(home.root),
            "MENTEE_PORT": str(running.server.port),
            "LANGUAGE": "en",
        }.items():
            monkeypatch.setenv(name, value)
        config.load.cache_clear()
        yield
    config.load.cache_clear()


async def visit(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Return the exit code, the checks that failed, and everything that was said."""
    config.load.cache_clear()
    code = await asyncio.to_thread(doctor)
    said = capsys.readouterr().out
    return code, [line[2:].partition(":")[0] for line in said.splitlines() if line.startswith("✗")], said


@pytest.mark.timeout(240)
async def test_it_ends_with_0_only_if_everything_works(
    whole: None,
    model: ModelServer,
    telegram_server: TelegramServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with asyncio.timeout(120):
        while (found := await visit(capsys))[1] == ["workers"]:  # they are still starting
            await asyncio.sleep(0.5)
    code, bad, said = found
    assert (code, bad) == (0, []), said
    assert said.splitlines()[-1] == "Everything works."
    assert {line[2:].partition(":")[0] for line in said.splitlines() if line.startswith("–")} == ALONE

    # A model that fails, a judge that is none, a token that Telegram does not know: each is named, nothing else is.
    model.always(Refuse())
    monkeypatch.setenv("JUDGE_BASE_URL", model.url)
    monkeypatch.setenv("JUDGE_MODEL", "nobody")
    monkeypatch.setenv("TELEGRAM_BASE_URL", telegram_server.base_url)
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "1:planted-token")
    code, bad, said = await visit(capsys)
    assert (code, set(bad)) == (1, {"LoRA round trip", "isolation", "judge", "Telegram"}), said
    assert "planted-token" not in said
    assert said.splitlines()[-1] == "4 of 15 checks failed."

    for name in ("JUDGE_BASE_URL", "JUDGE_MODEL", "TELEGRAM_BOT_TOKEN"):
        monkeypatch.delenv(name)
    model.heal()
    model.reply_with(by_model)

    monkeypatch.setenv("BROKER_URL", f"redis://127.0.0.1:{free_port()}/0")
    code, bad, said = await visit(capsys)
    assert (code, set(bad)) == (1, {"broker", "workers"}), said
