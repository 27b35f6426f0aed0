"""Questions how a reply was: the signals behind them, each question, and what came of it. The signals are read as a reply
ends (`ending.py`).
"""

from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.domain.asking import Signals
from app.store.engine import Tx
from app.store.tables.feedback import asks


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that was just answered: why it was asked, and the message in which it stands."""

    reason: str
    outbox_id: int | None


# A person is not asked who waits for a human, opted out, or owes an answer to another question in this chat. The reply in
# question counts in, although the statement that ends it does not see it ended. Asked with `:ask` only.
#
# Binds ask, person, turn, chat, lately (how many of their replies are looked at), recent, and idle (minutes, after which an
# older question of the dialogue in this chat is forgotten).
SIGNALS = """
    lately as (
        select t.id, t.checkpoint_id, row_number() over (order by t.created_at desc) as back,
               exists (select 1 from votes v where v.turn_id = t.id and v.value <> 0)
               or exists (select 1 from feedback f where f.turn_id = t.id) as said,
               exists (select 1 from asks a where a.turn_id = t.id) as asked
        from (
            select id, checkpoint_id, created_at from turns
            where :ask and person_id = :person and (state = 'done' or id = :turn) order by created_at desc limit :lately
        ) t
    ),
    verdict as (
        select s.id, s.state, s.confidence from scores s join lately l on l.id = s.turn_id
        where l.back <= :recent and s.state <> 'pending' order by s.created_at desc limit 1
    ),
    signals as (
        select case when now_.checkpoint_id is not null
                    then (select count(*) from lately l where l.checkpoint_id = now_.checkpoint_id) end as by_checkpoint,
               (select coalesce(min(back) filter (where said) - 1, count(*)) from lately) as since_feedback,
               (select min(back) filter (where asked) - 1 from lately) as since_asked,
               (select count(*) from asks where person_id = :person and asked_at > now() - interval '1 day') as asked_today,
               coalesce((select state = 'no_verdict' from verdict), false) as no_verdict,
               (select confidence from verdict) as confidence,
               (select count(distinct v.value) > 1 from score_votes v where v.score_id = (select id from verdict)) as split
        from chats c join turns now_ on now_.id = :turn
        where :ask and c.id = :chat and c.status = 'active' and c.kind = 'private'
          and (c.state #>> '{awaiting,since}' is null
               or (c.state #>> '{awaiting,since}')::timestamptz < now() - make_interval(mins => :idle))
          and not exists (
              select 1 from accounts a where a.person_id = :person and a.bot_id = c.bot_id and a.status = 'opted_out'
          )
    )
"""
_NAMES = tuple(field.name for field in fields(Signals))


def signals_in(row: Row[Any]) -> Signals | None:
    """Return what speaks for asking about a reply, as `SIGNALS` tells it; None where its person must not be asked now."""
    return None if row.since_feedback is None else Signals(**{name: row._mapping[name] for name in _NAMES})  # noqa: SLF001


async def add(tx: Tx, turn_id: UUID, person_id: UUID, reason: str, outbox_id: int) -> None:
    """Keep that a person was asked about a reply, and in which message."""
    await tx.execute(insert(asks).values(turn_id=turn_id, person_id=person_id, reason=reason, outbox_id=outbox_id))


async def answer(tx: Tx, turn_id: UUID, person_id: UUID, answer: str) -> Answered | None:
    """Note that a person said something about a reply: `up`, `down` or `words`; None where no question about it was open."""
    still_open = update(asks).where(
        asks.c.turn_id == turn_id, asks.c.person_id == person_id, asks.c.answered_at.is_(None)
    )
    answered = still_open.values(answered_at=func.now(), answer=answer).returning(asks.c.reason, asks.c.outbox_id)
    row = (await tx.execute(answered)).one_or_none()
    return Answered(row.reason, row.outbox_id) if row else None


async def is_open(tx: Tx, turn_id: UUID) -> bool:
    """Whether a question about a reply waits for its answer."""
    waiting = select(asks.c.id).where(asks.c.turn_id == turn_id, asks.c.answered_at.is_(None))
    return await tx.scalar(waiting) is not None
