"""Content templates of a bot at its platform: which there are, what they said when they were made, whether they may go out."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.store.engine import Tx
from app.store.tables.people import content_templates as t

UNDECIDED = ("received", "pending")
REFUSED = ("rejected", "paused", "disabled", "deleted")
_MAKING_LOCK = 6_340_117
APPROVALS = ("unsubmitted", *UNDECIDED, "approved", *REFUSED)


@dataclass(frozen=True, slots=True)
class Made:
    """A template that stands at the platform under `content_sid`; `digest` is of what it says."""

    name: str
    language: str
    content_sid: str
    digest: bytes
    approval: str


async def alone(tx: Tx) -> None:
    """Wait until nobody else makes templates, and let nobody begin until `tx` ends."""
    await tx.execute(select(func.pg_advisory_xact_lock(_MAKING_LOCK)))


async def made(tx: Tx, bot_id: UUID) -> Sequence[Made]:
    """Return every template of a bot."""
    rows = await tx.execute(select(t).where(t.c.bot_id == bot_id).order_by(t.c.name, t.c.language))
    return [Made(r.name, r.language, r.content_sid, bytes(r.digest), r.approval) for r in rows]


async def keep(tx: Tx, bot_id: UUID, template: Made) -> None:
    """Keep a template that was made; it takes the place of the one of its name and language."""
    values = {
        "content_sid": template.content_sid,
        "digest": template.digest,
        "approval": template.approval,
        "checked_at": None,
    }
    new = insert(t).values(bot_id=bot_id, name=template.name, language=template.language, **values)
    again = values | {"created_at": func.now()}
    await tx.execute(new.on_conflict_do_update(index_elements=["bot_id", "name", "language"], set_=again))


async def decided(tx: Tx, bot_id: UUID, content_sid: str, approval: str) -> None:
    """Keep what the platform says of a template."""
    told = update(t).where(t.c.bot_id == bot_id, t.c.content_sid == content_sid)
    await tx.execute(told.values(approval=approval, checked_at=func.now()))


async def usable(tx: Tx, bot_id: UUID, name: str, language: str) -> str | None:
    """Return the id of a template that may be sent while a person has just written, when nothing has to be approved."""
    query = select(t.c.content_sid).where(t.c.bot_id == bot_id, t.c.name == name, t.c.language == language)
    found = await tx.scalar(query.where(t.c.approval.not_in(REFUSED)))
    return str(found) if found else None
