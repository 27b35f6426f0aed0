"""The four switches that pause a step; a pause loses nothing and takes effect at the next step."""

from typing import Literal

from sqlalchemy import select

from app.store.engine import Tx
from app.store.tables.admin import switches

Switch = Literal["intake", "scoring", "training", "release"]


async def paused(tx: Tx, name: Switch) -> bool:
    """Whether `name` is paused now."""
    return bool(await tx.scalar(select(switches.c.paused).where(switches.c.name == name)))
