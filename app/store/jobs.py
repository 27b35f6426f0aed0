"""Work for the learner. The row is the truth; a broker message only says "look at this id".

    queued ─► running ─► done | failed | cancelled
       ▲         │
       └─────────┘  retry · postponed (paused) · lease ran out

At most one live job per key. A claim is a lease by the database's clock; `fence` grows with each claim, and whoever
lost it can change nothing any more. Knows no broker and no handlers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.errors import ConflictError
from app.store.clock import after
from app.store.engine import Tx
from app.store.tables.learning import jobs

LEASE_S = 30.0
REWAKE_S = 20.0
LIVE = ("queued", "running")
DIED = "the worker stopped answering"


class JobLostError(ConflictError):
    """This job was cancelled, or another worker has it now."""


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed or listed job."""

    id: UUID
    kind: str
    queue: str
    key: str
    person_id: UUID | None
    payload: Mapping[str, object]
    state: str
    attempts: int
    max_attempts: int
    fence: int
    cancel_requested: bool = False
    progress: Mapping[str, object] = field(default_factory=dict)
    error: str | None = None
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A job to be queued. `key` names what it is about; while one is live a second changes nothing."""

    kind: str
    queue: str
    key: str
    payload: Mapping[str, str | int | list[str]] = field(default_factory=dict)
    """Ids and figures only: this is kept for months and shown in the panel."""
    person_id: UUID | None = None
    delay_s: float = 0.0
    max_attempts: int = 3


async def enqueue(tx: Tx, work: Work) -> UUID:
    """Queue `work` in the caller's transaction; return the live job of its key, new or old."""
    made = insert(jobs).values(
        kind=work.kind,
        queue=work.queue,
        key=work.key,
        payload=dict(work.payload),
        person_id=work.person_id,
        max_attempts=work.max_attempts,
        due_at=after(work.delay_s),
    )
    same_key = made.on_conflict_do_update(
        index_elements=["key"],
        # Written out: with bound states PostgreSQL's generic plan, from the sixth use of a connection on, finds no index.
        index_where=text("state in ('queued', 'running')"),
        # Nothing changes, but the row is locked and returned.
        set_={"key": jobs.c.key},
    )
    return UUID(str(await tx.scalar(same_key.returning(jobs.c.id))))


async def live(tx: Tx, key: str) -> Job | None:
    """Return the queued or running job of `key`."""
    row = (await tx.execute(select(jobs).where(jobs.c.key == key, jobs.c.state.in_(LIVE)))).one_or_none()
    return _job(row) if row else None


async def claim(tx: Tx, job_id: UUID, owner: str) -> Job | None:
    """Take a due job, or one whose worker is gone; None when there is nothing to do."""
    free = or_(jobs.c.state == "queued", (jobs.c.state == "running") & (jobs.c.lease_until < func.now()))
    taken = (
        update(jobs)
        .where(jobs.c.id == job_id, free, jobs.c.due_at <= func.now(), jobs.c.attempts < jobs.c.max_attempts)
        .values(
            state="running",
            owner=owner,
            attempts=jobs.c.attempts + 1,
            fence=jobs.c.fence + 1,
            heartbeat_at=func.now(),
            lease_until=after(LEASE_S),
        )
    )
    row = (await tx.execute(taken.returning(jobs))).one_or_none()
    return _job(row) if row else None


async def heartbeat(tx: Tx, job: Job) -> bool:
    """Hold the lease; return whether somebody asked to cancel.

    Raises:
        JobLostError: the job is not ours any more.
    """
    held = update(jobs).where(*_mine(job)).values(heartbeat_at=func.now(), lease_until=after(LEASE_S))
    row = (await tx.execute(held.returning(jobs.c.cancel_requested))).one_or_none()
    if row is None:
        raise JobLostError
    return bool(row.cancel_requested)


async def report(tx: Tx, job: Job, progress: Mapping[str, object]) -> None:
    """Say how far the job is: figures and vocabulary words that people are shown.

    Raises:
        JobLostError: the job is not ours any more.
    """
    await _end(tx, job, progress=json.loads(json.dumps(dict(progress))))


async def remember(tx: Tx, job: Job, **payload: str) -> None:
    """Keep ids that a later attempt needs to go on from here.

    Raises:
        JobLostError: the job is not ours any more.
    """
    await _end(tx, job, payload=jobs.c.payload.concat(payload))


async def finish(tx: Tx, job: Job) -> None:
    """End the job well, in the transaction of its result.

    Raises:
        JobLostError: the job is not ours any more, so the result must not count.
    """
    await _end(tx, job, state="done", error=None, finished_at=func.now(), lease_until=None)


async def fail(tx: Tx, job: Job, reason: str) -> None:
    """End the job for good, with the sentence that people are shown. Raises `JobLostError`."""
    await _end(tx, job, state="failed", error=reason, finished_at=func.now(), lease_until=None)


async def cancelled(tx: Tx, job: Job, reason: str) -> None:
    """End the job because it may not go on. Raises `JobLostError`."""
    await _end(tx, job, state="cancelled", error=reason, finished_at=func.now(), lease_until=None)


async def retry(tx: Tx, job: Job, reason: str, delay_s: float) -> None:
    """Give the job back to be tried again, or end it when it was tried often enough. Raises `JobLostError`."""
    if job.attempts >= job.max_attempts:
        await fail(tx, job, reason)
        return
    await _end(
        tx, job, state="queued", error=reason, due_at=after(delay_s), woken_at=None, lease_until=None, owner=None
    )


async def postpone(tx: Tx, job: Job, why: str, delay_s: float, sentence: str | None = None) -> None:
    """Give the job back untried, because its step is paused or not yet possible; `sentence` tells an operator what to do.

    Raises:
        JobLostError: the job is not ours any more.
    """
    progress = {**job.progress, "waiting": why}
    await _end(
        tx,
        job,
        state="queued",
        attempts=func.greatest(jobs.c.attempts - 1, 0),
        due_at=after(delay_s),
        woken_at=None,
        lease_until=None,
        owner=None,
        progress=progress,
        **({"error": sentence} if sentence else {}),
    )


async def cancel(tx: Tx, person_id: UUID, kinds: Sequence[str], reason: str) -> int:
    """End a person's queued jobs of `kinds` and ask the running ones to stop; return how many were running."""
    theirs = (jobs.c.person_id == person_id, jobs.c.kind.in_(kinds))
    waiting = update(jobs).where(*theirs, jobs.c.state == "queued")
    await tx.execute(waiting.values(state="cancelled", error=reason, finished_at=func.now()))
    running = update(jobs).where(*theirs, jobs.c.state == "running").values(cancel_requested=True, error=reason)
    return (await tx.execute(running)).rowcount


_WAKE = text("""
    with due as (
        select j.id from jobs j
        where j.state = 'queued' and j.due_at <= now()
          and (j.woken_at is null or j.woken_at < now() - make_interval(secs => :again))
          and not exists (
              select 1 from switches s where s.paused
                and s.name = case j.queue when 'train' then 'training' when 'release' then 'release'
                                          when 'score' then 'scoring' end
                and j.kind <> 'forget'
          )
        order by j.due_at
        limit :limit
        for update skip locked
    )
    update jobs j set woken_at = now() from due where j.id = due.id returning j.id, j.queue
""")


async def to_wake(tx: Tx, limit: int) -> list[tuple[UUID, str]]:
    """Return due jobs that nobody was told of lately, as (id, queue); they count as told when `tx` commits."""
    return [(row.id, row.queue) for row in await tx.execute(_WAKE, {"again": REWAKE_S, "limit": limit})]


async def not_woken(tx: Tx, ids: Sequence[UUID]) -> None:
    """Take back that these were told of: the broker did not take the message."""
    await tx.execute(update(jobs).where(jobs.c.id.in_(ids), jobs.c.state == "queued").values(woken_at=None))


async def sweep(tx: Tx) -> list[UUID]:
    """Give back the jobs whose worker died; those that were tried often enough fail visibly. Returns the latter."""
    gone = (jobs.c.state == "running", jobs.c.lease_until < func.now())
    over = update(jobs).where(*gone, jobs.c.attempts >= jobs.c.max_attempts)
    failed = over.values(state="failed", error=DIED, finished_at=func.now(), lease_until=None)
    ids = list(await tx.scalars(failed.returning(jobs.c.id)))
    await tx.execute(
        update(jobs)
        .where(*gone, jobs.c.attempts < jobs.c.max_attempts)
        .values(state="queued", woken_at=None, owner=None, lease_until=None, error=DIED)
    )
    return ids


async def passed_on(tx: Tx, job: Job) -> bool:
    """Whether another worker has a job by now or will get it; not when it was ended, cancelled or forgotten."""
    row = (await tx.execute(select(jobs.c.state, jobs.c.fence).where(jobs.c.id == job.id))).one_or_none()
    return row is not None and (row.state == "queued" or row.fence != job.fence)


async def purge(tx: Tx, days: int) -> int:
    """Drop finished jobs older than `days`."""
    old = jobs.delete().where(jobs.c.finished_at < after(-days * 86_400))
    return (await tx.execute(old)).rowcount


def _mine(job: Job) -> tuple[ColumnElement[bool], ...]:
    return (jobs.c.id == job.id, jobs.c.fence == job.fence, jobs.c.state == "running")


async def _end(tx: Tx, job: Job, **values: object) -> None:
    if (await tx.execute(update(jobs).where(*_mine(job)).values(**values))).rowcount != 1:
        raise JobLostError


def _job(row: Row[tuple[object, ...]]) -> Job:
    names = Job.__dataclass_fields__
    return Job(**{name: row._mapping[name] for name in names})  # noqa: SLF001 - SQLAlchemy's public name for it
