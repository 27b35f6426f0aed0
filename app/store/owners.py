"""Leases of processes that are dead already: given back at once instead of when they run out.

An owner is named `place:nonce:pid`. Only owners of the same place are looked at, which is a host and on it a space of
process numbers: of two containers that share the host's name neither takes the other's processes for dead. A number that
was reused keeps the lease until it ends.
"""

import secrets
import socket
from collections.abc import Callable
from os import getpid
from pathlib import Path

from sqlalchemy import func, select, update

from app.store.engine import Tx
from app.store.tables.road import inbox, outbox, polling_leases

_NUMBERS = Path("/proc/self/ns/pid")


def this_place() -> str:
    """Return where this process runs, as far as its number means anything."""
    name = socket.gethostname()
    return f"{name}/{_NUMBERS.stat().st_ino}" if _NUMBERS.exists() else name


def new_owner() -> str:
    """Return a name for this process; its random part keeps it apart from who had the same number before."""
    return f"{this_place()}:{secrets.token_hex(4)}:{getpid()}"


async def release_dead(tx: Tx, place: str, alive: Callable[[int], bool]) -> int:
    """End the leases of a place's dead processes; return how many owners there were."""
    dead = [owner for owner in await _owners(tx) if _is_dead(owner, place, alive)]
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


def _is_dead(owner: str, place: str, alive: Callable[[int], bool]) -> bool:
    its_place, _, rest = owner.partition(":")
    pid = rest.rpartition(":")[2]
    return its_place == place and pid.isdigit() and not alive(int(pid))
