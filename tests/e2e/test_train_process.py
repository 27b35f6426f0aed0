"""One training as its parent sees it: a directory in, a verified adapter or a sentence out. Real torch, tiny base."""

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import StorageFullError
from learner.artifacts import STABLE, verify
from learner.train import job
from learner.train.score import OUTPUT
from learner.types import ServedTurn
from tests.fakes.tiny_base import BASE, ITEMS, SETTINGS, lay_job, make_tiny_base
from tests.support.small_disk import may_mount, small_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).parent.parent.parent
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_base(tmp_path_factory.mktemp("tiny"))


def start(run_dir: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "learner.train.process", str(run_dir)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=before,  # noqa: PLW1509  # sets a limit only; this test process has no threads
    )


def run(run_dir: Path, before: Callable[[], None] | None = None) -> tuple[int, job.Result, str]:
    process = start(run_dir, before)
    output, _ = process.communicate(timeout=240)
    result = job.read_result(run_dir)
    assert result is not None, output
    return process.returncode, result, output


@pytest.fixture(scope="module")
def finished(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = tmp_path_factory.mktemp("finished")
    lay_job(run_dir, model_dir)
    code, result, output = run(run_dir)
    assert (code, result.outcome) == (0, "done"), output
    return run_dir


def test_it_leaves_a_whole_adapter_and_no_texts(finished: Path) -> None:
    result, progress = job.read_result(finished), job.read_progress(finished)
    info = verify(finished / job.CHECKPOINT, BASE, 2)
    assert result is not None
    assert progress is not None
    assert (result.adapter_name, result.content_sha256) == (info.name, info.content_sha256)
    assert result.rollouts == 12
    assert info.lineage.snapshot == json.loads((finished / job.JOB).read_bytes())["snapshot_digest"]
    assert sorted(p.name for p in finished.iterdir()) == sorted(
        [job.CHECKPOINT, job.JOB, job.PROGRESS, job.RESULT, job.ROLLOUTS]
    )
    assert (progress.stage, progress.step, progress.of) == ("saving", 3, 3)
    assert progress.loss is not None
    assert progress.tokens > 0
    assert abs(time.time() - progress.at) < 240
    for path in finished.rglob("*.json"):
        assert "rain?" not in path.read_text()


def test_rollouts_are_kept_as_hashed_token_ids(finished: Path) -> None:
    import hashlib

    result = job.read_result(finished)
    raw = (finished / job.ROLLOUTS).read_bytes()
    assert result is not None
    assert hashlib.sha256(raw).hexdigest() == result.rollouts_sha256
    rows = [row for step in json.loads(raw)["steps"] for row in step]
    assert {row["item_id"] for row in rows} == {item.id for item in ITEMS}
    assert all(len(row["logprobs"]) == len(row["response_token_ids"]) <= 6 for row in rows)
    assert all(row["finished"] == (row["response_token_ids"][-1] == 2) for row in rows)


def test_it_loads_in_plain_transformers_and_peft(finished: Path, model_dir: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    ids = torch.tensor([[5, 6, 7, 8]])
    base = AutoModelForCausalLM.from_pretrained(str(model_dir), dtype=torch.float32)
    with torch.no_grad():
        before = base(ids).logits
        adapted = PeftModel.from_pretrained(base, str(finished / job.CHECKPOINT))
        after = adapted(ids).logits
    assert float((before - after).abs().max()) > 1e-4


def test_same_snapshot_rollouts_settings_and_seed_give_the_same_adapter(
    finished: Path, model_dir: Path, tmp_path: Path
) -> None:
    first = job.read_result(finished)
    replayed, fresh, other = tmp_path / "replayed", tmp_path / "fresh", tmp_path / "other"
    lay_job(replayed, model_dir, resume=True, run_id="run-2")
    shutil.copy(finished / job.ROLLOUTS, replayed / job.ROLLOUTS)
    lay_job(fresh, model_dir, run_id="run-3")
    lay_job(other, model_dir, seed=2)
    results = [run(run_dir)[1] for run_dir in (replayed, fresh, other)]
    assert first is not None
    assert results[0].content_sha256 == results[1].content_sha256 == first.content_sha256
    assert results[0].rollouts_sha256 == results[1].rollouts_sha256 == first.rollouts_sha256
    assert results[2].content_sha256 != first.content_sha256


def wait_for(run_dir: Path, step: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        progress = job.read_progress(run_dir)
        if progress and progress.step >= step:
            return
        time.sleep(0.02)
    pytest.fail("the training never got there")


def test_killed_mid_run_and_resumed_it_ends_where_it_would_have(model_dir: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, steps=40, max_new_tokens=24)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    lay_job(killed, model_dir, settings)
    process = start(killed)
    wait_for(killed, 3)
    process.kill()
    process.communicate(timeout=60)
    assert not (killed / job.CHECKPOINT).exists()
    assert len(json.loads((killed / job.ROLLOUTS).read_bytes())["steps"]) >= 3
    lay_job(killed, model_dir, settings, resume=True)
    lay_job(whole, model_dir, settings)
    assert run(killed)[1].content_sha256 == run(whole)[1].content_sha256


def test_asked_to_stop_it_stops_between_steps_without_a_checkpoint(model_dir: Path, tmp_path: Path) -> None:
    lay_job(tmp_path, model_dir, replace(SETTINGS, steps=500, max_new_tokens=24))
    process = start(tmp_path)
    wait_for(tmp_path, 2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    result = job.read_result(tmp_path)
    assert process.returncode == job.EXIT_STOPPED, output
    assert result is not None
    assert (result.outcome, result.error) == ("stopped", None)
    assert 0 < result.steps < 500
    assert not (tmp_path / job.CHECKPOINT).exists()
    assert not (tmp_path / job.BODIES).exists()


def failed(run_dir: Path, before: Callable[[], None] | None = None) -> tuple[str | None, str]:
    code, result, output = run(run_dir, before)
    assert result.outcome == "failed", output
    assert code == job.EXIT_CODES[result.error or ""]
    assert not (run_dir / job.CHECKPOINT / STABLE).exists()
    assert not (run_dir / job.BODIES).exists()
    assert "rain?" not in output
    return result.error, result.message or ""


def test_a_loss_that_is_no_number_leaves_no_adapter(model_dir: Path, tmp_path: Path) -> None:
    lay_job(tmp_path, model_dir, replace(SETTINGS, learning_rate=1e30))
    error, message = failed(tmp_path)
    assert error == "TrainingStoppedError"
    assert "not a number" in message
    assert not (tmp_path / job.CHECKPOINT).exists()


def test_a_student_that_runs_away_is_stopped(model_dir: Path, tmp_path: Path) -> None:
    lay_job(tmp_path, model_dir, replace(SETTINGS, steps=20, learning_rate=0.3, kl_abort=0.05))
    error, message = failed(tmp_path)
    assert error == "TrainingStoppedError"
    assert "nats from the base" in message


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
def test_a_full_disk_while_saving_loses_nothing_and_room_is_all_it_takes(
    finished: Path, model_dir: Path, tmp_path: Path
) -> None:
    with small_folder(tmp_path / "run", kib=28) as disk:
        lay_job(disk.path, model_dir)
        assert failed(disk.path) == (
            "StorageFullError",
            "the adapter could not be saved: the disk is full; free some space, and it goes on by itself",
        )
        assert not [p for p in disk.path.iterdir() if "checkpoint" in p.name]
        disk.grow(kib=1024)
        lay_job(disk.path, model_dir, resume=True)
        _, result, _ = run(disk.path)
        whole = job.read_result(finished)
        assert whole
        assert (result.outcome, result.content_sha256) == ("done", whole.content_sha256)


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
@pytest.mark.parametrize(("kib", "what", "kept"), [(8, "the progress", 0), (28, "the rollouts", 1)])
def test_a_full_disk_on_the_way_loses_nothing_and_room_is_all_it_takes(
    model_dir: Path, tmp_path: Path, kib: int, what: str, kept: int
) -> None:
    settings = replace(SETTINGS, max_new_tokens=64)
    with small_folder(tmp_path / "run", kib=kib) as disk:
        lay_job(disk.path, model_dir, settings)
        error, message = failed(disk.path)
        assert (error, message.partition(" could not be ")[0]) == ("StorageFullError", what)
        before = steps_of(disk.path)
        assert len(before) == kept
        disk.grow(kib=1024)
        lay_job(disk.path, model_dir, settings, resume=True)
        _, result, _ = run(disk.path)
        assert (result.outcome, result.rollouts) == ("done", 12)
        assert steps_of(disk.path)[:kept] == before


def steps_of(run_dir: Path) -> list[object]:
    """Return the rollouts stored so far, step by step."""
    stored = run_dir / job.ROLLOUTS
    return list(json.loads(stored.read_bytes())["steps"]) if stored.exists() else []


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
def test_a_job_without_room_leaves_no_text(model_dir: Path, tmp_path: Path) -> None:
    with small_folder(tmp_path / "run", kib=4) as disk:
        with pytest.raises(StorageFullError):
            lay_job(disk.path, model_dir)
        assert not [p for p in disk.path.iterdir() if b"rain?" in p.read_bytes()]


def test_a_file_that_may_not_grow_is_a_sentence(model_dir: Path, tmp_path: Path) -> None:
    lay_job(tmp_path, model_dir)
    error, message = failed(tmp_path, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)))
    assert error == "ArtifactError"
    assert "could not be saved" in message
    assert not [p for p in tmp_path.iterdir() if "checkpoint" in p.name]


def test_positions_that_are_not_the_servers_stop_the_run(model_dir: Path, tmp_path: Path) -> None:
    wrong = ServedTurn((1, 40, 50), (60, 61), (-0.1, -0.1))
    lay_job(tmp_path, model_dir, served_turns=(wrong,))
    error, message = failed(tmp_path)
    assert error == "TrainingStoppedError"
    assert "recomputed logprobs differ" in message


@pytest.mark.parametrize(
    ("break_it", "error"),
    [
        (lambda d: (d / job.JOB).write_text("{}"), "InvalidInputError"),
        (lambda d: (d / job.BODIES).unlink(), "InvalidInputError"),
        (
            lambda d: (d / job.JOB).write_text((d / job.JOB).read_text().replace('"seed":1', '"seed":2')),
            "ArtifactError",
        ),
        (lambda d: (d / job.JOB).write_text((d / job.JOB).read_text().replace("/tiny", "/none")), "ArtifactError"),
    ],
)
def test_a_job_that_cannot_be_run_is_named(
    model_dir: Path, tmp_path: Path, break_it: Callable[[Path], object], error: str
) -> None:
    lay_job(tmp_path, model_dir)
    break_it(tmp_path)
    assert failed(tmp_path)[0] == error


_SCORE = """
import asyncio, sys
from pathlib import Path
from learner.gate.server import ProcessScorer
from learner.train.score import ScoreRow
asyncio.run(ProcessScorer(*map(Path, sys.argv[1:])).score([ScoreRow((5, 6), (7, 8), adapter=True)]))
"""


def test_scoring_ends_with_the_worker_that_asked_for_it(finished: Path, model_dir: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    folders = [str(folder) for folder in (model_dir, finished / job.CHECKPOINT, work)]
    worker = subprocess.Popen([sys.executable, "-c", _SCORE, *folders], cwd=ROOT)
    until(lambda: scoring(work))
    worker.kill()
    worker.wait(60)
    until(lambda: not scoring(work))
    assert not (work / OUTPUT).exists()


def scoring(work: Path) -> bool:
    """Whether a process scores in a folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"learner.train.score" in command and str(work).encode() in command and b"ProcessScorer" not in command:
                return True
    return False


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
