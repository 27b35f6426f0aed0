"""Replies beside a first one: what was answered once more. Reads only."""

from sqlalchemy import select

from app.domain.turn import Turn
from app.store.engine import Tx
from app.store.tables.road import inbox, turns


async def was_being_written(tx: Tx, turn: Turn, inbox_id: int) -> bool:
    """Whether another reply beside this turn's first one was on its way when this update arrived.

    A chat's updates are handled one after the other, so that reply has ended by now, unless it was given up.
    """
    arrived = select(inbox.c.received_at).where(inbox.c.id == inbox_id).scalar_subquery()
    begun = select(turns.c.id).where(
        turns.c.sibling_of == (turn.sibling_of or turn.id),
        turns.c.inbox_id.is_distinct_from(inbox_id),
        turns.c.finished_at > arrived,
    )
    return await tx.scalar(begun.limit(1)) is not None
