"""Sessions: opened at the first word, ended by /new, idle time or age; each pins the release that was live then."""

from uuid import UUID

from sqlalchemy import Row, func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.domain.person import Chat, Session, split_of
from app.store.clock import after
from app.store.engine import Tx
from app.store.tables.learning import releases
from app.store.tables.people import sessions

MINUTE_S = 60
HOUR_S = 3600


async def current(tx: Tx, chat: Chat, person_id: UUID | None, *, idle_minutes: int, max_hours: int) -> Session:
    """Return the open session of a chat, a new one where the last is idle or old; its last moment becomes now."""
    await end_stale(tx, chat.id, idle_minutes=idle_minutes, max_hours=max_hours)
    touched = update(sessions).where(sessions.c.chat_id == chat.id, sessions.c.ended_at.is_(None))
    row = (await tx.execute(touched.values(last_at=func.now()).returning(sessions))).one_or_none()
    return _session(row) if row else await _open(tx, chat, person_id)


async def end_stale(tx: Tx, chat_id: UUID, *, idle_minutes: int, max_hours: int) -> None:
    """End a chat's session when it was idle or open too long."""
    old = (sessions.c.last_at < after(-idle_minutes * MINUTE_S)) | (sessions.c.started_at < after(-max_hours * HOUR_S))
    await tx.execute(
        update(sessions)
        .where(sessions.c.chat_id == chat_id, sessions.c.ended_at.is_(None), old)
        .values(ended_at=func.now())
    )


async def end(tx: Tx, chat_id: UUID) -> None:
    """End a chat's session now."""
    await tx.execute(
        update(sessions).where(sessions.c.chat_id == chat_id, sessions.c.ended_at.is_(None)).values(ended_at=func.now())
    )


async def _open(tx: Tx, chat: Chat, person_id: UUID | None) -> Session:
    newest = await tx.scalar(select(func.coalesce(func.max(sessions.c.number), 0)).where(sessions.c.chat_id == chat.id))
    number = int(newest or 0) + 1
    owner = person_id if chat.private else None
    live = select(releases.c.id).where(
        releases.c.person_id == owner, releases.c.scope == "person", releases.c.state == "live"
    )
    made = insert(sessions).values(
        chat_id=chat.id, person_id=owner, number=number, split=split_of(number), release_id=live.scalar_subquery()
    )
    return _session((await tx.execute(made.returning(sessions))).one(), fresh=True)


def _session(row: Row[tuple[object, ...]], *, fresh: bool = False) -> Session:
    return Session(row.id, row.chat_id, row.person_id, row.number, row.split, row.release_id, fresh)
