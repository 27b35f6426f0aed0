"""Lineage: what a training learnt from, how it ran, what came out, how it was measured.

    snapshot ─► training run ─► rollouts, steps ─► checkpoint ─► gate run

Snapshots name rows by id and salted digest, never by text. Knows no files and no model servers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import ColumnElement, Row, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from app.domain.turn import BaseIdentity
from app.errors import ConflictError, NotFoundError
from app.store.engine import Tx
from app.store.tables.learning import (
    checkpoints,
    gate_results,
    gate_runs,
    jobs,
    rollout_artifacts,
    snapshot_items,
    snapshots,
    training_runs,
    training_steps,
)


@dataclass(frozen=True, slots=True)
class Item:
    """One row a snapshot names; `split` is train or gate."""

    kind: str
    item_id: UUID
    digest: bytes
    split: str = "train"


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """An immutable manifest with its address, and the salt that can be deleted."""

    digest: str
    person_id: UUID
    manifest: Mapping[str, object]
    salt: bytes = field(repr=False)
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot read back."""

    id: UUID
    digest: str
    manifest: dict[str, object]
    salt: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One training."""

    id: UUID
    snapshot_id: UUID
    person_id: UUID | None
    state: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One immutable adapter. `path` is where its files are, `memory_ids` the lines it was taught."""

    id: UUID
    name: str
    digest: str
    scope: str
    person_id: UUID | None
    run_id: UUID | None
    base: BaseIdentity
    rank: int
    path: str
    state: str
    memory_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """What a run wrote."""

    name: str
    digest: str
    person_id: UUID
    run_id: UUID
    base: BaseIdentity
    rank: int
    targets: tuple[str, ...]
    path: str
    size_bytes: int
    memory_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """What may have folders: adapters by name, trainings and the gate runs at work by id."""

    adapters: frozenset[str]
    trainings: frozenset[str]
    gates: frozenset[str]


@dataclass(frozen=True, slots=True)
class Figure:
    """One gate's outcome: passed, failed, inconclusive or skipped, with what was measured."""

    gate: str
    outcome: str
    n: int
    value: float | None = None
    bound: float | None = None
    threshold: float | None = None
    detail: Mapping[str, object] = field(default_factory=dict)


async def add_snapshot(tx: Tx, new: NewSnapshot) -> UUID:
    """Store a snapshot and the rows it names."""
    made = insert(snapshots).values(
        digest=new.digest, scope="person", person_id=new.person_id, manifest=dict(new.manifest), salt=new.salt
    )
    snapshot_id = UUID(str(await tx.scalar(made.returning(snapshots.c.id))))
    rows = [
        {"snapshot_id": snapshot_id, "kind": i.kind, "item_id": i.item_id, "salted_digest": i.digest, "split": i.split}
        for i in new.items
    ]
    if rows:
        await tx.execute(insert(snapshot_items), rows)
    return snapshot_id


async def snapshot(tx: Tx, snapshot_id: UUID) -> StoredSnapshot:
    """Return a snapshot. Raises `NotFoundError` when it was forgotten."""
    row = (await tx.execute(select(snapshots).where(snapshots.c.id == snapshot_id))).one_or_none()
    if row is None:
        raise NotFoundError
    return StoredSnapshot(row.id, row.digest, row.manifest, row.salt)


async def items(tx: Tx, snapshot_id: UUID, split: str) -> set[UUID]:
    """Return the ids of the rows that a snapshot names on one side."""
    query = select(snapshot_items.c.item_id).where(
        snapshot_items.c.snapshot_id == snapshot_id, snapshot_items.c.split == split
    )
    return set(await tx.scalars(query))


async def begin_run(
    tx: Tx, snapshot_id: UUID, job_id: UUID, person_id: UUID, settings: Mapping[str, object], code_revision: str
) -> UUID:
    """Register a training that is about to start; seed and algorithm are the settings' own."""
    made = insert(training_runs).values(
        snapshot_id=snapshot_id,
        job_id=job_id,
        person_id=person_id,
        algorithm=str(settings["algorithm"]),
        settings={k: v for k, v in settings.items() if k != "seed"},
        seed=settings["seed"],
        code_revision=code_revision,
    )
    return UUID(str(await tx.scalar(made.returning(training_runs.c.id))))


async def run(tx: Tx, run_id: UUID) -> Run | None:
    """Return a training."""
    row = (await tx.execute(select(training_runs).where(training_runs.c.id == run_id))).one_or_none()
    return Run(row.id, row.snapshot_id, row.person_id, row.state) if row else None


async def runs_of(tx: Tx, person_id: UUID) -> int:
    """Return how many trainings a person had."""
    query = select(func.count()).select_from(training_runs).where(training_runs.c.person_id == person_id)
    return int(await tx.scalar(query) or 0)


async def add_step(tx: Tx, run_id: UUID, step: int, loss: float | None, metrics: Mapping[str, object]) -> None:
    """Keep what an update measured; a resumed run measures its steps again."""
    made = upsert(training_steps).values(run_id=run_id, step=step, loss=loss, metrics=dict(metrics))
    await tx.execute(
        made.on_conflict_do_update(
            index_elements=["run_id", "step"], set_={"loss": made.excluded.loss, "metrics": made.excluded.metrics}
        )
    )


async def end_run(
    tx: Tx, run_id: UUID, state: str, failure: str | None = None, metrics: Mapping[str, object] | None = None
) -> None:
    """Store how a training ended: done, failed or cancelled."""
    ended = update(training_runs).where(training_runs.c.id == run_id, training_runs.c.state == "running")
    await tx.execute(ended.values(state=state, failure=failure, metrics=dict(metrics or {}), ended_at=func.now()))


async def end_abandoned(tx: Tx) -> Sequence[UUID]:
    """End the trainings whose job is over or gone; return them."""
    at_work = select(jobs.c.id).where(jobs.c.id == training_runs.c.job_id, jobs.c.state.in_(("queued", "running")))
    left = update(training_runs).where(training_runs.c.state == "running", ~at_work.exists())
    ended = left.values(state="cancelled", failure="its job ended first", ended_at=func.now())
    return list(await tx.scalars(ended.returning(training_runs.c.id)))


_UNMEASURED = text("""
    select c.id, c.person_id from checkpoints c
    where c.state = 'candidate' and c.person_id is not null
      and not exists (select 1 from gate_runs g where g.checkpoint_id = c.id and g.verdict is not null)
      and not exists (select 1 from jobs j where j.key = 'evaluate:' || c.id and j.state in ('queued', 'running'))
      and (select count(*) from jobs j where j.key = 'evaluate:' || c.id) < :most
""")


async def unmeasured(tx: Tx, most: int) -> Sequence[tuple[UUID, UUID]]:
    """Return the candidates without verdict that no job is about, with their persons; not those that `most` jobs ended
    on in vain.
    """
    return [(row.id, row.person_id) for row in await tx.execute(_UNMEASURED, {"most": most})]


async def add_rollouts(tx: Tx, run_id: UUID, digest: str, path: str, rows: int) -> None:
    """Register the rollouts of a run."""
    made = upsert(rollout_artifacts).values(run_id=run_id, digest=digest, path=path, rows=rows)
    await tx.execute(made.on_conflict_do_nothing(index_elements=["run_id"]))


async def add_checkpoint(tx: Tx, new: NewCheckpoint) -> UUID:
    """Register what a run wrote, as a candidate.

    Raises:
        ConflictError: this very adapter was made before; the same content has one name.
    """
    made = upsert(checkpoints).values(
        name=new.name,
        digest=new.digest,
        scope="person",
        person_id=new.person_id,
        run_id=new.run_id,
        base_id=new.base.base_id,
        base_revision=new.base.revision,
        tokenizer_digest=new.base.tokenizer_digest,
        template_digest=new.base.template_digest,
        rank=new.rank,
        targets=list(new.targets),
        path=new.path,
        size_bytes=new.size_bytes,
        memory_ids=list(new.memory_ids),
    )
    made_id = await tx.scalar(made.on_conflict_do_nothing(index_elements=["name"]).returning(checkpoints.c.id))
    if made_id is None:
        raise ConflictError("this training gave an adapter that was made before")
    return UUID(str(made_id))


async def checkpoint(tx: Tx, checkpoint_id: UUID) -> Checkpoint:
    """Return a checkpoint. Raises `NotFoundError` when it was forgotten."""
    row = (await tx.execute(select(checkpoints).where(checkpoints.c.id == checkpoint_id))).one_or_none()
    if row is None:
        raise NotFoundError
    return to_checkpoint(row)


async def checkpoints_of(tx: Tx, person_id: UUID, *states: str) -> Sequence[Checkpoint]:
    """Return a person's checkpoints in one of `states`, newest first."""
    query = select(checkpoints).where(checkpoints.c.person_id == person_id, checkpoints.c.state.in_(states))
    return [to_checkpoint(row) for row in await tx.execute(query.order_by(checkpoints.c.created_at.desc()))]


async def set_state(tx: Tx, checkpoint_id: UUID, state: str, *, among: tuple[str, ...]) -> None:
    """Move a checkpoint to `state` from one of `among`.

    Raises:
        ConflictError: it is in another state, or gone.
    """
    moved = update(checkpoints).where(checkpoints.c.id == checkpoint_id, checkpoints.c.state.in_(among))
    if (await tx.execute(moved.values(state=state))).rowcount != 1:
        raise ConflictError("the checkpoint was changed meanwhile")


async def park_other_bases(tx: Tx, base: BaseIdentity) -> tuple[Sequence[UUID], int]:
    """Park what belongs to another base than the one served, and take up again what belongs to it; return the
    checkpoints parked now, and how many were taken up.

    A parked checkpoint keeps its release, so that going back to its base is enough to be served by it again.
    """
    same = _same_base(base)
    parked = update(checkpoints).where(~same, checkpoints.c.state.in_(("candidate", "passed")))
    moved = (await tx.scalars(parked.values(state="parked").returning(checkpoints.c.id))).all()
    passed = checkpoints.c.state == "parked", same, passed_gates(checkpoints.c.id)
    taken_up = (await tx.execute(update(checkpoints).where(*passed).values(state="passed"))).rowcount
    return moved, taken_up


async def cut_off_gates(tx: Tx, checkpoint_id: UUID) -> Sequence[UUID]:
    """Return the measurements of a checkpoint that came to no end."""
    query = select(gate_runs.c.id).where(gate_runs.c.checkpoint_id == checkpoint_id, gate_runs.c.verdict.is_(None))
    return list(await tx.scalars(query))


async def begin_gates(tx: Tx, checkpoint_id: UUID, job_id: UUID, thresholds: Mapping[str, object], suite: str) -> UUID:
    """Register a measurement; one of the same checkpoint that was cut off is dropped."""
    await tx.execute(delete(gate_runs).where(gate_runs.c.checkpoint_id == checkpoint_id, gate_runs.c.verdict.is_(None)))
    made = insert(gate_runs).values(
        checkpoint_id=checkpoint_id, job_id=job_id, thresholds=dict(thresholds), suite_digest=suite
    )
    return UUID(str(await tx.scalar(made.returning(gate_runs.c.id))))


async def end_gates(
    tx: Tx, gate_run_id: UUID, verdict: str, figures: Sequence[Figure], failure: str | None = None
) -> None:
    """Store a measurement's figures and its verdict: passed, refused or inconclusive."""
    rows = [
        {
            "gate_run_id": gate_run_id,
            "gate": f.gate,
            "outcome": f.outcome,
            "n": f.n,
            "value": f.value,
            "bound": f.bound,
            "threshold": f.threshold,
            "detail": dict(f.detail),
        }
        for f in figures
    ]
    if rows:
        await tx.execute(insert(gate_results), rows)
    ended = update(gate_runs).where(gate_runs.c.id == gate_run_id)
    await tx.execute(ended.values(verdict=verdict, failure=failure, ended_at=func.now()))


def passed_gates(checkpoint_id: ColumnElement[UUID]) -> ColumnElement[bool]:
    """Return the condition that a checkpoint has a gate run that passed (invariant I5)."""
    return (
        select(gate_runs.c.id)
        .where(gate_runs.c.checkpoint_id == checkpoint_id, gate_runs.c.verdict == "passed")
        .exists()
    )


async def known_files(tx: Tx) -> KnownFiles:
    """Return what may have folders; an adapter has one from just before it is registered."""
    names = await tx.scalars(select(checkpoints.c.name).where(checkpoints.c.state != "deleted"))
    placed = await tx.scalars(_PLACED)
    runs = await tx.scalars(select(training_runs.c.id))
    measured = select(gate_runs.c.id).join(jobs, jobs.c.id == gate_runs.c.job_id)
    gates = await tx.scalars(measured.where(gate_runs.c.verdict.is_(None), jobs.c.state == "running"))
    return KnownFiles(
        frozenset((*names, *placed)), frozenset(str(run) for run in runs), frozenset(str(gate) for gate in gates)
    )


# What a training that is not over has put in its place, or is about to.
_PLACED = text("""
    select payload ->> 'adapter' from jobs
    where kind = 'train' and state in ('queued', 'running') and payload ? 'adapter'
""")


async def registered(tx: Tx, name: str) -> bool:
    """Whether there is a checkpoint of this name, deleted or not."""
    return await tx.scalar(select(checkpoints.c.id).where(checkpoints.c.name == name)) is not None


def to_checkpoint(row: Row[tuple[object, ...]]) -> Checkpoint:
    """Return a checkpoint of its row."""
    base = BaseIdentity(row.base_id, row.base_revision, row.tokenizer_digest, row.template_digest)
    return Checkpoint(
        row.id,
        row.name,
        row.digest,
        row.scope,
        row.person_id,
        row.run_id,
        base,
        row.rank,
        row.path,
        row.state,
        tuple(row.memory_ids),
    )


def _same_base(base: BaseIdentity) -> ColumnElement[bool]:
    c = checkpoints.c
    return (
        (c.base_id == base.base_id)
        & (c.base_revision == base.revision)
        & (c.tokenizer_digest == base.tokenizer_digest)
        & (c.template_digest == base.template_digest)
    )
