"""Votes: one state per (turn, person), with every change kept."""

from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from app.store.engine import Tx
from app.store.tables.feedback import vote_events, votes


async def cast_vote(tx: Tx, turn_id: UUID, person_id: UUID, value: int, source: str) -> bool:
    """Set a vote to 1, -1 or 0 (taken back); return whether that changed anything."""
    before = await vote(tx, turn_id, person_id)
    if before == value:
        return False
    made = insert(votes).values(turn_id=turn_id, person_id=person_id, value=value, source=source)
    changed = {"value": value, "source": source, "changed_at": func.now()}
    await tx.execute(made.on_conflict_do_update(index_elements=["turn_id", "person_id"], set_=changed))
    await tx.execute(insert(vote_events).values(turn_id=turn_id, person_id=person_id, value=value, source=source))
    return True


async def source(tx: Tx, turn_id: UUID, person_id: UUID) -> str | None:
    """Return how the vote in force was given: button, reaction or words; None where there is none."""
    query = select(votes.c.source).where(votes.c.turn_id == turn_id, votes.c.person_id == person_id, votes.c.value != 0)
    found = await tx.scalar(query)
    return str(found) if found else None


async def vote(tx: Tx, turn_id: UUID, person_id: UUID) -> int:
    """Return the vote in force: 1, -1, or 0 for none."""
    query = select(votes.c.value).where(votes.c.turn_id == turn_id, votes.c.person_id == person_id)
    return int(await tx.scalar(query) or 0)
