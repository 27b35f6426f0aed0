"""Parts that may not be sent until a chat's person writes again, as after WhatsApp's 24 hours: held, told of once, released.

    due ──window closed──► held ──they write──► due, in the order in which they were to be sent
                             └──HELD_DAYS─────► failed

Whether the window is closed is read from `chats.heard_at`; the platform's own word stands above it. That something waits
is told by one template for each time that the window closes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, text, update
from sqlalchemy.sql.dml import ReturningUpdate

from app.store.clock import after
from app.store.engine import Tx
from app.store.outbox import DAY_S, Due
from app.store.tables.people import chats
from app.store.tables.road import outbox

BY_CLOCK = "window_closed"


@dataclass(frozen=True, slots=True)
class Untold:
    """A chat whose person shall be told that something waits: by which template, in which language."""

    chat_id: UUID
    language: str
    content_sid: str


# States are written out: only so PostgreSQL sees that the partial indexes fit.
_HOLD = text("""
    update outbox set state = 'held', error = :reason, owner = null, lease_until = null, due_at = null, attempts = 0
    where chat_id = :chat and state in ('due', 'sending') and content ->> 'template' is null
      and (id = :row and lease_until = :lease or state = 'due' and (provider_message_id is null or sent_version = 0))
""")
_DUE_AGAIN = text("""
    update outbox set state = 'due', owner = null, lease_until = null, due_at = null, attempts = greatest(attempts - 1, 0)
    where id = :row and lease_until = :lease
""")


async def hold(tx: Tx, row: Due, reason: str) -> bool:
    """Hold a claimed part and what is due behind it; False when somebody wrote in its chat meanwhile: then it is due again."""
    claim = {"row": row.id, "lease": row.lease_until}
    if await _heard_at(tx, row.chat_id) != row.heard_at:
        await tx.execute(_DUE_AGAIN, claim)
        return False
    await tx.execute(_HOLD, claim | {"chat": row.chat_id, "reason": reason})
    return True


async def take_back(tx: Tx, bot_id: UUID, message_id: str, reason: str) -> UUID | None:
    """Hold a sent part that the platform reports as too late, to be sent anew; return its chat, None when none is known.

    Where somebody wrote after it was sent, it is due at once. What arrived has arrived, and a template waits for nothing.
    """
    theirs = select(chats.c.id).where(chats.c.bot_id == bot_id)
    known = (outbox.c.provider_message_id == message_id) & outbox.c.chat_id.in_(theirs)
    found = (await tx.execute(select(outbox.c.id, outbox.c.chat_id, outbox.c.sent_at).where(known))).first()
    if found is None:
        return None
    heard_at = await _heard_at(tx, found.chat_id)
    open_again = heard_at is not None and found.sent_at is not None and heard_at > found.sent_at
    lost = (outbox.c.id == found.id) & (outbox.c.state == "sent") & outbox.c.delivery.is_(None)
    free = outbox.c.content["template"].astext.is_(None)
    waiting = {"state": "due", "released_at": func.now()} if open_again else {"state": "held"}
    await tx.execute(update(outbox).where(lost, free).values(waiting | {"sent_version": 0, "error": reason}))
    await tx.execute(update(outbox).where(lost, ~free).values(state="failed", error=reason))
    return UUID(str(found.chat_id))


async def _heard_at(tx: Tx, chat_id: UUID) -> datetime | None:
    """Return when somebody last wrote in a chat. Whoever writes just now waits until `tx` ends, or was there before."""
    query = select(chats.c.heard_at).where(chats.c.id == chat_id).with_for_update(key_share=True)
    found: datetime | None = await tx.scalar(query)
    return found


def released(chat_id: ColumnElement[UUID]) -> ReturningUpdate[tuple[int]]:
    """Return the statement that makes due what was held in a chat."""
    held = update(outbox).where(outbox.c.chat_id == chat_id, text("outbox.state = 'held'"))
    return held.values(state="due", due_at=None, released_at=func.now()).returning(outbox.c.id)


async def end(tx: Tx, days: int) -> Sequence[int]:
    """Give up what waited for `days` for somebody to write; return the rows."""
    waiting = update(outbox).where(text("outbox.state = 'held'"), outbox.c.created_at < after(-days * DAY_S))
    given_up = waiting.values(state="failed", error="waited_too_long").returning(outbox.c.id)
    return list(await tx.scalars(given_up))


_UNTOLD = text("""
    update chats c set news_at = now()
    from (
        select h.id, t.language, t.content_sid
        from (select distinct chat_id from outbox where state = 'held') waiting
        join chats h on h.id = waiting.chat_id
        join people p on p.id = h.person_id
        cross join lateral (
            select language, content_sid from content_templates
            where bot_id = h.bot_id and name = 'news' and approval = 'approved'
            order by language = left(coalesce(p.language, :language), 2) desc, language = :language desc, language
            limit 1
        ) t
        where h.kind = 'private' and h.status = 'active' and (h.news_at is null or h.news_at < h.heard_at)
          and not exists (
              select 1 from accounts a where a.person_id = h.person_id and a.bot_id = h.bot_id and a.status = 'opted_out'
          )
        limit :most
        for update of h skip locked
    ) found
    where c.id = found.id
    returning c.id as chat_id, found.language, found.content_sid
""")


async def untold(tx: Tx, language: str, most: int) -> Sequence[Untold]:
    """Return chats in which something is held and nobody was told since they last wrote; from now on they were.

    Nobody is told who opted out, waits for a human, or has no template that is approved. `language` is for who has none.
    """
    rows = await tx.execute(_UNTOLD, {"language": language, "most": most})
    return [Untold(row.chat_id, row.language, row.content_sid) for row in rows]
