"""Leases of processes that are dead already: given back at once instead of when they run out.

An owner is named `host:nonce:pid`. Only owners on this host are looked at; a pid that was reused keeps the lease until
it ends. Where processes of several pid namespaces share one host name, set `hostname` apart: a pid says nothing there.
"""

from collections.abc import Callable

from sqlalchemy import func, select, update

from app.store.engine import Tx
from app.store.tables.road import inbox, outbox, polling_leases


async def release_dead(tx: Tx, host: str, alive: Callable[[int], bool]) -> int:
    """End the leases of this host's dead processes; return how many owners there were."""
    dead = [owner for owner in await _owners(tx) if _is_dead(owner, host, alive)]
    if dead:
        gone = {"lease_until": func.now()}
        await tx.execute(update(inbox).where(inbox.c.owner.in_(dead), inbox.c.state == "claimed").values(gone))
        await tx.execute(update(outbox).where(outbox.c.owner.in_(dead), outbox.c.state == "sending").values(gone))
        await tx.execute(polling_leases.delete().where(polling_leases.c.owner.in_(dead)))
    return len(dead)


async def _owners(tx: Tx) -> set[str]:
    held = select(inbox.c.owner).where(inbox.c.state == "claimed")
    sending = select(outbox.c.owner).where(outbox.c.state == "sending")
    everyone = held.union(sending, select(polling_leases.c.owner))
    return {owner for owner in await tx.scalars(everyone) if owner}


def _is_dead(owner: str, host: str, alive: Callable[[int], bool]) -> bool:
    its_host, _, rest = owner.partition(":")
    pid = rest.rpartition(":")[2]
    return its_host == host and pid.isdigit() and not alive(int(pid))
