"""Releases: a checkpoint's place in routing, how it came and how it went.

    live ─► superseded (a newer one) | rolled_back (by the person or an operator) | retired (withdrawn, forgotten)

At most one live release a person (a constraint). Nothing goes live without a gate run that passed (I5); nothing is
routed that is not ready on a server whose isolation probe passed (I4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, func, insert, select, text, update

from app.errors import ConflictError, NotFoundError
from app.store.engine import Tx
from app.store.lineage import passed_gates
from app.store.tables.feedback import feedback, memory_lines
from app.store.tables.learning import checkpoints, releases
from app.store.tables.people import people


@dataclass(frozen=True, slots=True)
class Release:
    """One release."""

    id: UUID
    person_id: UUID | None
    checkpoint_id: UUID
    previous_id: UUID | None
    state: str
    announced_at: datetime | None = None
    kept_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a turn goes: the adapter's name on the server, and the rows that a turn records."""

    adapter: str
    checkpoint_id: UUID
    release_id: UUID
    announced: bool


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A person whose live adapter is not served any more, the private chat they used last, and their language."""

    person_id: UUID
    chat_id: UUID | None
    language: str | None


@dataclass(frozen=True, slots=True)
class WrittenUnder:
    """What came to be while a release answered: turns it wrote, lines of memory and examples that came from them."""

    turns: tuple[UUID, ...]
    memory: tuple[UUID, ...]
    feedback: tuple[UUID, ...]


async def access(tx: Tx, release_id: UUID, person_id: UUID | None = None) -> Release:
    """Return a release and lock it; with `person_id` only if it is theirs.

    Raises:
        NotFoundError: there is none, or it is somebody else's.
    """
    query = select(releases).where(releases.c.id == release_id).with_for_update()
    if person_id is not None:
        query = query.where(releases.c.person_id == person_id)
    row = (await tx.execute(query)).one_or_none()
    if row is None:
        raise NotFoundError
    return _release(row)


async def live(tx: Tx, person_id: UUID) -> Release | None:
    """Return a person's live release."""
    query = select(releases).where(releases.c.person_id == person_id, releases.c.state == "live")
    row = (await tx.execute(query)).one_or_none()
    return _release(row) if row else None


async def go_live(tx: Tx, person_id: UUID, checkpoint_id: UUID, actor: str) -> UUID:
    """Make a checkpoint the person's live release; the one before is superseded.

    Raises:
        ConflictError: it has no gate run that passed, is not theirs, or was retired meanwhile.
    """
    # The person's row orders releases, rollbacks and withdrawals of one person.
    if await tx.scalar(select(people.c.id).where(people.c.id == person_id).with_for_update()) is None:
        raise ConflictError("the person is gone")
    fit = select(checkpoints.c.id).where(
        checkpoints.c.id == checkpoint_id,
        checkpoints.c.person_id == person_id,
        checkpoints.c.state == "passed",
        passed_gates(checkpoints.c.id),
    )
    if await tx.scalar(fit.with_for_update()) is None:
        raise ConflictError("only a checkpoint that passed its gates may go live")
    previous = update(releases).where(releases.c.person_id == person_id, releases.c.state == "live")
    previous_id = await tx.scalar(previous.values(state="superseded", changed_at=func.now()).returning(releases.c.id))
    made = insert(releases).values(
        scope="person",
        person_id=person_id,
        checkpoint_id=checkpoint_id,
        previous_id=previous_id,
        state="live",
        actor=actor,
        changed_at=func.now(),
    )
    return UUID(str(await tx.scalar(made.returning(releases.c.id))))


async def end(tx: Tx, release_id: UUID, state: str, reason: str, actor: str) -> None:
    """Take a release out of routing.

    Raises:
        ConflictError: it was out already.
    """
    going = update(releases).where(releases.c.id == release_id, releases.c.state.in_(("live", "superseded")))
    ended = going.values(state=state, reason=reason, actor=actor, changed_at=func.now())
    if (await tx.execute(ended)).rowcount != 1:
        raise ConflictError("the release was taken back already")


async def revive_before(tx: Tx, release: Release) -> Release | None:
    """Make the newest release before `release` that may still be served live again; None when there is none."""
    row = (await tx.execute(_BEFORE, {"release": release.id})).one_or_none()
    if row is None:
        return None
    back = update(releases).where(releases.c.id == row.id, releases.c.state == "superseded")
    revived = (await tx.execute(back.values(state="live", changed_at=func.now()).returning(releases))).one_or_none()
    return _release(revived) if revived else None


_BEFORE = text("""
    with recursive chain as (
        select previous_id as id, 1 as depth from releases where id = :release
        union all
        select r.previous_id, chain.depth + 1 from releases r join chain on r.id = chain.id where chain.depth < 50
    )
    select r.id from chain join releases r on r.id = chain.id join checkpoints c on c.id = r.checkpoint_id
    where r.state = 'superseded' and c.state = 'passed'
    order by chain.depth limit 1
""")


async def teaching(tx: Tx, person_id: UUID, line_id: UUID) -> Sequence[Release]:
    """Return a person's releases in routing whose adapter was taught a line, locked, the live one last."""
    query = (
        select(releases)
        .join(checkpoints, checkpoints.c.id == releases.c.checkpoint_id)
        .where(
            releases.c.person_id == person_id,
            releases.c.state.in_(("live", "superseded")),
            checkpoints.c.memory_ids.contains([line_id]),
        )
        .order_by((releases.c.state == "live"), releases.c.created_at)
        .with_for_update(of=releases)
    )
    return [_release(row) for row in await tx.execute(query)]


async def retire_all(tx: Tx, person_id: UUID, reason: str, actor: str) -> Sequence[UUID]:
    """Take every release of a person out of routing; return their checkpoints."""
    gone = update(releases).where(
        releases.c.person_id == person_id, releases.c.state.in_(("pending", "live", "superseded"))
    )
    ended = gone.values(state="retired", reason=reason, actor=actor, changed_at=func.now())
    return list(await tx.scalars(ended.returning(releases.c.checkpoint_id)))


async def keep(tx: Tx, release_id: UUID) -> bool:
    """Note that the person keeps what was learnt; False when they had said so before."""
    kept = update(releases).where(releases.c.id == release_id, releases.c.kept_at.is_(None))
    return (await tx.execute(kept.values(kept_at=func.now()))).rowcount == 1


async def announce(tx: Tx, release_id: UUID) -> bool:
    """Take the right to tell the person what was learnt; False when they were told before, or it is not live."""
    first = update(releases).where(
        releases.c.id == release_id, releases.c.announced_at.is_(None), releases.c.state == "live"
    )
    return (await tx.execute(first.values(announced_at=func.now()))).rowcount == 1


async def graduate(tx: Tx, person_id: UUID, line_ids: Sequence[UUID], checkpoint_id: UUID) -> Sequence[UUID]:
    """Note which lines a checkpoint now stands for; return those whose state changed by it."""
    theirs = (memory_lines.c.person_id == person_id, memory_lines.c.id.in_(line_ids))
    new = update(memory_lines).where(*theirs, memory_lines.c.state == "active")
    values = {"state": "graduated", "checkpoint_id": checkpoint_id, "changed_at": func.now()}
    changed = list(await tx.scalars(new.values(values).returning(memory_lines.c.id)))
    again = update(memory_lines).where(*theirs, memory_lines.c.state == "graduated")
    await tx.execute(again.values(checkpoint_id=checkpoint_id))
    return changed


async def return_lines(tx: Tx, person_id: UUID, keep_ids: Sequence[UUID]) -> Sequence[UUID]:
    """Bring graduated lines but `keep_ids` back into the prompt; return them."""
    back = update(memory_lines).where(
        memory_lines.c.person_id == person_id,
        memory_lines.c.state == "graduated",
        memory_lines.c.id.not_in(keep_ids),
    )
    values = {"state": "active", "checkpoint_id": None, "changed_at": func.now()}
    return list(await tx.scalars(back.values(values).returning(memory_lines.c.id)))


async def exclude_source(tx: Tx, person_id: UUID, line_id: UUID) -> None:
    """Keep the feedback that a line came from out of every training."""
    source = select(memory_lines.c.feedback_id).where(
        memory_lines.c.id == line_id, memory_lines.c.person_id == person_id
    )
    await tx.execute(update(feedback).where(feedback.c.id == source.scalar_subquery()).values(excluded=True))


async def learnt_lines(tx: Tx, release_id: UUID) -> Sequence[str]:
    """Return the texts of the lines that a release's adapter stands for, oldest first."""
    query = (
        select(memory_lines.c.text)
        .join(releases, releases.c.checkpoint_id == memory_lines.c.checkpoint_id)
        .where(releases.c.id == release_id, memory_lines.c.state == "graduated")
    )
    return list(await tx.scalars(query.order_by(memory_lines.c.created_at)))


async def written_under(tx: Tx, release_id: UUID) -> WrittenUnder:
    """Return what came to be under a release, oldest first."""
    found = {
        name: tuple(await tx.scalars(query, {"release": release_id}))
        for name, query in (("turns", _TURNS), ("memory", _MEMORY), ("feedback", _FEEDBACK))
    }
    return WrittenUnder(**found)


_TURNS = text("select id from turns where release_id = :release order by number")
_FEEDBACK = text("""
    select f.id from feedback f join turns t on t.id = f.turn_id where t.release_id = :release order by f.created_at
""")
_MEMORY = text("""
    select m.id from memory_lines m join feedback f on f.id = m.feedback_id join turns t on t.id = f.turn_id
    where t.release_id = :release and m.state in ('active', 'graduated') order by m.created_at
""")

_ROUTE = text("""
    select c.name, c.id as checkpoint_id, r.id as release_id, r.announced_at is not null as announced
    from sessions s
    join chats h on h.id = s.chat_id and h.kind = 'private' and h.person_id = s.person_id
    join releases r on r.id = s.release_id and r.person_id = s.person_id and r.state in ('live', 'superseded')
    join checkpoints c on c.id = r.checkpoint_id and c.person_id = s.person_id and c.state = 'passed'
    join loaded_adapters l on l.checkpoint_id = c.id and l.state = 'ready'
    join model_servers v on v.id = l.server_id and v.probe_state = 'passed'
    where s.id = :session and s.person_id = :person
      and exists (select 1 from gate_runs g where g.checkpoint_id = c.id and g.verdict = 'passed')
    order by v.seen_at desc nulls last
    limit 1
""")


async def route(tx: Tx, person_id: UUID, session_id: UUID) -> Routed | None:
    """Return the adapter for a turn of this session: what it is pinned to, if that may still be served and is ready."""
    row = (await tx.execute(_ROUTE, {"person": person_id, "session": session_id})).one_or_none()
    return Routed(row.name, row.checkpoint_id, row.release_id, row.announced) if row else None


_LEFT_ALONE = text("""
    select r.person_id, p.language, (
        select s.chat_id from sessions s join chats h on h.id = s.chat_id
        where s.person_id = r.person_id and h.kind = 'private' and h.status = 'active'
        order by s.last_at desc limit 1
    ) as chat_id
    from releases r join people p on p.id = r.person_id
    where r.state = 'live' and r.checkpoint_id = any(:checkpoints)
""")


async def left_alone(tx: Tx, checkpoint_ids: Sequence[UUID]) -> Sequence[LeftAlone]:
    """Return the people whose live release is one of these checkpoints."""
    found = await tx.execute(_LEFT_ALONE, {"checkpoints": list(checkpoint_ids)})
    return [LeftAlone(row.person_id, row.chat_id, row.language) for row in found]


def _release(row: Row[tuple[object, ...]]) -> Release:
    return Release(row.id, row.person_id, row.checkpoint_id, row.previous_id, row.state, row.announced_at, row.kept_at)
