"""Raw updates: stored once, claimed in the order of their lane, renewed, finished. Ordering and dedupe are constraints.

A lane's oldest unfinished row is the only one that can be claimed, so updates of one chat never overtake each other,
and lanes run side by side. A claim is a lease by the database's clock; its owner and its number (`attempts`) are the fence
in the final update, so that a process which lost a claim and has it again ends only the newer one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import BigInteger, Update, bindparam, func, select, text, update

from app.store.claims import claiming
from app.store.clock import after
from app.store.engine import Tx
from app.store.tables.road import inbox

LEASE_S = 30
DAY_S = 86_400
MAX_ATTEMPTS = 5


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


async def accept(tx: Tx, bot_id: UUID, updates: Sequence[Stored]) -> int:
    """Store what is new; return how many were. An update whose any key was seen before has no effect.

    One statement an update: platforms wait for it.
    """
    stored = 0
    for item in updates:
        keys = sorted(set(item.keys))
        row = {"keys": keys, "count": len(keys), "bot": bot_id, "lane": f"{bot_id}:{item.lane}", "body": item.body}
        stored += (await tx.execute(_ACCEPT, row)).rowcount
    return stored


_ACCEPT = text("""
    with fresh as (
        insert into dedupe_keys (key) select unnest(cast(:keys as bytea[])) on conflict do nothing returning key
    )
    insert into inbox (bot_id, lane, body)
    select cast(:bot as uuid), cast(:lane as text), cast(:body as bytea) where (select count(*) from fresh) = :count
""")
# While intake is paused nothing is claimed; what arrives is stored.
_GOING_ON = "not exists (select 1 from switches where name = 'intake' and paused)"
_CLAIM = text(
    claiming("inbox", "lane", waiting="stored", held="claimed", only=_GOING_ON)
    + "from ready where taken.id = ready.id returning taken.id, taken.bot_id, taken.lane, taken.body, taken.attempts"
)
_HOLDS = select(inbox.c.id).where(inbox.c.id == bindparam("row", type_=BigInteger), inbox.c.body.is_not(None))


async def claim(tx: Tx, owner: str, limit: int) -> list[Claimed]:
    """Claim up to `limit` rows, at most one a lane, oldest first; none while intake is paused."""
    rows = await tx.execute(_CLAIM, {"owner": owner, "limit": limit, "lease": LEASE_S})
    return sorted((Claimed(r.id, r.bot_id, r.lane, bytes(r.body or b""), r.attempts) for r in rows), key=lambda c: c.id)


async def renew(tx: Tx, owner: str, held: Collection[Claimed]) -> None:
    """Hold the leases of rows that are still worked on."""
    ids = [claimed.id for claimed in held]
    mine = update(inbox).where(inbox.c.id.in_(ids), inbox.c.owner == owner, inbox.c.state == "claimed")
    await tx.execute(mine.values(lease_until=after(LEASE_S)))


async def finish(tx: Tx, claimed: Claimed, owner: str, state: str, error: str | None = None) -> bool:
    """End a row as done, refused, quarantined or dead; False when it was claimed anew meanwhile."""
    ended = _held(claimed, owner).values(state=state, error=error, finished_at=func.now(), lease_until=None)
    return (await tx.execute(ended)).rowcount == 1


async def holds(tx: Tx, claimed: Claimed) -> bool:
    """Whether a row still has its body; not when whose it is was forgotten since it was claimed."""
    return await tx.scalar(_HOLDS, {"row": claimed.id}) is not None


async def retry(tx: Tx, claimed: Claimed, owner: str, delay_s: float, error: str) -> None:
    """Give a row back to be tried again later; its lane waits for it."""
    await tx.execute(_held(claimed, owner).values(_back(delay_s) | {"error": error}))


async def put_back(tx: Tx, claimed: Claimed, owner: str, delay_s: float) -> None:
    """Give a row back that could not be handled yet; this was no try, however often it happens.

    The first one stays counted: whoever takes the row up next must look for what was begun.
    """
    tries = func.greatest(inbox.c.attempts - 1, 1)
    await tx.execute(_held(claimed, owner).values(_back(delay_s) | {"attempts": tries}))


def _held(claimed: Claimed, owner: str) -> Update:
    same = (inbox.c.id == claimed.id) & (inbox.c.owner == owner) & (inbox.c.attempts == claimed.attempts)
    return update(inbox).where(same, inbox.c.state == "claimed")


def _back(delay_s: float) -> dict[str, object]:
    return {"state": "stored", "owner": None, "lease_until": None, "due_at": after(delay_s)}


async def purge(tx: Tx, days: int) -> int:
    """Drop the bodies of finished updates older than `days`."""
    old = update(inbox).where(inbox.c.body.is_not(None), inbox.c.finished_at < after(-days * DAY_S))
    return (await tx.execute(old.values(body=None))).rowcount
