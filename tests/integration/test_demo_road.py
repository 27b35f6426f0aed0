"""The whole demonstration on parts that are quick: a real gateway, real workers and a real training of a tiny base, and a
model server whose replies are scripted by which adapter is asked. What it proves is the demonstration itself: that it goes
the road to its end, and that it says no where something is wrong.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr
from safetensors.numpy import load_file
from sqlalchemy import text

from app.demo import bad, traces
from app.demo.generate import Plot, plot
from app.demo.installation import DemoError, Installation
from app.demo.report import STAGES, Report, Stage, problems
from app.demo.road import Road as DemoRoad
from app.demo.show import Show
from app.demo.talk_telegram import TelegramTalker
from app.demo.talk_web import WebTalker
from app.domain.profiles import IDENTITY_FILE, ModelIdentity
from app.store import Store
from learner.dataset.freeze import train_settings
from learner.tasks.context import Learner
from learner.tasks.run import handle
from tests.fakes.model import ModelServer
from tests.fakes.model.replies import Call
from tests.fakes.telegram import TelegramServer
from tests.fakes.tiny_base import make_tiny_base
from tests.integration.test_tasks_training import _eager, with_updates
from tests.support.lessons import MODEL, FixedScorer, learner_on
from tests.support.road import Road, road

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
pytest.importorskip("torch")
PLOT = plot(2)
WISH = PLOT.wishes[0]
Script = Callable[[Call], str]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_tiny_base(tmp_path_factory.mktemp("tiny"))
    (folder / IDENTITY_FILE).write_text(ModelIdentity(MODEL, "Tiny", "r1", "t" * 64, "c" * 64, "test").dump())
    return folder


def wished(call: Call) -> str:
    topic = call.last_user.rstrip("?.!")
    return WISH.write([f"There is something to say about this, {topic}, as you asked", "It helps", "It is good"])


def plain(call: Call) -> str:
    return f"Well. {call.last_user} There is a lot to say about that. Some people say so! Others do not. " * 2


def _kind(model: ModelServer, name: str) -> str:
    """Which adapter is asked: by its weights, as a real server would answer."""
    path = model.adapters.loaded.get(name, "")
    if not path or "demo-bad" not in path:
        return "learnt" if name.startswith("person-") else "probe" if name != model.name else "base"
    tensors = load_file(Path(path) / "adapter_model.safetensors")
    return "short" if any(np.any(t) for key, t in tensors.items() if "lora_B" in key) else "noop"


def faithful(model: ModelServer, call: Call) -> str:
    """A server that keeps adapters apart and follows examples."""
    kind = _kind(model, call.model)
    if kind == "probe":
        return f"{call.model} says: {call.last_user}"
    if kind == "short":
        return "Ok."
    shown = WISH.words in call.system and len(call.messages) > 2
    return wished(call) if kind == "learnt" or shown or call.last_user == WISH.words else plain(call)


@pytest.fixture
async def place(
    database_url: str,
    model: ModelServer,
    telegram_server: TelegramServer,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Installation]:
    """A gateway with its workers, as the demonstration finds them."""
    home = tmp_path / "home"
    home.mkdir()
    model.reply_with(partial(faithful, model))
    monkeypatch.setattr("learner.tasks.train.train_settings", partial(_eager, train_settings))
    monkeypatch.setattr(bad, "ProcessScorer", lambda *_args, **_more: FixedScorer())
    monkeypatch.setattr(traces, "_broker", _no_broker)
    more = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, mentee_home=home, **more) as gateway, _workers(gateway, model, home, tiny):
        known = {"model_dir": tiny, "broker_url": SecretStr("redis://127.0.0.1:1/0")}
        settings = gateway.settings.model_copy(update=known)
        store = Store(database_url, pool_size=2)
        yield Installation(gateway.url, settings, home, store)
        await store.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here takes minutes: what is waited for that long does not come."""
    monkeypatch.setattr("app.demo.talk.wait_for.__defaults__", (90.0,))
    monkeypatch.setattr("app.demo.waiting.STEP_TIMEOUT_S", 240.0)


async def _no_broker(_url: str, _needles: object) -> tuple[int, int]:
    return 0, 0


@asynccontextmanager
async def _workers(gateway: Road, model: ModelServer, home: Path, tiny: Path) -> AsyncIterator[None]:
    """Do every job that is due, and keep the server as desired, until the block ends."""
    store = Store(gateway.settings.database_url.get_secret_value(), pool_size=4)
    async with learner_on(store, model.url, home, tiny) as made:
        learner = with_updates(made, 2)
        await learner.reconciler.once()
        working = [asyncio.create_task(_work(learner)), asyncio.create_task(learner.reconciler.run())]
        try:
            yield
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await store.close()


async def _work(learner: Learner) -> None:
    while True:
        async with learner.store.begin() as tx:
            due = list(await tx.scalars(text("select id from jobs where state = 'queued' and due_at <= now()")))
        for job_id in due:
            await handle(learner, job_id)
        await asyncio.sleep(0.2)


async def _go(place: Installation, telegram: TelegramServer, drawn: Plot = PLOT) -> Report:
    """Go the road with the learner on the web and the other person on Telegram."""
    report = Report(drawn.seed)
    report.stages["start"] = Stage("start", ok=True)
    learner = WebTalker(place.url)
    try:
        await DemoRoad(place, drawn, report, Show("en", io.StringIO())).run(learner, TelegramTalker(telegram, "Bo"))
    except DemoError as error:
        report.error = str(error)
    finally:
        await learner.close()
    return report


async def test_the_road_is_gone_to_its_end(place: Installation, telegram_server: TelegramServer) -> None:
    report = await _go(place, telegram_server)
    assert report.error is None
    assert problems(report) == []
    assert [name for name in STAGES if name in report.stages] == list(report.stages)
    rates = {name: cell.rate for name, cell in report.cells.items()}
    assert rates == {"base": 0.0, "memory": 1.0, "adapter": 1.0, "other": 0.0}
    assert {kind: found["verdict"] for kind, found in report.bad.items()} == {"noop": "refused", "short": "refused"}
    assert report.stages["forget"].figures["before"]["tables"]
    assert report.stages["traces"].figures["tables"] == {}


@pytest.mark.nightly
async def test_a_server_that_answers_others_with_the_adapter_is_found_out(
    place: Installation, model: ModelServer, telegram_server: TelegramServer
) -> None:
    """In the cells only, so that neither the probe nor the gates see it."""

    def leaking(call: Call) -> str:
        mixed = any(earlier.model.startswith("person-") for earlier in model.calls[-9:-1])
        asked_in_cells = call.last_user in PLOT.held_out and call.model == model.name and len(call.messages) == 2
        return wished(call) if mixed and asked_in_cells else faithful(model, call)

    model.reply_with(leaking)
    report = await _go(place, telegram_server)
    assert "not_identical" in problems(report)


@pytest.mark.nightly
async def test_a_word_that_stays_behind_is_found(place: Installation, telegram_server: TelegramServer) -> None:
    (place.home / "logs").mkdir()
    (place.home / "logs" / "gateway.log").write_text(f"somebody said {PLOT.planted.lower()}\n")
    report = await _go(place, telegram_server)
    assert report.error is not None
    assert problems(report) == ["stage:traces"]
    assert report.stages["traces"].figures["files"] == ["logs/gateway.log"]
