"""The way of a checkpoint: feedback -> snapshot -> run -> gates -> release. Ids, figures and vocabulary; no texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from app.errors import NotFoundError
from app.store.engine import Tx
from app.store.panel.reading import read_all, read_one


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One line of the list."""

    id: UUID
    name: str
    scope: str
    person_id: UUID | None
    state: str
    verdict: str | None
    release_state: str | None
    up: int
    down: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint with its run and snapshot; both are None where forgetting removed them."""

    id: UUID
    name: str
    digest: str
    scope: str
    person_id: UUID | None
    parent: str | None
    base_id: str
    base_revision: str
    rank: int
    targets: Sequence[str]
    size_bytes: int
    state: str
    memory_count: int
    created_at: datetime
    run_id: UUID | None
    run_state: str | None
    algorithm: str | None
    settings: Mapping[str, object] | None
    seed: int | None
    code_revision: str | None
    metrics: Mapping[str, object] | None
    run_failure: str | None
    run_started_at: datetime | None
    run_ended_at: datetime | None
    snapshot_id: UUID | None
    snapshot_digest: str | None
    snapshot_at: datetime | None
    rollout_digest: str | None
    rollout_rows: int | None
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Part:
    """How many items of one kind a snapshot names, for training and for its gates."""

    kind: str
    train: int
    gate: int


@dataclass(frozen=True, slots=True)
class Step:
    """The loss of one update."""

    step: int
    loss: float | None


@dataclass(frozen=True, slots=True)
class GateRun:
    """One measurement against all gates."""

    id: UUID
    verdict: str | None
    failure: str | None
    suite_digest: str | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate's outcome."""

    gate_run_id: UUID
    gate: str
    outcome: str
    n: int
    value: float | None
    bound: float | None
    threshold: float | None
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Release:
    """A place that the checkpoint had in routing."""

    id: UUID
    state: str
    reason: str | None
    actor: str | None
    announced_at: datetime | None
    kept_at: datetime | None
    created_at: datetime
    changed_at: datetime | None
    previous: str | None


@dataclass(frozen=True, slots=True)
class Origin:
    """A piece of feedback that the snapshot stands on; the panel shows its text only on its own page, by its own rule."""

    feedback_id: UUID
    kind: str
    feedback_class: str | None
    review_state: str
    created_at: datetime


_LIST = text("""
    select c.id, c.name, c.scope, c.person_id, c.state, c.created_at,
           (select verdict from gate_runs g where g.checkpoint_id = c.id order by started_at desc limit 1) as verdict,
           (select state from releases r where r.checkpoint_id = c.id order by created_at desc limit 1) as release_state,
           coalesce(v.up, 0) as up, coalesce(v.down, 0) as down
    from checkpoints c
    left join lateral (
        select count(*) filter (where value = 1) as up, count(*) filter (where value = -1) as down
        from turns t join votes on votes.turn_id = t.id where t.checkpoint_id = c.id
    ) v on true
    where (cast(:scope as text) = '' or c.scope = :scope) and (cast(:state as text) = '' or c.state = :state)
    order by c.created_at desc, c.id limit :limit offset :offset
""")

_ONE = text("""
    select c.id, c.name, c.digest, c.scope, c.person_id, p.name as parent, c.base_id, c.base_revision, c.rank, c.targets,
           c.size_bytes, c.state, cardinality(c.memory_ids) as memory_count, c.created_at,
           r.id as run_id, r.state as run_state, r.algorithm, r.settings, r.seed, r.code_revision, r.metrics,
           r.failure as run_failure, r.started_at as run_started_at, r.ended_at as run_ended_at,
           s.id as snapshot_id, s.digest as snapshot_digest, s.created_at as snapshot_at,
           a.digest as rollout_digest, a.rows as rollout_rows,
           coalesce(v.up, 0) as up, coalesce(v.down, 0) as down
    from checkpoints c
    left join checkpoints p on p.id = c.parent_id
    left join training_runs r on r.id = c.run_id
    left join snapshots s on s.id = r.snapshot_id
    left join rollout_artifacts a on a.run_id = r.id
    left join lateral (
        select count(*) filter (where value = 1) as up, count(*) filter (where value = -1) as down
        from turns t join votes on votes.turn_id = t.id where t.checkpoint_id = c.id
    ) v on true
    where c.id = :id
""")

_PARTS = text("""
    select kind, count(*) filter (where split = 'train') as train, count(*) filter (where split = 'gate') as gate
    from snapshot_items where snapshot_id = :id group by kind order by kind
""")

_STEPS = text("select step, loss from training_steps where run_id = :id order by step")

_GATE_RUNS = text("""
    select id, verdict, failure, suite_digest, started_at, ended_at from gate_runs
    where checkpoint_id = :id order by started_at desc limit 5
""")

_GATES = text("""
    select r.gate_run_id, r.gate, r.outcome, r.n, r.value, r.bound, r.threshold, r.detail
    from gate_results r join gate_runs g on g.id = r.gate_run_id where g.checkpoint_id = :id
    order by array_position(array['target', 'kept', 'retention', 'safety', 'drift', 'isolation'], split_part(r.gate, '/', 1)), r.gate
""")

_RELEASES = text("""
    select r.id, r.state, r.reason, r.actor, r.announced_at, r.kept_at, r.created_at, r.changed_at, pc.name as previous
    from releases r
    left join releases p on p.id = r.previous_id left join checkpoints pc on pc.id = p.checkpoint_id
    where r.checkpoint_id = :id order by r.created_at desc
""")

# A snapshot names feedback directly, or by the memory line that it became, or by that line's examples.
_ORIGINS = text("""
    select distinct f.id as feedback_id, f.kind, f.class as feedback_class, f.review_state, f.created_at
    from snapshot_items i
    left join examples e on i.kind = 'example' and e.id = i.item_id
    left join memory_lines m on m.id = case i.kind when 'memory' then i.item_id when 'example' then e.memory_id end
    join feedback f on f.id = case i.kind when 'feedback' then i.item_id else m.feedback_id end
    where i.snapshot_id = :id order by f.created_at limit 20
""")


async def checkpoints(tx: Tx, *, scope: str, state: str, limit: int, offset: int) -> Sequence[CheckpointRow]:
    """Return the newest first; empty `scope` and `state` do not filter."""
    return await read_all(tx, CheckpointRow, _LIST.bindparams(scope=scope, state=state, limit=limit, offset=offset))


async def checkpoint(tx: Tx, checkpoint_id: UUID) -> Checkpoint:
    """Return one checkpoint.

    Raises:
        NotFoundError: there is none.
    """
    found = await read_one(tx, Checkpoint, _ONE.bindparams(id=checkpoint_id))
    if found is None:
        raise NotFoundError
    return found


async def parts(tx: Tx, snapshot_id: UUID) -> Sequence[Part]:
    """Return what a snapshot consists of."""
    return await read_all(tx, Part, _PARTS.bindparams(id=snapshot_id))


async def origins(tx: Tx, snapshot_id: UUID) -> Sequence[Origin]:
    """Return up to 20 pieces of feedback that a snapshot stands on."""
    return await read_all(tx, Origin, _ORIGINS.bindparams(id=snapshot_id))


async def steps(tx: Tx, run_id: UUID) -> Sequence[Step]:
    """Return the updates of a run in order."""
    return await read_all(tx, Step, _STEPS.bindparams(id=run_id))


async def gate_runs(tx: Tx, checkpoint_id: UUID) -> Sequence[GateRun]:
    """Return the latest measurements, newest first."""
    return await read_all(tx, GateRun, _GATE_RUNS.bindparams(id=checkpoint_id))


async def gates(tx: Tx, checkpoint_id: UUID) -> Sequence[Gate]:
    """Return the outcomes of all its measurements, in the order gates are read."""
    return await read_all(tx, Gate, _GATES.bindparams(id=checkpoint_id))


async def releases(tx: Tx, checkpoint_id: UUID) -> Sequence[Release]:
    """Return its places in routing, newest first."""
    return await read_all(tx, Release, _RELEASES.bindparams(id=checkpoint_id))
