"""Sessions: opened at the first word, ended by /new, idle time or age; each pins the release that was live then."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import Float, Uuid, bindparam, case, func, select, true, update
from sqlalchemy.dialects.postgresql import insert

from app.domain.person import Chat, Session, split_of
from app.domain.prompt import PastTurn
from app.store import turns
from app.store.clock import after
from app.store.engine import Tx
from app.store.tables.learning import releases
from app.store.tables.people import sessions

MINUTE_S = 60
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Limits:
    """After how many idle minutes, and at most how many hours, a session is over."""

    idle_minutes: int
    max_hours: int


async def current(
    tx: Tx, chat: Chat, person_id: UUID | None, limits: Limits, before: UUID | None = None
) -> tuple[Session, Sequence[PastTurn]]:
    """Return the open session of a chat with its past (`turns.history`); its last moment becomes now.

    Where the last is idle or old, a new one: `add` it.
    """
    owner = person_id if chat.private else None
    bounds = {"idle": -limits.idle_minutes * MINUTE_S, "longest": -limits.max_hours * HOUR_S}
    rows = (await tx.execute(_CONTINUED, bounds | {"chat": chat.id, "owner": owner, "before": before})).all()
    row = rows[0]
    if row.id is not None and row.ended_at is None:
        session = Session(row.id, row.chat_id, row.person_id, row.number, row.split, row.release_id)
        return session, turns.past(row for row in rows if row.holder is not None)
    number = (row.newest or 0) + 1
    return Session(uuid4(), chat.id, owner, number, split_of(number), row.live, fresh=True), ()


async def add(tx: Tx, session: Session) -> None:
    """Store a new session, in the transaction that found it to be needed.

    The chat's lane keeps others away; where it does not, the constraints on open session and number refuse the second.
    """
    values = {"id": session.id, "chat_id": session.chat_id, "person_id": session.person_id, "number": session.number}
    await tx.execute(_ADDED, values | {"split": session.split, "release_id": session.release_id})


_OLD = (sessions.c.last_at < after(bindparam("idle", type_=Float))) | (
    sessions.c.started_at < after(bindparam("longest", type_=Float))
)
# One that is too old is ended, any other goes on; what is ended keeps its last moment.
_TOUCHED = (
    update(sessions)
    .where(sessions.c.chat_id == bindparam("chat"), sessions.c.ended_at.is_(None))
    .values(ended_at=case((_OLD, func.now())), last_at=case((_OLD, sessions.c.last_at), else_=func.now()))
    .returning(sessions)
    .cte("touched")
)
_NUMBERS = select(func.max(sessions.c.number).label("newest")).where(sessions.c.chat_id == bindparam("chat")).subquery()
_OWNER = bindparam("owner", type_=Uuid)
_LIVE = select(releases.c.id).where(
    releases.c.person_id == _OWNER, releases.c.scope == "person", releases.c.state == "live"
)
_PAST = turns.history_of(case((_TOUCHED.c.ended_at.is_(None), _TOUCHED.c.id))).lateral("past")
# One row in any case: the highest number that there was and the release that is live, beside the session that was
# touched, if any; one for each turn of its past, the newest first.
_CONTINUED = (
    select(_NUMBERS.c.newest, _LIVE.scalar_subquery().label("live"), _TOUCHED, *_PAST.c)
    .select_from(_NUMBERS.outerjoin(_TOUCHED, true()).outerjoin(_PAST, true()))
    .order_by(_PAST.c.place.desc())
)
_ADDED = insert(sessions)


async def end(tx: Tx, chat_id: UUID) -> None:
    """End a chat's session now."""
    await tx.execute(
        update(sessions).where(sessions.c.chat_id == chat_id, sessions.c.ended_at.is_(None)).values(ended_at=func.now())
    )
