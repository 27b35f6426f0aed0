"""What the panel knows of people: ids, consents with their history, what forgetting would take. No names, no addresses.

The texts of memory are read only while the person allows people to review.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text

from app.domain.consent import Purpose
from app.errors import NotFoundError
from app.store.consents import allowed_in_sql
from app.store.engine import Tx
from app.store.panel.reading import allows_now, only_if, read_all, read_one
from app.store.tables.feedback import memory_lines
from app.store.tables.people import consent_events


@dataclass(frozen=True, slots=True)
class PersonRow:
    """One line of the list; `allowed` are the purposes granted at this moment."""

    id: UUID
    status: str
    language: str | None
    channels: Sequence[str]
    turns: int
    feedback: int
    allowed: Sequence[str]
    last_seen_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Consent:
    """One event of the consent log."""

    purpose: str
    event: str
    notice_version: str
    notice_language: str
    channel: str
    at: datetime


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory line; `text` is None where it may not be read."""

    id: UUID
    kind: str
    text: str | None
    state: str
    uses: int
    failures: int
    sessions: int
    checkpoint_id: UUID | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Adapter:
    """A checkpoint trained for, or with items of, the person."""

    id: UUID
    name: str
    scope: str
    state: str
    release_state: str | None


@dataclass(frozen=True, slots=True)
class ForgetPreview:
    """What forgetting takes: counts of rows, checkpoints of their own, shared ones that must be retrained or retired."""

    turns: int
    feedback: int
    memory: int
    examples: int
    sessions: int
    snapshots: int
    own_checkpoints: int
    shared_checkpoints: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody who asked for a human and has a silent bot meanwhile."""

    person_id: UUID
    channel: str
    paused_at: datetime


_WAITING = text("""
    select c.person_id, b.channel, c.paused_at from chats c join bots b on b.id = c.bot_id
    where c.status = 'paused' and c.person_id is not null and (cast(:one as uuid) is null or c.person_id = :one)
    order by c.paused_at
""")

_LIST = text(f"""
    select p.id, p.status, p.language, p.last_seen_at, p.created_at,
           coalesce((select array_agg(distinct b.channel) from accounts a join bots b on b.id = a.bot_id
                     where a.person_id = p.id), array[]::text[]) as channels,
           (select count(*) from turns t where t.person_id = p.id) as turns,
           (select count(*) from feedback f where f.person_id = p.id) as feedback,
           {allowed_in_sql("p.id")} as allowed
    from people p
    where (cast(:search as text) = '' or cast(p.id as text) like :prefix
           or exists (select from accounts a where a.person_id = p.id and a.external_id = :search))
      and (cast(:status as text) = '' or p.status = :status) and (cast(:one as uuid) is null or p.id = :one)
    order by p.last_seen_at desc nulls last, p.id limit :limit offset :offset
""")  # noqa: S608 - constants of ours; values are bound

_ADAPTERS = text("""
    select c.id, c.name, c.scope, c.state,
           (select state from releases r where r.checkpoint_id = c.id order by created_at desc limit 1) as release_state
    from checkpoints c where c.person_id = :id or c.id in (select id from
        (select c2.id from checkpoints c2 join training_runs tr on tr.id = c2.run_id
         join snapshot_items i on i.snapshot_id = tr.snapshot_id
         where i.item_id in (select f.id from feedback f where f.person_id = :id
                             union select m.id from memory_lines m where m.person_id = :id
                             union select e.id from examples e where e.person_id = :id
                             union select t.id from turns t where t.person_id = :id)) shared)
    order by c.created_at desc
""")

_PREVIEW = text("""
    select (select count(*) from turns where person_id = :id) as turns,
           (select count(*) from feedback where person_id = :id) as feedback,
           (select count(*) from memory_lines where person_id = :id) as memory,
           (select count(*) from examples where person_id = :id) as examples,
           (select count(*) from sessions where person_id = :id) as sessions,
           (select count(*) from snapshots where person_id = :id) as snapshots
""")


async def page(tx: Tx, *, search: str, status: str, limit: int, offset: int) -> Sequence[PersonRow]:
    """Return the last seen first. `search` is the beginning of an id, or a whole id on a channel."""
    prefix = "".join(c for c in search.lower() if c in "0123456789abcdef-") if search else ""
    # What is no part of an id must not match every id.
    like = f"{prefix}%" if prefix and prefix == search.lower() else "-"
    query = _LIST.bindparams(search=search, prefix=like, status=status, one=None, limit=limit, offset=offset)
    return await read_all(tx, PersonRow, query)


async def person(tx: Tx, person_id: UUID) -> PersonRow:
    """Return one person.

    Raises:
        NotFoundError: there is none.
    """
    query = _LIST.bindparams(search="", prefix="-", status="", one=person_id, limit=1, offset=0)
    found = await read_one(tx, PersonRow, query)
    if found is None:
        raise NotFoundError
    return found


async def waiting(tx: Tx, person_id: UUID | None = None) -> Sequence[Waiting]:
    """Return who waits for a human, the longest first; of one person where given."""
    return await read_all(tx, Waiting, _WAITING.bindparams(one=person_id))


async def consents(tx: Tx, person_id: UUID) -> Sequence[Consent]:
    """Return the consent log, newest first."""
    columns = ("purpose", "event", "notice_version", "notice_language", "channel", "at")
    query = select(*(consent_events.c[name] for name in columns)).where(consent_events.c.person_id == person_id)
    return await read_all(tx, Consent, query.order_by(consent_events.c.at.desc(), consent_events.c.purpose))


async def memory(tx: Tx, person_id: UUID) -> Sequence[MemoryRow]:
    """Return the memory lines, active ones first."""
    readable = allows_now(memory_lines.c.person_id, Purpose.HUMAN_REVIEW)
    columns = ("id", "kind", "state", "uses", "failures", "checkpoint_id", "created_at")
    query = (
        select(
            *(memory_lines.c[name] for name in columns),
            only_if(readable, memory_lines.c.text).label("text"),
            func.cardinality(memory_lines.c.session_ids).label("sessions"),
        )
        .where(memory_lines.c.person_id == person_id)
        .order_by(memory_lines.c.state != "active", memory_lines.c.created_at.desc())
    )
    return await read_all(tx, MemoryRow, query)


async def adapters(tx: Tx, person_id: UUID) -> Sequence[Adapter]:
    """Return their own checkpoints and the shared ones that stand on items of theirs."""
    return await read_all(tx, Adapter, _ADAPTERS.bindparams(id=person_id))


async def forget_preview(tx: Tx, person_id: UUID) -> ForgetPreview:
    """Return what forgetting the person takes.

    Raises:
        NotFoundError: there is no such person.
    """
    await person(tx, person_id)
    counts = (await tx.execute(_PREVIEW.bindparams(id=person_id))).mappings().one()
    made = [a for a in await adapters(tx, person_id) if a.state != "deleted"]
    own = sum(a.scope == "person" for a in made)
    return ForgetPreview(**counts, own_checkpoints=own, shared_checkpoints=len(made) - own)
