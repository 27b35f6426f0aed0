"""A training as a job: the real process on a tiny real base, killed, paused, withdrawn, forgotten in the middle."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from app.domain.consent import Purpose
from app.domain.profiles import IDENTITY_FILE, ModelIdentity
from app.services.forget import forget_person, receipt
from app.services.learn import progress
from app.store import Store, jobs
from app.store.jobs import Work
from learner.dataset.freeze import train_settings
from learner.durable import discard
from learner.tasks import run as tasks
from learner.tasks.background import tidy
from learner.tasks.context import Learner
from learner.tasks.run import handle
from learner.train import job as files
from learner.types import TrainSettings
from tests.fakes.model import ModelServer
from tests.fakes.tiny_base import make_tiny_base
from tests.integration.test_release import by_model
from tests.support.lessons import MODEL, TRAIN, Pupil, allow, learner_on, pupil
from tests.support.small_disk import may_mount, small_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
pytest.importorskip("torch")
PATIENCE_S = 100
SMALL_KIB = 28
FIGURES = "select count(*) from {}"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real base of a few thousand weights, with its identity."""
    folder = make_tiny_base(tmp_path_factory.mktemp("tiny"))
    (folder / IDENTITY_FILE).write_text(ModelIdentity(MODEL, "Tiny", "r1", "t" * 64, "c" * 64, "test").dump())
    return folder


@pytest.fixture
async def learner(
    store: Store, model: ModelServer, tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Learner]:
    """A learner whose trainings are real and short."""
    model.reply_with(by_model)
    monkeypatch.setattr(tasks, "BEAT_S", 0.2)
    monkeypatch.setattr("learner.tasks.train.POLL_S", 0.1)
    # Chats need no protection from a test; at the lowest priority it would take minutes on a busy machine.
    eager = partial(_eager, train_settings)
    monkeypatch.setattr("learner.tasks.train.train_settings", eager)
    async with learner_on(store, model.url, tmp_path / "home", tiny) as made:
        yield with_updates(made, 3)


def _eager(make: Callable[..., TrainSettings], *arguments: object, **options: object) -> TrainSettings:
    return replace(make(*arguments, **options), niceness=0, threads=1, max_new_tokens=8, rollouts_per_step=4)


def with_updates(learner: Learner, updates: int) -> Learner:
    lora = replace(learner.profile.lora, rank=2, alpha=4, updates=updates)
    return replace(learner, profile=replace(learner.profile, lora=lora))


async def queued(learner: Learner, who: Pupil) -> UUID:
    work = Work("train", "train", f"train:{who.person_id}", person_id=who.person_id)
    async with learner.store.begin() as tx:
        job_id = await jobs.enqueue(tx, work)
        await tx.execute(text("update jobs set due_at = now() where id = :i"), {"i": job_id})
    return job_id


async def ended(learner: Learner, job_id: UUID) -> tuple[str, str | None]:
    async with learner.store.begin() as tx:
        row = (await tx.execute(text("select state, error from jobs where id = :i"), {"i": job_id})).one()
    return row.state, row.error


async def count(learner: Learner, table: str) -> int:
    async with learner.store.begin() as tx:
        return int(await tx.scalar(text(FIGURES.format(table))) or 0)


async def run_dir(learner: Learner) -> Path:
    """Wait for the run's folder."""
    async with asyncio.timeout(PATIENCE_S):
        return await _run_dir(learner)


async def _run_dir(learner: Learner) -> Path:
    while not (found := [f for f in _folders(learner.places.runs) if (f / files.JOB).exists()]):
        await asyncio.sleep(0.05)
    return found[0]


def _folders(parent: Path) -> list[Path]:
    return list(parent.iterdir()) if parent.is_dir() else []


async def in_step(learner: Learner, step: int = 2) -> Path:
    """Wait until the training is in the middle; return its folder."""
    folder = await run_dir(learner)
    async with asyncio.timeout(PATIENCE_S):
        await _reached(folder, step)
    return folder


async def _reached(folder: Path, step: int) -> None:
    while (now := files.read_progress(folder)) is None or now.step < step:
        await asyncio.sleep(0.02)


def training_pids(folder: Path) -> list[int]:
    """Return the processes that train in `folder`."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"learner.train.process" in command and str(folder).encode() in command:
                found.append(int(process.name))
    return found


async def test_a_training_leaves_snapshot_run_steps_rollouts_and_a_candidate(learner: Learner) -> None:
    who = await pupil(learner.store)
    job_id = await queued(learner, who)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    async with learner.store.begin() as tx:
        row = (await tx.execute(text("select * from checkpoints"))).one()
        steps = list(await tx.scalars(text("select step from training_steps order by step")))
        assert await jobs.live(tx, f"evaluate:{row.id}")
        assert await tx.scalar(text("select state from training_runs")) == "done"
    assert (row.state, list(row.memory_ids), row.rank) == ("candidate", [who.line_id], 2)
    assert Path(row.path).name == row.name
    assert steps
    assert await count(learner, "rollout_artifacts") == 1
    folder = await run_dir(learner)
    assert not (folder / files.BODIES).exists()
    assert not any(words.encode() in f.read_bytes() for f in folder.rglob("*") if f.is_file() for words in TRAIN)


async def test_a_training_killed_in_the_middle_goes_on_where_it_was(learner: Learner) -> None:
    who = await pupil(learner.store)
    learner = with_updates(learner, 30)
    job_id = await queued(learner, who)
    first = asyncio.create_task(handle(learner, job_id))
    folder = await in_step(learner)
    (pid,) = training_pids(folder)
    os.kill(pid, signal.SIGKILL)
    await first
    assert (await ended(learner, job_id))[0] == "queued"
    assert not (folder / files.BODIES).exists()
    drawn = (folder / files.ROLLOUTS).stat().st_size
    assert drawn > 0
    await queued(learner, who)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert await count(learner, "training_runs") == 1
    assert await count(learner, "checkpoints") == 1


async def test_a_killed_worker_s_training_dies_with_it_and_is_taken_up(learner: Learner) -> None:
    who = await pupil(learner.store)
    learner = with_updates(learner, 30)
    job_id = await queued(learner, who)
    worker = await asyncio.create_subprocess_exec(*_worker_command(learner, job_id, 30), env=_worker_env(learner))
    folder = await in_step(learner)
    worker.kill()
    await worker.wait()
    for _ in range(100):
        if not training_pids(folder):
            break
        await asyncio.sleep(0.05)
    assert training_pids(folder) == []
    async with learner.store.begin() as tx:
        await tx.execute(text("update jobs set lease_until = now() - interval '1 second'"))
        await jobs.sweep(tx)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert await count(learner, "checkpoints") == 1


async def killed_when_placed(learner: Learner, who: Pupil) -> UUID:
    """Train until the checkpoint is in its place, kill the worker there, and give its job back; return the job."""
    job_id = await queued(learner, who)
    environment = _worker_env(learner) | {"MENTEE_KILL_AT": "train:placed"}
    worker = await asyncio.create_subprocess_exec(*_worker_command(learner, job_id, 3), env=environment)
    assert await asyncio.wait_for(worker.wait(), PATIENCE_S) == -signal.SIGKILL
    assert await count(learner, "checkpoints") == 0
    async with learner.store.begin() as tx:
        await tx.execute(text("update jobs set lease_until = now() - interval '1 second'"))
        await jobs.sweep(tx)
    return job_id


async def test_a_checkpoint_that_was_placed_and_not_registered_is_registered_after_a_long_sleep(
    learner: Learner,
) -> None:
    who = await pupil(learner.store)
    job_id = await killed_when_placed(learner, who)
    (placed,) = learner.places.checkpoints.iterdir()
    os.utime(placed, (0, 0))
    await tidy(learner)
    assert placed.exists()
    before = files.read_result(await run_dir(learner))
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert files.read_result(await run_dir(learner)) == before  # not trained again
    async with learner.store.begin() as tx:
        assert list(await tx.scalars(text("select name from checkpoints"))) == [placed.name]


async def test_a_checkpoint_that_was_placed_and_lost_is_trained_again(learner: Learner) -> None:
    who = await pupil(learner.store)
    job_id = await killed_when_placed(learner, who)
    (placed,) = learner.places.checkpoints.iterdir()
    discard(placed)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert [f.name for f in learner.places.checkpoints.iterdir()] == [placed.name]


async def test_forgetting_takes_a_checkpoint_that_was_placed_and_not_registered(learner: Learner) -> None:
    who = await pupil(learner.store)
    await killed_when_placed(learner, who)
    given = await forget_person(learner.store, learner.places.home, who.person_id, "learnt", "person")
    async with learner.store.begin() as tx:
        removal = await tx.scalar(text("update jobs set due_at = now() where kind = 'forget' returning id"))
    await handle(learner, removal)
    assert (await receipt(learner.store, given.code)).state == "done"
    assert [*learner.places.checkpoints.iterdir(), *learner.places.runs.iterdir()] == []


def _worker_command(learner: Learner, job_id: UUID, updates: int) -> list[str]:
    program = (
        "import asyncio, sys; from uuid import UUID; from app.config import load; from dataclasses import replace\n"
        "from learner.tasks import train; from learner.tasks.context import open_learner\n"
        "from learner.tasks.run import handle\n"
        "make = train.train_settings\n"
        "small = dict(niceness=0, threads=1, max_new_tokens=8, rollouts_per_step=4)\n"
        "train.train_settings = lambda *a, **k: replace(make(*a, **k), **small)\n"
        "async def main():\n"
        "    made = await open_learner(load())\n"
        f"    lora = replace(made.profile.lora, rank=2, alpha=4, updates={updates})\n"
        "    made = replace(made, profile=replace(made.profile, lora=lora))\n"
        "    await handle(made, UUID(sys.argv[1]))\n"
        "asyncio.run(main())"
    )
    import sys

    return [sys.executable, "-c", program, str(job_id)]


def _worker_env(learner: Learner) -> dict[str, str]:
    url = learner.store.engine.url.render_as_string(hide_password=False)
    return os.environ | {
        "DATABASE_URL": url,
        "MENTEE_HOME": str(learner.places.home),
        "MODEL_DIR": str(learner.model_dir),
        "VLLM_BASE_URL": next(iter(learner.fleet.models)),
        "LADDER_GRADUATE_AFTER_USES": "2",
        "LADDER_GRADUATE_AFTER_SESSIONS": "1",
    }


async def test_a_checkpoint_half_written_by_a_killed_training_is_written_anew(learner: Learner) -> None:
    who = await pupil(learner.store)
    job_id = await queued(learner, who)

    def cut_off(folder: Path) -> None:
        (folder / files.RESULT).unlink(missing_ok=True)
        (folder / files.CHECKPOINT / "STABLE").unlink()

    async with learner.store.begin() as tx:
        await tx.execute(text("update jobs set max_attempts = 5"))
    await _train_then_lose_the_result(learner, job_id, cut_off)
    await queued(learner, who)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert await count(learner, "checkpoints") == 1


async def _train_then_lose_the_result(learner: Learner, job_id: UUID, spoil: Callable[[Path], None]) -> None:
    """Train, but be killed before the database knows: the job comes back, the folder is spoiled."""
    import learner.tasks.train as module

    kept = module._register

    async def killed(_learner: Learner, _job: object, _prepared: object, folder: Path, _result: object) -> None:
        spoil(folder)
        raise module.TrainerDiedError

    module._register = killed  # type: ignore[assignment]
    try:
        await handle(learner, job_id)
    finally:
        module._register = kept


async def test_a_finished_training_is_not_run_again_when_the_database_was_away(learner: Learner) -> None:
    who = await pupil(learner.store)
    job_id = await queued(learner, who)
    await _train_then_lose_the_result(learner, job_id, lambda _folder: None)
    folder = await run_dir(learner)
    before = files.read_result(folder)
    await queued(learner, who)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert files.read_result(folder) == before


async def test_withdrawing_stops_a_training_within_seconds_and_leaves_nothing(learner: Learner) -> None:
    who = await pupil(learner.store)
    learner = with_updates(learner, 2000)
    job_id = await queued(learner, who)
    running = asyncio.create_task(handle(learner, job_id))
    folder = await in_step(learner)
    await allow(learner.store, who.person_id, Purpose.PERSONAL_TRAINING, "withdrawn")
    await asyncio.wait_for(running, 15)
    assert (await ended(learner, job_id))[0] == "cancelled"
    assert not folder.exists()
    assert await count(learner, "checkpoints") == 0


async def test_forgetting_kills_a_training_and_leaves_nothing(learner: Learner) -> None:
    who = await pupil(learner.store)
    learner = with_updates(learner, 2000)
    running = asyncio.create_task(handle(learner, await queued(learner, who)))
    folder = await in_step(learner)
    (pid,) = training_pids(folder)
    await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
    await asyncio.wait_for(running, 60)
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()
    for table in ("snapshots", "training_runs", "training_steps", "checkpoints"):
        assert await count(learner, table) == 0


async def test_a_pause_stops_at_the_next_step_and_loses_nothing(learner: Learner) -> None:
    who = await pupil(learner.store)
    learner = with_updates(learner, 60)
    job_id = await queued(learner, who)
    running = asyncio.create_task(handle(learner, job_id))
    folder = await in_step(learner)
    async with learner.store.begin() as tx:
        await tx.execute(text("insert into switches (name, paused) values ('training', true)"))
    await asyncio.wait_for(running, 60)
    assert (await ended(learner, job_id))[0] == "queued"
    async with learner.store.begin() as tx:
        assert (await progress(tx, who.person_id, learner.settings)).key == "learning_paused"
        await tx.execute(text("update switches set paused = false"))
    await queued(learner, who)
    await handle(learner, job_id)
    assert await ended(learner, job_id) == ("done", None)
    assert await count(learner, "training_runs") == 1
    assert (await run_dir(learner)) == folder


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
async def test_a_full_disk_is_waited_out(learner: Learner) -> None:
    who = await pupil(learner.store)
    with small_folder(learner.places.home, kib=SMALL_KIB) as disk:
        job_id = await queued(learner, who)
        await handle(learner, job_id)
        state, sentence = await ended(learner, job_id)
        assert (state, "free some space" in str(sentence)) == ("queued", True)
        assert await count(learner, "training_runs") == 1
        disk.grow(kib=1024)
        assert await due_again(learner, job_id) == 0
        await handle(learner, job_id)
        assert await ended(learner, job_id) == ("done", None)
        assert await count(learner, "training_runs") == 1
        assert await count(learner, "checkpoints") == 1


async def due_again(learner: Learner, job_id: UUID) -> int:
    """Make a postponed job due; return how many of its attempts are spent."""
    async with learner.store.begin() as tx:
        spent = await tx.scalar(text("update jobs set due_at = now() where id = :i returning attempts"), {"i": job_id})
    return int(spent or 0)


async def test_a_place_that_is_taken_fails_with_a_sentence(learner: Learner) -> None:
    who = await pupil(learner.store)
    learner.places.home.mkdir(parents=True, exist_ok=True)
    (learner.places.home / "adapters").write_text("a file where a folder should be")
    job_id = await queued(learner, who)
    await handle(learner, job_id)
    state, sentence = await ended(learner, job_id)
    assert state == "failed"
    assert sentence
    assert "could not be put in its place" in sentence
    assert await count(learner, "checkpoints") == 0
