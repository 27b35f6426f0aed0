"""What graduation looks at: decisions so far, the last training and what is new since, the job on its way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import select, text

from app.store import admission
from app.store.engine import Tx
from app.store.jobs import Work
from app.store.tables.learning import jobs


@dataclass(frozen=True, slots=True)
class LastRun:
    """A person's last training that was not cancelled: when, what it taught, and how many prompts came since."""

    seconds_ago: float
    lessons: frozenset[UUID]
    examples: frozenset[UUID]
    new_prompts: int


@dataclass(frozen=True, slots=True)
class Step:
    """A job of the road to an adapter; `progress` holds stage, step and of while it runs."""

    kind: str
    state: str
    progress: Mapping[str, object] = field(default_factory=dict)
    error: str | None = None


_RULES = text("""
    select distinct on (memory_id) memory_id, rule from ladder_decisions
    where person_id = :person and memory_id is not null order by memory_id, at desc
""")


async def last_rules(tx: Tx, person_id: UUID) -> dict[UUID, str]:
    """Return the rule that last decided on each memory line."""
    return {row.memory_id: row.rule for row in await tx.execute(_RULES, {"person": person_id})}


async def train_prompts(tx: Tx, person_id: UUID) -> int:
    """Return how many of a person's prompts may train now, before the scrub."""
    found = await admission.prompts(tx, person_id)
    return len({" ".join(p.text.casefold().split()) for p in found if p.split == "train"})


async def on_its_way(tx: Tx, person_id: UUID, kinds: Sequence[str]) -> bool:
    """Whether a job of these kinds is queued or running for a person."""
    query = select(jobs.c.id).where(
        jobs.c.person_id == person_id, jobs.c.kind.in_(kinds), jobs.c.state.in_(("queued", "running"))
    )
    return await tx.scalar(query.limit(1)) is not None


async def last_step(tx: Tx, person_id: UUID, kinds: Sequence[str]) -> Step | None:
    """Return the newest job of these kinds, on its way or over."""
    query = select(jobs.c.kind, jobs.c.state, jobs.c.progress, jobs.c.error).where(
        jobs.c.person_id == person_id, jobs.c.kind.in_(kinds)
    )
    row = (await tx.execute(query.order_by(jobs.c.created_at.desc()).limit(1))).one_or_none()
    return Step(row.kind, row.state, row.progress, row.error) if row else None


_LAST = text("""
    select r.id, r.snapshot_id, r.started_at, extract(epoch from now() - r.started_at) as age
    from training_runs r where r.person_id = :person and r.state <> 'cancelled'
    order by r.started_at desc limit 1
""")
_ITEMS = text("select kind, item_id from snapshot_items where snapshot_id = :snapshot and split = 'train'")
_NEW = text("""
    select count(*) from turns t join sessions s on s.id = t.session_id and s.split = 'train'
    where t.person_id = :person and t.created_at > :since and t.state = 'done'
      and coalesce((t.flags -> 'consents' ->> 'personal_training')::boolean, false)
""")


async def last_run(tx: Tx, person_id: UUID) -> LastRun | None:
    """Return a person's last training and what is new since."""
    row = (await tx.execute(_LAST, {"person": person_id})).one_or_none()
    if row is None:
        return None
    named = (await tx.execute(_ITEMS, {"snapshot": row.snapshot_id})).all()
    new = await tx.scalar(_NEW, {"person": person_id, "since": row.started_at})
    return LastRun(
        float(row.age),
        frozenset(item.item_id for item in named if item.kind == "memory"),
        frozenset(item.item_id for item in named if item.kind == "example"),
        int(new or 0),
    )


_VERDICT = text("""
    select g.verdict from gate_runs g join checkpoints c on c.id = g.checkpoint_id
    where c.person_id = :person and g.verdict is not null order by g.started_at desc limit 1
""")


async def last_verdict(tx: Tx, person_id: UUID) -> str | None:
    """Return how the gates decided on a person's newest checkpoint."""
    found = await tx.scalar(_VERDICT, {"person": person_id})
    return str(found) if found else None


_STOPPED = text("""
    select distinct on (j.key) j.kind, j.queue, j.key, j.payload, j.person_id, j.max_attempts
    from jobs j join checkpoints c on c.id = (j.payload ->> 'checkpoint_id')::uuid
    where j.state = 'failed' and (j.kind, c.state) in (('evaluate', 'candidate'), ('release', 'passed'))
      and j.finished_at < now() - make_interval(secs => :pause)
      and not exists (select 1 from jobs o where o.key = j.key and o.created_at > j.created_at)
      and not exists (select 1 from releases r where r.checkpoint_id = c.id)
      and not exists (select 1 from gate_runs g where g.checkpoint_id = c.id and g.verdict is not null and j.kind = 'evaluate')
      and not exists (
          select 1 from checkpoints n
          where n.person_id = c.person_id and n.created_at > c.created_at and n.state in ('candidate', 'passed')
      )
    order by j.key, j.created_at desc
""")


# What somebody was told is being forgotten is never given up.
_UNFORGOTTEN = text("""
    select distinct on (j.key) j.kind, j.queue, j.key, j.payload, j.person_id, j.max_attempts
    from jobs j
    where j.kind = 'forget' and j.state = 'failed' and j.finished_at < now() - make_interval(secs => :pause)
      and not exists (select 1 from jobs o where o.key = j.key and o.created_at > j.created_at)
    order by j.key, j.created_at desc
""")


async def stopped(tx: Tx, pause_s: float) -> Sequence[Work]:
    """Return what gave up longer than `pause_s` ago and is still worth doing: measurements and releases whose checkpoint
    waits where they left it while no newer one has taken its place, and the removal of what was forgotten.
    """
    return [
        Work(row.kind, row.queue, row.key, row.payload, row.person_id, max_attempts=row.max_attempts)
        for query in (_STOPPED, _UNFORGOTTEN)
        for row in await tx.execute(query, {"pause": pause_s})
    ]
