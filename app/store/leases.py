"""The polling lease: one gateway at a time asks a platform for a bot's updates, by the database's clock."""

from uuid import UUID

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert

from app.store.clock import after
from app.store.engine import Store, Tx
from app.store.tables.road import polling_leases

# Longer than one long poll with its time-outs, so that a holder that lives never loses it.
LEASE_S = 120.0


class PollingLease:
    """One gateway's claim to poll one bot."""

    def __init__(self, store: Store, bot_id: UUID, owner: str) -> None:
        """Take the bot and the name of this gateway."""
        self._store = store
        self._bot_id = bot_id
        self._owner = owner

    async def hold(self) -> bool:
        """Take or renew the lease; False while another gateway has it."""
        async with self._store.begin() as tx:
            return await _hold(tx, self._bot_id, self._owner)

    async def release(self) -> None:
        """Let another gateway poll at once."""
        async with self._store.begin() as tx:
            mine = (polling_leases.c.bot_id == self._bot_id) & (polling_leases.c.owner == self._owner)
            await tx.execute(polling_leases.delete().where(mine))


async def _hold(tx: Tx, bot_id: UUID, owner: str) -> bool:
    taken = insert(polling_leases).values(bot_id=bot_id, owner=owner, lease_until=after(LEASE_S))
    free = (polling_leases.c.owner == owner) | (polling_leases.c.lease_until < func.now())
    taken = taken.on_conflict_do_update(
        index_elements=["bot_id"], set_={"owner": owner, "lease_until": after(LEASE_S)}, where=free
    )
    return (await tx.execute(taken)).rowcount == 1
