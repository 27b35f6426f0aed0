"""Raw updates: stored once, claimed in the order of their lane, renewed, finished. Ordering and dedupe are constraints.

An update whose lane is empty can be claimed as it is stored, by the process that stores it. Of every other lane one row
can be claimed at a time: what was held before and whose lease is over, else the oldest; so updates of one chat never
overtake each other, and lanes run side by side. A claim is a lease by the database's clock; its owner and its number
(`attempts`) are the fence in the final update, so that a process which lost a claim and has it again ends only the newer
one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from sqlalchemy import Update, func, select, text, update
from sqlalchemy.exc import IntegrityError

from app.errors import MenteeError
from app.store.claims import claiming
from app.store.clock import after
from app.store.engine import Tx, constraint_of
from app.store.pool import StatementPool
from app.store.tables.road import inbox, turns

LEASE_S = 30
DAY_S = 86_400
MAX_ATTEMPTS = 5
ONE_A_LANE = "ix_inbox_claimed"


@dataclass(frozen=True, slots=True)
class Stored:
    """An update to be stored: keyed digests of its identifiers, lane and bytes."""

    keys: tuple[bytes, ...]
    lane: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """An update that this process handles now."""

    id: int
    bot_id: UUID
    lane: str
    body: bytes
    attempts: int


class LaneTakenError(MenteeError):
    """Somebody else took up a row of the same lane in this very moment: look again."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whether an update was new, then its row, and the claim where it is the caller's to handle now."""

    new: bool
    claimed: Claimed | None = None
    id: int | None = None


def lane_of(bot_id: UUID, lane: str) -> str:
    """Return the name of a bot's lane among those of all bots."""
    return f"{bot_id}:{lane}"


async def accept(pool: StatementPool, bot_id: UUID, update: Stored, owner: str | None = None) -> Accepted:
    """Store an update; one whose any key was seen before has no effect.

    With an `owner` it is claimed where its lane is empty, unless intake is paused. Whoever may not have learnt that a claim
    succeeded, because the answer was lost or nobody waited for it, gives back (`give_back`) what they do not handle.
    """
    keys, lane = sorted(set(update.keys)), lane_of(bot_id, update.lane)
    row = {"keys": keys, "count": len(keys), "bot": bot_id, "lane": lane, "body": update.body, "lease": LEASE_S}
    try:
        rows = await pool.fetch(_ACCEPT, row | {"owner": owner})
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name != ONE_A_LANE:
            raise
        # Somebody took up a row of this lane in this very moment: this one waits behind it.
        rows = await pool.fetch(_ACCEPT, row | {"owner": None})
    if not rows:
        return Accepted(new=False)
    (stored,) = rows
    claimed = Claimed(stored["id"], bot_id, lane, update.body, attempts=1) if stored["owner"] else None
    return Accepted(new=True, claimed=claimed, id=stored["id"])


# While intake is paused nothing is claimed; what arrives is stored.
_GOING_ON = "not exists (select 1 from switches where name = 'intake' and paused)"
_ACCEPT = text(f"""
    with fresh as (
        insert into dedupe_keys (key) select unnest(cast(:keys as bytea[])) on conflict do nothing returning key
    ),
    taken as (
        select cast(:owner as text) as owner where {_GOING_ON}
          and not exists (select 1 from inbox where lane = cast(:lane as text) and state in ('stored', 'claimed'))
    )
    insert into inbox (bot_id, lane, body, state, owner, attempts, lease_until)
    select cast(:bot as uuid), cast(:lane as text), cast(:body as bytea),
           case when taken.owner is null then 'stored' else 'claimed' end, taken.owner,
           case when taken.owner is null then 0 else 1 end,
           case when taken.owner is not null then now() + make_interval(secs => :lease) end
    from (select count(*) from fresh) as seen left join taken on true where seen.count = :count
    returning id, owner
""")  # noqa: S608 - the condition is ours
_CLAIM = text(
    claiming("inbox", "lane", waiting="stored", held="claimed", only=_GOING_ON)
    + "from ready where taken.id = ready.id returning taken.id, taken.bot_id, taken.lane, taken.body, taken.attempts"
)


async def claim(tx: Tx, owner: str, limit: int) -> list[Claimed]:
    """Claim up to `limit` rows, at most one a lane; none while intake is paused.

    Raises:
        LaneTakenError: nothing was claimed; look again.
    """
    try:
        rows = await tx.execute(_CLAIM, {"owner": owner, "limit": limit, "lease": LEASE_S})
    except IntegrityError as error:
        if constraint_of(error) != ONE_A_LANE:
            raise
        raise LaneTakenError from error
    return sorted((Claimed(r.id, r.bot_id, r.lane, bytes(r.body or b""), r.attempts) for r in rows), key=lambda c: c.id)


async def renew(tx: Tx, owner: str, held: Collection[Claimed]) -> None:
    """Hold the leases of rows that are still worked on."""
    ids = [claimed.id for claimed in held]
    mine = update(inbox).where(inbox.c.id.in_(ids), inbox.c.owner == owner, inbox.c.state == "claimed")
    await tx.execute(mine.values(lease_until=after(LEASE_S)))


async def give_back(tx: Tx, owner: str, handled: Collection[Claimed]) -> int:
    """Give back what `owner` has claimed and does not handle, because it never learnt of it; return how many rows."""
    ids = [claimed.id for claimed in handled]
    unknown = update(inbox).where(inbox.c.owner == owner, inbox.c.state == "claimed", inbox.c.id.not_in(ids))
    tries = func.greatest(inbox.c.attempts - 1, 0)
    given = unknown.values(state="stored", owner=None, lease_until=None, attempts=tries)
    return (await tx.execute(given)).rowcount


async def finish(tx: Tx, claimed: Claimed, owner: str, state: str, error: str | None = None) -> bool:
    """End a row as done, refused, quarantined or dead; False when it was claimed anew meanwhile."""
    ended = _held(claimed, owner).values(state=state, error=error, finished_at=func.now(), lease_until=None)
    return (await tx.execute(ended)).rowcount == 1


async def forget_body(tx: Tx, claimed: Claimed) -> None:
    """Take the words of an update that nobody sent who is known: their person was forgotten before it came."""
    await tx.execute(update(inbox).where(inbox.c.id == claimed.id).values(body=None))


async def behind(tx: Tx, claimed: Claimed, most: int) -> Sequence[tuple[int, bytes]]:
    """Return number and bytes of the next updates that wait in the lane of one that is handled, in order."""
    waiting = (inbox.c.lane == claimed.lane) & (inbox.c.state == "stored") & (inbox.c.id > claimed.id)
    rows = await tx.execute(select(inbox.c.id, inbox.c.body).where(waiting).order_by(inbox.c.id).limit(most))
    return [(row.id, bytes(row.body or b"")) for row in rows]


@dataclass(frozen=True, slots=True)
class Ahead:
    """An update before one that is handled: its state, why it had no effect where that was noted, and its bytes."""

    state: str
    error: str | None
    body: bytes


async def ahead(tx: Tx, claimed: Claimed, most: int) -> Sequence[Ahead]:
    """Return the updates before one that is handled, in its lane and in the one that overtakes it, the newest first."""
    before = inbox.c.lane.in_((claimed.lane, _overtaking(claimed))) & (inbox.c.id < claimed.id)
    columns = (inbox.c.state, inbox.c.error, inbox.c.body)
    rows = await tx.execute(select(*columns).where(before).order_by(inbox.c.id.desc()).limit(most))
    return [Ahead(row.state, row.error, bytes(row.body or b"")) for row in rows]


async def body_of(tx: Tx, inbox_id: int) -> bytes | None:
    """Return the bytes of an update; None once they are not kept any more."""
    found = await tx.scalar(select(inbox.c.body).where(inbox.c.id == inbox_id))
    return bytes(found) if found else None


async def finish_with(tx: Tx, claimed: Claimed, others: Sequence[int]) -> None:
    """End others that wait in the same lane together with one that is handled: they are handled by it."""
    mine = update(inbox).where(inbox.c.id.in_(others), inbox.c.lane == claimed.lane, inbox.c.state == "stored")
    await tx.execute(mine.values(state="done", finished_at=func.now()))


async def is_open(tx: Tx, inbox_id: int) -> bool:
    """Whether an update still waits or is being handled."""
    row = select(inbox.c.id).where(inbox.c.id == inbox_id, inbox.c.state.in_(("stored", "claimed")))
    return await tx.scalar(row) is not None


async def is_busy(tx: Tx, bot_id: UUID, lane: str) -> bool:
    """Whether anything in a bot's lane still waits or is being handled."""
    rows = select(inbox.c.id).where(inbox.c.lane == lane_of(bot_id, lane), inbox.c.state.in_(("stored", "claimed")))
    return await tx.scalar(rows.limit(1)) is not None


async def newest(tx: Tx, claimed: Claimed) -> bool:
    """Whether nothing came into the lane of an update after it."""
    later = select(inbox.c.id).where(inbox.c.lane == claimed.lane, inbox.c.id > claimed.id).limit(1)
    return await tx.scalar(later) is None


async def stopped(tx: Tx, claimed: Claimed) -> bool:
    """Whether somebody asked to stop after an update came in."""
    later = select(inbox.c.id).where(inbox.c.lane == _overtaking(claimed), inbox.c.id > claimed.id).limit(1)
    return await tx.scalar(later) is not None


def _overtaking(claimed: Claimed) -> str:
    """Return the lane of what stops, of the same chat: it overtakes."""
    bot, _, lane = claimed.lane.partition(":")
    return f"{bot}:stop:{lane}"


async def retry(tx: Tx, claimed: Claimed, owner: str, delay_s: float, error: str) -> None:
    """Give a row back to be tried again later; its lane waits for it."""
    await tx.execute(_held(claimed, owner).values(_back(delay_s) | {"error": error}))


async def put_back(tx: Tx, claimed: Claimed, owner: str, delay_s: float) -> None:
    """Give a row back that could not be handled yet; this was no try, however often it happens.

    The first one stays counted: whoever takes the row up next must look for what was begun.
    """
    tries = func.greatest(inbox.c.attempts - 1, 1)
    await tx.execute(_held(claimed, owner).values(_back(delay_s) | {"attempts": tries}))


async def wait_behind(tx: Tx, claimed: Claimed, owner: str, turn_id: UUID) -> None:
    """Give a row back into the lane in which a turn is still answered: it comes up behind that, and holds up nothing else."""
    lane = select(inbox.c.lane).join(turns, turns.c.inbox_id == inbox.c.id).where(turns.c.id == turn_id)
    behind = _back(0.0) | {"lane": func.coalesce(lane.scalar_subquery(), claimed.lane)}
    await tx.execute(_held(claimed, owner).values(behind))


def _held(claimed: Claimed, owner: str) -> Update:
    same = (inbox.c.id == claimed.id) & (inbox.c.owner == owner) & (inbox.c.attempts == claimed.attempts)
    return update(inbox).where(same, inbox.c.state == "claimed")


def _back(delay_s: float) -> dict[str, object]:
    return {"state": "stored", "owner": None, "lease_until": None, "due_at": after(delay_s)}


async def purge(tx: Tx, days: int) -> int:
    """Drop the bodies of finished updates older than `days`."""
    old = update(inbox).where(inbox.c.body.is_not(None), inbox.c.finished_at < after(-days * DAY_S))
    return (await tx.execute(old.values(body=None))).rowcount
