"""Kind `train`: admission ─► snapshot ─► run folder ─► training process ─► checkpoint ─► a job to evaluate it.

A run that was cut off (killed worker, pause) is taken up again from its rollouts, if every row it learns from may still
train and says the same; else it is over and a new one begins.
"""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from uuid import UUID

from app.errors import (
    ArtifactError,
    ConflictError,
    MenteeError,
    NotFoundError,
    PausedError,
    StorageFullError,
    StoreUnavailableError,
    TrainingStoppedError,
)
from app.failpoints import reach
from app.store import Tx, admission, jobs, lineage
from app.store.jobs import Job, Work
from learner.artifacts import AdapterInfo, checked_name, verify
from learner.dataset.admit import Admission, admit
from learner.dataset.freeze import freeze, memory_ids, thaw, train_settings
from learner.dataset.manifest import Snapshot
from learner.durable import discard, rename_durably, unwritten
from learner.tasks.context import Learner
from learner.tasks.stop import NotAllowedError, check_consent, check_job, check_switch, hold_consent
from learner.tasks.trainer import Trainer, trainer
from learner.train import job as files

POLL_S = 1.0
SERVED_TURNS = 4
THREADS = 2


class TrainerDiedError(MenteeError):
    """The training process ended without a result; it is started again from its rollouts."""

    retryable = True


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A run that may start."""

    run_id: UUID
    person_id: UUID
    snapshot: Snapshot
    bodies: files.Bodies = field(repr=False)
    resume: bool = False


async def run(learner: Learner, job: Job) -> None:
    """Train one person's adapter."""
    async with learner.store.begin() as tx:
        await check_switch(tx, "training")
        prepared = await _prepare(learner, tx, job)
    run_dir = learner.places.runs / str(prepared.run_id)
    try:
        result = await _train(learner, job, prepared, run_dir)
        await _register(learner, job, prepared, run_dir, result)
    except (PausedError, StoreUnavailableError, StorageFullError):
        raise  # everything stays: the run goes on from its rollouts
    except TrainerDiedError:
        if job.attempts >= job.max_attempts:
            await _end(learner, prepared.run_id, "failed", TrainerDiedError.__doc__)
        raise
    except jobs.JobLostError:
        await _abandon(learner, job, prepared.run_id, run_dir)
        raise
    except (TrainingStoppedError, ArtifactError, ConflictError) as error:
        await _end(learner, prepared.run_id, "failed", str(error))
        raise
    except BaseException:  # cancelled, forgotten, withdrawn, or a defect: nothing of this run may stay
        await _abandon(learner, job, prepared.run_id, run_dir)
        raise


async def _prepare(learner: Learner, tx: Tx, job: Job) -> _Prepared:
    """Freeze what may train now, or take up the run that was cut off."""
    if job.person_id is None:
        raise NotAllowedError("a personal training needs a person")
    await check_consent(tx, job.person_id)
    admitted = await admit(tx, job.person_id, learner.settings.ladder)
    served = await admission.served(tx, job.person_id, learner.stored_base, SERVED_TURNS)
    if taken := await _take_up(learner, tx, job, admitted):
        return taken
    least = learner.settings.ladder.train_min_prompts
    if not admitted.lines:
        raise TrainingStoppedError("there is no lesson that may train any more")
    if len(admitted.train) < least:
        raise TrainingStoppedError(f"{len(admitted.train)} of the {least} consented prompts that a training needs")
    settings = train_settings(learner.profile, admitted.lines, threads=THREADS, device=learner.settings.train_device)
    seed = 1 + await lineage.runs_of(tx, job.person_id)
    frozen = freeze(admitted, served, learner.base, settings, seed, learner.code_revision)
    manifest = frozen.snapshot.manifest
    new = lineage.NewSnapshot(
        frozen.snapshot.digest, job.person_id, manifest.as_json(), frozen.bodies.salt, frozen.items
    )
    snapshot_id = await lineage.add_snapshot(tx, new)
    settings_json = {**asdict(settings), "seed": seed}
    run_id = await lineage.begin_run(tx, snapshot_id, job.id, job.person_id, settings_json, learner.code_revision)
    await jobs.remember(tx, job, run_id=str(run_id))
    return _Prepared(run_id, job.person_id, frozen.snapshot, frozen.bodies)


async def _take_up(learner: Learner, tx: Tx, job: Job, admitted: Admission) -> _Prepared | None:
    """Return a run that was cut off, unless what it learns from has changed."""
    if "run_id" not in job.payload:
        return None
    run_id, placed = UUID(str(job.payload["run_id"])), str(job.payload.get("adapter", ""))
    known = await lineage.run(tx, run_id)
    if known is None or known.state != "running":
        return None
    try:
        stored = await lineage.snapshot(tx, known.snapshot_id)
        served = await admission.served(tx, admitted.person_id, learner.stored_base, SERVED_TURNS)
        snapshot, bodies = thaw(stored, admitted, served)
    except (ArtifactError, NotFoundError):
        await lineage.end_run(tx, run_id, "cancelled", "what it learnt from has changed")
        discard(learner.places.runs / str(run_id))
        await _discard_placed(learner, tx, placed)
        return None
    return _Prepared(run_id, admitted.person_id, snapshot, bodies, resume=True)


async def _train(learner: Learner, job: Job, prepared: _Prepared, run_dir: Path) -> files.Result:
    """Run the process to its end and return its result; a run that had ended before is not run again."""
    if prepared.resume and (done := _finished(learner, run_dir)):
        return done
    spec = files.RunSpec(
        str(prepared.run_id),
        learner.model_dir,
        prepared.snapshot,
        resume=prepared.resume,
        template_args=learner.profile.chat_template_args,
    )
    files.write_job(run_dir, spec, prepared.bodies)
    async with trainer(run_dir, learner.python_path) as running:
        seen = -1
        while (code := await running.ended(POLL_S)) is None:
            seen = await _watch(learner, job, prepared, running, seen)
    result = files.read_result(run_dir)
    if code == files.EXIT_CODES["StorageFullError"]:
        raise StorageFullError(result.message if result else None)
    if result is None or code < 0 or result.outcome == "stopped":
        raise TrainerDiedError
    if result.outcome == "failed":
        raise TrainingStoppedError(result.message or result.error or "the training failed")
    return result


def _finished(learner: Learner, run_dir: Path) -> files.Result | None:
    """Return the result of a run that had ended well, if what it wrote is still there; else it is trained again."""
    done = files.read_result(run_dir)
    if done is None or done.outcome != "done":
        return None
    written = (run_dir / files.CHECKPOINT, learner.places.checkpoints / str(done.adapter_name))
    return done if any(folder.is_dir() for folder in written) else None


async def _watch(learner: Learner, job: Job, prepared: _Prepared, running: Trainer, seen: int) -> int:
    """Show the progress, and stop the run when it is paused or not allowed any more; return the last step shown."""
    now = running.progress()
    async with learner.store.begin() as tx:
        if now is not None:
            shown = {"stage": now.stage, "step": now.step, "of": now.of, "loss": now.loss, "seconds": now.seconds}
            await jobs.report(tx, job, shown)
        if now is not None and now.loss is not None and now.step > seen:
            figures = {"opd": now.opd, "anchor": now.anchor, "kl": now.kl, "tokens": now.tokens}
            await lineage.add_step(tx, prepared.run_id, now.step, now.loss, figures)
            seen = now.step
        await check_consent(tx, prepared.person_id)
        paused = await _paused(tx)
    if paused:
        await running.stop()
        raise PausedError
    return seen


async def _paused(tx: Tx) -> bool:
    try:
        await check_switch(tx, "training")
    except PausedError:
        return True
    return False


async def _register(learner: Learner, job: Job, prepared: _Prepared, run_dir: Path, result: files.Result) -> None:
    """Move the checkpoint to its place and write everything down in one transaction, if consent still stands.

    Its name is written down before: weights that are in their place already must be found by whoever forgets or tidies.
    """
    async with learner.store.begin() as tx:
        await jobs.remember(tx, job, adapter=str(result.adapter_name))
    info = _place(learner, run_dir, str(result.adapter_name))
    reach("train:placed")
    new = lineage.NewCheckpoint(
        name=info.name,
        digest=info.content_sha256,
        person_id=prepared.person_id,
        run_id=prepared.run_id,
        base=learner.stored_base,
        rank=info.rank,
        targets=info.targets,
        path=str(info.directory),
        size_bytes=info.size_bytes,
        memory_ids=memory_ids(prepared.snapshot),
    )
    rollouts = str(run_dir / files.ROLLOUTS)
    figures = {
        "seconds": result.seconds,
        "steps": result.steps,
        "rollouts": result.rollouts,
        "prompts_trimmed": result.prompts_trimmed,
        "prompts_left_out": result.prompts_left_out,
    }
    try:
        async with learner.store.begin() as tx:
            await hold_consent(tx, prepared.person_id)
            await check_job(tx, job)
            await lineage.add_rollouts(tx, prepared.run_id, str(result.rollouts_sha256), rollouts, result.rollouts)
            checkpoint_id = await lineage.add_checkpoint(tx, new)
            await lineage.end_run(tx, prepared.run_id, "done", metrics=figures)
            await jobs.enqueue(tx, evaluation(checkpoint_id, prepared.person_id))
            await jobs.finish(tx, job)
    except (NotAllowedError, jobs.JobLostError):
        await _withdraw_checkpoint(learner, job, info)
        raise


async def _withdraw_checkpoint(learner: Learner, job: Job, info: AdapterInfo) -> None:
    """Remove weights that may not be registered, unless another worker registers the very same."""
    async with learner.store.begin() as tx:
        if not await jobs.passed_on(tx, job):
            await _discard_placed(learner, tx, info.name)


async def _discard_placed(learner: Learner, tx: Tx, name: str) -> None:
    """Remove an adapter that was put in its place and not registered; one that an earlier run registered stays."""
    if name and not await lineage.registered(tx, checked_name(name)):
        discard(learner.places.checkpoints / name)


def evaluation(checkpoint_id: UUID, person_id: UUID) -> Work:
    """Return the job that measures a checkpoint."""
    return Work("evaluate", "evaluate", f"evaluate:{checkpoint_id}", {"checkpoint_id": str(checkpoint_id)}, person_id)


def _place(learner: Learner, run_dir: Path, name: str) -> AdapterInfo:
    """Move a finished checkpoint under its content name; doing it again changes nothing.

    Raises:
        ArtifactError: it does not verify, or holds another adapter than the run said.
        StorageFullError: the disk is full; what the run wrote stays where it is.
    """
    target = learner.places.checkpoints / name
    if not target.exists():
        info = verify(run_dir / files.CHECKPOINT, learner.base, learner.fleet.max_rank)
        if info.name != name:
            raise ArtifactError("the run wrote another adapter than it said")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.utime(run_dir / files.CHECKPOINT)  # as an orphan it is as old as this
            rename_durably(run_dir / files.CHECKPOINT, target)
        except OSError as error:
            raise unwritten(error, "the checkpoint could not be put in its place") from error
    return verify(target, learner.base, learner.fleet.max_rank)


async def _abandon(learner: Learner, job: Job, run_id: UUID, run_dir: Path) -> None:
    """Leave nothing of a run behind, unless another worker takes it up: then it is theirs."""
    async with learner.store.begin() as tx:
        if await jobs.passed_on(tx, job):
            return
        await lineage.end_run(tx, run_id, "cancelled")
    discard(run_dir)


async def _end(learner: Learner, run_id: UUID, state: str, failure: str | None) -> None:
    async with learner.store.begin() as tx:
        await lineage.end_run(tx, run_id, state, failure)
