"""Model servers: which were seen, whether they proved their isolation, which adapters each has ready.

`desired` says what should be loaded; `learner/serve` makes it so. Knows no HTTP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.store.engine import Tx
from app.store.lineage import Checkpoint, to_checkpoint
from app.store.tables.learning import checkpoints, loaded_adapters, model_servers

_RECONCILE_LOCK = 7_153_001


@dataclass(frozen=True, slots=True)
class Server:
    """A model server's row."""

    id: UUID
    url: str
    probe_state: str
    probe_detail: Mapping[str, object]


async def try_lock(tx: Tx) -> bool:
    """Take the right to reconcile until `tx` ends, unless another process has it."""
    return bool(await tx.scalar(select(func.pg_try_advisory_xact_lock(_RECONCILE_LOCK))))


async def ensure(tx: Tx, url: str, base_id: str) -> Server:
    """Return the row of the server at `url`, made when it is new."""
    made = insert(model_servers).values(url=url, base_id=base_id)
    made = made.on_conflict_do_update(index_elements=["url"], set_={"base_id": base_id})
    row = (await tx.execute(made.returning(model_servers))).one()
    return Server(row.id, row.url, row.probe_state, row.probe_detail)


async def seen(tx: Tx, server_id: UUID) -> None:
    """Note that a server answered now."""
    await tx.execute(update(model_servers).where(model_servers.c.id == server_id).values(seen_at=func.now()))


async def set_probe(tx: Tx, server_id: UUID, state: str, detail: Mapping[str, object]) -> None:
    """Store whether a server's isolation probe passed. Without a pass nothing counts as loaded there."""
    await tx.execute(
        update(model_servers)
        .where(model_servers.c.id == server_id)
        .values(probe_state=state, probe_detail=dict(detail), probed_at=func.now(), seen_at=func.now())
    )
    if state != "passed":
        await tx.execute(delete(loaded_adapters).where(loaded_adapters.c.server_id == server_id))


async def probe_unknown(tx: Tx, server_id: UUID) -> None:
    """Note that a server was restarted: it proves its isolation anew, and has nothing loaded."""
    await tx.execute(update(model_servers).where(model_servers.c.id == server_id).values(probe_state="unknown"))
    await tx.execute(delete(loaded_adapters).where(loaded_adapters.c.server_id == server_id))


_DESIRED = text("""
    select distinct c.id from checkpoints c join releases r on r.checkpoint_id = c.id
    where c.state = 'passed' and (
        r.state = 'live'
        or (r.state = 'superseded' and exists (
            select 1 from sessions s where s.release_id = r.id and s.ended_at is null
              and s.last_at > now() - interval '1 day'))
    )
    union
    select c.id from checkpoints c
    join jobs j on j.payload ->> 'checkpoint_id' = c.id::text and j.kind in ('evaluate', 'release')
    where c.state in ('candidate', 'passed') and j.state = 'running' and j.lease_until > now()
""")


async def desired(tx: Tx) -> Sequence[Checkpoint]:
    """Return what should be loaded: live releases, those that open conversations are pinned to, and candidates now
    being measured or released.
    """
    ids = list(await tx.scalars(_DESIRED))
    rows = await tx.execute(select(checkpoints).where(checkpoints.c.id.in_(ids)).order_by(checkpoints.c.created_at))
    return [to_checkpoint(row) for row in rows]


async def names(tx: Tx, grace_s: float) -> tuple[set[str], set[str]]:
    """Return (all adapter names we ever registered, those that left routing less than `grace_s` ago).

    The grace lets requests that chose their adapter just before a rollback finish without an error.
    """
    ours = set(await tx.scalars(select(checkpoints.c.name)))
    recent = await tx.scalars(_RECENT, {"grace": grace_s})
    return ours, set(recent)


_RECENT = text("""
    select c.name from checkpoints c join releases r on r.checkpoint_id = c.id
    where c.state <> 'deleted' and r.state in ('superseded', 'rolled_back')
      and r.changed_at > now() - make_interval(secs => :grace)
""")


async def set_loaded(tx: Tx, server_id: UUID, checkpoint_id: UUID, state: str, failure: str | None = None) -> None:
    """Note that a checkpoint is loading, ready, failed or unloading on a server."""
    made = insert(loaded_adapters).values(
        server_id=server_id, checkpoint_id=checkpoint_id, state=state, failure=failure
    )
    await tx.execute(
        made.on_conflict_do_update(
            index_elements=["server_id", "checkpoint_id"],
            set_={"state": state, "failure": failure, "changed_at": func.now()},
        )
    )


async def not_loaded(tx: Tx, server_id: UUID, keep: Sequence[UUID]) -> None:
    """Forget what is noted as loaded on a server, but for `keep`."""
    gone = delete(loaded_adapters).where(
        loaded_adapters.c.server_id == server_id, loaded_adapters.c.checkpoint_id.not_in(keep)
    )
    await tx.execute(gone)


async def ready(tx: Tx, server_id: UUID) -> set[UUID]:
    """Return the checkpoints that are loaded, warmed and checked on a server."""
    query = select(loaded_adapters.c.checkpoint_id).where(
        loaded_adapters.c.server_id == server_id, loaded_adapters.c.state == "ready"
    )
    return set(await tx.scalars(query))


async def proven(tx: Tx) -> Sequence[str]:
    """Return the addresses of servers that proved their isolation since their start, the last seen first."""
    query = select(model_servers.c.url).where(model_servers.c.probe_state == "passed")
    return list(await tx.scalars(query.order_by(model_servers.c.seen_at.desc().nulls_last())))


_OTHERS = text("""
    select c.name from loaded_adapters l
    join model_servers v on v.id = l.server_id and v.url = :url
    join checkpoints c on c.id = l.checkpoint_id and c.state = 'passed'
    where l.state = 'ready' and c.person_id is distinct from :person
    order by l.changed_at desc limit :limit
""")


async def others(tx: Tx, url: str, person_id: UUID, limit: int) -> Sequence[str]:
    """Return adapters of other people that are ready on a server, to watch that a candidate does not touch them."""
    return list(await tx.scalars(_OTHERS, {"url": url, "person": person_id, "limit": limit}))
